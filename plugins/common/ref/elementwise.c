/* Add, Mul and Relu. What is chosen when the op is prepared: a kernel for one element, one for operands of the same
 * shape, and one that walks broadcast operands row by row; each for three types. Units are elements, or rows. */
#include "ref_op.h"

/* Signed overflow is undefined, so integers go through their unsigned type, which wraps. */
#define ADD(U, x, y) ((U)(x) + (U)(y))
#define MUL(U, x, y) ((U)(x) * (U)(y))

/* Walks the outer dimensions: offsets of both operands for a row, found by division once and by counting after. */
typedef struct walk {
  int64_t at[REF_MAX_DIMS];
  int64_t a, b;
} walk;

static void walk_start(const ref_elementwise *e, uint64_t row, walk *w) {
  w->a = w->b = 0;
  for (int32_t i = e->outer - 1; i >= 0; i--) {
    w->at[i] = (int64_t)(row % (uint64_t)e->dim[i]);
    row /= (uint64_t)e->dim[i];
    w->a += w->at[i] * e->a[i];
    w->b += w->at[i] * e->b[i];
  }
}

static void walk_next(const ref_elementwise *e, walk *w) {
  for (int32_t i = e->outer - 1; i >= 0; i--) {
    w->a += e->a[i];
    w->b += e->b[i];
    if (++w->at[i] < e->dim[i]) return;
    w->at[i] = 0;
    w->a -= e->a[i] * e->dim[i];
    w->b -= e->b[i] * e->dim[i];
  }
}

#define BINARY(name, T, U, OP) \
  static void name##_one(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first, \
                         uint64_t last) { \
    const T *a = inputs[op->slot[0]], *b = inputs[op->slot[1]]; \
    T *out = outputs[0]; \
    (void)workspace, (void)first, (void)last; \
    *out = (T)OP(U, *a, *b); \
  } \
  static void name##_same(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, \
                          uint64_t first, uint64_t last) { \
    const T *a = inputs[op->slot[0]], *b = inputs[op->slot[1]]; \
    T *out = outputs[0]; \
    (void)workspace; \
    for (uint64_t i = first; i < last; i++) out[i] = (T)OP(U, a[i], b[i]); \
  } \
  static void name##_wide(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, \
                          uint64_t first, uint64_t last) { \
    const ref_elementwise *e = &op->u.elementwise; \
    const int64_t n = e->inner; \
    walk w; \
    (void)workspace; \
    if (first >= last) return; \
    walk_start(e, first, &w); \
    T *out = (T *)outputs[0] + first * (uint64_t)n; \
    for (uint64_t row = first; row < last; row++, out += n, walk_next(e, &w)) { \
      const T *a = (const T *)inputs[op->slot[0]] + w.a, *b = (const T *)inputs[op->slot[1]] + w.b; \
      if (e->inner_b == 0) { \
        const T y = *b; \
        for (int64_t i = 0; i < n; i++) out[i] = (T)OP(U, a[i], y); \
      } else if (e->inner_a == 0) { \
        const T x = *a; \
        for (int64_t i = 0; i < n; i++) out[i] = (T)OP(U, x, b[i]); \
      } else { \
        for (int64_t i = 0; i < n; i++) out[i] = (T)OP(U, a[i], b[i]); \
      } \
    } \
  }

BINARY(add_f32, float, float, ADD)
BINARY(add_i32, int32_t, uint32_t, ADD)
BINARY(add_i64, int64_t, uint64_t, ADD)
BINARY(mul_f32, float, float, MUL)
BINARY(mul_i32, int32_t, uint32_t, MUL)
BINARY(mul_i64, int64_t, uint64_t, MUL)

typedef struct binary {
  ref_kernel one, same, wide;
} binary;

