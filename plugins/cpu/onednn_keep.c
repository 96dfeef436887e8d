/* Descriptions of products, kept by an instance. To choose how to multiply takes oneDNN a tenth of a millisecond, and
 * its own cache knows only what has become a primitive. A plan asks for one description many times: for each of a
 * network's equal layers, of a node alone and in its region, and again when the region is prepared. */
#include <pthread.h>

#include "onednn_internal.h"

/* A plan of an encoder needs some twenty, and six times that where lengths change; each takes some kilobytes. */
enum { MOST_KEPT = 160, OPERANDS = 4 };

typedef struct kept {
  dnnl_memory_desc_t operands[OPERANDS]; /* what was asked for; NULL: there is none */
  dnnl_primitive_attr_t attr;
  dnnl_primitive_desc_t pd; /* NULL: the place is free */
  uint64_t used;
  int threads, reserved;
} kept;

struct onednn_keep {
  pthread_mutex_t lock; /* guards all below; held for comparisons and copies of descriptions only */
  uint64_t clock;
  kept all[MOST_KEPT];
};

heddle_status onednn_keep_init(onednn *self, heddle_error *err) {
  onednn_keep *k = self->host->alloc(self->host->ctx, sizeof *k, _Alignof(onednn_keep));
  if (k == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for oneDNN's state");
  memset(k, 0, sizeof *k);
  if (pthread_mutex_init(&k->lock, NULL) != 0) {
    self->host->free(self->host->ctx, k);
    return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no lock for oneDNN's state");
  }
  self->keep = k;
  return HEDDLE_OK;
}

static void drop(kept *e) {
  for (int i = 0; i < OPERANDS; i++)
    if (e->operands[i] != NULL) dnnl_memory_desc_destroy(e->operands[i]);
  if (e->attr != NULL) dnnl_primitive_attr_destroy(e->attr);
  if (e->pd != NULL) dnnl_primitive_desc_destroy(e->pd);
  *e = (kept){.pd = NULL};
}

void onednn_keep_finish(onednn *self) {
  onednn_keep *k = self->keep;
  if (k == NULL) return;
  for (int i = 0; i < MOST_KEPT; i++) drop(&k->all[i]);
  pthread_mutex_destroy(&k->lock);
  self->host->free(self->host->ctx, k);
  self->keep = NULL;
}

/* ---- equality */

static bool equal_post(const_dnnl_post_ops_t a, const_dnnl_post_ops_t b, int i) {
  const dnnl_primitive_kind_t kind = dnnl_post_ops_get_kind(a, i);
  dnnl_alg_kind_t alg[2];
  float alpha[2], beta[2];
  const_dnnl_memory_desc_t md[2];
  if (kind != dnnl_post_ops_get_kind(b, i)) return false;
  if (kind == dnnl_eltwise)
    return dnnl_post_ops_get_params_eltwise(a, i, &alg[0], &alpha[0], &beta[0]) == dnnl_success &&
           dnnl_post_ops_get_params_eltwise(b, i, &alg[1], &alpha[1], &beta[1]) == dnnl_success && alg[0] == alg[1] &&
           memcmp(&alpha[0], &alpha[1], sizeof *alpha) == 0 && memcmp(&beta[0], &beta[1], sizeof *beta) == 0;
  return kind == dnnl_binary && dnnl_post_ops_get_params_binary(a, i, &alg[0], &md[0]) == dnnl_success &&
         dnnl_post_ops_get_params_binary(b, i, &alg[1], &md[1]) == dnnl_success && alg[0] == alg[1] &&
         dnnl_memory_desc_equal(md[0], md[1]) != 0;
}

/* Attributes have nothing but post operations and the scratchpad's mode, which is always the same; other kinds of post
 * operations are never equal. */
static bool equal_attr(const_dnnl_primitive_attr_t a, const_dnnl_primitive_attr_t b) {
  const_dnnl_post_ops_t x, y;
  if (a == NULL || b == NULL) return a == b;
  if (dnnl_primitive_attr_get_post_ops(a, &x) != dnnl_success ||
      dnnl_primitive_attr_get_post_ops(b, &y) != dnnl_success)
    return false;
  const int n = dnnl_post_ops_len(x);
  bool same = n == dnnl_post_ops_len(y);
  for (int i = 0; i < n && same; i++) same = equal_post(x, y, i);
  return same;
}

static bool equal(const kept *e, const_dnnl_memory_desc_t const *operands, const_dnnl_primitive_attr_t attr,
                  int threads) {
  if (e->pd == NULL || e->threads != threads) return false;
  for (int i = 0; i < OPERANDS; i++)
    if (e->operands[i] != operands[i] &&
        (e->operands[i] == NULL || operands[i] == NULL || dnnl_memory_desc_equal(e->operands[i], operands[i]) == 0))
      return false;
  return equal_attr(e->attr, attr);
}

/* ---- the call */

static bool find(onednn_keep *k, const_dnnl_memory_desc_t const *operands, const_dnnl_primitive_attr_t attr,
                 int threads, dnnl_primitive_desc_t *pd) {
  bool found = false;
  pthread_mutex_lock(&k->lock);
  for (int i = 0; i < MOST_KEPT && !found; i++) {
    if (!equal(&k->all[i], operands, attr, threads)) continue;
    found = dnnl_primitive_desc_clone(pd, k->all[i].pd) == dnnl_success;
    k->all[i].used = ++k->clock;
    break;
  }
  pthread_mutex_unlock(&k->lock);
  return found;
}

/* In place of what was not used for longest. Where memory is out it is not kept. */
static void add(onednn_keep *k, const_dnnl_memory_desc_t const *operands, const_dnnl_primitive_attr_t attr, int threads,
                const_dnnl_primitive_desc_t pd) {
  kept e = {.threads = threads};
  bool whole = attr == NULL || dnnl_primitive_attr_clone(&e.attr, attr) == dnnl_success;
  for (int i = 0; i < OPERANDS && whole; i++)
    whole = operands[i] == NULL || dnnl_memory_desc_clone(&e.operands[i], operands[i]) == dnnl_success;
  whole = whole && dnnl_primitive_desc_clone(&e.pd, pd) == dnnl_success;
  if (whole) {
    pthread_mutex_lock(&k->lock);
    kept *at = &k->all[0];
    for (int i = 1; i < MOST_KEPT; i++)
      if (k->all[i].used < at->used) at = &k->all[i];
    const kept old = *at;
    e.used = ++k->clock;
    *at = e;
    e = old;
    pthread_mutex_unlock(&k->lock);
  }
  drop(&e);
}

dnnl_status_t onednn_matmul_pd(const onednn *self, dnnl_primitive_desc_t *pd, const_dnnl_memory_desc_t a,
                               const_dnnl_memory_desc_t b, const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t out,
                               const_dnnl_primitive_attr_t attr) {
  const_dnnl_memory_desc_t const operands[OPERANDS] = {a, b, bias, out};
  const int threads = self->omp_get();
  if (find(self->keep, operands, attr, threads, pd)) return dnnl_success;
  const dnnl_status_t s = dnnl_matmul_primitive_desc_create(pd, self->engine, a, b, bias, out, attr);
  if (s == dnnl_success) add(self->keep, operands, attr, threads, *pd);
  return s;
}
