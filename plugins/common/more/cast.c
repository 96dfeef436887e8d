/* From one type to another: Cast, CastLike, BitCast, quantizing and back. */
#include "more.h"

#include <math.h>

static void run_cast(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0], *y = &m->out[0];
  const bool whole = !more_type_is_real(x->type) && x->type != REF_TYPE_U64;
  for (int64_t i = first; i < last; i++) {
    if (whole) more_store_int(y->type, a->out[0], i, more_get_int(x, a->in[0], i));
    else if (x->type == REF_TYPE_U64 && !more_type_is_real(y->type))
      more_store_int(y->type, a->out[0], i, more_get_int(x, a->in[0], i));
    else more_put(y, a->out[0], i, more_get(x, a->in[0], i));
  }
}

static void cast(more_plan *p, int to) {
  const more_value *x = &p->m->in[0];
  if (to == REF_TYPE_NONE) more_refuse(p, "it does not cast to that type");
  more_result(p, 0, to, x->ndim, x->shape);
  more_work(p, run_cast, x->count, (double)x->count);
}

void more_setup_cast(more_plan *p) {
  more_int(p, "saturate", 1); /* these two are about float8 types, which are not taken */
  more_string(p, "round_mode", "up");
  cast(p, more_type_of_onnx(more_int(p, "to", 0)));
}

void more_setup_cast_like(more_plan *p) {
  more_int(p, "saturate", 1);
  more_string(p, "round_mode", "up");
  cast(p, p->m->in[1].type);
}

static void run_copy(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const size_t size = m->out[0].size;
  if (a->out[0] == NULL || last <= first || m->out[0].count == 0) return;
  memcpy((char *)a->out[0] + (size_t)first * size, (const char *)a->in[0] + (size_t)first * size,
         (size_t)(last - first) * size);
}

void more_setup_bit_cast(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int to = more_type_of_onnx(more_int(p, "to", 0));
  if (to == REF_TYPE_NONE || more_type_bytes(to) != x->size) more_refuse(p, "it takes a type of the same size");
  more_result(p, 0, to, x->ndim, x->shape);
  more_work(p, run_copy, x->count, 0);
}

/* ---------------------------------------------------------------- quantizing */

enum { AXIS, BLOCK, PER, INNER, PRECISION };

/* Which scale element i has. */
static int64_t scale_of(const more_op *m, int64_t i) {
  const more_value *x = &m->in[0], *scale = &m->in[1];
  if (scale->count == 1) return 0;
  const int64_t axis = m->i[AXIS], inner = m->i[INNER], n = x->shape[axis];
  const int64_t at = i / inner % n;
  if (m->i[BLOCK] == 0) return at;
  return (i / inner / n * scale->shape[axis] + at / m->i[BLOCK]) * inner + i % inner;
}

static double saturated(double x, int type) {
  const double least = more_lowest(type), most = more_highest(type);
  return x != x ? 0 : x < least ? least : x > most ? most : x;
}

static void run_quantize(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; i++) {
    const int64_t s = scale_of(m, i);
    const double zero = a->in[2] != NULL ? more_get(&m->in[2], a->in[2], s) : 0;
    double x = more_get(&m->in[0], a->in[0], i) / more_get(&m->in[1], a->in[1], s);
    x = more_round_to((int)m->i[PRECISION], x);
    more_put(&m->out[0], a->out[0], i, saturated(nearbyint(x) + zero, m->out[0].type));
  }
}

static void run_dequantize(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; i++) {
    const int64_t s = scale_of(m, i);
    const double zero = a->in[2] != NULL ? more_get(&m->in[2], a->in[2], s) : 0;
    more_put(&m->out[0], a->out[0], i, (more_get(&m->in[0], a->in[0], i) - zero) * more_get(&m->in[1], a->in[1], s));
  }
}