#define KERNELS(name) \
  { name##_one, name##_same, name##_wide }
static const binary add_kernels[3] = {KERNELS(add_f32), KERNELS(add_i32), KERNELS(add_i64)};
static const binary mul_kernels[3] = {KERNELS(mul_f32), KERNELS(mul_i32), KERNELS(mul_i64)};

/* Joins neighbouring dimensions that both operands walk in one stride, and drops those of length 1. */
static heddle_status collapse(const ref_node *n, ref_elementwise *e, heddle_error *err) {
  int64_t a[REF_MAX_DIMS], b[REF_MAX_DIMS];
  int32_t count = 0;
  if (n->out->ndim > REF_MAX_DIMS) {
    return ref_refuse(n, err, "%d dimensions; up to %d are broadcast", n->out->ndim, REF_MAX_DIMS);
  }
  if (!shape_is_broadcast_of(n->out, n->in[0], n->in[1]) || !shape_broadcast_strides(n->in[0], n->out, a) ||
      !shape_broadcast_strides(n->in[1], n->out, b)) {
    return ref_refuse_shape(n, err);
  }
  for (int32_t i = 0; i < n->out->ndim; i++) {
    int64_t dim = n->out->shape[i];
    if (dim == 1) continue;
    if (count > 0 && e->a[count - 1] == a[i] * dim && e->b[count - 1] == b[i] * dim) {
      e->dim[count - 1] *= dim;
    } else {
      e->dim[count++] = dim;
    }
    e->a[count - 1] = a[i];
    e->b[count - 1] = b[i];
  }
  e->inner = 1;
  if (count > 0) {
    count--;
    e->inner = e->dim[count];
    e->inner_a = e->a[count];
    e->inner_b = e->b[count];
  }
  e->outer = count;
  return HEDDLE_OK;
}

static heddle_status plan_binary(const ref_node *n, const binary *kernels, ref_op *op, heddle_error *err) {
  ref_elementwise *e = &op->u.elementwise;
  heddle_dtype dtype = n->in[0]->dtype;
  uint64_t count = 0;
  char name[DTYPE_NAME_BYTES];

  if (!dtype_equal(dtype, n->in[1]->dtype) || !dtype_equal(dtype, n->out->dtype)) {
    return ref_refuse(n, err, "operand 1 is %s; operands and result have one type", dtype_name(n->in[1]->dtype, name));
  }
  if (dtype_is(dtype, HEDDLE_DTYPE_INT, 32)) kernels += 1;
  else if (dtype_is(dtype, HEDDLE_DTYPE_INT, 64)) kernels += 2;
  else if (!dtype_is(dtype, HEDDLE_DTYPE_FLOAT, 32)) return ref_refuse(n, err, "it takes float32, int32 and int64");

  heddle_status s = collapse(n, e, err);
  if (s != HEDDLE_OK) return s;
  value_count(n->out, &count);
  for (uint32_t k = 0; k < 2; k++) {
    if (shape_equal(n->in[k], n->out)) op->in_place |= UINT32_C(1) << k;
  }

  double bytes = 3.0 * (double)count * (double)dtype_bytes(dtype);
  if (count == 1) ref_set_work(op, kernels->one, 1, 1, 0);
  else if (e->outer == 0 && e->inner_a == 1 && e->inner_b == 1) ref_set_work(op, kernels->same, count, 0, bytes);
  else ref_set_work(op, kernels->wide, count == 0 ? 0 : count / (uint64_t)e->inner, 0, bytes);
  return HEDDLE_OK;
}

heddle_status ref_plan_add(const ref_node *n, ref_op *op, heddle_error *err) {
  return plan_binary(n, add_kernels, op, err);
}

heddle_status ref_plan_mul(const ref_node *n, ref_op *op, heddle_error *err) {
  return plan_binary(n, mul_kernels, op, err);
}

/* A comparison with NaN is false, so NaN comes through. */
static void relu_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                     uint64_t last) {
  const float *in = inputs[op->slot[0]];
  float *out = outputs[0];
  (void)workspace;
  for (uint64_t i = first; i < last; i++) {
    float x = in[i];
    out[i] = x < 0.0f ? 0.0f : x;
  }
}

heddle_status ref_plan_relu(const ref_node *n, ref_op *op, heddle_error *err) {
  uint64_t count = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s != HEDDLE_OK) return s;
  if (!shape_equal(n->in[0], n->out)) return ref_refuse_shape(n, err);
  value_count(n->out, &count);
  op->in_place = 1;
  ref_set_work(op, relu_f32, count, 0, 8.0 * (double)count);
  return HEDDLE_OK;
}
