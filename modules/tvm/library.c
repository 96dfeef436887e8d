/* modules/tvm/library.c: opens a compiled library, from a file or from what the program's own objects registered: fills
 * the pointers that its code calls through, and reads the modules that it carries.
 * The file is looked at, not trusted to be well-formed; its code is trusted as the program's own. */
#define _GNU_SOURCE /* dlopen's flags */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/launch.h"
#include "modules/tvm/syslib.h"

/* What is open in this process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static heddle__tvm_library *all;

typedef void (*any_fn)(void);

/* The variables that libraries of one generation or another have; each is filled where it is there. */
static const struct pointer {
  char name[36];
  any_fn function;
} pointers[] = {
    {"__TVMFuncCall", (any_fn)heddle__tvm_call_packed},
    {"__TVMAPISetLastError", (any_fn)heddle__tvm_set_last_error},
    {"__TVMBackendGetFuncFromEnv", (any_fn)heddle__tvm_lookup},
    {"__TVMBackendAllocWorkspace", (any_fn)heddle__tvm_alloc_workspace},
    {"__TVMBackendFreeWorkspace", (any_fn)heddle__tvm_free_workspace},
    {"__TVMBackendParallelLaunch", (any_fn)heddle__tvm_parallel_launch},
    {"__TVMBackendParallelBarrier", (any_fn)heddle__tvm_parallel_barrier},
    {"__TVMFFIFunctionCall", (any_fn)heddle__tvm_call_ffi},
    {"__TVMFFIErrorSetRaisedFromCStr", (any_fn)heddle__tvm_raise},
    {"__TVMFFIErrorSetRaisedFromCStrParts", (any_fn)heddle__tvm_raise_parts},
    {"__TVMFFIEnvModLookupFromImports", (any_fn)heddle__tvm_lookup},
    {"__TVMFFIHandleInitOnce", (any_fn)heddle__tvm_init_once},
};

static heddle_status fill(heddle__tvm_library *l, const char *name, const void *value, heddle_error *err) {
  heddle__symbol s;
  if (!heddle__symbol_find(&l->symbols, "", name, HEDDLE__SYMBOL_DATA, &s)) return HEDDLE_OK;
  if (!s.is_writable || s.room < sizeof value)
    return heddle__fail(err, HEDDLE_EFORMAT, "its variable %s is no pointer that can be written", name);
  memcpy(s.address, &value, sizeof value);
  return HEDDLE_OK;
}

/* Also where the same functions are imported by their plain names: whoever else offers those in this process knows nothing
 * of our libraries. */
static heddle_status fill_pointers(heddle__tvm_library *l, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < sizeof pointers / sizeof pointers[0] && s == HEDDLE_OK; i++) {
    void *code;
    any_fn function = pointers[i].function;
    if (l->era == HEDDLE__ERA_FFI21 && function == (any_fn)heddle__tvm_call_ffi)
      function = (any_fn)heddle__tvm_call_ffi21;
    memcpy(&code, &function, sizeof code);
    s = fill(l, pointers[i].name, code, err);
    if (s == HEDDLE_OK && l->handle != NULL && !heddle__image_rebind(&l->image, pointers[i].name + 2, code))
      s = heddle__fail(err, HEDDLE_EABI, "its imports cannot be written");
  }
  return s;
}

/* ---- what it carries */

/* External code generators leave constants for a function that takes them. Where there is none, nothing is to be done;
 * where there is one, it wants TVM's own C++ objects. */
static heddle_status check_constants(const heddle__tvm_library *l, const heddle__submodule *m, heddle_error *err) {
  const unsigned char *at = m->symbols.data;
  for (uint64_t i = 0; i < m->n_symbols; i++) {
    uint64_t n = 0;
    char name[256];
    heddle__symbol function;
    for (unsigned k = 0; k < 8; k++) n |= (uint64_t)at[k] << (8 * k);
    at += 8;
    int length = snprintf(name, sizeof name, "__init_%.*s", n < sizeof name ? (int)n : (int)sizeof name, at);
    at += n;
    if (length > 0 && (size_t)length < sizeof name &&
        heddle__symbol_find(&l->symbols, "", name, HEDDLE__SYMBOL_FUNCTION, &function))
      return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                          "its function %s takes constants as objects of TVM's own C++ library, which is not here: "
                          "compile the model without the external code generator that made it",
                          name);
  }
  return HEDDLE_OK;
}

/* Of memory of which nothing is known, as a program may register it, the blob's own length is taken. */
static uint64_t blob_room(const heddle__symbol *s) {
  const unsigned char *at = s->address;
  uint64_t n = 0;
  if (s->room != SIZE_MAX) return s->room;
  for (unsigned i = 0; i < 8; i++) n |= (uint64_t)at[i] << (8 * i);
  return n < SIZE_MAX / 4 ? 8 + n : 8;
}

