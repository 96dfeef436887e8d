/* modules/tvm/loaders.c: registers loaders of the application, hands modules of unknown kinds to them, and calls the
 * functions of what they made. What compiled code passes is turned into the application's values on the stack. */
#include "modules/tvm/loaders.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"
#include "heddle/function.h"
#include "modules/tvm/convert.h"
#include "modules/tvm/launch.h"

/* One registration. Never freed: open libraries hold what it made. */
typedef struct loader {
  struct loader *next; /* older ones */
  heddle_module_loader calls;
  void *self;
  bool is_gone;         /* taken back; those before it count no more either */
  bool gives_functions; /* heddle__functions_loader */
  char kind[];
} loader;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all; a leaf */
static loader *all;

typedef struct function {
  heddle_function head;
  struct function *next;
  heddle__loaded *of;
  void *function;
  heddle_function *given; /* what a loader of functions gave, in the place of head; a reference */
  char name[];
} function;

struct heddle__loaded {
  const loader *by;
  void *module;
  pthread_mutex_t lock; /* guards functions; a leaf */
  function *functions;  /* that were asked for; the application may be called by several threads for one name */
};

/* ---- registering */

static heddle_status add(const char *kind, loader made, heddle_error *err) {
  if (heddle__blob_knows(kind))
    return heddle__fail(err, HEDDLE_EINVAL, "modules of kind '%.100s' are read by Heddle itself", kind);
  size_t n = strlen(kind) + 1;
  loader *l = heddle__alloc(1, sizeof *l + n);
  if (l == NULL) return heddle__no_memory(err, "a loader");
  *l = made;
  memcpy(l->kind, kind, n);
  pthread_mutex_lock(&lock);
  l->next = all;
  all = l;
  pthread_mutex_unlock(&lock);
  return HEDDLE_OK;
}

heddle_status heddle__loader_register(const char *kind, const heddle_module_loader *given, void *self,
                                      heddle_error *err) {
  heddle_module_loader calls = {.struct_size = sizeof calls};
  if (given != NULL) memcpy(&calls, given, given->struct_size < sizeof calls ? given->struct_size : sizeof calls);
  if (given != NULL && (calls.load == NULL || calls.release == NULL || calls.find == NULL || calls.call == NULL))
    return heddle__fail(err, HEDDLE_EINVAL,
                        "the loader of kind '%.100s' lacks one of load, release, find and call, or its struct_size",
                        kind);
  return add(kind, (loader){.calls = calls, .self = self, .is_gone = given == NULL}, err);
}

heddle_status heddle_function_register_loader(const char *kind, heddle_function *load, heddle_error *err) {
  if (kind == NULL || kind[0] == '\0') return heddle__fail(err, HEDDLE_EINVAL, "a loader needs a kind of modules");
  const loader made = {
      .calls = heddle__functions_loader, .self = load, .is_gone = load == NULL, .gives_functions = load != NULL};
  heddle_status s = add(kind, made, err);
  if (s == HEDDLE_OK) heddle_function_retain(load);
  return s;
}

static const loader *find_loader(const char *kind) {
  pthread_mutex_lock(&lock);
  const loader *l = all;
  while (l != NULL && strcmp(l->kind, kind) != 0) l = l->next;
  pthread_mutex_unlock(&lock);
  return l != NULL && !l->is_gone ? l : NULL;
}

/* ---- modules */

/* What TVM's own runtimes make of some kinds, which no loader of the application's is likely to. */
static const char *advice(const char *kind) {
  if (strstr(kind, "VMExecutable") != NULL || strcmp(kind, "relax.Executable") == 0)
    return "it is a program for TVM's virtual machine; Heddle runs graphs, and calls functions of libraries";
  return "no plugin serves it; register a loader for that kind (heddle_module_register_loader), or compile the model "
         "without it";
}

static heddle_status load(const char *kind, const unsigned char *data, uint64_t bytes, uint64_t *used,
                          heddle__loaded **out, heddle_error *err) {
  const loader *by = find_loader(kind);
  if (by == NULL)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "it carries a module of kind '%.100s', which nothing here reads: %s",
                        kind, advice(kind));
  heddle__loaded *m = heddle__alloc(1, sizeof *m);
  if (m == NULL || pthread_mutex_init(&m->lock, NULL) != 0) {
    heddle__free(m);
    return heddle__no_memory(err, "a module");
  }
  heddle_error why = {0};
  m->by = by;
  heddle_status s = by->calls.load(by->self, kind, data, bytes, used, &m->module, &why);
  if (s == HEDDLE_OK) {
    *out = m;
    return s;
  }
  pthread_mutex_destroy(&m->lock);
  heddle__free(m);
  if (why.text[0] == '\0') heddle__fail(&why, s, "its loader refused it, without words");
  heddle__prefix(&why, s, "its module of kind '%.100s': ", kind);
  if (err != NULL) *err = why;
  return s;
}

