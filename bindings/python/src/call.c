/* bindings/python/src/call.c: calls of a model: values in, a run on an executor of the pool, fresh arrays out.
 * Small values are copied to and from memory that is bound to the executor for good. Large ones of models on the host
 * are bound themselves where that costs less: binding makes every node of a run find its memory anew. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "numpy_api.h"

#define ROOM 8                 /* values of a call that need no heap */
#define LEND_BYTES 65536       /* less is always copied */
#define LEND_BYTES_A_NODE 8192 /* as long as a node takes to be bound, so many bytes are copied */
#define COPY_WITHOUT_GIL 1048576

/* A call in the making. */
typedef struct call {
  heddle_py_model *model;
  slot *slot;
  source *sources;
  PyObject **results; /* a member an output; set before the run where its memory is bound, else after it */
  bool *lent;         /* ... and which are */
  source source_room[ROOM];
  PyObject *result_room[ROOM];
  bool lent_room[ROOM];
} call;

static bool lends(const heddle_py_model *model, uint64_t bytes) {
  return bytes >= LEND_BYTES && model->lends && bytes / LEND_BYTES_A_NODE > model->n_nodes;
}

/* The bytes of an array to memory that was made for as many. */
static int copy(heddle_tensor *to, const source *from) {
  if (heddle_tensor_bytes(to) != from->bytes) {
    heddle_py_fail_words(HEDDLE_EINTERNAL, "%llu bytes were made for an array of %llu",
                         (unsigned long long)heddle_tensor_bytes(to), (unsigned long long)from->bytes);
    return -1;
  }
  void *data = heddle_tensor_data(to);
  if (from->bytes < COPY_WITHOUT_GIL) {
    if (from->bytes > 0) memcpy(data, from->data, (size_t)from->bytes);
    return 0;
  }
  Py_BEGIN_ALLOW_THREADS;
  memcpy(data, from->data, (size_t)from->bytes);
  Py_END_ALLOW_THREADS;
  return 0;
}

/* ---- in */

static int call_begin(call *c, heddle_py_model *model) {
  *c = (call){.model = model, .sources = c->source_room, .results = c->result_room, .lent = c->lent_room};
  if (model->n_inputs > ROOM) c->sources = calloc(model->n_inputs, sizeof *c->sources);
  if (model->n_outputs > ROOM) {
    c->results = calloc(model->n_outputs, sizeof(PyObject *));
    c->lent = calloc(model->n_outputs, sizeof *c->lent);
  }
  if (c->sources != NULL && c->results != NULL && c->lent != NULL) return 0;
  PyErr_NoMemory();
  return -1;
}

static void call_end(call *c) {
  for (uint32_t i = 0; c->sources != NULL && i < c->model->n_inputs; i++) {
    heddle_py_tensor_release(c->sources[i].t);
    Py_XDECREF(c->sources[i].object);
  }
  for (uint32_t i = 0; c->results != NULL && i < c->model->n_outputs; i++) Py_XDECREF(c->results[i]);
  if (c->sources != c->source_room) free(c->sources);
  if (c->results != c->result_room) free(c->results);
  if (c->lent != c->lent_room) free(c->lent);
}

/* A value for input i. Other values than arrays as they are needed become tensors, before an executor is taken: that may
 * run Python code. */
static int give(call *c, uint32_t i, PyObject *object) {
  const port *p = &c->model->inputs[i];
  source *s = &c->sources[i];
  if (s->object != NULL) {
    const char *name = PyUnicode_AsUTF8AndSize(p->name, NULL);
    heddle_py_fail_input(c->model, HEDDLE_EINVAL, p->name, "input '%s' is given twice", name != NULL ? name : "?");
    return -1;
  }
  s->object = Py_NewRef(object);
  if (PyArray_Check(object)) {
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_TYPE(array) == p->typenum && PyArray_ISCARRAY_RO(array)) {
      s->data = PyArray_DATA(array);
      s->ndim = (uint32_t)PyArray_NDIM(array);
      s->shape = (const int64_t *)PyArray_DIMS(array);
      s->bytes = (uint64_t)PyArray_NBYTES(array);
      return 0;
    }
  }
  if (heddle_py_tensor_of(object, &p->dtype, &s->t) < 0) {
    s->t = NULL;
    heddle_py_about_input(c->model, p->name);
    return -1;
  }
  s->ndim = heddle_tensor_ndim(s->t);
  s->shape = heddle_tensor_shape(s->t);
  s->bytes = heddle_tensor_bytes(s->t);
  return 0;
}

