/* Random numbers: RandomNormal, RandomUniform, those like an operand, Bernoulli, Multinomial, and Dropout in training. Element i
 * gets its number from Philox4x32-10 (Salmon and others, 2011) of i / 4, whatever thread computes it, so that numbers do
 * not depend on threads or devices. The key is the attribute seed, or without one the node's name: each run of a model
 * gives the same numbers. */
#include "more.h"

#include <math.h>

#include "plugins/common/fnv.h"
#include "plugins/common/philox.h"

enum { KEY, SAMPLES, CLASSES };
enum { MEAN, SCALE };

/* Between 0 and 1, neither of them. */
static double part(uint32_t word) {
  return ((double)word + 0.5) * 0x1p-32;
}

static double uniform(const more_op *m, int64_t i) {
  return part(philox((uint64_t)i / 4, (uint64_t)m->i[KEY]).w[i % 4]);
}

/* Box and Muller: of two numbers in one circle. */
static double normal(const more_op *m, int64_t i) {
  const philox_words x = philox((uint64_t)i / 4, (uint64_t)m->i[KEY]);
  const double radius = sqrt(-2 * log(part(x.w[i % 4 / 2 * 2]))),
               angle = 6.283185307179586 * part(x.w[i % 4 / 2 * 2 + 1]);
  return radius * (i % 2 == 0 ? cos(angle) : sin(angle));
}

/* seed: of an attribute of that kind. */
static void read_key(more_plan *p, bool is_float) {
  const char *name = p->n->node->name;
  const bool has_seed = region_attr_find(p->n->node, "seed") != NULL;
  uint64_t key = fnv1a_text(name != NULL ? name : "");
  if (has_seed && is_float) {
    const double seed = more_float(p, "seed", 0);
    memcpy(&key, &seed, sizeof key);
  } else if (has_seed) {
    key = (uint64_t)more_int(p, "seed", 0);
  }
  memcpy(&p->m->i[KEY], &key, sizeof key);
}

/* ---------------------------------------------------------------- numbers of a shape */

static void run_normal(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  int64_t work = 0;
  for (int64_t i = first; i < last; i++) {
    if (more_tick(m, &work, 32)) return;
    more_put(&m->out[0], a->out[0], i, m->f[MEAN] + m->f[SCALE] * normal(m, i));
  }
}

static void run_uniform(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const double least = m->f[MEAN], most = m->f[MEAN] + m->f[SCALE];
  int64_t work = 0;
  for (int64_t i = first; i < last; i++) {
    if (more_tick(m, &work, 16)) return;
    double x = more_round_to(m->out[0].type, least + m->f[SCALE] * uniform(m, i));
    if (x >= most && most > least) x = least; /* rounded up to the end, which is not in it */
    more_put(&m->out[0], a->out[0], i, x);
  }
}

static void read_spread(more_plan *p, bool is_normal) {
  more_op *m = p->m;
  m->f[MEAN] = more_float(p, is_normal ? "mean" : "low", 0);
  m->f[SCALE] = is_normal ? more_float(p, "scale", 1) : more_float(p, "high", 1) - m->f[MEAN];
}

static void plan_numbers(more_plan *p, int type, int32_t ndim, const int64_t *shape) {
  const bool is_normal = strncmp(p->entry->name, "RandomNormal", strlen("RandomNormal")) == 0;
  read_key(p, true);
  read_spread(p, is_normal);
  if (!more_type_is_real(type) || type == REF_TYPE_NONE) more_refuse(p, "dtype is not a floating-point type");
  more_result(p, 0, type, ndim, shape);
  if (!more_ok(p)) return;
  const int64_t count = more_count(shape, 0, ndim);
  more_work(p, is_normal ? run_normal : run_uniform, count, 4 * (double)count);
}

void more_setup_random(more_plan *p) {
  int64_t shape[MORE_DIMS];
  const int64_t ndim = more_ints(p, "shape", shape, MORE_DIMS);
  double count = 1;
  if (region_attr_find(p->n->node, "shape") == NULL) more_refuse(p, "it has no shape");
  for (int64_t d = 0; d < ndim; d++) {
    if (shape[d] < 0) more_refuse(p, "dimension %lld of its shape is %lld", (long long)d, (long long)shape[d]);
    count *= (double)(shape[d] > 0 ? shape[d] : 1);
  }
  if (count > 0x1p59) more_refuse(p, "its shape has dimensions whose product is too large");
  if (more_ok(p)) plan_numbers(p, more_type_of_onnx(more_int(p, "dtype", 1)), (int32_t)ndim, shape);
}

