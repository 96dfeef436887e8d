/* bindings/python/src/generator.c: the type Generator, of which heddle.Generator is made. One call at a time uses the C
 * generator; cancel() may come from any thread. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "generator.h"

typedef heddle_py_generator generator;
typedef heddle_py_sampling sampling;

static PyTypeObject *generator_type;

heddle_py_generator *heddle_py_generator_of(PyObject *object) {
  if (Py_TYPE(object) == generator_type) return (generator *)object;
  PyErr_SetString(PyExc_TypeError, "a heddle.Generator is expected");
  return NULL;
}

static generator *generator_of(PyObject *self) {
  return (generator *)self;
}

static generator *new_of(PyObject *context, const char *file) {
  PyObject *self = HEDDLE_PY_FUNCTION(allocfunc, PyType_GetSlot(generator_type, Py_tp_alloc))(generator_type, 0);
  if (self == NULL) return NULL;
  generator_of(self)->context = Py_NewRef(context);
  generator_of(self)->file = strdup(file);
  if (generator_of(self)->file == NULL) {
    PyErr_NoMemory();
    Py_CLEAR(self);
  }
  return generator_of(self);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(generator_of(self)->context);
  return 0;
}

static void dealloc(PyObject *object) {
  generator *self = generator_of(object);
  PyObject_GC_UnTrack(object);
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  Py_BEGIN_ALLOW_THREADS;
  heddle_generator_release(self->g);
  Py_END_ALLOW_THREADS;
  Py_CLEAR(self->context);
  free(self->file);
  PyErr_Restore(kind, value, trace);
  heddle_py_free(object);
}

/* Between the two no other call uses the generator. */
static bool begin(generator *self) {
  if (!self->is_busy) return self->is_busy = true;
  heddle_py_fail_words(HEDDLE_EBUSY, "another thread uses the generator");
  return false;
}

static PyObject *end(generator *self, heddle_status s, const heddle_error *err) {
  self->is_busy = false;
  if (s != HEDDLE_OK) return heddle_py_fail(s, err, self->file);
  return PyErr_CheckSignals() == 0 ? Py_NewRef(Py_None) : NULL;
}

/* ---- open and fork */

static PyObject *open_generator(PyObject *module, PyObject *args) {
  PyObject *words, *named;
  heddle_py_options o;
  unsigned int max_length, chunk;
  heddle_error err = {0};
  (void)module;
  if (!PyArg_ParseTuple(args, "O!O!II", &PyTuple_Type, &words, &PyDict_Type, &named, &max_length, &chunk)) return NULL;
  if (heddle_py_options_parse(&o, words, named) < 0) return NULL;
  heddle_context *ctx = heddle_py_context_of(o.context);
  generator *self = ctx != NULL && o.path != NULL ? new_of(o.context, o.path) : NULL;
  if (self != NULL) {
    const heddle_generator_options options = {
        .struct_size = sizeof options, .model = &o.model, .max_length = max_length, .chunk = chunk};
    heddle_status s;
    heddle_context_retain(ctx);
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_generator_open(ctx, o.path, &options, &self->g, &err);
    heddle_context_release(ctx);
    Py_END_ALLOW_THREADS;
    if (s != HEDDLE_OK) {
      heddle_py_fail(s, &err, o.path);
      Py_DECREF((PyObject *)self);
      self = NULL;
    }
  }
  heddle_py_options_free(&o);
  return (PyObject *)self;
}

