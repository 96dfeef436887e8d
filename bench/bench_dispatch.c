/* bench/bench_dispatch.c: times runs of small graphs through the public API, as requested on standard input.
 * Each line "GRAPH RUNS" (chain, softmax, one) gives one line: nanoseconds of one run, the mean over RUNS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

#define NODES 1000

/* Inputs x and y; node i is Add(previous, x), or where softmax is set every second one Softmax(previous). */
static char *graph_text(int nodes, int width, int softmax) {
  size_t size = 4096 + (size_t)nodes * 200;
  char *text = malloc(size), *p = text;
  if (text == NULL) exit(1);
  p += sprintf(p, "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},"
                  "{\"op\":\"null\",\"name\":\"y\",\"inputs\":[]}");
  for (int i = 0; i < nodes; i++) {
    if (softmax && i % 2) p += sprintf(p, ",{\"op\":\"Softmax\",\"name\":\"n%d\",\"inputs\":[[%d,0,0]]}", i, i + 1);
    else p += sprintf(p, ",{\"op\":\"Add\",\"name\":\"n%d\",\"inputs\":[[%d,0,0],[0,0,0]]}", i, i + 1);
  }
  p += sprintf(p, "],\"arg_nodes\":[0,1],\"heads\":[[%d,0,0]],\"node_row_ptr\":[0", nodes + 1);
  for (int i = 1; i <= nodes + 2; i++) p += sprintf(p, ",%d", i);
  p += sprintf(p, "],\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\"");
  for (int i = 0; i < nodes; i++) p += sprintf(p, ",null");
  const char *shape = width == 1 ? "[1]" : "[1,16]";
  p += sprintf(p, "]],\"shape\":[\"list_shape\",[%s,%s", shape, shape);
  for (int i = 0; i < nodes; i++) p += sprintf(p, ",null");
  sprintf(p, "]]}}");
  return text;
}

static heddle_executor *make(heddle_context *ctx, int nodes, int width, int softmax) {
  heddle_error err;
  heddle_graph *g;
  heddle_model *m;
  heddle_executor *ex;
  char *text = graph_text(nodes, width, softmax);
  check(heddle_graph_parse(text, strlen(text), "bench", NULL, &g, &err), &err);
  free(text);
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu"};
  check(heddle_model_create(ctx, g, NULL, &options, &m, &err), &err);
  check(heddle_executor_create(m, &ex, &err), &err);
  float values[16] = {1e-3f};
  int64_t shape[2] = {1, 16};
  for (uint32_t i = 0; i < 2; i++) {
    heddle_tensor *t;
    check(heddle_tensor_wrap(values, HEDDLE_FLOAT32, shape, width == 1 ? 1 : 2, NULL, NULL, NULL, &t, &err), &err);
    check(heddle_executor_set_input(ex, i, t, &err), &err);
    heddle_tensor_release(t);
  }
  heddle_model_release(m);
  heddle_graph_release(g);
  return ex;
}

int main(void) {
  heddle_error err;
  heddle_context *ctx;
  heddle_setting settings[] = {{"threads", "1"}, {"cpu.fuse", "0"}}; /* a step a node is what is measured */
  check(heddle_context_create(settings, 2, NULL, NULL, &ctx, &err), &err);
  heddle_executor *chain = make(ctx, NODES, 1, 0), *softmax = make(ctx, NODES, 16, 1), *single = make(ctx, 1, 1, 0);
  char line[128], name[64];
  int runs;
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%63s %d", name, &runs) == 2 && runs > 0) {
    heddle_executor *ex = strcmp(name, "chain") == 0 ? chain : strcmp(name, "softmax") == 0 ? softmax : single;
    double start = now_ns();
    for (int i = 0; i < runs; i++) check(heddle_executor_run(ex, HEDDLE_FOREVER, &err), &err);
    printf("%.3f\n", (now_ns() - start) / runs);
    fflush(stdout);
  }
  heddle_executor_release(chain);
  heddle_executor_release(softmax);
  heddle_executor_release(single);
  heddle_context_release(ctx);
  return 0;
}
