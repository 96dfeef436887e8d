/* bindings/python/src/context.c: contexts: settings, plugins, devices, and where the log goes. */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caller's function for the log. A libheddle context may live longer than its Context and still log, from any thread,
 * so this is never freed; the function is let go of with the Context, and lines are then dropped. */
typedef struct heddle_py_log {
  PyObject *function;
} heddle_py_log;

static void write_log(void *user, int32_t level, const char *component, const char *text) {
  heddle_py_log *log = user;
  if (heddle_py_ending()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *function = Py_XNewRef(log->function), *result = NULL;
  PyObject *words = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
  if (function != NULL && words != NULL) {
    result = PyObject_CallFunction(function, "isO", (int)level, component, words);
    if (result == NULL) PyErr_WriteUnraisable(function);
  }
  Py_XDECREF(result);
  Py_XDECREF(words);
  Py_XDECREF(function);
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

/* ---------------------------------------------------------------- construction */

/* {"devices": "sim:0"} as an array of settings whose strings belong to *kept. NULL with an exception. */
static heddle_setting *settings_of(PyObject *mapping, size_t *n, PyObject **kept) {
  PyObject *items = heddle_py_items(mapping);
  heddle_setting *out = NULL;
  *kept = PyList_New(0);
  *n = 0;
  if (items == NULL || *kept == NULL) goto failed;
  Py_ssize_t count = PyList_Size(items);
  out = calloc((size_t)count + 1, sizeof *out);
  if (out == NULL) {
    PyErr_NoMemory();
    goto failed;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *key, *value, *pair = PyList_GetItem(items, i);
    if (!PyArg_ParseTuple(pair, "UU;settings are str by str", &key, &value)) goto failed;
    PyObject *a = PyUnicode_AsUTF8String(key), *b = PyUnicode_AsUTF8String(value);
    int s = a == NULL || b == NULL || PyList_Append(*kept, a) < 0 || PyList_Append(*kept, b) < 0;
    if (!s) out[i] = (heddle_setting){PyBytes_AsString(a), PyBytes_AsString(b)};
    Py_XDECREF(a);
    Py_XDECREF(b);
    if (s) goto failed;
    if (strlen(out[i].key) + 1 != (size_t)PyBytes_Size(PyList_GetItem(*kept, 2 * i)) + 1 ||
        strlen(out[i].value) != (size_t)PyBytes_Size(PyList_GetItem(*kept, 2 * i + 1))) {
      PyErr_SetString(PyExc_ValueError, "a setting has a NUL character in it");
      goto failed;
    }
  }
  *n = (size_t)count;
  Py_DECREF(items);
  return out;
failed:
  Py_XDECREF(items);
  Py_CLEAR(*kept);
  free(out);
  return NULL;
}

static int context_init(PyObject *object, PyObject *args, PyObject *named) {
  static char *words[] = {"settings", "log", NULL};
  heddle_py_context *self = (heddle_py_context *)object;
  PyObject *mapping = Py_None, *function = Py_None, *kept = NULL;
  heddle_setting *settings = NULL;
  size_t n = 0;
  heddle_context *ctx = NULL;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTupleAndKeywords(args, named, "|OO:Context", words, &mapping, &function)) return -1;
  if (self->ctx != NULL) {
    PyErr_SetString(PyExc_TypeError, "a Context is made once");
    return -1;
  }
  if (function != Py_None && !PyCallable_Check(function)) {
    PyErr_SetString(PyExc_TypeError, "log is a function of (level, component, text), or None");
    return -1;
  }
  if (mapping != Py_None && (settings = settings_of(mapping, &n, &kept)) == NULL) return -1;
  heddle_py_log *log = NULL;
  if (function != Py_None) {
    log = calloc(1, sizeof *log);
    if (log != NULL) log->function = Py_NewRef(function);
  }
  Py_BEGIN_ALLOW_THREADS;
  if (settings == NULL && function == Py_None) s = heddle_context_process(&ctx, &err);
  else s = heddle_context_create(settings, n, log != NULL ? write_log : NULL, log, &ctx, &err);
  Py_END_ALLOW_THREADS;
  free(settings);
  Py_XDECREF(kept);
  if (s != HEDDLE_OK) {
    if (log != NULL) Py_CLEAR(log->function); /* and is kept, as a plugin's thread may still have it */
    heddle_py_fail(s, &err, NULL);
    return -1;
  }
  self->ctx = ctx;
  self->log = log;
  return 0;
}

/* The function may know what has the Context, or the Context. */
static int context_traverse(PyObject *object, visitproc visit, void *arg) {
  const heddle_py_context *self = (const heddle_py_context *)object;
  Py_VISIT(Py_TYPE(object));
  if (self->log != NULL) Py_VISIT(self->log->function);
  return 0;
}

static int context_clear(PyObject *object) {
  heddle_py_context *self = (heddle_py_context *)object;
  if (self->log != NULL) Py_CLEAR(self->log->function);
  return 0;
}

static void context_dealloc(PyObject *object) {
  heddle_py_context *self = (heddle_py_context *)object;
  PyObject_GC_UnTrack(object);
  heddle_context *ctx = self->ctx;
  Py_BEGIN_ALLOW_THREADS; /* the last release closes devices */
  heddle_context_release(ctx);
  Py_END_ALLOW_THREADS;
  if (self->log != NULL) Py_CLEAR(self->log->function);
  heddle_py_free(object);
}

static heddle_context *of(PyObject *self) {
  heddle_context *ctx = ((heddle_py_context *)self)->ctx;
  if (ctx == NULL) PyErr_SetString(PyExc_RuntimeError, "the Context was not made: its __init__ did not run");
  return ctx;
}

heddle_context *heddle_py_context_of(PyObject *object) {
  heddle_context *ctx = NULL;
  heddle_error err = {0};
  heddle_status s;
  if (object != NULL && object != Py_None) {
    if (PyObject_TypeCheck(object, heddle_py.context_type)) return of(object);
    PyErr_Format(PyExc_TypeError, "%R is no heddle.Context", object);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_context_process(&ctx, &err);
  if (s == HEDDLE_OK) heddle_context_release(ctx); /* the process keeps it */
  Py_END_ALLOW_THREADS;
  if (s == HEDDLE_OK) return ctx;
  heddle_py_fail(s, &err, NULL);
  return NULL;
}

/* ---------------------------------------------------------------- devices */

static int device_of_number(heddle_context *ctx, int type, int number, heddle_device **out) {
  heddle_error err = {0};
  heddle_status s;
  if (type == HEDDLE_DEVICE_CPU && number == 0) return 0;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_context_dlpack_device(ctx, type, number, out, &err);
  Py_END_ALLOW_THREADS;
  if (s == HEDDLE_OK) return 0;
  heddle_py_fail(s, &err, NULL);
  return -1;
}

int heddle_py_device_of(heddle_context *ctx, PyObject *object, heddle_device **out) {
  heddle_error err = {0};
  heddle_status s;
  int type, number;
  *out = NULL;
  if (object == NULL || object == Py_None) return 0;
  if (PyUnicode_Check(object)) {
    PyObject *bytes = PyUnicode_AsUTF8String(object);
    if (bytes == NULL) return -1;
    const char *name = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_context_find_device(ctx, name, out, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(bytes);
    if (s != HEDDLE_OK) heddle_py_fail(s, &err, NULL);
    return s == HEDDLE_OK ? 0 : -1;
  }
  if (PyTuple_Check(object)) {
    if (!PyArg_ParseTuple(object, "ii;a device is a name, or (type, number)", &type, &number)) return -1;
    return device_of_number(ctx, type, number, out);
  }
  PyObject *name = PyObject_GetAttrString(object, "_name"); /* of a Device that was made by name */
  PyErr_Clear();
  if (name != NULL && PyUnicode_Check(name)) {
    int found = heddle_py_device_of(ctx, name, out);
    Py_DECREF(name);
    return found;
  }
  Py_XDECREF(name);
  PyObject *a = PyObject_GetAttrString(object, "device_type");
  PyErr_Clear();
  PyObject *b = PyObject_GetAttrString(object, "device_id");
  PyErr_Clear();
  type = a != NULL ? (int)PyLong_AsLong(a) : -1;
  number = b != NULL ? (int)PyLong_AsLong(b) : -1;
  int known = a != NULL && b != NULL && !PyErr_Occurred();
  Py_XDECREF(a);
  Py_XDECREF(b);
  if (known) return device_of_number(ctx, type, number, out);
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "%R is no device: give a name such as 'sim:0', (type, number), or a heddle.Device",
               object);
  return -1;
}

static PyObject *uuid_text(const uint8_t uuid[16]) {
  char text[33];
  int any = 0;
  for (int i = 0; i < 16; i++) {
    snprintf(text + 2 * i, 3, "%02x", uuid[i]);
    any |= uuid[i];
  }
  return any ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

static PyObject *pci_text(const uint32_t pci[4]) {
  char text[48];
  if (pci[0] == UINT32_MAX) return Py_NewRef(Py_None);
  snprintf(text, sizeof text, "%04x:%02x:%02x.%x", (unsigned)pci[0], (unsigned)pci[1], (unsigned)pci[2],
           (unsigned)pci[3]);
  return PyUnicode_FromString(text);
}

static PyObject *device_dict(heddle_device *dev) {
  static const char *const found[] = {"untried", "works", "fails"};
  heddle_device_info i = {.struct_size = sizeof i};
  heddle_error err = {0};
  heddle_status s, health;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_device_get_info(dev, &i, &err);
  Py_END_ALLOW_THREADS;
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, NULL);
  health = heddle_device_health(dev, &err);
  const char *can[HEDDLE_ABILITIES];
  for (int k = 0; k < HEDDLE_ABILITIES; k++) can[k] = found[i.abilities[k] < 3 ? i.abilities[k] : 0];
  return Py_BuildValue(
      "{s:s,s:s,s:i,s:I,s:s,s:s,s:s,s:K,s:K,s:K,s:K,s:I,s:N,s:N,s:O,s:{s:s,s:s,s:s,s:s},s:s}", "name", i.name, "plugin",
      i.plugin, "type", (int)i.type, "index", (unsigned)i.index, "product", i.product, "driver", i.driver, "reason",
      i.reason, "caps", (unsigned long long)i.caps, "memory_bytes", (unsigned long long)i.memory_bytes,
      "max_buffer_bytes", (unsigned long long)i.max_buffer_bytes, "alignment", (unsigned long long)i.alignment,
      "compute_units", (unsigned)i.compute_units, "uuid", uuid_text(i.uuid), "pci", pci_text(i.pci), "default",
      i.is_default ? Py_True : Py_False, "abilities", "fence_wait", can[HEDDLE_ABILITY_FENCE_WAIT], "peer",
      can[HEDDLE_ABILITY_PEER], "import_host", can[HEDDLE_ABILITY_IMPORT_HOST], "from", i.abilities_from, "health",
      health == HEDDLE_OK ? "ok" : err.text);
}

/* Takes over item. 0, or -1 with an exception. */
static int append(PyObject *list, PyObject *item) {
  int s = item != NULL ? PyList_Append(list, item) : -1;
  Py_XDECREF(item);
  return s;
}

static PyObject *context_devices(PyObject *self, PyObject *none) {
  heddle_context *ctx = of(self);
  (void)none;
  if (ctx == NULL) return NULL;
  size_t n;
  Py_BEGIN_ALLOW_THREADS;
  n = heddle_context_device_count(ctx);
  Py_END_ALLOW_THREADS;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; i < n && list != NULL; i++)
    if (append(list, device_dict(heddle_context_device(ctx, i))) < 0) Py_CLEAR(list);
  return list;
}

static PyObject *context_device(PyObject *self, PyObject *key) {
  heddle_context *ctx = of(self);
  heddle_device *dev = NULL;
  if (ctx == NULL || heddle_py_device_of(ctx, key, &dev) < 0) return NULL;
  if (dev == NULL) { /* the host's memory, which is that of cpu */
    PyObject *name = PyUnicode_FromString("cpu");
    int s = name != NULL ? heddle_py_device_of(ctx, name, &dev) : -1;
    Py_XDECREF(name);
    if (s < 0) return NULL;
  }
  return device_dict(dev);
}

static PyObject *context_plugins(PyObject *self, PyObject *none) {
  heddle_context *ctx = of(self);
  (void)none;
  if (ctx == NULL) return NULL;
  size_t n;
  Py_BEGIN_ALLOW_THREADS;
  n = heddle_context_plugin_count(ctx);
  Py_END_ALLOW_THREADS;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; i < n && list != NULL; i++) {
    heddle_plugin_info p = {.struct_size = sizeof p};
    heddle_error err = {0};
    heddle_status s = heddle_context_plugin(ctx, i, &p, &err);
    if (s != HEDDLE_OK) {
      Py_DECREF(list);
      return heddle_py_fail(s, &err, NULL);
    }
    PyObject *item = Py_BuildValue("{s:s,s:s,s:O,s:s,s:s,s:s,s:(II),s:I,s:s}", "name", p.name, "path", p.path, "used",
                                   p.used ? Py_True : Py_False, "reason", p.reason, "found_by", p.found_by, "build",
                                   p.build, "abi", (unsigned)p.abi_major, (unsigned)p.abi_minor, "device_count",
                                   (unsigned)p.device_count, "manifest", p.manifest != NULL ? p.manifest : "");
    if (append(list, item) < 0) Py_CLEAR(list);
  }
  return list;
}