static void release(heddle__loaded *m) {
  if (m == NULL) return;
  while (m->functions != NULL) {
    function *f = m->functions;
    m->functions = f->next;
    heddle_function_release(f->given);
    heddle__free(f);
  }
  m->by->calls.release(m->by->self, m->module);
  pthread_mutex_destroy(&m->lock);
  heddle__free(m);
}

const heddle__blob_loaders heddle__loaders = {load, release};

const char *heddle__loaded_name(const heddle__loaded *m, uint32_t i) {
  return m->by->calls.name != NULL ? m->by->calls.name(m->by->self, m->module, i) : NULL;
}

heddle_status heddle__loaded_save(const heddle__loaded *m, void (*write)(void *to, const void *data, size_t bytes),
                                  void *to, bool *saves, heddle_error *err) {
  heddle_error why = {0};
  *saves = m->by->calls.save != NULL;
  if (!*saves) return HEDDLE_OK;
  heddle_status s = m->by->calls.save(m->by->self, m->module, write, to, &why);
  if (s == HEDDLE_OK) return s;
  if (why.text[0] == '\0') heddle__fail(&why, s, "its loader gave no reason");
  heddle__prefix(&why, s, "its module of kind '%.100s' could not be saved: ", m->by->kind);
  if (err != NULL) *err = why;
  return s;
}

/* ---- functions */

static int call(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                int32_t *ret_code);

static function *known(const heddle__loaded *m, const char *name) {
  function *f = m->functions;
  while (f != NULL && strcmp(f->name, name) != 0) f = f->next;
  return f;
}

static heddle_function *head_of(function *f) {
  return f->given != NULL ? f->given : &f->head;
}

heddle_status heddle__loaded_find(heddle__loaded *m, const char *name, heddle_function **out, heddle_error *err) {
  pthread_mutex_lock(&m->lock);
  function *f = known(m, name);
  pthread_mutex_unlock(&m->lock);
  *out = f != NULL ? head_of(f) : NULL;
  if (f != NULL) return HEDDLE_OK;
  void *theirs = NULL;
  heddle_function *given = NULL;
  if (m->by->gives_functions) {
    heddle_status s = heddle__functions_find(m->module, name, &given, err);
    if (s != HEDDLE_OK) return heddle__prefix(err, s, "its module of kind '%.100s': ", m->by->kind);
  } else {
    theirs = m->by->calls.find(m->by->self, m->module, name);
  }
  if (theirs == NULL && given == NULL) return HEDDLE_OK;
  size_t n = strlen(name) + 1;
  function *made = heddle__alloc(1, sizeof *made + n);
  if (made == NULL) {
    heddle_function_release(given);
    return heddle__no_memory(err, "a function of a module");
  }
  made->given = given;
  memcpy(made->name, name, n);
  made->head = (heddle_function){.mark = HEDDLE__FUNCTION_MARK, .name = made->name, .call = call, .self = made};
  made->of = m;
  made->function = theirs;
  pthread_mutex_lock(&m->lock);
  f = known(m, name); /* another thread may have been faster */
  if (f == NULL) {
    made->next = m->functions;
    m->functions = made;
  }
  pthread_mutex_unlock(&m->lock);
  *out = head_of(f != NULL ? f : made);
  if (f != NULL) {
    heddle_function_release(given);
    heddle__free(made);
  }
  return HEDDLE_OK;
}

heddle_status heddle__loaded_call(heddle_function *head, const heddle_value *args, uint32_t n, heddle_value *result,
                                  heddle_error *err) {
  if (head->call != call) return heddle_function_call(head, args, n, result, err);
  const function *f = head->self;
  const loader *by = f->of->by;
  heddle_error why = {0};
  *result = (heddle_value){.kind = HEDDLE_VALUE_NONE};
  heddle_status s = by->calls.call(by->self, f->of->module, f->function, args, n, result, &why);
  if (s == HEDDLE_OK) return s;
  heddle__fail(err, s, "%.900s", why.text[0] != '\0' ? why.text : "it failed, and left no words");
  if (err != NULL) err->api_code = why.api_code;
  return s;
}

/* ---- calls of compiled code */

