/* batch/check.c: checks a request against the ports, so that what a batcher accepts can share a run. */
#include <string.h>

#include "batch/batcher.h"
#include "core/error.h"
#include "core/tensor.h"
#include "plugins/common/fnv.h"

static heddle_status no_input(const heddle__batch_ports *p, const char *name, heddle_error *err) {
  char list[600] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < p->n_inputs && used < sizeof list - 1; i++) {
    int n = snprintf(list + used, sizeof list - used, "%s'%s'", i > 0 ? ", " : "", p->inputs[i].name);
    used += n > 0 ? (size_t)n : 0;
  }
  return heddle__fail(err, HEDDLE_ENOTFOUND, "there is no input '%s'; a request has %s", name, list);
}

/* Puts the tensors of a call into the order of the ports. */
static heddle_status order(const heddle__batch_ports *p, const heddle_batch_call *call, heddle_batch_request *r,
                           heddle_error *err) {
  for (size_t k = 0; k < call->n_inputs; k++) {
    uint32_t i = (uint32_t)k;
    const char *name = call->names != NULL ? call->names[k] : NULL;
    if (call->names != NULL) {
      if (name == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the name of input %zu is NULL", k);
      for (i = 0; i < p->n_inputs && strcmp(p->inputs[i].name, name) != 0;) i++;
      if (i == p->n_inputs) return no_input(p, name, err);
    } else if (k >= p->n_inputs) {
      return heddle__fail(err, HEDDLE_EINVAL, "%zu inputs are given, and the model has %u", call->n_inputs,
                          (unsigned)p->n_inputs);
    }
    if (call->inputs[k] == NULL)
      return heddle__fail(err, HEDDLE_EINVAL, "input '%s': the tensor is NULL", p->inputs[i].name);
    if (r->inputs[i] != NULL) return heddle__fail(err, HEDDLE_EINVAL, "input '%s' is given twice", name);
    r->inputs[i] = heddle_tensor_retain(call->inputs[k]);
  }
  for (uint32_t i = 0; i < p->n_inputs; i++)
    if (r->inputs[i] == NULL) return heddle__fail(err, HEDDLE_EINVAL, "input '%s' is missing", p->inputs[i].name);
  return HEDDLE_OK;
}

/* "float32 [1, 8]" */
static void name_tensor(const heddle_tensor *t, char out[200]) {
  char dtype[32], shape[128];
  heddle__dtype_name(heddle_tensor_dtype(t), dtype);
  heddle__shape_name(heddle_tensor_shape(t), heddle_tensor_ndim(t), shape, sizeof shape);
  snprintf(out, 200, "%s %s", dtype, shape);
}

static void name_port(const heddle__batch_port *port, char out[200]) {
  char dtype[32] = "any dtype", shape[128];
  if (port->dtype.bits != 0) heddle__dtype_name(port->dtype, dtype);
  if (port->ndim == UINT32_MAX) snprintf(shape, sizeof shape, "of any shape");
  else heddle__shape_name(port->shape, port->ndim, shape, sizeof shape);
  snprintf(out, 200, "%s %s (-1: open)", dtype, shape);
}

static heddle_status misfit(const heddle__batch_port *port, const heddle_tensor *t, heddle_error *err) {
  char want[200], have[200];
  name_port(port, want);
  name_tensor(t, have);
  return heddle__fail(err, HEDDLE_EINVAL, "input '%s' is %s; the request has %s", port->name, want, have);
}

static heddle_status check_dim(const heddle_batcher *b, heddle_batch_request *r, const heddle__batch_port *port,
                               const heddle_tensor *t, uint32_t d, heddle_error *err) {
  const int64_t n = heddle_tensor_shape(t)[d];
  const bool is_batch = (int32_t)d == port->axis, is_padded = (port->pad_axes >> d & 1) != 0;
  if (is_batch) {
    if (n < 1 || n > (int64_t)b->max_items)
      return heddle__fail(err, HEDDLE_EINVAL, "input '%s': a request has 1 to %u items, and this one has %lld",
                          port->name, (unsigned)b->max_items, (long long)n);
    if (r->items != 0 && r->items != n)
      return heddle__fail(err, HEDDLE_EINVAL, "input '%s' has %lld items, and another input %lld", port->name,
                          (long long)n, (long long)r->items);
    r->items = n;
  } else if (port->ndim != UINT32_MAX && port->shape[d] >= 0 && port->shape[d] != n) {
    return misfit(port, t, err);
  }
  if (is_padded && port->pad_max > 0 && n > port->pad_max)
    return heddle__fail(err, HEDDLE_EINVAL, "input '%s': dimension %u is %lld, and the most is %lld", port->name,
                        (unsigned)d, (long long)n, (long long)port->pad_max);
  const uint32_t symbol = port->symbols[d];
  if (symbol == 0) return HEDDLE_OK;
  int64_t *known = &r->dims[symbol - 1];
  if (*known >= 0 && *known != n)
    return heddle__fail(err, HEDDLE_EINVAL, "input '%s': dimension '%s' is %lld, and in another place %lld", port->name,
                        b->ports.symbols[symbol - 1], (long long)n, (long long)*known);
  *known = n;
  return HEDDLE_OK;
}

static heddle_status check_input(const heddle_batcher *b, heddle_batch_request *r, uint32_t i, heddle_error *err) {
  const heddle__batch_port *port = &b->ports.inputs[i];
  const heddle_tensor *t = r->inputs[i];
  const heddle_dtype dtype = heddle_tensor_dtype(t);
  const uint32_t ndim = heddle_tensor_ndim(t);
  const int64_t *shape = heddle_tensor_shape(t);
  if (port->dtype.bits != 0 && !heddle__dtype_equal(port->dtype, dtype)) return misfit(port, t, err);
  if (port->ndim != UINT32_MAX ? port->ndim != ndim : port->axis >= (int32_t)ndim) return misfit(port, t, err);
  if (ndim < HEDDLE__BATCH_DIMS && port->pad_axes >> ndim != 0) return misfit(port, t, err);
  if (dtype.code == HEDDLE_DTYPE_HANDLE)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "input '%s': requests have numbers, and no handles", port->name);
  char one[16];
  if (port->pad_axes != 0 && !heddle__batch_fill(one, 1, dtype, port->pad_value)) return misfit(port, t, err);
  if (port->axis < 0 && (heddle_tensor_device(t) != NULL || !heddle_tensor_is_contiguous(t)))
    return heddle__fail(err, HEDDLE_EINVAL,
                        "input '%s' has no batch dimension: its tensor is in host memory and "
                        "row-major",
                        port->name);
  r->hash = fnv1a(fnv1a(r->hash, &dtype, sizeof dtype), &ndim, sizeof ndim);
  for (uint32_t d = 0; d < ndim; d++) {
    heddle_status s = check_dim(b, r, port, t, d, err);
    if (s != HEDDLE_OK) return s;
    if ((int32_t)d != port->axis && (port->pad_axes >> d & 1) == 0) r->hash = fnv1a(r->hash, &shape[d], sizeof *shape);
  }
  if (port->axis < 0 && heddle_tensor_bytes(t) > 0)
    r->hash = fnv1a(r->hash, heddle_tensor_data(t), (size_t)heddle_tensor_bytes(t));
  return HEDDLE_OK;
}

