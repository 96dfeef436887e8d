/* modules/tvm/library.c: opens a compiled library: finds its generation by its symbols, fills the pointers that its
 * code calls through, reads the modules that it carries, lists its functions.
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

#define FFI_PREFIX "__tvm_ffi_"

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
  const Elf64_Sym *s = heddle__image_find(&l->image, name, STT_OBJECT);
  if (s == NULL) return HEDDLE_OK;
  if (heddle__image_room(&l->image, s, PF_W) < sizeof value)
    return heddle__fail(err, HEDDLE_EFORMAT, "its variable %s is no pointer that can be written", name);
  memcpy(heddle__image_address(&l->image, s), &value, sizeof value);
  return HEDDLE_OK;
}

static heddle_status fill_pointers(heddle__tvm_library *l, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < sizeof pointers / sizeof pointers[0] && s == HEDDLE_OK; i++) {
    void *code;
    any_fn function = pointers[i].function;
    if (l->era == HEDDLE__ERA_FFI21 && function == (any_fn)heddle__tvm_call_ffi)
      function = (any_fn)heddle__tvm_call_ffi21;
    memcpy(&code, &function, sizeof code);
    s = fill(l, pointers[i].name, code, err);
  }
  return s;
}

/* ---- functions */

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static heddle__era find_era(const heddle__image *image) {
  bool v21 = heddle__image_find(image, "__tvm_ffi_library_ctx", STT_OBJECT) != NULL ||
             heddle__image_find(image, "__tvm_ffi_library_bin", STT_OBJECT) != NULL;
  for (size_t i = 0; i < image->count; i++) {
    const Elf64_Sym *s = &image->symbols[i];
    const char *name = heddle__image_name(image, s);
    if (s->st_shndx == SHN_UNDEF) continue;
    bool is_function = ELF64_ST_TYPE(s->st_info) == STT_FUNC;
    if ((is_function && begins(name, FFI_PREFIX)) || begins(name, FFI_PREFIX "_library_")) return HEDDLE__ERA_FFI;
    v21 = v21 || begins(name, "__TVMFFI");
  }
  return v21 ? HEDDLE__ERA_FFI21 : HEDDLE__ERA_PACKED;
}

/* The name that graphs use for a symbol; NULL where it is no function of the model. */
static const char *function_name(const heddle__tvm_library *l, const Elf64_Sym *s) {
  const char *name = heddle__image_name(&l->image, s);
  if (s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) != STT_FUNC) return NULL;
  if (ELF64_ST_BIND(s->st_info) == STB_LOCAL) return NULL;
  if (l->era != HEDDLE__ERA_FFI) return name[0] == '_' ? NULL : name;
  if (!begins(name, FFI_PREFIX) || name[sizeof FFI_PREFIX - 1] == '\0') return NULL;
  name += sizeof FFI_PREFIX - 1;
  if (strcmp(name, "main") == 0 && ELF64_ST_BIND(s->st_info) == STB_WEAK) return NULL; /* goes on to the entry */
  return begins(name, "_metadata_") || begins(name, "_doc_") || begins(name, "_library_") ? NULL : name;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static heddle_status list_functions(heddle__tvm_library *l, heddle_error *err) {
  size_t n = 0;
  for (size_t i = 0; i < l->image.count; i++) n += function_name(l, &l->image.symbols[i]) != NULL;
  l->functions = heddle__alloc(n, sizeof *l->functions);
  if (l->functions == NULL) return heddle__no_memory(err, "a compiled library's functions");
  for (size_t i = 0; i < l->image.count; i++) {
    const char *name = function_name(l, &l->image.symbols[i]);
    if (name != NULL) l->functions[l->n_functions++] = name;
  }
  qsort((void *)(uintptr_t)l->functions, n, sizeof *l->functions, by_name);
  return HEDDLE_OK;
}

static void *code_of(const heddle__tvm_library *l, const char *symbol) {
  const Elf64_Sym *s = heddle__image_find(&l->image, symbol, STT_FUNC);
  return s != NULL && heddle__image_room(&l->image, s, PF_X) > 0 ? heddle__image_address(&l->image, s) : NULL;
}

void *heddle__library_code(const heddle__tvm_library *l, const char *name) {
  char full[512];
  if (strcmp(name, "__tvm_main__") == 0) {
    if (l->era == HEDDLE__ERA_FFI) return code_of(l, FFI_PREFIX "main");
    void *code = code_of(l, name); /* of C source; else the entry's name is there */
    const Elf64_Sym *s = code == NULL ? heddle__image_find(&l->image, name, STT_OBJECT) : NULL;
    size_t room = s != NULL ? heddle__image_room(&l->image, s, PF_R) : 0;
    const char *text = room > 0 ? heddle__image_address(&l->image, s) : NULL;
    if (text == NULL || memchr(text, 0, room) == NULL || strcmp(text, name) == 0) return code;
    return heddle__library_code(l, text);
  }
  if (bsearch(&name, l->functions, l->n_functions, sizeof *l->functions, by_name) == NULL) return NULL;
  if (l->era != HEDDLE__ERA_FFI) return code_of(l, name);
  if (strlen(name) + sizeof FFI_PREFIX > sizeof full) { /* longer names: compare without the prefix */
    for (size_t i = 0; i < l->image.count; i++) {
      const char *own = function_name(l, &l->image.symbols[i]);
      if (own != NULL && strcmp(own, name) == 0) return heddle__image_address(&l->image, &l->image.symbols[i]);
    }
    return NULL;
  }
  memcpy(full, FFI_PREFIX, sizeof FFI_PREFIX - 1);
  strcpy(full + sizeof FFI_PREFIX - 1, name);
  return code_of(l, full);
}

