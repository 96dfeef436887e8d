/* Any bytes as a state file, as they are and with the size and the checksum that they want: no crash, no leak, and where it
 * is refused the values are what they were. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/heddle.h"
#include "memory_file.h"
#include "plugins/common/fnv.h"

/* s grows, k stays; x is never set, so that nothing is planned. */
static const char graph[] =
    "{\"heddle\":{\"version\":1,\"opset\":17,\"state\":\"s:s2,k:k2\"},\"nodes\":["
    "{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"s\",\"inputs\":[]},"
    "{\"op\":\"null\",\"name\":\"k\",\"inputs\":[]},{\"op\":\"Add\",\"name\":\"s2\",\"inputs\":[[1,0,0],[0,0,0]]},"
    "{\"op\":\"Identity\",\"name\":\"k2\",\"inputs\":[[2,0,0]]}],\"arg_nodes\":[0,1,2],\"heads\":[[3,0,0],[4,0,0]],"
    "\"node_row_ptr\":[0,1,2,3,4,5],\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\",\"int64\",null,null]],"
    "\"shape\":[\"list_shape\",[[\"m\"],[\"n\",2],[2],null,null]]}}";

static heddle_executor *made(void) {
  static const heddle_setting settings[] = {
      {"config", "off"}, {"plugins", HEDDLE_FUZZ_PLUGINS}, {"log", "off"}, {"probe", "off"}};
  const heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu"};
  heddle_context *ctx = NULL;
  heddle_graph *g = NULL;
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_error err = {0};
  if (heddle_context_create(settings, 4, NULL, NULL, &ctx, &err) != HEDDLE_OK ||
      heddle_graph_parse(graph, sizeof graph - 1, "fuzz", NULL, &g, &err) != HEDDLE_OK ||
      heddle_model_create(ctx, g, NULL, &options, &m, &err) != HEDDLE_OK ||
      heddle_executor_create(m, &ex, &err) != HEDDLE_OK) {
    fprintf(stderr, "%s\n", err.text);
    abort();
  }
  return ex; /* for the life of the process */
}

static uint64_t sum_of(heddle_executor *ex) {
  uint64_t sum = FNV1A_START;
  for (uint32_t i = 0; i < 2; i++) {
    heddle_tensor *t = NULL;
    if (heddle_executor_read_state(ex, i, &t, NULL) != HEDDLE_OK) abort();
    sum = fnv1a(sum, heddle_tensor_shape(t), heddle_tensor_ndim(t) * sizeof(int64_t));
    if (heddle_tensor_bytes(t) > 0) sum = fnv1a(sum, heddle_tensor_data(t), (size_t)heddle_tensor_bytes(t));
    heddle_tensor_release(t);
  }
  return sum;
}

static void load(heddle_executor *ex, const uint8_t *data, size_t size) {
  char path[40];
  heddle_error err;
  const uint64_t before = sum_of(ex);
  memory_path(memory_file(data, size), path);
  if (heddle_executor_load_state(ex, path, &err) == HEDDLE_OK) (void)sum_of(ex);
  else if (err.text[0] == '\0' || sum_of(ex) != before) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static heddle_executor *ex;
  if (ex == NULL) ex = made();
  load(ex, data, size);
  if (size < 32) return 0;
  uint8_t *copy = malloc(size);
  if (copy == NULL) return 0;
  memcpy(copy, data, size);
  const uint64_t whole = size;
  memcpy(copy + 16, &whole, sizeof whole);
  const uint64_t sum = fnv1a(FNV1A_START, copy, size - sizeof sum);
  memcpy(copy + size - sizeof sum, &sum, sizeof sum);
  load(ex, copy, size);
  free(copy);
  return 0;
}
