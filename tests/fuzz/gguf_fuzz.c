/* Any bytes as a GGUF file: no crash, no leak; what is refused has words, and what is taken is a graph with its parameters. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "generate/gguf.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static heddle_context *made(void) {
  static const heddle_setting settings[] = {{"config", "off"}, {"plugins", "off"}, {"log", "off"}, {"probe", "off"}};
  heddle_context *ctx = NULL;
  heddle_error err = {0};
  if (heddle_context_create(settings, 4, NULL, NULL, &ctx, &err) == HEDDLE_OK)
    return ctx; /* for the life of the process */
  fprintf(stderr, "%s\n", err.text);
  abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static heddle_context *ctx;
  static const heddle_model_options none = {.struct_size = sizeof none};
  char path[40];
  heddle__generate_config config = {.bos = -1};
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  heddle_error err = {0};
  if (ctx == NULL) ctx = made();
  memory_path(memory_file(data, size), path);
  if (heddle__gguf_model(ctx, path, &none, 64, &config, &graph, &params, &err) == HEDDLE_OK) {
    for (uint32_t i = 0; i < heddle_params_count(params); i++) {
      heddle_tensor *t = NULL;
      if (heddle_params_tensor(params, i, &t, &err) != HEDDLE_OK) abort();
      heddle_tensor_release(t);
    }
    heddle_graph_release(graph);
    heddle_params_release(params);
  } else if (err.text[0] == '\0') {
    abort();
  }
  return 0;
}
