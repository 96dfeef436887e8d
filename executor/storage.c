/* executor/storage.c: the pass that gives every instance bytes of an allocation.
 * What lives as long as the model or belongs to the caller gets an allocation of its own; the rest of a space shares
 * outputs that are not written yet, then arenas by offset, or whole buffers where a device's code takes bare handles. */
#include "core/alloc.h"
#include "core/error.h"
#include "executor/plan.h"
#include "executor/storage_arena.h"

#define BOTH_WAYS 400 /* with at most so many blocks, sharing in place is also compared with not sharing */

static uint32_t add_allocation(heddle__plan *plan, heddle__alloc_kind kind, uint32_t space, uint32_t instance,
                               uint64_t bytes, uint64_t align) {
  uint64_t limit = heddle__space_limit(plan, space);
  uint64_t unit = plan->spaces[space].align > 0 ? plan->spaces[space].align : 1;
  bytes = heddle__round_up(bytes, unit);
  if (bytes > limit) bytes = limit; /* what is in it fits without the rounding */
  plan->allocs[plan->n_allocs] =
      (heddle__allocation){.kind = kind, .space = space, .instance = instance, .bytes = bytes, .align = align};
  return plan->n_allocs++;
}

static heddle_status give_own(heddle__plan *plan, heddle_error *err) {
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    heddle__instance *it = &plan->instances[i];
    heddle__alloc_kind kind = HEDDLE__ALLOC_CONSTANT;
    it->alloc = HEDDLE__NONE;
    if (it->role == HEDDLE__ROLE_TEMP || it->role == HEDDLE__ROLE_WORKSPACE) continue;
    if (it->role == HEDDLE__ROLE_INPUT) kind = HEDDLE__ALLOC_INPUT;
    if (it->role == HEDDLE__ROLE_OUTPUT) kind = HEDDLE__ALLOC_OUTPUT;
    const heddle__update *u = heddle__instance_update(plan, i);
    it->offset = 0;
    heddle_status s = heddle__instance_check(plan, i, err);
    if (s != HEDDLE_OK) return s;
    if (u != NULL && u->output == i) continue; /* in its input's */
    const heddle__instance *largest = u != NULL ? &plan->instances[u->output] : it;
    uint64_t align = it->align > largest->align ? it->align : largest->align;
    if (plan->spaces[it->space].align > align) align = plan->spaces[it->space].align;
    it->alloc = add_allocation(plan, kind, it->space, i, largest->bytes, align > 0 ? align : 1);
  }
  for (uint32_t k = 0; k < plan->req.n_ties; k++) {
    const heddle__update *u = &plan->updates[k];
    if (u->step != HEDDLE__NONE) plan->instances[u->output].alloc = plan->instances[u->input].alloc;
  }
  return HEDDLE_OK;
}

/* Which spaces cannot be used by offset: images, all of a device that has no views and runs something that takes bare handles,
 * and those of other devices that this touches. */
static void find_bare(const heddle__plan *plan, bool *bare) {
  for (uint32_t i = 0; i < plan->n_spaces; i++) bare[i] = plan->req.slots || plan->spaces[i].image.width > 0;
  for (uint32_t s = 0; s < plan->n_steps; s++) {
    const heddle__step *step = &plan->steps[s];
    if (step->kind != HEDDLE__STEP_OP) continue;
    const heddle__region *region = &plan->regions[step->region];
    if (region->n_offers == 0 || !(region->offers[region->offer].flags & HEDDLE_OFFER_BARE)) continue;
    if (heddle__device_has_views(plan->devices[region->device].dev)) continue;
    for (uint32_t i = 0; i < plan->n_spaces; i++) bare[i] = bare[i] || plan->spaces[i].device == region->device;
    for (uint32_t k = 0; k < step->n_accesses; k++) bare[plan->instances[step->accesses[k].instance].space] = true;
  }
}

static void give(heddle__plan *plan, const heddle__blocks *blocks, const heddle__uses *uses, uint32_t block,
                 uint32_t alloc, uint64_t offset) {
  for (uint32_t i = blocks->at[block].instance; i != HEDDLE__NONE; i = blocks->joined ? uses->heir[i] : HEDDLE__NONE) {
    plan->instances[i].alloc = alloc;
    plan->instances[i].offset = offset;
  }
}

