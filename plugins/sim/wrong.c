/* A kernel that computes wrongly on purpose, by the setting "wrong": one element of an operator's result is off by more
 * than rounding explains, and by less than can be seen. heddle compare has to find it. */
#include "ops.h"

#include <string.h>

void sim_wrong_plant(const sim_settings *settings, const heddle_pregion *region, sim_step *step) {
  const heddle_pnode *node = region_node(region, 0);
  const heddle_pvalue *out = region->n_outputs > 0 ? region_value(region, region->outputs[0]) : NULL;
  uint64_t n = 0;
  step->wrong = (sim_wrong){0};
  if (settings->wrong_op[0] == '\0' || node->op == NULL || strcmp(node->op, settings->wrong_op) != 0) return;
  if (out == NULL || out->dtype.lanes != 1 || region_dtype_bytes(out->dtype) == 0 || !region_value_count(out, &n) ||
      n == 0)
    return;
  step->wrong = (sim_wrong){n, settings->wrong_at < n ? settings->wrong_at : n - 1, out->dtype};
}

static uint64_t bits_of(const uint8_t *p, uint64_t width) {
  uint64_t bits = 0;
  memcpy(&bits, p, width); /* little-endian */
  return bits;
}

/* Magnitudes of floats are ordered as their bits are. An element that is no less than 1/16 of the largest finite one
 * (1/8 for 16 bits) changes by 1/256 of itself (1/16) or more; a smaller one becomes 1/8 of the largest (1/4). */
static uint64_t wrong_float(const sim_wrong *w, const uint8_t *data, uint64_t width, uint64_t bits) {
  const uint32_t fraction = width == 8 ? 52 : width == 4 ? 23 : w->dtype.code == HEDDLE_DTYPE_BFLOAT ? 7 : 10;
  const uint32_t near = width == 2 ? 3 : 4, changed = width == 2 ? 4 : 8;
  const uint64_t sign = UINT64_C(1) << (width * 8 - 1), infinity = (sign - 1) >> fraction << fraction;
  uint64_t largest = 0, size = bits & (sign - 1);
  for (uint64_t i = 0; i < w->elements; i++) {
    uint64_t other = bits_of(data + i * width, width) & (sign - 1);
    if (other < infinity && other > largest) largest = other;
  }
  const uint64_t step = (uint64_t)near << fraction;
  if (largest < step * 2) return (infinity >> (fraction + 1)) << fraction; /* nothing but zeros: 1 */
  if (size >= infinity || size < largest - step) return (bits & sign) | (largest - step + (UINT64_C(1) << fraction));
  return bits ^ UINT64_C(1) << (fraction - changed);
}

void sim_wrong_apply(const sim_step *step, void *result) {
  const sim_wrong *w = &step->wrong;
  const uint64_t width = region_dtype_bytes(w->dtype);
  uint8_t *element = (uint8_t *)result + w->at * width;
  uint64_t bits = bits_of(element, width);
  const bool is_float = w->dtype.code == HEDDLE_DTYPE_FLOAT || w->dtype.code == HEDDLE_DTYPE_BFLOAT;
  if (w->dtype.code == HEDDLE_DTYPE_BOOL) bits = bits == 0;
  else if (is_float && width >= 2) bits = wrong_float(w, result, width, bits);
  else bits += 2;
  memcpy(element, &bits, width);
}
