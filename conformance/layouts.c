/* The group "layouts": tokens, packing, Reorder, and operators in each layout that a plugin offers. */
#include "op_each.h"
#include "op_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A layout that some offer of the plugin's names, and a tensor that it was offered for. */
typedef struct seen {
  heddle_layout layout;
  bool result; /* an offer gives a result in it, which has to be brought back */
  char type;
  int32_t ndim;
  int64_t shape[OP_DIMS];
} seen;

enum { MOST = 24 };

static void note_layout(seen *all, uint32_t *n, heddle_layout layout, const op_operand *o, bool result) {
  if (layout == 0 || *n == MOST || o->count == 0) return;
  uint32_t same = 0;
  for (uint32_t i = 0; i < *n; i++) same += all[i].layout == layout && all[i].result == result;
  if (same >= 3) return; /* a few tensors of each are enough */
  all[*n] = (seen){.layout = layout, .result = result, .type = o->type, .ndim = o->ndim};
  memcpy(all[*n].shape, o->shape, sizeof o->shape);
  ++*n;
}

/* The layouts that the plugin offers for the lines of the tables. */
static uint32_t find_layouts(kit *k, seen *all) {
  uint32_t n = 0;
  op_case c;
  op_region r;
  op_offers *o = malloc(sizeof *o);
  if (o == NULL) kit_fail(k, "the kit has no memory");
  for (uint32_t i = 0; i < op_line_count(); i++) {
    for (int constant = 0; constant < 2; constant++) {
      const op_line *line = op_line_at(i);
      if (op_ask(k, line, line->types[0], &c, &r, o, constant != 0 ? OP_KNOWN_EVEN : OP_RUN) == HEDDLE_OK) {
        for (uint32_t f = 0; f < o->count && f < OP_OFFERS; f++) {
          for (uint32_t j = 0; j < r.region.n_inputs; j++)
            note_layout(all, &n, o->all[f].in_layouts[j], &c.in[r.from[j]], false);
          for (uint32_t j = 0; j < r.region.n_outputs; j++)
            note_layout(all, &n, o->all[f].out_layouts[j], &c.out[r.to[j]], true);
        }
      }
      op_free(&c);
    }
  }
  free(o);
  return n;
}

static uint32_t layouts_or_skip(kit *k, seen *all) {
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  heddle_pdevice *dev = op_open_if_needed(k);
  const uint32_t n = find_layouts(k, all);
  if (dev != NULL) kit_close(k, dev);
  if (n == 0) kit_skip(k, "the plugin offers no layout but row-major for any region of the kit's");
  return n;
}

