/* modules/tvm_cxx/entry.h: what libheddle_tvm takes from libheddle_tvm_cxx, which it opens for a library that imports TVM's
 * C++ symbols: objects as code that was compiled against TVM's own headers has them. */
#ifndef HEDDLE_MODULES_TVM_CXX_ENTRY_H
#define HEDDLE_MODULES_TVM_CXX_ENTRY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle__tvm_cxx_table {
  const char *version; /* HEDDLE_VERSION of both; another is not used */
  const char *eras;    /* "v0.9 to v0.18", for messages */
  /* An Array of NDArrays with one reference, of handles of TVMArrayHandle's kind, which it takes over also where it
   * fails: NULL, memory is out. */
  void *(*arrays)(void *const *handles, uint64_t n);
  void (*release)(void *object);
  int has_std_functions; /* functions are std::function, as of v0.8 */
} heddle__tvm_cxx_table;

__attribute__((visibility("default"))) const heddle__tvm_cxx_table *heddle_tvm_cxx_entry(void);

#ifdef __cplusplus
}
#endif

#endif
