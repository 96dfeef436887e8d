/* modules/tvm/executor_outputs.c: the methods of an executor that run it and give its outputs. An array of an output is
 * that output's memory: it changes with the next run. */
#include "modules/tvm/executor_object.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/tensor.h"

heddle_status heddle__executor_go(heddle__runner *o, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  o->started = true;
  for (uint32_t i = 0; i < o->n_inputs && o->moves && s == HEDDLE_OK; i++)
    if (o->inputs[i].device != NULL) s = heddle_tensor_copy(o->inputs[i].bound, o->inputs[i].device, err);
  if (s == HEDDLE_OK) s = heddle_executor_run(o->ex, HEDDLE_FOREVER, err);
  o->used = o->used || s == HEDDLE_OK;
  for (uint32_t i = 0; i < o->n_outputs && o->moves && s == HEDDLE_OK; i++)
    if (o->outputs[i].device != NULL) s = heddle_tensor_copy(o->outputs[i].device, o->outputs[i].bound, err);
  return s;
}

HEDDLE__METHOD(heddle__executor_run) {
  heddle__args a = {"run", args, codes, n};
  heddle_error err;
  (void)ret, (void)ret_code;
  if (n != 0) return heddle__args_count(&a, 0, 0) ? 0 : -1;
  if (heddle__executor_go(heddle__executor_self(self), &err) == HEDDLE_OK) return 0;
  return heddle__refuse_error(a.method, &err);
}

/* False with words: memory of another form than the output's, as far as that is known. */
static bool fits(heddle__runner *o, const char *method, uint32_t i, const heddle_tensor *t) {
  heddle_io_info io = {.struct_size = sizeof io};
  heddle__sheet is = {0}, given = {0};
  heddle_error err = {0};
  if (heddle_executor_output_info(o->ex, i, &io, &err) != HEDDLE_OK) {
    heddle__refuse_error(method, &err);
    return false;
  }
  if (io.ndim == UINT32_MAX || (memcmp(&io.dtype, &t->dtype, sizeof io.dtype) == 0 && io.ndim == t->ndim &&
                                memcmp(io.shape, t->shape, t->ndim * sizeof *t->shape) == 0))
    return true;
  heddle__json_dtype(&is, io.dtype);
  heddle__json_shape(&is, io.shape, io.ndim);
  heddle__json_dtype(&given, t->dtype);
  heddle__json_shape(&given, t->shape, t->ndim);
  heddle__refuse(method, "output '%.100s' is %s; the array is %s", io.name, is.failed ? "another" : is.text,
                 given.failed ? "another" : given.text);
  heddle__free(is.text);
  heddle__free(given.text);
  return false;
}

HEDDLE__METHOD(heddle__executor_set_output_zero_copy) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"set_output_zero_copy", args, codes, n};
  (void)ret, (void)ret_code;
  if (!heddle__args_count(&a, 2, 2)) return -1;
  int32_t i = heddle__executor_output(o, &a, 0);
  heddle_tensor *value = i >= 0 ? heddle__args_tensor(&a, 1) : NULL, *bound = NULL, *device = NULL;
  if (value == NULL) return -1;
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  if (!fits(o, a.method, (uint32_t)i, value)) {
    heddle_tensor_release(value);
    return -1;
  }
  if (value->dev == NULL) {
    bound = value;
  } else { /* outputs lie on the host: each run copies it from there */
    device = value;
    s = heddle_tensor_create(NULL, value->dtype, value->shape, value->ndim, &bound, &err);
  }
  if (s == HEDDLE_OK) s = heddle_executor_bind_output(o->ex, (uint32_t)i, bound, &err);
  if (s != HEDDLE_OK) {
    heddle_tensor_release(bound);
    heddle_tensor_release(device);
    return heddle__refuse_error(a.method, &err);
  }
  heddle__slot *slot = &o->outputs[i];
  heddle_tensor_release(slot->bound);
  heddle_tensor_release(slot->device);
  *slot = (heddle__slot){.bound = bound, .device = device, .lent = true};
  o->moves = o->moves || device != NULL;
  o->used = true;
  return 0;
}

