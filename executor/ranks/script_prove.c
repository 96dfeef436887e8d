/* executor/ranks/script_prove.c: the proof of the acts of all ranks. It shares nothing with what makes them. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/ranks/script.h"

#define NONE UINT32_MAX

/* One end of a message, found by the two ranks and the tag. */
typedef struct end {
  uint32_t from, to, tag;
  uint32_t rank, at; /* its act: SEND or RECEIVE */
  uint32_t closed;   /* the act that waits for it; NONE: not found yet */
  uint32_t other;    /* the other end's position in the list of all */
} end;

typedef struct prover {
  const heddle__script *s;
  heddle_error *err;
  end *ends; /* receives, then sends, each sorted by (from, to, tag) */
  uint32_t n_receives, n_ends;
  uint32_t *first;  /* per rank: acts of ranks before it */
  uint32_t *end_of; /* per act of all ranks: its end; NONE */
} prover;

static const heddle__act *act_of(const prover *p, const end *e) {
  return &p->s->ranks[e->rank].list[e->at];
}

static heddle_status refuse(const prover *p, uint32_t rank, uint32_t at, const char *why) {
  const heddle__act *a = &p->s->ranks[rank].list[at];
  return heddle__fail(p->err, HEDDLE_EINTERNAL,
                      "the plan of messages is wrong: rank %u, act %u (value %u, tag %u, peer %u): %s", (unsigned)rank,
                      (unsigned)at, (unsigned)a->value, (unsigned)a->tag, (unsigned)a->peer, why);
}

static int by_key(const void *one, const void *two) {
  const end *a = one, *b = two;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  if (a->to != b->to) return a->to < b->to ? -1 : 1;
  return a->tag < b->tag ? -1 : a->tag > b->tag;
}

static end *find_end(end *list, uint32_t n, const heddle__act *a, uint32_t rank) {
  const bool receives = a->kind == HEDDLE__ACT_RECEIVE || a->kind == HEDDLE__ACT_AWAIT;
  const end key = {.from = receives ? a->peer : rank, .to = receives ? rank : a->peer, .tag = a->tag};
  return n > 0 ? bsearch(&key, list, n, sizeof *list, by_key) : NULL;
}

/* Fills ends: each key once, and each receive with its send. */
static heddle_status pair(prover *p) {
  const heddle__script *s = p->s;
  uint32_t at = 0;
  for (int sends = 0; sends < 2; sends++) {
    for (uint32_t r = 0; r < s->n_ranks; r++)
      for (uint32_t i = 0; i < s->ranks[r].n; i++) {
        const heddle__act *a = &s->ranks[r].list[i];
        if (a->kind != (sends ? HEDDLE__ACT_SEND : HEDDLE__ACT_RECEIVE)) continue;
        if (a->peer >= s->n_ranks || a->peer == r) return refuse(p, r, i, "no other rank has that number");
        p->ends[at++] = (end){sends ? r : a->peer, sends ? a->peer : r, a->tag, r, i, NONE, NONE};
      }
    if (!sends) p->n_receives = at;
  }
  p->n_ends = at;
  end *sends = p->ends + p->n_receives;
  const uint32_t n_sends = p->n_ends - p->n_receives;
  if (p->n_receives > 0) qsort(p->ends, p->n_receives, sizeof *p->ends, by_key);
  if (n_sends > 0) qsort(sends, n_sends, sizeof *sends, by_key);
  for (uint32_t i = 1; i < p->n_ends; i++)
    if (i != p->n_receives && by_key(&p->ends[i - 1], &p->ends[i]) == 0)
      return refuse(p, p->ends[i].rank, p->ends[i].at, "another message between the two ranks has its tag");
  for (uint32_t i = 0; i < p->n_receives; i++) {
    end *r = &p->ends[i];
    end *other = find_end(sends, n_sends, act_of(p, r), r->rank);
    if (other == NULL) return refuse(p, r->rank, r->at, "a receive without its send");
    const heddle__act *a = act_of(p, r), *b = act_of(p, other);
    if (a->value != b->value || a->bytes != b->bytes)
      return refuse(p, r->rank, r->at, "what is received is not what is sent");
    r->other = (uint32_t)(other - p->ends);
    other->other = i;
  }
  for (uint32_t i = p->n_receives; i < p->n_ends; i++)
    if (p->ends[i].other == NONE) return refuse(p, p->ends[i].rank, p->ends[i].at, "a send without its receive");
  return HEDDLE_OK;
}

