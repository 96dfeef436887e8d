/* Any bytes as what a library carries, taken as far as the models inside: their graphs and parameters are read like
 * files. No crash, no leak; a name that no model has is an error, and so is a library without any. */
#include <stdint.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "heddle/graph.h"
#include "modules/tvm/library.h"

static void read_model(const heddle__tvm_library *l, const char *name) {
  const char *text = NULL;
  void *blob = NULL;
  size_t bytes = 0, blob_bytes = 0;
  heddle_error err;
  heddle_graph *g = NULL;
  heddle_params *p = NULL;
  if (heddle__library_model(l, name, &text, &bytes, &blob, &blob_bytes, &err) != HEDDLE_OK) {
    if (err.text[0] == '\0') abort();
    return;
  }
  if (text == NULL || blob == NULL) abort();
  if (heddle_graph_parse(text, bytes, "fuzz.so", NULL, &g, &err) == HEDDLE_OK) heddle_graph_release(g);
  if (heddle_params_parse(blob, blob_bytes, "fuzz.so", NULL, &p, &err) == HEDDLE_OK) heddle_params_release(p);
  heddle__free(blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char path[] = "fuzz.so";
  heddle__tvm_library l = {.path = path};
  heddle_error err;
  if (size == 0) return 0;
  if (heddle__blob_read(data + 1, size - 1, (heddle__blob_layout)(data[0] % 3), &l.blob, &err) == HEDDLE_OK) {
    read_model(&l, NULL);
    read_model(&l, "default");
    read_model(&l, "");
    for (uint32_t i = 0; i < l.blob.n_modules; i++)
      if (l.blob.modules[i].model_name != NULL) read_model(&l, l.blob.modules[i].model_name);
  }
  heddle__blob_finish(&l.blob);
  return 0;
}
