/* HIP's results: the text of each, and what it means for a device. */
#include "rocm.h"

#include <dlfcn.h>

/* What HIP says of a code: by the instance's calls, or while it is being opened by a look-up. */
static const char *say(const heddle_pinstance *self, const char *symbol, const char *(*known)(int), int code) {
  const char *(*fn)(int) = known;
  if (fn == NULL && self->driver.library != NULL) {
    void *address = dlsym(self->driver.library, symbol);
    memcpy(&fn, &address, sizeof fn);
  }
  return fn != NULL ? fn(code) : NULL;
}

void rocm_code_words(const heddle_pinstance *self, int code, char *buf, size_t bytes) {
  const rocm_own *own = rocm_of(self);
  const char *name = say(self, "hipGetErrorName", own != NULL ? own->calls.error_name : NULL, code);
  const char *text = say(self, "hipGetErrorString", own != NULL ? own->calls.error_string : NULL, code);
  if (name == NULL) name = "HIP error";
  if (text != NULL && text[0] != '\0' && strcmp(name, text) != 0) snprintf(buf, bytes, "%s (%d): %s", name, code, text);
  else snprintf(buf, bytes, "%s (%d)", name, code);
}

gpu_fate rocm_fate(int code) {
  switch (code) {
  case ROCM_SUCCESS: return GPU_FINE;
  case ROCM_NOT_READY: return GPU_NOT_READY;
  case ROCM_OUT_OF_MEMORY: return GPU_NO_MEMORY;
  case ROCM_NOT_SUPPORTED:
  case ROCM_PEER_UNSUPPORTED: return GPU_UNSUPPORTED;
  case ROCM_DEINITIALIZED:
  case ROCM_ECC:
  case ROCM_ILLEGAL_ADDRESS:
  case ROCM_LAUNCH_TIMEOUT:
  case ROCM_CONTEXT_IS_DESTROYED:
  case ROCM_ASSERT:
  case ROCM_LAUNCH_FAILURE:
  case ROCM_RUNTIME_MEMORY:
  case ROCM_RUNTIME_OTHER: return GPU_LOST;
  default: return GPU_FAILED;
  }
}
