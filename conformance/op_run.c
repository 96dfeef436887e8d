/* Running a case's region on the device: operands in guarded memory, in the layouts of an offer, and every byte looked at
 * afterwards. */
#include "op_case.h"

#include "op_launched.h"
#include "op_layout.h"
#include "kit_side.h"
#include "plugins/common/more/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256 };

typedef op_launched launch;
typedef op_piece piece;
typedef op_place place;

static uint64_t up(uint64_t x, uint64_t align) {
  return (x + align - 1) / align * align;
}

static void words_of(launch *l, int32_t pair) {
  const uint32_t how = l->how;
  char text[512];
  op_text(l->ready->c, text, sizeof text);
  snprintf(l->words, sizeof l->words, "%s%s%s%s", text, (how & OP_ARENA) != 0 ? ", operands in one buffer" : "",
           (how & OP_SHIFTED) != 0 ? ", operands at offsets"
           : (how & OP_SAME) != 0  ? ", both operands in the same memory"
                                   : "",
           pair >= 0 ? ", in place" : "");
}

static uint64_t alignment(const launch *l) {
  const uint64_t a = l->k->desc.alignment > 0 ? l->k->desc.alignment : 1;
  return a > l->ready->offer->workspace_align ? a : l->ready->offer->workspace_align;
}

/* ---------------------------------------------------------------- memory */

static piece *new_piece(launch *l, uint64_t bytes) {
  piece *p = &l->pieces[l->n_pieces++];
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = bytes};
  const uint64_t most = l->k->desc.alignment > 4096 ? l->k->desc.alignment : 4096;
  desc.align = alignment(l) < most ? alignment(l) : most;
  p->bytes = bytes;
  p->image = malloc((size_t)bytes + 1);
  p->seen = malloc((size_t)bytes + 1);
  if (p->image == NULL || p->seen == NULL)
    kit_fail(l->k, "the kit has no memory for %llu bytes", (unsigned long long)bytes);
  kit_pattern(p->image, bytes, l->n_pieces + 40);
  kit_ok(l->k, l->k->t.memory.alloc(l->dev, &desc, &p->buffer, &l->k->err), "memory.alloc of an operand");
  return p;
}

/* Operands that need bytes, in one order. */
static void collect(launch *l, const uint64_t *in, const uint64_t *out) {
  const heddle_pregion *r = &l->ready->r.region;
  place **all = l->all;
  uint32_t *n = &l->n_all;
  for (uint32_t i = 0; i < r->n_inputs; i++) {
    l->in[i].bytes = (l->ready->offer->in_flags[i] & HEDDLE_INPUT_ABSORBED) != 0 ? 0 : in[i];
    if (l->in[i].bytes > 0) all[(*n)++] = &l->in[i];
  }
  for (uint32_t i = 0; i < r->n_outputs; i++) {
    l->out[i].bytes = out[i];
    l->out[i].written = true;
    if (out[i] > 0) all[(*n)++] = &l->out[i];
  }
  l->scratch.bytes = l->ready->offer->workspace_bytes;
  l->scratch.written = true;
  if (l->scratch.bytes > 0) all[(*n)++] = &l->scratch;
}

static void lay_out(launch *l, int32_t pair) {
  place *const *all = l->all;
  const uint32_t n = l->n_all, how = l->how;
  const uint64_t a = alignment(l), guard = up(GUARD, 4);
  const bool bare = (l->ready->offer->flags & HEDDLE_OFFER_BARE) != 0;
  place *in = NULL, *out = NULL;
  if (pair >= 0) {
    in = &l->in[l->ready->offer->in_place[2 * pair]];
    out = &l->out[l->ready->offer->in_place[2 * pair + 1]];
  }
  uint64_t at = a;
  for (uint32_t i = 0; i < n; i++) {
    place *p = all[i];
    if (p == out && in->bytes > 0) continue;
    if ((how & OP_SAME) != 0 && p == &l->in[1]) continue;
    uint64_t bytes = p == in && out->bytes > in->bytes ? out->bytes : p->bytes;
    if ((how & OP_ARENA) != 0 && !bare) {
      p->offset = at;
      at = up(at + bytes + guard, a);
      continue;
    }
    p->offset = (how & OP_SHIFTED) != 0 && !bare ? 3 * a : 0;
    p->in = new_piece(l, up(p->offset + bytes + (bare ? 0 : guard), 4));
  }
  if ((how & OP_ARENA) != 0 && !bare) {
    piece *one = new_piece(l, up(at, 4));
    for (uint32_t i = 0; i < n; i++) all[i]->in = one;
  }
  if ((how & OP_SAME) != 0) l->in[1].in = l->in[0].in, l->in[1].offset = l->in[0].offset;
  if (out != NULL && in->bytes > 0) {
    out->in = in->in;
    out->offset = in->offset;
    in->written = true;
  }
}

