/* executor/place/measure.c: a region, alone on its device, run again and again. */
#include "executor/place/measure.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define PATIENCE_NS UINT64_C(10000000000) /* for one batch, until the device is taken to hang */
#define BATCH_NS 500000.0                 /* about how long a batch is to take */
enum { ROUNDS = 9, FEW_ROUNDS = 3, MOST_BATCH = 64 };

typedef struct operand {
  heddle_pbuffer *buffer;
  uint64_t bytes;
} operand;

typedef struct bench {
  heddle_device *dev;
  const heddle_pregion *region; /* with the layouts of the offer */
  const heddle__offer *offer;
  heddle_pvalue *values;
  heddle_pregion copy;
  operand *operands; /* inputs, outputs, workspace */
  heddle_pslice *slices;
  heddle_pstream *stream;
  heddle_pop *op;
  heddle_plaunch *launch;
  heddle_ptimer *timer;
  bool hung;
} bench;

/* ---- operands */

/* Bytes of a value in its layout. */
static heddle_status size_of(const bench *b, const heddle_pvalue *v, uint64_t *bytes, heddle_error *err) {
  uint64_t align = 1;
  heddle_pvalue t = *v;
  t.data = NULL;
  t.data_bytes = 0;
  if (v->layout != 0) return b->dev->t->layout.bytes(b->dev->instance, b->dev->index, &t, bytes, &align, err);
  uint64_t n = (uint64_t)v->dtype.bits * v->dtype.lanes;
  for (int32_t i = 0; i < v->ndim; i++) n *= (uint64_t)v->shape[i];
  *bytes = (n + 7) / 8;
  return HEDDLE_OK;
}

/* Numbers that no operator is slow with: floats from 0.5 to 1.5; whole numbers 0, so that they are places of anything, but 1
 * where they may divide. */
static void make_up(const bench *b, const heddle_pvalue *v, unsigned char *to, uint64_t bytes) {
  const heddle_pnode *node = b->region->nodes.data;
  const bool divides = strcmp(node->op, "Div") == 0 || strcmp(node->op, "Mod") == 0;
  const uint64_t size = v->dtype.bits / 8u;
  uint32_t x = 12345;
  memset(to, 0, (size_t)bytes);
  for (uint64_t at = 0; size > 0 && at + size <= bytes; at += size) {
    x = x * 1664525u + 1013904223u;
    if (v->dtype.code == HEDDLE_DTYPE_FLOAT && size == 4) {
      float f = 0.5F + (float)(x >> 8) / 16777216.0F;
      memcpy(to + at, &f, 4);
    } else if (v->dtype.code == HEDDLE_DTYPE_FLOAT && size == 8) {
      double f = 0.5 + (double)(x >> 8) / 16777216.0;
      memcpy(to + at, &f, 8);
    } else if (size == 2 && (v->dtype.code == HEDDLE_DTYPE_FLOAT || v->dtype.code == HEDDLE_DTYPE_BFLOAT)) {
      uint16_t half = (uint16_t)(v->dtype.code == HEDDLE_DTYPE_FLOAT ? 0x3800 + (x >> 22) : 0x3f00 + (x >> 25));
      memcpy(to + at, &half, 2);
    } else if (size == 1) {
      to[at] = (unsigned char)(v->dtype.code == HEDDLE_DTYPE_BOOL ? x >> 31 : x >> 26);
    }
    if (divides && to[at] == 0 && v->dtype.code <= HEDDLE_DTYPE_UINT) to[at] = 1;
  }
}

static heddle_status fill(bench *b, const heddle_pvalue *v, const operand *o, heddle_error *err) {
  unsigned char *made = NULL;
  const void *from = v->data;
  heddle_status s = HEDDLE_OK;
  if (v->data == NULL || v->layout != 0) {
    made = o->bytes <= SIZE_MAX / 2 ? heddle__alloc((size_t)o->bytes, 1) : NULL;
    if (made == NULL) return heddle__no_memory(err, "values to measure with");
    from = made;
    if (v->data != NULL) s = b->dev->t->layout.pack(b->dev->instance, b->dev->index, v, made, o->bytes, err);
    else make_up(b, v, made, o->bytes);
  }
  if (s == HEDDLE_OK) s = b->dev->t->copy.write(b->stream, o->buffer, 0, from, o->bytes, err);
  heddle__free(made);
  return s;
}

