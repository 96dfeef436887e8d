/* bench/bench_tvm.c: graphs of functions that TVM compiled, run by Heddle and by a loop written by hand, as requested
 * on standard input: bench_tvm LIBRARY; each line "chain|real ours|hand RUNS" gives nanoseconds of one run, "chain|real
 * slots 1" the bytes of the plan's memory.
 * The loop is what a program without a runtime does: it resets the result, calls with arguments that were prepared once,
 * and looks at what came back. Both use functions add1 (one element) and dense (128 x 128 by 128 x 128). */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include <dlfcn.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

enum { CHAIN = 1000, REAL = 30, SIDE = 128 };

typedef struct tensor { /* DLTensor */
  void *data;
  int32_t device_type, device_id, ndim;
  heddle_dtype dtype;
  const int64_t *shape, *strides;
  uint64_t offset;
} tensor;

typedef struct any { /* TVMFFIAny */
  int32_t type;
  uint32_t zero;
  void *p;
} any;

typedef int32_t (*function)(void *self, const any *args, int32_t n, any *result);

typedef struct model {
  heddle_executor *ex;
  function f; /* by hand: nodes calls of it */
  tensor *tensors;
  any *args;
  int nodes;
  float *x, *buffers[2];
} model;

/* Node i is FUNCTION(what was before, x). */
static char *graph_text(int nodes, const char *name, const char *shape) {
  size_t size = 4096 + (size_t)nodes * 320;
  char *text = malloc(size), *p = text;
  if (text == NULL) exit(1);
  p += sprintf(p, "{\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]}");
  for (int i = 1; i <= nodes; i++)
    p += sprintf(p,
                 ",{\"op\":\"tvm_op\",\"name\":\"n%d\",\"attrs\":{\"func_name\":\"%s\",\"num_inputs\":\"2\","
                 "\"num_outputs\":\"1\",\"flatten_data\":\"0\"},\"inputs\":[[%d,0,0],[0,0,0]]}",
                 i, name, i - 1);
  p += sprintf(p, "],\"arg_nodes\":[0],\"heads\":[[%d,0,0]],\"node_row_ptr\":[0", nodes);
  for (int i = 1; i <= nodes + 1; i++) p += sprintf(p, ",%d", i);
  p += sprintf(p, "],\"attrs\":{\"dltype\":[\"list_str\",[\"float32\"");
  for (int i = 0; i < nodes; i++) p += sprintf(p, ",\"float32\"");
  p += sprintf(p, "]],\"shape\":[\"list_shape\",[%s", shape);
  for (int i = 0; i < nodes; i++) p += sprintf(p, ",%s", shape);
  p += sprintf(p, "]],\"storage_id\":[\"list_int\",[0");
  for (int i = 0; i < nodes; i++) p += sprintf(p, ",%d", i + 1);
  sprintf(p, "]]}}");
  return text;
}

static model make(heddle_context *ctx, heddle_module *library, void *handle, const char *name, int nodes,
                  const int64_t *shape, uint32_t ndim) {
  model m = {.nodes = nodes};
  heddle_error err;
  heddle_graph *g;
  heddle_model *made;
  char words[64], symbol[64];
  size_t n = 1;
  for (uint32_t i = 0; i < ndim; i++) n *= (size_t)shape[i];
  if (ndim == 1) snprintf(words, sizeof words, "[%d]", (int)shape[0]);
  else snprintf(words, sizeof words, "[%d,%d]", (int)shape[0], (int)shape[1]);
  char *text = graph_text(nodes, name, words);
  check(heddle_graph_parse(text, strlen(text), "bench", NULL, &g, &err), &err);
  free(text);
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu", .library = library};
  check(heddle_model_create(ctx, g, NULL, &options, &made, &err), &err);
  check(heddle_executor_create(made, &m.ex, &err), &err);
  heddle_model_release(made);
  heddle_graph_release(g);

  size_t bytes = (n * sizeof(float) + 255) / 256 * 256;
  m.x = aligned_alloc(256, bytes);
  m.buffers[0] = aligned_alloc(256, bytes);
  m.buffers[1] = aligned_alloc(256, bytes);
  m.tensors = calloc(3, sizeof *m.tensors);
  m.args = calloc((size_t)nodes * 3, sizeof *m.args);
  snprintf(symbol, sizeof symbol, "__tvm_ffi_%s", name);
  void *code = dlsym(handle, symbol);
  if (m.x == NULL || m.buffers[0] == NULL || m.buffers[1] == NULL || m.tensors == NULL || m.args == NULL ||
      code == NULL)
    exit(1);
  memcpy(&m.f, &code, sizeof m.f);
  for (size_t i = 0; i < n; i++) m.x[i] = 1e-3f;
  for (int i = 0; i < 3; i++)
    m.tensors[i] = (tensor){.data = i == 0 ? m.x : m.buffers[i - 1],
                            .device_type = 1,
                            .ndim = (int32_t)ndim,
                            .dtype = HEDDLE_FLOAT32,
                            .shape = shape};
  for (int i = 0; i < nodes; i++) {
    tensor *before = i == 0 ? &m.tensors[0] : &m.tensors[1 + (i + 1) % 2];
    any *a = &m.args[3 * i];
    a[0] = (any){7, 0, before};
    a[1] = (any){7, 0, &m.tensors[0]};
    a[2] = (any){7, 0, &m.tensors[1 + i % 2]};
  }
  heddle_tensor *t;
  check(heddle_tensor_wrap(m.x, HEDDLE_FLOAT32, shape, ndim, NULL, NULL, NULL, &t, &err), &err);
  check(heddle_executor_set_input(m.ex, 0, t, &err), &err);
  heddle_tensor_release(t);
  return m;
}

