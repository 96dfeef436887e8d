/* bench/bench_cpu.c: rows of convolutions and the digits network, through Heddle and as a program written by hand on
 * oneDNN (hand_onednn.c), as requested on standard input. Each line "WHO NET THREADS RUNS" (WHO heddle or hand; NET one
 * of the names below or digits) gives one line: nanoseconds of one run, the mean over RUNS.
 * Arguments: the folder of the digits network. */
#include "bench/hand_onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

enum { ROW = 8, MOST_THREADS = 64 };

/* A row of ROW convolutions; where channels go from `in` to `out`, every second one goes back. */
static const struct {
  const char *name;
  hand_conv conv;
} nets[] = {
    {"conv3x3_64_at_56", {64, 64, 3, 56, 1}},
    {"conv1x1_64_256_at_56", {64, 256, 1, 56, 1}},
    {"conv3x3_512_at_7", {512, 512, 3, 7, 1}},
    {"depthwise_512_at_14", {512, 512, 3, 14, 512}},
};
enum { NETS = sizeof nets / sizeof nets[0], DIGITS = NETS };

/* ---- Heddle's side */

static heddle_tensor *tensor_of(const float *data, const int64_t *shape, uint32_t ndim) {
  heddle_error err;
  heddle_tensor *t;
  check(heddle_tensor_wrap((void *)(uintptr_t)data, HEDDLE_FLOAT32, shape, ndim, NULL, NULL, NULL, &t, &err), &err);
  return t;
}

/* The row as graph JSON: node 0 is x, weights follow, then the convolutions. */
static char *row_text(hand_conv c) {
  char *text = malloc(16384), *p = text;
  if (text == NULL) exit(1);
  p += sprintf(p, "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]}");
  for (int i = 0; i < ROW; i++) p += sprintf(p, ",{\"op\":\"null\",\"name\":\"w%d\",\"inputs\":[]}", i);
  for (int i = 0; i < ROW; i++)
    p += sprintf(p,
                 ",{\"op\":\"Conv\",\"name\":\"c%d\",\"inputs\":[[%d,0,0],[%d,0,0]],\"attrs\":{\"group\":%d,"
                 "\"pads\":[%d,%d,%d,%d]}}",
                 i, i == 0 ? 0 : ROW + i, i + 1, c.groups, c.kernel / 2, c.kernel / 2, c.kernel / 2, c.kernel / 2);
  p += sprintf(p, "],\"arg_nodes\":[0");
  for (int i = 0; i < ROW; i++) p += sprintf(p, ",%d", i + 1);
  p += sprintf(p, "],\"heads\":[[%d,0,0]],\"node_row_ptr\":[0", 2 * ROW);
  for (int i = 1; i <= 2 * ROW + 1; i++) p += sprintf(p, ",%d", i);
  p += sprintf(p, "],\"attrs\":{\"dltype\":[\"list_str\",[\"float32\"");
  for (int i = 0; i < 2 * ROW; i++) p += sprintf(p, i < ROW ? ",\"float32\"" : ",null");
  p += sprintf(p, "]],\"shape\":[\"list_shape\",[[1,%d,%d,%d]", c.in, c.size, c.size);
  for (int i = 0; i < ROW; i++) {
    hand_conv one = hand_row_member(c, i);
    p += sprintf(p, ",[%d,%d,%d,%d]", one.out, one.in / one.groups, one.kernel, one.kernel);
  }
  for (int i = 0; i < ROW; i++) p += sprintf(p, ",null");
  sprintf(p, "]]}}");
  return text;
}

static heddle_executor *finish(heddle_context *ctx, heddle_graph *g, heddle_params *params) {
  heddle_error err;
  heddle_model *m;
  heddle_executor *ex;
  const char *place[] = {"*=cpu:0", NULL};
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu", .place = place, .n_place = 1};
  check(heddle_model_create(ctx, g, params, &options, &m, &err), &err);
  check(heddle_executor_create(m, &ex, &err), &err);
  heddle_model_release(m);
  heddle_params_release(params);
  heddle_graph_release(g);
  return ex;
}