static void fill_inputs(launch *l) {
  const op_ready *ready = l->ready;
  for (uint32_t i = 0; i < ready->r.region.n_inputs; i++) {
    const op_operand *o = &ready->c->in[ready->r.from[i]];
    const heddle_layout layout = ready->offer->in_layouts[i];
    if (l->in[i].bytes == 0) continue;
    unsigned char *to = l->in[i].in->image + l->in[i].offset;
    if (layout == 0) memcpy(to, o->raw, o->bytes);
    else op_pack(l->k, o, layout, to, l->in[i].bytes);
  }
  for (uint32_t i = 0; i < l->n_pieces; i++)
    kit_put(l->k, l->stream, l->pieces[i].buffer, 0, l->pieces[i].image, l->pieces[i].bytes);
}

/* ---------------------------------------------------------------- looking */

static void wrong_element(launch *l, uint32_t result, uint64_t e, const op_want *w, const unsigned char *got) {
  const op_operand *o = &l->ready->c->out[result];
  char at[128] = "";
  uint64_t rest = e;
  size_t used = 0;
  for (int32_t d = 0; d < o->ndim; d++) {
    uint64_t inner = 1;
    for (int32_t j = d + 1; j < o->ndim; j++) inner *= (uint64_t)o->shape[j];
    if (used < sizeof at)
      used +=
          (size_t)snprintf(at + used, sizeof at - used, "%s%llu", d > 0 ? "," : "", (unsigned long long)(rest / inner));
    rest %= inner;
  }
  uint64_t bytes = 0;
  memcpy(&bytes, got + e * op_type_bytes(o->type), op_type_bytes(o->type));
  if (o->type == 'B' && bytes > 1)
    kit_fail(l->k, "%s: result %u[%s] is the byte %u; a bool is 0 or 1", l->words, result, at, (unsigned)bytes);
  kit_fail(l->k, "%s: result %u[%s] is %.9g, expected %.9g, at most %.3g away (bound: %s)", l->words, result, at,
           more_load(op_number_type(o->type), &bytes, 0), w[result].x[e], w[result].err[e], w[result].rule);
}

static void look_results(launch *l, const op_want *want) {
  const op_ready *ready = l->ready;
  for (uint32_t i = 0; i < ready->r.region.n_outputs; i++) {
    const uint32_t result = ready->r.to[i];
    const op_operand *o = &ready->c->out[result];
    const heddle_layout layout = ready->offer->out_layouts[i];
    if (l->out[i].bytes == 0) continue;
    const unsigned char *got = l->out[i].in->seen + l->out[i].offset;
    unsigned char *plain = NULL;
    if (layout != 0) {
      plain = malloc((size_t)o->bytes + 1);
      if (plain == NULL) kit_fail(l->k, "the kit has no memory for %s", l->words);
      if (!op_unpack(l->k, l->dev, l->stream, o, layout, l->out[i].in->buffer, l->out[i].offset, plain))
        kit_fail(l->k, "%s: query refuses the Reorder of a result's layout to row-major: %.300s", l->words,
                 l->k->err.text);
      got = plain;
    }
    const uint64_t e = op_check(ready->c, result, want, got);
    if (e < o->count) wrong_element(l, result, e, want, got);
    free(plain);
  }
}

