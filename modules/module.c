/* modules/module.c: the public calls about compiled libraries. The loaders are in libheddle_tvm.so beside libheddle,
 * opened when the first library is. */
#define _GNU_SOURCE /* dladdr */
#include "modules/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/elf.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/log.h"
#include "core/parts.h"
#include "core/pool.h"
#include "core/registry.h"
#include "core/tensor.h"
#include "core/whole_file.h"
#include "modules/call_device.h"

static const heddle__tvm_host host = {HEDDLE_TVM_LAYOUT, heddle__alloc,    heddle__grow,        heddle__alloc_aligned,
                                      heddle__free,      heddle__pool_run, heddle__pool_threads};

const heddle__tvm_host *heddle_tvm_host(void) {
  return &host;
}

heddle_status heddle__tvm_check(const void *table, heddle_error *err) {
  const char *layout = table != NULL ? *(const char *const *)table : NULL;
  if (layout != NULL && strcmp(layout, HEDDLE_TVM_LAYOUT) == 0) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EABI,
                      "it is of another build than libheddle (layout %.20s, libheddle has %s): install "
                      "both from one build",
                      layout != NULL ? layout : "unknown", HEDDLE_TVM_LAYOUT);
}

#if HEDDLE_HAS_TVM
#define LIBRARY "libheddle_tvm.so.0"

/* FOLDER/NAME or FOLDER/../lib/NAME, of libheddle's folder, so that a build tree and an installation that was moved both
 * work; freed with heddle__free. */
static heddle_status find_loaders(char **out, heddle_error *err) {
  char *folder = heddle__own_folder(), *path = NULL;
  int i = 0;
  for (; i < 2 && folder != NULL; i++) {
    heddle__free(path);
    path = heddle__format("%s/%s" LIBRARY, folder, i == 0 ? "" : "../lib/");
    if (path == NULL || access(path, R_OK) == 0) break;
  }
  heddle__free(folder);
  *out = path;
  if (path == NULL) return heddle__no_memory(err, LIBRARY);
  if (i < 2) return HEDDLE_OK;
  heddle__free(path);
  return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                      "compiled libraries need " LIBRARY ", which is not beside libheddle: install it there");
}

/* Global, since compiled libraries import functions of it by plain name. The library is never unloaded and calls back into
 * this code, so this code stays mapped too. */
