/* The cases numerics/resize and numerics/resize-refused: a launch that op.resize gives other sizes gives what one gives that was
 * prepared for them, and one whose op.resize was refused what it gave before. Regions whose operands are known say which
 * dimensions are open; of others any may be. */
#include "op_each.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 3 };

/* An operator with the shapes of its bound, and with smaller ones. */
typedef struct sized_line {
  const char *op;
  uint32_t opset;
  const char *types;
  const char *text[SIZES];
} sized_line;

/* clang-format off */
static const sized_line lines[] = {
  {"Relu", 14, "f", {"T[9,37] > T[9,37]", "T[5,21] > T[5,21]", "T[1,37] > T[1,37]"}},
  {"Tanh", 13, "fh", {"T[9,37] > T[9,37]", "T[5,21] > T[5,21]", "T[9,1] > T[9,1]"}},
  {"Add", 14, "fhl", {"T[9,37] T[9,37] > T[9,37]", "T[5,37] T[5,37] > T[5,37]", "T[2,3] T[2,3] > T[2,3]"}},
  {"Add", 14, "f", {"T[2,9,37] T[9,37] > T[2,9,37]", "T[2,5,37] T[5,37] > T[2,5,37]", "T[1,9,4] T[9,4] > T[1,9,4]"}},
  {"Mul", 14, "f", {"T[9,37] T[9,1] > T[9,37]", "T[5,36] T[5,1] > T[5,36]", "T[1,8] T[1,1] > T[1,8]"}},
  {"Where", 16, "f", {"B[9,8] T[9,8] T[8] > T[9,8]", "B[4,8] T[4,8] T[8] > T[4,8]", "B[9,3] T[9,3] T[3] > T[9,3]"}},
  {"Cast", 13, "f", {"T[9,37] > i[9,37] ; to=6", "T[2,37] > i[2,37] ; to=6", "T[9,1] > i[9,1] ; to=6"}},
  {"MatMul", 13, "fh", {"T[9,33] T[33,17] > T[9,17]", "T[5,33] T[33,17] > T[5,17]", "T[1,33] T[33,17] > T[1,17]"}},
  {"MatMul", 13, "f", {"T[90,33] T[33,70] > T[90,70]", "T[5,33] T[33,70] > T[5,70]", "T[61,20] T[20,9] > T[61,9]"}},
  {"MatMul", 13, "f", {"T[2,9,33] T[2,33,9] > T[2,9,9]", "T[2,5,33] T[2,33,5] > T[2,5,5]", "T[1,7,9] T[1,9,7] > T[1,7,7]"}},
  {"Gemm", 13, "f", {"T[9,33] T[33,17] T[17] > T[9,17]", "T[4,33] T[33,17] T[17] > T[4,17]", "T[1,33] T[33,17] T[17] > T[1,17]"}},
  {"Softmax", 13, "fh", {"T[9,150] > T[9,150]", "T[9,30] > T[9,30]", "T[2,131] > T[2,131]"}},
  {"LogSoftmax", 13, "f", {"T[9,5,20] > T[9,5,20] ; axis=1", "T[9,2,20] > T[9,2,20] ; axis=1", "T[1,5,3] > T[1,5,3] ; axis=1"}},
  {"ReduceSum", 13, "fi", {"T[9,150] l=1 > T[9,1]", "T[5,20] l=1 > T[5,1]", "T[9,1] l=1 > T[9,1]"}},
  {"ReduceMean", 13, "f", {"T[9,7,20] > T[9,1,20] ; axes:1", "T[2,7,20] > T[2,1,20] ; axes:1", "T[9,3,4] > T[9,1,4] ; axes:1"}},
  {"ReduceMax", 13, "f", {"T[150,9] > T[1,9] ; axes:0", "T[20,9] > T[1,9] ; axes:0", "T[150,2] > T[1,2] ; axes:0"}},
  {"LayerNormalization", 17, "f", {"T[9,150] T[150] T[150] > T[9,150]", "T[4,150] T[150] T[150] > T[4,150]", "T[1,150] T[150] T[150] > T[1,150]"}},
  {"ArgMax", 13, "f", {"T[9,150] > l[9,1] ; axis=1", "T[9,20] > l[9,1] ; axis=1", "T[2,150] > l[2,1] ; axis=1"}},
  {"Gather", 13, "fl", {"T[9,6] l[7]{0,2} > T[7,6]", "T[4,6] l[7]{0,2} > T[7,6]", "T[9,6] l[2]{0,2} > T[2,6]"}},
  {"Concat", 13, "fl", {"T[4,9] T[5,9] > T[9,9] ; axis=0", "T[2,9] T[5,9] > T[7,9] ; axis=0", "T[4,3] T[1,3] > T[5,3] ; axis=0"}},
  {"Slice", 13, "f", {"T[9,8] l=1,2 l=7,8 > T[6,6]", "T[9,5] l=1,2 l=7,5 > T[6,3]", "T[4,8] l=1,2 l=4,8 > T[3,6]"}},
  {"Split", 13, "f", {"T[8,9] l=3,5 > T[3,9] T[5,9]", "T[8,4] l=3,5 > T[3,4] T[5,4]", "T[4,9] l=1,3 > T[1,9] T[3,9]"}},
  {"Transpose", 13, "fh", {"T[5,7,9] > T[9,5,7] ; perm:2,0,1", "T[3,7,4] > T[4,3,7] ; perm:2,0,1", "T[1,7,9] > T[9,1,7] ; perm:2,0,1"}},
  {"Reshape", 13, "f", {"T[6,8] l=4,12 > T[4,12]", "T[6,4] l=2,12 > T[2,12]", "T[3,8] l=2,12 > T[2,12]"}},
  {"Expand", 13, "f", {"T[9,1] l=9,8 > T[9,8]", "T[4,1] l=4,8 > T[4,8]", "T[9,1] l=9,3 > T[9,3]"}},
  {"Conv", 13, "f", {"T[2,3,12,11] T[4,3,3,3] T[4] > T[2,4,10,9]", "T[1,3,12,11] T[4,3,3,3] T[4] > T[1,4,10,9]", "T[2,3,7,6] T[4,3,3,3] T[4] > T[2,4,5,4]"}},
  {"Conv", 13, "f", {"T[7,16,9,8] T[24,16,3,3] T[24] > T[7,24,9,8] ; pads:1,1,1,1", "T[3,16,9,8] T[24,16,3,3] T[24] > T[3,24,9,8] ; pads:1,1,1,1", "T[1,16,9,8] T[24,16,3,3] T[24] > T[1,24,9,8] ; pads:1,1,1,1"}},
  {"Conv", 13, "f", {"T[5,12,9,9] T[12,1,3,3] T[12] > T[5,12,4,4] ; group=12 strides:2,2", "T[4,12,9,9] T[12,1,3,3] T[12] > T[4,12,4,4] ; group=12 strides:2,2", "T[1,12,9,9] T[12,1,3,3] T[12] > T[1,12,4,4] ; group=12 strides:2,2"}},
  {"ConvTranspose", 11, "f", {"T[5,16,6,5] T[16,16,2,2] T[16] > T[5,16,12,10] ; strides:2,2", "T[2,16,6,5] T[16,16,2,2] T[16] > T[2,16,12,10] ; strides:2,2", "T[1,16,6,5] T[16,16,2,2] T[16] > T[1,16,12,10] ; strides:2,2"}},
  {"MaxPool", 13, "f", {"T[6,16,12,11] > T[6,16,11,10] ; kernel_shape:2,2", "T[3,16,12,11] > T[3,16,11,10] ; kernel_shape:2,2", "T[1,16,12,11] > T[1,16,11,10] ; kernel_shape:2,2"}},
  {"Add", 14, "f", {"T[6,20,7,8] T[6,20,7,8] > T[6,20,7,8]", "T[5,20,7,8] T[5,20,7,8] > T[5,20,7,8]", "T[1,20,7,8] T[1,20,7,8] > T[1,20,7,8]"}},
  {"Mul", 14, "f", {"T[6,20,7,8] T[6,20,1,1] > T[6,20,7,8]", "T[3,20,7,8] T[3,20,1,1] > T[3,20,7,8]", "T[1,20,7,8] T[1,20,1,1] > T[1,20,7,8]"}},
  {"Concat", 13, "f", {"T[6,16,7,8] T[6,32,7,8] > T[6,48,7,8] ; axis=1", "T[3,16,7,8] T[3,32,7,8] > T[3,48,7,8] ; axis=1", "T[1,16,7,8] T[1,32,7,8] > T[1,48,7,8] ; axis=1"}},
  {"MaxPool", 13, "f", {"T[2,3,12,11] > T[2,3,11,10] ; kernel_shape:2,2", "T[1,3,12,11] > T[1,3,11,10] ; kernel_shape:2,2", "T[2,3,5,6] > T[2,3,4,5] ; kernel_shape:2,2"}},
  {"GlobalAveragePool", 13, "f", {"T[2,3,12,11] > T[2,3,1,1]", "T[2,3,4,5] > T[2,3,1,1]", "T[1,3,12,11] > T[1,3,1,1]"}},
};
/* clang-format on */

