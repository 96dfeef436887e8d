/* generate/nucleus.c: draws a token among the most probable ones, without a sort of all of them. What top_k, top_p and min_p
 * keep is in each case the beginning of the list of tokens in the order of their logits. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "generate/generator.h"
#include "generate/passes.h"

enum { BLOCK = 1024, STEP = 64, NEAR = 1 << 13 };

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
    while (i < n) { /* few steps have one of them */
      const size_t end = n - i < STEP ? n : i + STEP;
      if (!(heddle__pass_greatest(x + i, end - i) > least)) i = end;
      for (; i < end; i++) {
        if (!(x[i] > least)) continue;
        out[0] = (uint32_t)i;
        sink(x, out, count, 0);
        least = x[out[0]];
      }
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
  for (size_t i = 0; i < n; i++) w[i] = x[m->chosen[i]];
  heddle__pass_weigh(w, n, best, rate_of(s), 0, w);
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

/* Of all weights of least and more, in the order of their numbers; total: their sum. */
static int64_t draw_all(const float *w, size_t n, float least, double total, double u) {
  double below = 0;
  size_t at = 0, last = 0;
  for (size_t i = 0; i < n; i += BLOCK) { /* the block where the sum passes, or by rounding the last with a weight */
    const double sum = heddle__pass_sum(w + i, n - i < BLOCK ? n - i : BLOCK, least);
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

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The fewest weights that sum to share are those of *least and more, once some are cleared; gives their sum. Weights are
 * ordered as their bits are: *least is found by halves, and what lies between the last two bounds is put into order. */
static double keep_nucleus(heddle__sampler *m, double total, double top_p, float *least) {
  const double share = top_p * total;
  const float spare = (float)((1 - top_p) * total / m->vocabulary); /* all that are less sum to less than the rest */
  const bool is_far = spare < 1 && heddle__pass_sum(m->weights, m->vocabulary, spare) >= share;
  uint32_t low = is_far && spare > 0 ? bits_of(spare) : 1, high = UINT32_C(0x3f800001); /* of more than 1 */
  double above = 0; /* the sum from high on, which is less than share */
  float *w = m->weights;
  size_t n = 0, kept = 0;
  while (high - low > NEAR) {
    const uint32_t middle = low + (high - low) / 2;
    const double sum = heddle__pass_sum(w, m->vocabulary, float_of(middle));
    if (sum < share) {
      high = middle;
      above = sum;
    } else {
      low = middle;
    }
  }
  for (uint32_t i = 0; i < m->vocabulary; i++)
    if (bits_of(w[i]) - low < high - low) m->chosen[n++] = i;
  make_heap(w, m->chosen, n);
  sort_heap(w, m->chosen, n);
  for (; kept < n && (above < share || above == 0); kept++) above += (double)w[m->chosen[kept]];
  for (; kept < n; kept++) w[m->chosen[kept]] = 0;
  *least = float_of(low);
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
    heddle__pass_weigh(logits + i, some, best, rate, is_cut ? 0 : (float)s->min_p, m->weights + i);
    total += heddle__pass_sum(m->weights + i, some, 0);
  }
  float least = 0;
  if (is_cut) total = keep_nucleus(m, total, s->top_p, &least);
  if (is_cut && s->min_p > (double)least) {
    least = (float)s->min_p;
    total = heddle__pass_sum(m->weights, n, least);
  }
  *token = draw_all(m->weights, n, least, total, u);
  return HEDDLE_OK;
}