/* Memory for an output that no run has written yet. */
static heddle_status own_memory(heddle__runner *o, uint32_t i, heddle_tensor **out, heddle_error *err) {
  heddle_io_info info = {.struct_size = sizeof info};
  heddle_status s = heddle_executor_output_info(o->ex, i, &info, err);
  if (s == HEDDLE_OK && info.ndim == UINT32_MAX) s = heddle__executor_no_shape("output", info.name, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, info.dtype, info.shape, info.ndim, out, err);
  if (s == HEDDLE_OK) s = heddle_executor_bind_output(o->ex, i, *out, err);
  if (s == HEDDLE_OK) return s;
  heddle_tensor_release(*out);
  *out = NULL;
  return s;
}

HEDDLE__METHOD(heddle__executor_get_output) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"get_output", args, codes, n};
  if (!heddle__args_count(&a, 1, 2)) return -1;
  int32_t i = heddle__executor_output(o, &a, 0);
  if (i < 0) return -1;
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  if (n == 2) {
    heddle_tensor *to = heddle__args_tensor(&a, 1);
    if (to == NULL) return -1;
    s = heddle_executor_get_output(o->ex, (uint32_t)i, to, &err);
    heddle_tensor_release(to);
    return s == HEDDLE_OK ? 0 : heddle__refuse_error(a.method, &err);
  }
  heddle__slot *slot = &o->outputs[i];
  heddle_tensor *value = NULL;
  o->used = true;
  if (slot->bound == NULL && !o->started) s = own_memory(o, (uint32_t)i, &slot->bound, &err);
  if (s == HEDDLE_OK && slot->bound != NULL)
    value = heddle_tensor_retain(slot->device != NULL ? slot->device : slot->bound);
  else if (s == HEDDLE_OK) s = heddle_executor_view_output(o->ex, (uint32_t)i, &value, &err);
  return s == HEDDLE_OK ? heddle__give_tensor(value, ret, ret_code) : heddle__refuse_error(a.method, &err);
}

HEDDLE__METHOD(heddle__executor_get_num_outputs) {
  heddle__args a = {"get_num_outputs", args, codes, n};
  return heddle__args_count(&a, 0, 0) ? heddle__give_int(heddle__executor_self(self)->n_outputs, ret, ret_code) : -1;
}

/* Outputs by their node's name; where several have it, by "NODE:POSITION". */
HEDDLE__METHOD(heddle__executor_get_output_info) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"get_output_info", args, codes, n};
  heddle__info info = {{0}, {0}};
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  if (!heddle__args_count(&a, 0, 0)) return -1;
  for (uint32_t i = 0; i < o->n_outputs && s == HEDDLE_OK; i++) {
    heddle_io_info io = {.struct_size = sizeof io};
    heddle__sheet name = {0};
    const char *node = heddle__output_node(o, i);
    bool shared = false;
    for (uint32_t k = 0; k < o->n_outputs; k++)
      shared = shared || (k != i && strcmp(heddle__output_node(o, k), node) == 0);
    heddle__say_text(&name, node);
    if (shared) heddle__say(&name, ":%u", (unsigned)i);
    s = heddle_executor_output_info(o->ex, i, &io, &err);
    if (s == HEDDLE_OK) heddle__info_add(&info, name.text != NULL ? name.text : node, &io);
    heddle__free(name.text);
  }
  return heddle__info_answer(&info, a.method, s, &err, ret, ret_code);
}

/* ---- run_from_inputs */

/* What TVM has as an array of arrays: a module with the methods size() and get(i). */
typedef struct list {
  heddle_object head;
  uint32_t count;
  heddle_tensor **items;
} list;

