/* The sliding window of convolutions and pools: attributes with their defaults, and where its taps lie. */
#include "window.h"

static void list(more_plan *p, const char *name, int64_t *to, int64_t n, int64_t least, int64_t fallback) {
  int64_t given[2 * REF_SPATIAL];
  const int64_t count = more_ints(p, name, given, 2 * REF_SPATIAL);
  if (count >= 0 && count != n)
    more_refuse(p, "%s has %lld numbers, expected %lld", name, (long long)count, (long long)n);
  for (int64_t i = 0; i < n && more_ok(p); i++) {
    to[i] = count >= 0 ? given[i] : fallback;
    if (to[i] < least || to[i] > INT32_MAX) more_refuse(p, "%s[%lld] is %lld", name, (long long)i, (long long)to[i]);
  }
}

void more_window(more_plan *p, const int64_t *kernel) {
  more_op *m = p->m;
  int64_t pads[2 * REF_SPATIAL] = {0}, *i = m->i;
  more_rank(p, 0, 3, 2 + REF_SPATIAL);
  const int64_t n = i[W_SPATIAL] = m->in[0].ndim - 2,
                mode = more_choice(p, "auto_pad", "NOTSET", "NOTSET SAME_UPPER SAME_LOWER VALID");
  const int64_t ceil_mode = more_int(p, "ceil_mode", 0);
  list(p, "strides", i + W_STRIDE, n, 1, 1);
  list(p, "dilations", i + W_DILATION, n, 1, 1);
  list(p, "pads", pads, 2 * n, 0, 0);
  if (kernel == NULL && region_attr_find(p->n->node, "kernel_shape") == NULL) more_refuse(p, "it has no kernel_shape");
  list(p, "kernel_shape", i + W_KERNEL, n, 1, 1);
  for (int64_t d = 0; d < n && more_ok(p); d++) {
    const int64_t size = i[W_IN + d] = m->in[0].shape[2 + d], stride = i[W_STRIDE + d];
    if (kernel != NULL && region_attr_find(p->n->node, "kernel_shape") != NULL && i[W_KERNEL + d] != kernel[d])
      more_refuse(p, "kernel_shape is not the shape of its weights");
    if (kernel != NULL) i[W_KERNEL + d] = kernel[d];
    if (i[W_KERNEL + d] < 1 || i[W_KERNEL + d] > INT32_MAX || size > (int64_t)1 << 40)
      more_refuse(p, "its kernel is empty or too large");
    if (!more_ok(p)) return;
    const int64_t reach = (i[W_KERNEL + d] - 1) * i[W_DILATION + d] + 1;
    if (mode == 1 || mode == 2) {
      i[W_OUT + d] = size / stride + (size % stride != 0);
      int64_t all = (i[W_OUT + d] - 1) * stride + reach - size;
      if (all < 0) all = 0;
      pads[d] = mode == 1 ? all / 2 : all - all / 2;
      pads[n + d] = all - pads[d];
    } else {
      const int64_t room = size + pads[d] + pads[n + d] - reach;
      const bool over = room < 0 && ceil_mode != 0 && mode == 0 && room > -stride && size > 0;
      if (room < 0 && !over)
        more_refuse(p, "its window is larger than the padded operand 0 in spatial dimension %lld", (long long)d);
      i[W_OUT + d] = over ? 1 : room / stride + (ceil_mode != 0 && room % stride != 0) + 1;
      if (ceil_mode != 0 && (i[W_OUT + d] - 1) * stride >= size + pads[d]) i[W_OUT + d]--;
    }
    i[W_PAD + d] = pads[d];
    i[W_END + d] = pads[n + d];
  }
  more_window_fits(p);
}

/* Along one dimension. */
static double inside_at_most(const more_op *m, int64_t d) {
  const int64_t fit = m->i[W_IN + d] / m->i[W_DILATION + d] + 1, kernel = m->i[W_KERNEL + d];
  return (double)(fit < kernel ? fit : kernel);
}

double more_window_most_taps(const more_op *m) {
  double taps = 1;
  for (int64_t d = 0; d < m->i[W_SPATIAL]; d++) taps *= inside_at_most(m, d);
  return taps;
}

void more_window_fits(more_plan *p) {
  double taps = 1, places = 1, plane = 1;
  for (int64_t d = 0; d < p->m->i[W_SPATIAL] && more_ok(p); d++) {
    taps *= inside_at_most(p->m, d);
    places *= (double)p->m->i[W_OUT + d];
    plane *= (double)p->m->i[W_IN + d];
  }
  if (taps > 0x1p40 || places > 0x1p50 || plane > 0x1p50) more_refuse(p, "its window or its images are too large");
}

int64_t more_window_at(const more_op *m, int64_t place, int64_t tap, bool *padded) {
  const int64_t *i = m->i;
  int64_t at = 0, step = 1;
  if (padded != NULL) *padded = true;
  for (int64_t d = i[W_SPATIAL]; d-- > 0;) {
    const int64_t x = place % i[W_OUT + d] * i[W_STRIDE + d] + tap % i[W_KERNEL + d] * i[W_DILATION + d] - i[W_PAD + d];
    place /= i[W_OUT + d];
    tap /= i[W_KERNEL + d];
    if (x < 0 || x >= i[W_IN + d]) at = -1;
    if (padded != NULL && x >= i[W_IN + d] + i[W_END + d]) *padded = false;
    if (at >= 0) at += x * step;
    step *= i[W_IN + d];
  }
  return at;
}

/* How many of the taps of a place, the first of which is at element low, lie before an end. */
static int64_t taps_before(const more_op *m, int64_t d, int64_t low, int64_t end) {
  const int64_t dilation = m->i[W_DILATION + d], kernel = m->i[W_KERNEL + d];
  const int64_t taps = end <= low ? 0 : (end - low - 1) / dilation + 1;
  return taps < kernel ? taps : kernel;
}

void more_window_at_place(const more_op *m, int64_t place, window_reach *out) {
  const int64_t *i = m->i;
  *out = (window_reach){.n = i[W_SPATIAL], .taps = 1, .padded = 1};
  for (int64_t d = out->n; d-- > 0; place /= i[W_OUT + d]) {
    const int64_t low = place % i[W_OUT + d] * i[W_STRIDE + d] - i[W_PAD + d], size = i[W_IN + d];
    const int64_t skipped = taps_before(m, d, low, 0);
    out->size[d] = size;
    out->step[d] = i[W_DILATION + d];
    out->from[d] = low + skipped * i[W_DILATION + d];
    out->count[d] = taps_before(m, d, low, size) - skipped;
    out->taps *= out->count[d];
    out->padded *= (double)taps_before(m, d, low, size + i[W_END + d]);
  }
}
