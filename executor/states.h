/* executor/states.h: state values of an executor: an output of one run that is the input of the next one.
 * Where a program updates a value in place, one piece of memory holds the present value and what the run adds to it; else
 * the value has two, one that the run reads and one that takes what it makes. After a run that succeeded the two views
 * change places; until then no element of the present value is written. */
#ifndef HEDDLE_EXECUTOR_STATES_H
#define HEDDLE_EXECUTOR_STATES_H

#include "core/parts.h"
#include "executor/course.h"

/* Memory for values of different shapes: of a device, or the host's. It counts its users: state values, and tensors that
 * were handed out. With more than one user it is read only. */
typedef struct heddle__store {
  atomic_uint users;
  heddle_tensor *base; /* bytes */
  heddle_device *dev;  /* NULL: host memory, of which address and size are multiples of granule */
  uint64_t granule;
} heddle__store;

/* A value in a store. */
typedef struct heddle__held {
  heddle__store *store; /* NULL: nothing */
  heddle_tensor *view;  /* of its dtype and shape, in the store's memory */
} heddle__held;

typedef struct heddle__state {
  uint32_t arg, output;
  uint32_t axis; /* the open dimension; HEDDLE__NONE: none, or several */
  heddle_dtype dtype;
  bool is_reset;                   /* it is at its beginning; its shape may still depend on other inputs */
  heddle__held now, spare;         /* of one store where the program that was placed last updates it in place */
  int64_t shape[HEDDLE__MAX_NDIM]; /* what state_info points to */
} heddle__state;

struct heddle__states {
  uint32_t n;
  atomic_ullong bytes; /* what their memory takes */
  bool turned;         /* the two pieces changed places since memory was bound */
  bool grown;          /* the present values have other shapes than were planned */
  heddle__state at[];
};

/* For an executor that is no shell; leaves ex->states NULL where the model has none. */
heddle_status heddle__states_make(heddle_executor *ex, heddle_error *err);
void heddle__states_free(heddle_executor *ex);

/* Gives values that were reset their shapes, from what other inputs are now, and all inputs their values. */
heddle_status heddle__states_settle(heddle_executor *ex, heddle_error *err);

/* Brings the values to where a program wants them, and provides memory for what it makes. */
heddle_status heddle__states_place(heddle_executor *ex, const heddle__program *program, heddle_error *err);

/* Binds memory that changed places. Between runs; the program is that of the present values. */
heddle_status heddle__states_turn(heddle_executor *ex, heddle__bound *b, heddle_error *err);

/* At the begin of a run: whether it must be planned anew is in ex->stale afterwards. */
heddle_status heddle__states_begin(heddle_executor *ex, heddle_error *err);

/* A run has succeeded: what it made are the values now. Allocates nothing. */
void heddle__states_advance(heddle_executor *ex);
/* Of a model in stages, before that: copies what the run made for a value, which is as it was until then. */
heddle_status heddle__state_take(heddle_executor *ex, heddle__state *st, const heddle_tensor *made, heddle_error *err);

/* What the memory of the values takes, also while a run is pending. */
uint64_t heddle__states_bytes(const heddle_executor *ex);

/* New memory with a value of zeroes. place: NULL for the host. */
heddle_status heddle__held_make(heddle_device *place, heddle_dtype dtype, uint32_t ndim, const int64_t *shape,
                                bool may_grow, heddle__held *out, heddle_error *err);
void heddle__held_drop(heddle__held *held);

/* The memory of a value as that of an allocation of dev's. */
heddle_status heddle__held_lend(const heddle__held *held, heddle_device *dev, heddle__memory **out, heddle_error *err);

/* Whether an allocation's memory is that of the value. */
static inline bool heddle__held_is_in(const heddle__held *held, const heddle__memory *memory) {
  return memory->lender == held->store->base;
}

/* What an input or output of a program is to lie in; NULL: it is no state value's, or has no bytes. */
const heddle__held *heddle__state_held(const heddle_executor *ex, uint32_t io, bool is_input);

/* Puts a value back to its beginning, and lets go of its memory. */
void heddle__state_forget(heddle_executor *ex, heddle__state *st);

/* Replaces the present value; cannot fail. */
void heddle__state_put(heddle_executor *ex, heddle__state *st, heddle__held value, bool is_reset);

/* state_calls.c: copies a tensor to the value. */
heddle_status heddle__state_write(heddle_executor *ex, heddle__state *st, const heddle_tensor *value,
                                  heddle_error *err);

/* A tensor that shares the present value, and keeps it as it is. */
heddle_status heddle__state_tensor(const heddle__state *st, heddle_tensor **out, heddle_error *err);

/* The state value with that input or output; NULL: it is none. */
#if HEDDLE_HAS_STATE
heddle__state *heddle__state_of_arg(const heddle_executor *ex, uint32_t arg);
heddle__state *heddle__state_of_output(const heddle_executor *ex, uint32_t output);
#else /* known where it is used, so that what writes and reads states falls away */
static inline heddle__state *heddle__state_of_arg(const heddle_executor *ex, uint32_t arg) {
  (void)ex, (void)arg;
  return NULL;
}

static inline heddle__state *heddle__state_of_output(const heddle_executor *ex, uint32_t output) {
  (void)ex, (void)output;
  return NULL;
}
#endif

#endif
