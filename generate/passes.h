/* generate/passes.h: loops over a block of logits or weights, for the vectors that the processor has. Results do not depend on
 * which. A block is short: its sums have parts in float32. */
#ifndef HEDDLE_GENERATE_PASSES_H
#define HEDDLE_GENERATE_PASSES_H

#include <stddef.h>
#include <stdint.h>

enum { HEDDLE__BLOCK = 1024, HEDDLE__GROUPS = 16 };

/* The greatest of each group, -INFINITY for none: an element's group is its number mod 16. NaN counts as -INFINITY. */
void heddle__pass_greatest(const float *x, size_t n, float *out);

/* e^((x - best) * rate), where x - best is at most 0: the weight of a token against the best one's, which is 1. 0 for what is
 * below least, and for -INFINITY and NaN. Gives their sum. */
double heddle__pass_weigh(const float *x, size_t n, float best, float rate, float least, float *out);

/* Gives the sum of the elements that are high or more. Appends the numbers of those that are low or more and below high,
 * counted from first; ids has room for 16 more. */
double heddle__pass_split(const float *x, size_t n, float low, float high, uint32_t first, uint32_t *ids,
                          size_t *count);

#endif