/* Every byte that is of no result and no workspace is what it was. */
static void look_guards(launch *l) {
  place *const *all = l->all;
  const uint32_t n = l->n_all;
  for (uint32_t p = 0; p < l->n_pieces; p++) {
    const piece *at = &l->pieces[p];
    for (uint64_t i = 0; i < at->bytes; i++) {
      if (at->image[i] == at->seen[i]) continue;
      bool may = false;
      const char *what = "a byte that is of none of its operands";
      for (uint32_t j = 0; j < n; j++) {
        const place *o = all[j];
        if (o->in != at || i < o->offset || i >= o->offset + o->bytes) continue;
        if (o->written) may = true;
        else what = "an operand that it may only read";
      }
      if (may) continue;
      const place *near = NULL;
      for (uint32_t j = 0; j < n; j++)
        if (all[j]->in == at && all[j]->offset <= i && (near == NULL || all[j]->offset > near->offset)) near = all[j];
      kit_fail(l->k, "%s: the launch wrote %s, %llu bytes behind the begin of a range of %llu", l->words, what,
               (unsigned long long)(near != NULL ? i - near->offset : i),
               (unsigned long long)(near != NULL ? near->bytes : 0));
    }
  }
}

static void look(launch *l, const op_want *want) {
  for (uint32_t i = 0; i < l->n_pieces; i++)
    kit_get(l->k, l->stream, l->pieces[i].buffer, 0, l->pieces[i].seen, l->pieces[i].bytes);
  look_guards(l);
  look_results(l, want);
}

/* ---------------------------------------------------------------- the calls */

/* A driver may compile when the work gets to it, which takes its time on a machine that has other things to do. */
enum { SYNC_MS = 60000, ROW = 24 };

void op_sync(kit *k, heddle_pstream *stream) {
  kit_ok(k, k->t.stream.sync(stream, kit_patience_ms(k, SYNC_MS) * 1000000, &k->err), "stream.sync after op.run");
}

static void prepare(kit *k, const op_case *c, const op_offers *offers, uint32_t offer, heddle_pvalue *values,
                    op_ready *out) {
  char text[512], what[600];
  out->c = c;
  out->offer = &offers->all[offer];
  for (uint32_t i = 0; i < out->r.region.n_inputs; i++)
    values[out->r.region.inputs[i]].layout = out->offer->in_layouts[i];
  for (uint32_t i = 0; i < out->r.region.n_outputs; i++)
    values[out->r.region.outputs[i]].layout = out->offer->out_layouts[i];
  op_text(c, text, sizeof text);
  snprintf(what, sizeof what, "op.prepare of offer %u, which query made, of %s", offer, text);
  kit_ok(k, k->t.op.prepare(k->dev, &out->r.region, offer, &out->op, &k->err), what);
  if (out->op == NULL) kit_fail(k, "%s returned HEDDLE_OK and left no op", what);
}

void op_prepare(kit *k, const op_case *c, const op_offers *offers, uint32_t offer, op_ready *out) {
  memset(out, 0, sizeof *out);
  op_describe(c, '\0', &out->r);
  prepare(k, c, offers, offer, out->r.values, out);
}

void op_prepare_region(kit *k, const op_case *c, const op_region *r, const op_offers *offers, uint32_t offer,
                       op_ready *out) {
  memset(out, 0, sizeof *out);
  out->r = *r; /* its nodes and values are the caller's */
  prepare(k, c, offers, offer, (heddle_pvalue *)(uintptr_t)r->region.values.data, out);
}

void op_ready_free(kit *k, op_ready *ready) {
  k->t.op.op_free(ready->op);
  ready->op = NULL;
}

static heddle_pslice slice_of(const place *p) {
  if (p->bytes == 0) return (heddle_pslice){NULL, 0, 0};
  return (heddle_pslice){p->in->buffer, p->offset, p->bytes};
}

/* ---------------------------------------------------------------- a launch */

void op_launched_sizes(kit *k, const op_ready *ready, uint64_t *in, uint64_t *out) {
  const heddle_pregion *r = &ready->r.region;
  const bool fast = (ready->c->flags & HEDDLE_REGION_FAST) != 0;
  for (uint32_t i = 0; i < r->n_inputs; i++)
    in[i] = op_layout_bytes(k, &ready->c->in[ready->r.from[i]], ready->offer->in_layouts[i], fast);
  for (uint32_t i = 0; i < r->n_outputs; i++)
    out[i] = op_layout_bytes(k, &ready->c->out[ready->r.to[i]], ready->offer->out_layouts[i], fast);
}

