/* Runs of float16 and bfloat16 to and from float32: as float16.h element by element, with the conversion instructions of
 * the CPU where it has them, except that a NaN gets its quiet bit on the way to float32 too. Arrays do not overlap; halves
 * may lie at any address. */
#ifndef HEDDLE_PLUGINS_COMMON_HALVES_H
#define HEDDLE_PLUGINS_COMMON_HALVES_H

#include <stdbool.h>
#include <stdint.h>

/* brain: bfloat16, else float16. */
void halves_widen(bool brain, const void *in, float *out, uint64_t n);
void halves_narrow(bool brain, const float *in, void *out, uint64_t n);

/* Whether the CPU converts eight at a time: AVX2 and F16C. */
bool halves_by_eight(void);

#endif
