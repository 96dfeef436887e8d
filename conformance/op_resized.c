/* Launches that op.resize gives other sizes: what op_case.h says of op_resized and op_resize_refused. */
#include "kit_side.h"
#include "op_launched.h"

#include <stdio.h>
#include <string.h>

/* The launch's operands with the sizes of another region, where they lie, and other values around them. */
static void size_launch(op_launched *l, const op_ready *ready) {
  uint64_t in[OP_IN] = {0}, out[OP_OUT] = {0};
  l->ready = ready;
  op_launched_sizes(l->k, ready, in, out);
  for (uint32_t i = 0; i < ready->r.region.n_inputs; i++)
    if (l->in[i].bytes > 0) l->in[i].bytes = in[i];
  for (uint32_t i = 0; i < ready->r.region.n_outputs; i++) l->out[i].bytes = out[i];
  op_launch_refill(l);
}

static bool resize_launch(op_launched *l) {
  kit *k = l->k;
  char what[sizeof l->words + 32];
  const heddle_pbind operands = op_launched_operands(l);
  const uint64_t before = kit_heap_calls();
  op_clone clone = op_clone_make(k, &l->ready->r.region, OP_CLONE_SAME);
  const heddle_status s = k->t.op.resize(l->made, clone.region, &operands, &k->err);
  op_clone_gone(&clone);
  l->gone[l->n_gone++] = clone;
  memset(l->ins, 0xee, sizeof l->ins), memset(l->outs, 0xee, sizeof l->outs);
  const uint64_t calls = kit_heap_calls() - before;
  if (calls != 0)
    kit_fail(k, "op.resize called host.alloc %llu times for %s; it allocates nothing", (unsigned long long)calls,
             l->words);
  if (s == HEDDLE_EUNSUPPORTED) return false;
  snprintf(what, sizeof what, "op.resize of %s", l->words);
  kit_ok(k, s, what);
  return true;
}

uint32_t op_resized(kit *k, heddle_pstream *stream, const op_ready *sizes, op_want (*wants)[OP_OUT], uint32_t n_sizes,
                    uint32_t how, uint32_t bound_as) {
  op_launched *l = op_launched_new(k, k->dev, stream, &sizes[0], how, -1);
  uint32_t refused = 0, now = 0;
  char text[400];
  snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, l->words);
  size_launch(l, &sizes[bound_as]);
  op_launched_bind(l, sizes[0].op);
  if ((how & OP_MOVED) != 0) {
    size_launch(l, &sizes[0]);
    op_launched_move(l);
  }
  bool runs = bound_as == 0; /* what was bound too small is resized first */
  for (uint32_t i = 1; i <= 2 * n_sizes; i++) {
    const uint32_t to = i % n_sizes;
    char shapes[400];
    op_text(sizes[to].c, shapes, sizeof shapes);
    snprintf(l->words, sizeof l->words, "%.380s, resized to %.360s", text, shapes);
    size_launch(l, &sizes[to]);
    if (resize_launch(l)) {
      now = to;
      runs = true;
    } else { /* the launch is as before */
      refused++;
      size_launch(l, &sizes[now]);
    }
    if (runs) op_launch_run(l, wants[now]);
  }
  op_launch_end(l);
  return refused;
}

bool op_resize_refused(kit *k, heddle_pstream *stream, const op_ready *large, const op_ready *small,
                       op_want small_want[OP_OUT]) {
  op_launched *l = op_launched_new(k, k->dev, stream, large, OP_ARENA, -1);
  char text[400];
  op_text(small->c, text, sizeof text);
  snprintf(l->words, sizeof l->words, "%s, operands in one buffer", text);
  size_launch(l, small);
  op_launched_bind(l, small->op);
  op_launch_run(l, small_want);
  size_launch(l, large);
  const heddle_pbind more = op_launched_operands(l);
  const bool refused = k->t.op.resize(l->made, &large->r.region, &more, &k->err) != HEDDLE_OK;
  size_launch(l, small);
  snprintf(l->words, sizeof l->words, "%s, after op.resize had %s shapes that are larger than the op's", text,
           refused ? "refused" : "taken");
  if (!refused && !resize_launch(l)) kit_fail(k, "%s: op.resize refused the op's own shapes", l->words);
  size_launch(l, small);
  op_launch_run(l, small_want);
  op_launch_end(l);
  return refused;
}