static void tensor_of(kit *k, const seen *s, op_case *c) {
  static char text[128];
  static op_line line;
  size_t at = (size_t)snprintf(text, sizeof text, "%c[", s->type);
  for (int32_t d = 0; d < s->ndim; d++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", d > 0 ? "," : "", (long long)s->shape[d]);
  snprintf(text + at, sizeof text - at, "] > -");
  line = (op_line){"Reorder", "f", text, 0};
  op_read(k, c, &line, 'f', OP_RUN, 3);
}

/* Sizes and words of each token; the same from a second instance. */
static void tokens(kit *k) {
  seen all[MOST];
  const uint32_t n = layouts_or_skip(k, all);
  heddle_pinstance *second = NULL;
  kit_ok(k, k->root.open_instance(&k->host, &second, &k->err), "open_instance for a second instance");
  for (uint32_t i = 0; i < n; i++) {
    op_case c;
    char name[64], again[64];
    tensor_of(k, &all[i], &c);
    const uint64_t bytes = op_layout_bytes(k, &c.in[0], all[i].layout, false);
    heddle_pvalue v = {
        .struct_size = sizeof v, .dtype = op_dtype(all[i].type), .shape = all[i].shape, .layout = all[i].layout};
    v.ndim = all[i].ndim;
    uint64_t there = 0, align = 0;
    kit_ok(k, k->t.layout.bytes(second, k->index, &v, &there, &align, &k->err), "layout.bytes on a second instance");
    if (there != bytes)
      kit_fail(k, "layout %#llx has %llu bytes on one instance and %llu on another", (unsigned long long)all[i].layout,
               (unsigned long long)bytes, (unsigned long long)there);
    memset(name, 'x', sizeof name);
    kit_ok(k, k->t.layout.describe(k->instance, k->index, all[i].layout, name, sizeof name, &k->err),
           "layout.describe");
    kit_text(k, name, sizeof name, "the text of layout.describe");
    kit_ok(k, k->t.layout.describe(second, k->index, all[i].layout, again, sizeof again, &k->err), "layout.describe");
    if (strcmp(name, again) != 0)
      kit_fail(k, "layout %#llx is '%s' on one instance and '%s' on another", (unsigned long long)all[i].layout, name,
               again);
    op_free(&c);
  }
  k->root.close_instance(second);
  kit_note(k, "%u tensors in layouts", n);
}

/* pack writes each byte that bytes counts, and nothing behind them. */
static void packing(kit *k) {
  seen all[MOST];
  const uint32_t n = layouts_or_skip(k, all);
  for (uint32_t i = 0; i < n; i++) {
    op_case c;
    tensor_of(k, &all[i], &c);
    const uint64_t bytes = op_layout_bytes(k, &c.in[0], all[i].layout, false);
    unsigned char *a = malloc((size_t)bytes + 64), *b = malloc((size_t)bytes + 64);
    if (a == NULL || b == NULL) kit_fail(k, "the kit has no memory");
    memset(a, 0x5a, (size_t)bytes + 64);
    memset(b, 0xa5, (size_t)bytes + 64);
    op_pack(k, &c.in[0], all[i].layout, a, bytes);
    op_pack(k, &c.in[0], all[i].layout, b, bytes);
    for (uint64_t j = 0; j < bytes; j++)
      if (a[j] != b[j])
        kit_fail(k, "layout.pack to layout %#llx left byte %llu of %llu unwritten", (unsigned long long)all[i].layout,
                 (unsigned long long)j, (unsigned long long)bytes);
    for (uint64_t j = bytes; j < bytes + 64; j++)
      if (a[j] != 0x5a || b[j] != 0xa5)
        kit_fail(k, "layout.pack to layout %#llx wrote byte %llu of %llu", (unsigned long long)all[i].layout,
                 (unsigned long long)j, (unsigned long long)bytes);
    memset(a, 0, 8);
    heddle_pvalue v = {
        .struct_size = sizeof v, .dtype = op_dtype(all[i].type), .shape = all[i].shape, .layout = all[i].layout};
    v.ndim = all[i].ndim;
    v.data = c.in[0].raw;
    v.data_bytes = c.in[0].bytes;
    if (bytes > 1 && k->t.layout.pack(k->instance, k->index, &v, a, bytes - 1, &k->err) == HEDDLE_OK)
      kit_fail(k, "layout.pack took a destination that is a byte too small");
    free(a);
    free(b);
    op_free(&c);
  }
}

/* What pack packed, Reorder brings back; what Reorder brings there, Reorder brings back. A layout of operands alone
 * (weights that were transformed) may have no way back. */
static void reorder(kit *k) {
  uint32_t one_way = 0;
  seen all[MOST];
  const uint32_t n = layouts_or_skip(k, all);
  heddle_pstream *stream = kit_stream(k, k->dev);
  for (uint32_t i = 0; i < n; i++) {
    op_case c;
    tensor_of(k, &all[i], &c);
    const op_operand *o = &c.in[0];
    char text[256];
    op_text(&c, text, sizeof text);
    const uint64_t bytes = op_layout_bytes(k, o, all[i].layout, false);
    unsigned char *packed = malloc((size_t)bytes), *back = malloc((size_t)o->bytes);
    if (packed == NULL || back == NULL) kit_fail(k, "the kit has no memory");
    heddle_pbuffer *there = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, bytes);
    heddle_pbuffer *plain = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, o->bytes);
    op_pack(k, o, all[i].layout, packed, bytes);
    kit_put(k, stream, there, 0, packed, bytes);
    const bool back_is = op_unpack(k, k->dev, stream, o, all[i].layout, there, 0, back);
    if (!back_is && all[i].result)
      kit_fail(k, "query refuses the Reorder of %s from layout %#llx, in which it offers results: %.300s", text,
               (unsigned long long)all[i].layout, k->err.text);
    if (back_is && memcmp(back, o->raw, o->bytes) != 0)
      kit_fail(k, "%s, which layout.pack brought to layout %#llx, is another tensor when Reorder has brought it back",
               text, (unsigned long long)all[i].layout);
    memset(packed, 0xee, bytes);
    memset(back, 0, o->bytes);
    kit_put(k, stream, there, 0, packed, bytes);
    kit_put(k, stream, plain, 0, o->raw, o->bytes);
    if (!op_reorder(k, k->dev, stream, o, 0, all[i].layout, plain, 0, there, 0))
      kit_fail(k, "query refuses the Reorder of %s to layout %#llx, which it offers: %.300s", text,
               (unsigned long long)all[i].layout, k->err.text);
    one_way += !back_is;
    if (back_is) op_unpack(k, k->dev, stream, o, all[i].layout, there, 0, back);
    if (back_is && memcmp(back, o->raw, o->bytes) != 0)
      kit_fail(k, "%s, which Reorder brought to layout %#llx and back, is another tensor", text,
               (unsigned long long)all[i].layout);
    kit_free(k, k->dev, there);
    kit_free(k, k->dev, plain);
    free(packed);
    free(back);
    op_free(&c);
  }
  k->t.stream.close(stream);
  kit_note(k, "%u tensors, %u of them in layouts that there is no way back from", n, one_way);
}

