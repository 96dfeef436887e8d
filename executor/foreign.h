/* executor/foreign.h: functions of a compiled library in a plan: which devices they run on, what they are asked, who
 * prepares and runs them. */
#ifndef HEDDLE_EXECUTOR_FOREIGN_H
#define HEDDLE_EXECUTOR_FOREIGN_H

#include "executor/ask.h"
#include "executor/model.h"

/* Retains the library and fills foreigns, one per device of the model; what was made is given back by finish, while
 * the model's devices are open and its programs are gone. */
heddle_status heddle__foreign_init(heddle_model *m, heddle_module *library, heddle_error *err);
void heddle__foreign_finish(heddle_model *m);

/* heddle__ask for a node that calls a function: asks the library, not the plugin. HEDDLE_EUNSUPPORTED for a
 * function that is not there, and for a device that it was not compiled for. answer holds the node's region. */
heddle_status heddle__foreign_ask(heddle__plan *plan, const heddle__node *node, uint32_t device, heddle__answer *answer,
                                  heddle_error *err);

/* Gives a region of such a node to the library, and its values the alignment that compiled code takes for granted. */
void heddle__foreign_take(heddle__plan *plan, heddle__region *region);

#endif
