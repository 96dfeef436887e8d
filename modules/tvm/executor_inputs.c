/* modules/tvm/executor_inputs.c: the methods of an executor that set its inputs and read them back. An array of an
 * input that was handed out is that input's memory from then on: what is written to it, the next run reads. */
#include "modules/tvm/executor_object.h"

#include <string.h>

#include "core/tensor.h"

static void forget(heddle__slot *slot) {
  heddle_tensor_release(slot->bound);
  heddle_tensor_release(slot->device);
  slot->bound = slot->device = NULL;
  slot->lent = false;
}

static bool same_form(const heddle_tensor *a, const heddle_tensor *b) {
  return memcmp(&a->dtype, &b->dtype, sizeof a->dtype) == 0 && a->ndim == b->ndim &&
         memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

/* As TVM's, an array of the input's dtype and bytes is taken whatever its shape: the same memory in the graph's shape, to
 * be released; NULL: value has another size, is not compact or not on the host, or needs nothing of the kind. */
static heddle_tensor *in_graph_shape(heddle__runner *o, uint32_t i, heddle_tensor *value) {
  heddle_value_info io = {.struct_size = sizeof io};
  heddle_tensor *view = NULL;
  int64_t count = 1, given = 1;
  if (value->dev != NULL || !heddle_tensor_is_contiguous(value) ||
      heddle_graph_input(o->graph, i, &io, NULL) != HEDDLE_OK || io.ndim == UINT32_MAX ||
      memcmp(&io.dtype, &value->dtype, sizeof io.dtype) != 0 ||
      (io.ndim == value->ndim && memcmp(io.shape, value->shape, io.ndim * sizeof *io.shape) == 0))
    return NULL;
  for (uint32_t k = 0; k < io.ndim; k++) {
    if (io.shape[k] < 0) return NULL; /* not known from the file */
    count *= io.shape[k];
  }
  for (uint32_t k = 0; k < value->ndim; k++) given *= value->shape[k];
  if (count != given || heddle_tensor_wrap(heddle_tensor_data(value), io.dtype, io.shape, io.ndim, NULL, NULL, NULL,
                                           &view, NULL) != HEDDLE_OK)
    return NULL;
  return view;
}

static heddle_status set_same(heddle__runner *o, uint32_t i, heddle_tensor *value, heddle_error *err) {
  heddle__slot *slot = &o->inputs[i];
  o->changed = true;
  if (slot->bound != NULL && !slot->lent && same_form(slot->bound, value))
    return heddle_tensor_copy(slot->bound, value, err);
  heddle_status s = heddle_executor_set_input(o->ex, i, value, err);
  if (s == HEDDLE_OK) forget(slot);
  return s;
}

heddle_status heddle__executor_set(heddle__runner *o, uint32_t i, heddle_tensor *value, heddle_error *err) {
  heddle_tensor *view = in_graph_shape(o, i, value);
  heddle_status s = set_same(o, i, view != NULL ? view : value, err);
  heddle_tensor_release(view);
  return s;
}

HEDDLE__METHOD(heddle__executor_set_input) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"set_input", args, codes, n};
  (void)ret, (void)ret_code;
  if (!heddle__args_count(&a, 2, 2)) return -1;
  int32_t i = heddle__executor_input(o, &a, 0, false);
  heddle_tensor *value = i >= 0 ? heddle__args_tensor(&a, 1) : NULL;
  if (value == NULL) return -1;
  heddle_error err = {0};
  heddle_status s = heddle__executor_set(o, (uint32_t)i, value, &err);
  heddle_tensor_release(value);
  return s == HEDDLE_OK ? 0 : heddle__refuse_error(a.method, &err);
}

HEDDLE__METHOD(heddle__executor_set_input_zero_copy) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"set_input_zero_copy", args, codes, n};
  (void)ret, (void)ret_code;
  if (!heddle__args_count(&a, 2, 2)) return -1;
  int32_t i = heddle__executor_input(o, &a, 0, false);
  heddle_tensor *value = i >= 0 ? heddle__args_tensor(&a, 1) : NULL, *bound = NULL, *device = NULL;
  if (value == NULL) return -1;
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  if (value->dev == NULL) {
    bound = value;
  } else { /* inputs lie on the host: each run copies it there first */
    device = value;
    s = heddle_tensor_create(NULL, value->dtype, value->shape, value->ndim, &bound, &err);
  }
  if (s == HEDDLE_OK) s = heddle_executor_bind_input(o->ex, (uint32_t)i, bound, &err);
  if (s != HEDDLE_OK) {
    heddle_tensor_release(bound);
    heddle_tensor_release(device);
    return heddle__refuse_error(a.method, &err);
  }
  forget(&o->inputs[i]);
  o->inputs[i].bound = bound;
  o->inputs[i].device = device;
  o->inputs[i].lent = true;
  o->moves = o->moves || device != NULL;
  o->used = o->changed = true;
  return 0;
}