launch *op_launched_new(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_ready *ready, uint32_t how,
                        int32_t pair) {
  launch *l = calloc(1, sizeof *l);
  uint64_t in[OP_IN] = {0}, out[OP_OUT] = {0};
  if (l == NULL) kit_fail(k, "the kit has no memory for a launch");
  l->k = k;
  l->dev = dev;
  l->stream = stream;
  l->ready = ready;
  l->how = how;
  words_of(l, pair);
  op_launched_sizes(k, ready, in, out);
  collect(l, in, out);
  lay_out(l, pair);
  return l;
}

void op_launched_move(launch *l) {
  lay_out(l, -1);
}

heddle_pbind op_launched_operands(launch *l) {
  const heddle_pregion *r = &l->ready->r.region;
  for (uint32_t i = 0; i < r->n_inputs; i++) l->ins[i] = slice_of(&l->in[i]);
  for (uint32_t i = 0; i < r->n_outputs; i++) l->outs[i] = slice_of(&l->out[i]);
  return (heddle_pbind){sizeof(heddle_pbind), 0, l->ins, l->outs, r->n_inputs, r->n_outputs, slice_of(&l->scratch)};
}

void op_launched_bind(launch *l, heddle_pop *op) {
  char what[sizeof l->words + 32];
  const heddle_pbind operands = op_launched_operands(l);
  snprintf(what, sizeof what, "op.bind of %s", l->words);
  kit_ok(l->k, l->k->t.op.bind(op, l->stream, &operands, &l->made, &l->k->err), what);
  if ((l->how & OP_GONE) != 0) memset(l->ins, 0xee, sizeof l->ins), memset(l->outs, 0xee, sizeof l->outs);
}

launch *op_launch_begin(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_ready *ready, uint32_t how,
                        int32_t pair) {
  launch *l = op_launched_new(k, dev, stream, ready, how, pair);
  fill_inputs(l);
  op_launched_bind(l, ready->op);
  return l;
}

void op_launch_row(launch *l, uint32_t n) {
  kit *k = l->k;
  char what[sizeof l->words + 32];
  snprintf(what, sizeof what, "op.run of %s", l->words);
  for (uint32_t i = 0; i < n; i++) {
    const heddle_status s = k->t.op.run(l->made, &k->err);
    if (i > 0 && s == HEDDLE_ELIMIT) break; /* the queue is full */
    kit_ok(k, s, what);
  }
}

void op_launch_run(launch *l, const op_want *want) {
  kit *k = l->k;
  op_launch_row(l, (l->how & OP_ROW) != 0 ? ROW + 1 : 1);
  op_sync(k, l->stream);
  look(l, want);
}

void op_launch_refill(launch *l) {
  for (uint32_t i = 0; i < l->n_pieces; i++) kit_pattern(l->pieces[i].image, l->pieces[i].bytes, i + 70);
  fill_inputs(l);
}

void op_launch_end(launch *l) {
  l->k->t.op.launch_free(l->made);
  for (uint32_t i = 0; i < l->n_gone; i++) op_clone_free(&l->gone[i]);
  for (uint32_t i = 0; i < l->n_pieces; i++) {
    l->k->t.memory.free(l->dev, l->pieces[i].buffer);
    free(l->pieces[i].image);
    free(l->pieces[i].seen);
  }
  free(l);
}

void op_launch(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_ready *ready, const op_want *want,
               uint32_t how, int32_t pair) {
  launch *l = op_launch_begin(k, dev, stream, ready, how, pair);
  op_launch_run(l, want);
  if ((how & OP_TWICE) != 0 && pair < 0) {
    op_launch_refill(l);
    snprintf(l->words + strlen(l->words), sizeof l->words - strlen(l->words), ", run again");
    op_launch_run(l, want);
  }
  op_launch_end(l);
}
