/* modules/tvm/tensors.c: a table of counted DLTensors by address, device, dtype and shape. */
#include "modules/tvm/tensors.h"

#include <string.h>

#include "core/alloc.h"

/* In lines of its own, the shape in the same line as the rest where it has few dimensions. */
typedef struct heddle__shared {
  heddle__dltensor tensor;
  int64_t shape[33];
  uint32_t users;
  struct heddle__shared *next;
} heddle__shared;

enum { LINE = 64, FIRST = 64 };

bool heddle__tensors_init(heddle__tensors *pool) {
  pool->buckets = heddle__alloc(FIRST, sizeof *pool->buckets);
  if (pool->buckets == NULL) return false;
  if (pthread_mutex_init(&pool->lock, NULL) != 0) {
    heddle__free(pool->buckets);
    pool->buckets = NULL;
    return false;
  }
  pool->n_buckets = FIRST;
  return true;
}

void heddle__tensors_finish(heddle__tensors *pool) {
  if (pool->buckets == NULL) return;
  heddle__free(pool->buckets);
  pthread_mutex_destroy(&pool->lock);
}

static uint32_t bucket_of(const heddle__tensors *pool, const heddle__dltensor *t) {
  uint64_t h = (uint64_t)(uintptr_t)t->data / LINE + (uint64_t)t->ndim;
  for (int32_t i = 0; i < t->ndim; i++) h = (h ^ (uint64_t)t->shape[i]) * UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(h ^ h >> 32) & (pool->n_buckets - 1);
}

static bool equal(const heddle__dltensor *a, const heddle__dltensor *b) {
  return a->data == b->data && a->device_type == b->device_type && a->device_id == b->device_id && a->ndim == b->ndim &&
         a->dtype.code == b->dtype.code && a->dtype.bits == b->dtype.bits && a->dtype.lanes == b->dtype.lanes &&
         (a->ndim == 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0);
}

/* Twice as many buckets; where memory is out, the lists just get longer. */
static void grow(heddle__tensors *pool) {
  heddle__tensors larger = {.n_buckets = 2 * pool->n_buckets};
  larger.buckets = heddle__alloc(larger.n_buckets, sizeof *larger.buckets);
  if (larger.buckets == NULL) return;
  for (uint32_t i = 0; i < pool->n_buckets; i++)
    while (pool->buckets[i] != NULL) {
      heddle__shared *s = pool->buckets[i];
      pool->buckets[i] = s->next;
      heddle__shared **to = &larger.buckets[bucket_of(&larger, &s->tensor)];
      s->next = *to;
      *to = s;
    }
  heddle__free(pool->buckets);
  pool->buckets = larger.buckets;
  pool->n_buckets = larger.n_buckets;
}

heddle__dltensor *heddle__tensors_take(heddle__tensors *pool, const heddle__dltensor *like) {
  pthread_mutex_lock(&pool->lock);
  heddle__shared **to = &pool->buckets[bucket_of(pool, like)], *s = *to;
  while (s != NULL && !equal(&s->tensor, like)) s = s->next;
  if (s == NULL && (s = heddle__alloc_aligned(sizeof *s, LINE)) != NULL) {
    *s = (heddle__shared){.tensor = *like, .next = *to};
    if (like->ndim > 0) memcpy(s->shape, like->shape, (size_t)like->ndim * sizeof *like->shape);
    s->tensor.shape = s->shape;
    *to = s;
    if (++pool->count > pool->n_buckets) grow(pool);
  }
  if (s != NULL) s->users++;
  pthread_mutex_unlock(&pool->lock);
  return s != NULL ? &s->tensor : NULL;
}

void heddle__tensors_give(heddle__tensors *pool, heddle__dltensor *tensor) {
  heddle__shared *s = (heddle__shared *)(void *)tensor;
  if (s == NULL) return;
  pthread_mutex_lock(&pool->lock);
  if (--s->users == 0) {
    heddle__shared **link = &pool->buckets[bucket_of(pool, tensor)];
    while (*link != s) link = &(*link)->next;
    *link = s->next;
    pool->count--;
    heddle__free(s);
  }
  pthread_mutex_unlock(&pool->lock);
}
