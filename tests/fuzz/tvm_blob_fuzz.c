/* Any bytes as the modules that a compiled library carries: no crash, no leak, and what is read points into the bytes.
 * The first byte says how the records lie. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "modules/tvm/blob.h"

static void check_span(const uint8_t *data, size_t size, heddle__span s) {
  if (s.data == NULL && s.bytes == 0) return;
  if (s.data < data || s.data > data + size || s.bytes > (uint64_t)(data + size - s.data)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heddle__blob blob;
  heddle_error err;
  if (size == 0) return 0;
  heddle__blob_layout layout = (heddle__blob_layout)(data[0] % 3);
  if (heddle__blob_read(data + 1, size - 1, layout, NULL, &blob, &err) == HEDDLE_OK) {
    if (blob.host > blob.n_modules) abort();
    for (uint32_t i = 0; i < blob.n_modules; i++) {
      const heddle__submodule *m = &blob.modules[i];
      if (m->kind == NULL || strlen(m->kind) > size) abort();
      for (uint32_t k = 0; k < m->n_children; k++)
        if (blob.children[m->first_child + k] >= blob.n_modules) abort();
      for (uint32_t k = 0; k < m->n_kernels; k++)
        if (m->kernels[k].name == NULL) abort();
      check_span(data, size, m->code);
      check_span(data, size, m->graph);
      check_span(data, size, m->names);
      check_span(data, size, m->arrays);
      if (m->n_symbols > 0) check_span(data, size, m->symbols);
    }
  }
  heddle__blob_finish(&blob);
  return 0;
}
