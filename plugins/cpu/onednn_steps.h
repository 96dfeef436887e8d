/* Launches whose number of rows changes: the steps of a ladder (onednn_ladder in onednn_internal.h), one primitive for each
 * rung, run over the rows that there are. Nothing is made when the number changes. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_STEPS_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_STEPS_H

#include "onednn_internal.h"

typedef struct onednn_steps onednn_steps;               /* immutable, for any thread */
typedef struct onednn_steps_launch onednn_steps_launch; /* one thread at a time */

/* Makes the primitives of a plan's ladder; each: bytes of scratch memory that a task has. *out stays NULL where a rung
 * needs more. */
heddle_status onednn_steps_make(onednn *self, const onednn_plan *plan, uint64_t each, onednn_steps **out,
                                heddle_error *err);
void onednn_steps_free(onednn_steps *steps); /* takes NULL */

heddle_status onednn_steps_bind(const onednn_steps *steps, void *workspace, onednn_steps_launch **out,
                                heddle_error *err);
void onednn_steps_launch_free(onednn_steps_launch *launch); /* takes NULL */

/* As onednn_resize and onednn_run; resized once before it runs. */
heddle_status onednn_steps_resize(onednn_steps_launch *launch, const heddle_pregion *region, void *const *inputs,
                                  void *const *outputs, heddle_error *err);
heddle_status onednn_steps_run(onednn_steps_launch *launch, heddle_error *err);

#endif