/* Values between nodes use the bytes of an output of about their size before it is written, from its producer backwards
 * in turns with what is placed later. Only on inline devices, and only where the output's own alignment is enough, as
 * for compiled functions, which want all values aligned alike: memory that the caller binds in place of the output's
 * then serves them too. */
static heddle_status lend_outputs(heddle__plan *plan, const heddle__uses *uses, uint32_t space, heddle_error *err) {
  heddle__blocks b = {0};
  heddle_status s = HEDDLE_OK;
  if (plan->req.no_reuse || !plan->devices[plan->spaces[space].device].is_inline) return HEDDLE_OK;
  for (uint32_t i = 0; s == HEDDLE_OK && i < plan->n_instances; i++) {
    const heddle__instance *out = &plan->instances[i];
    if (out->role != HEDDLE__ROLE_OUTPUT || out->space != space || uses->first[i] == uses->first[i + 1]) continue;
    if (heddle__instance_update(plan, i) != NULL) continue; /* the value of the run before lies there */
    uint64_t align = plan->values[out->value].align;
    if (align < plan->spaces[space].align) continue;
    if (b.at == NULL) s = heddle__blocks_init(&b, plan, uses, space, true, err);
    const uint32_t *written = plan->clock + (size_t)uses->steps[uses->first[i]] * plan->n_streams;
    uint32_t last = HEDDLE__NONE; /* lent; what is over when it begins is over for those before it */
    for (uint32_t k = b.n; s == HEDDLE_OK && k-- > 0;) {
      const heddle__block *block = &b.at[k];
      const heddle__instance *first = &plan->instances[block->instance];
      bool fits = first->alloc == HEDDLE__NONE && block->n_ends > 0 && block->align <= align &&
                  first->bytes <= out->bytes && first->bytes > out->bytes / 2 &&
                  (last == HEDDLE__NONE || !heddle__blocks_conflict(&b, k, last));
      for (uint32_t e = block->ends; fits && e < block->ends + block->n_ends; e++)
        fits = b.ends[e].seq <= written[b.ends[e].stream];
      if (!fits) continue;
      give(plan, &b, uses, k, out->alloc, 0);
      last = k;
    }
  }
  heddle__blocks_finish(&b);
  return s;
}

static heddle_status give_slots(heddle__plan *plan, const heddle__uses *uses, uint32_t space, heddle_error *err) {
  heddle__blocks blocks;
  heddle_status s = heddle__blocks_init(&blocks, plan, uses, space, !plan->req.no_reuse, err);
  if (s != HEDDLE_OK) return s;
  uint32_t *slots = heddle__alloc(blocks.n, sizeof *slots), n = 0, first = plan->n_allocs;
  uint64_t *bytes = heddle__alloc(blocks.n, sizeof *bytes);
  if (slots == NULL || bytes == NULL) s = heddle__no_memory(err, "the slots of a plan's memory");
  else s = heddle__slots_pack(&blocks, slots, bytes, &n, err);
  for (uint32_t k = 0; s == HEDDLE_OK && k < n; k++)
    add_allocation(plan, HEDDLE__ALLOC_SLOT, space, HEDDLE__NONE, bytes[k], blocks.unit);
  for (uint32_t k = 0; s == HEDDLE_OK && k < blocks.n; k++) give(plan, &blocks, uses, k, first + slots[k], 0);
  heddle__free(slots);
  heddle__free(bytes);
  heddle__blocks_finish(&blocks);
  return s;
}