static PyObject *fork_it(PyObject *object, PyObject *none) {
  generator *self = generator_of(object), *made;
  heddle_error err = {0};
  heddle_status s;
  (void)none;
  if (!begin(self)) return NULL;
  made = new_of(self->context, self->file);
  if (made == NULL) {
    self->is_busy = false;
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_generator_fork(self->g, &made->g, &err);
  Py_END_ALLOW_THREADS;
  PyObject *done = end(self, s, &err);
  if (done == NULL) Py_CLEAR(made);
  Py_XDECREF(done);
  return (PyObject *)made;
}

static PyObject *speculate(PyObject *object, PyObject *args) {
  generator *self = generator_of(object);
  PyObject *draft;
  unsigned int count;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "OI", &draft, &count)) return NULL;
  if (draft != Py_None && Py_TYPE(draft) != generator_type) {
    PyErr_SetString(PyExc_TypeError, "the draft is a heddle.Generator, or None");
    return NULL;
  }
  if (!begin(self)) return NULL;
  const heddle_generator *of = draft != Py_None ? generator_of(draft)->g : NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_generator_speculate(self->g, of, count, &err);
  Py_END_ALLOW_THREADS;
  return end(self, s, &err);
}

/* ---- tokens */

static PyObject *append(PyObject *object, PyObject *tokens) {
  generator *self = generator_of(object);
  const heddle_dtype wanted = {HEDDLE_DTYPE_INT, 64, 1};
  heddle_tensor *t;
  heddle_error err = {0};
  if (heddle_py_tensor_of(tokens, &wanted, &t) < 0) return NULL;
  if (!heddle_tensor_is_contiguous(t) || heddle_tensor_ndim(t) != 1 || heddle_tensor_device(t) != NULL) {
    heddle_py_tensor_release(t);
    return heddle_py_fail_words(HEDDLE_EINVAL, "tokens are a list of whole numbers");
  }
  PyObject *done = NULL;
  if (begin(self)) {
    const heddle_status s = heddle_generator_append(self->g, heddle_tensor_data(t),
                                                    (size_t)(heddle_tensor_bytes(t) / sizeof(int64_t)), &err);
    done = end(self, s, &err);
  }
  heddle_py_tensor_release(t);
  return done;
}

static PyObject *truncate_it(PyObject *object, PyObject *args) {
  generator *self = generator_of(object);
  Py_ssize_t n;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "n", &n)) return NULL;
  if (n < 0) return heddle_py_fail_words(HEDDLE_EINVAL, "%zd tokens cannot be kept", n);
  if (!begin(self)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_generator_truncate(self->g, (size_t)n, &err);
  Py_END_ALLOW_THREADS;
  return end(self, s, &err);
}

static PyObject *tokens(PyObject *object, PyObject *none) {
  generator *self = generator_of(object);
  size_t n;
  (void)none;
  if (!begin(self)) return NULL;
  self->is_busy = false; /* the GIL is held until the list is made */
  const int64_t *all = heddle_generator_tokens(self->g, &n);
  PyObject *list = PyList_New((Py_ssize_t)n);
  for (size_t i = 0; list != NULL && i < n; i++) {
    PyObject *one = PyLong_FromLongLong(all[i]);
    if (one == NULL) Py_CLEAR(list);
    else PyList_SetItem(list, (Py_ssize_t)i, one);
  }
  return list;
}

static PyObject *length(PyObject *object, PyObject *none) {
  size_t n;
  (void)none;
  heddle_generator_tokens(generator_of(object)->g, &n);
  return PyLong_FromSize_t(n);
}

/* ---- logits and the next token */

static PyObject *evaluate(PyObject *object, PyObject *args) {
  generator *self = generator_of(object);
  unsigned long long timeout_ns;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "K", &timeout_ns) || !begin(self)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_generator_evaluate(self->g, timeout_ns, &err);
  Py_END_ALLOW_THREADS;
  return end(self, s, &err);
}

static PyObject *logits(PyObject *object, PyObject *args) {
  generator *self = generator_of(object);
  unsigned long long timeout_ns;
  heddle_tensor *t = NULL;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "K", &timeout_ns) || !begin(self)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_generator_logits(self->g, timeout_ns, &t, &err);
  Py_END_ALLOW_THREADS;
  PyObject *done = end(self, s, &err);
  if (done == NULL) {
    heddle_tensor_release(t);
    return NULL;
  }
  Py_DECREF(done);
  return heddle_py_tensor_new(t);
}

