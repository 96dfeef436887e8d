/* executor/prove_shadow.h: what prove remembers of each byte: who wrote it last, who read it since, and what it holds.
 * Private to prove. Bytes with one history are kept as one span; marks on a span are the steps that touched it. */
#ifndef HEDDLE_EXECUTOR_PROVE_SHADOW_H
#define HEDDLE_EXECUTOR_PROVE_SHADOW_H

#include "executor/prove.h"

#define HEDDLE__NO_MARK UINT32_MAX
#define HEDDLE__INITIAL UINT32_MAX /* the run of contents that were there before the first */

/* A step that touched a span, by its tick: its number over all runs, plus 1. */
typedef struct heddle__mark {
  uint32_t stream;
  uint32_t tick;
  uint32_t next;
  bool valued; /* it read a value there, rather than a workspace */
} heddle__mark;

/* Bytes from one rank (the index of the span) to another. A rank numbers the distinct ends of the ranges of a plan,
 * allocation by allocation, so equal ranks are equal bytes of equal allocations. All of that is there n_sets times, one
 * after another, of which an allocation uses as many as it has sets. */
typedef struct heddle__span {
  uint32_t end;
  uint32_t write_stream;
  uint32_t write_tick; /* 0: no step has written here */
  uint32_t value;      /* HEDDLE__NO_VALUE: nothing that may be read */
  uint32_t run;        /* that computed value, or HEDDLE__INITIAL */
  uint32_t base;       /* rank of the value's first byte */
  uint32_t readers;    /* marks of reads since the write: the last of each stream that has no later one after it */
  uint32_t syncs;      /* marks of releases or acquires since the write that let the other side see it */
} heddle__span;

/* [first, end) in ranks; both 0 for a range without bytes. */
typedef struct heddle__ranks {
  uint32_t first;
  uint32_t end;
} heddle__ranks;

typedef struct heddle__shadow {
  heddle__ranks *initial;  /* one for each of proof->initial */
  heddle__ranks *accesses; /* one an access, in the order of the steps */
  uint64_t *offsets;       /* by rank, within its allocation */
  uint32_t n_ranks;        /* of one set */
  uint32_t n_sets;
  heddle__span *spans; /* by rank; those whose bit is set are spans, and they cover all ranks */
  uint64_t *starts[6]; /* bits of the ranks where spans start; a bit of level n + 1 is a word of level n not zero */
  uint32_t n_levels;
  heddle__mark *marks;
  uint32_t n_marks, free_mark;
} heddle__shadow;

/* Numbers the ends of all ranges, which the caller has checked, and makes one empty span of each allocation. The
 * initial contents are put in. HEDDLE_ENOMEM leaves what shadow_finish frees. n_accesses is their sum over all steps.
 * Time and memory: linear in ranges. */
heddle_status heddle__shadow_init(heddle__shadow *shadow, const heddle__proof *proof, uint32_t n_accesses,
                                  heddle_error *err);
void heddle__shadow_finish(heddle__shadow *shadow);

/* Makes spans start at range.first and at range.end, so that they cover it exactly; false when memory is out. */
bool heddle__shadow_cut(heddle__shadow *shadow, heddle__ranks range);

/* Makes one span of a range that was cut, with this content and without marks or a write. */
heddle__span *heddle__shadow_replace(heddle__shadow *shadow, heddle__ranks range, uint32_t value, uint32_t run);

/* Puts a mark into a list; false when memory is out. */
bool heddle__shadow_mark(heddle__shadow *shadow, uint32_t *list, uint32_t stream, uint32_t tick, bool valued);

/* Takes out the mark that *link leads to. */
void heddle__shadow_unmark(heddle__shadow *shadow, uint32_t *link);

#endif
