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

/* prepared_info.c uses them too. Why nothing of a package is used in a context, which may be NULL: it is damaged, of another
 * version, or others may change the file. And what of a device is not as it was, such as "driver", with both texts; NULL:
 * nothing. */
heddle_status heddle__prepared_check(const heddle_context *ctx, const heddle_params *params, heddle_error *why);
const char *heddle__prepared_differs(const heddle__prepared_device *was, const heddle_device *dev, const char **before,
                                     const char **now);

#endif