static PyObject *context_select(PyObject *self, PyObject *args) {
  heddle_context *ctx = of(self);
  const char *wanted = NULL;
  heddle_device *found[64];
  heddle_error err = {0};
  heddle_status s;
  size_t n = 0;
  if (ctx == NULL || !PyArg_ParseTuple(args, "|z:select", &wanted)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_context_select(ctx, wanted, found, sizeof found / sizeof found[0], &n, NULL, &err);
  Py_END_ALLOW_THREADS;
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, NULL);
  if (n > sizeof found / sizeof found[0])
    return heddle_py_fail_words(HEDDLE_ELIMIT, "%zu devices are chosen, at most 64 can be", n);
  PyObject *list = PyList_New(0);
  for (size_t i = 0; i < n && list != NULL; i++)
    if (append(list, PyUnicode_FromString(heddle_device_name(found[i]))) < 0) Py_CLEAR(list);
  return list;
}

/* ---------------------------------------------------------------- settings, health, traces */

static PyObject *context_setting(PyObject *self, PyObject *args) {
  heddle_context *ctx = of(self);
  const char *key, *value = NULL, *origin = NULL;
  heddle_error err = {0};
  if (ctx == NULL || !PyArg_ParseTuple(args, "s:setting", &key)) return NULL;
  heddle_status s = heddle_context_setting(ctx, key, &value, &origin, &err);
  if (s == HEDDLE_ENOTFOUND) Py_RETURN_NONE;
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, NULL);
  return Py_BuildValue("(ss)", value, origin);
}