int heddle_py_sampling_parse(PyObject *given, sampling *out) {
  PyObject *biases;
  unsigned long long seed;
  unsigned int top_k;
  *out = (sampling){.s = {.struct_size = sizeof out->s}};
  heddle_sampling *s = &out->s;
  if (!PyArg_ParseTuple(given, "dIdddKO!", &s->temperature, &top_k, &s->top_p, &s->min_p, &s->repetition_penalty, &seed,
                        &PyList_Type, &biases))
    return -1;
  const Py_ssize_t n = PyList_Size(biases);
  s->top_k = top_k;
  s->seed = seed;
  if (n == 0) return 0;
  out->tokens = calloc((size_t)n, sizeof *out->tokens);
  out->biases = calloc((size_t)n, sizeof *out->biases);
  if (out->tokens == NULL || out->biases == NULL) PyErr_NoMemory();
  for (Py_ssize_t i = 0; !PyErr_Occurred() && i < n; i++) {
    long long token;
    if (!PyArg_ParseTuple(PyList_GetItem(biases, i), "Lf", &token, &out->biases[i])) break;
    out->tokens[i] = token;
  }
  s->n_biases = (uint32_t)n;
  s->bias_tokens = out->tokens;
  s->biases = out->biases;
  if (!PyErr_Occurred()) return 0;
  free(out->tokens);
  free(out->biases);
  return -1;
}

static PyObject *next(PyObject *object, PyObject *args) {
  generator *self = generator_of(object);
  PyObject *given;
  unsigned long long timeout_ns;
  sampling options;
  int64_t token = 0;
  heddle_error err = {0};
  heddle_status s = HEDDLE_EBUSY;
  if (!PyArg_ParseTuple(args, "O!K", &PyTuple_Type, &given, &timeout_ns) ||
      heddle_py_sampling_parse(given, &options) < 0)
    return NULL;
  const bool may = begin(self);
  if (may) {
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_generator_next(self->g, &options.s, timeout_ns, &token, &err);
    Py_END_ALLOW_THREADS;
  }
  free(options.tokens);
  free(options.biases);
  PyObject *done = may ? end(self, s, &err) : NULL;
  if (done == NULL) return NULL;
  Py_DECREF(done);
  return PyLong_FromLongLong(token);
}

static PyObject *sample(PyObject *module, PyObject *args) {
  PyObject *values, *before, *given;
  unsigned long long index;
  const heddle_dtype wanted = {HEDDLE_DTYPE_INT, 64, 1};
  heddle_tensor *row = NULL, *history = NULL;
  sampling options;
  int64_t token = 0;
  heddle_error err = {0};
  (void)module;
  if (!PyArg_ParseTuple(args, "OOKO!", &values, &before, &index, &PyTuple_Type, &given)) return NULL;
  if (heddle_py_tensor_of(values, NULL, &row) < 0 || heddle_py_tensor_of(before, &wanted, &history) < 0 ||
      heddle_py_sampling_parse(given, &options) < 0) {
    heddle_py_tensor_release(row);
    heddle_py_tensor_release(history);
    return NULL;
  }
  const size_t n = (size_t)(heddle_tensor_bytes(history) / sizeof(int64_t));
  const heddle_status s = heddle_sample(row, heddle_tensor_data(history), n, index, &options.s, &token, &err);
  free(options.tokens);
  free(options.biases);
  heddle_py_tensor_release(row);
  heddle_py_tensor_release(history);
  return s == HEDDLE_OK ? PyLong_FromLongLong(token) : heddle_py_fail(s, &err, NULL);
}

static PyObject *cancel(PyObject *object, PyObject *none) {
  (void)none;
  heddle_generator_cancel(generator_of(object)->g);
  Py_RETURN_NONE;
}

/* ---- what there is */

