/* generate/nucleus.c: draws a token among the most probable ones, without a sort of all of them. What top_k, top_p and min_p
 * keep is in each case the beginning of the list of tokens in the order of their logits: greater ones first, of equal ones
 * the lowest number. A sample of the list, or the greatest of its groups, bounds where that ends; the few tokens that are
 * between the bounds are gathered. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "generate/generator.h"
#include "generate/order.h"
#include "generate/passes.h"

enum { BLOCK = HEDDLE__BLOCK, SAMPLE = 2048, FEW = 96, TRIES = 4, ROOM = 16 };

static size_t block_at(size_t n, size_t i) {
  return n - i < BLOCK ? n - i : BLOCK;
}

/* ---- the greatest k */

/* Keys of the logits from which on at least k are expected. Each group has one that is as great as its greatest, so it is so.
 * Where there are too few groups: a guess by a sample. low is 0 where nothing is known. */
static heddle__range bound_of(heddle__sampler *m, const float *x, size_t n, size_t k) {
  const size_t groups = (n + BLOCK - 1) / BLOCK * HEDDLE__GROUPS;
  const bool by_groups = 2 * k <= groups;
  const size_t all = by_groups ? groups : n, step = by_groups ? 1 : n / SAMPLE + 1;
  const float *from = by_groups ? m->groups : x;
  uint32_t *keys = m->spare;
  double target = (double)k / (double)step;
  size_t count = 0;
  heddle__range r = {UINT32_MAX, 0, 0, 0};
  for (size_t i = 0; i < all; i += step) {
    if (!(from[i] > -INFINITY)) continue;
    const uint32_t key = heddle__key(from[i]);
    keys[count++] = key;
    r.low = key < r.low ? key : r.low;
    r.high = key >= r.high ? key + 1 : r.high;
  }
  if (!by_groups) target += 4 * sqrt(target) + 1;
  if ((double)count < target) return (heddle__range){0};
  do r = heddle__narrow(keys, count, false, r, target);
  while (r.high - r.low > 1 && r.sum > ROOM);
  return r;
}

static size_t gather(heddle__sampler *m, const float *x, size_t n, float low) {
  size_t count = 0;
  for (size_t i = 0; i < n; i += BLOCK)
    if (m->blocks[i / BLOCK].greatest >= low)
      (void)heddle__pass_split(x + i, block_at(n, i), low, INFINITY, (uint32_t)i, m->chosen, &count);
  return count;
}

/* The k greatest, in order; fewer where fewer are above -INFINITY. */
static size_t top(heddle__sampler *m, const float *x, size_t n, size_t k) {
  const heddle__range r = bound_of(m, x, n, k);
  const bool is_one =
      r.high - r.low == 1; /* perhaps that of many tokens: the first of them are added behind the rest */
  size_t count = r.low > 0 ? gather(m, x, n, heddle__key_value(r.low + is_one)) : 0;
  const size_t rest = count;
  for (size_t i = 0; i < n && is_one && count < k; i++)
    if (x[i] == heddle__key_value(r.low)) m->chosen[count++] = (uint32_t)i;
  if (count >= k && rest < k) {
    heddle__order(x, m->chosen, rest, m->spare);
    return k;
  }
  if (count < k) count = gather(m, x, n, -FLT_MAX);
  heddle__order(x, m->chosen, count, m->spare);
  return count < k ? count : k;
}

/* ---- draws */

/* A temperature near 0 is as one that leaves the greatest alone. */
static float rate_of(const heddle_sampling *s) {
  return (float)fmin(1 / s->temperature, 1e30);
}

static bool cuts(double top_p) {
  return top_p > 0 && top_p < 1;
}

/* Of tokens in order. */
static int64_t draw_ordered(heddle__sampler *m, const float *x, size_t n, const heddle_sampling *s, float best,
                            double u) {
  double total = 0, kept = 0, wanted, below = 0;
  size_t count = 0;
  float *w = m->weights;
  for (size_t i = 0; i < n; i++) w[i] = x[m->chosen[i]];
  (void)heddle__pass_weigh(w, n, best, rate_of(s), 0, w);
  for (size_t i = 0; i < n; i++) total += (double)w[i];
  wanted = cuts(s->top_p) ? s->top_p * total : total;
  while (count < n && (count == 0 || kept < wanted) && (count == 0 || (double)w[count] >= s->min_p))
    kept += (double)w[count++];
  for (size_t i = 0; i + 1 < count; i++) {
    below += (double)w[i];
    if (u * kept < below) return m->chosen[i];
  }
  return m->chosen[count - 1];
}