static PyObject *context_settings(PyObject *self, PyObject *none) {
  heddle_context *ctx = of(self);
  PyObject *all = ctx != NULL ? PyDict_New() : NULL;
  const char *key, *value = NULL;
  (void)none;
  for (size_t i = 0; all != NULL && (key = heddle_context_setting_key(ctx, i)) != NULL; i++) {
    heddle_error err = {0};
    if (heddle_context_setting(ctx, key, &value, NULL, &err) != HEDDLE_OK)
      continue; /* neither given nor with a default */
    PyObject *text = PyUnicode_FromString(value);
    if (text == NULL || PyDict_SetItemString(all, key, text) < 0) Py_CLEAR(all);
    Py_XDECREF(text);
  }
  return all;
}

static PyObject *context_described(PyObject *self, PyObject *none) {
  heddle_context *ctx = of(self);
  PyObject *list = ctx != NULL ? PyList_New(0) : NULL;
  (void)none;
  for (size_t i = 0; list != NULL; i++) {
    heddle_setting_info info = {.struct_size = sizeof info};
    heddle_error err;
    heddle_status s;
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_context_described(ctx, i, &info, &err); /* the first one loads all plugins */
    Py_END_ALLOW_THREADS;
    if (s == HEDDLE_ENOTFOUND) break;
    if (s != HEDDLE_OK) {
      Py_DECREF(list);
      return heddle_py_fail(s, &err, NULL);
    }
    PyObject *one =
        Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:K,s:K,s:O}", "key", info.key, "type", info.type, "default",
                      info.default_value, "values", info.values, "help", info.help, "low", (unsigned long long)info.low,
                      "high", (unsigned long long)info.high, "per_device", info.per_device != 0 ? Py_True : Py_False);
    if (append(list, one) < 0) Py_CLEAR(list);
  }
  return list;
}

