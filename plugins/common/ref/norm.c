/* BatchNormalization, InstanceNormalization, LayerNormalization and LRN in float32. Sums are in float64. A unit is a
 * plane of a channel; of LayerNormalization a row of what is normalised together. */
#include "norm_rows.h"
#include "ref_op.h"

#include <math.h>

static const float *operand(const ref_op *op, void *const *inputs, uint32_t k) {
  return (op->present >> k & 1) != 0 ? inputs[op->slot[k]] : NULL;
}

static void batch_norm(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                       uint64_t last) {
  const ref_norm *f = &op->u.norm;
  const ref_norm_rows *rows = ref_norm_rows_of(false);
  const float *scale = operand(op, inputs, 1), *bias = operand(op, inputs, 2);
  const float *mean = operand(op, inputs, 3), *variance = operand(op, inputs, 4);
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++) {
    const uint64_t c = unit % (uint64_t)f->channels;
    const float times = scale[c] / sqrtf(variance[c] + f->epsilon), plus = bias[c], middle = mean[c];
    const float *in = operand(op, inputs, 0) + unit * (uint64_t)f->inner;
    float *out = (float *)outputs[0] + unit * (uint64_t)f->inner;
    rows->shift(in, f->inner, (double)middle, (double)times, (double)plus, out);
  }
}

/* Mean of n elements, and 1 over their deviation. */
static void measure(const ref_norm_rows *rows, const float *x, int64_t n, float epsilon, double *mean, double *less) {
  ref_norm_measure(rows, x, n, mean, less);
  *less = 1.0 / sqrt(*less + (double)epsilon);
}

static void instance_norm(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                          uint64_t last) {
  const ref_norm *f = &op->u.norm;
  const ref_norm_rows *rows = ref_norm_rows_of(false);
  const float *scale = operand(op, inputs, 1), *bias = operand(op, inputs, 2);
  int64_t work = 0;
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++) {
    const uint64_t c = unit % (uint64_t)f->channels;
    const float *in = operand(op, inputs, 0) + unit * (uint64_t)f->inner;
    float *out = (float *)outputs[0] + unit * (uint64_t)f->inner;
    double mean, less;
    measure(rows, in, f->inner, f->epsilon, &mean, &less);
    if (ref_tick(op, &work, 3 * f->inner)) return;
    rows->shift(in, f->inner, mean, less * (double)scale[c], (double)bias[c], out);
  }
}

static void layer_norm(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                       uint64_t last) {
  const ref_norm *f = &op->u.norm;
  const ref_norm_rows *rows = ref_norm_rows_of(false);
  const float *scale = operand(op, inputs, 1), *bias = operand(op, inputs, 2);
  int64_t work = 0;
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++) {
    const float *in = operand(op, inputs, 0) + unit * (uint64_t)f->n;
    float *out = (float *)outputs[0] + unit * (uint64_t)f->n;
    double mean, less;
    measure(rows, in, f->n, f->epsilon, &mean, &less);
    if (ref_tick(op, &work, 3 * f->n)) return;
    rows->scale(in, f->n, mean, less, scale, bias, out);
    if (op->result[1] != UINT32_MAX) ((float *)outputs[op->result[1]])[unit] = (float)mean;
    if (op->result[2] != UINT32_MAX) ((float *)outputs[op->result[2]])[unit] = (float)less;
  }
}

/* Over neighbouring channels: those from (size - 1) / 2 below to the rest above. */
static void lrn(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                uint64_t last) {
  const ref_norm *f = &op->u.norm;
  const int64_t below = (f->size - 1) / 2, above = f->size - 1 - below;
  int64_t work = 0;
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++) {
    const int64_t c = (int64_t)(unit % (uint64_t)f->channels);
    const int64_t low = c > below ? -below : -c, high = f->channels - 1 - c > above ? above : f->channels - 1 - c;
    const float *in = operand(op, inputs, 0) + unit * (uint64_t)f->inner;
    float *out = (float *)outputs[0] + unit * (uint64_t)f->inner;
    for (int64_t i = 0; i < f->inner; i++) {
      double sum = 0;
      if (ref_tick(op, &work, 40 + high - low)) return;
      for (int64_t k = low; k <= high; k++) sum += (double)in[k * f->inner + i] * (double)in[k * f->inner + i];
      out[i] = in[i] / powf(f->bias + f->alpha / (float)f->size * (float)sum, f->beta);
    }
  }
}

/* ---------------------------------------------------------------- plans */

static heddle_status attr_f32(const ref_node *n, const char *name, double fallback, float *out, heddle_error *err) {
  double value;
  heddle_status s = region_attr_float(n->node, name, fallback, &value, err);
  *out = (float)value;
  return s;
}