typedef struct work {
  kit *k;
  heddle_pstream *stream;
  op_case c[SIZES];
  op_want want[SIZES][OP_OUT];
  op_ready ready[SIZES];
  op_offers offers;
  uint32_t ran, refused, offered, asked;
} work;

/* Constants that have their shape in all sizes have their values too. */
static void keep_constants(work *w) {
  for (uint32_t i = 0; i < w->c[0].n_in; i++) {
    const op_operand *from = &w->c[0].in[i];
    for (uint32_t s = 1; s < SIZES && from->known; s++) {
      op_operand *to = &w->c[s].in[i];
      if (to->count != from->count || to->bytes != from->bytes || from->bytes == 0 || from->type != 'f') continue;
      memcpy(to->raw, from->raw, (size_t)from->bytes);
      memcpy(to->x, from->x, (size_t)from->count * sizeof *from->x);
    }
  }
}

static void mark(op_operand *bound, const op_operand *other) {
  for (int32_t d = 0; d < bound->ndim; d++)
    if (bound->shape[d] != other->shape[d]) bound->open_dims |= UINT32_C(1) << d;
}

static void mark_open(work *w) {
  for (uint32_t s = 1; s < SIZES; s++) {
    for (uint32_t i = 0; i < w->c[0].n_in; i++) mark(&w->c[0].in[i], &w->c[s].in[i]);
    for (uint32_t i = 0; i < w->c[0].n_out; i++) mark(&w->c[0].out[i], &w->c[s].out[i]);
  }
}

