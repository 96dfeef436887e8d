/* A launch of any operator: see op_any.h. */
#include "op_any.h"

#include <stdlib.h>
#include <string.h>

#include "op_each.h"

/* The first offer without layouts of the plugin's own; offers->count where there is none. */
static uint32_t plain_offer(const op_region *r, const op_offers *offers) {
  for (uint32_t i = 0; i < offers->count; i++) {
    bool plain = true;
    for (uint32_t j = 0; j < r->region.n_inputs; j++) plain = plain && offers->all[i].in_layouts[j] == 0;
    for (uint32_t j = 0; j < r->region.n_outputs; j++) plain = plain && offers->all[i].out_layouts[j] == 0;
    if (plain) return i;
  }
  return offers->count;
}

static bool has_elements(const op_case *c) {
  for (uint32_t i = 0; i < c->n_out; i++)
    if (c->out[i].bytes == 0) return false;
  return true;
}

/* Asks about a line in each of its types; the offer to take, or false with nothing kept. */
static bool take(kit *k, op_any *any, const op_line *line, uint32_t known, uint32_t *offer) {
  op_region r;
  for (const char *t = line->types; *t != '\0'; t++) {
    if (op_ask(k, line, *t, &any->c, &r, any->offers, known) == HEDDLE_OK && has_elements(&any->c)) {
      *offer = plain_offer(&r, any->offers);
      if (*offer < any->offers->count) return true;
    }
    op_free(&any->c);
  }
  return false;
}

static bool find(kit *k, op_any *any, uint32_t *offer) {
  for (int pass = 0; pass < 3; pass++)
    for (uint32_t i = 0; i < op_line_count(); i++) {
      const op_line *line = op_line_at(i);
      if (pass == 0 && strcmp(line->op, "Relu") != 0) continue;
      if (take(k, any, line, pass == 2 ? OP_KNOWN_EVEN : OP_RUN, offer)) return true;
    }
  return false;
}

op_any *op_any_prepare(kit *k) {
  uint32_t offer = 0;
  if (!k->t.has_op || k->t.op.query == NULL) kit_skip(k, "the plugin has no operators");
  op_any *any = calloc(1, sizeof *any);
  op_offers *offers = calloc(1, sizeof *offers);
  if (any == NULL || offers == NULL) kit_fail(k, "the kit has no memory");
  any->offers = offers;
  if (!find(k, any, &offer)) kit_skip(k, "the device takes none of the kit's regions in plain layouts");
  op_prepare(k, &any->c, any->offers, offer, &any->ready);
  return any;
}

static heddle_pslice place(kit *k, op_any *any, heddle_pstream *stream, uint64_t bytes, uint64_t align,
                           const void *data) {
  const heddle_pmemory_desc desc = {
      .struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = bytes, .align = align > 0 ? align : 1};
  heddle_pbuffer *buffer = NULL;
  if (bytes == 0) return (heddle_pslice){NULL, 0, 0};
  kit_ok(k, k->t.memory.alloc(k->dev, &desc, &buffer, &k->err), "memory.alloc of an operand");
  any->buffers[any->n_buffers++] = buffer;
  if (data != NULL) kit_put(k, stream, buffer, 0, data, bytes);
  return (heddle_pslice){buffer, 0, bytes};
}

heddle_plaunch *op_any_bind(kit *k, op_any *any, heddle_pstream *stream) {
  const heddle_pregion *r = &any->ready.r.region;
  const op_offer *offer = any->ready.offer;
  const uint64_t align = k->desc.alignment < 4096 ? k->desc.alignment : 4096;
  heddle_pslice in[OP_IN], out[OP_OUT];
  heddle_plaunch *launch = NULL;
  for (uint32_t i = 0; i < r->n_inputs; i++) {
    const op_operand *o = &any->c.in[any->ready.r.from[i]];
    in[i] = place(k, any, stream, (offer->in_flags[i] & HEDDLE_INPUT_ABSORBED) != 0 ? 0 : o->bytes, align, o->raw);
  }
  for (uint32_t i = 0; i < r->n_outputs; i++)
    out[i] = place(k, any, stream, any->c.out[any->ready.r.to[i]].bytes, align, NULL);
  const heddle_pbind operands = {.struct_size = sizeof operands,
                                 .inputs = in,
                                 .outputs = out,
                                 .n_inputs = r->n_inputs,
                                 .n_outputs = r->n_outputs,
                                 .workspace =
                                     place(k, any, stream, offer->workspace_bytes, offer->workspace_align, NULL)};
  kit_ok(k, k->t.op.bind(any->ready.op, stream, &operands, &launch, &k->err), "op.bind");
  if (launch == NULL) kit_fail(k, "op.bind returned HEDDLE_OK and gave nothing");
  op_sync(k, stream);
  return launch;
}

void op_any_free(kit *k, op_any *any) {
  op_ready_free(k, &any->ready);
  for (uint32_t i = 0; i < any->n_buffers; i++) kit_free(k, k->dev, any->buffers[i]);
  op_free(&any->c);
  free(any->offers);
  free(any);
}
