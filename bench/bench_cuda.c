/* bench/bench_cuda.c: Heddle and programs written by hand (hand_cuda.h) on the first CUDA device, as requested on
 * standard input. Of the lines "WHAT COUNT", answered with nanoseconds of one, the mean over COUNT, WHAT is
 *   chain_heddle chain_hand                       1,000 Adds of 1,024 floats, inputs and result copied
 *   h2d_heddle h2d_hand d2h_heddle d2h_hand       a copy of BYTES from or to pinned memory
 *   copy compute both                             a model that copies BYTES in, one of TURNS products, one of both
 *   hand_copy hand_compute hand_both              the like by hand
 *   mixed_heddle mixed_spin mixed_callback mixed_two   100 pairs of an Add of FLOATS on cpu and one on cuda:0
 * and of these, answered with a number: "compare 1" the largest difference of both chains' results, "peak 1" and
 * "tensor_peak 1" the device's operations a second.
 * Usage: bench_cuda BYTES TURNS FLOATS. Without a device it ends with status 77. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "hand_chain.h"
#include "hand_cuda.h"
#include "hand_host.h"

enum { NODES = 1000, WIDTH = 1024, PAIRS = 100, SIDE = 512, CHANNELS = 4096, BUSY = 20000 };

static size_t copy_bytes;
static int turns;
static int64_t floats;

static void run_many(heddle_executor *ex, int count) {
  heddle_error err;
  for (int i = 0; i < count; i++) check(heddle_executor_run(ex, HEDDLE_FOREVER, &err), &err);
}

static heddle_context *context(void) {
  heddle_context *ctx;
  heddle_error err;
  const heddle_setting settings[] = {{"cpu.fuse", "0"}, {"cuda.fuse", "0"}, {"threads", "1"}};
  check(heddle_context_create(settings, 3, NULL, NULL, &ctx, &err), &err);
  return ctx;
}

/* ---- copies through the plugin's own table, which is all that a run's copies go through */

typedef struct copier {
  heddle_device *dev;
  heddle_pstream *stream;
  heddle_pbuffer *device, *host;
} copier;

static heddle_pbuffer *buffer(heddle_device *dev, uint32_t kind) {
  const heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = kind, .bytes = copy_bytes, .align = 256};
  heddle_pbuffer *made;
  heddle_error err;
  void *address;
  check(dev->t->memory.alloc(dev->handle, &desc, &made, &err), &err);
  if (kind == HEDDLE_MEMORY_PINNED) {
    check(dev->t->memory.map(dev->handle, made, &address, &err), &err);
    memset(address, 0, copy_bytes);
  }
  return made;
}

static void copy(heddle_context *ctx, int is_to_device, int count) {
  static copier c;
  heddle_error err;
  if (c.dev == NULL) {
    check(heddle_context_find_device(ctx, "cuda:0", &c.dev, &err), &err);
    check(heddle__device_open(c.dev, &err), &err);
    check(c.dev->t->stream.create(c.dev->handle, HEDDLE_STREAM_COPY, 0, &c.stream, &err), &err);
    c.device = buffer(c.dev, HEDDLE_MEMORY_DEVICE);
    c.host = buffer(c.dev, HEDDLE_MEMORY_PINNED);
  }
  const heddle_copy_table *t = &c.dev->t->copy;
  for (int i = 0; i < count; i++)
    check(is_to_device ? t->h2d(c.stream, c.device, 0, c.host, 0, copy_bytes, &err)
                       : t->d2h(c.stream, c.host, 0, c.device, 0, copy_bytes, &err),
          &err);
  check(c.dev->t->stream.sync(c.stream, HEDDLE_FOREVER, &err), &err);
}

/* ---- a model that copies, one that computes, one of both */

