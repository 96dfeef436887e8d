/* executor/budget/search.c: looks for an order of tasks that needs little memory: a beam search over sets of tasks that
 * have run. Two orders of one set leave the same bytes, so the one that has needed less stands for both; with few tasks
 * the beam holds every set, and the order is the best there is. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/alloc.h"
#include "executor/budget/net.h"

enum {
  MOST_CELLS = 1 << 20, /* states times tasks */
  LEAST_TRIES = 64      /* tasks that are tried on states, after a task */
};

/* Beams, a wider one only where the one before it did not reach the rooms. */
static const struct {
  uint32_t states; /* kept after a task */
  uint32_t tries;  /* in all */
} beams[] = {{16, 1 << 16}, {128, 1 << 18}, {2048, 1 << 20}};

/* What a set of tasks has needed, and what it holds. */
typedef struct cost {
  uint64_t over; /* the most bytes beyond the rooms, of all slots together */
  uint64_t live; /* bytes that are needed on, of all slots together */
} cost;

/* A state, and one task more. */
typedef struct step {
  uint64_t hash; /* of the set */
  cost cost;
  uint32_t from; /* state of the row before */
  uint32_t task;
} step;

typedef struct row {
  uint64_t *done;  /* bits of the tasks that have run, words of them a state */
  uint64_t *live;  /* per state and slot */
  uint64_t *peak;  /* per state and slot */
  uint32_t *ready; /* per state: room for n_tasks */
  uint32_t *n_ready;
  step *last; /* per state */
  uint32_t n;
} row;

typedef struct search {
  const budget_net *net;
  row rows[2];
  step *tries;
  uint32_t cap_tries;
  uint32_t width, words;
  uint64_t *after, *during; /* per slot: scratch of try */
  bool cut;                 /* some set was left out, so that there may be a better order */
} search;

static bool has(const uint64_t *done, uint32_t task) {
  return (done[task / 64] >> task % 64 & 1) != 0;
}

/* Whether no task but one still uses, or has used, a value. */
static bool unused(const budget_net *net, const budget_value *v, const uint64_t *done, uint32_t but, bool ran) {
  for (uint32_t k = 0; k < v->uses.count; k++) {
    uint32_t user = net->lists[v->uses.first + k];
    if (user != but && has(done, user) == ran) return false;
  }
  return true;
}

/* Runs a task: after and during hold what is live before, and get what is live after it and at most meanwhile. */
static void run_task(const budget_net *net, const uint64_t *done, uint32_t number, uint64_t *after, uint64_t *during) {
  const budget_task *t = &net->tasks[number];
  for (uint32_t k = 0; k < t->reads.count; k++) {
    const budget_value *v = &net->values[net->lists[t->reads.first + k]];
    if (v->maker == HEDDLE__NONE && unused(net, v, done, number, true)) after[v->slot] += v->bytes;
  }
  for (uint32_t k = 0; k < t->writes.count; k++) {
    const budget_value *v = &net->values[net->lists[t->writes.first + k]];
    after[v->slot] += v->bytes;
  }
  for (uint32_t s = 0; s < net->n_slots; s++) during[s] = after[s];
  if (t->slot != HEDDLE__NONE) during[t->slot] += t->workspace;
  for (uint32_t k = 0; k < t->reads.count; k++) {
    uint32_t id = net->lists[t->reads.first + k];
    const budget_value *v = &net->values[id];
    if (!unused(net, v, done, number, false)) continue;
    after[v->slot] -= v->bytes;
    for (uint32_t h = 0; h < t->heirs.count; h += 2)
      if (net->lists[t->heirs.first + h] == id) {
        during[v->slot] -= v->bytes;
        break;
      }
  }
  for (uint32_t k = 0; k < t->writes.count; k++) {
    const budget_value *v = &net->values[net->lists[t->writes.first + k]];
    if (v->uses.count == 0) after[v->slot] -= v->bytes;
  }
}

static cost cost_of(const budget_net *net, const uint64_t *live, const uint64_t *peak) {
  cost c = {0, 0};
  for (uint32_t s = 0; s < net->n_slots; s++) {
    c.live += live[s];
    if (peak[s] > net->room[s]) c.over += peak[s] - net->room[s];
  }
  return c;
}

static int compare_costs(const cost *a, const cost *b) {
  if (a->over != b->over) return a->over < b->over ? -1 : 1;
  return a->live != b->live ? (a->live < b->live ? -1 : 1) : 0;
}

static int by_cost(const void *x, const void *y) {
  const step *a = x, *b = y;
  int c = compare_costs(&a->cost, &b->cost);
  if (c != 0) return c;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  return a->task != b->task ? (a->task < b->task ? -1 : 1) : 0;
}