typedef heddle_status device_call(heddle_device *dev, heddle_error *err);

static PyObject *call_device(PyObject *self, PyObject *name, device_call *call) {
  heddle_context *ctx = of(self);
  heddle_device *dev = NULL;
  heddle_error err = {0};
  heddle_status s;
  if (ctx == NULL || heddle_py_device_of(ctx, name, &dev) < 0) return NULL;
  if (dev == NULL) Py_RETURN_NONE; /* the host's memory */
  Py_BEGIN_ALLOW_THREADS;
  s = call(dev, &err);
  Py_END_ALLOW_THREADS;
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, NULL);
  Py_RETURN_NONE;
}

static PyObject *context_health(PyObject *self, PyObject *name) {
  return call_device(self, name, heddle_device_health);
}

static PyObject *context_reopen(PyObject *self, PyObject *name) {
  return call_device(self, name, heddle_device_reopen);
}

static PyObject *context_trace_begin(PyObject *self, PyObject *none) {
  heddle_context *ctx = of(self);
  heddle_error err = {0};
  (void)none;
  if (ctx == NULL) return NULL;
  heddle_status s = heddle_trace_begin(ctx, &err);
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, NULL);
  Py_RETURN_NONE;
}

static PyObject *context_trace_write(PyObject *self, PyObject *args) {
  heddle_context *ctx = of(self);
  PyObject *path = NULL;
  heddle_error err = {0};
  heddle_status s;
  if (ctx == NULL || !PyArg_ParseTuple(args, "O&:trace_write", PyUnicode_FSConverter, &path)) return NULL;
  const char *name = PyBytes_AsString(path);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_trace_write(ctx, name, &err);
  Py_END_ALLOW_THREADS;
  if (s != HEDDLE_OK) heddle_py_fail(s, &err, name);
  Py_DECREF(path);
  if (s != HEDDLE_OK) return NULL;
  Py_RETURN_NONE;
}