heddle_status heddle__tvm_open(const heddle__tvm_table **out, heddle_error *err) {
  Dl_info own;
  char *path;
  heddle_status s = find_loaders(&path, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__elf_check(path, err);
  if (dladdr((const void *)(uintptr_t)&heddle__tvm_open, &own) != 0 && own.dli_fname != NULL)
    (void)dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  void *library = s == HEDDLE_OK ? dlopen(path, RTLD_NOW | RTLD_NODELETE | RTLD_GLOBAL) : NULL;
  if (s == HEDDLE_OK && library == NULL) {
    const char *words = dlerror();
    s = heddle__fail(err, HEDDLE_EABI, "it could not be loaded: %s", words != NULL ? words : "no reason given");
  }
  if (s == HEDDLE_OK) {
    const void *(*enter)(const void *given) = NULL;
    void *symbol = dlsym(library, "heddle_tvm_entry");
    memcpy(&enter, &symbol, sizeof enter);
    const void *table = enter != NULL ? enter(&host) : NULL;
    s = heddle__tvm_check(table, err);
    *out = table;
  }
  if (s != HEDDLE_OK) heddle__prefix(err, s, "%s: ", path);
  heddle__free(path);
  return s;
}
#else
heddle_status heddle__tvm_open(const heddle__tvm_table **out, heddle_error *err) {
  *out = NULL;
  return heddle__left_out(err, "loaders of compiled libraries", "HEDDLE_TVM");
}
#endif

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

#if HEDDLE_HAS_TVM
heddle_status heddle__module_load(heddle_context *ctx, heddle__sealed *file, heddle_module **out, heddle_error *err) {
  char *real = realpath(file->name, NULL); /* with a '/', so that dlopen searches nowhere */
  if (real == NULL) {
    heddle__sealed_close(file);
    return heddle__fail(err, errno == ENOMEM ? HEDDLE_ENOMEM : HEDDLE_EIO, "%s: it cannot be opened (errno %d)",
                        file->name, errno);
  }
  heddle_status s = HEDDLE_OK;
  const char *path = file->file >= 0 ? file->use : real;
  heddle_module *m = heddle__alloc(1, sizeof *m);
  if (m == NULL) s = heddle__no_memory(err, "a library");
  else s = file->is_verified ? heddle__elf_check_alone(path, err) : heddle__elf_check(path, err);
  if (s == HEDDLE_OK) s = heddle__tvm_open(&m->t, err);
  if (s == HEDDLE_OK) s = m->t->open(path, real, &m->library, err);
  free(real);
  if (s == HEDDLE_OK) {
    m->file = *file;
    m->file.name = m->file.use = NULL;
  }
  s = make(ctx, m, s, out, err);
  if (s == HEDDLE_OK) return s;
  heddle__sealed_close(file);
  return heddle__prefix(err, s, "%s: ", file->name);
}

/* The next memory file may get the same name, by which the loader would take a library that is still mapped for it. */
static void close_file(const heddle__sealed *file) {
  char path[sizeof file->own];
  if (file->file < 0) return;
  memcpy(path, file->own, sizeof path);
  void *still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (still != NULL) dlclose(still);
  else close(file->file);
}
#else
heddle_status heddle__module_load(heddle_context *ctx, heddle__sealed *file, heddle_module **out, heddle_error *err) {
  (void)ctx, (void)out;
  heddle__sealed_close(file);
  heddle_status s = heddle__left_out(err, "loaders of compiled libraries", "HEDDLE_TVM");
  return heddle__prefix(err, s, "%s: ", file->name);
}

static void close_file(const heddle__sealed *file) {
  (void)file;
}
#endif

heddle_status heddle_module_open(heddle_context *ctx, const char *path, const heddle_module_options *options,
                                 heddle_module **out, heddle_error *err) {
  heddle__sealed file;
  heddle_module_options o = {.struct_size = sizeof o};
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the library: out is NULL");
  *out = NULL;
  if (ctx == NULL || path == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a library needs a context and a path");
  heddle_status s = heddle__check_fork(err);
  if (options != NULL) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  if (s == HEDDLE_OK) s = heddle__trust_given(o.trust, err);
  if (s != HEDDLE_OK) return s;
  const heddle__file_access access = heddle__access_of(ctx, o.trust, o.key);
  s = heddle__sealed_open(path, &access, UINT64_MAX, &file, err);
  return s == HEDDLE_OK ? heddle__module_load(ctx, &file, out, err) : s;
}

heddle_status heddle_module_load(heddle_context *ctx, const char *path, heddle_module **out, heddle_error *err) {
  return heddle_module_open(ctx, path, NULL, out, err);
}

/* The path that it was loaded by may have another file by now: the code here and there would be two. */
heddle_status heddle__module_image(heddle_module *m, heddle_error *err) {
  heddle_module_info info = {.struct_size = sizeof info};
  if (m->is_system)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "functions of the program itself are in no file that could be sent");
  if (m->image != NULL) return HEDDLE_OK;
  heddle_status s = heddle_module_get_info(m, &info, err);
  return s == HEDDLE_OK ? heddle__file_read(m->file.file >= 0 ? m->file.own : info.path, UINT64_MAX, &m->image,
                                            &m->image_bytes, err)
                        : s;
}

heddle_status heddle__module_trusted(const heddle_module *m, const char *trust, heddle_error *err) {
  if (!HEDDLE_HAS_TVM || trust == NULL || m->is_system) return HEDDLE_OK; /* the program's own code */
  heddle_module_info info = {.struct_size = sizeof info};
  heddle_status s = heddle_module_get_info(m, &info, err);
  if (s != HEDDLE_OK) return s;
  if (!m->file.is_verified)
    return heddle__fail(
        err, HEDDLE_EDENIED,
        "%s: the library was loaded without verification, and the trust file %s demands that: load it in "
        "a context with the setting trust",
        info.path, trust);
  s = heddle__trust_accepts(trust, &m->file.signature, err);
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "%s: ", info.path);
}