/* One rank: values are there when they are read, and what is started is waited for, once. has: per value, 1 + the rank. */
static heddle_status walk(prover *p, uint32_t rank, uint32_t *has, bool *ran) {
  const heddle__script *s = p->s;
  const heddle__acts *acts = &s->ranks[rank];
  for (uint32_t i = 0; i < acts->n; i++) {
    const heddle__act *a = &acts->list[i];
    const bool receives = a->kind == HEDDLE__ACT_RECEIVE || a->kind == HEDDLE__ACT_AWAIT;
    end *e = NULL;
    if (a->kind == HEDDLE__ACT_STAGE) {
      if (a->stage >= s->n_stages || s->stages[a->stage].rank != rank || ran[a->stage])
        return refuse(p, rank, i, "a stage that is not of this rank, or runs twice");
      const heddle__script_stage *stage = &s->stages[a->stage];
      for (uint32_t k = 0; k < stage->n_in; k++)
        if (stage->in[k] != NONE && stage->in[k] >= s->n_given && has[stage->in[k]] != rank + 1)
          return refuse(p, rank, i, "a stage runs before its input is there");
      for (uint32_t k = 0; k < stage->n_out; k++)
        if (stage->out[k] != NONE) has[stage->out[k]] = rank + 1;
      ran[a->stage] = true;
      continue;
    }
    e = receives ? find_end(p->ends, p->n_receives, a, rank)
                 : find_end(p->ends + p->n_receives, p->n_ends - p->n_receives, a, rank);
    if (e == NULL) return refuse(p, rank, i, "a wait for a message that is not started");
    p->end_of[p->first[rank] + i] = (uint32_t)(e - p->ends);
    if (a->kind == HEDDLE__ACT_RECEIVE) continue;
    if (a->kind == HEDDLE__ACT_SEND) {
      if (a->value >= s->n_values || has[a->value] != rank + 1)
        return refuse(p, rank, i, "a value is sent before it is there");
      continue;
    }
    if (e->at >= i || e->closed != NONE || act_of(p, e)->value != a->value)
      return refuse(p, rank, i, "a wait that is not for a message started before, or a second one for it");
    e->closed = i;
    if (a->kind == HEDDLE__ACT_AWAIT) has[a->value] = rank + 1;
  }
  for (uint32_t i = 0; rank == 0 && i < s->n_results; i++)
    if (s->results[i] >= s->n_given && has[s->results[i]] != 1)
      return heddle__fail(p->err, HEDDLE_EINTERNAL, "the plan of messages is wrong: result %u does not reach rank 0",
                          (unsigned)i);
  return HEDDLE_OK;
}

