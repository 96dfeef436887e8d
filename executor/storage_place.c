/* executor/storage_place.c: gives blocks their offsets, one after another in a given order.
 * For each block the ranges that it must not touch are gathered in order of offset, and the gaps between them tried. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/storage_place.h"

heddle_status heddle__placer_init(heddle__placer *p, const heddle__blocks *blocks, uint64_t cap, heddle_error *err) {
  *p = (heddle__placer){.blocks = blocks, .cap = cap};
  if (cap < blocks->sum) p->stride = heddle__round_up(cap, blocks->unit);
  p->offsets = heddle__alloc(blocks->n, sizeof *p->offsets);
  p->placed = heddle__alloc(blocks->n, sizeof *p->placed);
  p->marks = heddle__alloc(blocks->n, sizeof *p->marks);
  p->near = heddle__alloc(blocks->n, sizeof *p->near);
  if (p->offsets == NULL || p->placed == NULL || p->marks == NULL || p->near == NULL)
    return heddle__no_memory(err, "the offsets of a plan's memory");
  return HEDDLE_OK;
}

void heddle__placer_finish(heddle__placer *p) {
  heddle__free(p->offsets);
  heddle__free(p->placed);
  heddle__free(p->marks);
  heddle__free(p->near);
}

static heddle__keyed range_of(const heddle__placer *p, uint32_t block) {
  return (heddle__keyed){p->offsets[block], p->offsets[block] + p->blocks->at[block].bytes};
}

/* The ranges of placed blocks that conflict with this one, by offset. Few conflicts are sorted; with many it is quicker
 * to walk over all that is placed. */
static uint32_t gather(heddle__placer *p, uint32_t block) {
  const heddle__blocks *b = p->blocks;
  uint32_t n = 0;
  if (b->edges == NULL) {
    for (uint32_t i = 0; i < p->n_placed; i++)
      if (heddle__blocks_conflict(b, block, p->placed[i])) p->near[n++] = range_of(p, p->placed[i]);
    return n;
  }
  const uint32_t *edges = b->edges + b->edge_first[block];
  uint32_t degree = b->edge_first[block + 1] - b->edge_first[block];
  if (degree < p->n_placed / 8 || p->n_placed < 8) {
    for (uint32_t i = 0; i < degree; i++)
      if (p->offsets[edges[i]] != HEDDLE__UNPLACED) p->near[n++] = range_of(p, edges[i]);
    heddle__keyed_sort(p->near, n);
    return n;
  }
  for (uint32_t i = 0; i < degree; i++) p->marks[edges[i]] = block + 1;
  for (uint32_t i = 0; i < p->n_placed; i++)
    if (p->marks[p->placed[i]] == block + 1) p->near[n++] = range_of(p, p->placed[i]);
  return n;
}

/* The least offset from at on where the block keeps its alignment and lies in one buffer. */
static uint64_t settle(const heddle__placer *p, const heddle__block *block, uint64_t at) {
  uint64_t align = block->align;
  at = (align & (align - 1)) == 0 ? (at + align - 1) & ~(align - 1) : heddle__round_up(at, align);
  if (p->stride == 0) return at;
  uint64_t within = at % p->stride;
  return within + block->bytes > p->cap ? at - within + p->stride : at;
}

static uint64_t find_gap(const heddle__placer *p, const heddle__block *block, uint32_t n_near, heddle__fit fit) {
  uint64_t end = 0, best = HEDDLE__UNPLACED, least = UINT64_MAX;
  for (uint32_t i = 0; i < n_near; i++) {
    if (p->near[i].key > end) {
      uint64_t at = settle(p, block, end);
      if (at + block->bytes <= p->near[i].key) {
        uint64_t left = p->near[i].key - at - block->bytes;
        if (fit == HEDDLE__FIT_FIRST) return at;
        if (left < least) {
          least = left;
          best = at;
        }
      }
    }
    if (p->near[i].value > end) end = p->near[i].value;
  }
  return best != HEDDLE__UNPLACED ? best : settle(p, block, end);
}

static void keep(heddle__placer *p, uint32_t block, uint64_t offset) {
  uint32_t low = 0, high = p->n_placed;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (p->offsets[p->placed[mid]] <= offset) low = mid + 1;
    else high = mid;
  }
  memmove(p->placed + low + 1, p->placed + low, (p->n_placed - low) * sizeof *p->placed);
  p->placed[low] = block;
  p->n_placed++;
  p->offsets[block] = offset;
}

uint64_t heddle__place(heddle__placer *p, const uint32_t *order, heddle__fit fit, uint64_t bound) {
  uint64_t top = 0, total = 0;
  p->n_placed = 0;
  for (uint32_t i = 0; i < p->blocks->n; i++) {
    p->offsets[i] = HEDDLE__UNPLACED;
    p->marks[i] = 0;
  }
  for (uint32_t i = 0; i < p->blocks->n; i++) {
    const heddle__block *block = &p->blocks->at[order[i]];
    uint64_t offset = find_gap(p, block, gather(p, order[i]), fit);
    keep(p, order[i], offset);
    if (offset + block->bytes > top) top = offset + block->bytes;
    if (p->stride == 0 && top > bound) return UINT64_MAX;
  }
  if (p->stride == 0) return top;
  for (uint32_t k = 0; k <= top / p->stride; k++) total += heddle__placed_bytes(p, p->offsets, k);
  return total;
}

uint64_t heddle__placed_bytes(const heddle__placer *p, const uint64_t *offsets, uint32_t k) {
  uint64_t top = 0, base = k * p->stride;
  for (uint32_t i = 0; i < p->blocks->n; i++) {
    uint64_t end = offsets[i] + p->blocks->at[i].bytes;
    bool here = p->stride == 0 ? k == 0 : offsets[i] / p->stride == k;
    if (here && end - base > top) top = end - base;
  }
  return top;
}
