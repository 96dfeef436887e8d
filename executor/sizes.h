/* executor/sizes.h: sizes of a root that an executor writes anew for each shape. What depends on open dimensions is listed
 * once, when a program for a range is bound; then a shape is evaluated along that list in memory that is there already. No
 * plan is made and nothing is allocated. There are two such programs: one runs, the other takes the next shape. */
#ifndef HEDDLE_EXECUTOR_SIZES_H
#define HEDDLE_EXECUTOR_SIZES_H

#include "executor/program.h"
#include "executor/state.h"

typedef struct heddle__sizes heddle__sizes;

/* For the shapes of a wish, which a root covers. *out stays NULL where these shapes cannot be listed: a region that changes
 * with them is prepared for each shape, or a shape depends on a value that is not kept. Blocks. */
heddle_status heddle__sizes_make(heddle_model *m, const heddle__wish *wish, heddle__program *root, heddle__sizes **out,
                                 heddle_error *err);
void heddle__sizes_free(heddle__sizes *sizes); /* takes NULL; nothing is bound for them any more */

/* The program for what an executor has set, with one more reference: the bound one where nothing changed, else the other,
 * written anew. NULL: the model has to be asked, which then also reports what is wrong. Allocates nothing. */
heddle__program *heddle__sizes_take(heddle__sizes *sizes, const heddle_executor *ex);

#endif