static int by_set(const void *x, const void *y) {
  const step *a = x, *b = y;
  if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
  return by_cost(x, y);
}

/* A number for each task; a set's is the exclusive or of its tasks'. */
static uint64_t mark_of(uint32_t task) {
  uint64_t x = (uint64_t)task + 1;
  x *= UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

/* All tasks that can run next, of the states from the best one on, as many as there is room for. */
static uint32_t try_all(search *s, const row *from) {
  const budget_net *net = s->net;
  uint32_t n = 0, slots = net->n_slots;
  for (uint32_t k = 0; k < from->n; k++) {
    const uint64_t *done = from->done + (size_t)k * s->words;
    const uint32_t *ready = from->ready + (size_t)k * net->n_tasks;
    for (uint32_t i = 0; i < from->n_ready[k]; i++) {
      if (n == s->cap_tries) {
        s->cut = true;
        return n;
      }
      memcpy(s->after, from->live + (size_t)k * slots, slots * sizeof *s->after);
      run_task(net, done, ready[i], s->after, s->during);
      for (uint32_t x = 0; x < slots; x++)
        if (s->during[x] < from->peak[(size_t)k * slots + x]) s->during[x] = from->peak[(size_t)k * slots + x];
      s->tries[n++] = (step){from->last[k].hash ^ mark_of(ready[i]), cost_of(net, s->after, s->during), k, ready[i]};
    }
  }
  return n;
}

/* Keeps the best of each set, and of those the best ones, in front. */
static uint32_t choose(search *s, uint32_t n) {
  uint32_t kept = 0;
  qsort(s->tries, n, sizeof *s->tries, by_set);
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || s->tries[i].hash != s->tries[i - 1].hash) s->tries[kept++] = s->tries[i];
  qsort(s->tries, kept, sizeof *s->tries, by_cost);
  s->cut = s->cut || kept > s->width;
  return kept < s->width ? kept : s->width;
}

static void enter(search *s, const row *from, row *to, uint32_t k, const step *by) {
  const budget_net *net = s->net;
  const budget_task *t = &net->tasks[by->task];
  uint64_t *done = to->done + (size_t)k * s->words, *live = to->live + (size_t)k * net->n_slots;
  uint64_t *peak = to->peak + (size_t)k * net->n_slots;
  const uint32_t *old = from->ready + (size_t)by->from * net->n_tasks;
  uint32_t *ready = to->ready + (size_t)k * net->n_tasks, n = 0;
  memcpy(done, from->done + (size_t)by->from * s->words, s->words * sizeof *done);
  memcpy(live, from->live + (size_t)by->from * net->n_slots, net->n_slots * sizeof *live);
  memcpy(peak, from->peak + (size_t)by->from * net->n_slots, net->n_slots * sizeof *peak);
  run_task(net, done, by->task, live, s->during);
  for (uint32_t x = 0; x < net->n_slots; x++)
    if (s->during[x] > peak[x]) peak[x] = s->during[x];
  done[by->task / 64] |= UINT64_C(1) << by->task % 64;
  for (uint32_t i = 0; i < from->n_ready[by->from]; i++)
    if (old[i] != by->task) ready[n++] = old[i];
  for (uint32_t i = 0; i < t->after.count; i++) {
    uint32_t next = net->lists[t->after.first + i], b = 0;
    const budget_list *before = &net->tasks[next].before;
    while (b < before->count && has(done, net->lists[before->first + b])) b++;
    if (b == before->count) ready[n++] = next;
  }
  to->n_ready[k] = n;
  to->last[k] = *by;
}

static bool make_row(search *s, row *r) {
  size_t width = s->width;
  r->done = heddle__alloc(width * s->words, sizeof *r->done);
  r->live = heddle__alloc(width * s->net->n_slots, sizeof *r->live);
  r->peak = heddle__alloc(width * s->net->n_slots, sizeof *r->peak);
  r->ready = heddle__alloc(width * s->net->n_tasks, sizeof *r->ready);
  r->n_ready = heddle__alloc(width, sizeof *r->n_ready);
  r->last = heddle__alloc(width, sizeof *r->last);
  return r->done != NULL && r->live != NULL && r->peak != NULL && r->ready != NULL && r->n_ready != NULL &&
         r->last != NULL;
}

static void drop_row(row *r) {
  heddle__free(r->done);
  heddle__free(r->live);
  heddle__free(r->peak);
  heddle__free(r->ready);
  heddle__free(r->n_ready);
  heddle__free(r->last);
}

