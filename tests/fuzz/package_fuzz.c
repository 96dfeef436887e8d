/* Any bytes as a packed graph of operators: no crash, no leak, a refusal has words, and what is read is inside of the file. The
 * first byte says whether the head's size is made right. */
#define _GNU_SOURCE /* memfd_create */
#include <string.h>

#include "core/alloc.h"
#include "graph/package.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t live = heddle__alloc_live();
  heddle_error err = {0};
  char path[40];
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  if (size == 0) return 0;
  int file = memory_file(data + 1, size - 1);
  if (data[0] % 2 == 1) {
    unsigned char head[24] = HEDDLE_PACK_MAGIC "\1";
    for (unsigned i = 0; i < 8; i++) head[16 + i] = (unsigned char)((uint64_t)(size < 25 ? 24 : size - 1) >> (8 * i));
    if (pwrite(file, head, sizeof head, 0) < 0) abort();
  }
  memory_path(file, path);
  heddle_status s = heddle_graph_load(path, NULL, &graph, &err);
  if (s != HEDDLE_OK && (err.status != s || err.text[0] == '\0')) abort();
  err = (heddle_error){.text = ""};
  s = heddle_params_load(path, NULL, &params, &err);
  if (s != HEDDLE_OK && (err.status != s || err.text[0] == '\0')) abort();
  volatile unsigned sum = 0;
  for (uint32_t i = 0; params != NULL && i < params->count; i++) {
    const unsigned char *bytes = params->items[i].value.data;
    for (uint64_t k = 0; k < params->items[i].value.bytes; k += 64) sum += bytes[k];
  }
  (void)sum;
  heddle_graph_release(graph);
  heddle_params_release(params);
  if (heddle__alloc_live() != live) abort();
  return 0;
}
