/* Finds libheddle_ref_more.so beside the file that holds this code. The loader keeps it open once it is, so it is asked
 * each time, and a plugin has no state for it. */
#define _GNU_SOURCE /* dladdr */
#include "more.h"

#include <dlfcn.h>

#define FILE_NAME "libheddle_ref_more.so"

#ifdef HEDDLE_REF_MORE_HERE
extern const ref_more heddle_ref_more;

const ref_more *ref_more_find(void) {
  return &heddle_ref_more;
}
#elif defined HEDDLE_REF_MORE_NONE /* a static plugin of few operators */
const ref_more *ref_more_find(void) {
  return NULL;
}
#else
const ref_more *ref_more_find(void) {
  char path[4096];
  Dl_info info;
  if (dladdr((const void *)(uintptr_t)&ref_more_find, &info) == 0) return NULL;
  const char *slash = strrchr(info.dli_fname, '/');
  const size_t folder = slash != NULL ? (size_t)(slash + 1 - info.dli_fname) : 0;
  if (folder == 0 || folder + sizeof FILE_NAME > sizeof path) return NULL;
  memcpy(path, info.dli_fname, folder);
  memcpy(path + folder, FILE_NAME, sizeof FILE_NAME);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const ref_more *more = library != NULL ? dlsym(library, "heddle_ref_more") : NULL;
  return more != NULL && more->revision == REF_MORE_REVISION && more->op_size == sizeof(ref_op) ? more : NULL;
}
#endif
