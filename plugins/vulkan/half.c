/* The calls of half.h. */
#include "half.h"

#include "plugins/common/float16.h"
#include "plugins/common/region.h"

/* What float16 holds: magnitudes, as the bits of a float32, up to 65504, and from 2^-14 on with all digits. */
#define LARGEST UINT32_C(0x477fe000)
#define LEAST UINT32_C(0x38800000)

static uint32_t bits_at(const void *floats, uint64_t i) {
  uint32_t bits;
  memcpy(&bits, (const char *)floats + i * sizeof bits, sizeof bits);
  return bits;
}

/* Infinities and NaN are too large, and weights that are all small would lose what they are. */
static bool fits(const void *floats, uint64_t count) {
  uint32_t most = 0;
  for (uint64_t i = 0; i < count; i++) {
    const uint32_t magnitude = bits_at(floats, i) & 0x7fffffffU;
    most = magnitude > most ? magnitude : most;
  }
  return most == 0 || (most >= LEAST && most <= LARGEST);
}

/* Is the input read in one place, which takes it? */
static bool taken(const vlk_info *info, const k_plan *plan, uint32_t input) {
  uint32_t uses = 0, takes = 0;
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const k_step *step = &plan->steps[i];
    for (uint32_t k = 0; k < step->n_args; k++) {
      if (step->args[k] != input) continue;
      uses++;
      takes += vlk_takes_half(info, step, k);
    }
  }
  return uses == 1 && takes == 1;
}

vlk_half vlk_half_choose(const vlk_info *info, const heddle_pregion *region, k_plan *plan) {
  vlk_half half = {.input = VLK_NO_INPUT};
  if ((region->flags & HEDDLE_REGION_FAST) == 0 || !info->storage16) return half;
  for (uint32_t i = 0; i < region->n_inputs; i++) {
    const heddle_pvalue *value = region_value(region, region->inputs[i]);
    uint64_t count = 0;
    if (value == NULL || value->data == NULL || !region_value_count(value, &count) || count == 0) continue;
    if (value->data_bytes / sizeof(float) < count || !taken(info, plan, i) || !fits(value->data, count)) continue;
    plan->input_flags[i] |= HEDDLE_INPUT_ABSORBED;
    half.input = i;
    half.bytes = (count + 1) / 2 * sizeof(uint32_t);
    return half;
  }
  return half;
}

void vlk_half_write(const vlk_half *half, const heddle_pregion *region, void *to) {
  if (half->input == VLK_NO_INPUT) return;
  const heddle_pvalue *value = region_value(region, region->inputs[half->input]);
  uint16_t *out = to;
  uint64_t count = 0;
  region_value_count(value, &count);
  for (uint64_t i = 0; i < count; i++) {
    float x;
    memcpy(&x, (const char *)value->data + i * sizeof x, sizeof x);
    out[i] = float16_from_float(x);
  }
}

uint32_t vlk_half_args(const vlk_half *half, const k_step *step) {
  uint32_t args = 0;
  for (uint32_t k = 0; k < step->n_args; k++) args |= (uint32_t)(step->args[k] == half->input) << k;
  return args;
}
