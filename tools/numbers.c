/* tools/numbers.c: elements of host tensors as numbers. */
#include "numbers.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/float16.h"

bool numbers_are_floats(heddle_dtype d) {
  return (d.code == HEDDLE_DTYPE_FLOAT && (d.bits == 16 || d.bits == 32 || d.bits == 64)) ||
         (d.code == HEDDLE_DTYPE_BFLOAT && d.bits == 16);
}

bool numbers_known(heddle_dtype d) {
  const bool whole = d.code == HEDDLE_DTYPE_INT || d.code == HEDDLE_DTYPE_UINT || d.code == HEDDLE_DTYPE_BOOL;
  const bool bytes = d.bits == 8 || d.bits == 16 || d.bits == 32 || d.bits == 64;
  return d.lanes == 1 && bytes && (whole || numbers_are_floats(d));
}

double number_at(const heddle_tensor *t, uint64_t i) {
  const heddle_dtype d = heddle_tensor_dtype(t);
  const size_t width = d.bits / 8U;
  uint64_t bits = 0;
  float single;
  double wide;
  memcpy(&bits, (const unsigned char *)heddle_tensor_data(t) + i * width, width);
  if (!numbers_are_floats(d))
    return d.code == HEDDLE_DTYPE_INT ? (double)((int64_t)(bits << (64 - d.bits)) >> (64 - d.bits)) : (double)bits;
  if (width == 2)
    return (double)(d.code == HEDDLE_DTYPE_BFLOAT ? bfloat16_to_float((uint16_t)bits)
                                                  : float16_to_float((uint16_t)bits));
  memcpy(&single, &bits, sizeof single);
  memcpy(&wide, &bits, sizeof wide);
  return width == 4 ? (double)single : wide;
}

uint64_t numbers_count(const heddle_tensor *t) {
  const uint64_t width = heddle_tensor_dtype(t).bits / 8U;
  return width > 0 ? heddle_tensor_bytes(t) / width : 0;
}

double *numbers_of(const heddle_tensor *t) {
  const uint64_t n = numbers_count(t);
  double *made = n < SIZE_MAX / sizeof *made ? malloc((size_t)(n + 1) * sizeof *made) : NULL;
  for (uint64_t i = 0; made != NULL && i < n; i++) made[i] = number_at(t, i);
  return made;
}