static void finish_list(heddle_object *self) {
  list *l = (list *)(void *)self;
  for (uint32_t i = 0; i < l->count; i++) heddle_tensor_release(l->items[i]);
  heddle__free((void *)l->items);
}

static HEDDLE__METHOD(list_size) {
  heddle__args a = {"size", args, codes, n};
  return heddle__args_count(&a, 0, 0) ? heddle__give_int(((list *)self)->count, ret, ret_code) : -1;
}

static HEDDLE__METHOD(list_get) {
  const list *l = self;
  heddle__args a = {"get", args, codes, n};
  int64_t i = 0;
  if (!heddle__args_count(&a, 1, 1) || !heddle__args_int(&a, 0, 0, (int64_t)l->count - 1, &i)) return -1;
  return heddle__give_tensor(heddle_tensor_retain(l->items[i]), ret, ret_code);
}

static int find_in_list(heddle_object *self, const char *name, heddle_function **out) {
  static const heddle__method methods[] = {{"size", list_size}, {"get", list_get}};
  return heddle__method_find(methods, 2, self, name, out);
}

static const heddle__object_type list_type = {.kind = "Array", .find = find_in_list, .finish = finish_list};

heddle_status heddle__output_copy(heddle_executor *ex, uint32_t i, heddle_device *to, heddle_tensor **out,
                                  heddle_error *err) {
  heddle_tensor *view = NULL;
  *out = NULL;
  heddle_status s = heddle_executor_view_output(ex, i, &view, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(to, view->dtype, view->shape, view->ndim, out, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(*out, view, err);
  heddle_tensor_release(view);
  if (s == HEDDLE_OK) return s;
  heddle_tensor_release(*out);
  *out = NULL;
  return s;
}

static heddle_status copy_outputs(heddle__runner *o, heddle_device *to, list *l, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  while (l->count < o->n_outputs && s == HEDDLE_OK) {
    s = heddle__output_copy(o->ex, l->count, to, &l->items[l->count], err);
    if (s == HEDDLE_OK) l->count++;
  }
  return s;
}

HEDDLE__METHOD(heddle__executor_run_from_inputs) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"run_from_inputs", args, codes, n};
  int64_t type = 0, number = 0;
  if (!heddle__args_count(&a, 2, INT32_MAX) || !heddle__args_int(&a, 0, 1, INT32_MAX, &type) ||
      !heddle__args_int(&a, 1, 0, INT32_MAX, &number))
    return -1;
  if (n % 2 != 0) return heddle__refuse(a.method, "after the device there are pairs of a name and an array");
  heddle_device *to = heddle__numbered_device(o->ctx, (int32_t)type, (int32_t)number);
  if (to == NULL) return heddle__refuse(a.method, "%s", heddle__tvm_self()->error);
  for (int32_t i = 2; i < n; i += 2) /* before the first is set */
    if (heddle__executor_input(o, &a, i, false) < 0) return -1;
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  for (int32_t i = 2; i < n && s == HEDDLE_OK; i += 2) {
    heddle_tensor *value = heddle__args_tensor(&a, i + 1);
    if (value == NULL) return -1;
    s = heddle__executor_set(o, (uint32_t)heddle__executor_input(o, &a, i, false), value, &err);
    heddle_tensor_release(value);
  }
  if (s == HEDDLE_OK) s = heddle__executor_go(o, &err);
  if (s != HEDDLE_OK) return heddle__refuse_error(a.method, &err);
  list *l = (list *)(void *)heddle__object_new(&list_type, sizeof *l);
  if (l != NULL) l->items = heddle__alloc(o->n_outputs, sizeof(heddle_tensor *));
  if (l == NULL || l->items == NULL) {
    if (l != NULL) heddle__object_release(&l->head);
    return heddle__refuse(a.method, "out of memory");
  }
  s = copy_outputs(o, to, l, &err);
  if (s == HEDDLE_OK) return heddle__give_object(&l->head, ret, ret_code);
  heddle__object_release(&l->head);
  return heddle__refuse_error(a.method, &err);
}
