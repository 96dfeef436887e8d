/* tools/numbers.h: elements of host tensors as numbers, whatever their dtype. */
#ifndef HEDDLE_TOOLS_NUMBERS_H
#define HEDDLE_TOOLS_NUMBERS_H

#include <stdbool.h>

#include "heddle/heddle.h"

/* Whether elements of a dtype are read here: floats of 16, 32 and 64 bits, bfloat16, whole numbers, truths. */
bool numbers_known(heddle_dtype dtype);
bool numbers_are_floats(heddle_dtype dtype); /* of those */

/* Element i of a row-major tensor of the host whose dtype is known; integers above 2^53 are rounded. */
double number_at(const heddle_tensor *t, uint64_t i);
uint64_t numbers_count(const heddle_tensor *t);

/* All elements, freed by the caller; NULL: memory is out. */
double *numbers_of(const heddle_tensor *t);

#endif
