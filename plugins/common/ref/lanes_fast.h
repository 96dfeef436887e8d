/* The lanes of float32 that take many instructions, with the widest vectors of the CPU. They are as accurate as the plain
 * loops, whose last bits may differ; an element's bits do not depend on where it lies. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_LANES_FAST_H
#define HEDDLE_PLUGINS_COMMON_REF_LANES_FAST_H

#include "ref_op.h"

#include <stdbool.h>

/* out may be x. */
void ref_fast_sigmoid(float *out, const float *x, int64_t n);
void ref_fast_tanh(float *out, const float *x, int64_t n);

/* What is faster on this CPU than the lanes of an operator of that name; NULL: nothing. */
ref_lanes ref_lanes_faster(const char *op);

#endif
