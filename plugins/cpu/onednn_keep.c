/* Descriptions of products and convolutions, kept by an instance. To choose how to compute takes oneDNN some tens to
 * some hundreds of microseconds, and its own cache knows only what has become a primitive. A plan asks for one
 * description many times: for each of a network's equal layers, of a node alone and in its region, and again when
 * the region is prepared. That there is none is kept too. */
#include <pthread.h>

#include "onednn_internal.h"

/* A plan of an encoder needs some twenty, and six times that where lengths change; one of a convolutional network some
 * hundreds. Each takes some kilobytes. */
enum { MOST_KEPT = 384, OPERANDS = 4, SLOTS = 1024 };

/* What is asked for. window: of a convolution; operands that there are not are NULL. */
typedef struct question {
  uint64_t hash;
  const_dnnl_memory_desc_t operands[OPERANDS];
  const_dnnl_primitive_attr_t attr;
  int kind, threads;
  int64_t window[ONEDNN_WINDOW];
} question;

typedef struct kept {
  uint64_t hash;
  dnnl_memory_desc_t operands[OPERANDS];
  dnnl_primitive_attr_t attr;
  dnnl_primitive_desc_t pd; /* NULL: there is none */
  uint64_t used;            /* 0: the place is free */
  int kind, threads;
  int64_t window[ONEDNN_WINDOW];
} kept;

struct onednn_keep {
  pthread_mutex_t lock; /* guards all below; held for comparisons and copies of descriptions only */
  uint64_t clock;
  uint16_t slots[SLOTS]; /* by hash: the last place + 1 that had it, where there may be another since */
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

static void mix(uint64_t *hash, int64_t number) {
  *hash = (*hash ^ (uint64_t)number) * UINT64_C(1099511628211);
}

/* Dimensions and strides tell most descriptions apart; equality decides. */
static void mix_operand(uint64_t *hash, const_dnnl_memory_desc_t md) {
  const dnnl_dims_t *dims = NULL, *strides = NULL;
  dnnl_format_kind_t format = dnnl_format_kind_undef;
  int32_t n = 0;
  if (md == NULL || dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &n) != dnnl_success || n < 1 ||
      dnnl_memory_desc_query(md, dnnl_query_dims, (void *)&dims) != dnnl_success ||
      dnnl_memory_desc_query(md, dnnl_query_format_kind, &format) != dnnl_success)
    return;
  if (format != dnnl_blocked || dnnl_memory_desc_query(md, dnnl_query_strides, (void *)&strides) != dnnl_success)
    strides = NULL;
  mix(hash, (int64_t)format);
  for (int32_t i = 0; i < n; i++) {
    mix(hash, (*dims)[i]);
    if (strides != NULL) mix(hash, (*strides)[i]);
  }
}

static void set_hash(question *q) {
  q->hash = UINT64_C(14695981039346656037);
  mix(&q->hash, q->kind);
  mix(&q->hash, q->threads);
  for (int i = 0; i < OPERANDS; i++) mix_operand(&q->hash, q->operands[i]);
  for (int i = 0; i < ONEDNN_WINDOW; i++) mix(&q->hash, q->window[i]);
  q->hash ^= q->hash >> 32;
}

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

static bool equal(const kept *e, const question *q) {
  if (e->used == 0 || e->hash != q->hash || e->kind != q->kind || e->threads != q->threads ||
      memcmp(e->window, q->window, sizeof q->window) != 0)
    return false;
  for (int i = 0; i < OPERANDS; i++)
    if (e->operands[i] != q->operands[i] && (e->operands[i] == NULL || q->operands[i] == NULL ||
                                             dnnl_memory_desc_equal(e->operands[i], q->operands[i]) == 0))
      return false;
  return equal_attr(e->attr, q->attr);
}

/* ---- the call */

