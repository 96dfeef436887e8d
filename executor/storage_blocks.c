/* executor/storage_blocks.c: gathers the instances of a space into blocks, and finds which two conflict.
 * A block ends, in each stream, with its last step there; it is over for another when that one enters after all ends. */
#include <inttypes.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/copies.h"
#include "executor/storage_blocks.h"

#define MAX_BYTES (UINT64_C(1) << 60) /* of a space: more is an error, and sums cannot overflow */
#define MAX_PAIRS ((size_t)4 << 20)   /* conflicts that are kept as lists */
#define MOST_GRANULE 4096             /* what sizes of imported memory are rounded up to, at most */

typedef struct pair {
  uint32_t a, b;
} pair;

void heddle__keyed_sort(heddle__keyed *items, size_t n) {
  static const size_t gaps[] = {1, 4, 10, 23, 57, 132, 301, 701, 1577, 3548, 7983, 17961, 40412, 90927, 204585};
  for (size_t g = sizeof gaps / sizeof gaps[0]; g-- > 0;) {
    for (size_t i = gaps[g]; i < n; i++) {
      heddle__keyed x = items[i];
      size_t k = i;
      for (; k >= gaps[g]; k -= gaps[g]) {
        heddle__keyed *y = &items[k - gaps[g]];
        if (y->key < x.key || (y->key == x.key && y->value <= x.value)) break;
        items[k] = *y;
      }
      items[k] = x;
    }
  }
}

uint64_t heddle__space_limit(const heddle__plan *plan, uint32_t space) {
  uint64_t limit = plan->devices[plan->spaces[space].device].dev->desc.max_buffer_bytes;
  if (limit == 0) limit = UINT64_MAX;
  for (uint32_t d = 0; d < plan->n_devices; d++) { /* who imports it, imports all of it, rounded up */
    const heddle_pdevice_desc *user = &plan->devices[d].dev->desc;
    bool imports = plan->spaces[space].kind == HEDDLE_MEMORY_UNIFIED && plan->spaces[space].device != d &&
                   !plan->devices[d].is_inline && plan->devices[d].used && heddle__space_usable(plan, space, d);
    uint64_t most = imports ? user->max_buffer_bytes / MOST_GRANULE * MOST_GRANULE : 0;
    if (most != 0 && most < limit) limit = most;
  }
  return limit;
}

heddle_status heddle__instance_check(const heddle__plan *plan, uint32_t instance, heddle_error *err) {
  const heddle__instance *it = &plan->instances[instance];
  const char *device = plan->devices[plan->spaces[it->space].device].dev->name;
  uint64_t limit = heddle__space_limit(plan, it->space);
  if (it->bytes <= limit && it->bytes <= MAX_BYTES) return HEDDLE_OK;
  if (limit > MAX_BYTES) limit = MAX_BYTES;
  const char *of = "value", *name = "?", *node = NULL;
  if (it->value != HEDDLE__NONE) {
    name = plan->values[it->value].name;
  } else {
    of = "the workspace of node";
    for (uint32_t s = 0; s < plan->n_steps; s++)
      if (plan->steps[s].workspace == instance && plan->steps[s].region != HEDDLE__NONE)
        name = node = plan->regions[plan->steps[s].region].label;
  }
  heddle__fail_on(device, err, HEDDLE_ELIMIT,
                  "%s '%s' needs %" PRIu64 " bytes on %s, where one buffer has at most %" PRIu64
                  "; place its node on another device or use a smaller shape",
                  of, name, it->bytes, device, limit);
  return node != NULL ? heddle__at_node(HEDDLE_ELIMIT, err, HEDDLE__NO_NODE, node) : HEDDLE_ELIMIT;
}

static bool is_placed(const heddle__plan *plan, const heddle__uses *uses, uint32_t i, uint32_t space, bool joined) {
  const heddle__instance *it = &plan->instances[i];
  if (it->space != space || (it->role != HEDDLE__ROLE_TEMP && it->role != HEDDLE__ROLE_WORKSPACE)) return false;
  if (it->alloc != HEDDLE__NONE) return false; /* in an output's bytes */
  return !joined || !uses->inherits[i];
}

