/* modules/tvm_ffi/names.c: libheddle_tvm_ffi.so: tvm-ffi's names for what libheddle_tvm.so does. Opened when a library
 * imports one of them that nothing else provides, and linked to by programs with objects of v0.22 and later in them. */
#include "modules/tvm/ffi_names.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int TVMFFIFunctionCall(void *function, heddle__any *args, int32_t n, heddle__any *result);
EXPORT void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *words);
EXPORT int TVMFFIEnvModLookupFromImports(void *library, const char *name, void **out);
EXPORT int TVMFFIHandleInitOnce(void **handle, int (*init)(void **result));
EXPORT int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *address);

int TVMFFIFunctionCall(void *function, heddle__any *args, int32_t n, heddle__any *result) {
  return heddle_tvm_ffi_names()->call(function, args, n, result);
}

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *words) {
  heddle_tvm_ffi_names()->raise(kind, words);
}

int TVMFFIEnvModLookupFromImports(void *library, const char *name, void **out) {
  return heddle_tvm_ffi_names()->lookup(library, name, out);
}

int TVMFFIHandleInitOnce(void **handle, int (*init)(void **result)) {
  return heddle_tvm_ffi_names()->init_once(handle, init);
}

int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *address) {
  return heddle_tvm_ffi_names()->register_symbol(name, address);
}
