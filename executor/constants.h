/* executor/constants.h: constants where a device wants them: packed in its layout, uploaded once, shared by all
 * programs and executors of a model. */
#ifndef HEDDLE_EXECUTOR_CONSTANTS_H
#define HEDDLE_EXECUTOR_CONSTANTS_H

#include "executor/memory.h"
#include "executor/plan.h"
#include "heddle/model.h"

/* One constant in one place. The model's lock guards next and users. */
typedef struct heddle__packed {
  struct heddle__packed *next;
  uint32_t users; /* programs; in the model's list with 0: kept for the next one */
  uint32_t arg;
  uint32_t kind;
  heddle_device *dev;
  heddle_layout layout;
  uint64_t align;
  heddle__image image;
  heddle__memory *memory;
} heddle__packed;

/* For each ALLOC_CONSTANT of the plan (others stay NULL) the packed constant, filled and visible to the device: one
 * that the model has, or a new one. out has plan->n_allocs members. On failure out holds what had been taken: give it
 * back with heddle__constants_recycle in any case. HEDDLE_ETIMEOUT where uploads take longer than the model's
 * upload_timeout_ns. Any thread; blocks for uploads. */
heddle_status heddle__constants_acquire(heddle_model *m, const heddle__plan *plan, heddle__packed **out,
                                        heddle_error *err);
/* What no program uses any more stays with the model, so that it need not be packed again, but where its memory is
 * limited or its device has failed. */
void heddle__constants_recycle(heddle_model *m, heddle__packed **taken, uint32_t n);
/* Frees the constants that no program uses; false: there were none. Any thread. */
bool heddle__constants_forget(heddle_model *m);

/* Whether a constant's own bytes serve its inline device, so that it takes none; a constant is never written. */
bool heddle__constant_lent(const heddle__plan *plan, const heddle__instance *inst);

/* Bytes and alignment that all host-visible memory of a plan gets, so that every device of it can import it. */
uint64_t heddle__plan_granule(const heddle__plan *plan);

#endif
