/* executor/flight.h: an executor that may have several runs pending. It is a shell around that many lanes, executors of
 * the same model with memory, streams and a drive of their own, which its runs take in turn: run k is in lane k modulo N.
 * One thread at a time, as of any executor; wait, poll and cancel from any. */
#ifndef HEDDLE_EXECUTOR_FLIGHT_H
#define HEDDLE_EXECUTOR_FLIGHT_H

#include "executor/course.h"

/* Of an input: the setting that is the present one, and the lane that it was given to. */
typedef struct heddle__setting {
  uint64_t number; /* 0: never set */
  uint32_t lane;
} heddle__setting;

typedef struct heddle__flight_lane {
  heddle_executor *ex;
  atomic_ullong run; /* the last that was started in it */
  uint64_t *has;     /* per input: the number of the setting that it has */
  uint64_t seen;     /* it has all settings up to this one */
} heddle__flight_lane;

typedef struct heddle__flight {
  uint32_t n, n_args;
  atomic_ullong started, ended; /* runs; those between are pending: no wait has returned their ends yet */
  uint64_t settings;            /* of inputs, so far */
  heddle__setting *latest;      /* per input */
  heddle__flight_lane *lanes;
} heddle__flight;

/* An executor of a model for several runs in flight. *out has one reference, and one on the model. */
heddle_status heddle__flight_make(heddle_model *m, heddle_executor **out, heddle_error *err);

/* The executors whose runs may be pending together with those of a lane, itself among them; NULL: no more. */
heddle_executor *heddle__flight_peer(heddle_executor *lane, uint32_t i);

/* Input arg of a lane was set by the caller; other lanes get the value before their next runs. */
void heddle__flight_note(heddle_executor *lane, uint32_t arg);

#endif
