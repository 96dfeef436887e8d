/* bench/hand_chain.c: the graph as text, the model, the executor, its inputs. */
#include "bench/bench.h"
#include "hand_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *graph_text(size_t n, int64_t elements, const char *const devices[2]) {
  char *text = malloc(4096 + n * 256), *p = text;
  if (text == NULL) exit(1);
  p += sprintf(p, "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},"
                  "{\"op\":\"null\",\"name\":\"y\",\"inputs\":[]}");
  for (size_t i = 0; i < n; i++) {
    p += sprintf(p, ",{\"op\":\"Add\",\"name\":\"n%zu\",\"device\":\"%s\",\"inputs\":[[%zu,0,0],[0,0,0]]}", i,
                 devices[i % 2], i + 1);
  }
  p += sprintf(p, "],\"arg_nodes\":[0,1],\"heads\":[[%zu,0,0]],\"node_row_ptr\":[0", n + 1);
  for (size_t i = 1; i <= n + 2; i++) p += sprintf(p, ",%zu", i);
  p += sprintf(p, "],\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\"");
  for (size_t i = 0; i < n; i++) p += sprintf(p, ",null");
  p += sprintf(p, "]],\"shape\":[\"list_shape\",[[%lld],[%lld]", (long long)elements, (long long)elements);
  for (size_t i = 0; i < n; i++) p += sprintf(p, ",null");
  sprintf(p, "]]}}");
  return text;
}

heddle_executor *hand_chain(heddle_context *ctx, size_t n, int64_t elements, const char *const devices[2]) {
  return hand_chain_in_flight(ctx, n, elements, devices, 1);
}

heddle_executor *hand_chain_in_flight(heddle_context *ctx, size_t n, int64_t elements, const char *const devices[2],
                                      uint32_t in_flight) {
  heddle_error err;
  heddle_graph *g;
  heddle_model *m;
  heddle_executor *ex;
  char list[128], *text = graph_text(n, elements, devices);
  check(heddle_graph_parse(text, strlen(text), "chain", NULL, &g, &err), &err);
  free(text);
  const int is_one = strcmp(devices[0], devices[1]) == 0;
  snprintf(list, sizeof list, "%s%s%s", devices[0], is_one ? "" : ",", is_one ? "" : devices[1]);
  heddle_model_options options = {.struct_size = sizeof options, .devices = list, .in_flight = in_flight};
  check(heddle_model_create(ctx, g, NULL, &options, &m, &err), &err);
  check(heddle_executor_create(m, &ex, &err), &err);
  for (uint32_t i = 0; i < 2; i++) {
    heddle_tensor *t;
    check(heddle_tensor_create(NULL, HEDDLE_FLOAT32, &elements, 1, &t, &err), &err);
    float *data = heddle_tensor_data(t);
    for (int64_t k = 0; k < elements; k++) data[k] = HAND_CHAIN_VALUE;
    check(heddle_executor_set_input(ex, i, t, &err), &err);
    heddle_tensor_release(t);
  }
  heddle_model_release(m);
  heddle_graph_release(g);
  return ex;
}
