/* executor/storage_blocks.h: what storage places: blocks of bytes with the steps that touch them, and which two may not
 * share bytes. Private to storage. A block is one instance, or a row of instances that take over each other's bytes in
 * place. Nothing here knows offsets. */
#ifndef HEDDLE_EXECUTOR_STORAGE_BLOCKS_H
#define HEDDLE_EXECUTOR_STORAGE_BLOCKS_H

#include "executor/plan.h"

/* Which steps touch an instance, and who takes over whose bytes. */
typedef struct heddle__uses {
  uint32_t *first; /* n_instances + 1: where the steps of each begin */
  uint32_t *steps; /* in list order, each once */
  uint32_t *heir;  /* the instance that a step writes over this one, or HEDDLE__NONE */
  bool *inherits;  /* it is the heir of another */
} heddle__uses;

/* Reads the accesses of all steps, and chooses who inherits: an output takes its input's bytes where the offer allows
 * it, both are TEMP, of one space and one size, and every other use of the input happens before the step. With
 * no_reuse no value inherits. HEDDLE_ENOMEM leaves what uses_finish frees. */
heddle_status heddle__uses_init(heddle__uses *uses, const heddle__plan *plan, heddle_error *err);
void heddle__uses_finish(heddle__uses *uses);

/* Whether step a has finished before step b starts. */
static inline bool heddle__step_before(const heddle__plan *plan, uint32_t a, uint32_t b) {
  return plan->clock[(size_t)b * plan->n_streams + plan->steps[a].stream] >= plan->steps[a].seq;
}

/* storage_updates.c: fills plan->updates, the instances of all state values, and which of them are one piece of memory. */
heddle_status heddle__find_updates(heddle__plan *plan, const heddle__uses *uses, heddle_error *err);

/* The last step of a stream that touches a block, by its number there. */
typedef struct heddle__end {
  uint32_t stream;
  uint32_t seq;
} heddle__end;

typedef struct heddle__block {
  uint64_t bytes; /* rounded up to the space's align, but not over the limit */
  uint64_t align;
  uint32_t instance;    /* the first one; the others follow through uses.heir where the blocks are joined */
  uint32_t first, last; /* positions in the list of steps; first > last where no step touches it */
  uint32_t ends, n_ends;
} heddle__block;

/* The TEMP and WORKSPACE instances of one space. Blocks are numbered in the order in which the list of steps first
 * touches them. */
typedef struct heddle__blocks {
  heddle__block *at;
  heddle__end *ends;
  uint32_t *entry;      /* n rows of n_streams: how many steps of each stream have finished before any of its steps */
  uint32_t *edge_first; /* n + 1: where the conflicts of each block begin */
  uint32_t *edges;      /* both ways; NULL where there are too many to keep: ask heddle__blocks_conflict then */
  uint32_t n, n_streams;
  uint64_t sum;  /* of all bytes, with room to align each */
  uint64_t unit; /* a multiple of the align of every block */
  bool joined;   /* heirs are part of the block that they inherit */
  bool apart;    /* no_reuse: any two conflict */
} heddle__blocks;

/* The blocks of a space; limit is the largest buffer there. HEDDLE_ELIMIT for a block that is larger, with its name, or
 * for sizes that no memory has. HEDDLE_ENOMEM. On failure there is nothing to finish. Time: steps, plus conflicts, plus
 * those pairs that conflicts of later blocks do not let it forget. */
heddle_status heddle__blocks_init(heddle__blocks *blocks, const heddle__plan *plan, const heddle__uses *uses,
                                  uint32_t space, bool joined, heddle_error *err);
void heddle__blocks_finish(heddle__blocks *blocks);

/* True unless all steps that touch one happen before all that touch the other. */
bool heddle__blocks_conflict(const heddle__blocks *blocks, uint32_t a, uint32_t b);

/* The largest buffer of a space; UINT64_MAX where there is no limit. */
uint64_t heddle__space_limit(const heddle__plan *plan, uint32_t space);

/* HEDDLE_ELIMIT, with the name of the instance, when it is over the limit of its space. */
heddle_status heddle__instance_check(const heddle__plan *plan, uint32_t instance, heddle_error *err);

/* Sorts by key, then by value. */
typedef struct heddle__keyed {
  uint64_t key;
  uint64_t value;
} heddle__keyed;

void heddle__keyed_sort(heddle__keyed *items, size_t n);

#endif
