/* conformance/kit_heap.c: host.alloc and host.free: counted, made to fail on demand, with guard bytes around each block,
 * and freed blocks kept for a while so that a write to one of them is seen. */
#include <stdlib.h>
#include <string.h>

#include "conformance/kit_side.h"

enum { GUARD = 32, FULL = 0xa5, GONE = 0xdd, MOST_FREED = 512 };
#define MOST_FREED_BYTES (UINT64_C(8) << 20)
#define LIVE UINT64_C(0x4865646c6c654b69)
#define DEAD UINT64_C(0x6b4974656e74416d)

struct kit_block {
  uint64_t state; /* LIVE or DEAD */
  kit_block *next, *before;
  unsigned char *data;
  uint64_t bytes;
};

bool kit_heap_init(kit_heap *h) {
  return pthread_mutex_init(&h->lock, NULL) == 0;
}

/* A block is [its record ... guard][data][guard]; the record's address lies before the first guard. */
static kit_block *record_of(void *p) {
  kit_block *b;
  memcpy(&b, (unsigned char *)p - GUARD - sizeof b, sizeof b);
  return b;
}

static bool is(const unsigned char *p, uint64_t bytes, unsigned char value) {
  return bytes == 0 || (p[0] == value && memcmp(p, p + 1, (size_t)bytes - 1) == 0); /* each as the one before it */
}

static bool guarded(const kit_block *b) {
  return is(b->data - GUARD, GUARD, FULL) && is(b->data + b->bytes, GUARD, FULL);
}

static _Thread_local uint64_t calls; /* of host.alloc by this thread */

uint64_t kit_heap_calls(void) {
  return calls;
}

void *kit_heap_alloc(kit *k, uint64_t bytes, uint64_t align) {
  kit_heap *h = &k->side->heap;
  calls++;
  if (align == 0 || (align & (align - 1)) != 0)
    kit_fail(k, "host.alloc was asked for an alignment of %llu, which is no power of two", (unsigned long long)align);
  pthread_mutex_lock(&h->lock);
  bool refused = h->fail_after > 0 && --h->fail_after == 0;
  h->failed = h->failed || refused;
  pthread_mutex_unlock(&h->lock);
  if (refused || bytes > UINT64_C(1) << 40 || align > UINT64_C(1) << 30) return NULL;
  if (align < 16) align = 16;
  uint64_t front = sizeof(kit_block) + sizeof(kit_block *) + GUARD;
  unsigned char *raw = malloc((size_t)(front + align + bytes + GUARD));
  if (raw == NULL) return NULL;
  uint64_t shift = (uint64_t)((uintptr_t)(raw + front) & (align - 1));
  unsigned char *data = raw + front + (shift > 0 ? align - shift : 0);
  kit_block *b = (kit_block *)(void *)raw;
  *b = (kit_block){.state = LIVE, .data = data, .bytes = bytes};
  memcpy(data - GUARD - sizeof b, &b, sizeof b);
  memset(data - GUARD, FULL, GUARD);
  /* A plugin that takes it for zeroed fails; a device's whole memory need not be touched for that. */
  memset(data, FULL - 1, (size_t)(bytes < MOST_FREED_BYTES ? bytes : MOST_FREED_BYTES));
  memset(data + bytes, FULL, GUARD);
  pthread_mutex_lock(&h->lock);
  b->next = h->live;
  if (h->live != NULL) h->live->before = b;
  h->live = b;
  h->count++;
  pthread_mutex_unlock(&h->lock);
  return data;
}

/* Gives the oldest of the freed blocks back; false where it was written to. The lock is held. */
static bool drop_oldest(kit_heap *h) {
  kit_block *b = h->freed;
  if (b == NULL) return true;
  bool whole = is(b->data, b->bytes, GONE);
  h->freed = b->next;
  if (h->freed == NULL) h->freed_last = NULL;
  h->n_freed--;
  h->bytes_freed -= b->bytes;
  free(b);
  return whole;
}

void kit_heap_free(kit *k, void *p) {
  kit_heap *h = &k->side->heap;
  if (p == NULL) return;
  kit_block *b = record_of(p);
  /* An address that is none of ours has no record before it: reading there may end the process, which is seen too. */
  if (b == NULL || (b->state != LIVE && b->state != DEAD) || b->data != p)
    kit_fail(k, "host.free was called with an address that host.alloc did not give");
  if (b->state == DEAD)
    kit_fail(k, "host.free was called twice for a block of %llu bytes", (unsigned long long)b->bytes);
  if (!guarded(b))
    kit_fail(k, "bytes outside a block of %llu from host.alloc were written to", (unsigned long long)b->bytes);
  pthread_mutex_lock(&h->lock);
  if (b->before != NULL) b->before->next = b->next;
  else h->live = b->next;
  if (b->next != NULL) b->next->before = b->before;
  b->state = DEAD;
  b->next = b->before = NULL;
  if (b->bytes > MOST_FREED_BYTES) { /* it would be given back at once, with all that wait */
    h->count--;
    pthread_mutex_unlock(&h->lock);
    free(b);
    return;
  }
  memset(b->data, GONE, (size_t)b->bytes);
  if (h->freed_last != NULL) h->freed_last->next = b;
  else h->freed = b;
  h->freed_last = b;
  h->count--;
  h->n_freed++;
  h->bytes_freed += b->bytes;
  bool whole = true;
  while (h->n_freed > MOST_FREED || h->bytes_freed > MOST_FREED_BYTES) whole = drop_oldest(h) && whole;
  pthread_mutex_unlock(&h->lock);
  if (!whole) kit_fail(k, "a block from host.alloc was written to after host.free");
}

void kit_heap_check(kit *k) {
  kit_heap *h = &k->side->heap;
  bool inside = true, whole = true;
  pthread_mutex_lock(&h->lock);
  for (const kit_block *b = h->live; b != NULL; b = b->next) inside = inside && guarded(b);
  for (const kit_block *b = h->freed; b != NULL; b = b->next) whole = whole && is(b->data, b->bytes, GONE);
  pthread_mutex_unlock(&h->lock);
  if (!inside) kit_fail(k, "bytes outside a block from host.alloc were written to");
  if (!whole) kit_fail(k, "a block from host.alloc was written to after host.free");
}

uint64_t kit_host_blocks(kit *k) {
  pthread_mutex_lock(&k->side->heap.lock);
  uint64_t count = k->side->heap.count;
  pthread_mutex_unlock(&k->side->heap.lock);
  return count;
}

void kit_host_settle(kit *k) {
  kit_heap *h = &k->side->heap;
  bool whole = true;
  pthread_mutex_lock(&h->lock);
  while (h->freed != NULL) whole = drop_oldest(h) && whole;
  pthread_mutex_unlock(&h->lock);
  if (!whole) kit_fail(k, "a block from host.alloc was written to after host.free");
}

void kit_host_fail_alloc(kit *k, uint64_t n) {
  pthread_mutex_lock(&k->side->heap.lock);
  k->side->heap.fail_after = n;
  k->side->heap.failed = false;
  pthread_mutex_unlock(&k->side->heap.lock);
}

bool kit_host_failed(kit *k) {
  pthread_mutex_lock(&k->side->heap.lock);
  bool failed = k->side->heap.failed;
  pthread_mutex_unlock(&k->side->heap.lock);
  return failed;
}
