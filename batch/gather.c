/* batch/gather.c: from the tensors of requests to the inputs of a run, and from its outputs to theirs. An input of a run
 * is memory that stays bound to the executor: a run of the same shapes allocates nothing. */
#include <string.h>

#include "batch/batcher.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"

enum { ALIGN = 256 };

/* Memory of inputs belongs to the tensors over it, which an executor may hold longer than a worker does. It begins ALIGN
 * bytes before the data. */
typedef struct block {
  atomic_uint tensors;
} block;

static block *block_of(void *data) {
  return (block *)((char *)data - ALIGN);
}

static void drop_block(void *data) {
  if (data != NULL && atomic_fetch_sub_explicit(&block_of(data)->tensors, 1, memory_order_acq_rel) == 1)
    heddle__free(block_of(data));
}

static void *make_block(uint64_t bytes) {
  if (bytes > SIZE_MAX - 2 * ALIGN) return NULL;
  block *made = heddle__alloc_aligned((size_t)bytes + ALIGN, ALIGN);
  if (made == NULL) return NULL;
  atomic_init(&made->tensors, 1);
  return (char *)made + ALIGN;
}

void heddle__batch_stage_free(heddle__batch_stage *stage) {
  heddle_tensor_release(stage->bound);
  drop_block(stage->data);
  *stage = (heddle__batch_stage){0};
}

static void byte_strides(const int64_t *shape, uint32_t ndim, int64_t element, int64_t *out) {
  for (uint32_t d = ndim; d-- > 0; element *= shape[d]) out[d] = element;
}

/* ---- shapes */

static int64_t padded(const heddle__batch_port *port, int64_t longest) {
  int64_t n = longest;
  if (longest <= INT64_MAX - port->pad_multiple)
    n = (longest + port->pad_multiple - 1) / port->pad_multiple * port->pad_multiple;
  if (port->pad_max > 0 && n > port->pad_max) n = longest > port->pad_max ? longest : port->pad_max;
  return n;
}

/* The length of a padded dimension in a run: the longest, rounded up as all inputs that share the dimension's name want. */
static int64_t length_of(const heddle__batch_worker *w, uint32_t n, uint32_t input, uint32_t d) {
  const heddle__batch_ports *p = &w->b->ports;
  const heddle__batch_port *port = &p->inputs[input];
  int64_t longest = 0;
  for (uint32_t k = 0; k < n; k++) {
    const int64_t length = heddle_tensor_shape(w->present[k]->inputs[input])[d];
    if (length > longest) longest = length;
  }
  int64_t most = padded(port, longest);
  if (port->symbols[d] == 0) return most;
  for (uint32_t i = 0; i < p->n_inputs; i++)
    for (uint32_t e = 0; e < HEDDLE__BATCH_DIMS; e++)
      if (p->inputs[i].symbols[e] == port->symbols[d] && padded(&p->inputs[i], longest) > most)
        most = padded(&p->inputs[i], longest);
  for (uint32_t i = 0; i < p->n_inputs; i++) /* no input is padded past its own limit */
    for (uint32_t e = 0; e < HEDDLE__BATCH_DIMS; e++)
      if (p->inputs[i].symbols[e] == port->symbols[d] && p->inputs[i].pad_max > 0 && most > p->inputs[i].pad_max)
        most = p->inputs[i].pad_max;
  return most;
}

/* ---- inputs */

static bool same_shape(const heddle_tensor *t, heddle_dtype dtype, const int64_t *shape, uint32_t ndim) {
  return t != NULL && heddle__dtype_equal(heddle_tensor_dtype(t), dtype) && heddle_tensor_ndim(t) == ndim &&
         (ndim == 0 || memcmp(heddle_tensor_shape(t), shape, ndim * sizeof *shape) == 0);
}

/* Binds memory of a shape, larger memory where it is needed. */
static heddle_status stage_for(heddle__batch_worker *w, uint32_t i, heddle_dtype dtype, const int64_t *shape,
                               uint32_t ndim, heddle_error *err) {
  heddle__batch_stage *stage = &w->stages[i];
  if (same_shape(stage->bound, dtype, shape, ndim)) return HEDDLE_OK;
  uint64_t bytes;
  heddle_status s = heddle__shape_bytes(dtype, ndim, shape, NULL, &bytes, err);
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "input '%s': ", w->b->ports.inputs[i].name);
  if (stage->data == NULL || bytes > stage->bytes) {
    void *data = make_block(bytes);
    if (data == NULL) return heddle__no_memory(err, "the input of a run of several requests");
    heddle__batch_stage_free(stage); /* the executor keeps what it has bound */
    stage->data = data;
    stage->bytes = bytes;
  }
  heddle_tensor *t = NULL;
  atomic_fetch_add_explicit(&block_of(stage->data)->tensors, 1, memory_order_relaxed);
  s = heddle_tensor_wrap(stage->data, dtype, shape, ndim, NULL, drop_block, stage->data, &t, err);
  if (s != HEDDLE_OK) drop_block(stage->data);
  if (s == HEDDLE_OK) s = heddle_executor_bind_input(w->ex, w->b->ports.inputs[i].index, t, err);
  heddle_tensor_release(stage->bound);
  stage->bound = s == HEDDLE_OK ? t : NULL;
  if (s != HEDDLE_OK) heddle_tensor_release(t);
  return s;
}