/* Fills a block but for its ends; the steps of all its instances lower entry and raise seqs. */
static void gather(heddle__blocks *b, uint32_t id, const heddle__plan *plan, const heddle__uses *uses, uint32_t *seqs) {
  heddle__block *block = &b->at[id];
  uint32_t *entry = b->entry + (size_t)id * b->n_streams;
  for (uint32_t t = 0; t < b->n_streams; t++) entry[t] = UINT32_MAX;
  block->first = UINT32_MAX;
  block->ends = id == 0 ? 0 : b->at[id - 1].ends + b->at[id - 1].n_ends;
  for (uint32_t i = block->instance; i != HEDDLE__NONE; i = b->joined ? uses->heir[i] : HEDDLE__NONE) {
    if (plan->instances[i].align > block->align) block->align = plan->instances[i].align;
    for (uint32_t k = uses->first[i]; k < uses->first[i + 1]; k++) {
      uint32_t s = uses->steps[k];
      const uint32_t *clock = plan->clock + (size_t)s * b->n_streams;
      for (uint32_t t = 0; t < b->n_streams; t++)
        if (clock[t] < entry[t]) entry[t] = clock[t];
      if (s < block->first) block->first = s;
      if (s > block->last) block->last = s;
      if (plan->steps[s].seq > seqs[plan->steps[s].stream]) seqs[plan->steps[s].stream] = plan->steps[s].seq;
    }
  }
  for (uint32_t t = 0; t < b->n_streams; t++) {
    if (seqs[t] == 0) continue;
    b->ends[block->ends + block->n_ends++] = (heddle__end){t, seqs[t]};
    seqs[t] = 0;
  }
}

/* The least common multiple; 0 where it is over MAX_BYTES. */
static uint64_t common(uint64_t a, uint64_t b) {
  uint64_t x = a, y = b, out = 0;
  while (y != 0) {
    uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return heddle__mul(a / x, b, &out) && out <= MAX_BYTES ? out : 0;
}

static heddle_status weigh(heddle__blocks *b, const heddle__plan *plan, uint32_t space, heddle_error *err) {
  uint64_t limit = heddle__space_limit(plan, space);
  uint64_t align = plan->spaces[space].align > 0 ? plan->spaces[space].align : 1;
  b->unit = align;
  for (uint32_t k = 0; k < b->n; k++) {
    heddle__block *block = &b->at[k];
    heddle_status s = heddle__instance_check(plan, block->instance, err);
    if (s != HEDDLE_OK) return s;
    block->bytes = heddle__round_up(plan->instances[block->instance].bytes, align);
    if (block->bytes > limit) block->bytes = limit;
    block->align = common(block->align > 0 ? block->align : 1, align);
    b->unit = block->align == 0 ? 0 : common(b->unit, block->align);
    b->sum += block->bytes + block->align;
    if (b->unit == 0 || b->sum > MAX_BYTES)
      return heddle__fail_on(plan->devices[plan->spaces[space].device].dev->name, err, HEDDLE_ELIMIT,
                             "the values on %s need more than %" PRIu64
                             " bytes with their alignment; use smaller shapes",
                             plan->devices[plan->spaces[space].device].dev->name, MAX_BYTES);
  }
  return HEDDLE_OK;
}

bool heddle__blocks_conflict(const heddle__blocks *b, uint32_t x, uint32_t y) {
  if (b->apart) return x != y;
  if (x == y || b->at[x].bytes == 0 || b->at[y].bytes == 0) return false;
  uint32_t first = x < y ? x : y, second = x < y ? y : x;
  const heddle__end *ends = b->ends + b->at[first].ends;
  const uint32_t *entry = b->entry + (size_t)second * b->n_streams;
  for (uint32_t k = 0; k < b->at[first].n_ends; k++)
    if (ends[k].seq > entry[ends[k].stream]) return true;
  return false;
}

/* Pairs that conflict, in *out; more than MAX_PAIRS are not listed (*listed is false). A block is forgotten once all
 * blocks to come enter after its ends; floors has the least entry of those. */
static bool list_pairs(const heddle__blocks *b, const uint32_t *floors, uint32_t *active, pair **out, size_t *n_out,
                       bool *listed) {
  size_t n = 0, room = 0, n_active = 0;
  for (uint32_t y = 0; y < b->n; y++) {
    if (b->at[y].bytes == 0 || b->at[y].n_ends == 0) continue;
    const uint32_t *entry = b->entry + (size_t)y * b->n_streams, *floor = floors + (size_t)y * b->n_streams;
    if (room - n < n_active) {
      size_t want = room + room / 2 + n_active + 256;
      pair *more = heddle__grow(*out, room, want, sizeof **out);
      if (more == NULL) return false;
      *out = more;
      room = want;
    }
    size_t kept = 0;
    for (size_t i = 0; i < n_active; i++) {
      uint32_t x = active[i];
      bool keep = false, conflict = false;
      for (uint32_t k = b->at[x].ends; k < b->at[x].ends + b->at[x].n_ends; k++) {
        keep = keep || b->ends[k].seq > floor[b->ends[k].stream];
        conflict = conflict || b->ends[k].seq > entry[b->ends[k].stream];
      }
      if (keep) active[kept++] = x;
      if (conflict) (*out)[n++] = (pair){x, y};
    }
    active[kept++] = y;
    n_active = kept;
    if (n > MAX_PAIRS) return true;
  }
  *n_out = n;
  *listed = true;
  return true;
}

/* Turns pairs into lists by block. */
static bool list_edges(heddle__blocks *b, const pair *pairs, size_t n) {
  b->edge_first = heddle__alloc((size_t)b->n + 2, sizeof *b->edge_first);
  b->edges = heddle__alloc(n * 2, sizeof *b->edges);
  if (b->edge_first == NULL || b->edges == NULL) return false;
  uint32_t *next = b->edge_first + 1; /* while filling, next[i] is where the next one of block i goes */
  for (size_t k = 0; k < n; k++) {
    next[pairs[k].a + 1]++;
    next[pairs[k].b + 1]++;
  }
  for (uint32_t i = 0; i < b->n; i++) next[i + 1] += next[i];
  for (size_t k = 0; k < n; k++) {
    b->edges[next[pairs[k].a]++] = pairs[k].b;
    b->edges[next[pairs[k].b]++] = pairs[k].a;
  }
  return true;
}

static bool find_conflicts(heddle__blocks *b) {
  size_t width = b->n_streams;
  uint32_t *floors = heddle__alloc((size_t)b->n * width, sizeof *floors);
  uint32_t *active = heddle__alloc(b->n, sizeof *active);
  pair *pairs = NULL;
  size_t n = 0;
  bool listed = false, ok = floors != NULL && active != NULL;
  for (size_t i = ok ? (size_t)b->n * width : 0; i-- > 0;) {
    floors[i] = b->entry[i];
    if (i + width < (size_t)b->n * width && floors[i + width] < floors[i]) floors[i] = floors[i + width];
  }
  ok = ok && list_pairs(b, floors, active, &pairs, &n, &listed);
  if (ok && listed) ok = list_edges(b, pairs, n);
  heddle__free(pairs);
  heddle__free(active);
  heddle__free(floors);
  return ok;
}

/* The blocks' first instances, in the order in which the list of steps first touches them. */
static bool number(heddle__blocks *b, const heddle__plan *plan, const heddle__uses *uses, uint32_t space) {
  heddle__keyed *order = heddle__alloc(b->n, sizeof *order);
  if (order == NULL) return false;
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    if (!is_placed(plan, uses, i, space, b->joined)) continue;
    bool used = uses->first[i] < uses->first[i + 1];
    order[n++] = (heddle__keyed){used ? uses->steps[uses->first[i]] : UINT64_MAX, i};
  }
  heddle__keyed_sort(order, n);
  for (uint32_t k = 0; k < n; k++) b->at[k].instance = (uint32_t)order[k].value;
  heddle__free(order);
  return true;
}

