/* generate/passes.h: loops over logits and weights, for the vectors that the processor has. Results do not depend on which. */
#ifndef HEDDLE_GENERATE_PASSES_H
#define HEDDLE_GENERATE_PASSES_H

#include <stddef.h>

/* The greatest; -INFINITY for none. NaN counts as -INFINITY. */
float heddle__pass_greatest(const float *x, size_t n);

/* e^((x - best) * rate), where x - best is at most 0: the weight of a token against the best one's, which is 1. 0 for what is
 * below least, and for -INFINITY and NaN. */
void heddle__pass_weigh(const float *x, size_t n, float best, float rate, float least, float *out);

/* The sum of weights that are at least so much; of all with least 0. */
double heddle__pass_sum(const float *x, size_t n, float least);

#endif
