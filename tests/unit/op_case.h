/* One-node regions for tests of operators: built operand by operand, run on a fake_device, read back. Strides of the
 * region's arrays are wider than this header's structs, as they are when the host is newer than the plugin. */
#ifndef HEDDLE_TESTS_UNIT_OP_CASE_H
#define HEDDLE_TESTS_UNIT_OP_CASE_H

#include "fake_host.h"

#include <math.h>

enum { OP_VALUES = 8, OP_ATTRS = 8, OP_DIMS = 8 };

#define F32 ((heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1})
#define F16 ((heddle_dtype){HEDDLE_DTYPE_FLOAT, 16, 1})
#define I32 ((heddle_dtype){HEDDLE_DTYPE_INT, 32, 1})
#define I64 ((heddle_dtype){HEDDLE_DTYPE_INT, 64, 1})
#define U8 ((heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1})
#define U1 ((heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1})

typedef struct op_value {
  heddle_pvalue v;
  uint64_t newer[3];
} op_value;

typedef struct op_attr {
  heddle_pattr a;
  uint64_t newer;
} op_attr;

typedef struct op_case {
  heddle_pregion region;
  heddle_pnode node;
  op_value values[OP_VALUES]; /* the region inputs in order, then the result */
  op_attr attrs[OP_ATTRS];
  int64_t shapes[OP_VALUES][OP_DIMS], ints[OP_ATTRS][OP_DIMS];
  double floats[OP_ATTRS];
  int32_t node_inputs[OP_VALUES], node_outputs[OP_VALUES], inputs[OP_VALUES], outputs[OP_VALUES];
  void *data[OP_VALUES];
  int32_t in_place; /* region input that shares the result's bytes; -1: none */
  /* What the last query offered. */
  uint32_t flags[OP_VALUES];
  int32_t pairs[8];
  uint64_t n_pairs;
  uint64_t workspace_bytes, workspace_align;
} op_case;

typedef struct op_shape {
  int32_t ndim;
  int64_t dims[OP_DIMS];
} op_shape;

#define SHAPE(n, ...) ((op_shape){(n), {__VA_ARGS__}})
#define NO_DIMS ((op_shape){0, {0}})

static inline void op_case_init(op_case *c, const char *op) {
  memset(c, 0, sizeof *c);
  c->in_place = -1;
  c->node = (heddle_pnode){.struct_size = sizeof c->node, .opset = 13, .domain = "", .op = op, .name = "n1"};
  c->node.attrs = (heddle_parray){c->attrs, 0, sizeof c->attrs[0]};
  c->node.inputs = c->node_inputs;
  c->node.outputs = c->node_outputs;
  c->region = (heddle_pregion){.struct_size = sizeof c->region};
  c->region.nodes = (heddle_parray){&c->node, 1, sizeof c->node};
  c->region.values = (heddle_parray){c->values, 0, sizeof c->values[0]};
  c->region.inputs = c->inputs;
  c->region.outputs = c->outputs;
}

static inline size_t op_count(op_shape shape) {
  size_t count = 1;
  for (int32_t i = 0; i < shape.ndim; i++) count *= (size_t)shape.dims[i];
  return count;
}

static inline void *op_add_value(op_case *c, heddle_dtype dtype, op_shape shape) {
  uint64_t i = c->region.values.count++;
  size_t bytes = op_count(shape) * dtype.bits / 8;
  memcpy(c->shapes[i], shape.dims, sizeof shape.dims);
  c->values[i].v =
      (heddle_pvalue){.struct_size = sizeof(heddle_pvalue), .dtype = dtype, .shape = c->shapes[i], .ndim = shape.ndim};
  c->data[i] = bytes > 0 ? malloc(bytes) : NULL; /* its exact size, so that a sanitizer sees every step beside it */
  if (bytes > 0) memset(c->data[i], 0xff, bytes);
  return c->data[i];
}

/* Adds an operand and gives its data, for the caller to fill. */
static inline void *op_input(op_case *c, heddle_dtype dtype, op_shape shape) {
  int32_t i = (int32_t)c->region.values.count;
  c->node_inputs[c->node.n_inputs++] = i;
  c->inputs[c->region.n_inputs++] = i;
  return op_add_value(c, dtype, shape);
}

