/* generate/order.h: the beginning of a list in the order of its values, without a sort of the list. */
#ifndef HEDDLE_GENERATE_ORDER_H
#define HEDDLE_GENERATE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The key of a weight, which is not negative, is its bits: keys are ordered as weights are. */
static inline uint32_t heddle__weight_key(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float heddle__weight_of(uint32_t key) {
  float x;
  memcpy(&x, &key, sizeof x);
  return x;
}

/* The same for all floats but NaN. Both zeros are equal: the sum has the bits of 0. */
static inline uint32_t heddle__key(float x) {
  const uint32_t bits = heddle__weight_key(x + 0.0F);
  return bits ^ (UINT32_C(0x80000000) | (0 - (bits >> 31)));
}

static inline float heddle__key_value(uint32_t key) {
  return heddle__weight_of(key >> 31 ? key ^ UINT32_C(0x80000000) : ~key);
}

/* Keys of low and more, and below high. above: the sum of what is high or more; sum: of the range, where it is known. */
typedef struct heddle__range {
  uint32_t low, high;
  double above, sum;
} heddle__range;

/* Narrows the range to the part in which the sum from the greatest key down reaches the target, or to its last part that is
 * not empty. Each key counts 1, or with weighs what heddle__weight_of gives. Linear in n. */
heddle__range heddle__narrow(const uint32_t *keys, size_t n, bool weighs, heddle__range r, double target);

/* Puts n numbers of elements of x, which rise, into order: greater values first, then lower numbers. spare: room for n. */
void heddle__order(const float *x, uint32_t *ids, size_t n, uint32_t *spare);

#endif