heddle_status heddle__blocks_init(heddle__blocks *b, const heddle__plan *plan, const heddle__uses *uses, uint32_t space,
                                  bool joined, heddle_error *err) {
  *b = (heddle__blocks){.n_streams = plan->n_streams, .joined = joined, .apart = plan->req.no_reuse};
  for (uint32_t i = 0; i < plan->n_instances; i++)
    if (is_placed(plan, uses, i, space, joined)) b->n++;
  b->at = heddle__alloc(b->n, sizeof *b->at);
  b->ends = heddle__alloc(uses->first[plan->n_instances], sizeof *b->ends);
  b->entry = heddle__alloc((size_t)b->n * b->n_streams, sizeof *b->entry);
  uint32_t *seqs = heddle__alloc(b->n_streams, sizeof *seqs);
  bool ok = b->at != NULL && b->ends != NULL && b->entry != NULL && seqs != NULL && number(b, plan, uses, space);
  for (uint32_t k = 0; ok && k < b->n; k++) gather(b, k, plan, uses, seqs);
  heddle_status s = ok ? weigh(b, plan, space, err) : heddle__no_memory(err, "the blocks of a plan's memory");
  if (s == HEDDLE_OK && !b->apart && !find_conflicts(b)) s = heddle__no_memory(err, "the conflicts of a plan's memory");
  heddle__free(seqs);
  if (s != HEDDLE_OK) heddle__blocks_finish(b);
  return s;
}

void heddle__blocks_finish(heddle__blocks *b) {
  heddle__free(b->at);
  heddle__free(b->ends);
  heddle__free(b->entry);
  heddle__free(b->edge_first);
  heddle__free(b->edges);
  *b = (heddle__blocks){0};
}
