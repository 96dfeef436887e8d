/* executor/flight.h: an executor that may have several runs pending. It is a shell around that many lanes, executors of
 * the same model with memory, streams and a drive of their own, which its runs take in turn: run k is in lane k modulo N.
 * One thread at a time, as of any executor; wait, poll and cancel from any. */
#ifndef HEDDLE_EXECUTOR_FLIGHT_H
#define HEDDLE_EXECUTOR_FLIGHT_H

#include "executor/state.h"

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

/* Cancels what is pending, and frees the lanes. The executor is nobody's any more. */
void heddle__flight_free(heddle_executor *ex);

/* What a call wants a lane for. */
typedef enum heddle__lane_use {
  HEDDLE__LANE_SET,   /* what is set is for the run started next; HEDDLE_EBUSY where all lanes have pending runs */
  HEDDLE__LANE_START, /* that lane, with the present value of each input */
  HEDDLE__LANE_ALONE, /* likewise; HEDDLE_EBUSY while any run is pending */
  HEDDLE__LANE_INFO,  /* that lane, pending or not */
  HEDDLE__LANE_OLDEST,
  HEDDLE__LANE_SHOWN /* the last run whose end was told; HEDDLE_EBUSY where a later one has its memory */
} heddle__lane_use;

/* With heddle__lane_for below: puts the lane in the place of *ex. One that is dead is given whatever is wanted: its
 * check has the words. */
heddle_status heddle__flight_choose(heddle_executor **ex, heddle__lane_use use, heddle_error *err);

/* An executor without lanes, and NULL, stay as they are. */
static inline heddle_status heddle__lane_for(heddle_executor **ex, heddle__lane_use use, heddle_error *err) {
  return *ex == NULL || (*ex)->flight == NULL ? HEDDLE_OK : heddle__flight_choose(ex, use, err);
}

/* The lane that was given the present value of an input; of an executor without lanes, itself. */
heddle_executor *heddle__flight_setter(const heddle_executor *ex, uint32_t arg);

/* The executors whose runs may be pending together with those of a lane, itself among them; NULL: no more. */
heddle_executor *heddle__flight_peer(heddle_executor *lane, uint32_t i);

/* Input arg of a lane was set by the caller; other lanes get the value before their next runs. */
void heddle__flight_note(heddle_executor *lane, uint32_t arg);

/* The run in the lane that was chosen has begun: gives its number. over: its end has been told. flight may be NULL. */
uint64_t heddle__flight_begun(heddle__flight *flight);
void heddle__flight_over(heddle__flight *flight, uint64_t run);

/* Waits for the oldest pending run; without one, gives the last result. HEDDLE_ETIMEOUT leaves it pending. Any thread. */
heddle_status heddle__flight_wait(heddle__flight *flight, uint64_t deadline_ns, heddle_error *err);

#endif