/* b [1,4096,n,1], of which GlobalAveragePool makes a small result, and products of x [512,512] with itself. */
static heddle_executor *copy_and_compute(heddle_context *ctx, int copies, int computes) {
  const int64_t rows = (int64_t)(copy_bytes / sizeof(float) / CHANNELS);
  const int n_compute = computes ? turns : 0;
  char *text = malloc(4096 + 256 * (size_t)n_compute), *p = text;
  heddle_graph *g;
  heddle_model *m;
  heddle_executor *ex;
  heddle_error err;
  if (text == NULL) exit(1);
  p += sprintf(p, "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[{\"op\":\"null\",\"name\":\"b\",\"inputs\":[]},"
                  "{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]}");
  if (copies) p += sprintf(p, ",{\"op\":\"GlobalAveragePool\",\"name\":\"pool\",\"inputs\":[[0,0,0]]}");
  for (int i = 0; i < n_compute; i++)
    p += sprintf(p, ",{\"op\":\"MatMul\",\"name\":\"m%d\",\"inputs\":[[%d,0,0],[1,0,0]]}", i,
                 i == 0 ? 1 : 1 + copies + i);
  p += sprintf(p, "],\"arg_nodes\":[0,1],\"heads\":[");
  if (copies) p += sprintf(p, "[2,0,0]");
  if (computes) p += sprintf(p, "%s[%d,0,0]", copies ? "," : "", 1 + copies + n_compute);
  p += sprintf(p, "],\"node_row_ptr\":[0");
  for (int i = 1; i <= 2 + copies + n_compute; i++) p += sprintf(p, ",%d", i);
  p += sprintf(p, "],\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\"");
  for (int i = 0; i < copies + n_compute; i++) p += sprintf(p, ",null");
  p += sprintf(p, "]],\"shape\":[\"list_shape\",[");
  p += sprintf(p, "[1,%d,%lld,1],[%d,%d]", CHANNELS, (long long)(copies ? rows : 1), SIDE, SIDE);
  for (int i = 0; i < copies + n_compute; i++) p += sprintf(p, ",null");
  sprintf(p, "]]}}");
  check(heddle_graph_parse(text, strlen(text), "overlap", NULL, &g, &err), &err);
  free(text);
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cuda:0"};
  check(heddle_model_create(ctx, g, NULL, &options, &m, &err), &err);
  check(heddle_executor_create(m, &ex, &err), &err);
  const int64_t shapes[2][4] = {{1, CHANNELS, copies ? rows : 1, 1}, {SIDE, SIDE}};
  for (uint32_t i = 0; i < 2; i++) {
    heddle_tensor *t;
    check(heddle_tensor_create(NULL, HEDDLE_FLOAT32, shapes[i], i == 0 ? 4 : 2, &t, &err), &err);
    float *data = heddle_tensor_data(t);
    for (uint64_t k = 0; k < heddle_tensor_bytes(t) / sizeof *data; k++) data[k] = 1.0f / SIDE;
    check(heddle_executor_set_input(ex, i, t, &err), &err);
    heddle_tensor_release(t);
  }
  heddle_model_release(m);
  heddle_graph_release(g);
  return ex;
}

/* ---- orders */

typedef enum part { CHAIN, COPY, OVERLAP, MIXED, PARTS } part;
static int is_ready[PARTS];

static int first(part p) {
  return is_ready[p]++ == 0;
}

static double difference(heddle_executor *ex) {
  run_many(ex, 1);
  hand_cuda_chain_run();
  return difference_to(ex, hand_cuda_chain_result(), WIDTH);
}

static double chain(heddle_context *ctx, const char *what, int count) {
  static const char *const devices[2] = {"cuda:0", "cuda:0"};
  static heddle_executor *ex;
  if (first(CHAIN)) {
    hand_cuda_chain_prepare(NODES, WIDTH, HAND_CHAIN_VALUE);
    ex = hand_chain(ctx, NODES, WIDTH, devices);
    run_many(ex, 1);
  }
  if (strcmp(what, "compare") == 0) return difference(ex);
  const double start = now_ns();
  if (strcmp(what, "chain_heddle") == 0) run_many(ex, count);
  else
    for (int i = 0; i < count; i++) hand_cuda_chain_run();
  return (now_ns() - start) / count;
}