static void by_hand(const model *m) {
  for (int i = 0; i < m->nodes; i++) {
    any result = {0, 0, NULL};
    if (m->f(NULL, &m->args[3 * i], 3, &result) != 0) exit(1);
  }
}

/* Both give the same bytes, or the benchmark means nothing. */
static void compare(const model *m) {
  heddle_error err;
  heddle_tensor *out;
  by_hand(m);
  check(heddle_executor_run(m->ex, HEDDLE_FOREVER, &err), &err);
  check(heddle_executor_view_output(m->ex, 0, &out, &err), &err);
  if (memcmp(heddle_tensor_data(out), m->buffers[(m->nodes - 1) % 2], heddle_tensor_bytes(out)) != 0) {
    fprintf(stderr, "the two results differ\n");
    exit(1);
  }
  heddle_tensor_release(out);
}

static double slots(const model *m) {
  heddle_error err;
  char *text;
  double bytes = 0;
  check(heddle_executor_explain(m->ex, HEDDLE_EXPLAIN_JSON, &text, &err), &err);
  json_t *plan = json_loads(text, 0, NULL), *alloc;
  size_t i;
  json_array_foreach(json_object_get(plan, "allocations"), i, alloc) {
    bytes += (double)json_integer_value(json_object_get(alloc, "bytes"));
  }
  json_decref(plan);
  heddle_free(text);
  return bytes;
}

static void finish(model *m) {
  heddle_executor_release(m->ex);
  free(m->x);
  free(m->buffers[0]);
  free(m->buffers[1]);
  free(m->tensors);
  free(m->args);
}

int main(int argc, char **argv) {
  static const int64_t one[] = {1}, square[] = {SIDE, SIDE};
  heddle_error err;
  heddle_context *ctx;
  heddle_module *library;
  heddle_setting setting = {"threads", "1"};
  if (argc != 2) return 2;
  check(heddle_context_create(&setting, 1, NULL, NULL, &ctx, &err), &err);
  check(heddle_module_load(ctx, argv[1], &library, &err), &err);
  void *handle = dlopen(argv[1], RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return 1;
  model chain = make(ctx, library, handle, "add1", CHAIN, one, 1);
  model real = make(ctx, library, handle, "dense", REAL, square, 2);
  compare(&chain);
  compare(&real);
  char line[128], which[64], how[64];
  int runs;
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%63s %63s %d", which, how, &runs) == 3 && runs > 0) {
    const model *m = strcmp(which, "chain") == 0 ? &chain : &real;
    bool memory = strcmp(how, "slots") == 0;
    double start = now_ns();
    for (int i = 0; i < runs && !memory; i++) {
      if (strcmp(how, "hand") == 0) by_hand(m);
      else check(heddle_executor_run(m->ex, HEDDLE_FOREVER, &err), &err);
    }
    printf("%.3f\n", memory ? slots(m) : (now_ns() - start) / runs);
    fflush(stdout);
  }
  finish(&chain);
  finish(&real);
  dlclose(handle);
  heddle_module_release(library);
  heddle_context_release(ctx);
  return 0;
}
