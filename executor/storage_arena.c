/* executor/storage_arena.c: tries orders in which to place blocks, and improves the best of them.
 * Whatever is worth trying costs time in proportion to blocks and conflicts; a budget of that is spent, and no clock is
 * read, so that the same plan gets the same offsets everywhere. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/storage_arena.h"

#define WORK ((uint64_t)2 << 20) /* block visits that a space may cost beyond the first two orders */
#define SEARCH_BLOCKS 400        /* beyond, orders only */
#define SEARCH_STEPS 1000

typedef struct search {
  const heddle__blocks *blocks;
  heddle__placer placer;
  heddle__keyed *keys;
  uint32_t *order, *best_order;
  uint64_t *best_offsets;
  uint64_t best, lower;
  uint64_t work; /* spent */
  uint64_t cost; /* of one placement */
} search;

/* ---------------------------------------------------------------- a bound from below */

/* The heaviest set of blocks that are all between their first and last step at one position in the list. */
static uint64_t live_bound(const heddle__blocks *b, heddle__keyed *scratch) {
  uint64_t live = 0, most = 0;
  uint32_t n = 0, over = 0;
  for (uint32_t k = 0; k < b->n; k++)
    if (b->at[k].n_ends > 0) scratch[n++] = (heddle__keyed){b->at[k].last, k};
  heddle__keyed_sort(scratch, n);
  for (uint32_t k = 0; k < b->n && b->at[k].n_ends > 0; k++) {
    for (; over < n && scratch[over].key < b->at[k].first; over++) live -= b->at[scratch[over].value].bytes;
    live += b->at[k].bytes;
    if (live > most) most = live;
  }
  return most;
}

/* Those that are live when block seed begins, and then, largest first, whatever conflicts with all that is taken. */
static uint64_t clique_bound(const heddle__blocks *b, uint32_t seed, heddle__keyed *scratch, uint32_t *taken) {
  const uint32_t *edges = b->edges + b->edge_first[seed];
  uint32_t degree = b->edge_first[seed + 1] - b->edge_first[seed], n = 0;
  uint64_t weight = b->at[seed].bytes;
  for (uint32_t i = 0; i < degree; i++) {
    const heddle__block *x = &b->at[edges[i]];
    bool live = x->first <= b->at[seed].first && b->at[seed].first <= x->last;
    scratch[i] = (heddle__keyed){live ? 0 : UINT64_MAX - x->bytes, edges[i]};
  }
  heddle__keyed_sort(scratch, degree);
  for (uint32_t i = 0; i < degree; i++) {
    uint32_t x = (uint32_t)scratch[i].value, k = 0;
    while (k < n && heddle__blocks_conflict(b, x, taken[k])) k++;
    if (k < n) continue;
    taken[n++] = x;
    weight += b->at[x].bytes;
  }
  return weight;
}

static uint64_t lower_bound(search *s) {
  const heddle__blocks *b = s->blocks;
  uint64_t lower = live_bound(b, s->keys);
  if (b->edges == NULL || b->n > SEARCH_BLOCKS) return lower;
  for (uint32_t k = 0; k < b->n; k++) {
    uint64_t weight = clique_bound(b, k, s->keys, s->order);
    if (weight > lower) lower = weight;
  }
  return lower;
}

/* ---------------------------------------------------------------- orders */

enum { BY_LIST, BY_SIZE, BY_AREA, BY_CONFLICTS, BY_LENGTH, BY_END, N_ORDERS };

static uint64_t score(const heddle__blocks *b, int by, uint32_t k) {
  const heddle__block *block = &b->at[k];
  uint64_t length = block->last >= block->first ? (uint64_t)block->last - block->first + 1 : 0, out = 0;
  switch (by) {
  case BY_SIZE: return block->bytes;
  case BY_AREA: return heddle__mul(block->bytes, length, &out) ? out : UINT64_MAX;
  case BY_LENGTH: return length;
  case BY_END: return block->last;
  case BY_CONFLICTS:
    out = block->bytes;
    for (uint32_t i = b->edges != NULL ? b->edge_first[k] : 0; b->edges != NULL && i < b->edge_first[k + 1]; i++)
      out += b->at[b->edges[i]].bytes;
    return out;
  default: return 0; /* blocks are numbered in list order */
  }
}

static void sort_order(search *s, int by) {
  for (uint32_t k = 0; k < s->blocks->n; k++) s->keys[k] = (heddle__keyed){UINT64_MAX - score(s->blocks, by, k), k};
  heddle__keyed_sort(s->keys, s->blocks->n);
  for (uint32_t k = 0; k < s->blocks->n; k++) s->order[k] = (uint32_t)s->keys[k].value;
}

/* Places in s->order and keeps the result when it is the best so far. */
static uint64_t try_order(search *s, heddle__fit fit, uint64_t bound) {
  uint64_t bytes = heddle__place(&s->placer, s->order, fit, bound);
  s->work += s->cost;
  if (bytes < s->best) {
    s->best = bytes;
    memcpy(s->best_offsets, s->placer.offsets, s->blocks->n * sizeof *s->best_offsets);
    memcpy(s->best_order, s->order, s->blocks->n * sizeof *s->order);
  }
  return bytes;
}

