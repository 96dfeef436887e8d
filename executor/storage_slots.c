/* executor/storage_slots.c: gives blocks whole buffers, for devices whose code takes bare handles.
 * A buffer serves one block after another; the largest block that it ever holds decides its size. */
#include "core/alloc.h"
#include "core/error.h"
#include "executor/storage_arena.h"

/* Marks the slots of those that conflict with this block. */
static void mark_taken(const heddle__blocks *b, const uint32_t *slots, uint32_t block, uint32_t *marks) {
  if (b->edges != NULL) {
    for (uint32_t i = b->edge_first[block]; i < b->edge_first[block + 1]; i++)
      if (slots[b->edges[i]] != HEDDLE__NONE) marks[slots[b->edges[i]]] = block + 1;
    return;
  }
  for (uint32_t x = 0; x < b->n; x++)
    if (slots[x] != HEDDLE__NONE && heddle__blocks_conflict(b, block, x)) marks[slots[x]] = block + 1;
}

heddle_status heddle__slots_pack(const heddle__blocks *b, uint32_t *slots, uint64_t *bytes, uint32_t *n_slots,
                                 heddle_error *err) {
  heddle__keyed *order = heddle__alloc(b->n, sizeof *order);
  uint32_t *marks = heddle__alloc(b->n, sizeof *marks);
  heddle_status s = HEDDLE_OK;
  *n_slots = 0;
  if (order == NULL || marks == NULL) s = heddle__no_memory(err, "the slots of a plan's memory");
  for (uint32_t k = 0; s == HEDDLE_OK && k < b->n; k++) {
    order[k] = (heddle__keyed){UINT64_MAX - b->at[k].bytes, k};
    slots[k] = HEDDLE__NONE;
  }
  if (s == HEDDLE_OK) heddle__keyed_sort(order, b->n);
  for (uint32_t i = 0; s == HEDDLE_OK && i < b->n; i++) {
    uint32_t block = (uint32_t)order[i].value, slot = *n_slots;
    mark_taken(b, slots, block, marks);
    while (slot > 0 && marks[slot - 1] == block + 1)
      slot--; /* the last one made is the smallest that is large enough */
    if (slot == 0) bytes[(*n_slots)++] = b->at[block].bytes;
    slots[block] = slot == 0 ? *n_slots - 1 : slot - 1;
  }
  heddle__free(order);
  heddle__free(marks);
  return s;
}
