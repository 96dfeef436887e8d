/* generate/nucleus.c: draws a token among the most probable ones, without a sort of all of them. What top_k, top_p and min_p
 * keep is in each case the beginning of the list of tokens in the order of their logits. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "generate/generator.h"

enum { BLOCK = 1024, LANES = 16, BIN_SHIFT = 19, BINS = (127 << 23 >> BIN_SHIFT) + 1 };

/* e^x for x from -87 to 0, to seven digits; without branches, so that loops of it become vectors. */
static inline float exp_below(float x) {
  const float t = (x < -87.0F ? -87.0F : x) * 1.44269504F, whole = (t + 12582912.0F) - 12582912.0F, f = t - whole;
  const float p =
      1.0F +
      f * (0.693147181F + f * (0.240226507F + f * (0.0555041087F +
                                                   f * (0.00961812911F + f * (0.00133335581F + f * 0.000154035304F)))));
  const int32_t bits = ((int32_t)whole + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return p * power;
}

/* Weights of n tokens against the best one's, which is 1; those below least are 0. */
static void weigh(const float *x, size_t n, float best, float rate, float least, float *out) {
  for (size_t i = 0; i < n; i++) {
    const float y = exp_below((x[i] - best) * rate);
    out[i] = x[i] > -INFINITY && y >= least ? y : 0;
  }
}

static double sum_of(const float *x, size_t n) {
  float parts[LANES] = {0};
  double sum = 0;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) parts[k] += x[i + (size_t)k];
  for (; i < n; i++) parts[0] += x[i];
  for (int k = 0; k < LANES; k++) sum += (double)parts[k];
  return sum;
}

/* ---- a heap of tokens whose root is the last of them in the order: greater values first, then lower numbers */

static bool comes_before(const float *x, uint32_t a, uint32_t b) {
  return x[a] > x[b] || (x[a] == x[b] && a < b);
}

static void sink(const float *x, uint32_t *heap, size_t n, size_t i) {
  const uint32_t moved = heap[i];
  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && comes_before(x, heap[child], heap[child + 1])) child++;
    if (!comes_before(x, moved, heap[child])) break;
    heap[i] = heap[child];
  }
  heap[i] = moved;
}

static void make_heap(const float *x, uint32_t *heap, size_t n) {
  for (size_t i = n / 2; i-- > 0;) sink(x, heap, n, i);
}

/* Leaves the tokens in their order. */
static void sort_heap(const float *x, uint32_t *heap, size_t n) {
  while (n > 1) {
    const uint32_t last = heap[0];
    heap[0] = heap[--n];
    heap[n] = last;
    sink(x, heap, n, 0);
  }
}

/* The k greatest, in order; fewer where fewer are above -INFINITY. */
static size_t top(const float *x, size_t n, size_t k, uint32_t *out) {
  size_t count = 0, i = 0;
  for (; i < n && count < k; i++)
    if (x[i] > -INFINITY) out[count++] = (uint32_t)i;
  make_heap(x, out, count);
  if (count == k) {
    float least = x[out[0]];
    for (; i < n; i++) {
      if (!(x[i] > least)) continue;
      out[0] = (uint32_t)i;
      sink(x, out, count, 0);
      least = x[out[0]];
    }
  }
  sort_heap(x, out, count);
  return count;
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
  for (size_t i = 0; i < n; i++) {
    w[i] = exp_below((x[m->chosen[i]] - best) * rate_of(s));
    total += (double)w[i];
  }
  wanted = cuts(s->top_p) ? s->top_p * total : total;
  while (count < n && (count == 0 || kept < wanted) && (count == 0 || (double)w[count] >= s->min_p))
    kept += (double)w[count++];
  for (size_t i = 0; i + 1 < count; i++) {
    below += (double)w[i];
    if (u * kept < below) return m->chosen[i];
  }
  return m->chosen[count - 1];
}

/* Of all that have a weight, in the order of their numbers. */
static int64_t draw_all(const float *w, size_t n, double total, double u) {
  double below = 0;
  size_t at = 0, last = 0;
  for (; at < n; at += BLOCK) {
    const double sum = sum_of(w + at, n - at < BLOCK ? n - at : BLOCK);
    if (below + sum > u * total) break;
    below += sum;
  }
  if (at >= n) at = (n - 1) / BLOCK * BLOCK; /* by rounding */
  while (at > 0 && at < n && w[at] == 0 && sum_of(w + at, n - at < BLOCK ? n - at : BLOCK) == 0) at -= BLOCK;
  last = at;
  for (size_t i = at; i < n && i < at + BLOCK; i++) {
    if (!(w[i] > 0)) continue;
    last = i;
    below += (double)w[i];
    if (below > u * total) break;
  }
  return (int64_t)last;
}

static inline uint32_t bin_of(float weight) {
  uint32_t bits;
  memcpy(&bits, &weight, sizeof bits);
  return bits >> BIN_SHIFT;
}

/* Clears weights that are not among the fewest that sum to share; gives the sum of those that stay. The bins are of equal
 * ratio; the tokens of one of them are put into order. */
static double keep_nucleus(heddle__sampler *m, double share) {
  double mass[BINS] = {0}, above = 0;
  float *w = m->weights;
  for (uint32_t i = 0; i < m->vocabulary; i++) mass[bin_of(w[i])] += (double)w[i];
  uint32_t bin = BINS - 1;
  while (bin > 0 && above + mass[bin] < share) above += mass[bin--];
  size_t n = 0, kept = 0;
  for (uint32_t i = 0; i < m->vocabulary; i++) {
    const uint32_t b = bin_of(w[i]);
    if (b == bin && w[i] > 0) m->chosen[n++] = i;
    else if (b < bin) w[i] = 0;
  }
  make_heap(w, m->chosen, n);
  sort_heap(w, m->chosen, n);
  for (; kept < n && above < share; kept++) above += (double)w[m->chosen[kept]];
  for (; kept < n; kept++) w[m->chosen[kept]] = 0;
  return above;
}

heddle_status heddle__sampler_draw(heddle__sampler *m, const float *logits, const heddle_sampling *s, float best,
                                   double u, int64_t *token, heddle_error *err) {
  const size_t n = m->vocabulary;
  if (m->weights == NULL) m->weights = heddle__alloc(n, sizeof *m->weights);
  if (m->chosen == NULL) m->chosen = heddle__alloc(n, sizeof *m->chosen);
  if (m->weights == NULL || m->chosen == NULL) return heddle__no_memory(err, "the choice of a token");
  if (s->top_k > 0 && s->top_k < n) {
    *token = draw_ordered(m, logits, top(logits, n, s->top_k, m->chosen), s, best, u);
    return HEDDLE_OK;
  }
  const float rate = rate_of(s);
  const bool is_cut = cuts(s->top_p);
  double total = 0;
  for (size_t i = 0; i < n; i += BLOCK) {
    const size_t some = n - i < BLOCK ? n - i : BLOCK;
    weigh(logits + i, some, best, rate, is_cut ? 0 : (float)s->min_p, m->weights + i);
    total += sum_of(m->weights + i, some);
  }
  if (is_cut) {
    total = keep_nucleus(m, s->top_p * total);
    if (s->min_p > 0) {
      for (size_t i = 0; i < n; i++) m->weights[i] = (double)m->weights[i] >= s->min_p ? m->weights[i] : 0;
      total = sum_of(m->weights, n);
    }
  }
  *token = draw_all(m->weights, n, total, u);
  return HEDDLE_OK;
}