/* One scale; one for each place of an axis; or one for each block along it. */
static void scales(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0], *s = &m->in[1];
  const int64_t axis = more_int(p, "axis", 1), block = more_int(p, "block_size", 0);
  more_real(p, 1);
  more_same_shape(p, 1, 2);
  if (block < 0 || block > INT32_MAX) more_refuse(p, "block_size is %lld", (long long)block);
  if (s->count == 1 && s->ndim <= 1) return;
  m->i[AXIS] = more_axis(p, axis, x->ndim);
  if (!more_ok(p)) return;
  m->i[BLOCK] = block;
  m->i[INNER] = more_count(x->shape, m->i[AXIS] + 1, x->ndim);
  if (block == 0) {
    more_shape_is(p, 1, 1, &x->shape[m->i[AXIS]]);
    return;
  }
  int64_t shape[MORE_DIMS];
  memcpy(shape, x->shape, sizeof shape);
  shape[m->i[AXIS]] = (x->shape[m->i[AXIS]] + block - 1) / block;
  more_shape_is(p, 1, x->ndim, shape);
}

void more_setup_quantize(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int64_t named = more_int(p, "output_dtype", 0), precision = more_int(p, "precision", 0);
  int to = more_has(p, 2) ? p->m->in[2].type : named != 0 ? more_type_of_onnx(named) : REF_TYPE_U8;
  more_int(p, "saturate", 1);
  scales(p);
  p->m->i[PRECISION] = precision != 0 ? more_type_of_onnx(precision) : p->m->in[1].type;
  if (!more_type_is_real((int)p->m->i[PRECISION]) || p->m->i[PRECISION] == REF_TYPE_NONE)
    more_refuse(p, "precision is not a floating-point type");
  if (!more_type_is_whole(to)) more_refuse(p, "it quantizes to integers of whole bytes only");
  more_result(p, 0, to, x->ndim, x->shape);
  more_work(p, run_quantize, x->count, 2 * (double)x->count);
}

void more_setup_dequantize(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int64_t named = more_int(p, "output_dtype", 0);
  const int to = named != 0 ? more_type_of_onnx(named) : p->m->in[1].type;
  scales(p);
  more_whole(p, 0);
  more_same_type(p, 0, 2);
  if (!more_type_is_real(to) || to == REF_TYPE_NONE) more_refuse(p, "output_dtype is not a floating-point type");
  more_result(p, 0, to, x->ndim, x->shape);
  more_work(p, run_dequantize, x->count, (double)x->count);
}

static void run_dynamic(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  double least = 0, most = 0;
  (void)first, (void)last;
  for (int64_t i = 0; i < m->in[0].count; i++) {
    const double x = more_get(&m->in[0], a->in[0], i);
    least = x < least ? x : least;
    most = x > most ? x : most;
  }
  const float scale = ((float)most - (float)least) / 255;
  const double zero = scale != 0 ? saturated(nearbyint((double)((0 - (float)least) / scale)), REF_TYPE_U8) : 0;
  for (int64_t i = 0; i < m->in[0].count; i++) {
    const float x = (float)more_get(&m->in[0], a->in[0], i);
    const double q = scale != 0 ? nearbyint((double)(x / scale)) + zero : 0;
    more_put(&m->out[0], a->out[0], i, saturated(q, REF_TYPE_U8));
  }
  if (a->out[1] != NULL) more_put(&m->out[1], a->out[1], 0, (double)scale);
  if (a->out[2] != NULL) more_put(&m->out[2], a->out[2], 0, zero);
}

void more_setup_dynamic_quantize(more_plan *p) {
  const more_value *x = &p->m->in[0];
  if (x->type != REF_TYPE_F32) more_refuse(p, "it takes float32");
  more_result(p, 0, REF_TYPE_U8, x->ndim, x->shape);
  more_result(p, 1, REF_TYPE_F32, 0, NULL);
  more_result(p, 2, REF_TYPE_U8, 0, NULL);
  more_work(p, run_dynamic, 1, 4 * (double)x->count);
}
