/* A prepared Relu (relu.h), taken in the plugin's first offer that leaves operands in layout 0. */
#include "conformance/relu.h"

#include <inttypes.h>
#include <string.h>

enum { COUNT = KIT_RELU_BYTES / sizeof(float) };

/* What query's offers are kept in: the first with plain layouts. */
typedef struct choice {
  uint32_t seen, index;
  bool found;
  uint64_t workspace_bytes, workspace_align;
} choice;

static heddle_status take_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  choice *c = sink;
  bool plain = (offer->input_layouts == NULL || offer->input_layouts[0] == 0) &&
               (offer->output_layouts == NULL || offer->output_layouts[0] == 0);
  (void)err;
  if (plain && !c->found) {
    c->found = true;
    c->index = c->seen;
    c->workspace_bytes = offer->workspace_bytes;
    c->workspace_align = offer->workspace_align;
  }
  c->seen++;
  return HEDDLE_OK;
}

/* Relu over a row, as a region; what it points to is constant. */
static const heddle_pregion *relu_region(void) {
  static const int64_t shape[1] = {COUNT};
  static const int32_t first = 0, second = 1;
  static const heddle_pvalue values[2] = {
      {.struct_size = sizeof values[0], .dtype = {HEDDLE_DTYPE_FLOAT, 32, 1}, .shape = shape, .ndim = 1},
      {.struct_size = sizeof values[0], .dtype = {HEDDLE_DTYPE_FLOAT, 32, 1}, .shape = shape, .ndim = 1},
  };
  static const heddle_pnode node = {.struct_size = sizeof node,
                                    .opset = 14,
                                    .domain = "",
                                    .op = "Relu",
                                    .name = "relu",
                                    .attrs = {NULL, 0, sizeof(heddle_pattr)},
                                    .inputs = &first,
                                    .outputs = &second,
                                    .n_inputs = 1,
                                    .n_outputs = 1,
                                    .since_version = 14};
  static const heddle_pregion region = {.struct_size = sizeof region,
                                        .nodes = {&node, 1, sizeof node},
                                        .values = {values, 2, sizeof values[0]},
                                        .inputs = &first,
                                        .outputs = &second,
                                        .n_inputs = 1,
                                        .n_outputs = 1};
  return &region;
}

heddle_status kit_relu_prepare(kit *k, heddle_pdevice *dev, const kit_relu *like, heddle_pop **out, heddle_error *err) {
  return k->t.op.prepare(dev, relu_region(), like->offer, out, err);
}

kit_relu kit_relu_new(kit *k, heddle_pdevice *dev, uint32_t index) {
  kit_relu relu = {.dev = dev};
  choice c = {0};
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  heddle_status status = k->t.op.query(k->instance, index, relu_region(), take_offer, &c, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device takes no Relu: %s", k->err.text);
  kit_ok(k, status, "op.query of Relu");
  if (!c.found) kit_skip(k, "the device takes Relu in layouts of its own only");
  relu.offer = c.index;
  kit_ok(k, kit_relu_prepare(k, dev, &relu, &relu.op, &k->err), "op.prepare of Relu");
  if (c.workspace_bytes != 0) {
    const heddle_pmemory_desc desc = {.struct_size = sizeof desc,
                                      .kind = HEDDLE_MEMORY_DEVICE,
                                      .bytes = c.workspace_bytes,
                                      .align = c.workspace_align};
    kit_ok(k, k->t.memory.alloc(dev, &desc, &relu.workspace.buffer, &k->err), "memory.alloc of a workspace");
    relu.workspace.bytes = c.workspace_bytes;
  }
  return relu;
}

void kit_relu_free(kit *k, kit_relu *relu) {
  k->t.op.op_free(relu->op);
  if (relu->workspace.buffer != NULL) kit_free(k, relu->dev, relu->workspace.buffer);
}

heddle_status kit_relu_try_bind(kit *k, const kit_relu *relu, heddle_pstream *s, heddle_pbuffer *x, heddle_pbuffer *y,
                                heddle_plaunch **out, heddle_error *err) {
  const heddle_pslice in = {x, 0, KIT_RELU_BYTES}, result = {y, 0, KIT_RELU_BYTES};
  const heddle_pbind operands = {.struct_size = sizeof operands,
                                 .inputs = &in,
                                 .outputs = &result,
                                 .n_inputs = 1,
                                 .n_outputs = 1,
                                 .workspace = relu->workspace};
  return k->t.op.bind(relu->op, s, &operands, out, err);
}

heddle_plaunch *kit_relu_bind(kit *k, const kit_relu *relu, heddle_pstream *s, heddle_pbuffer *x, heddle_pbuffer *y) {
  heddle_plaunch *launch = NULL;
  kit_ok(k, kit_relu_try_bind(k, relu, s, x, y, &launch, &k->err), "op.bind of Relu");
  return launch;
}

void kit_relu_run(kit *k, heddle_plaunch *launch) {
  kit_ok(k, k->t.op.run(launch, &k->err), "op.run of Relu");
}

/* Small whole numbers of both signs, so that the result is exact. */
float kit_relu_x(uint32_t seed, uint32_t i) {
  return (float)((int32_t)((i * 37 + seed * 101) % 401) - 200);
}

void kit_relu_put(kit *k, heddle_pstream *s, heddle_pbuffer *x, uint32_t seed) {
  float data[COUNT];
  for (uint32_t i = 0; i < COUNT; i++) data[i] = kit_relu_x(seed, i);
  kit_put(k, s, x, 0, data, sizeof data);
}

void kit_relu_check(kit *k, heddle_pstream *s, heddle_pbuffer *y, uint32_t seed, const char *what) {
  float data[COUNT];
  kit_get(k, s, y, 0, data, sizeof data);
  for (uint32_t i = 0; i < COUNT; i++) {
    float x = kit_relu_x(seed, i), expect = x > 0 ? x : 0;
    if (!(data[i] >= expect && data[i] <= expect))
      kit_fail(k, "%s: element %" PRIu32 " of Relu is %g and should be %g", what, i, (double)data[i], (double)expect);
  }
}
