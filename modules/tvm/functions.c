/* modules/tvm/functions.c: the functions of a compiled library: which generation wrote it, which of its symbols are
 * functions of the model, and their code by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/library.h"
#include "modules/tvm/loaders.h"
#include "modules/tvm/syslib.h"

#define FFI_PREFIX "__tvm_ffi_"

enum { LONGEST = 4096 }; /* name of an entry */

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

/* ---- generation */

typedef struct signs {
  bool packed, ffi, ffi21; /* functions of v0.3 to v0.20; names of v0.22 and later; names of v0.21 */
  bool any;                /* a name that only TVM gives */
  const char *prefix;
} signs;

static void look(void *user, const heddle__symbol *s) {
  signs *seen = user;
  const char *own = begins(s->name, seen->prefix) ? s->name + strlen(seen->prefix) : s->name;
  bool ffi = begins(own, FFI_PREFIX "_library_") || (s->is_function && begins(s->name, FFI_PREFIX));
  if (ffi) seen->ffi = true;
  else if (begins(own, "__TVMFFI") || strcmp(own, "__tvm_ffi_library_ctx") == 0 ||
           strcmp(own, "__tvm_ffi_library_bin") == 0)
    seen->ffi21 = true;
  else if (s->is_function && own[0] != '_') seen->packed = true;
  if (begins(own, "__tvm_") || begins(own, "__TVM")) seen->any = true;
}

heddle_status heddle__library_era(heddle__tvm_library *l, heddle_error *err) {
  signs seen = {.prefix = l->symbols.prefix};
  l->symbols.t->each(l->symbols.self, look, &seen);
  if (l->handle == NULL && !seen.packed && !seen.ffi && !seen.ffi21) { /* nothing has the prefix */
    heddle__symbols any = heddle__system_symbols("");
    seen.prefix = any.prefix;
    any.t->each(any.self, look, &seen);
  }
  l->era = seen.ffi ? HEDDLE__ERA_FFI : seen.ffi21 ? HEDDLE__ERA_FFI21 : HEDDLE__ERA_PACKED;
  l->is_foreign = l->handle != NULL && !seen.any && !heddle__image_imports(&l->image, "TVM");
  if (l->handle == NULL && seen.ffi && (seen.packed || seen.ffi21))
    return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                        "objects of TVM before v0.22 and of later versions have registered themselves under one "
                        "prefix, and are called in different ways: compile them with prefixes of their own");
  return HEDDLE_OK;
}

/* ---- names */

/* The name that graphs use for a symbol; NULL where it is no function of the model. */
static const char *function_name(heddle__era era, const char *prefix, const heddle__symbol *s) {
  const char *name = s->name;
  if (!s->is_function) return NULL;
  if (era == HEDDLE__ERA_FFI) {
    if (!begins(name, FFI_PREFIX)) return NULL;
    name += sizeof FFI_PREFIX - 1;
  }
  if (!begins(name, prefix)) return NULL;
  name += strlen(prefix);
  if (name[0] == '\0' || (era != HEDDLE__ERA_FFI && name[0] == '_')) return NULL;
  if (era == HEDDLE__ERA_FFI && strcmp(name, "main") == 0 && s->is_weak) return NULL; /* goes on to the entry */
  return begins(name, "_metadata_") || begins(name, "_doc_") || begins(name, "_library_") ? NULL : name;
}

typedef struct list {
  const heddle__tvm_library *library;
  const char *prefix;
  const char **names;
  size_t n, room;
  bool failed;
} list;

static void add(void *user, const heddle__symbol *s) {
  list *to = user;
  const char *name = function_name(to->library->era, to->prefix, s);
  if (name == NULL || to->failed) return;
  if (to->n == to->room) {
    void *more = heddle__grow((void *)(uintptr_t)to->names, to->room, 2 * to->room + 16, sizeof *to->names);
    to->failed = more == NULL;
    if (more == NULL) return;
    to->names = more;
    to->room = 2 * to->room + 16;
  }
  to->names[to->n++] = name;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

heddle_status heddle__library_list(heddle__tvm_library *l, heddle_error *err) {
  list to = {.library = l, .prefix = l->symbols.prefix};
  l->symbols.t->each(l->symbols.self, add, &to);
  if (l->handle == NULL && to.n == 0) { /* objects may have the prefix on their data only */
    heddle__symbols any = heddle__system_symbols("");
    to.prefix = any.prefix;
    any.t->each(any.self, add, &to);
  }
  if (to.failed) {
    heddle__free((void *)(uintptr_t)to.names);
    return heddle__no_memory(err, "a compiled library's functions");
  }
  if (to.n > 0) qsort((void *)(uintptr_t)to.names, to.n, sizeof *to.names, by_name);
  heddle__free((void *)(uintptr_t)l->functions);
  l->functions = to.names;
  l->n_functions = (uint32_t)to.n;
  return HEDDLE_OK;
}

/* ---- code */

static void *code_of(const heddle__tvm_library *l, const char *head, const char *name) {
  heddle__symbol s;
  return heddle__symbol_find(&l->symbols, head, name, HEDDLE__SYMBOL_FUNCTION, &s) ? s.address : NULL;
}

void *heddle__library_code(const heddle__tvm_library *l, const char *name) {
  heddle__symbol s;
  if (strcmp(name, "__tvm_main__") == 0) {
    if (l->era == HEDDLE__ERA_FFI) return code_of(l, FFI_PREFIX, "main");
    void *code = code_of(l, "", name); /* of C source; else the entry's name is there */
    if (code != NULL || !heddle__symbol_find(&l->symbols, "", name, HEDDLE__SYMBOL_DATA, &s)) return code;
    const char *text = s.address;
    if (memchr(text, 0, s.room < LONGEST ? s.room : LONGEST) == NULL || strcmp(text, name) == 0) return NULL;
    return heddle__library_code(l, text);
  }
  const char *head = l->era == HEDDLE__ERA_FFI ? FFI_PREFIX : "";
  if (!heddle__symbol_find(&l->symbols, head, name, HEDDLE__SYMBOL_FUNCTION, &s)) return NULL;
  /* a name that has the prefix before it, or one without any, is a function as well */
  return function_name(l->era, l->symbols.prefix, &s) != NULL || function_name(l->era, "", &s) != NULL ? s.address
                                                                                                       : NULL;
}

heddle_status heddle__library_loaded(const heddle__tvm_library *l, const char *name, heddle_function **out,
                                     heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  *out = NULL;
  for (uint32_t i = 0; i < l->n_imports && *out == NULL && s == HEDDLE_OK; i++) {
    heddle__loaded *m = l->blob.modules[l->order[i]].loaded;
    if (m != NULL) s = heddle__loaded_find(m, name, out, err);
  }
  return s;
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
  return heddle__fail(err, HEDDLE_ENOTFOUND, "%s has no function '%.200s'; it has %u%s%s%s%s", l->path, name,
                      (unsigned)l->n_functions, said > 0 ? ": " : "", list, said < l->n_functions ? ", ..." : "",
                      l->is_foreign ? "; nothing in it says that TVM compiled it" : "");
}