static inline void op_input_again(op_case *c, int32_t value) {
  c->node_inputs[c->node.n_inputs++] = value; /* -1: absent */
}

static inline void op_constant(op_case *c, uint32_t input) {
  op_value *value = &c->values[c->inputs[input]];
  value->v.data = c->data[c->inputs[input]];
  value->v.data_bytes = (uint64_t)value->v.shape[0] * 8;
}

static inline void *op_output(op_case *c, heddle_dtype dtype, op_shape shape) {
  int32_t i = (int32_t)c->region.values.count;
  c->node_outputs[c->node.n_outputs++] = i;
  c->outputs[c->region.n_outputs++] = i;
  return op_add_value(c, dtype, shape);
}

static inline uint64_t op_attr_add(op_case *c, const char *name, uint32_t kind, uint64_t count) {
  uint64_t i = c->node.attrs.count++;
  c->attrs[i].a = (heddle_pattr){.struct_size = sizeof(heddle_pattr), .kind = kind, .name = name, .count = count};
  return i;
}

static inline void op_attr_ints(op_case *c, const char *name, uint64_t count, const int64_t *ints) {
  uint64_t i = op_attr_add(c, name, HEDDLE_ATTR_INTS, count);
  memcpy(c->ints[i], ints, count * sizeof *ints);
  c->attrs[i].a.data = c->ints[i];
}

static inline void op_attr_int(op_case *c, const char *name, int64_t value) {
  op_attr_ints(c, name, 1, &value);
  c->attrs[c->node.attrs.count - 1].a.kind = HEDDLE_ATTR_INT;
}

static inline void op_attr_float(op_case *c, const char *name, double value) {
  uint64_t i = op_attr_add(c, name, HEDDLE_ATTR_FLOAT, 1);
  c->floats[i] = value;
  c->attrs[i].a.data = &c->floats[i];
}

static inline void op_attr_string(op_case *c, const char *name, const char *value) {
  uint64_t i = op_attr_add(c, name, HEDDLE_ATTR_STRING, strlen(value));
  c->attrs[i].a.data = value;
}

static inline void op_case_free(op_case *c) {
  for (uint64_t i = 0; i < c->region.values.count; i++) free(c->data[i]);
}

/* ---------------------------------------------------------------- running */

static inline heddle_status op_take_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  op_case *c = sink;
  (void)err;
  for (uint32_t i = 0; i < c->region.n_inputs; i++)
    c->flags[i] = offer->input_flags != NULL ? offer->input_flags[i] : 0;
  c->n_pairs = offer->n_in_place;
  c->workspace_bytes = offer->workspace_bytes;
  c->workspace_align = offer->workspace_align;
  memcpy(c->pairs, offer->in_place, 2 * offer->n_in_place * sizeof *c->pairs);
  return HEDDLE_OK;
}

static inline heddle_status op_query(fake_device *d, op_case *c) {
  return d->plugin->op->query(d->self, 0, &c->region, op_take_offer, c, &d->err);
}

static inline heddle_pslice op_slice(fake_device *d, op_case *c, int32_t value) {
  size_t bytes = c->values[value].v.dtype.bits / 8;
  for (int32_t i = 0; i < c->values[value].v.ndim; i++) bytes *= (size_t)c->shapes[value][i];
  heddle_pslice slice = {NULL, 0, bytes};
  if (bytes == 0) return slice;
  assert_int_equal(d->plugin->memory->import_host(d->dev, c->data[value], bytes, &slice.buffer, &d->err), HEDDLE_OK);
  return slice;
}