/* What the tasks need in the order in which they are numbered. */
static cost listed(search *s) {
  const budget_net *net = s->net;
  row *r = &s->rows[0];
  for (uint32_t t = 0; t < net->n_tasks; t++) {
    run_task(net, r->done, t, r->live, s->during);
    for (uint32_t x = 0; x < net->n_slots; x++)
      if (s->during[x] > r->peak[x]) r->peak[x] = s->during[x];
    r->done[t / 64] |= UINT64_C(1) << t % 64;
  }
  cost c = cost_of(net, r->live, r->peak);
  memset(r->done, 0, s->words * sizeof *r->done);
  memset(r->live, 0, net->n_slots * sizeof *r->live);
  memset(r->peak, 0, net->n_slots * sizeof *r->peak);
  return c;
}

/* trace holds the steps of every row, width of them a row. Gives the bytes over the rooms; UINT64_MAX where order is not
 * filled. */
static uint64_t walk(search *s, step *trace, uint32_t *order) {
  const budget_net *net = s->net;
  row *now = &s->rows[0], *next = &s->rows[1];
  now->n = 1;
  for (uint32_t t = 0; t < net->n_tasks; t++)
    if (net->tasks[t].before.count == 0) now->ready[now->n_ready[0]++] = t;
  for (uint32_t level = 0; level < net->n_tasks; level++) {
    next->n = choose(s, try_all(s, now));
    for (uint32_t k = 0; k < next->n; k++) enter(s, now, next, k, &s->tries[k]);
    memcpy(trace + (size_t)level * s->width, next->last, next->n * sizeof *trace);
    row *other = now;
    now = next;
    next = other;
    if (now->n == 0) return UINT64_MAX;
  }
  uint32_t at = 0;
  for (uint32_t level = net->n_tasks; level-- > 0;) {
    const step *by = &trace[(size_t)level * s->width + at];
    order[level] = by->task;
    at = by->from;
  }
  return now->last[0].cost.over;
}

/* One beam; *best is lowered and order filled where it finds a better order. *whole: no order is better. */
static heddle_status sweep(const budget_net *net, size_t beam, uint64_t *best, uint32_t *order, bool *whole,
                           heddle_error *err) {
  search s = {.net = net, .words = net->n_tasks / 64 + 1};
  uint32_t tries = beams[beam].tries / net->n_tasks;
  s.width = MOST_CELLS / net->n_tasks;
  if (s.width > beams[beam].states) s.width = beams[beam].states;
  s.cap_tries = tries < LEAST_TRIES ? LEAST_TRIES : tries < 64 * s.width ? tries : 64 * s.width;
  if (s.width > s.cap_tries) s.width = s.cap_tries;
  s.tries = heddle__alloc(s.cap_tries, sizeof *s.tries);
  s.after = heddle__alloc((size_t)net->n_slots * 2, sizeof *s.after);
  s.during = s.after != NULL ? s.after + net->n_slots : NULL;
  step *trace = heddle__alloc((size_t)net->n_tasks * s.width, sizeof *trace);
  uint32_t *found = heddle__alloc(net->n_tasks, sizeof *found);
  bool made = make_row(&s, &s.rows[0]);
  made = make_row(&s, &s.rows[1]) && made && s.tries != NULL && s.after != NULL && trace != NULL && found != NULL;
  if (made) {
    uint64_t own = listed(&s).over, over = walk(&s, trace, found);
    if (own < *best) *best = own;
    if (over < *best) {
      *best = over;
      memcpy(order, found, net->n_tasks * sizeof *order);
    }
    *whole = !s.cut;
  }
  drop_row(&s.rows[0]);
  drop_row(&s.rows[1]);
  heddle__free(s.tries);
  heddle__free(s.after);
  heddle__free(trace);
  heddle__free(found);
  return made ? HEDDLE_OK : heddle__no_memory(err, "the search for a smaller plan");
}

heddle_status budget_search(const budget_net *net, bool thorough, uint32_t *order, bool *better, heddle_error *err) {
  uint64_t best = UINT64_MAX;
  bool whole = false;
  heddle_status s = HEDDLE_OK;
  *better = false;
  if (net->n_tasks < 2 || net->n_tasks > MOST_CELLS / 4) return HEDDLE_OK;
  order[0] = order[1] = 0; /* no order */
  for (size_t b = 0; s == HEDDLE_OK && best > 0 && !whole && b < (thorough ? sizeof beams / sizeof beams[0] : 1); b++)
    s = sweep(net, b, &best, order, &whole, err);
  *better = s == HEDDLE_OK && order[0] != order[1];
  return s;
}