static bool is_like(const heddle_tensor *t, const source *s) {
  return t != NULL && heddle_tensor_ndim(t) == s->ndim &&
         (s->ndim == 0 || memcmp(heddle_tensor_shape(t), s->shape, s->ndim * sizeof *s->shape) == 0);
}

/* The caller's own memory for the run that comes; the next run binds something else first. */
static heddle_status lend_input(call *c, uint32_t i, heddle_error *err) {
  const port *p = &c->model->inputs[i];
  const source *s = &c->sources[i];
  heddle_tensor *t = NULL;
  heddle_status status = heddle_tensor_wrap(s->data, p->dtype, s->shape, s->ndim, NULL, NULL, NULL, &t, err);
  if (status != HEDDLE_OK) return status;
  status = heddle_executor_bind_input(c->slot->ex, p->index, t, err);
  heddle_tensor_release(t);
  if (status != HEDDLE_OK) return status;
  heddle_tensor_release(c->slot->inputs[i].stage);
  c->slot->inputs[i].stage = NULL;
  return HEDDLE_OK;
}

static heddle_status stage_input(call *c, uint32_t i, heddle_error *err) {
  const port *p = &c->model->inputs[i];
  const source *s = &c->sources[i];
  heddle_tensor *t = NULL;
  heddle_status status = heddle_tensor_create(NULL, p->dtype, s->shape, s->ndim, &t, err);
  if (status == HEDDLE_OK) status = heddle_executor_bind_input(c->slot->ex, p->index, t, err);
  if (status != HEDDLE_OK) {
    heddle_tensor_release(t);
    return status;
  }
  heddle_tensor_release(c->slot->inputs[i].stage);
  c->slot->inputs[i].stage = t;
  return HEDDLE_OK;
}

static int set_input(call *c, uint32_t i) {
  heddle_error err;
  const source *s = &c->sources[i];
  slot_input *in = &c->slot->inputs[i];
  heddle_status status = HEDDLE_OK;
  bool is_lent = s->t == NULL && lends(c->model, s->bytes);
  if (is_lent) status = lend_input(c, i, &err);
  else if (!is_like(in->stage, s)) status = stage_input(c, i, &err);
  if (status != HEDDLE_OK) {
    heddle_py_fail(status, &err, c->model->file);
    heddle_py_set_node(c->model->inputs[i].name);
    return -1;
  }
  if (is_lent) return 0;
  if (s->t != NULL) return heddle_py_tensor_copy(in->stage, s->t);
  return copy(in->stage, s);
}

/* ---- out */

/* Arrays for large outputs, which the run writes itself. Where one cannot be bound it is copied to. */
static int lend_outputs(call *c) {
  for (uint32_t i = 0; i < c->model->n_outputs; i++) {
    const port *p = &c->model->outputs[i];
    heddle_tensor *stage = c->slot->outputs[i].stage, *t = NULL;
    if (stage == NULL || !lends(c->model, heddle_tensor_bytes(stage))) continue;
    c->results[i] = heddle_py_array_like(stage);
    if (c->results[i] == NULL || heddle_py_array_wrap(c->results[i], stage, &t) < 0) return -1;
    c->lent[i] = heddle_executor_bind_output(c->slot->ex, p->index, t, NULL) == HEDDLE_OK;
    heddle_tensor_release(t);
  }
  return 0;
}

/* Takes the callers' arrays out of the executor; returns whether it is fit for others. */
static bool return_outputs(call *c) {
  bool is_sound = true;
  for (uint32_t i = 0; i < c->model->n_outputs; i++) {
    if (!c->lent[i]) continue;
    heddle_status s =
        heddle_executor_bind_output(c->slot->ex, c->model->outputs[i].index, c->slot->outputs[i].stage, NULL);
    is_sound = is_sound && s == HEDDLE_OK;
  }
  return is_sound;
}

/* A run that did not end in time may still touch the callers' memory: it is never freed. */
static void leave_lent(call *c) {
  for (uint32_t i = 0; i < c->model->n_inputs; i++) c->sources[i].object = NULL;
  for (uint32_t i = 0; i < c->model->n_outputs; i++) c->results[i] = NULL;
}

static heddle_tensor *view_of(call *c, uint32_t i) {
  heddle_error err;
  heddle_tensor *view = NULL;
  heddle_status s = heddle_executor_view_output(c->slot->ex, c->model->outputs[i].index, &view, &err);
  if (s != HEDDLE_OK) heddle_py_fail(s, &err, c->model->file);
  return s == HEDDLE_OK ? view : NULL;
}