/* Of all weights of least and more, in the order of their numbers; total: their sum. is_summed: the sums of blocks are. */
static int64_t draw_all(heddle__sampler *m, float least, bool is_summed, double total, double u) {
  const float *w = m->weights;
  const size_t n = m->vocabulary;
  double below = 0;
  size_t at = 0, last = 0, none = 0;
  for (size_t i = 0; i < n; i += BLOCK) { /* the block where the sum passes, or by rounding the last with a weight */
    const double sum = is_summed ? m->blocks[i / BLOCK].sum
                                 : heddle__pass_split(w + i, block_at(n, i), least, least, 0, m->spare, &none);
    if (sum > 0) at = i;
    if (below + sum > u * total) break;
    below += sum;
  }
  for (size_t i = at; i < n && i < at + BLOCK; i++) {
    if (!(w[i] > 0 && w[i] >= least)) continue;
    last = i;
    below += (double)w[i];
    if (below > u * total) break;
  }
  return (int64_t)last;
}

/* Part of a range in which a sample of the weights expects the end of the nucleus. share: of the weights below the range's
 * end, what is wanted of them. */
static heddle__range guess(heddle__sampler *m, heddle__range r, double share) {
  const size_t n = m->vocabulary, step = n / SAMPLE + 1;
  uint32_t *keys = m->spare;
  size_t count = 0;
  double squares[2] = {0}, sum = 0, above = 0, inside = 0;
  for (size_t i = (step - 1) / 2; i < n; i += step) {
    const uint32_t key = heddle__weight_key(m->weights[i]);
    keys[count] = key;
    count += (size_t)(key - r.low < r.high - r.low);
    sum += key < r.high ? (double)m->weights[i] : 0;
  }
  if (count <= FEW) return r;
  r.above = 0;
  const double target = share * sum;
  heddle__range middle = heddle__narrow(keys, count, true, r, target);
  while (middle.high - middle.low > 1 && middle.sum >= sum / 8)
    middle = heddle__narrow(keys, count, true, middle, target);
  if (middle.sum >= sum / 8) return middle; /* one weight of many tokens */
  for (size_t i = 0; i < count; i++) {
    const double w = (double)heddle__weight_of(keys[i]);
    const bool is_above = keys[i] >= middle.low;
    inside += w;
    above += is_above ? w : 0;
    squares[is_above] += w * w;
  }
  const double part = above / sum, width = 3 * sqrt((1 - part) * (1 - part) * squares[1] + part * part * squares[0]);
  heddle__range out = r;
  if (target - width > 0) out.high = heddle__narrow(keys, count, true, r, target - width).high;
  if (target + width < inside) out.low = heddle__narrow(keys, count, true, r, target + width).low;
  return out;
}

/* Splits the weights; m->chosen are those of the range then, *n of them, m->spare their keys. */
static heddle__range split(heddle__sampler *m, heddle__range r, size_t *n) {
  const float low = heddle__weight_of(r.low), high = heddle__weight_of(r.high);
  const size_t all = m->vocabulary;
  *n = 0;
  r.above = r.sum = 0;
  for (size_t i = 0; i < all; i += BLOCK)
    r.above += heddle__pass_split(m->weights + i, block_at(all, i), low, high, (uint32_t)i, m->chosen, n);
  if (r.high - r.low == 1) {
    r.sum = (double)*n * (double)low;
    return r;
  }
  for (size_t i = 0; i < *n; i++) {
    const float w = m->weights[m->chosen[i]];
    m->spare[i] = heddle__weight_key(w);
    r.sum += (double)w;
  }
  return r;
}

/* Of n tokens of one weight the first ones are kept, and the others' weights cleared. Gives the sum of all that is kept. */
static double keep_equal(heddle__sampler *m, heddle__range r, size_t n, double share) {
  const double one = (double)heddle__weight_of(r.low), least = r.above > 0 ? 0 : 1, wanted = (share - r.above) / one;
  size_t kept = (size_t)fmin(fmax(ceil(wanted), least), (double)n);
  for (size_t i = kept; i < n; i++) m->weights[m->chosen[i]] = 0;
  return r.above + (double)kept * one;
}