void more_setup_random_like(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int64_t named = more_int(p, "dtype", 0);
  plan_numbers(p, named != 0 ? more_type_of_onnx(named) : x->type, x->ndim, x->shape);
}

/* ---------------------------------------------------------------- choices */

static void run_bernoulli(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  int64_t work = 0;
  for (int64_t i = first; i < last; i++) {
    if (more_tick(m, &work, 16)) return;
    more_put(&m->out[0], a->out[0], i, uniform(m, i) < more_get(&m->in[0], a->in[0], i) ? 1 : 0);
  }
}

void more_setup_bernoulli(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int64_t named = more_int(p, "dtype", 0);
  const int type = named != 0 ? more_type_of_onnx(named) : x->type;
  read_key(p, true);
  more_real(p, 0);
  if (type == REF_TYPE_NONE) more_refuse(p, "dtype is not known here");
  more_result(p, 0, type, x->ndim, x->shape);
  more_work(p, run_bernoulli, x->count, 2 * (double)x->count);
}

/* Sample s of a row: the first class whose probability, with those before it, is above a number. */
static void run_multinomial(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[CLASSES];
  int64_t work = 0;
  for (int64_t i = first; i < last; i++) {
    const int64_t row = i / m->i[SAMPLES] * n;
    double most = -(double)INFINITY, sum = 0, passed = 0;
    for (int64_t c = 0; c < n; c++) most = fmax(most, more_get(&m->in[0], a->in[0], row + c));
    for (int64_t c = 0; c < n; c++) sum += exp(more_get(&m->in[0], a->in[0], row + c) - most);
    const double at = uniform(m, i) * sum;
    int64_t chosen = n - 1;
    for (int64_t c = 0; c < n; c++) {
      if (more_tick(m, &work, 16)) return;
      passed += exp(more_get(&m->in[0], a->in[0], row + c) - most);
      if (at >= passed) continue;
      chosen = c;
      break;
    }
    more_store_int(m->out[0].type, a->out[0], i, chosen);
  }
}

void more_setup_multinomial(more_plan *p) {
  more_op *m = p->m;
  const int64_t samples = more_int(p, "sample_size", 1);
  const int type = more_type_of_onnx(more_int(p, "dtype", 6));
  read_key(p, true);
  more_rank(p, 0, 2, 2);
  more_real(p, 0);
  if (samples < 1 || samples > INT32_MAX) more_refuse(p, "sample_size is %lld", (long long)samples);
  if (type != REF_TYPE_I32 && type != REF_TYPE_I64) more_refuse(p, "dtype is neither int32 nor int64");
  if (more_ok(p) && m->in[0].shape[1] < 1) more_refuse(p, "it has no classes");
  if (!more_ok(p)) return;
  m->i[SAMPLES] = samples;
  m->i[CLASSES] = m->in[0].shape[1];
  more_result(p, 0, type, 2, (const int64_t[]){m->in[0].shape[0], samples});
  more_work(p, run_multinomial, m->in[0].shape[0] * samples, 8 * (double)samples * (double)m->in[0].count);
}

/* ---------------------------------------------------------------- Dropout */

/* Elements that stay are divided by how many do. A ratio of 1 or more keeps none, NaN as well. */
static void run_dropout(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const double ratio = a->in[1] != NULL ? more_get(&m->in[1], a->in[1], 0) : 0.5;
  int64_t work = 0;
  for (int64_t i = first; i < last; i++) {
    if (more_tick(m, &work, 16)) return;
    const bool stays = ratio < 1 && uniform(m, i) >= ratio;
    if (a->out[0] != NULL)
      more_put(&m->out[0], a->out[0], i, stays ? more_get(&m->in[0], a->in[0], i) / (1 - ratio) : 0);
    if (a->out[1] != NULL) more_store_int(REF_TYPE_BOOL, a->out[1], i, stays);
  }
}

/* Of training; ref/ has the other. */
void more_setup_dropout(more_plan *p) {
  more_op *m = p->m;
  const unsigned char *mode = more_operand(p, 2) ? more_operand_bytes(p, 2) : NULL;
  const bool trains = mode != NULL && m->in[2].type == REF_TYPE_BOOL && m->in[2].count == 1 && *mode != 0;
  read_key(p, false);
  more_real(p, 0);
  if (more_operand(p, 1)) more_real(p, 1);
  if (more_ok(p) && more_operand(p, 1) && m->in[1].count != 1) more_refuse(p, "ratio is not one number");
  if (!trains) more_refuse(p, "training_mode is not true");
  more_result_like(p, 0, 0);
  more_result(p, 1, REF_TYPE_BOOL, m->in[0].ndim, m->in[0].shape);
  more_work(p, run_dropout, m->in[0].count, 4 * (double)m->in[0].count);
}
