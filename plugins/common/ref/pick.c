/* Gather, which copies what indices point at, and Pad. Both move elements of any whole number of bytes. */
#include "ref_op.h"
#include "types.h"

/* ---------------------------------------------------------------- Gather */

/* A unit is what one index takes. An index outside the dimension takes zeros: a kernel has no way to complain. */
static void gather(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                   uint64_t last) {
  const ref_gather *f = &op->u.gather;
  char *out = (char *)outputs[0] + first * f->bytes;
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++, out += f->bytes) {
    const uint64_t i = unit % f->indices, outer = unit / f->indices;
    int64_t at = f->wide ? ((const int64_t *)inputs[op->slot[1]])[i] : ((const int32_t *)inputs[op->slot[1]])[i];
    if (at < 0) at += (int64_t)f->axis;
    if (at < 0 || (uint64_t)at >= f->axis) {
      memset(out, 0, f->bytes);
    } else {
      memcpy(out, (const char *)inputs[op->slot[0]] + (outer * f->axis + (uint64_t)at) * f->bytes, f->bytes);
    }
  }
}

heddle_status ref_plan_gather(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_gather *f = &op->u.gather;
  const heddle_pvalue *x = n->in[0], *at = n->in[1], *y = n->out;
  int32_t axis, k = 0;
  int64_t size, inner;
  uint64_t bytes = 0;
  heddle_status s = ref_axis(n, 0, &axis, &size, &inner, err);
  if (s != HEDDLE_OK) return s;
  f->wide = region_dtype_is(at->dtype, HEDDLE_DTYPE_INT, 64);
  if (!f->wide && !region_dtype_is(at->dtype, HEDDLE_DTYPE_INT, 32))
    return ref_refuse(n, err, "indices are int32 or int64");
  if (!region_dtype_equal(x->dtype, y->dtype) || y->ndim != x->ndim - 1 + at->ndim) return ref_refuse_shape(n, err);
  for (int32_t d = 0; d < x->ndim; d++) {
    if (d != axis) {
      if (y->shape[k++] != x->shape[d]) return ref_refuse_shape(n, err);
      continue;
    }
    for (int32_t i = 0; i < at->ndim; i++) {
      if (y->shape[k++] != at->shape[i]) return ref_refuse_shape(n, err);
    }
  }
  region_value_bytes(y, &bytes);
  region_value_count(at, &f->indices);
  f->axis = (uint64_t)size;
  f->bytes = (uint64_t)inner * region_dtype_bytes(x->dtype);
  ref_set_work(op, gather, bytes / f->bytes, 0, 2.0 * (double)bytes);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- Pad */

enum { FILL, REFLECT, EDGE };

/* Where element i of the result comes from along dimension d; -1: it is filled. */
static int64_t source(const ref_pad *p, int32_t d, int64_t i) {
  const int64_t n = p->in[d];
  i -= p->before[d];
  if (i >= 0 && i < n) return i;
  if (p->mode == FILL) return -1;
  if (p->mode == EDGE) return i < 0 ? 0 : n - 1;
  return i < 0 ? -i : 2 * (n - 1) - i;
}

/* A unit is a row along the last dimension. */
/* n times the element of that size. */
#define FILL_WITH(T) \
  { \
    T x; \
    memcpy(&x, element, sizeof x); \
    for (int64_t i = 0; i < n; i++) ((T *)(void *)out)[i] = x; \
    return; \
  }

static void fill_elements(char *out, const char *element, uint32_t size, int64_t n) {
  if (size == 1) FILL_WITH(uint8_t)
  if (size == 2) FILL_WITH(uint16_t)
  if (size == 4) FILL_WITH(uint32_t)
  if (size == 8) FILL_WITH(uint64_t)
  for (int64_t i = 0; i < n; i++) memcpy(out + i * size, element, size);
}

static void pad_rows(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                     uint64_t last) {
  static const uint64_t zero[2] = {0, 0};
  const ref_pad *p = &op->u.pad;
  const int32_t inner = p->dims - 1;
  const char *fill = (op->present & 4) != 0 ? inputs[op->slot[2]] : (const char *)zero;
  const int64_t in_row = p->in[inner], row = p->out[inner];
  const char *x = inputs[op->slot[0]] != NULL ? inputs[op->slot[0]] : (const char *)zero; /* of no elements: not read */
  char *out = (char *)outputs[0] + first * (uint64_t)(row * p->size);
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++, out += row * p->size) {
    uint64_t rest = unit;
    int64_t at = 0, step = 1;
    for (int32_t d = inner - 1; d >= 0 && at >= 0; d--) {
      const int64_t i = source(p, d, (int64_t)(rest % (uint64_t)p->out[d]));
      rest /= (uint64_t)p->out[d];
      at = i < 0 ? -1 : at + i * step;
      step *= p->in[d];
    }
    int64_t low = p->before[inner] > 0 ? p->before[inner] : 0, high = in_row + p->before[inner];
    if (low > row) low = row;
    if (high > row) high = row;
    if (at < 0) low = high = row;
    if (high < low) high = low;
    const char *in = x + (at > 0 ? at : 0) * in_row * p->size;
    if (high > low) {
      memcpy(out + low * p->size, in + (low - p->before[inner]) * p->size, (size_t)(high - low) * p->size);
    }
    if (at < 0 || p->mode == FILL) {
      fill_elements(out, fill, p->size, low);
      fill_elements(out + high * p->size, fill, p->size, row - high);
      continue;
    }
    for (int64_t i = 0; i < row; i++) {
      if (i == low) i = high;
      if (i >= row) break;
      const int64_t from = source(p, inner, i);
      memcpy(out + i * p->size, from < 0 ? fill : in + from * p->size, p->size);
    }
  }
}