static heddle_executor *heddle_row(heddle_context *ctx, hand_conv c, const float *data) {
  heddle_error err;
  heddle_graph *g;
  heddle_params *params;
  char *text = row_text(c);
  check(heddle_graph_parse(text, strlen(text), "bench", NULL, &g, &err), &err);
  free(text);
  char names[ROW][16];
  const char *name[ROW];
  heddle_tensor *weights[ROW];
  for (int i = 0; i < ROW; i++) {
    hand_conv one = hand_row_member(c, i);
    const int64_t shape[] = {one.out, one.in / one.groups, one.kernel, one.kernel};
    snprintf(names[i], sizeof names[i], "w%d", i);
    name[i] = names[i];
    weights[i] = tensor_of(data, shape, 4);
  }
  check(heddle_params_create(name, weights, ROW, &params, &err), &err);
  for (int i = 0; i < ROW; i++) heddle_tensor_release(weights[i]);
  heddle_executor *ex = finish(ctx, g, params);
  const int64_t shape[] = {1, c.in, c.size, c.size};
  heddle_tensor *x = tensor_of(data, shape, 4);
  check(heddle_executor_set_input(ex, 0, x, &err), &err);
  heddle_tensor_release(x);
  return ex;
}

static heddle_executor *heddle_digits(heddle_context *ctx, const char *folder, const float *data) {
  heddle_error err;
  heddle_graph *g;
  heddle_params *params;
  char path[4096];
  const int64_t shape[] = {1, 1, 8, 8};
  snprintf(path, sizeof path, "%s/digits.json", folder);
  check(heddle_graph_load(path, NULL, &g, &err), &err);
  snprintf(path, sizeof path, "%s/digits.params", folder);
  check(heddle_params_load(path, NULL, &params, &err), &err);
  heddle_executor *ex = finish(ctx, g, params);
  heddle_tensor *x = tensor_of(data, shape, 4);
  check(heddle_executor_set_input(ex, 0, x, &err), &err);
  heddle_tensor_release(x);
  return ex;
}

/* ---- the loop */

/* What is kept of a net for one number of threads. */
typedef struct pair {
  heddle_context *ctx;
  heddle_executor *ours;
  hand_net *hand;
} pair;

static void make(pair *p, int net, int threads, const char *digits, const float *data) {
  heddle_error err;
  char count[16];
  snprintf(count, sizeof count, "%d", threads);
  heddle_setting one = {"threads", count};
  check(heddle_context_create(&one, 1, NULL, NULL, &p->ctx, &err), &err);
  p->ours = net == DIGITS ? heddle_digits(p->ctx, digits, data) : heddle_row(p->ctx, nets[net].conv, data);
  p->hand = net == DIGITS ? hand_digits() : hand_row(nets[net].conv, ROW, threads);
  if (p->hand == NULL) exit(1);
}

int main(int argc, char **argv) {
  static pair pairs[NETS + 1][MOST_THREADS + 1];
  heddle_error err;
  char line[128], who[16], name[64];
  int threads, runs;
  if (argc != 2 || !hand_is_built()) {
    fprintf(stderr, argc != 2 ? "usage: bench_cpu FOLDER\n" : "bench_cpu was built without oneDNN\n");
    return 2;
  }
  float *data = malloc(sizeof *data * 512 * 512 * 9);
  for (size_t i = 0; data != NULL && i < (size_t)512 * 512 * 9; i++) data[i] = (float)(i % 17) * 1e-3f - 8e-3f;
  while (data != NULL && fgets(line, sizeof line, stdin) != NULL &&
         sscanf(line, "%15s %63s %d %d", who, name, &threads, &runs) == 4 && runs > 0 && threads > 0 &&
         threads <= MOST_THREADS) {
    int net = 0;
    while (net < NETS && strcmp(nets[net].name, name) != 0) net++;
    pair *p = &pairs[net][threads];
    if (p->ctx == NULL) make(p, net, threads, argv[1], data);
    const double start = now_ns();
    if (strcmp(who, "hand") == 0) {
      for (int i = 0; i < runs; i++) hand_run(p->hand);
    } else {
      for (int i = 0; i < runs; i++) check(heddle_executor_run(p->ours, HEDDLE_FOREVER, &err), &err);
    }
    printf("%.3f\n", (now_ns() - start) / runs);
    fflush(stdout);
  }
  for (int net = 0; net <= NETS; net++)
    for (int t = 0; t <= MOST_THREADS; t++) {
      if (pairs[net][t].ctx == NULL) continue;
      hand_free(pairs[net][t].hand);
      heddle_executor_release(pairs[net][t].ours);
      heddle_context_release(pairs[net][t].ctx);
    }
  free(data);
  return 0;
}
