/* tools/made_up.h: values for inputs that were not given. */
#ifndef HEDDLE_TOOLS_MADE_UP_H
#define HEDDLE_TOOLS_MADE_UP_H

#include <stdbool.h>

#include "heddle/heddle.h"

/* Fills a tensor of the host: floats in [-1, 1), whole numbers and truths 0 or 1; the same for the same seed, in every
 * run. false: no values of such a dtype are made up. */
bool made_up_fill(heddle_tensor *t, uint64_t seed);

#endif
