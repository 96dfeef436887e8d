/* Any bytes as an .npy file: no crash, no leak, and a tensor has as many bytes as its shape says. */
#include <stdint.h>
#include <stdlib.h>

#include "core/tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heddle_tensor *t = NULL;
  heddle_error err;
  if (size == 0) return 0;                                    /* fmemopen takes no empty buffer */
  FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb"); /* "r": it does not write to it */
  if (file == NULL) return 0;
  if (heddle__npy_read(file, "fuzz.npy", &t, &err) == HEDDLE_OK) {
    uint64_t bytes;
    if (heddle__shape_bytes(heddle_tensor_dtype(t), heddle_tensor_ndim(t), heddle_tensor_shape(t), NULL, &bytes,
                            &err) != HEDDLE_OK ||
        bytes != heddle_tensor_bytes(t) || bytes > size || !heddle_tensor_is_contiguous(t))
      abort();
    heddle_tensor_release(t);
  }
  fclose(file);
  return 0;
}
