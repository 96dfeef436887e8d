/* executor/sides.c: a program bound twice, for inputs and outputs that change places after each run (state values).
 * Streams, events and fences are there once; memory, handles, launches and recordings are those of a side. */
#include "executor/bind.h"

#include "core/alloc.h"
#include "core/error.h"

/* The side that runs becomes the other one. */
static void flip(heddle__bound *b) {
  heddle__side *o = b->other;
  const heddle__side here = {.memory = b->memory,
                             .imports = b->imports,
                             .parts = b->parts,
                             .n_parts = b->n_parts,
                             .cap_parts = b->cap_parts,
                             .actions = b->actions,
                             .launches = b->launches,
                             .stretches = b->stretches,
                             .n_recorded = b->n_recorded,
                             .adapted = b->adapted,
                             .stale = b->stale};
  b->memory = o->memory;
  b->imports = o->imports;
  b->parts = o->parts;
  b->n_parts = o->n_parts;
  b->cap_parts = o->cap_parts;
  b->actions = o->actions;
  b->launches = o->launches;
  b->stretches = o->stretches;
  b->n_recorded = o->n_recorded;
  b->adapted = o->adapted;
  b->stale = o->stale;
  *o = here;
}

void heddle__side_unbind(heddle__bound *b) {
  for (uint32_t i = 0; b->stretches != NULL && i < b->program->n_segments; i++) heddle__stretch_unbind(b, i);
  for (uint32_t i = 0; b->imports != NULL && i < b->program->plan->n_allocs; i++) heddle__bound_drop_derived(b, i);
}

void heddle__side_free(heddle__bound *b) {
  for (uint32_t i = 0; b->memory != NULL && i < b->program->plan->n_allocs; i++) heddle__memory_release(b->memory[i]);
  heddle__free(b->memory);
  heddle__free(b->imports);
  heddle__free(b->parts);
  heddle__free(b->actions);
  heddle__free(b->launches);
  heddle__free(b->stretches);
}

void heddle__bound_drop_other(heddle__bound *b) {
  if (b->other == NULL) return;
  flip(b);
  heddle__side_unbind(b);
  heddle__side_free(b);
  flip(b);
  heddle__free(b->other);
  b->other = NULL;
}

static heddle_status make_other(heddle__bound *b, heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  const uint32_t n_segments = b->program->n_segments;
  heddle__side side = {.memory = heddle__alloc(plan->n_allocs, sizeof *side.memory),
                       .imports = heddle__alloc((size_t)plan->n_allocs * plan->n_devices, sizeof *side.imports),
                       .actions = heddle__alloc(plan->n_steps, sizeof *side.actions),
                       .launches = heddle__alloc(plan->n_steps, sizeof *side.launches),
                       .stretches = heddle__alloc(n_segments, sizeof *side.stretches),
                       .adapted = b->retargets,
                       .stale = true};
  heddle__side *other = heddle__alloc(1, sizeof *other);
  if (other == NULL || side.memory == NULL || side.imports == NULL || side.actions == NULL || side.launches == NULL ||
      side.stretches == NULL) {
    heddle__free(other);
    heddle__free(side.memory);
    heddle__free(side.imports);
    heddle__free(side.actions);
    heddle__free(side.launches);
    heddle__free(side.stretches);
    return heddle__no_memory(err, "the memory of an executor");
  }
  for (uint32_t i = 0; i < plan->n_allocs; i++) side.memory[i] = heddle__memory_retain(b->memory[i]);
  for (uint32_t i = 0; i < n_segments; i++) side.stretches[i].stale = true;
  *other = side;
  b->other = other;
  return HEDDLE_OK;
}

heddle_status heddle__bound_turn(heddle__bound *b, heddle_error *err) {
  heddle_status s = b->other == NULL ? make_other(b, err) : HEDDLE_OK;
  if (s == HEDDLE_OK) flip(b);
  return s;
}