/* Makes the arenas of a packing; those that hold nothing are left out. */
static heddle_status take_packing(heddle__plan *plan, const heddle__blocks *blocks, const heddle__uses *uses,
                                  uint32_t space, const heddle__packing *packing, heddle_error *err) {
  uint64_t n = 1;
  for (uint32_t k = 0; k < blocks->n && packing->stride > 0; k++)
    if (packing->offsets[k] / packing->stride >= n) n = packing->offsets[k] / packing->stride + 1;
  uint64_t *tops = heddle__alloc(n, sizeof *tops);
  uint32_t *allocs = heddle__alloc(n, sizeof *allocs);
  heddle_status s = HEDDLE_OK;
  if (tops == NULL || allocs == NULL) s = heddle__no_memory(err, "the arenas of a plan");
  for (uint32_t k = 0; s == HEDDLE_OK && k < blocks->n; k++) {
    uint64_t arena = packing->stride > 0 ? packing->offsets[k] / packing->stride : 0;
    uint64_t top = packing->offsets[k] - arena * packing->stride + blocks->at[k].bytes;
    if (top > tops[arena]) tops[arena] = top;
  }
  for (uint64_t k = 0; s == HEDDLE_OK && k < n; k++)
    if (k == 0 || tops[k] > 0)
      allocs[k] = add_allocation(plan, HEDDLE__ALLOC_ARENA, space, HEDDLE__NONE, tops[k], blocks->unit);
  for (uint32_t k = 0; s == HEDDLE_OK && k < blocks->n; k++) {
    uint64_t arena = packing->stride > 0 ? packing->offsets[k] / packing->stride : 0;
    give(plan, blocks, uses, k, allocs[arena], packing->offsets[k] - arena * packing->stride);
  }
  heddle__free(tops);
  heddle__free(allocs);
  return s;
}

/* Joining blocks in place nearly always saves bytes, but a joined block is longer and can be in the way of others. */
static heddle_status give_arena(heddle__plan *plan, const heddle__uses *uses, uint32_t space, heddle_error *err) {
  heddle__blocks joined, alone = {0};
  heddle__packing best = {0}, other = {0};
  uint64_t limit = heddle__space_limit(plan, space);
  heddle_status s = heddle__blocks_init(&joined, plan, uses, space, !plan->req.no_reuse, err);
  if (s == HEDDLE_OK && joined.n > 0) {
    uint32_t heirs = 0;
    for (uint32_t k = 0; k < joined.n; k++) heirs += uses->heir[joined.at[k].instance] != HEDDLE__NONE;
    s = heddle__arena_pack(&joined, limit, UINT64_MAX, &best, err);
    bool compare = heirs > 0 && joined.n <= BOTH_WAYS;
    if (s == HEDDLE_OK && compare) s = heddle__blocks_init(&alone, plan, uses, space, false, err);
    if (s == HEDDLE_OK && compare) s = heddle__arena_pack(&alone, limit, best.bytes, &other, err);
    bool take_other = compare && other.bytes < best.bytes;
    if (s == HEDDLE_OK)
      s = take_packing(plan, take_other ? &alone : &joined, uses, space, take_other ? &other : &best, err);
  }
  heddle__free(best.offsets);
  heddle__free(other.offsets);
  heddle__blocks_finish(&alone);
  heddle__blocks_finish(&joined);
  return s;
}

static bool is_shared(const heddle__plan *plan, uint32_t space) {
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    heddle__role role = plan->instances[i].role;
    if (plan->instances[i].space == space && (role == HEDDLE__ROLE_TEMP || role == HEDDLE__ROLE_WORKSPACE)) return true;
  }
  return false;
}

heddle_status heddle__pass_storage(heddle__plan *plan, heddle_error *err) {
  heddle__uses uses = {0};
  plan->n_allocs = 0;
  plan->allocs = heddle__plan_alloc(plan, plan->n_instances, sizeof *plan->allocs);
  bool *bare = heddle__alloc(plan->n_spaces, sizeof *bare);
  heddle_status s = HEDDLE_OK;
  if (plan->allocs == NULL || bare == NULL) s = heddle__no_memory(err, "the allocations of a plan");
  if (s == HEDDLE_OK) s = heddle__uses_init(&uses, plan, err);
  if (s == HEDDLE_OK) s = heddle__find_updates(plan, &uses, err);
  if (s == HEDDLE_OK) s = give_own(plan, err);
  if (s == HEDDLE_OK) find_bare(plan, bare);
  for (uint32_t i = 0; s == HEDDLE_OK && i < plan->n_spaces; i++) {
    if (!is_shared(plan, i)) continue;
    s = lend_outputs(plan, &uses, i, err);
    if (s == HEDDLE_OK) s = bare[i] ? give_slots(plan, &uses, i, err) : give_arena(plan, &uses, i, err);
  }
  heddle__uses_finish(&uses);
  heddle__free(bare);
  return s;
}