static heddle_status take(bench *b, operand *o, uint64_t bytes, uint64_t align, heddle_pslice *slice,
                          heddle_error *err) {
  if (bytes == 0) return HEDDLE_OK;
  const uint64_t least = b->dev->desc.alignment > 64 ? b->dev->desc.alignment : 64;
  const heddle_pmemory_desc desc = {
      .struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = bytes, .align = align > least ? align : least};
  heddle_status s = b->dev->t->memory.alloc(b->dev->handle, &desc, &o->buffer, err);
  if (s != HEDDLE_OK) return s;
  o->bytes = bytes;
  *slice = (heddle_pslice){o->buffer, 0, bytes};
  return HEDDLE_OK;
}

static heddle_status bind(bench *b, heddle_error *err) {
  const heddle_pregion *r = b->region;
  const uint32_t n = r->n_inputs + r->n_outputs;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < n && s == HEDDLE_OK; i++) {
    const bool is_input = i < r->n_inputs;
    const heddle_pvalue *v = &b->values[is_input ? r->inputs[i] : r->outputs[i - r->n_inputs]];
    if (is_input && (b->offer->input_flags[i] & HEDDLE_INPUT_ABSORBED) != 0) continue;
    uint64_t bytes = 0;
    s = size_of(b, v, &bytes, err);
    if (s == HEDDLE_OK) s = take(b, &b->operands[i], bytes, 64, &b->slices[i], err);
    if (s == HEDDLE_OK && is_input && bytes > 0) s = fill(b, v, &b->operands[i], err);
  }
  if (s == HEDDLE_OK)
    s = take(b, &b->operands[n], b->offer->workspace_bytes, b->offer->workspace_align, &b->slices[n], err);
  const heddle_pbind operands = {.struct_size = sizeof operands,
                                 .inputs = b->slices,
                                 .outputs = b->slices + r->n_inputs,
                                 .n_inputs = r->n_inputs,
                                 .n_outputs = r->n_outputs,
                                 .workspace = b->slices[n]};
  return s == HEDDLE_OK ? b->dev->t->op.bind(b->op, b->stream, &operands, &b->launch, err) : s;
}

/* ---- time */

/* Waits for the stream. */
static heddle_status sync(bench *b, heddle_error *err) {
  heddle_status s = b->dev->t->stream.sync(b->stream, PATIENCE_NS, err);
  b->hung = b->hung || s == HEDDLE_ETIMEOUT;
  return s;
}

/* One batch; *ns is for one of it. */
static heddle_status batch(bench *b, uint32_t count, double *ns, heddle_error *err) {
  const heddle__tables *t = b->dev->t;
  uint64_t marks[2] = {0, 0};
  const uint64_t start = heddle__now_ns();
  heddle_status s = b->timer != NULL ? t->timing.mark(b->stream, b->timer, 0, err) : HEDDLE_OK;
  uint32_t n = 0;
  while (n < count && (s = s == HEDDLE_OK ? t->op.run(b->launch, err) : s) == HEDDLE_OK) n++;
  if (s == HEDDLE_ELIMIT && n > 0) s = HEDDLE_OK, count = n; /* its queue is full */
  if (s == HEDDLE_OK && b->timer != NULL) s = t->timing.mark(b->stream, b->timer, 1, err);
  heddle_status done = s == HEDDLE_EDEVICE ? s : sync(b, s == HEDDLE_OK ? err : NULL);
  if (s == HEDDLE_OK) s = done;
  *ns = (double)(heddle__now_ns() - start) / (count > 0 ? count : 1);
  if (s == HEDDLE_OK && b->timer != NULL) s = t->timing.read(b->timer, 0, 2, marks, err);
  if (s == HEDDLE_OK && b->timer != NULL && count > 0 && marks[1] > marks[0])
    *ns = (double)(marks[1] - marks[0]) / count;
  return s;
}

static void sort(double *x, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = i; k > 0 && x[k] < x[k - 1]; k--) {
      double y = x[k];
      x[k] = x[k - 1];
      x[k - 1] = y;
    }
}

/* What waiting for nothing takes, by the host's clock; 0 where the device's is used. */
static heddle_status empty_wait(bench *b, double *ns, heddle_error *err) {
  double waits[5];
  *ns = 0;
  if (b->timer != NULL) return HEDDLE_OK;
  for (int i = 0; i < 5; i++) {
    heddle_status s = batch(b, 0, &waits[i], err);
    if (s != HEDDLE_OK) return s;
  }
  sort(waits, 5);
  *ns = waits[2];
  return HEDDLE_OK;
}

