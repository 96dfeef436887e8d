/* modules/tvm/ffi_names.c: the functions behind libheddle_tvm_ffi.so. Libraries that were opened here call ours directly
 * (heddle__image_rebind), so that who comes by these names is an object of the program's system library, or a tvm_ffi and
 * its libraries, which were bound to them because they came second. */
#include "modules/tvm/ffi_names.h"

#include <string.h>

#include "modules/tvm/ffi_object.h"
#include "modules/tvm/library.h"
#include "modules/tvm/syslib.h"

enum { FUNCTION_OBJECT = 68 };

/* Their functions are objects of that type, and none of ours. */
static int call(void *f, heddle__any *args, int32_t n, heddle__any *result) {
  int (*next)(void *, heddle__any *, int32_t, heddle__any *) = NULL;
  void *symbol = NULL;
  bool is_theirs = f != NULL && heddle__handle_function(f) == NULL;
  if (is_theirs && ((const heddle__object *)f)->type == FUNCTION_OBJECT)
    symbol = heddle__of_tvm_ffi("TVMFFIFunctionCall");
  if (symbol == NULL) return heddle__tvm_call_ffi(f, args, n, result);
  memcpy(&next, &symbol, sizeof next);
  return next(f, args, n, result);
}

/* Within a call of ours the words are ours. */
static void raise(const char *kind, const char *words) {
  void (*next)(const char *, const char *) = NULL;
  void *symbol = NULL;
  if (heddle__tvm_self()->pool == NULL) symbol = heddle__of_tvm_ffi("TVMFFIErrorSetRaisedFromCStr");
  if (symbol == NULL) {
    heddle__tvm_raise(kind, words);
    return;
  }
  memcpy(&next, &symbol, sizeof next);
  next(kind, words);
}

static int lookup(void *library, const char *name, void **out) {
  int (*next)(void *, const char *, void **) = NULL;
  if (library == NULL || heddle__library_is_open(library)) return heddle__tvm_lookup(library, name, out);
  void *symbol = heddle__of_tvm_ffi("TVMFFIEnvModLookupFromImports");
  if (symbol == NULL) {
    heddle__tvm_say(NULL, "it asks for a function in the name of a library that is not open");
    *out = NULL;
    return -1;
  }
  memcpy(&next, &symbol, sizeof next);
  return next(library, name, out);
}

/* It cannot be known for which library an object registers itself. */
static int register_symbol(const char *name, void *address) {
  int (*next)(const char *, void *) = NULL;
  void *symbol = heddle__of_tvm_ffi("TVMFFIEnvModRegisterSystemLibSymbol");
  int rc = heddle__system_register(name, address);
  if (symbol == NULL || rc != 0) return rc;
  memcpy(&next, &symbol, sizeof next);
  return next(name, address);
}

const heddle__ffi_names *heddle_tvm_ffi_names(void) {
  static const heddle__ffi_names names = {call, raise, lookup, heddle__tvm_init_once, register_symbol};
  return &names;
}