/* Between a tensor of any place and a box of host memory: the strides to copy by. In bytes, the tensor's own, where it is
 * on the host; else in elements, the box's, for a copy by the tensor's device. Tells whether it is on the host. */
static bool copy_strides(const heddle_tensor *t, const int64_t *box_strides, int64_t *strides) {
  const bool on_host = heddle_tensor_device(t) == NULL;
  const int64_t element = heddle__dtype_bytes(heddle_tensor_dtype(t));
  for (uint32_t d = 0; d < heddle_tensor_ndim(t); d++)
    strides[d] = on_host ? heddle_tensor_strides(t)[d] * element : box_strides[d] / element;
  return on_host;
}

/* Copies a tensor of any place and strides into a box of host memory. */
static heddle_status copy_in(char *dst, const int64_t *dst_strides, const heddle_tensor *t, heddle_error *err) {
  const uint32_t ndim = heddle_tensor_ndim(t);
  const int64_t element = heddle__dtype_bytes(heddle_tensor_dtype(t)), *shape = heddle_tensor_shape(t);
  int64_t strides[HEDDLE__BATCH_DIMS] = {0};
  if (heddle_tensor_bytes(t) == 0) return HEDDLE_OK;
  if (copy_strides(t, dst_strides, strides)) {
    heddle__batch_copy(dst, dst_strides, heddle_tensor_data(t), strides, shape, ndim, (size_t)element);
    return HEDDLE_OK;
  }
  heddle_tensor *box = NULL;
  heddle_status s = heddle_tensor_wrap(dst, heddle_tensor_dtype(t), shape, ndim, strides, NULL, NULL, &box, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(box, t, err);
  heddle_tensor_release(box);
  return s;
}

/* What is shorter than the run's shape is filled with the padding first. */
static bool is_short(const heddle_tensor *t, const int64_t *shape, uint32_t pad_axes) {
  for (uint32_t d = 0; d < heddle_tensor_ndim(t); d++)
    if ((pad_axes >> d & 1) != 0 && heddle_tensor_shape(t)[d] < shape[d]) return true;
  return false;
}

/* The items behind the last request are copies of the last item: valid values, whatever the model expects. */
static void fill_up(char *data, const int64_t *strides, const int64_t *shape, uint32_t ndim, uint32_t axis,
                    int64_t items, size_t element) {
  int64_t one[HEDDLE__BATCH_DIMS];
  memcpy(one, shape, ndim * sizeof *one);
  one[axis] = 1;
  for (int64_t row = items; row < shape[axis]; row++)
    heddle__batch_copy(data + row * strides[axis], strides, data + (items - 1) * strides[axis], strides, one, ndim,
                       element);
}

static heddle_status gather_input(heddle__batch_worker *w, uint32_t i, uint32_t n, int64_t rows, heddle_error *err) {
  const heddle__batch_port *port = &w->b->ports.inputs[i];
  const heddle_tensor *first = w->present[0]->inputs[i];
  const heddle_dtype dtype = heddle_tensor_dtype(first);
  const uint32_t ndim = heddle_tensor_ndim(first);
  int64_t shape[HEDDLE__BATCH_DIMS] = {0}, strides[HEDDLE__BATCH_DIMS] = {0}, done = 0, outer = 1;
  for (uint32_t d = 0; d < ndim; d++) {
    shape[d] = (int32_t)d == port->axis ? rows : heddle_tensor_shape(first)[d];
    if ((port->pad_axes >> d & 1) != 0) shape[d] = length_of(w, n, i, d);
  }
  heddle_status s = stage_for(w, i, dtype, shape, ndim, err);
  if (s != HEDDLE_OK) return s;
  char *data = w->stages[i].data;
  const int64_t element = heddle__dtype_bytes(dtype);
  byte_strides(shape, ndim, element, strides);
  if (port->axis < 0) return copy_in(data, strides, first, err);
  const uint32_t axis = (uint32_t)port->axis;
  for (uint32_t d = 0; d < axis; d++) outer *= shape[d];
  bool fill_all = false;
  for (uint32_t k = 0; k < n && outer != 1; k++)
    fill_all = fill_all || is_short(w->present[k]->inputs[i], shape, port->pad_axes);
  if (fill_all)
    heddle__batch_fill(data, heddle_tensor_bytes(w->stages[i].bound) / (uint64_t)element, dtype, port->pad_value);
  for (uint32_t k = 0; k < n && s == HEDDLE_OK; k++) {
    const heddle_tensor *t = w->present[k]->inputs[i];
    const int64_t items = w->present[k]->items;
    char *to = data + done * strides[axis];
    if (outer == 1 && is_short(t, shape, port->pad_axes))
      heddle__batch_fill(to, (uint64_t)(items * strides[axis] / element), dtype, port->pad_value);
    s = copy_in(to, strides, t, err);
    done += items;
  }
  if (s == HEDDLE_OK) fill_up(data, strides, shape, ndim, axis, done, (size_t)element);
  return s;
}

heddle_status heddle__batch_gather(heddle__batch_worker *w, uint32_t n, int64_t rows, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < w->b->ports.n_inputs && s == HEDDLE_OK; i++) s = gather_input(w, i, n, rows, err);
  return s;
}

