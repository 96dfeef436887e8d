/* executor/ranks/group.h: the begin and the end of a context's ranks; between group.c and context.c of this room. */
#ifndef HEDDLE_EXECUTOR_RANKS_GROUP_H
#define HEDDLE_EXECUTOR_RANKS_GROUP_H

#include "executor/ranks/ranks.h"

/* comm is set. Then the ranks may agree, and then be watched. */
heddle_status heddle__ranks_begin(heddle__ranks *r, heddle_error *err);
heddle_status heddle__ranks_watch(heddle__ranks *r, heddle_error *err);
void heddle__ranks_end(heddle__attachment *self);

#endif
