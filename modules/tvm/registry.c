/* modules/tvm/registry.c: functions by name, of this process: those that are always there, and what the application
 * registers. */
#include "modules/tvm/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

typedef struct entry {
  char *name;
  heddle_function *f;
  bool pinned; /* compiled code may hold it: its reference is never given back */
} entry;

/* Sorted by name. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest; a leaf */
static entry *entries;
static size_t n_entries, room;
static heddle_function **held; /* that have no name any more, and compiled code may still hold */
static size_t n_held;
static bool has_builtins;

#define BUILTIN(text, function) \
  { .mark = HEDDLE__FUNCTION_MARK, .name = text, .call = function }

static heddle_function builtins[] = {
    BUILTIN("__tvm_set_device", heddle__tvm_set_device),
    BUILTIN("device_api.opencl.alloc_nd", heddle__tvm_alloc_image),
    BUILTIN("device_api.opencl.free_nd", heddle__tvm_free_image),
    BUILTIN("ffi.SystemLib", heddle__tvm_system_lib),
    BUILTIN("module._GetSystemLib", heddle__tvm_system_lib),
    BUILTIN("module.loadfile_so", heddle__tvm_load_so),
    BUILTIN("nnvm.compiler._load_param_dict", heddle__params_load),
    BUILTIN("nnvm.compiler._save_param_dict", heddle__params_save),
    BUILTIN("runtime.GetDeviceAttr", heddle__tvm_device_attr),
    BUILTIN("runtime.LoadParams", heddle__params_load),
    BUILTIN("runtime.ModuleLoadFromFile", heddle__tvm_load_file),
    BUILTIN("runtime.RPCTimeEvaluator", heddle__time_evaluator),
    BUILTIN("runtime.SaveParams", heddle__params_save),
    BUILTIN("runtime.SystemLib", heddle__tvm_system_lib),
    BUILTIN("runtime.TVMSetStream", heddle__tvm_set_stream),
    BUILTIN("runtime.module.loadfile_so", heddle__tvm_load_so),
    BUILTIN("tvm.contrib.sort.argsort", heddle__tvm_argsort),
    BUILTIN("tvm.contrib.sort.argsort_nms", heddle__tvm_argsort_nms),
    BUILTIN("tvm.contrib.sort.sort", heddle__tvm_sort),
    BUILTIN("tvm.contrib.sort.topk", heddle__tvm_topk),
    BUILTIN("tvm.graph_executor.create", heddle__executor_create),
    BUILTIN("tvm.graph_executor_debug.create", heddle__executor_create_debug),
    BUILTIN("tvm.graph_runtime.create", heddle__executor_create),
    BUILTIN("tvm.graph_runtime_debug.create", heddle__executor_create_debug),
    BUILTIN("tvm.relay._load_param_dict", heddle__params_load),
    BUILTIN("tvm.relay._save_param_dict", heddle__params_save),
};

/* The place of a name: where it is, or where it belongs. */
static size_t place(const char *name, bool *is_there) {
  size_t low = 0, high = n_entries;
  *is_there = false;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(entries[middle].name, name);
    if (order == 0) *is_there = true;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The reference of an entry that ends: to be released, NULL where it is never given back. */
static heddle_function *let_go(const entry *e) {
  if (!e->pinned) return e->f;
  heddle_function **more = heddle__grow((void *)held, n_held, n_held + 1, sizeof(void *));
  if (more == NULL) return NULL; /* it stays, and nothing but that code knows */
  held = more;
  held[n_held++] = e->f;
  return NULL;
}

/* Takes a reference over; *old is then the caller's to release, when the lock is gone. */
static bool insert(const char *name, heddle_function *f, heddle_function **old) {
  bool is_there;
  size_t at = place(name, &is_there);
  if (is_there) {
    *old = let_go(&entries[at]);
    entries[at].f = f;
    entries[at].pinned = false;
    return true;
  }
  if (n_entries == room) {
    entry *more = heddle__grow(entries, room, room + 32, sizeof *entries);
    if (more == NULL) return false;
    entries = more;
    room += 32;
  }
  char *copy = heddle__strndup(name, strlen(name));
  if (copy == NULL) return false;
  memmove(&entries[at + 1], &entries[at], (n_entries - at) * sizeof *entries);
  entries[at] = (entry){.name = copy, .f = f};
  n_entries++;
  return true;
}

/* Locked. Without memory some names are missing until the next try. */
static void enter(void) {
  pthread_mutex_lock(&lock);
  if (has_builtins) return;
  has_builtins = true;
  for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
    bool is_there;
    heddle_function *old;
    (void)place(builtins[i].name, &is_there);
    if (!is_there && !insert(builtins[i].name, &builtins[i], &old)) has_builtins = false;
  }
}

static heddle_function *find_registered(const char *name, bool pin) {
  bool is_there;
  enter();
  size_t at = place(name, &is_there);
  heddle_function *f = is_there ? entries[at].f : NULL;
  if (f != NULL && pin) entries[at].pinned = true;
  else heddle__function_retain(f);
  pthread_mutex_unlock(&lock);
  return f;
}

heddle_function *heddle__registry_find(const char *name) {
  return find_registered(name, false);
}

heddle_function *heddle__registry_pin(const char *name) {
  return find_registered(name, true);
}

bool heddle__registry_set(const char *name, heddle_function *f, bool override) {
  char words[300];
  bool is_there;
  heddle_function *old = NULL;
  enter();
  (void)place(name, &is_there);
  bool taken = is_there && !override;
  bool good = !taken && insert(name, heddle__function_retain(f), &old);
  pthread_mutex_unlock(&lock);
  heddle__function_release(old);
  if (good) return true;
  snprintf(words, sizeof words, taken ? "function '%.200s' is registered already" : "'%.200s': out of memory", name);
  if (!taken) heddle__function_release(f);
  heddle__tvm_say(NULL, words);
  return false;
}

bool heddle__registry_remove(const char *name) {
  bool is_there;
  enter();
  size_t at = place(name, &is_there);
  entry gone = is_there ? entries[at] : (entry){0};
  heddle_function *old = is_there ? let_go(&gone) : NULL;
  if (is_there) memmove(&entries[at], &entries[at + 1], (--n_entries - at) * sizeof *entries);
  pthread_mutex_unlock(&lock);
  heddle__function_release(old);
  heddle__free(gone.name);
  return is_there;
}

const char **heddle__registry_names(int *n) {
  enter();
  size_t bytes = n_entries * sizeof(char *);
  for (size_t i = 0; i < n_entries; i++) bytes += strlen(entries[i].name) + 1;
  const char **names = heddle__alloc(bytes, 1);
  char *at = names != NULL ? (char *)(uintptr_t)(names + n_entries) : NULL;
  for (size_t i = 0; i < n_entries && names != NULL; i++) {
    names[i] = at;
    at = stpcpy(at, entries[i].name) + 1;
  }
  *n = names != NULL ? (int)n_entries : 0;
  pthread_mutex_unlock(&lock);
  return names;
}