/* What the run gave, as it is: its own dtype and shape, which the model need not have declared. */
static int fetch(call *c, uint32_t i) {
  if (c->lent[i]) return 0;
  heddle_tensor *stage = c->slot->outputs[i].stage, *view = stage == NULL ? view_of(c, i) : NULL;
  if (stage == NULL && view == NULL) return -1;
  Py_XDECREF(c->results[i]); /* one that could not be bound */
  c->results[i] = heddle_py_array_copy(stage != NULL ? stage : view);
  heddle_py_tensor_release(view);
  return c->results[i] != NULL ? 0 : -1;
}

/* After the first run: memory that stays bound, for outputs of a shape that no call changes. */
static void bind_stages(call *c) {
  for (uint32_t i = 0; i < c->model->n_outputs && !c->model->has_lanes; i++) {
    const port *p = &c->model->outputs[i];
    if (p->is_open || p->typenum < 0) continue;
    heddle_tensor *view = NULL, *t = NULL;
    if (heddle_executor_view_output(c->slot->ex, p->index, &view, NULL) == HEDDLE_OK &&
        heddle_tensor_create(NULL, heddle_tensor_dtype(view), heddle_tensor_shape(view), heddle_tensor_ndim(view), &t,
                             NULL) == HEDDLE_OK &&
        heddle_executor_bind_output(c->slot->ex, p->index, t, NULL) == HEDDLE_OK) {
      c->slot->outputs[i].stage = t;
      t = NULL;
    }
    heddle_tensor_release(t);
    heddle_tensor_release(view);
  }
  c->slot->has_run = true;
}

/* ---- the whole */

static int run_call(call *c, uint64_t timeout_ns) {
  heddle_py_model *model = c->model;
  for (uint32_t i = 0; i < model->n_inputs; i++)
    if (set_input(c, i) < 0) return -1;
  if (lend_outputs(c) < 0) return -1;
  bool is_over = true;
  heddle_status s = heddle_py_run(c->slot->ex, true, timeout_ns, model->file, &is_over);
  if (!is_over) is_over = heddle_py_cancel(c->slot->ex);
  if (!is_over && model->lends) leave_lent(c);
  if (s != HEDDLE_OK) return is_over && s != HEDDLE_EDEVICE && s != HEDDLE_EINTERNAL ? -1 : -2;
  for (uint32_t i = 0; i < model->n_outputs; i++)
    if (fetch(c, i) < 0) return -1;
  if (!c->slot->has_run) bind_stages(c);
  return 0;
}

static int perform(call *c, uint64_t timeout_ns) {
  heddle_py_model *model = c->model;
  for (uint32_t i = 0; i < model->n_inputs; i++) {
    if (c->sources[i].object != NULL) continue;
    heddle_py_say_missing(model, model->inputs[i].name);
    return -1;
  }
  c->slot = heddle_py_pool_take(model);
  if (c->slot == NULL) return -1;
  int result = run_call(c, timeout_ns);
  bool is_sound = result != -2;
  if (is_sound) is_sound = return_outputs(c);
  heddle_py_pool_give(model, c->slot, is_sound);
  heddle_py_drop_let_go();
  return result;
}

static int give_named(call *c, PyObject *name, PyObject *value) {
  heddle_py_model *model = c->model;
  int32_t i = heddle_py_port_find(model->inputs, model->n_inputs, name);
  if (i >= 0) return give(c, (uint32_t)i, value);
  heddle_py_say_unknown(model, name);
  return -1;
}

static PyObject *result_of(call *c) {
  uint32_t n = c->model->n_outputs;
  PyObject *result = n == 1 ? c->results[0] : PyTuple_New(n);
  for (uint32_t i = 0; result != NULL && i < n; i++) {
    if (n > 1) PyTuple_SetItem(result, i, c->results[i]);
    c->results[i] = NULL;
  }
  return result;
}

/* The values of a mapping, by name. */
static int give_items(call *c, PyObject *mapping) {
  PyObject *items = heddle_py_items(mapping);
  int failed = items == NULL ? -1 : 0;
  for (Py_ssize_t i = 0; failed == 0 && i < PyList_Size(items); i++) {
    PyObject *item = PyList_GetItem(items, i);
    failed = give_named(c, PyTuple_GetItem(item, 0), PyTuple_GetItem(item, 1));
  }
  Py_XDECREF(items);
  return failed;
}