static PyObject *context_prepared(PyObject *self, PyObject *args) {
  heddle_context *ctx = of(self);
  PyObject *path = NULL, *out = NULL;
  heddle_read_limits limits = {.struct_size = sizeof limits};
  heddle_params *params = NULL;
  heddle_error err = {0};
  char *text = NULL;
  heddle_status s;
  if (ctx == NULL ||
      !PyArg_ParseTuple(args, "O&|zz:prepared", PyUnicode_FSConverter, &path, &limits.trust, &limits.key))
    return NULL;
  const char *name = PyBytes_AsString(path);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_params_load(name, &limits, &params, &err);
  if (s == HEDDLE_OK) s = heddle_params_prepared(params, ctx, &text, &err);
  heddle_params_release(params);
  Py_END_ALLOW_THREADS;
  if (s == HEDDLE_OK) out = PyUnicode_FromString(text);
  else heddle_py_fail(s, &err, name);
  heddle_free(text);
  Py_DECREF(path);
  return out;
}

static PyMethodDef methods[] = {
    {"devices", context_devices, METH_NOARGS,
     "devices() -> list[dict]\n\nAll devices of all plugins, which are loaded for it; no device is opened. Each has "
     "name,\n"
     "plugin, type (DLPack's), index, product, driver, reason (why it is not chosen by default), caps, memory_bytes,\n"
     "max_buffer_bytes, alignment, compute_units, uuid and pci (or None), default, abilities, health ('ok' or words)."},
    {"device", context_device, METH_O,
     "device(key) -> dict\n\nOne device, as devices() has it: by name, (DLPack type, number), or a heddle.Device.\n"
     "NoDeviceError."},
    {"plugins", context_plugins, METH_NOARGS,
     "plugins() -> list[dict]\n\nAll candidates: name, path, used, reason (why not), found_by, build, abi, "
     "device_count,\n"
     "manifest."},
    {"select", context_select, METH_VARARGS,
     "select(devices=None) -> list[str]\n\nThe names of the devices that a list such as 'vulkan:0,cuda?,cpu' stands "
     "for, or\n"
     "that the settings choose. NoDeviceError for one that is required and missing."},
    {"setting", context_setting, METH_VARARGS,
     "setting(key) -> (value, origin) | None\n\nA setting, and where it came from: 'call', a variable, a file, "
     "'default'."},
    {"settings", context_settings, METH_NOARGS, "settings() -> dict[str, str]\n\nAll settings that have a value."},
    {"described", context_described, METH_NOARGS,
     "described() -> list[dict]\n\nThe settings that plugins have, as they describe them. Loads all plugins."},
    {"health", context_health, METH_O,
     "health(device)\n\nRaises DeviceLostError with the first words of a lost device."},
    {"reopen", context_reopen, METH_O,
     "reopen(device)\n\nOpens a lost device again; BusyError while a model or an executor uses it. Blocks."},
    {"prepared", context_prepared, METH_VARARGS,
     "prepared(path, trust=None, key=None) -> str\n\nWhat a packed graph carries that was prepared for devices, "
     "compared "
     "with those that are here, as JSON. Loads\ntheir plugins."},
    {"trace_begin", context_trace_begin, METH_NOARGS, "trace_begin()\n\nFrom here on the spans of runs are collected."},
    {"trace_write", context_trace_write, METH_VARARGS,
     "trace_write(path)\n\nWrites the spans as Chrome trace JSON and ends the collecting. Blocks; FileError."},
    {NULL, NULL, 0, NULL}};

int heddle_py_context_init(PyObject *module) {
  static PyType_Slot slots[] = {
      {Py_tp_init, HEDDLE_PY_SLOT(context_init)},
      {Py_tp_dealloc, HEDDLE_PY_SLOT(context_dealloc)},
      {Py_tp_traverse, HEDDLE_PY_SLOT(context_traverse)},
      {Py_tp_clear, HEDDLE_PY_SLOT(context_clear)},
      {Py_tp_methods, methods},
      {Py_tp_doc,
       "Context(settings=None, log=None)\n\nSettings, plugins and devices. Without arguments it is the process's one, "
       "which\n"
       "all calls use that are given none. settings: values by key, {'devices': 'sim:0'}, over variables and files.\n"
       "log(level, component, text): called from any thread, instead of lines on stderr, for as long as the Context\n"
       "lives. Blocks while plugins are looked for. InvalidError, FormatError (a configuration file), ForkError."},
      {0, NULL}};
  static PyType_Spec spec = {"heddle._core.Context", sizeof(heddle_py_context), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  heddle_py.context_type = heddle_py_add_type(module, &spec);
  return heddle_py.context_type != NULL ? 0 : -1;
}