/* Is every act of runs + 1 runs reached, where a rank begins run k + in_flight after the end of run k, and waits wait? */
static heddle_status replay(prover *p, uint32_t in_flight) {
  const heddle__script *s = p->s;
  const uint32_t runs = in_flight + 1, n_acts = p->first[s->n_ranks];
  /* Where each rank is in each run; and whom to look at again: a row of (run, rank) that may go on. */
  uint32_t *at = heddle__alloc((size_t)runs * s->n_ranks, sizeof *at);
  uint64_t *queue = heddle__alloc((size_t)runs * (n_acts + s->n_ranks * 2) * 3 + 16, sizeof *queue);
  size_t head = 0, tail = 0;
  heddle_status status = at != NULL && queue != NULL ? HEDDLE_OK : heddle__no_memory(p->err, "the proof of messages");
  for (uint32_t k = 0; status == HEDDLE_OK && k < in_flight; k++)
    for (uint32_t r = 0; r < s->n_ranks; r++) queue[tail++] = (uint64_t)k << 32 | r;
  while (status == HEDDLE_OK && head < tail) {
    const uint32_t k = (uint32_t)(queue[head] >> 32), r = (uint32_t)queue[head];
    uint32_t *here = &at[(size_t)k * s->n_ranks + r];
    head++;
    if (k >= in_flight && at[(size_t)(k - in_flight) * s->n_ranks + r] < s->ranks[r].n) continue;
    const uint32_t before = *here;
    while (*here < s->ranks[r].n) {
      const heddle__act *a = &s->ranks[r].list[*here];
      if (a->kind == HEDDLE__ACT_AWAIT || a->kind == HEDDLE__ACT_SENT) {
        const end *other = &p->ends[p->ends[p->end_of[p->first[r] + *here]].other];
        if (at[(size_t)k * s->n_ranks + other->rank] <= other->at) break;
      } else if (a->kind != HEDDLE__ACT_STAGE) {
        queue[tail++] = (uint64_t)k << 32 | a->peer; /* it may wait for this */
      }
      ++*here;
    }
    if (*here > before && *here == s->ranks[r].n && k + in_flight < runs)
      queue[tail++] = (uint64_t)(k + in_flight) << 32 | r;
  }
  for (uint32_t k = 0; status == HEDDLE_OK && k < runs; k++)
    for (uint32_t r = 0; status == HEDDLE_OK && r < s->n_ranks; r++)
      if (at[(size_t)k * s->n_ranks + r] < s->ranks[r].n)
        status = refuse(p, r, at[(size_t)k * s->n_ranks + r], "ranks wait for each other here");
  heddle__free(at);
  heddle__free(queue);
  return status;
}

heddle_status heddle__script_prove(const heddle__script *s, uint32_t in_flight, heddle_error *err) {
  prover p = {.s = s, .err = err};
  p.first = heddle__alloc((size_t)s->n_ranks + 1, sizeof *p.first);
  uint32_t *has = heddle__alloc(s->n_values, sizeof *has);
  bool *ran = heddle__alloc(s->n_stages, sizeof *ran);
  heddle_status status = p.first != NULL && has != NULL && ran != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
  for (uint32_t r = 0; status == HEDDLE_OK && r < s->n_ranks; r++) p.first[r + 1] = p.first[r] + s->ranks[r].n;
  const uint32_t n_acts = status == HEDDLE_OK ? p.first[s->n_ranks] : 0;
  p.ends = heddle__alloc((size_t)n_acts + 1, sizeof *p.ends);
  p.end_of = heddle__alloc((size_t)n_acts + 1, sizeof *p.end_of);
  if (p.ends == NULL || p.end_of == NULL || status != HEDDLE_OK)
    status = heddle__no_memory(err, "the proof of messages");
  if (status == HEDDLE_OK) status = pair(&p);
  for (uint32_t r = 0; status == HEDDLE_OK && r < s->n_ranks; r++) status = walk(&p, r, has, ran);
  for (uint32_t i = 0; status == HEDDLE_OK && i < p.n_ends; i++)
    if (p.ends[i].closed == NONE) status = refuse(&p, p.ends[i].rank, p.ends[i].at, "a message that is not waited for");
  for (uint32_t i = 0; status == HEDDLE_OK && i < s->n_stages; i++)
    if (!ran[i])
      status = heddle__fail(err, HEDDLE_EINTERNAL, "the plan of messages is wrong: stage %u does not run", (unsigned)i);
  if (status == HEDDLE_OK) status = replay(&p, in_flight);
  heddle__free(p.first);
  heddle__free(p.ends);
  heddle__free(p.end_of);
  heddle__free(has);
  heddle__free(ran);
  return status;
}