static heddle_status read_blob(heddle__tvm_library *l, heddle_error *err) {
  static const char *const names[] = {"__tvm_dev_mblob", "__tvm_ffi_library_bin", "__tvm_ffi__library_bin"};
  static const heddle__blob_layout layouts[] = {HEDDLE__BLOB_PACKED, HEDDLE__BLOB_FFI21, HEDDLE__BLOB_FFI};
  heddle_status s = HEDDLE_OK;
  for (int i = 0; i < 3; i++) {
    heddle__symbol symbol;
    if (!heddle__symbol_find(&l->symbols, "", names[i], HEDDLE__SYMBOL_DATA, &symbol)) continue;
    s = heddle__blob_read(symbol.address, blob_room(&symbol), layouts[i], &l->blob, err);
    break;
  }
  const heddle__blob *b = &l->blob;
  l->imports = s == HEDDLE_OK ? heddle__alloc(b->n_modules, sizeof *l->imports) : NULL;
  if (s == HEDDLE_OK && l->imports == NULL) s = heddle__no_memory(err, "a compiled library's modules");
  for (uint32_t i = 0; i < b->n_modules && s == HEDDLE_OK; i++) {
    if (i != b->host) l->imports[l->n_imports++] = i;
    if (b->modules[i].n_symbols > 0) s = check_constants(l, &b->modules[i], err);
  }
  return s;
}

/* ---- opening and closing */

static void finish(heddle__tvm_library *l) {
  if (l == NULL) return;
  heddle__tensors_finish(&l->tensors);
  heddle__kernels_finish(l);
  heddle__blob_finish(&l->blob);
  heddle__free((void *)(uintptr_t)l->functions);
  heddle__free(l->imports);
  heddle__free(l->path);
  if (l->handle != NULL) dlclose(l->handle);
  heddle__free(l);
}

static heddle_status set_up(heddle__tvm_library *l, heddle_error *err) {
  static const char *const contexts[] = {"__tvm_module_ctx", "__tvm_ffi_library_ctx", "__tvm_ffi__library_ctx"};
  heddle_status s = heddle__library_era(l, &l->era, err);
  if (s == HEDDLE_OK && !heddle__tensors_init(&l->tensors)) s = heddle__no_memory(err, "a compiled library");
  if (s == HEDDLE_OK) s = heddle__library_list(l, err);
  if (s == HEDDLE_OK) s = read_blob(l, err);
  if (s == HEDDLE_OK) s = heddle__kernels_init(l, err);
  if (s == HEDDLE_OK) s = fill_pointers(l, err);
  for (int i = 0; i < 3 && s == HEDDLE_OK; i++) {
    if (l->handle != NULL) {
      s = fill(l, contexts[i], l, err);
      continue;
    }
    const char *wrong = heddle__system_bind(l->symbols.prefix, contexts[i], l);
    if (wrong != NULL)
      s = heddle__fail(err, HEDDLE_EFORMAT, "its variable %s is no pointer that can be written", wrong);
  }
  return s;
}

/* Enters a library that is set up, with one user; what could not be set up is finished. Locked. */
static heddle_status enter(heddle__tvm_library **l, heddle_status s) {
  if (s == HEDDLE_OK) {
    (*l)->users = 1;
    (*l)->next = all;
    all = *l;
  } else {
    finish(*l);
    *l = NULL;
  }
  return s;
}

/* libheddle_tvm_ffi.so beside this library, with its names visible to all: it has those of tvm-ffi that code imports. */
static bool open_names(void) {
  char path[4096];
  Dl_info own;
  if (dladdr((const void *)(uintptr_t)&open_names, &own) == 0 || own.dli_fname == NULL) return false;
  const char *slash = strrchr(own.dli_fname, '/');
  int n = snprintf(path, sizeof path, "%.*s/libheddle_tvm_ffi.so.0", slash != NULL ? (int)(slash - own.dli_fname) : 1,
                   slash != NULL ? own.dli_fname : ".");
  return n > 0 && (size_t)n < sizeof path && dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) != NULL;
}

/* A name that is missing is said now; with lazy binding it would end the process when it is called. No code of a library
 * runs before all its names are found, so that it can be tried again. */
static heddle_status map_library(const char *path, void **out, heddle_error *err) {
  *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *words = *out == NULL ? dlerror() : NULL;
  if (words != NULL && strstr(words, ": TVMFFI") != NULL && open_names()) {
    *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    words = *out == NULL ? dlerror() : NULL;
  }
  if (*out != NULL) return HEDDLE_OK;
  if (words == NULL) words = "no reason given";
  return heddle__fail(err, HEDDLE_EABI, "it could not be loaded: %s%s", words,
                      strstr(words, ": _Z") != NULL && strstr(words, "3tvm") != NULL
                          ? " (that is of TVM's own C++ library, which is not here: compile the model without the "
                            "external code generator that made it)"
                          : "");
}