/* Each further offer, and the first one where it has layouts, gives the operator's results too. */
static void offers(kit *k) {
  op_case c;
  op_region r;
  op_offers *o = malloc(sizeof *o);
  op_want want[OP_OUT];
  uint32_t ran = 0;
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  if (o == NULL) kit_fail(k, "the kit has no memory");
  heddle_pstream *stream = kit_stream(k, k->dev);
  for (uint32_t i = 0; i < op_line_count(); i++) {
    const op_line *line = op_line_at(i);
    for (int constant = 0; constant < 2; constant++) {
      const heddle_status s = op_ask(k, line, line->types[0], &c, &r, o, constant != 0 ? OP_KNOWN_EVEN : OP_RUN);
      const bool more = s == HEDDLE_OK && o->wrong[0] == '\0' && o->count > 1;
      if (more && op_reference(k, &c, want)) {
        for (uint32_t f = 1; f < o->count && f < OP_OFFERS; f++, ran++) {
          op_ready ready;
          op_prepare(k, &c, o, f, &ready);
          op_launch(k, k->dev, stream, &ready, want, OP_ARENA, -1);
          op_ready_free(k, &ready);
        }
        op_want_free(want);
      }
      op_free(&c);
    }
  }
  k->t.stream.close(stream);
  free(o);
  if (ran == 0) kit_skip(k, "the plugin makes one offer for each region of the kit's");
  kit_note(k, "%u further offers ran", ran);
}

KIT_GROUP(kit_layouts, "layouts",
          {"layouts/tokens",
           "bytes and words of a layout are the same on each instance, and no fewer than the tensor's",
           KIT_STAGE_INSTANCE, 0, 120, tokens, NULL},
          {"layouts/pack", "pack writes every byte of the size that bytes gave, padding too, and none behind",
           KIT_STAGE_INSTANCE, 0, 120, packing, NULL},
          {"layouts/reorder", "Reorder brings a tensor to a layout and back unchanged", KIT_STAGE_DEVICE, 0, 120,
           reorder, NULL},
          {"layouts/offers", "each offer gives the operator's results, not the first alone", KIT_STAGE_DEVICE, 0, 300,
           offers, NULL});
