/* The cases numerics/repeats and numerics/same-operands: one launch many times with other values in turn, and one whose two
 * operands are the same memory. */
#include "op_each.h"

#include <stdlib.h>
#include <string.h>

enum { LOOKED = 150, ROWS = 1200, EACH = 100, SETS = 2 };

static const op_line lines[] = {{"Relu", "f", "f[3,37] > f[3,37]", 14},
                                {"Add", "f", "f[3,37] f[3,37] > f[3,37]", 14},
                                {"Mul", "f", "f[3,37] f[3,37] > f[3,37]", 14},
                                {"MatMul", "f", "f[5,5] f[5,5] > f[5,5]", 13},
                                {"Softmax", "f", "f[3,37] > f[3,37]", 13}};
enum { LINES = sizeof lines / sizeof lines[0] };

typedef struct work {
  op_case c;
  op_region r;
  op_offers offers;
  op_want want[SETS][OP_OUT];
} work;

/* Whether the plugin takes the line. */
static bool taken(kit *k, work *w, const op_line *line) {
  if (op_ask(k, line, 'f', &w->c, &w->r, &w->offers, OP_RUN) == HEDDLE_OK) return true;
  op_free(&w->c);
  return false;
}

static void repeat(kit *k, work *w, heddle_pstream *stream) {
  op_ready ready;
  for (uint32_t set = 0; set < SETS; set++) {
    op_values(&w->c, 1 + set);
    if (!op_reference(k, &w->c, w->want[set])) kit_fail(k, "the kit's reference does not take %s", w->c.line->op);
  }
  op_prepare(k, &w->c, &w->offers, 0, &ready);
  op_launched *l = op_launch_begin(k, k->dev, stream, &ready, OP_ARENA, -1);
  for (uint32_t i = 0; i < LOOKED; i++) {
    op_values(&w->c, 1 + i % SETS);
    op_launch_refill(l);
    op_launch_run(l, w->want[i % SETS]);
  }
  for (uint32_t i = 0; i < ROWS / EACH; i++) {
    op_values(&w->c, 1 + i % SETS);
    op_launch_refill(l);
    op_launch_row(l, EACH);
    op_sync(k, stream); /* a queue may be full now */
    op_launch_run(l, w->want[i % SETS]);
  }
  op_launch_end(l);
  op_ready_free(k, &ready);
  for (uint32_t set = 0; set < SETS; set++) op_want_free(w->want[set]);
}

static void same(kit *k, work *w, heddle_pstream *stream) {
  op_ready ready;
  op_set_values(&w->c.in[1], w->c.in[0].x);
  if (!op_reference(k, &w->c, w->want[0])) kit_fail(k, "the kit's reference does not take %s", w->c.line->op);
  op_prepare(k, &w->c, &w->offers, 0, &ready);
  if (ready.offer->in_layouts[0] == ready.offer->in_layouts[1])
    op_launch(k, k->dev, stream, &ready, w->want[0], OP_SAME | OP_TWICE, -1);
  op_ready_free(k, &ready);
  op_want_free(w->want[0]);
}

static void each(kit *k, void (*run)(kit *k, work *w, heddle_pstream *stream), uint32_t operands) {
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  work *w = calloc(1, sizeof *w);
  if (w == NULL) kit_fail(k, "the kit has no memory");
  heddle_pstream *stream = kit_stream(k, k->dev);
  uint32_t n = 0;
  for (uint32_t i = 0; i < LINES; i++) {
    if (!taken(k, w, &lines[i])) continue;
    if (w->c.n_in >= operands) run(k, w, stream), n++;
    op_free(&w->c);
  }
  k->t.stream.close(stream);
  free(w);
  if (n == 0) kit_skip(k, "the device takes none of the kit's common operators of %u operands", (unsigned)operands);
}

void op_repeats(kit *k) {
  each(k, repeat, 1);
}

void op_same_operands(kit *k) {
  each(k, same, 2);
}