/* What all have in common; the operands after the first have a number for each channel. */
static heddle_status plan_planes(const ref_node *n, ref_op *op, ref_kernel kernel, double steps, heddle_error *err) {
  ref_norm *f = &op->u.norm;
  const heddle_pvalue *x = n->in[0];
  uint64_t count = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s != HEDDLE_OK) return s;
  if (x->ndim < 2 || !region_shape_equal(x, n->out)) return ref_refuse_shape(n, err);
  f->channels = x->shape[1];
  for (uint32_t k = 1; k < REF_OPERANDS; k++) {
    if (n->in[k] != NULL && (n->in[k]->ndim != 1 || n->in[k]->shape[0] != f->channels)) return ref_refuse_shape(n, err);
  }
  region_value_count(x, &count);
  const uint64_t planes = count > 0 ? (uint64_t)(x->shape[0] * x->shape[1]) : 0;
  f->inner = planes > 0 ? (int64_t)(count / planes) : 0;
  ref_set_work(op, kernel, planes, steps * (double)count, 8.0 * (double)count);
  return HEDDLE_OK;
}

heddle_status ref_plan_batch_norm(const ref_node *n, ref_op *op, heddle_error *err) {
  int64_t training = 0;
  heddle_status s = region_attr_int(n->node, "training_mode", 0, &training, err);
  if (s == HEDDLE_OK) s = attr_f32(n, "epsilon", 1e-5, &op->u.norm.epsilon, err);
  if (s == HEDDLE_OK && (training != 0 || n->node->n_outputs > 1))
    return ref_refuse(n, err, "training is not supported: one output, training_mode 0");
  op->in_place = 1;
  return s == HEDDLE_OK ? plan_planes(n, op, batch_norm, 1, err) : s;
}

heddle_status ref_plan_instance_norm(const ref_node *n, ref_op *op, heddle_error *err) {
  heddle_status s = attr_f32(n, "epsilon", 1e-5, &op->u.norm.epsilon, err);
  op->in_place = 1;
  return s == HEDDLE_OK ? plan_planes(n, op, instance_norm, 6, err) : s;
}

heddle_status ref_plan_lrn(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_norm *f = &op->u.norm;
  heddle_status s = attr_f32(n, "alpha", 1e-4, &f->alpha, err);
  if (s == HEDDLE_OK) s = attr_f32(n, "beta", 0.75, &f->beta, err);
  if (s == HEDDLE_OK) s = attr_f32(n, "bias", 1, &f->bias, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "size", 0, &f->size, err);
  if (s == HEDDLE_OK && (f->size < 1 || f->size > INT32_MAX))
    return ref_refuse(n, err, "size is %lld", (long long)f->size);
  return s == HEDDLE_OK
             ? plan_planes(n, op, lrn, 100 + (double)(f->size < n->in[0]->shape[1] ? f->size : n->in[0]->shape[1]), err)
             : s;
}

heddle_status ref_plan_layer_norm(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_norm *f = &op->u.norm;
  const heddle_pvalue *x = n->in[0];
  int64_t stash = 1, inner;
  int32_t axis;
  uint64_t count = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s == HEDDLE_OK) s = attr_f32(n, "epsilon", 1e-5, &f->epsilon, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "stash_type", 1, &stash, err);
  if (s == HEDDLE_OK) s = ref_axis(n, -1, &axis, &f->n, &inner, err);
  if (s != HEDDLE_OK) return s;
  if (stash != 1) return ref_refuse(n, err, "stash_type %lld is not supported, 1 is", (long long)stash);
  if (!region_shape_equal(x, n->out)) return ref_refuse_shape(n, err);
  f->n = 1;
  for (int32_t d = axis; d < x->ndim; d++) f->n *= x->shape[d];
  for (uint32_t k = 1; k < 3; k++) { /* the normalised dimensions in full, with 1s before them */
    const heddle_pvalue *v = n->in[k];
    if (v == NULL) continue;
    bool fits = v->ndim >= x->ndim - axis && v->ndim <= x->ndim;
    for (int32_t d = 0; fits && d < v->ndim; d++) {
      const int32_t at = x->ndim - v->ndim + d;
      fits = v->shape[d] == (at >= axis ? x->shape[at] : 1);
    }
    if (!fits) return ref_refuse(n, err, "operand %u must have the shape of what is normalised", k);
  }
  for (uint32_t k = 1; k < n->node->n_outputs; k++) {
    const heddle_pvalue *v = region_node_output(n->region, n->node, k);
    bool fits = v == NULL || (v->ndim == x->ndim && region_dtype_is(v->dtype, HEDDLE_DTYPE_FLOAT, 32));
    for (int32_t d = 0; v != NULL && fits && d < v->ndim; d++) fits = v->shape[d] == (d >= axis ? 1 : x->shape[d]);
    if (!fits) return ref_refuse_shape(n, err);
  }
  region_value_count(x, &count);
  op->in_place = 1;
  f->channels = 1; /* rows; the mean of nothing is NaN */
  for (int32_t d = 0; d < axis; d++) f->channels *= x->shape[d];
  ref_set_work(op, layer_norm, (uint64_t)f->channels, 6.0 * (double)count, 8.0 * (double)count);
  return HEDDLE_OK;
}