/* false: it is to be asked. */
static bool find(onednn_keep *k, const question *q, dnnl_primitive_desc_t *pd, dnnl_status_t *status) {
  bool found = false;
  pthread_mutex_lock(&k->lock);
  const uint16_t slot = k->slots[q->hash % SLOTS];
  kept *e = slot > 0 && equal(&k->all[slot - 1], q) ? &k->all[slot - 1] : NULL;
  for (int i = 0; i < MOST_KEPT && e == NULL; i++)
    if (k->all[i].hash == q->hash && equal(&k->all[i], q)) e = &k->all[i];
  if (e != NULL) {
    *status = e->pd != NULL ? dnnl_primitive_desc_clone(pd, e->pd) : dnnl_unimplemented;
    found = e->pd == NULL || *status == dnnl_success;
    e->used = ++k->clock;
  }
  pthread_mutex_unlock(&k->lock);
  return found;
}

/* In place of what was not used for longest. Where memory is out it is not kept. */
static void add(onednn_keep *k, const question *q, const_dnnl_primitive_desc_t pd) {
  kept e = {.hash = q->hash, .kind = q->kind, .threads = q->threads};
  memcpy(e.window, q->window, sizeof e.window);
  bool whole = q->attr == NULL || dnnl_primitive_attr_clone(&e.attr, q->attr) == dnnl_success;
  for (int i = 0; i < OPERANDS && whole; i++)
    whole = q->operands[i] == NULL || dnnl_memory_desc_clone(&e.operands[i], q->operands[i]) == dnnl_success;
  whole = whole && (pd == NULL || dnnl_primitive_desc_clone(&e.pd, pd) == dnnl_success);
  if (whole) {
    pthread_mutex_lock(&k->lock);
    kept *at = &k->all[0];
    for (int i = 1; i < MOST_KEPT; i++)
      if (k->all[i].used < at->used) at = &k->all[i];
    const kept old = *at;
    e.used = ++k->clock;
    *at = e;
    e = old;
    k->slots[q->hash % SLOTS] = (uint16_t)(at - k->all + 1);
    pthread_mutex_unlock(&k->lock);
  }
  drop(&e);
}

enum { PRODUCT, CONVOLUTION, TRANSPOSED };

dnnl_status_t onednn_matmul_pd(const onednn *self, dnnl_primitive_desc_t *pd, const_dnnl_memory_desc_t a,
                               const_dnnl_memory_desc_t b, const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t out,
                               const_dnnl_primitive_attr_t attr) {
  question q = {.operands = {a, b, bias, out}, .attr = attr, .kind = PRODUCT, .threads = self->omp_get()};
  dnnl_status_t s = dnnl_success;
  set_hash(&q);
  if (find(self->keep, &q, pd, &s)) return s;
  s = dnnl_matmul_primitive_desc_create(pd, self->engine, a, b, bias, out, attr);
  if (s == dnnl_success) add(self->keep, &q, *pd);
  return s;
}

dnnl_status_t onednn_conv_pd(const onednn *self, dnnl_primitive_desc_t *pd, bool transposed,
                             const_dnnl_memory_desc_t const operands[4], const onednn_conv_window *w,
                             const_dnnl_primitive_attr_t attr) {
  question q = {.operands = {operands[0], operands[1], operands[2], operands[3]},
                .attr = attr,
                .kind = transposed ? TRANSPOSED : CONVOLUTION,
                .threads = self->omp_get()};
  dnnl_status_t s = dnnl_success;
  for (int i = 0; i < REF_SPATIAL; i++) {
    q.window[i] = w->strides[i];
    q.window[REF_SPATIAL + i] = w->dilations[i];
    q.window[2 * REF_SPATIAL + i] = w->before[i];
    q.window[3 * REF_SPATIAL + i] = w->after[i];
  }
  set_hash(&q);
  if (find(self->keep, &q, pd, &s)) return s;
  if (transposed)
    s = dnnl_deconvolution_forward_primitive_desc_create(
        pd, self->engine, dnnl_forward_inference, dnnl_deconvolution_direct, operands[0], operands[1], operands[2],
        operands[3], w->strides, w->dilations, w->before, w->after, attr);
  else
    s = dnnl_convolution_forward_primitive_desc_create(
        pd, self->engine, dnnl_forward_inference, dnnl_convolution_direct, operands[0], operands[1], operands[2],
        operands[3], w->strides, w->dilations, w->before, w->after, attr);
  if (s == dnnl_success) add(self->keep, &q, *pd);
  else if (s == dnnl_unimplemented) add(self->keep, &q, NULL);
  return s;
}
