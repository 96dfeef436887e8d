/* executor/ties.h: which outputs of a model are inputs of the next run: read from the option `state`. */
#ifndef HEDDLE_EXECUTOR_TIES_H
#define HEDDLE_EXECUTOR_TIES_H

#include "executor/model.h"

/* Fills m->ties: text as heddle_model_options.state, NULL: what the graph's file says. HEDDLE_EINVAL names the rule, the
 * input or the output at fault. */
heddle_status heddle__ties_read(heddle_model *m, const char *text, heddle_error *err);

#endif