static void try_orders(search *s) {
  static const struct {
    int by;
    heddle__fit fit;
  } all[] = {{BY_SIZE, HEDDLE__FIT_FIRST},      {BY_LIST, HEDDLE__FIT_BEST},    {BY_AREA, HEDDLE__FIT_FIRST},
             {BY_CONFLICTS, HEDDLE__FIT_FIRST}, {BY_LENGTH, HEDDLE__FIT_FIRST}, {BY_LIST, HEDDLE__FIT_FIRST},
             {BY_SIZE, HEDDLE__FIT_BEST},       {BY_AREA, HEDDLE__FIT_BEST},    {BY_CONFLICTS, HEDDLE__FIT_BEST},
             {BY_LENGTH, HEDDLE__FIT_BEST},     {BY_END, HEDDLE__FIT_BEST}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (s->best <= s->lower || (i >= 2 && s->work + s->cost > WORK)) return;
    sort_order(s, all[i].by);
    try_order(s, all[i].fit, s->best);
  }
}

/* ---------------------------------------------------------------- search */

static uint32_t draw(uint64_t *state, uint32_t below) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(((*state >> 33) * below) >> 31);
}

static void move(uint32_t *order, uint32_t from, uint32_t to) {
  uint32_t block = order[from];
  memmove(order + to + 1, order + to, (from - to) * sizeof *order);
  order[to] = block;
}

/* The position in the order of a block that ends at the peak. */
static uint32_t peak_position(const search *s) {
  uint32_t at = 0;
  uint64_t top = 0;
  for (uint32_t i = 0; i < s->blocks->n; i++) {
    uint64_t end = s->placer.offsets[s->order[i]] + s->blocks->at[s->order[i]].bytes;
    if (end < top) continue;
    top = end;
    at = i;
  }
  return at;
}

/* Walks from the best order: the block at the peak, or any, is placed earlier; what is not worse is kept. First fit
 * reaches every placement that cannot be pushed down, from the order of its offsets. */
static void improve(search *s) {
  uint32_t n = s->blocks->n;
  uint64_t state = n;
  if (s->best <= s->lower || n < 2 || n > SEARCH_BLOCKS || s->blocks->edges == NULL) return;
  for (uint32_t k = 0; k < n; k++) s->keys[k] = (heddle__keyed){s->best_offsets[k], k};
  heddle__keyed_sort(s->keys, n);
  for (uint32_t k = 0; k < n; k++) s->order[k] = (uint32_t)s->keys[k].value;
  uint64_t now = try_order(s, HEDDLE__FIT_FIRST, UINT64_MAX);
  uint32_t peak = peak_position(s);
  memcpy(s->best_order, s->order, n * sizeof *s->order); /* from here on: the order that the walk stands on */
  for (uint32_t i = 0; i < SEARCH_STEPS && s->best > s->lower && s->work < WORK; i++) {
    uint32_t from = draw(&state, 2) == 0 && peak > 0 ? peak : 1 + draw(&state, n - 1);
    move(s->order, from, draw(&state, from));
    uint64_t bytes = heddle__place(&s->placer, s->order, HEDDLE__FIT_FIRST, now);
    s->work += s->cost;
    if (bytes > now) {
      memcpy(s->order, s->best_order, n * sizeof *s->order);
      continue;
    }
    now = bytes;
    peak = peak_position(s);
    memcpy(s->best_order, s->order, n * sizeof *s->order);
    if (bytes >= s->best) continue;
    s->best = bytes;
    memcpy(s->best_offsets, s->placer.offsets, n * sizeof *s->best_offsets);
  }
}

heddle_status heddle__arena_pack(const heddle__blocks *blocks, uint64_t cap, uint64_t target, heddle__packing *packing,
                                 heddle_error *err) {
  *packing = (heddle__packing){0};
  search s = {.blocks = blocks, .best = UINT64_MAX};
  s.cost = (uint64_t)blocks->n * 4;
  if (blocks->edges != NULL) s.cost += blocks->edge_first[blocks->n] / 2;
  else s.cost += (uint64_t)blocks->n * blocks->n;
  s.keys = heddle__alloc(blocks->n, sizeof *s.keys);
  s.order = heddle__alloc(blocks->n, sizeof *s.order);
  s.best_order = heddle__alloc(blocks->n, sizeof *s.best_order);
  s.best_offsets = heddle__alloc(blocks->n, sizeof *s.best_offsets);
  heddle_status status = HEDDLE_OK;
  if (s.keys == NULL || s.order == NULL || s.best_order == NULL || s.best_offsets == NULL)
    status = heddle__no_memory(err, "the search for a plan's offsets");
  if (status == HEDDLE_OK) status = heddle__placer_init(&s.placer, blocks, cap, err);
  if (status == HEDDLE_OK) {
    s.lower = lower_bound(&s);
    if (s.lower < target) {
      try_orders(&s);
      improve(&s);
    }
    *packing = (heddle__packing){s.best_offsets, s.placer.stride, s.best};
    s.best_offsets = NULL;
  }
  heddle__placer_finish(&s.placer);
  heddle__free(s.keys);
  heddle__free(s.order);
  heddle__free(s.best_order);
  heddle__free(s.best_offsets);
  return status;
}
