/* executor/ranks/link.c: what a message between ranks costs, measured once in a context: all ranks pass bytes round a ring, short
 * ones and long ones, and agree on the slowest link, so that all place alike. */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/ranks/own.h"

enum { SHORT = 64, LONG = 1 << 18, SHORT_TURNS = 8, LONG_TURNS = 2, TRIALS = 3 };

typedef struct ring {
  heddle__ranks *r;
  void *out, *in; /* requests */
  uint32_t next, before;
  uint64_t bytes;
} ring;

static heddle_status turn(const ring *g, heddle_error *err) {
  static const char what[] = "the time of a message";
  heddle_status s = heddle__ranks_start(g->r, g->in, err);
  if (s == HEDDLE_OK) s = heddle__ranks_start(g->r, g->out, err);
  if (s == HEDDLE_OK) (void)heddle__ranks_wait(g->r, g->in, g->before, g->bytes, what, NULL, &s, err);
  if (s == HEDDLE_OK) (void)heddle__ranks_wait(g->r, g->out, g->next, g->bytes, what, NULL, &s, err);
  return s;
}

/* The least mean of a few trials: a rank that comes late makes the first turn long. */
static heddle_status measure(heddle__ranks *r, void *room, uint64_t bytes, int turns, uint64_t *ns, heddle_error *err) {
  const uint32_t n = r->comm.size, self = r->comm.rank;
  ring g = {.r = r, .next = (self + 1) % n, .before = (self + n - 1) % n, .bytes = bytes};
  char *data = room;
  heddle_status s = heddle__ranks_recv_init(r, data, bytes, g.before, HEDDLE__RANK_TAG_LINK, &g.in, err);
  if (s == HEDDLE_OK) s = heddle__ranks_send_init(r, data + LONG, bytes, g.next, HEDDLE__RANK_TAG_LINK, &g.out, err);
  if (s == HEDDLE_OK) s = turn(&g, err);
  *ns = UINT64_MAX;
  for (int k = 0; k < TRIALS && s == HEDDLE_OK; k++) {
    const uint64_t begin = heddle__now_ns();
    for (int i = 0; i < turns && s == HEDDLE_OK; i++) s = turn(&g, err);
    const uint64_t mean = (heddle__now_ns() - begin) / (uint64_t)turns;
    if (mean < *ns) *ns = mean;
  }
  heddle__ranks_free(r, g.in);
  heddle__ranks_free(r, g.out);
  return s;
}

heddle_status heddle__ranks_link(heddle__ranks *r, heddle__link *out, heddle_error *err) {
  uint64_t few = 0, many = 0;
  char text[64], **texts = NULL;
  *out = r->link;
  if (r->link.is_known) return HEDDLE_OK;
  void *room = heddle__alloc(2, LONG);
  heddle_status s = room != NULL ? HEDDLE_OK : heddle__no_memory(err, "the time of a message");
  if (s == HEDDLE_OK) s = measure(r, room, SHORT, SHORT_TURNS, &few, err);
  if (s == HEDDLE_OK) s = measure(r, room, LONG, LONG_TURNS, &many, err);
  heddle__free(room);
  snprintf(text, sizeof text, "%llu %llu", (unsigned long long)few,
           (unsigned long long)(many > few ? (many - few) * 1000 / (LONG - SHORT) : 0));
  if (s == HEDDLE_OK) s = heddle__ranks_agree(r, "the links between ranks", text, &texts, err);
  for (uint32_t i = 0; i < r->comm.size && s == HEDDLE_OK; i++) {
    char *end = NULL;
    const uint64_t ns = strtoull(texts[i], &end, 10), ps = strtoull(end, NULL, 10);
    if (ns > out->ns) out->ns = ns;
    if (ps > out->ps_a_byte) out->ps_a_byte = ps;
  }
  heddle__free(texts);
  out->is_known = s == HEDDLE_OK;
  if (s == HEDDLE_OK) r->link = *out;
  return s;
}