heddle_status ref_plan_pad(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_pad *p = &op->u.pad;
  const heddle_pvalue *x = n->in[0], *y = n->out;
  int64_t list[2 * REF_MAX_DIMS], axes[REF_MAX_DIMS];
  uint32_t given, count;
  uint64_t bytes = 0, one = 0;
  const char *mode;
  heddle_status s = region_attr_string(n->node, "mode", "constant", &mode, err);
  if (s != HEDDLE_OK) return s;
  p->mode = strcmp(mode, "reflect") == 0 ? REFLECT : strcmp(mode, "edge") == 0 ? EDGE : FILL;
  if (p->mode == FILL && strcmp(mode, "constant") != 0) return ref_refuse(n, err, "mode '%s' is not known", mode);
  if (x->ndim < 1 || x->ndim > REF_MAX_DIMS) return ref_refuse(n, err, "1 to %d dimensions are padded", REF_MAX_DIMS);
  s = ref_ints(n, 1, list, 2 * REF_MAX_DIMS, &given, err);
  if (s == HEDDLE_OK) s = ref_ints(n, 3, axes, REF_MAX_DIMS, &count, err);
  if (s == HEDDLE_OK) s = ref_axes(n, axes, &count, x->ndim, err);
  if (s != HEDDLE_OK) return s;
  if (given != 2 * count || y->ndim != x->ndim || !region_dtype_equal(x->dtype, y->dtype))
    return ref_refuse_shape(n, err);
  p->dims = x->ndim;
  p->size = (uint32_t)region_dtype_bytes(x->dtype);
  for (int32_t d = 0; d < x->ndim; d++) {
    int64_t ends[2] = {0, 0};
    for (uint32_t i = 0; i < count; i++) {
      if (axes[i] != d) continue;
      ends[0] = list[i];
      ends[1] = list[count + i];
    }
    p->in[d] = x->shape[d];
    p->out[d] = y->shape[d];
    p->before[d] = ends[0];
    const int64_t most = ends[0] > ends[1] ? ends[0] : ends[1], far = INT32_MAX;
    const bool reach = p->mode == FILL || most <= 0 || (p->mode == EDGE ? p->in[d] > 0 : most < p->in[d]);
    if (ends[0] < -far || ends[0] > far || ends[1] < -far || ends[1] > far || !reach ||
        p->out[d] != p->in[d] + ends[0] + ends[1]) {
      return ref_refuse_shape(n, err);
    }
  }
  if (n->in[2] != NULL &&
      (!region_dtype_equal(n->in[2]->dtype, x->dtype) || !region_value_count(n->in[2], &one) || one != 1)) {
    return ref_refuse(n, err, "the value to fill with must be one of the operand's type");
  }
  if (p->size > 16) return ref_refuse(n, err, "elements of more than 16 bytes");
  op->absorbed = 2 | 8;
  region_value_bytes(y, &bytes);
  ref_set_work(op, pad_rows, bytes > 0 ? bytes / (uint64_t)(p->out[p->dims - 1] * p->size) : 0, 0, 3.0 * (double)bytes);
  return HEDDLE_OK;
}
