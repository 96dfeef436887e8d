/* generate/order.h: the beginning of a list in the order of its values, without a sort of the list. */
#ifndef HEDDLE_GENERATE_ORDER_H
#define HEDDLE_GENERATE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys of floats are ordered as the floats are; those of -INFINITY and NaN do not occur. heddle__weight_key: of what is not
 * negative, whose key is its bits. */
uint32_t heddle__key(float x);
float heddle__key_value(uint32_t key);
uint32_t heddle__weight_key(float x);
float heddle__weight_of(uint32_t key);

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