heddle_status heddle__library_open(const char *path, heddle__tvm_library **out, heddle_error *err) {
  void *handle = NULL;
  if (map_library(path, &handle, err) != HEDDLE_OK) return HEDDLE_EABI;
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&lock); /* held while it is set up, so that nobody finds half a library */
  heddle__tvm_library *l = all;
  while (l != NULL && l->handle != handle) l = l->next; /* no system library: their handles are NULL */
  if (l != NULL) {
    l->users++;
    dlclose(handle); /* the library's own stays */
  } else {
    l = heddle__alloc(1, sizeof *l);
    if (l != NULL) l->path = heddle__strndup(path, strlen(path));
    if (l != NULL) l->handle = handle;
    else dlclose(handle);
    s = l != NULL && l->path != NULL ? HEDDLE_OK : heddle__no_memory(err, "a compiled library");
    if (s == HEDDLE_OK && !heddle__image_of(handle, &l->image))
      s = heddle__fail(err, HEDDLE_EFORMAT, "it has no dynamic symbols that can be listed");
    if (s == HEDDLE_OK) {
      l->symbols = heddle__image_symbols(&l->image);
      s = set_up(l, err);
    }
    s = enter(&l, s);
  }
  pthread_mutex_unlock(&lock);
  *out = l;
  return s;
}

bool heddle__library_is_open(const void *pointer) {
  pthread_mutex_lock(&lock);
  const heddle__tvm_library *l = all;
  while (l != NULL && l != pointer) l = l->next;
  pthread_mutex_unlock(&lock);
  return l != NULL;
}

void heddle__library_close(heddle__tvm_library *l) {
  if (l == NULL) return;
  pthread_mutex_lock(&lock);
  heddle__tvm_library **link = &all;
  while (*link != l) link = &(*link)->next;
  bool last = --l->users == 0;
  if (last) {
    *link = l->next;
    finish(l);
  }
  pthread_mutex_unlock(&lock);
}

/* ---- the system library */

static void clear(heddle__tvm_library *l) {
  heddle__tensors_finish(&l->tensors);
  heddle__kernels_finish(l);
  heddle__blob_finish(&l->blob);
  heddle__free((void *)(uintptr_t)l->functions);
  heddle__free(l->imports);
  *l = (heddle__tvm_library){.next = l->next, .users = l->users, .path = l->path, .symbols = l->symbols};
}

/* One that nobody uses follows what was registered since. Where it carries modules, code may hold handles of theirs, and
 * only its list of functions is made anew. */
static heddle_status refresh(heddle__tvm_library *l, heddle_error *err) {
  uint64_t now = heddle__system_changes();
  if (l->users > 1 || l->changes == now) return HEDDLE_OK;
  l->changes = now;
  if (l->blob.n_modules > 0) return heddle__library_list(l, err);
  clear(l);
  heddle_status s = set_up(l, err);
  l->changes = s == HEDDLE_OK ? now : UINT64_MAX; /* which is never now: the next one tries again */
  return s;
}

static heddle__tvm_library *make_system(const char *prefix, heddle_error *err) {
  size_t n = strlen(prefix);
  heddle__tvm_library *l = heddle__alloc(1, sizeof *l);
  char *own = heddle__alloc(2 * n + 40, 1); /* two texts: the path, and behind it the prefix */
  if (l == NULL || own == NULL) {
    heddle__free(l);
    heddle__free(own);
    heddle__no_memory(err, "the system library");
    return NULL;
  }
  int used = sprintf(own, n > 0 ? "system library '%s'" : "system library%s", prefix) + 1;
  l->path = own;
  l->symbols = heddle__system_symbols(strcpy(own + used, prefix));
  return l;
}

heddle_status heddle__library_system(const char *prefix, heddle__tvm_library **out, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&lock);
  heddle__tvm_library *l = all;
  while (l != NULL && (l->handle != NULL || strcmp(l->symbols.prefix, prefix) != 0)) l = l->next;
  if (l == NULL) {
    l = make_system(prefix, err);
    if (l == NULL) s = HEDDLE_ENOMEM;
    else l->changes = heddle__system_changes();
    if (l != NULL) s = enter(&l, set_up(l, err)); /* the one user is the process */
  } else {
    s = refresh(l, err);
  }
  if (s == HEDDLE_OK) l->users++;
  pthread_mutex_unlock(&lock);
  *out = s == HEDDLE_OK ? l : NULL;
  return s;
}
