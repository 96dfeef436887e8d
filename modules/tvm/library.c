/* modules/tvm/library.c: sets up a compiled library, of a file or of what the program's own objects registered: fills the
 * pointers that its code calls through, and reads the modules that it carries.
 * The file is looked at, not trusted to be well-formed; its code is trusted as the program's own. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/launch.h"
#include "modules/tvm/loaders.h"
#include "modules/tvm/syslib.h"

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

/* Also where the same functions are imported by their plain names: another library that offers those in this process
 * knows nothing of our libraries. */
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
    s = heddle__blob_read(symbol.address, blob_room(&symbol), layouts[i], &heddle__loaders, &l->blob, err);
    break;
  }
  const heddle__blob *b = &l->blob;
  if (s != HEDDLE_OK) return s;
  l->imports = heddle__alloc(b->n_modules, sizeof *l->imports);
  l->order = heddle__alloc(b->n_modules, sizeof *l->order);
  if (l->imports == NULL || l->order == NULL) return heddle__no_memory(err, "a compiled library's modules");
  for (uint32_t i = 0; i < b->n_modules; i++)
    if (i != b->host) l->imports[l->n_imports++] = i;
  uint32_t n = 0;
  return heddle__blob_order(b, l->order, &n, err);
}

/* ---- all of it */

heddle_status heddle__library_set_up(heddle__tvm_library *l, heddle_error *err) {
  static const char *const contexts[] = {"__tvm_module_ctx", "__tvm_ffi_library_ctx", "__tvm_ffi__library_ctx"};
  heddle_status s = heddle__library_era(l, err);
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
  if (s == HEDDLE_OK) s = heddle__library_constants(l, err);
  l->is_whole = s == HEDDLE_OK;
  return s;
}

void heddle__library_clear(heddle__tvm_library *l) {
  heddle__tensors_finish(&l->tensors);
  heddle__kernels_finish(l);
  heddle__blob_finish(&l->blob);
  heddle__free((void *)(uintptr_t)l->functions);
  heddle__free(l->imports);
  heddle__free(l->order);
}