/* The same of n tokens whose keys are m->spare. */
static double keep_first(heddle__sampler *m, heddle__range r, size_t n, double share, float *least) {
  float *w = m->weights;
  size_t some = 0, kept = 0;
  r = heddle__narrow(m->spare, n, true, r, share);
  for (size_t i = 0; i < n; i++) {
    const uint32_t token = m->chosen[i];
    m->chosen[some] = token;
    some += (size_t)(m->spare[i] - r.low < r.high - r.low);
  }
  heddle__order(w, m->chosen, some, m->spare);
  double above = r.above;
  for (; kept < some && (above < share || above == 0); kept++) above += (double)w[m->chosen[kept]];
  for (; kept < some; kept++) w[m->chosen[kept]] = 0;
  *least = heddle__weight_of(r.low);
  return above;
}

/* The fewest weights that sum to share are those of *least and more, once some are cleared; gives their sum. */
static double keep_nucleus(heddle__sampler *m, double total, double top_p, float *least) {
  const double share = top_p * total;
  const float spare = (float)((1 - top_p) * total / m->vocabulary); /* all that are less sum to less than the rest */
  const uint32_t low = heddle__weight_key(spare < 1 ? spare : 1);
  heddle__range r = {low > ROOM ? low - ROOM : 1, UINT32_C(0x3f800001), 0, 0}, part; /* of more than 1 */
  size_t n = 0;
  for (int tries = 1;; tries++) {
    part = tries < TRIES ? guess(m, r, (share - r.above) / (total - r.above)) : r;
    part = split(m, part, &n);
    if (part.above >= share && part.high < r.high) {
      r.low = part.high;
    } else if (part.above + part.sum < share && part.low > r.low) {
      r.high = part.low;
      r.above = part.above + part.sum;
    } else {
      break;
    }
  }
  *least = heddle__weight_of(part.low);
  return part.high - part.low == 1 ? keep_equal(m, part, n, share) : keep_first(m, part, n, share, least);
}

static double weigh_all(heddle__sampler *m, const float *x, float best, float rate, float least) {
  const size_t n = m->vocabulary;
  double total = 0;
  for (size_t i = 0; i < n; i += BLOCK) {
    struct heddle__block *block = m->blocks + i / BLOCK;
    block->sum = 0;
    if ((block->greatest - best) * rate < -87) /* of weights that are too small to be drawn */
      memset(m->weights + i, 0, block_at(n, i) * sizeof *m->weights);
    else block->sum = heddle__pass_weigh(x + i, block_at(n, i), best, rate, least, m->weights + i);
    total += block->sum;
  }
  return total;
}

/* In one piece: an allocator keeps it for the next choice, where none of a generator's is kept here. */
static bool make_room(heddle__sampler *m) {
  const size_t n = (m->vocabulary + (size_t)2 * ROOM - 1) / ROOM * ROOM, most = n > 2 * SAMPLE ? n : 2 * SAMPLE;
  if (m->weights == NULL) m->weights = heddle__alloc_aligned((2 * n + most) * sizeof *m->weights, 64);
  if (m->weights == NULL) return false;
  m->chosen = (uint32_t *)(void *)(m->weights + n);
  m->spare = m->chosen + n;
  return true;
}

heddle_status heddle__sampler_draw(heddle__sampler *m, const float *logits, const heddle_sampling *s, float best,
                                   double u, int64_t *token, heddle_error *err) {
  const size_t n = m->vocabulary;
  if (!make_room(m)) return heddle__no_memory(err, "the choice of a token");
  if (s->top_k > 0 && s->top_k < n) {
    *token = draw_ordered(m, logits, top(m, logits, n, s->top_k), s, best, u);
    return HEDDLE_OK;
  }
  const bool is_cut = cuts(s->top_p);
  double total = weigh_all(m, logits, best, rate_of(s), is_cut ? 0 : (float)s->min_p);
  float least = 0;
  if (is_cut) total = keep_nucleus(m, total, s->top_p, &least);
  if (is_cut && s->min_p > (double)least) {
    size_t none = 0;
    least = (float)s->min_p;
    total = 0;
    for (size_t i = 0; i < n; i += BLOCK)
      total += heddle__pass_split(m->weights + i, block_at(n, i), least, least, 0, m->spare, &none);
  }
  *token = draw_all(m, least, !is_cut, total, u);
  return HEDDLE_OK;
}
