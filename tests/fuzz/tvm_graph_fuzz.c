/* Any bytes as a graph of TVM's with parameters beside it, planned and run on cpu: no crash, no leak. The functions that
 * it names are all there, in a library that is none: they do nothing, and look at the operands that they get.
 * The parameters follow the graph's text behind a zero byte. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "graph/graph.h"
#include "heddle/heddle.h"
#include "modules/module.h"

enum { MOST_BYTES = 1 << 20 }; /* of all tensors of a graph that is run */

/* ---- functions that do nothing */

struct heddle_pop {
  uint32_t n_inputs, n_outputs;
};

struct heddle_plaunch {
  heddle_pslice slices[64];
  uint32_t n;
};

static heddle_status find(const heddle__tvm_library *l, const char *function, int32_t *type, const char **kind,
                          heddle_error *err) {
  (void)l;
  if (function[0] == 'z') return heddle__fail(err, HEDDLE_ENOTFOUND, "there is no function '%s'", function);
  *type = HEDDLE_DEVICE_CPU;
  *kind = NULL;
  return HEDDLE_OK;
}

static bool serves(const heddle__tvm_library *l, int32_t type) {
  (void)l;
  return type == HEDDLE_DEVICE_CPU;
}

static uint64_t alignment(const heddle__tvm_library *l) {
  (void)l;
  return 128;
}

static void launch_free(heddle_plaunch *launch) {
  heddle__free(launch);
}

static void op_free(heddle_pop *op) {
  heddle__free(op);
}

static heddle_status prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                             heddle_error *err) {
  (void)dev;
  if (offer != 0 || region->nodes.count != 1) abort();
  *out = heddle__alloc(1, sizeof **out);
  if (*out == NULL) return heddle__no_memory(err, "a function");
  **out = (heddle_pop){region->n_inputs, region->n_outputs};
  return HEDDLE_OK;
}

static heddle_status bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                          heddle_error *err) {
  (void)stream;
  if (operands->n_inputs != op->n_inputs || operands->n_outputs != op->n_outputs) abort();
  *out = heddle__alloc(1, sizeof **out);
  if (*out == NULL) return heddle__no_memory(err, "a launch");
  for (uint32_t i = 0; i < op->n_inputs + op->n_outputs && i < 64; i++)
    (*out)->slices[(*out)->n++] = i < op->n_inputs ? operands->inputs[i] : operands->outputs[i - op->n_inputs];
  return HEDDLE_OK;
}

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  (void)err;
  for (uint32_t i = 0; i < launch->n; i++)
    if (launch->slices[i].bytes > MOST_BYTES) abort();
  return HEDDLE_OK;
}

static const heddle_op_table op = {.struct_size = sizeof op,
                                   .launch_free = launch_free,
                                   .op_free = op_free,
                                   .prepare = prepare,
                                   .bind = bind,
                                   .run = run};
static const heddle__tvm_table table = {.find = find, .serves = serves, .alignment = alignment, .op = &op};
static heddle_module library = {.references = 1, .t = &table, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- a graph */

/* Whether tensors are of a size that a run here may have; shapes that are open are not given. */
static bool is_small(const heddle_graph *g) {
  uint64_t left = MOST_BYTES;
  for (uint32_t i = 0; i < g->n_entries; i++) {
    const heddle__type *t = &g->types[i];
    uint64_t bytes = t->has_dtype && t->has_shape ? ((uint64_t)t->dtype.bits * t->dtype.lanes + 7) / 8 : left + 1;
    for (uint32_t d = 0; d < t->ndim && bytes > 0 && bytes <= left; d++) {
      uint64_t n = t->dims[d].value < 0 ? left + 1 : (uint64_t)t->dims[d].value;
      bytes = n > left ? left + 1 : bytes * n;
    }
    if (bytes > left) return false;
    left -= bytes;
  }
  return true;
}

static void run_model(heddle_model *m) {
  heddle_error err;
  heddle_executor *ex = NULL;
  if (heddle_executor_create(m, &ex, &err) != HEDDLE_OK) return;
  for (uint32_t i = 0; i < heddle_executor_input_count(ex); i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    heddle_tensor *t = NULL;
    if (heddle_executor_input_info(ex, i, &info, &err) != HEDDLE_OK) abort();
    if (info.is_param || heddle_tensor_create(NULL, info.dtype, info.shape, info.ndim, &t, &err) != HEDDLE_OK) continue;
    heddle_executor_set_input(ex, i, t, &err);
    heddle_tensor_release(t);
  }
  for (int k = 0; k < 2; k++)
    if (heddle_executor_run(ex, UINT64_C(5000000000), &err) == HEDDLE_ETIMEOUT) abort();
  heddle_executor_release(ex);
}

static heddle_context *context(void) {
  static heddle_context *ctx;
  static const heddle_setting settings[] = {
      {"config", "off"}, {"probe", "off"}, {"threads", "1"}, {"log", "error"}, {"opencl.driver", "off"}};
  heddle_device *cpu = NULL;
  heddle_error err = {0};
  if (ctx != NULL) return ctx;
  /* Beside this program is the build's cpu plugin; there is nothing to test without it. */
  if (heddle_context_create(settings, sizeof settings / sizeof *settings, NULL, NULL, &ctx, &err) != HEDDLE_OK ||
      heddle_context_find_device(ctx, "cpu", &cpu, &err) != HEDDLE_OK) {
    fprintf(stderr, "%s\n", err.text);
    exit(77);
  }
  library.ctx = ctx;
  return ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heddle_context *ctx = context();
  heddle_graph *g = NULL;
  heddle_params *p = NULL;
  heddle_model *m = NULL;
  heddle_error err;
  const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
  size_t text = zero != NULL ? (size_t)(zero - data) : size;
  if (heddle_graph_parse((const char *)data, text, "fuzz.json", NULL, &g, &err) != HEDDLE_OK) return 0;
  if (zero != NULL) heddle_params_parse(zero + 1, size - text - 1, "fuzz.params", NULL, &p, &err);
  heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu", .library = &library};
  if (is_small(g) && heddle_model_create(ctx, g, p, &o, &m, &err) == HEDDLE_OK) {
    char *plan = NULL;
    if (heddle_model_explain(m, HEDDLE_EXPLAIN_JSON, NULL, NULL, 0, &plan, &err) == HEDDLE_OK) heddle_free(plan);
    run_model(m);
  }
  heddle_model_release(m);
  heddle_params_release(p);
  heddle_graph_release(g);
  if (atomic_load(&library.references) != 1) abort();
  return 0;
}