/* ---- outputs */

static heddle_status copy_out(heddle_tensor *t, const char *src, const int64_t *src_strides, heddle_error *err) {
  const uint32_t ndim = heddle_tensor_ndim(t);
  const int64_t element = heddle__dtype_bytes(heddle_tensor_dtype(t)), *shape = heddle_tensor_shape(t);
  int64_t strides[HEDDLE__BATCH_DIMS] = {0};
  if (heddle_tensor_bytes(t) == 0) return HEDDLE_OK;
  if (copy_strides(t, src_strides, strides)) {
    heddle__batch_copy(heddle_tensor_data(t), strides, src, src_strides, shape, ndim, (size_t)element);
    return HEDDLE_OK;
  }
  heddle_tensor *box = NULL;
  heddle_status s = heddle__tensor_wrap_const(src, heddle_tensor_dtype(t), shape, ndim, strides, NULL, NULL, &box, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(t, box, err);
  heddle_tensor_release(box);
  return s;
}

static heddle_status misfit(const heddle__batch_port *port, const heddle_tensor *t, const int64_t *shape, uint32_t ndim,
                            heddle_error *err) {
  char want[128], have[128];
  heddle__shape_name(shape, ndim, want, sizeof want);
  heddle__shape_name(heddle_tensor_shape(t), heddle_tensor_ndim(t), have, sizeof have);
  return heddle__fail(err, HEDDLE_EINVAL, "output '%s' has the shape %s; the tensor for it has %s or another dtype",
                      port->name, want, have);
}

static heddle_status scatter_output(heddle__batch_worker *w, heddle_batch_request *r, uint32_t i, int64_t first,
                                    int64_t rows, heddle_error *err) {
  const heddle__batch_port *port = &w->b->ports.outputs[i];
  const heddle_tensor *view = w->views[i];
  const heddle_dtype dtype = heddle_tensor_dtype(view);
  const uint32_t ndim = heddle_tensor_ndim(view);
  int64_t shape[HEDDLE__BATCH_DIMS] = {0}, strides[HEDDLE__BATCH_DIMS] = {0};
  if (ndim > 0) memcpy(shape, heddle_tensor_shape(view), ndim * sizeof *shape);
  const int64_t element = heddle__dtype_bytes(dtype);
  for (uint32_t d = 0; d < ndim; d++) strides[d] = heddle_tensor_strides(view)[d] * element;
  const char *from = heddle_tensor_data(view);
  if (port->axis >= 0) {
    if (port->axis >= (int32_t)ndim || shape[port->axis] != rows)
      return heddle__fail(err, HEDDLE_EINVAL,
                          "output '%s' does not have the %lld items of the run in dimension %d; give the batcher its "
                          "axis, or -1",
                          port->name, (long long)rows, (int)port->axis);
    shape[port->axis] = r->items;
    if (from != NULL) from += first * strides[port->axis];
  }
  for (uint32_t d = 0; d < ndim; d++) {
    if ((port->pad_axes >> d & 1) == 0) continue;
    const int64_t own = heddle_tensor_shape(r->inputs[port->cut_input[d]])[port->cut_axis[d]];
    if (own < shape[d]) shape[d] = own;
  }
  heddle_tensor *t = r->outputs[i];
  if (t != NULL && !same_shape(t, dtype, shape, ndim)) return misfit(port, t, shape, ndim, err);
  if (t == NULL) {
    heddle_status s = heddle_tensor_create(NULL, dtype, shape, ndim, &t, err);
    if (s != HEDDLE_OK) return s;
    r->outputs[i] = t;
  }
  return copy_out(t, from, strides, err);
}

heddle_status heddle__batch_scatter(heddle__batch_worker *w, heddle_batch_request *r, int64_t first, int64_t rows,
                                    heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < w->b->ports.n_outputs && s == HEDDLE_OK; i++) s = scatter_output(w, r, i, first, rows, err);
  return s;
}