static heddle_status rounds(bench *b, uint64_t most_ns, heddle__time *out, heddle_error *err) {
  double all[ROUNDS], first, wait;
  heddle_status s = batch(b, 1, &first, err); /* what is made at the first run is not timed */
  if (s == HEDDLE_OK) s = batch(b, 1, &first, err);
  if (s == HEDDLE_OK) s = empty_wait(b, &wait, err);
  if (s != HEDDLE_OK) return s;
  double many = first > 0 ? BATCH_NS / first : MOST_BATCH;
  const uint32_t count = many < 1 ? 1 : many > MOST_BATCH ? MOST_BATCH : (uint32_t)many;
  const uint32_t n = first * count * ROUNDS > (double)most_ns / 4 && first > BATCH_NS ? FEW_ROUNDS : ROUNDS;
  for (uint32_t i = 0; i < n; i++) {
    s = batch(b, count, &all[i], err);
    if (s != HEDDLE_OK) return s;
    all[i] -= wait / count;
    if (all[i] < 1) all[i] = 1;
  }
  sort(all, n);
  const uint32_t cut = n == ROUNDS ? 1 : 0; /* the second and the last but one of nine hold the median with 96 % */
  out->ns = all[n / 2];
  out->margin = (all[n - 1 - cut] - all[cut]) / 2;
  if (out->margin < out->ns / 100) out->margin = out->ns / 100; /* clocks are not finer than that */
  return HEDDLE_OK;
}

/* ---- the whole */

static heddle_status start(bench *b, const heddle_pregion *asked, heddle_error *err) {
  const uint32_t n = asked->n_inputs + asked->n_outputs + 1;
  b->values = heddle__alloc((size_t)asked->values.count, sizeof *b->values);
  b->operands = heddle__alloc(n, sizeof *b->operands);
  b->slices = heddle__alloc(n, sizeof *b->slices);
  if (b->values == NULL || b->operands == NULL || b->slices == NULL) return heddle__no_memory(err, "a measurement");
  memcpy(b->values, asked->values.data, (size_t)asked->values.count * sizeof *b->values);
  for (uint32_t i = 0; i < asked->n_inputs; i++) b->values[asked->inputs[i]].layout = b->offer->input_layouts[i];
  for (uint32_t i = 0; i < asked->n_outputs; i++) b->values[asked->outputs[i]].layout = b->offer->output_layouts[i];
  b->copy = *asked;
  b->copy.values.data = b->values;
  b->region = &b->copy;
  heddle_status s = b->dev->t->op.prepare(b->dev->handle, b->region, 0, &b->op, err);
  if (s == HEDDLE_OK) s = b->dev->t->stream.create(b->dev->handle, HEDDLE_STREAM_COMPUTE, 0, &b->stream, err);
  if (s == HEDDLE_OK && b->dev->t->has_timing &&
      b->dev->t->timing.create(b->dev->handle, 2, &b->timer, NULL) != HEDDLE_OK)
    b->timer = NULL;
  return s;
}

static void finish(bench *b, uint32_t n) {
  const heddle__tables *t = b->dev->t;
  bool quiet = true;
  /* Where a call failed on the way, what was put on the stream before it may still touch the operands. */
  if (b->stream != NULL) (void)heddle__device_settle(b->dev, b->stream, PATIENCE_NS, &quiet, NULL);
  if (!quiet) (void)t->device.idle(b->dev->handle, 0, NULL); /* so its plugin knows that it has to keep them */
  if (b->launch != NULL) t->op.launch_free(b->launch);
  if (b->op != NULL) t->op.op_free(b->op);
  if (b->timer != NULL) t->timing.free(b->timer);
  if (b->stream != NULL) t->stream.close(b->stream);
  for (uint32_t i = 0; b->operands != NULL && i < n; i++)
    if (b->operands[i].buffer != NULL) t->memory.free(b->dev->handle, b->operands[i].buffer);
  heddle__free(b->values);
  heddle__free(b->operands);
  heddle__free(b->slices);
}

heddle_status heddle__measure(heddle_device *dev, const heddle__answer *answer, uint64_t most_ns, heddle__time *out,
                              heddle_error *err) {
  bench b = {.dev = dev, .offer = &answer->offers[0]};
  heddle_error why = {0};
  heddle_status s = start(&b, answer->ask, &why);
  if (s == HEDDLE_OK) s = bind(&b, &why);
  if (s == HEDDLE_OK) s = rounds(&b, most_ns, out, &why);
  finish(&b, answer->ask->n_inputs + answer->ask->n_outputs + 1);
  if (s == HEDDLE_EDEVICE) heddle__device_fault(dev, why.api_code, why.text);
  if (s != HEDDLE_OK && err != NULL) *err = why;
  return s;
}