/* Asks, prepares, binds and runs, with the threads that the host has. Every step must succeed. */
static inline void op_case_run(fake_device *d, op_case *c) {
  heddle_pslice inputs[OP_VALUES] = {{NULL, 0, 0}}, output;
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  if (op_query(d, c) != HEDDLE_OK) fail_msg("%s", d->err.text);
  output = op_slice(d, c, c->outputs[0]);
  for (uint32_t i = 0; i < c->region.n_inputs; i++) {
    if ((c->flags[i] & HEDDLE_INPUT_ABSORBED) != 0) continue;
    inputs[i] = (int32_t)i == c->in_place ? output : op_slice(d, c, c->inputs[i]);
  }
  heddle_pslice workspace = {NULL, 0, c->workspace_bytes};
  void *memory = NULL;
  if (workspace.bytes > 0) {
    assert_int_equal(posix_memalign(&memory, 4096, (size_t)workspace.bytes), 0);
    assert_int_equal(d->plugin->memory->import_host(d->dev, memory, workspace.bytes, &workspace.buffer, &d->err),
                     HEDDLE_OK);
  }
  heddle_pbind bind = {sizeof bind, 0, inputs, &output, c->region.n_inputs, 1, workspace};
  assert_int_equal(d->plugin->op->prepare(d->dev, &c->region, 0, &op, &d->err), HEDDLE_OK);
  if (d->plugin->op->bind(op, d->stream, &bind, &launch, &d->err) != HEDDLE_OK) fail_msg("%s", d->err.text);
  assert_int_equal(d->plugin->op->run(launch, &d->err), HEDDLE_OK);
  d->plugin->op->launch_free(launch);
  d->plugin->op->op_free(op);
  for (uint32_t i = 0; i < c->region.n_inputs; i++) {
    if ((int32_t)i != c->in_place) d->plugin->memory->free(d->dev, inputs[i].buffer);
  }
  d->plugin->memory->free(d->dev, output.buffer);
  if (memory != NULL) d->plugin->memory->free(d->dev, workspace.buffer);
  free(memory);
}

static inline void op_expect_refused(fake_device *d, op_case *c, const char *words) {
  assert_int_equal(op_query(d, c), HEDDLE_EUNSUPPORTED);
  if (strstr(d->err.text, words) == NULL) fail_msg("'%s' is not in: %s", words, d->err.text);
  if (strstr(d->err.text, "node 'n1'") == NULL) fail_msg("no node in: %s", d->err.text);
  if (strstr(d->err.text, c->node.op) == NULL) fail_msg("no operator in: %s", d->err.text);
  heddle_pop *op = NULL;
  assert_int_not_equal(d->plugin->op->prepare(d->dev, &c->region, 0, &op, &d->err), HEDDLE_OK);
  assert_null(op);
}

/* ---------------------------------------------------------------- numbers */

/* Reproducible numbers in [-2, 2). */
static inline float op_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (float)(*seed >> 8) / 4194304.0f - 2.0f;
}

static inline void op_fill(float *x, size_t n, uint32_t seed) {
  for (size_t i = 0; i < n && x != NULL; i++) x[i] = op_random(&seed);
}

/* bound is what the exact sum of magnitudes allows; relative to it the error may be steps roundings. */
static inline void op_close(double want, double got, double magnitude, double steps, const char *what, size_t i) {
  double bound = magnitude * steps * ldexp(1, -24) + 1e-40;
  if (!(fabs(want - got) <= bound)) fail_msg("%s[%zu]: %.9g instead of %.9g (%.3g over)", what, i, got, want, bound);
}

/* Runs c again with 2, 3 and 8 threads, and with tasks backwards; the result must be the same to the bit. */
static inline void op_same_with_threads(fake_device *d, op_case *c) {
  static const uint32_t threads[] = {2, 3, 8, 8};
  int32_t at = c->outputs[0];
  size_t bytes = c->values[at].v.dtype.bits / 8;
  for (int32_t i = 0; i < c->values[at].v.ndim; i++) bytes *= (size_t)c->shapes[at][i];
  char *first = malloc(bytes);
  assert_non_null(first);
  memcpy(first, c->data[at], bytes);
  for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
    long before = atomic_load(&d->host.parallel_calls);
    d->host.threads = threads[i];
    d->host.backwards = i == 3;
    memset(c->data[at], 0xff, bytes);
    op_case_run(d, c);
    assert_int_equal(atomic_load(&d->host.parallel_calls), before + 1);
    assert_memory_equal(first, c->data[at], bytes);
  }
  d->host.threads = 1;
  free(first);
}

#endif
