/* modules/module.c: the public calls about compiled libraries. The loaders are in libheddle_tvm.so beside libheddle,
 * opened when the first library is; nothing else of a process ever loads it. */
#define _GNU_SOURCE /* dladdr */
#include "modules/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/elf.h"
#include "core/error.h"
#include "core/log.h"
#include "core/pool.h"
#include "core/tensor.h"
#include "modules/call_device.h"

static const heddle__tvm_host host = {heddle__alloc, heddle__grow,     heddle__alloc_aligned,
                                      heddle__free,  heddle__pool_run, heddle__pool_threads};

const heddle__tvm_host *heddle_tvm_host(void) {
  return &host;
}

/* DIR/libheddle_tvm.so or DIR/../lib/libheddle_tvm.so, where DIR holds this code; false: there is none. */
static bool loader_path(char *path, size_t size) {
  Dl_info info;
  bool found = false;
  if (dladdr((const void *)(uintptr_t)&heddle_module_load, &info) == 0 || info.dli_fname == NULL) return false;
  char *real = realpath(info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe", NULL);
  char *slash = real != NULL ? strrchr(real, '/') : NULL;
  for (int i = 0; i < 2 && slash != NULL && !found; i++) {
    int n = snprintf(path, size, i == 0 ? "%.*s/libheddle_tvm.so.0" : "%.*s/../lib/libheddle_tvm.so.0",
                     (int)(slash - real), real);
    found = n > 0 && (size_t)n < size && access(path, R_OK) == 0;
  }
  free(real);
  return found;
}

static heddle_status open_loaders(const heddle__tvm_table **out, heddle_error *err) {
  char path[4096];
  if (!loader_path(path, sizeof path))
    return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                        "compiled libraries need libheddle_tvm.so.0, which is not beside libheddle: install it there");
  heddle_status s = heddle__elf_check(path, err);
  Dl_info own; /* the loaders stay for ever, so this code has to, which they call */
  if (dladdr((const void *)(uintptr_t)&open_loaders, &own) != 0 && own.dli_fname != NULL)
    (void)dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  /* Global, since compiled libraries import functions of it by plain name. */
  void *loaders = s == HEDDLE_OK ? dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) : NULL;
  if (s == HEDDLE_OK && loaders == NULL) {
    const char *words = dlerror();
    s = heddle__fail(err, HEDDLE_EABI, "it could not be loaded: %s", words != NULL ? words : "no reason given");
  }
  if (s == HEDDLE_OK) {
    heddle__tvm_entry_fn entry = NULL;
    void *symbol = dlsym(loaders, "heddle_tvm_entry");
    memcpy(&entry, &symbol, sizeof entry);
    *out = entry != NULL ? entry(&host) : NULL;
    if (*out == NULL || strcmp((*out)->version, heddle_version()) != 0)
      s = heddle__fail(err, HEDDLE_EABI, "it is of version %s, libheddle of %s", *out != NULL ? (*out)->version : "?",
                       heddle_version());
  }
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "%s: ", path);
}

/* A module whose loaders are open, of what open gave; s is what that said. */
static heddle_status make(heddle_context *ctx, heddle_module *m, heddle_status s, heddle_module **out,
                          heddle_error *err) {
  if (s == HEDDLE_OK && pthread_mutex_init(&m->lock, NULL) != 0) {
    m->t->close(m->library);
    s = heddle__no_memory(err, "a library");
  }
  if (s != HEDDLE_OK) {
    heddle__free(m);
    return s;
  }
  atomic_init(&m->references, 1);
  m->ctx = heddle_context_retain(ctx);
  *out = m;
  return s;
}

heddle_status heddle_module_load(heddle_context *ctx, const char *path, heddle_module **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the library: out is NULL");
  *out = NULL;
  if (ctx == NULL || path == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a library needs a context and a path");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  char *real = realpath(path, NULL); /* with a '/', so that dlopen searches nowhere */
  if (real == NULL)
    return heddle__fail(err, errno == ENOMEM ? HEDDLE_ENOMEM : HEDDLE_EIO, "%s: it cannot be opened (errno %d)", path,
                        errno);
  heddle_module *m = heddle__alloc(1, sizeof *m);
  s = m != NULL ? heddle__elf_check(real, err) : heddle__no_memory(err, "a library");
  if (s == HEDDLE_OK) s = open_loaders(&m->t, err);
  if (s == HEDDLE_OK) s = m->t->open(real, &m->library, err);
  free(real);
  s = make(ctx, m, s, out, err);
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "%s: ", path);
}