heddle_status heddle__library_lacks(const heddle__tvm_library *l, const char *name, heddle_error *err) {
  char list[300] = "";
  size_t used = 0;
  uint32_t said = 0;
  for (; said < l->n_functions && said < 8; said++) {
    size_t n = strlen(l->functions[said]);
    if (used + n + 3 > sizeof list) break;
    used += (size_t)sprintf(list + used, "%s%s", said == 0 ? "" : ", ", l->functions[said]);
  }
  return heddle__fail(err, HEDDLE_ENOTFOUND, "%s has no function '%.200s'; it has %u%s%s%s", l->path, name,
                      (unsigned)l->n_functions, said > 0 ? ": " : "", list, said < l->n_functions ? ", ..." : "");
}

/* ---- what it carries */

/* External code generators leave constants for a function that takes them. Where there is none, nothing is to be done;
 * where there is one, it wants TVM's own C++ objects. */
static heddle_status check_constants(const heddle__tvm_library *l, const heddle__submodule *m, heddle_error *err) {
  const unsigned char *at = m->symbols.data;
  for (uint64_t i = 0; i < m->n_symbols; i++) {
    uint64_t n = 0;
    char name[256];
    for (unsigned k = 0; k < 8; k++) n |= (uint64_t)at[k] << (8 * k);
    at += 8;
    int length = snprintf(name, sizeof name, "__init_%.*s", n < sizeof name ? (int)n : (int)sizeof name, at);
    at += n;
    if (length > 0 && (size_t)length < sizeof name && heddle__image_find(&l->image, name, STT_FUNC) != NULL)
      return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                          "its function %s takes constants as objects of TVM's own C++ library, which is not here: "
                          "compile the model without the external code generator that made it",
                          name);
  }
  return HEDDLE_OK;
}

static heddle_status read_blob(heddle__tvm_library *l, heddle_error *err) {
  static const char *const names[] = {"__tvm_dev_mblob", "__tvm_ffi_library_bin", "__tvm_ffi__library_bin"};
  static const heddle__blob_layout layouts[] = {HEDDLE__BLOB_PACKED, HEDDLE__BLOB_FFI21, HEDDLE__BLOB_FFI};
  heddle_status s = HEDDLE_OK;
  for (int i = 0; i < 3; i++) {
    const Elf64_Sym *symbol = heddle__image_find(&l->image, names[i], STT_OBJECT);
    if (symbol == NULL) continue;
    size_t room = heddle__image_room(&l->image, symbol, PF_R);
    s = heddle__blob_read(heddle__image_address(&l->image, symbol), room, layouts[i], &l->blob, err);
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
  if (!heddle__image_of(l->handle, &l->image))
    return heddle__fail(err, HEDDLE_EFORMAT, "it has no dynamic symbols that can be listed");
  l->era = find_era(&l->image);
  heddle_status s = heddle__tensors_init(&l->tensors) ? HEDDLE_OK : heddle__no_memory(err, "a compiled library");
  if (s == HEDDLE_OK) s = list_functions(l, err);
  if (s == HEDDLE_OK) s = read_blob(l, err);
  if (s == HEDDLE_OK) s = heddle__kernels_init(l, err);
  if (s == HEDDLE_OK) s = fill_pointers(l, err);
  static const char *const contexts[] = {"__tvm_module_ctx", "__tvm_ffi_library_ctx", "__tvm_ffi__library_ctx"};
  for (int i = 0; i < 3 && s == HEDDLE_OK; i++) s = fill(l, contexts[i], l, err);
  return s;
}

/* A name that is missing is said now; with lazy binding it would end the process when it is called. */
static heddle_status map_library(const char *path, void **out, heddle_error *err) {
  *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*out != NULL) return HEDDLE_OK;
  const char *words = dlerror();
  if (words == NULL) words = "no reason given";
  return heddle__fail(err, HEDDLE_EABI, "it could not be loaded: %s%s", words,
                      strstr(words, "_ZN") != NULL && strstr(words, "3tvm") != NULL
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
  while (l != NULL && l->handle != handle) l = l->next;
  if (l != NULL) {
    l->users++;
    dlclose(handle); /* the library's own stays */
  } else {
    l = heddle__alloc(1, sizeof *l);
    if (l != NULL) l->path = heddle__strndup(path, strlen(path));
    if (l != NULL) l->handle = handle;
    else dlclose(handle);
    s = l != NULL && l->path != NULL ? set_up(l, err) : heddle__no_memory(err, "a compiled library");
    if (s == HEDDLE_OK) {
      l->users = 1;
      l->next = all;
      all = l;
    } else {
      finish(l);
      l = NULL;
    }
  }
  pthread_mutex_unlock(&lock);
  *out = l;
  return s;
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
