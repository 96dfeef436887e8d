/* executor/prepared.h: what a model's package has prepared (graph/prepared.h), compared with the devices that are there, and
 * offered to caches while the model lives. */
#ifndef HEDDLE_EXECUTOR_PREPARED_H
#define HEDDLE_EXECUTOR_PREPARED_H

#include "executor/model.h"
#include "graph/prepared.h"

/* Offers what fits; what does not is left aside with its reason in the log. HEDDLE_ENOMEM. */
heddle_status heddle__prepared_open(heddle_model *m, heddle_error *err);
void heddle__prepared_close(heddle_model *m); /* what was found stays as long as the params */

/* The bytes of a file that was prepared for devices like those that are there, compared with their digest; they stay as long
 * as the model's params. Any thread. */
bool heddle__prepared_find(heddle_model *m, const char *name, const void **data, uint64_t *bytes);

#endif
