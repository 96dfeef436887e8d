/* generate/order.c: a histogram of keys, and a sort by digits of keys. */
#include "generate/order.h"

#include <string.h>

enum { PARTS = 1024, DIGITS = 4, DIGIT = 256, FEW = 48 };

heddle__range heddle__narrow(const uint32_t *keys, size_t n, bool weighs, heddle__range r, double target) {
  double sums[PARTS] = {0};
  const uint32_t span = r.high - r.low;
  int shift = 0;
  while ((span - 1) >> shift >= PARTS) shift++;
  for (size_t i = 0; i < n; i++)
    if (keys[i] - r.low < span) sums[(keys[i] - r.low) >> shift] += weighs ? (double)heddle__weight_of(keys[i]) : 1;
  uint32_t last = PARTS;
  double above = r.above;
  for (uint32_t part = (span - 1) >> shift; part < PARTS; part--) { /* until it wraps around */
    if (!(sums[part] > 0)) continue;
    if (last < PARTS) above += sums[last];
    last = part;
    if (above + sums[part] >= target) break;
  }
  if (last == PARTS) return r; /* all are empty */
  const uint32_t low = r.low + (last << shift), left = r.high - low;
  return (heddle__range){low, left >> shift > 0 ? low + (UINT32_C(1) << shift) : r.high, above, sums[last]};
}

/* ---- order */

static void order_few(const float *x, uint32_t *ids, size_t n) {
  for (size_t i = 1; i < n; i++) {
    const uint32_t moved = ids[i];
    size_t at = i;
    for (; at > 0 && x[ids[at - 1]] < x[moved]; at--) ids[at] = ids[at - 1];
    ids[at] = moved;
  }
}

void heddle__order(const float *x, uint32_t *ids, size_t n, uint32_t *spare) {
  if (n <= FEW) {
    order_few(x, ids, n);
    return;
  }
  size_t same = 1;
  while (same < n && x[ids[same]] == x[ids[0]]) same++;
  if (same == n) return;
  uint32_t counts[DIGITS][DIGIT] = {0}, *from = ids, *to = spare;
  for (size_t i = 0; i < n; i++) {
    const uint32_t key = ~heddle__key(x[ids[i]]);
    for (int d = 0; d < DIGITS; d++) counts[d][key >> 8 * d & 255]++;
  }
  for (int d = 0; d < DIGITS; d++) {
    uint32_t *count = counts[d], sum = 0;
    if (count[~heddle__key(x[ids[0]]) >> 8 * d & 255] == n) continue; /* the digit of all is the same */
    for (int k = 0; k < DIGIT; k++) {
      const uint32_t some = count[k];
      count[k] = sum;
      sum += some;
    }
    for (size_t i = 0; i < n; i++) to[count[~heddle__key(x[from[i]]) >> 8 * d & 255]++] = from[i];
    uint32_t *swapped = from;
    from = to;
    to = swapped;
  }
  if (from != ids) memcpy(ids, from, n * sizeof *ids);
}