heddle_status heddle_module_system(heddle_context *ctx, const char *prefix, heddle_module **out, heddle_error *err) {
  char notes[300] = "";
  if (out == NULL || ctx == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "the system library needs a context and a place for it");
  *out = NULL;
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  heddle_module *m = heddle__alloc(1, sizeof *m);
  s = m != NULL ? heddle__tvm_open(&m->t, err) : heddle__no_memory(err, "a library");
  if (m != NULL) m->file.file = -1, m->is_system = true;
  if (s == HEDDLE_OK) s = m->t->system(prefix != NULL ? prefix : "", &m->library, notes, sizeof notes, err);
  if (notes[0] != '\0') heddle__logf(heddle__context_log(ctx), HEDDLE_LOG_WARN, "module", "system library: %s", notes);
  s = make(ctx, m, s, out, err);
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "system library: ");
}

heddle_status heddle_module_register_loader(const char *kind, const heddle_module_loader *loader, void *self,
                                            heddle_error *err) {
  const heddle__tvm_table *t = NULL;
  if (kind == NULL || kind[0] == '\0') return heddle__fail(err, HEDDLE_EINVAL, "a loader needs a kind of modules");
  heddle_status s = heddle__tvm_open(&t, err);
  return s == HEDDLE_OK ? t->register_loader(kind, loader, self, err) : s;
}

heddle_module *heddle_module_retain(heddle_module *m) {
  atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
  return m;
}

void heddle_module_release(heddle_module *m) {
  if (!HEDDLE_HAS_TVM || m == NULL || atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) != 1) return;
  heddle__call_devices_close(m);
  pthread_mutex_destroy(&m->lock);
  m->t->close(m->library);
  close_file(&m->file);
  heddle__free(m->image);
  heddle_context *ctx = m->ctx;
  heddle__free(m);
  heddle_context_release(ctx);
}

/* ---- what is in it */

heddle_status heddle_module_get_info(const heddle_module *m, heddle_module_info *out, heddle_error *err) {
  if (m == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "library info: module or out is NULL");
  heddle_module_info info = {.struct_size = sizeof info};
  m->t->info(m->library, &info);
  return heddle__info_give(out, &info, sizeof info, err);
}

const char *heddle_module_function(const heddle_module *m, uint32_t i) {
  return m != NULL ? m->t->function(m->library, i) : NULL;
}

heddle_status heddle_module_import(const heddle_module *m, uint32_t i, heddle_import_info *out, heddle_error *err) {
  if (m == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "import info: module or out is NULL");
  heddle_import_info info = {.struct_size = sizeof info};
  if (!m->t->import(m->library, i, &info))
    return heddle__fail(err, HEDDLE_ENOTFOUND, "the library has no import %u", (unsigned)i);
  return heddle__info_give(out, &info, sizeof info, err);
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
      return heddle__fail_on(t->dev->name, err, HEDDLE_EINVAL,
                             "argument %u is on %s, and one before it is on %s: a function runs on one", (unsigned)i,
                             t->dev->name, dev->name);
    dev = t->dev;
  }
  if (dev != NULL) return heddle__call_on_device(m, dev, function, args, n_args, result, err);
  heddle__tvm_caller caller = {.library = m->library, .pool = heddle__context_pool(m->ctx)};
  return m->t->call(&caller, NULL, function, args, n_args, result, err);
}