/* A float constant whose shape changes cannot be one. */
static bool has_other_constants(const work *w) {
  for (uint32_t i = 0; i < w->c[0].n_in; i++)
    for (uint32_t s = 1; s < SIZES; s++)
      if (w->c[0].in[i].known && w->c[0].in[i].type == 'f' && w->c[s].in[i].count != w->c[0].in[i].count) return true;
  return false;
}

static bool has_layouts(const op_offer *o) {
  for (uint32_t i = 0; i < OP_IN; i++)
    if (o->in_layouts[i] != 0) return true;
  for (uint32_t i = 0; i < OP_OUT; i++)
    if (o->out_layouts[i] != 0) return true;
  return false;
}

static void run_offer(work *w, uint32_t offer) {
  kit *k = w->k;
  op_prepare(k, &w->c[0], &w->offers, offer, &w->ready[0]);
  for (uint32_t s = 1; s < SIZES; s++) {
    w->ready[s] = (op_ready){.c = &w->c[s], .offer = w->ready[0].offer, .op = w->ready[0].op};
    op_describe(&w->c[s], '\0', &w->ready[s].r);
    for (uint32_t i = 0; i < w->ready[s].r.region.n_inputs; i++)
      w->ready[s].r.values[w->ready[s].r.region.inputs[i]].layout = w->ready[0].offer->in_layouts[i];
    for (uint32_t i = 0; i < w->ready[s].r.region.n_outputs; i++)
      w->ready[s].r.values[w->ready[s].r.region.outputs[i]].layout = w->ready[0].offer->out_layouts[i];
  }
  w->refused += op_resized(k, w->stream, w->ready, w->want, SIZES, 0, 0);
  w->refused += op_resized(k, w->stream, w->ready, w->want, SIZES, OP_ARENA, 1);
  w->refused += op_resized(k, w->stream, w->ready, w->want, SIZES, OP_ARENA | OP_MOVED, 1);
  w->ran++;
  op_ready_free(k, &w->ready[0]);
}

