/* executor/ranks/script.c: the acts of each rank: receives are started first, a stage waits for the messages that it reads, a
 * value is sent when its stage has run, and at the end all messages are waited for. */
#include "executor/ranks/script.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define NONE UINT32_MAX

static bool add(heddle__acts *a, const heddle__act *act) {
  if (a->n == a->room) {
    const uint32_t room = a->room * 2 + 16;
    heddle__act *grown = heddle__grow(a->list, a->room, room, sizeof *grown);
    if (grown == NULL) return false;
    a->list = grown;
    a->room = room;
  }
  a->list[a->n++] = *act;
  return true;
}

/* A value that one rank needs of another. */
typedef struct need {
  uint32_t value, from, to, producer, reader; /* stages; reader NONE: the end of the run */
} need;

static uint64_t mix(uint64_t key) {
  key *= UINT64_C(0x9e3779b97f4a7c15);
  return key ^ key >> 32;
}

typedef struct maker {
  heddle__script *s;
  const uint64_t *bytes;
  uint32_t *producer; /* per value; NONE: given */
  need *needs;
  uint32_t n_needs, room;
  uint32_t *table; /* 1 + position in needs, by value and rank */
  uint32_t table_size;
} maker;

static bool rehash(maker *m, uint32_t size) {
  heddle__free(m->table);
  m->table = heddle__alloc(size, sizeof *m->table);
  m->table_size = size;
  if (m->table == NULL) return false;
  for (uint32_t i = 0; i < m->n_needs; i++) {
    uint64_t at = mix((uint64_t)m->needs[i].value << 32 | m->needs[i].to) % size;
    while (m->table[at] != 0) at = (at + 1) % size;
    m->table[at] = i + 1;
  }
  return true;
}

static bool want(maker *m, uint32_t value, uint32_t to, uint32_t reader) {
  if (value == NONE || m->producer[value] == NONE || m->s->stages[m->producer[value]].rank == to) return true;
  uint64_t at = mix((uint64_t)value << 32 | to) % m->table_size;
  for (; m->table[at] != 0; at = (at + 1) % m->table_size) {
    const need *n = &m->needs[m->table[at] - 1];
    if (n->value == value && n->to == to) return true;
  }
  if (m->n_needs == m->room) {
    const uint32_t room = m->room * 2;
    need *grown = heddle__grow(m->needs, m->room, room, sizeof *grown);
    if (grown == NULL) return false;
    m->needs = grown;
    m->room = room;
  }
  const uint32_t producer = m->producer[value];
  m->needs[m->n_needs++] = (need){value, m->s->stages[producer].rank, to, producer, reader};
  if (m->n_needs * 2 > m->table_size) return rehash(m, m->table_size * 2);
  m->table[at] = m->n_needs;
  return true;
}

static heddle__act act_of(const maker *m, heddle__act_kind kind, uint32_t number) {
  const need *n = &m->needs[number];
  const bool receives = kind == HEDDLE__ACT_RECEIVE || kind == HEDDLE__ACT_AWAIT;
  return (heddle__act){kind, NONE, receives ? n->from : n->to, number, n->value, m->bytes[n->value]};
}

/* Lists of needs by the stage that reads or makes them first; next is a link per need, head one per stage. */
static bool fill(maker *m) {
  heddle__script *s = m->s;
  uint32_t *reads = heddle__alloc((size_t)s->n_stages + 1, sizeof *reads);
  uint32_t *makes = heddle__alloc((size_t)s->n_stages + 1, sizeof *makes);
  uint32_t *next_read = heddle__alloc((size_t)m->n_needs + 1, sizeof *next_read);
  uint32_t *next_make = heddle__alloc((size_t)m->n_needs + 1, sizeof *next_make);
  bool done = reads != NULL && makes != NULL && next_read != NULL && next_make != NULL;
  for (uint32_t i = m->n_needs; done && i-- > 0;) { /* backwards: lists are in order then */
    const uint32_t reader = m->needs[i].reader == NONE ? s->n_stages : m->needs[i].reader;
    next_read[i] = reads[reader];
    reads[reader] = i + 1;
    next_make[i] = makes[m->needs[i].producer];
    makes[m->needs[i].producer] = i + 1;
  }
  for (uint32_t i = 0; done && i < m->n_needs; i++) {
    const heddle__act act = act_of(m, HEDDLE__ACT_RECEIVE, i);
    done = add(&s->ranks[m->needs[i].to], &act);
  }
  for (uint32_t k = 0; done && k < s->n_stages; k++) {
    heddle__acts *own = &s->ranks[s->stages[k].rank];
    for (uint32_t i = reads[k]; done && i != 0; i = next_read[i - 1]) {
      const heddle__act act = act_of(m, HEDDLE__ACT_AWAIT, i - 1);
      done = add(own, &act);
    }
    const heddle__act stage = {HEDDLE__ACT_STAGE, k, NONE, NONE, NONE, 0};
    done = done && add(own, &stage);
    for (uint32_t i = makes[k]; done && i != 0; i = next_make[i - 1]) {
      const heddle__act act = act_of(m, HEDDLE__ACT_SEND, i - 1);
      done = add(own, &act);
    }
  }
  for (uint32_t i = done ? reads[s->n_stages] : 0; done && i != 0; i = next_read[i - 1]) {
    const heddle__act act = act_of(m, HEDDLE__ACT_AWAIT, i - 1);
    done = add(&s->ranks[m->needs[i - 1].to], &act);
  }
  for (uint32_t i = 0; done && i < m->n_needs; i++) {
    const heddle__act act = act_of(m, HEDDLE__ACT_SENT, i);
    done = add(&s->ranks[m->needs[i].from], &act);
  }
  heddle__free(reads);
  heddle__free(makes);
  heddle__free(next_read);
  heddle__free(next_make);
  return done;
}

heddle_status heddle__script_make(heddle__script *s, const uint64_t *bytes, heddle_error *err) {
  enum { ROOM = 64 };
  maker m = {.s = s,
             .bytes = bytes,
             .producer = heddle__alloc(s->n_values, sizeof *m.producer),
             .needs = heddle__alloc(ROOM, sizeof *m.needs),
             .room = ROOM};
  s->ranks = heddle__alloc(s->n_ranks, sizeof *s->ranks);
  bool done = s->ranks != NULL && m.producer != NULL && m.needs != NULL && rehash(&m, 256);
  for (uint32_t i = 0; done && i < s->n_values; i++) m.producer[i] = NONE;
  for (uint32_t k = 0; done && k < s->n_stages; k++)
    for (uint32_t i = 0; i < s->stages[k].n_out; i++)
      if (s->stages[k].out[i] != NONE) m.producer[s->stages[k].out[i]] = k;
  for (uint32_t k = 0; done && k < s->n_stages; k++)
    for (uint32_t i = 0; done && i < s->stages[k].n_in; i++) done = want(&m, s->stages[k].in[i], s->stages[k].rank, k);
  for (uint32_t i = 0; done && i < s->n_results; i++) done = want(&m, s->results[i], 0, NONE);
  s->n_tags = m.n_needs;
  done = done && fill(&m);
  heddle__free(m.producer);
  heddle__free(m.needs);
  heddle__free(m.table);
  return done ? HEDDLE_OK : heddle__no_memory(err, "the messages between ranks");
}

void heddle__script_free(heddle__script *s) {
  for (uint32_t i = 0; s->ranks != NULL && i < s->n_ranks; i++) heddle__free(s->ranks[i].list);
  heddle__free(s->ranks);
  s->ranks = NULL;
}
