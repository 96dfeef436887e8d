/* The sum of a row of floats, in an order that depends on its length alone: eight running sums of float32 over blocks
 * of 128, the blocks added in float64. Used by whatever averages or normalises. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_SUM_H
#define HEDDLE_PLUGINS_COMMON_REF_SUM_H

#include <stdint.h>

enum { REF_SUM_LANES = 8, REF_SUM_BLOCK = 128 };

static inline double ref_sum_f32(const float *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += REF_SUM_BLOCK) {
    const int64_t end = n - i < REF_SUM_BLOCK ? n : i + REF_SUM_BLOCK;
    float lane[REF_SUM_LANES] = {0};
    int64_t at = i;
    for (; at + REF_SUM_LANES <= end; at += REF_SUM_LANES) {
      for (int j = 0; j < REF_SUM_LANES; j++) lane[j] += x[at + j];
    }
    for (int j = 0; at < end; at++, j++) lane[j] += x[at];
    sum += ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  }
  return sum;
}

#endif