/* A tensor for the time of a call. False: it is on a device that this thread does not run on, or is too deep. */
static bool see(const heddle__dltensor *t, heddle_tensor *out) {
  const heddle_device *dev = heddle__lane_device();
  bool on_cpu = t->device_type == HEDDLE_DEVICE_CPU;
  if (t->ndim < 0 || t->ndim > HEDDLE__TENSOR_MAX_NDIM) return false;
  if (!on_cpu && (dev == NULL || !heddle__is_type(dev->desc.type, t->device_type) || t->byte_offset != 0)) return false;
  *out = (heddle_tensor){.kind = HEDDLE__TENSOR_WRAPPED, .dtype = t->dtype, .ndim = (uint32_t)t->ndim, .count = 1};
  atomic_init(&out->references, 1);
  if (t->dtype.code == HEDDLE_DTYPE_UINT && t->dtype.bits == 1)
    out->dtype = (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, t->dtype.lanes};
  out->contiguous = true;
  for (uint32_t i = out->ndim; i-- > 0;) {
    out->shape[i] = t->shape[i];
    out->strides[i] = t->strides != NULL ? t->strides[i] : (int64_t)out->count;
    if (t->shape[i] != 1 && out->strides[i] != (int64_t)out->count) out->contiguous = false;
    out->count *= (uint64_t)t->shape[i];
  }
  out->bytes = out->count * (((uint64_t)out->dtype.bits * out->dtype.lanes + 7) / 8);
  if (on_cpu) {
    out->data = out->bytes > 0 ? (char *)t->data + t->byte_offset : NULL;
  } else {
    out->kind = HEDDLE__TENSOR_DEVICE;
    out->dev = (heddle_device *)(uintptr_t)dev;
    out->buffer = t->data;
  }
  return true;
}

/* A tensor is seen where it is; nothing is allocated for the others. */
static bool take(const heddle__word *args, const int32_t *codes, int32_t i, heddle_tensor *tensor, heddle_value *out) {
  heddle_tensor *none;
  if (codes[i] != PACKED_TENSOR && codes[i] != PACKED_NDARRAY)
    return heddle__word_to_value(args, codes, i, out, &none) == 0;
  *out = (heddle_value){.kind = HEDDLE_VALUE_TENSOR, .of.t = tensor};
  return args[i].p != NULL && see(args[i].p, tensor);
}

static bool give(const heddle_value *v, heddle__word *ret, int32_t *code) {
  switch (v->kind) {
  case HEDDLE_VALUE_NONE: return true;
  case HEDDLE_VALUE_INT: *code = PACKED_INT; break;
  case HEDDLE_VALUE_BOOL: *code = PACKED_INT; break; /* as all versions take it */
  case HEDDLE_VALUE_FLOAT: *code = PACKED_FLOAT; break;
  case HEDDLE_VALUE_STRING: *code = PACKED_STRING; break;
  case HEDDLE_VALUE_POINTER: *code = PACKED_HANDLE; break;
  default: return false;
  }
  ret->i = v->of.i;
  return true;
}

enum { FEW = 12, MOST = 128 };

static int refuse(const function *f, const char *why) {
  char words[400];
  snprintf(words, sizeof words, "function '%.200s' of its module of kind '%.60s' %s", f->name, f->of->by->kind, why);
  heddle__tvm_say(NULL, words);
  return -1;
}

static int call(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                int32_t *ret_code) {
  const function *f = self;
  heddle_value few_values[FEW], *values = few_values, result;
  heddle_tensor few_tensors[FEW], *tensors = few_tensors;
  heddle_error why = {0};
  bool good = n >= 0 && n <= MOST;
  if (good && n > FEW) { /* rare: an application's function with that many arguments */
    values = heddle__alloc((size_t)n, sizeof *values);
    tensors = heddle__alloc((size_t)n, sizeof *tensors);
    good = values != NULL && tensors != NULL;
  }
  for (int32_t i = 0; i < n && good; i++) good = take(args, codes, i, &tensors[i], &values[i]);
  int rc = good ? 0 : refuse(f, "is called with an argument that it cannot be given");
  if (good) {
    heddle_status s = heddle__loaded_call((heddle_function *)(uintptr_t)&f->head, values, (uint32_t)n, &result, &why);
    if (s != HEDDLE_OK) {
      heddle__tvm_say_error(f->name, &why);
      rc = -1;
    } else if (!give(&result, ret, ret_code)) {
      rc = refuse(f, "returned what compiled code cannot take");
    }
  }
  if (values != few_values) heddle__free(values);
  if (tensors != few_tensors) heddle__free(tensors);
  return rc;
}