static void run_line(work *w, const sized_line *line, char type, uint32_t known) {
  kit *k = w->k;
  op_region r;
  op_line one = {line->op, line->types, line->text[0], line->opset};
  for (uint32_t s = 0; s < SIZES; s++) {
    one.text = line->text[s];
    op_read(k, &w->c[s], &one, type, known, 1 + s);
  }
  one.text = line->text[0];
  keep_constants(w);
  if (known != OP_RUN) mark_open(w);
  w->c[0].flags = HEDDLE_REGION_OPEN;
  for (uint32_t s = 0; s < SIZES; s++) w->c[s].line = &one;
  op_describe(&w->c[0], '\0', &r);
  const heddle_status s = op_query(k, &r, &w->offers);
  if (w->offers.wrong[0] != '\0') kit_fail(k, "%s: %s", line->op, w->offers.wrong);
  bool known_to_us = s == HEDDLE_OK && !has_other_constants(w);
  for (uint32_t i = 0; i < SIZES && known_to_us; i++) known_to_us = op_reference(k, &w->c[i], w->want[i]);
  w->asked += known_to_us;
  for (uint32_t i = 0; known_to_us && i < w->offers.count && i < OP_OFFERS; i++) {
    if ((w->offers.all[i].flags & HEDDLE_OFFER_RESIZES) == 0) continue;
    w->offered++;
    run_offer(w, i);
  }
  for (uint32_t i = 0; i < SIZES; i++) {
    op_want_free(w->want[i]);
    op_free(&w->c[i]);
  }
}

void op_resize(kit *k) {
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  if (k->t.op.resize == NULL) kit_skip(k, "the plugin has no op.resize");
  work *w = calloc(1, sizeof *w);
  if (w == NULL) kit_fail(k, "the kit has no memory");
  w->k = k;
  w->stream = kit_stream(k, k->dev);
  for (uint32_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    for (const char *t = lines[i].types; *t != '\0'; t++) {
      run_line(w, &lines[i], *t, OP_RUN);
      if (t == lines[i].types) run_line(w, &lines[i], *t, OP_KNOWN_EVEN);
    }
  k->t.stream.close(w->stream);
  const uint32_t asked = w->asked, offered = w->offered, refused = w->refused;
  free(w);
  if (offered == 0) kit_skip(k, "of %u regions with open shapes query offers to resize none", asked);
  kit_note(k, "%u offers to resize of %u regions ran; op.resize refused %u of %u sizes", offered, asked, refused,
           offered * 6 * SIZES);
}

/* The smaller of two sizes as the op, which then is asked for the larger: a size that it need not serve. */
static void refuse_line(work *w, const sized_line *line) {
  kit *k = w->k;
  op_region r;
  const op_line small = {line->op, line->types, line->text[1], line->opset};
  const op_line large = {line->op, line->types, line->text[0], line->opset};
  op_read(k, &w->c[0], &large, line->types[0], OP_RUN, 1);
  op_read(k, &w->c[1], &small, line->types[0], OP_RUN, 2);
  w->c[1].flags = HEDDLE_REGION_OPEN;
  op_describe(&w->c[1], '\0', &r);
  const bool taken = op_query(k, &r, &w->offers) == HEDDLE_OK && op_reference(k, &w->c[1], w->want[1]);
  if (taken && (w->offers.all[0].flags & HEDDLE_OFFER_RESIZES) != 0 && !has_layouts(&w->offers.all[0])) {
    op_prepare(k, &w->c[1], &w->offers, 0, &w->ready[1]);
    w->ready[0] = (op_ready){.c = &w->c[0], .offer = w->ready[1].offer, .op = w->ready[1].op};
    op_describe(&w->c[0], '\0', &w->ready[0].r);
    w->offered++;
    w->refused += op_resize_refused(k, w->stream, &w->ready[0], &w->ready[1], w->want[1]);
    op_ready_free(k, &w->ready[1]);
  }
  if (taken) op_want_free(w->want[1]);
  op_free(&w->c[0]);
  op_free(&w->c[1]);
}

void op_refused_resize(kit *k) {
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  if (k->t.op.resize == NULL) kit_skip(k, "the plugin has no op.resize");
  work *w = calloc(1, sizeof *w);
  if (w == NULL) kit_fail(k, "the kit has no memory");
  w->k = k;
  w->stream = kit_stream(k, k->dev);
  for (uint32_t i = 0; i < sizeof lines / sizeof lines[0]; i++) refuse_line(w, &lines[i]);
  k->t.stream.close(w->stream);
  const uint32_t offered = w->offered, refused = w->refused;
  free(w);
  if (offered == 0) kit_skip(k, "query offers to resize none of the kit's regions with open shapes");
  kit_note(k, "op.resize refused %u of %u shapes that are larger than the op's", refused, offered);
}
