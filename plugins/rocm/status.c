/* HIP's results: in words, and what each means for a device. */
#include "rocm.h"

void rocm_code_words(const heddle_pinstance *self, int code, char *buf, size_t bytes) {
  const rocm_own *own = rocm_of(self);
  const char *name = NULL, *text = NULL;
  if (own != NULL && own->calls.error_name != NULL) name = own->calls.error_name(code);
  if (own != NULL && own->calls.error_string != NULL) text = own->calls.error_string(code);
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