static double copies(heddle_context *ctx, const char *what, int count) {
  const int is_to_device = what[0] == 'h', is_by_hand = strcmp(what + 3, "_hand") == 0;
  if (first(COPY)) hand_cuda_copy_prepare(copy_bytes);
  copy(ctx, is_to_device, 1);
  hand_cuda_copy(is_to_device, 1);
  const double start = now_ns();
  if (is_by_hand) hand_cuda_copy(is_to_device, count);
  else copy(ctx, is_to_device, count);
  return (now_ns() - start) / count;
}

static double overlap(heddle_context *ctx, const char *what, int count) {
  static const char *const names[] = {"copy", "compute", "both"};
  static heddle_executor *made[3];
  const int is_by_hand = strncmp(what, "hand_", 5) == 0;
  int which = 0;
  while (which < 3 && strcmp(what + (is_by_hand ? 5 : 0), names[which]) != 0) which++;
  if (which == 3) {
    fprintf(stderr, "bench_cuda: '%s' is no order\n", what);
    exit(2);
  }
  if (is_by_hand && first(COPY)) hand_cuda_copy_prepare(copy_bytes);
  if (!is_by_hand && made[which] == NULL) made[which] = copy_and_compute(ctx, which != 1, which != 0);
  double start = 0;
  for (int i = -1; i < count; i++) {
    if (i == 0) start = now_ns();
    if (is_by_hand) hand_cuda_overlap("ckb"[which], BUSY * turns);
    else run_many(made[which], 1);
  }
  return (now_ns() - start) / count;
}

static double mixed(heddle_context *ctx, const char *what, int count) {
  static const char *const devices[2] = {"cpu", "cuda:0"};
  static const char *const ways[] = {"mixed_spin", "mixed_callback", "mixed_two"};
  static heddle_executor *ex;
  if (first(MIXED)) {
    hand_cuda_mixed_prepare((int)floats, HAND_CHAIN_VALUE);
    ex = hand_chain(ctx, 2 * (size_t)PAIRS, floats, devices);
    run_many(ex, 1);
  }
  const double start = now_ns();
  if (strcmp(what, "mixed_heddle") == 0) run_many(ex, count);
  else
    for (int i = 0; i < count * PAIRS; i++) {
      int way = 0;
      while (way < 2 && strcmp(what, ways[way]) != 0) way++;
      hand_cuda_mixed((hand_cuda_way)way);
    }
  return (now_ns() - start) / count;
}

int main(int argc, char **argv) {
  char line[128], what[32];
  int count;
  copy_bytes = argc == 4 ? strtoull(argv[1], NULL, 10) / (CHANNELS * sizeof(float)) * (CHANNELS * sizeof(float)) : 0;
  turns = argc == 4 ? atoi(argv[2]) : 0;
  floats = argc == 4 ? strtoll(argv[3], NULL, 10) : 0;
  if (copy_bytes == 0 || turns <= 0 || floats <= 0) {
    fprintf(stderr, "usage: bench_cuda BYTES TURNS FLOATS; BYTES at least %zu\n", CHANNELS * sizeof(float));
    return 2;
  }
  hand_cuda_open();
  heddle_context *ctx = context();
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%31s %d", what, &count) == 2 && count > 0) {
    double answer;
    if (strcmp(what, "peak") == 0 || strcmp(what, "tensor_peak") == 0) answer = hand_cuda_peak(what[0] == 't');
    else if (strcmp(what, "compare") == 0 || strncmp(what, "chain", 5) == 0) answer = chain(ctx, what, count);
    else if (strncmp(what, "h2d", 3) == 0 || strncmp(what, "d2h", 3) == 0) answer = copies(ctx, what, count);
    else if (strncmp(what, "mixed", 5) == 0) answer = mixed(ctx, what, count);
    else answer = overlap(ctx, what, count);
    printf("%.9g\n", answer);
    fflush(stdout);
  }
  return 0;
}