/* Inputs in order, or one mapping of all names to values. */
static int give_positional(call *c, PyObject *args) {
  Py_ssize_t n = PyTuple_Size(args);
  int is_mapping = n == 1 ? heddle_py_is_mapping(PyTuple_GetItem(args, 0)) : 0;
  if (is_mapping != 0) return is_mapping < 0 ? -1 : give_items(c, PyTuple_GetItem(args, 0));
  if ((size_t)n > c->model->n_inputs) {
    heddle_py_fail_input(c->model, HEDDLE_EINVAL, NULL, "%zd inputs are given; the model has %u", n,
                         (unsigned)c->model->n_inputs);
    return -1;
  }
  int failed = 0;
  for (Py_ssize_t i = 0; failed == 0 && i < n; i++) failed = give(c, (uint32_t)i, PyTuple_GetItem(args, i));
  return failed;
}

PyObject *heddle_py_model_call(PyObject *self, PyObject *args, PyObject *kwargs) {
  heddle_py_model *model = (heddle_py_model *)self;
  if (!model->has_ports && heddle_py_ports_need(model) < 0) return NULL;
  call c;
  int failed = call_begin(&c, model);
  if (failed == 0) failed = give_positional(&c, args);
  Py_ssize_t at = 0;
  PyObject *name, *value;
  while (failed == 0 && kwargs != NULL && PyDict_Next(kwargs, &at, &name, &value)) failed = give_named(&c, name, value);
  if (failed == 0) failed = perform(&c, HEDDLE_FOREVER);
  PyObject *result = failed == 0 ? result_of(&c) : NULL;
  call_end(&c);
  return result;
}

static PyObject *dict_of(call *c) {
  PyObject *result = PyDict_New();
  for (uint32_t i = 0; result != NULL && i < c->model->n_outputs; i++)
    if (PyDict_SetItem(result, c->model->outputs[i].name, c->results[i]) < 0) Py_CLEAR(result);
  return result;
}

/* The results of the outputs that `wanted` names, in that order; of all where it is empty. */
static PyObject *list_of(call *c, PyObject *wanted) {
  heddle_py_model *model = c->model;
  Py_ssize_t n = PyTuple_Size(wanted), count = n > 0 ? n : (Py_ssize_t)model->n_outputs;
  PyObject *list = PyList_New(count);
  for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
    int32_t at = n > 0 ? heddle_py_port_find(model->outputs, model->n_outputs, PyTuple_GetItem(wanted, i)) : (int32_t)i;
    PyList_SetItem(list, i, Py_NewRef(c->results[at]));
  }
  return list;
}

/* wanted: NULL for a dict of all results; else a tuple for a list of them. */
static PyObject *run_with(heddle_py_model *model, PyObject *wanted, PyObject *inputs, uint64_t timeout_ns) {
  call c;
  int failed = call_begin(&c, model);
  if (failed == 0) failed = give_items(&c, inputs);
  if (failed == 0) failed = perform(&c, timeout_ns);
  PyObject *result = failed != 0 ? NULL : wanted != NULL ? list_of(&c, wanted) : dict_of(&c);
  call_end(&c);
  return result;
}

PyObject *heddle_py_model_run(PyObject *self, PyObject *inputs, uint64_t timeout_ns) {
  heddle_py_model *model = (heddle_py_model *)self;
  if (!model->has_ports && heddle_py_ports_need(model) < 0) return NULL;
  return run_with(model, NULL, inputs, timeout_ns);
}

PyObject *heddle_py_model_run_list(PyObject *self, PyObject *outputs, PyObject *inputs, uint64_t timeout_ns) {
  heddle_py_model *model = (heddle_py_model *)self;
  if (!model->has_ports && heddle_py_ports_need(model) < 0) return NULL;
  PyObject *wanted = outputs == Py_None ? PyTuple_New(0) : PySequence_Tuple(outputs), *result = NULL;
  bool is_known = wanted != NULL;
  for (Py_ssize_t i = 0; is_known && i < PyTuple_Size(wanted); i++) {
    PyObject *name = PyTuple_GetItem(wanted, i);
    is_known = heddle_py_port_find(model->outputs, model->n_outputs, name) >= 0;
    if (!is_known) heddle_py_say_unknown_output(model, name);
  }
  if (is_known) result = run_with(model, wanted, inputs, timeout_ns);
  Py_XDECREF(wanted);
  return result;
}
