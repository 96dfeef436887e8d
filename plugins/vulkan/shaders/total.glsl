// Sums that carry what rounding took from them (Kahan's), as in plugins/common/kernels/prelude.cl.

// Elements that are added apart before they go into a total, and that a turn of a loop takes: lavapipe ends all loops of an
// item after 65,535 turns in all.
#define BLOCK 4

struct k_total {
  float sum, rest;
};

void k_total_add(inout k_total t, const float x) {
  precise const float more = x - t.rest;
  precise const float sum = t.sum + more;
  precise const float rest = (sum - t.sum) - more;
  t.rest = (floatBitsToUint(rest) & 0x7f800000u) == 0x7f800000u ? 0.0 : rest; // finite
  t.sum = sum;
}

float k_total_value(const k_total t) {
  precise const float value = t.sum - t.rest;
  return value;
}