heddle_status heddle_module_system(heddle_context *ctx, const char *prefix, heddle_module **out, heddle_error *err) {
  char notes[300] = "";
  if (out == NULL || ctx == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "the system library needs a context and a place for it");
  *out = NULL;
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  heddle_module *m = heddle__alloc(1, sizeof *m);
  s = m != NULL ? open_loaders(&m->t, err) : heddle__no_memory(err, "a library");
  if (s == HEDDLE_OK) s = m->t->system(prefix != NULL ? prefix : "", &m->library, notes, sizeof notes, err);
  if (notes[0] != '\0') heddle__logf(heddle__context_log(ctx), HEDDLE_LOG_WARN, "module", "system library: %s", notes);
  s = make(ctx, m, s, out, err);
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "system library: ");
}

heddle_status heddle_module_register_loader(const char *kind, const heddle_module_loader *loader, void *self,
                                            heddle_error *err) {
  const heddle__tvm_table *t = NULL;
  if (kind == NULL || kind[0] == '\0') return heddle__fail(err, HEDDLE_EINVAL, "a loader needs a kind of modules");
  heddle_status s = open_loaders(&t, err);
  return s == HEDDLE_OK ? t->register_loader(kind, loader, self, err) : s;
}

heddle_module *heddle_module_retain(heddle_module *m) {
  atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
  return m;
}

void heddle_module_release(heddle_module *m) {
  if (m == NULL || atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) != 1) return;
  heddle__call_devices_close(m);
  pthread_mutex_destroy(&m->lock);
  m->t->close(m->library);
  heddle_context *ctx = m->ctx;
  heddle__free(m);
  heddle_context_release(ctx);
}

/* ---- what is in it */

/* Gives the caller as much of an answer as he knows of; struct_size keeps what he wrote. */
static heddle_status give(void *out, const void *answer, size_t bytes, heddle_error *err) {
  size_t theirs;
  memcpy(&theirs, out, sizeof theirs);
  if (theirs < sizeof theirs || theirs > 1 << 16)
    return heddle__fail(err, HEDDLE_EINVAL, "struct_size is %zu; set it to sizeof the struct", theirs);
  size_t n = theirs < bytes ? theirs : bytes;
  memcpy((char *)out + sizeof theirs, (const char *)answer + sizeof theirs, n - sizeof theirs);
  if (theirs > bytes) memset((char *)out + bytes, 0, theirs - bytes);
  return HEDDLE_OK;
}

heddle_status heddle_module_get_info(const heddle_module *m, heddle_module_info *out, heddle_error *err) {
  if (m == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "library info: module or out is NULL");
  heddle_module_info info = {.struct_size = sizeof info};
  m->t->info(m->library, &info);
  return give(out, &info, sizeof info, err);
}

const char *heddle_module_function(const heddle_module *m, uint32_t i) {
  return m != NULL ? m->t->function(m->library, i) : NULL;
}

heddle_status heddle_module_import(const heddle_module *m, uint32_t i, heddle_import_info *out, heddle_error *err) {
  if (m == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "import info: module or out is NULL");
  heddle_import_info info = {.struct_size = sizeof info};
  if (!m->t->import(m->library, i, &info))
    return heddle__fail(err, HEDDLE_ENOTFOUND, "the library has no import %u", (unsigned)i);
  return give(out, &info, sizeof info, err);
}

const char *heddle_module_kernel(const heddle_module *m, uint32_t import, uint32_t i) {
  return m != NULL ? m->t->kernel(m->library, import, i) : NULL;
}

heddle_status heddle_module_call(heddle_module *m, const char *function, const heddle_value *args, uint32_t n_args,
                                 heddle_value *result, heddle_error *err) {
  if (m == NULL || function == NULL || (n_args > 0 && args == NULL))
    return heddle__fail(err, HEDDLE_EINVAL, "a call needs a library, a function's name, and its arguments");
  heddle_status s = heddle__check_fork(err);
  heddle_value nothing;
  if (result == NULL) result = &nothing;
  memset(result, 0, sizeof *result);
  if (s != HEDDLE_OK) return s;
  heddle_device *dev = NULL;
  for (uint32_t i = 0; i < n_args; i++) {
    const heddle_tensor *t = args[i].kind == HEDDLE_VALUE_TENSOR ? args[i].of.t : NULL;
    if (t == NULL || t->dev == NULL || t->dev == dev) continue;
    if (dev != NULL)
      return heddle__fail(err, HEDDLE_EINVAL,
                          "argument %u is on %s, and one before it is on %s: a function runs on one", (unsigned)i,
                          t->dev->name, dev->name);
    dev = t->dev;
  }
  if (dev != NULL) return heddle__call_on_device(m, dev, function, args, n_args, result, err);
  heddle__tvm_caller caller = {.library = m->library, .pool = heddle__context_pool(m->ctx)};
  return m->t->call(&caller, NULL, function, args, n_args, result, err);
}
