/* modules/module.c: the public calls about compiled libraries. The loaders are in libheddle_tvm.so beside libheddle,
 * opened when the first library is. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "modules/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/beside.h"
#include "core/elf.h"
#include "core/error.h"
#include "core/pool.h"
#include "core/tensor.h"
#include "modules/call_device.h"

static const heddle__tvm_host host = {heddle__alloc, heddle__grow,     heddle__alloc_aligned,
                                      heddle__free,  heddle__pool_run, heddle__pool_threads};

/* Global, since compiled libraries import functions of it by plain name. */
static heddle_status open_loaders(const heddle__tvm_table **out, heddle_error *err) {
  const void *table = NULL;
  heddle_status s = heddle__open_beside("libheddle_tvm.so.0", "compiled libraries need", "heddle_tvm_entry",
                                        RTLD_GLOBAL, &host, &table, err);
  *out = table;
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
  if (s == HEDDLE_OK && pthread_mutex_init(&m->lock, NULL) != 0) {
    m->t->close(m->library);
    s = heddle__no_memory(err, "a library");
  }
  if (s != HEDDLE_OK) {
    heddle__free(m);
    return heddle__prefix(err, s, "%s: ", path);
  }
  atomic_init(&m->references, 1);
  m->ctx = heddle_context_retain(ctx);
  *out = m;
  return HEDDLE_OK;
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
