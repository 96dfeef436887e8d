/* MaxPool and GlobalAveragePool. A unit is a plane: one channel of one image. */
#include "ref_op.h"
#include "sum.h"

#include <math.h>

/* One row of the result: each tap of the window in turn over the row, where it is inside the input. NaN wins over
 * numbers and stays. */
static void max_row(const ref_window *w, const float *plane, int64_t z, int64_t y, float *out) {
  int64_t z0, z1, y0, y1, x0, x1;
  for (int64_t x = 0; x < w->out[2]; x++) out[x] = -INFINITY;
  ref_window_taps(w, 0, z, z, &z0, &z1);
  ref_window_taps(w, 1, y, y, &y0, &y1);
  ref_window_taps(w, 2, 0, w->out[2] - 1, &x0, &x1);
  for (int64_t kz = z0; kz < z1; kz++) {
    const int64_t iz = z * w->stride[0] + kz * w->dilation[0] - w->pad[0];
    for (int64_t ky = y0; ky < y1; ky++) {
      const int64_t iy = y * w->stride[1] + ky * w->dilation[1] - w->pad[1];
      const float *line = plane + (iz * w->in[1] + iy) * w->in[2];
      for (int64_t kx = x0; kx < x1; kx++) {
        int64_t first, last;
        ref_window_range(w, 2, kx, &first, &last);
        const int64_t offset = kx * w->dilation[2] - w->pad[2], stride = w->stride[2];
        for (int64_t x = first; x < last; x++) {
          const float v = line[x * stride + offset];
          out[x] = v > out[x] || v != v ? v : out[x];
        }
      }
    }
  }
}

static void max_pool_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                         uint64_t last) {
  const ref_window *w = &op->u.pool;
  const uint64_t in_plane = (uint64_t)(w->in[0] * w->in[1] * w->in[2]);
  const uint64_t out_plane = (uint64_t)(w->out[0] * w->out[1] * w->out[2]);
  const float nothing = 0; /* stands for a plane without elements */
  (void)workspace;
  for (uint64_t p = first; p < last; p++) {
    const float *in = in_plane > 0 ? (const float *)inputs[op->slot[0]] + p * in_plane : &nothing;
    float *out = (float *)outputs[0] + p * out_plane;
    for (int64_t z = 0; z < w->out[0]; z++) {
      for (int64_t y = 0; y < w->out[1]; y++, out += w->out[2]) max_row(w, in, z, y, out);
    }
  }
}

heddle_status ref_plan_max_pool(const ref_node *n, ref_op *op, heddle_error *err) {
  const ref_window *w = &op->u.pool;
  int64_t order = 0;
  uint64_t results = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s == HEDDLE_OK) s = attr_int(n->node, "storage_order", 0, &order, err); /* says how Indices count */
  if (s == HEDDLE_OK) s = ref_window_plan(n, NULL, &op->u.pool, err);
  if (s != HEDDLE_OK) return s;
  if (n->out->shape[0] != n->in[0]->shape[0] || n->out->shape[1] != n->in[0]->shape[1]) {
    return ref_refuse_shape(n, err);
  }
  value_count(n->out, &results);
  double taps = (double)w->kernel[0] * (double)w->kernel[1] * (double)w->kernel[2];
  ref_set_work(op, max_pool_f32, results > 0 ? (uint64_t)(n->out->shape[0] * n->out->shape[1]) : 0,
               4.0 * (double)results * taps, 4.0 * (double)results);
  return HEDDLE_OK;
}

static void global_average_pool_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace,
                                    uint64_t first, uint64_t last) {
  const uint64_t n = op->u.bytes / sizeof(float);
  float *out = outputs[0];
  (void)workspace;
  for (uint64_t p = first; p < last; p++) {
    out[p] = n == 0 ? NAN : (float)(ref_sum_f32((const float *)inputs[op->slot[0]] + p * n, (int64_t)n) / (double)n);
  }
}

heddle_status ref_plan_global_average_pool(const ref_node *n, ref_op *op, heddle_error *err) {
  const heddle_pvalue *x = n->in[0], *y = n->out;
  uint64_t planes = 0, count = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s != HEDDLE_OK) return s;
  if (x->ndim < 2 || y->ndim != x->ndim || y->shape[0] != x->shape[0] || y->shape[1] != x->shape[1]) {
    return ref_refuse_shape(n, err);
  }
  for (int32_t i = 2; i < y->ndim; i++) {
    if (y->shape[i] != 1) return ref_refuse_shape(n, err);
  }
  value_count(x, &count);
  value_count(y, &planes);
  op->u.bytes = planes > 0 ? count / planes * sizeof(float) : 0; /* of a plane */
  ref_set_work(op, global_average_pool_f32, planes, 2.0 * (double)count, 2.0 * (double)count);
  return HEDDLE_OK;
}
