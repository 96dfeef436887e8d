/* executor/ranks.h: whether a context is of one rank of several (executor/ranks/). */
#ifndef HEDDLE_EXECUTOR_RANKS_H
#define HEDDLE_EXECUTOR_RANKS_H

#include <stdbool.h>

#include "heddle/ranks.h"

/* It was made by heddle_context_create_ranks; there are several ranks. Any thread. */
bool heddle__context_is_ranked(const heddle_context *ctx);
bool heddle__context_is_cut(const heddle_context *ctx);

#endif
