/* executor/prove.h: is every access of a plan ordered, and does every read see the value it means?
 * A pure function over a flat description, which explain.c also writes as `heddle plan --json`, so that an independent
 * program (tests/oracle) can check the checker. */
#ifndef HEDDLE_EXECUTOR_PROVE_H
#define HEDDLE_EXECUTOR_PROVE_H

#include <stdbool.h>

#include "heddle/status.h"

/* What a step does with a range. RELEASE (flush) makes what the host wrote visible to devices, ACQUIRE (invalidate)
 * what a device wrote visible to the host; both count as reads where races are concerned, are steps of host streams,
 * and matter only on allocations that are not coherent. A step may read and write the same bytes: it reads first. */
typedef enum heddle__access_mode { HEDDLE__READ, HEDDLE__WRITE, HEDDLE__RELEASE, HEDDLE__ACQUIRE } heddle__access_mode;

#define HEDDLE__NO_VALUE UINT32_MAX /* a workspace: written and read within one step, content of no meaning */

/* offset is within the allocation; the range holds the whole value, its first byte at offset. RELEASE and ACQUIRE may
 * cover any range, whatever values are there (value is HEDDLE__NO_VALUE). */
typedef struct heddle__proof_access {
  uint32_t alloc;
  uint32_t value;
  uint64_t offset;
  uint64_t bytes;
  heddle__access_mode mode;
  uint32_t keeps; /* WRITE: 1 + the initial value at the same offset whose elements stay as they are; 0: none */
} heddle__proof_access;

/* Starts after the previous step of its stream and after the steps in waits, which come earlier in the list. */
typedef struct heddle__proof_step {
  uint32_t stream;
  uint32_t n_accesses;
  uint32_t n_waits;
  const heddle__proof_access *accesses;
  const uint32_t *waits;
} heddle__proof_step;

typedef struct heddle__proof_alloc {
  uint64_t bytes;
  bool coherent; /* host and device see each other's writes without RELEASE and ACQUIRE */
  uint32_t sets; /* how many there are of it: run r has number r modulo sets. 0 and 1: one, for all runs */
} heddle__proof_alloc;

/* What lies in memory, in each of its sets, before the first run and is never lost: constants, and inputs, which the
 * caller writes between runs that use the set. Visible to all. A state value that is updated in place becomes another value
 * in each run: until the run has ended it may only be written by accesses that keep it, since a run which fails must leave it
 * as it was, and when the run has ended its bytes hold what it became. Then one run is in flight. */
typedef struct heddle__proof_initial {
  uint32_t alloc;
  uint32_t value;
  uint64_t offset;
  uint64_t bytes;
  uint32_t becomes; /* 1 + the value that each run makes of it in its memory, for the next run; 0: it stays as it is */
} heddle__proof_initial;

/* Steps are in an order in which they could run: each after its waits. One run is all steps, once. Run r starts when
 * run r - in_flight has wholly finished; a stream keeps its order across the runs that use it. in_flight + 1 runs are
 * covered. The last step is the finish of the run: it reads the outputs. A value that a run computes is another one in each run; an
 * initial value is the same in all. */
typedef struct heddle__proof {
  uint32_t n_streams;
  uint32_t n_allocs;
  uint32_t n_values;
  uint32_t n_initial;
  uint32_t n_steps;
  uint32_t in_flight;         /* at least 1 */
  uint32_t stream_sets;       /* of all streams, as those of an allocation */
  const bool *stream_is_host; /* runs on the driving thread; its accesses are the host's, others are the device's */
  const heddle__proof_alloc *allocs;
  const heddle__proof_initial *initial;
  const heddle__proof_step *steps;
} heddle__proof;

/* HEDDLE_OK; HEDDLE_EPLAN with the first fault found, as numbers of steps, streams, values and allocations (the caller
 * adds names): two accesses to overlapping bytes of which one writes that are not ordered; a read that does not see its
 * value whole (never written, overwritten, another value, another run's, not released or not acquired); a range outside
 * its allocation; a wait for a later step. HEDDLE_ENOMEM. Time: linear in steps times streams, and n log n in accesses.
 * Any thread. Two agents are ordered by happens-before as vector clocks give it (Mattern 1989; the per-byte shadow
 * state is the one of DJIT+ and FastTrack). faulty, which may be NULL, gets the number of the step (within one run). */
heddle_status heddle__prove(const heddle__proof *proof, uint32_t *faulty, heddle_error *err);

#endif