heddle_status heddle__batch_check(heddle_batcher *b, const heddle_batch_call *call, heddle_batch_request *r,
                                  heddle_error *err) {
  const heddle__batch_ports *p = &b->ports;
  if (call->n_inputs > 0 && call->inputs == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "%zu inputs are at NULL", call->n_inputs);
  if (call->n_outputs > 0 && call->outputs == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "%zu outputs are at NULL", call->n_outputs);
  if (call->n_outputs > p->n_outputs)
    return heddle__fail(err, HEDDLE_EINVAL, "%zu outputs are given, and the model has %u", call->n_outputs,
                        (unsigned)p->n_outputs);
  heddle_status s = order(p, call, r, err);
  r->items = 0;
  r->hash = FNV1A_START;
  for (uint32_t i = 0; i < p->n_symbols; i++) r->dims[i] = -1;
  for (uint32_t i = 0; i < p->n_inputs && s == HEDDLE_OK; i++) s = check_input(b, r, i, err);
  for (size_t i = 0; i < call->n_outputs && s == HEDDLE_OK; i++)
    if (call->outputs[i] != NULL) r->outputs[i] = heddle_tensor_retain(call->outputs[i]);
  return s;
}

bool heddle__batch_alike(const heddle_batcher *b, const heddle_batch_request *x, const heddle_batch_request *y) {
  for (uint32_t i = 0; i < b->ports.n_inputs; i++) {
    const heddle__batch_port *port = &b->ports.inputs[i];
    const heddle_tensor *s = x->inputs[i], *t = y->inputs[i];
    const uint32_t ndim = heddle_tensor_ndim(s);
    if (!heddle__dtype_equal(heddle_tensor_dtype(s), heddle_tensor_dtype(t)) || ndim != heddle_tensor_ndim(t))
      return false;
    for (uint32_t d = 0; d < ndim; d++)
      if ((int32_t)d != port->axis && (port->pad_axes >> d & 1) == 0 &&
          heddle_tensor_shape(s)[d] != heddle_tensor_shape(t)[d])
        return false;
    if (port->axis < 0 && heddle_tensor_bytes(s) > 0 &&
        memcmp(heddle_tensor_data(s), heddle_tensor_data(t), (size_t)heddle_tensor_bytes(s)) != 0)
      return false;
  }
  return true;
}
