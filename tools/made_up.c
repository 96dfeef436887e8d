/* tools/made_up.c: values for inputs that were not given, from a generator of fixed seeds. */
#include "made_up.h"

#include <string.h>

static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* A number of [-1, 1) in the upper bits of a float32, which is what half precision and bfloat16 are cut from. */
static void random_float(uint64_t *state, uint32_t bits, bool brain, unsigned char *out) {
  double wide = (double)(next_random(state) >> 11) / 4503599627370496.0 - 1;
  float single = (float)wide;
  uint32_t word;
  memcpy(&word, &single, sizeof word);
  if (bits == 64) memcpy(out, &wide, sizeof wide);
  else if (bits == 32) memcpy(out, &single, sizeof single);
  else if (bits == 16) {
    uint16_t half = (uint16_t)(word >> 16);
    if (!brain) {
      int exponent = (int)(word >> 23 & 255) - 112;
      half = (uint16_t)((word >> 16 & 0x8000) | (exponent > 0 ? (uint32_t)exponent << 10 | (word >> 13 & 1023) : 0));
    }
    memcpy(out, &half, sizeof half);
  }
}

bool made_up_fill(heddle_tensor *t, uint64_t seed) {
  heddle_dtype dtype = heddle_tensor_dtype(t);
  uint64_t state = seed, width = dtype.bits / 8, bytes = heddle_tensor_bytes(t);
  unsigned char *data = heddle_tensor_data(t);
  bool is_float = dtype.code == HEDDLE_DTYPE_FLOAT || dtype.code == HEDDLE_DTYPE_BFLOAT;
  bool is_whole = dtype.code == HEDDLE_DTYPE_INT || dtype.code == HEDDLE_DTYPE_UINT || dtype.code == HEDDLE_DTYPE_BOOL;
  if (dtype.lanes != 1 || dtype.bits % 8 != 0 || width == 0) return false;
  if (!is_whole && !(is_float && (width == 2 || width == 4 || width == 8))) return false;
  for (uint64_t i = 0; i + width <= bytes; i += width) {
    if (is_float) random_float(&state, dtype.bits, dtype.code == HEDDLE_DTYPE_BFLOAT, data + i);
    else data[i] = (unsigned char)(next_random(&state) >> 63); /* little-endian; the rest is zero */
  }
  return true;
}
