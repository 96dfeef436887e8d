/* Any bytes as a params blob: no crash, no leak, and what is read is written, read again and written the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heddle_params *p, *again;
  heddle_error err;
  void *blob, *second;
  size_t bytes, second_bytes;
  if (heddle_params_parse(data, size, "fuzz.params", NULL, &p, &err) != HEDDLE_OK) return 0;
  for (uint32_t i = 0; i < heddle_params_count(p); i++) {
    heddle_tensor *t;
    if (heddle_params_tensor(p, i, &t, &err) != HEDDLE_OK) abort();
    heddle_tensor_release(t);
  }
  if (heddle_params_bytes(p, &blob, &bytes, &err) != HEDDLE_OK || bytes > size) abort();
  if (heddle_params_parse(blob, bytes, "again.params", NULL, &again, &err) != HEDDLE_OK) abort();
  if (heddle_params_bytes(again, &second, &second_bytes, &err) != HEDDLE_OK) abort();
  if (bytes != second_bytes || memcmp(blob, second, bytes) != 0) abort();
  heddle_params_release(p);
  heddle_params_release(again);
  heddle_free(blob);
  heddle_free(second);
  return 0;
}