static PyObject *info(PyObject *object, PyObject *none) {
  generator *self = generator_of(object);
  heddle_generator_info i = {.struct_size = sizeof i};
  heddle_error err = {0};
  (void)none;
  if (!begin(self)) return NULL;
  const heddle_status s = heddle_generator_get_info(self->g, &i, &err);
  self->is_busy = false;
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, self->file);
  PyObject *stops = PyTuple_New((Py_ssize_t)i.n_stop_tokens);
  for (uint32_t k = 0; stops != NULL && k < i.n_stop_tokens; k++)
    PyTuple_SetItem(stops, (Py_ssize_t)k, PyLong_FromLongLong(i.stop_tokens[k]));
  if (stops == NULL || PyErr_Occurred()) return NULL;
  return Py_BuildValue("{s:s,s:s,s:N,s:I,s:I,s:I,s:L,s:L,s:K}", "type", i.type, "model_path", i.model_path,
                       "stop_tokens", stops, "vocabulary", i.vocabulary, "max_length", i.max_length, "layers", i.layers,
                       "bos_token", (long long)i.bos_token, "cache_rows", (long long)i.cache_rows, "cache_bytes",
                       (unsigned long long)i.cache_bytes);
}

static PyObject *stats(PyObject *object, PyObject *none) {
  generator *self = generator_of(object);
  heddle_generator_stats a = {.struct_size = sizeof a};
  heddle_error err = {0};
  (void)none;
  if (!begin(self)) return NULL;
  const heddle_status s = heddle_generator_get_stats(self->g, &a, &err);
  self->is_busy = false;
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, self->file);
#define NUMBER(name) #name, (unsigned long long)a.name
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", NUMBER(runs), NUMBER(computed), NUMBER(sampled),
                       NUMBER(all_ns), NUMBER(run_ns), NUMBER(sample_ns), NUMBER(guessed), NUMBER(accepted),
                       NUMBER(guess_ns));
}

static PyMethodDef methods[] = {
    {"fork", fork_it, METH_NOARGS, "Another generator with the same tokens; caches are shared."},
    {"speculate", speculate, METH_VARARGS, "speculate(draft, tokens)"},
    {"append", append, METH_O, "append(tokens): a row of int64"},
    {"truncate", truncate_it, METH_VARARGS, "truncate(n)"},
    {"tokens", tokens, METH_NOARGS, "The tokens: a list."},
    {"length", length, METH_NOARGS, "How many tokens there are."},
    {"evaluate", evaluate, METH_VARARGS, "evaluate(timeout_ns)"},
    {"logits", logits, METH_VARARGS, "logits(timeout_ns): a Tensor"},
    {"next", next, METH_VARARGS, "next(sampling, timeout_ns): a token"},
    {"cancel", cancel, METH_NOARGS, "Ends the call that computes, or else the next one."},
    {"info", info, METH_NOARGS, "What heddle_generator_info has, as a dict."},
    {"stats", stats, METH_NOARGS, "Counters, as a dict."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef functions[] = {
    {"open_generator", open_generator, METH_VARARGS, "open_generator((context, path), options, max_length, chunk)"},
    {"sample", sample, METH_VARARGS, "sample(logits, history, index, sampling): a token"},
    {NULL, NULL, 0, NULL},
};

int heddle_py_generator_init(PyObject *module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, (void *)"A language model and its tokens; heddle.Generator is made of it."},
      {Py_tp_dealloc, HEDDLE_PY_SLOT(dealloc)},
      {Py_tp_traverse, HEDDLE_PY_SLOT(traverse)},
      {Py_tp_methods, methods},
      {0, NULL},
  };
  PyType_Spec spec = {
      .name = "heddle._core.Generator",
      .basicsize = sizeof(generator),
      .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      .slots = slots,
  };
  generator_type = heddle_py_add_type(module, &spec);
  return generator_type != NULL && PyModule_AddFunctions(module, functions) == 0 ? 0 : -1;
}
