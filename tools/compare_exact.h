/* tools/compare_exact.h: a node computed in float64 on the cpu, with operands of the caller's. */
#ifndef HEDDLE_TOOLS_COMPARE_EXACT_H
#define HEDDLE_TOOLS_COMPARE_EXACT_H

#include "compare_part.h"

/* Computes output k of a node with x[i] in the place of operand i, where that is a float; absent operands are passed
 * over. As much is computed in float64 as the operator takes, but
 * magnitudes of float32, whose sums lose nothing, in that. y has room for n elements; false where the cpu does not
 * compute it, or not with as many elements. */
bool exact_run(const session *s, const whole *w, uint32_t node, uint32_t k, const double *const *x, double *y,
               uint64_t n);

#endif