/* Memory for an input without memory that could be given out: its value, or zeros where none was set. */
static heddle_status own_memory(heddle__runner *o, uint32_t i, heddle_tensor **out, heddle_error *err) {
  heddle_io_info info = {.struct_size = sizeof info};
  heddle_status s = heddle_executor_get_input(o->ex, i, out, err);
  if (s == HEDDLE_EINVAL) {
    s = heddle_executor_input_info(o->ex, i, &info, err);
    if (s == HEDDLE_OK && info.ndim == UINT32_MAX) s = heddle__executor_no_shape("input", info.name, err);
    if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, info.dtype, info.shape, info.ndim, out, err);
  }
  if (s == HEDDLE_OK) s = heddle_executor_bind_input(o->ex, i, *out, err);
  if (s == HEDDLE_OK) return s;
  heddle_tensor_release(*out);
  *out = NULL;
  return s;
}

/* The value of an input into the caller's array. */
static heddle_status read_back(heddle__runner *o, uint32_t i, heddle_tensor *to, heddle_error *err) {
  if (o->inputs[i].device != NULL) return heddle_tensor_copy(to, o->inputs[i].device, err);
  heddle_tensor *value = NULL;
  heddle_status s = heddle_executor_get_input(o->ex, i, &value, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(to, value, err);
  heddle_tensor_release(value);
  return s;
}

HEDDLE__METHOD(heddle__executor_get_input) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"get_input", args, codes, n};
  if (!heddle__args_count(&a, 1, 2)) return -1;
  int32_t i = heddle__executor_input(o, &a, 0, true);
  if (i < 0) return i == -2 ? 0 : -1; /* a name that is none: null, as callers ask by it */
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  if (n == 2) {
    heddle_tensor *to = heddle__args_tensor(&a, 1);
    if (to == NULL) return -1;
    s = read_back(o, (uint32_t)i, to, &err);
    heddle_tensor_release(to);
    return s == HEDDLE_OK ? 0 : heddle__refuse_error(a.method, &err);
  }
  heddle__slot *slot = &o->inputs[i];
  if (slot->bound == NULL) {
    s = own_memory(o, (uint32_t)i, &slot->bound, &err);
    if (s != HEDDLE_OK) return heddle__refuse_error(a.method, &err);
    o->used = o->changed = true;
  }
  return heddle__give_tensor(heddle_tensor_retain(slot->device != NULL ? slot->device : slot->bound), ret, ret_code);
}

HEDDLE__METHOD(heddle__executor_get_input_index) {
  heddle__args a = {"get_input_index", args, codes, n};
  const char *name = NULL;
  if (!heddle__args_count(&a, 1, 1) || !heddle__args_name(&a, 0, &name)) return -1;
  return heddle__give_int(heddle_executor_input_index(heddle__executor_self(self)->ex, name), ret, ret_code);
}

HEDDLE__METHOD(heddle__executor_get_num_inputs) {
  heddle__args a = {"get_num_inputs", args, codes, n};
  return heddle__args_count(&a, 0, 0) ? heddle__give_int(heddle__executor_self(self)->n_inputs, ret, ret_code) : -1;
}

HEDDLE__METHOD(heddle__executor_get_input_info) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"get_input_info", args, codes, n};
  heddle__info info = {{0}, {0}};
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  if (!heddle__args_count(&a, 0, 0)) return -1;
  for (uint32_t i = 0; i < o->n_inputs && s == HEDDLE_OK; i++) {
    heddle_io_info io = {.struct_size = sizeof io};
    if (o->inputs[i].is_param) continue;
    s = heddle_executor_input_info(o->ex, i, &io, &err);
    if (s == HEDDLE_OK) heddle__info_add(&info, io.name, &io);
  }
  return heddle__info_answer(&info, a.method, s, &err, ret, ret_code);
}
