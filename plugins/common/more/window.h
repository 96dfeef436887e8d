/* A window that slides over up to three spatial dimensions, in a more_op's numbers. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_WINDOW_H
#define HEDDLE_PLUGINS_COMMON_MORE_WINDOW_H

#include "more.h"

/* Where in m->i each begins; what an operator has of its own comes from W_OWN on. */
enum {
  W_SPATIAL = 0,
  W_IN = 1,
  W_OUT = 4,
  W_KERNEL = 7,
  W_STRIDE = 10,
  W_DILATION = 13,
  W_PAD = 16,
  W_END = 19,
  W_OWN = 22
};

/* Reads auto_pad, dilations, kernel_shape, pads, strides and ceil_mode for operand 0, [N, C, spatial...]. kernel: its
 * sizes, NULL where kernel_shape is required. */
void more_window(more_plan *p, const int64_t *kernel);

/* Refuses a window or a spatial result of so many elements that their numbers do not fit. */
void more_window_fits(more_plan *p);

/* Elements of the window, and of the spatial result. */
static inline int64_t window_taps(const more_op *m) {
  return more_count(m->i + W_KERNEL, 0, m->i[W_SPATIAL]);
}
static inline int64_t window_places(const more_op *m) {
  return more_count(m->i + W_OUT, 0, m->i[W_SPATIAL]);
}

/* The element of the spatial input at tap of place; -1 outside. padded, which may be NULL: whether it is at least in
 * the pads. */
int64_t more_window_at(const more_op *m, int64_t place, int64_t tap, bool *padded);

/* The taps of a place that lie inside the input, of a window that may be far larger: along each dimension they begin at
 * element from, step apart. padded: how many lie in the input or its pads. */
typedef struct window_reach {
  int64_t n, taps;
  int64_t size[REF_SPATIAL], count[REF_SPATIAL], from[REF_SPATIAL], step[REF_SPATIAL];
  double padded;
} window_reach;

void more_window_at_place(const more_op *m, int64_t place, window_reach *out);

/* The element of the spatial input at one of the taps [0, taps), in the window's order. */
static inline int64_t window_tap(const window_reach *r, int64_t t) {
  int64_t at = 0, stride = 1;
  for (int64_t d = r->n; d-- > 0; t /= r->count[d], stride *= r->size[d])
    at += (r->from[d] + t % r->count[d] * r->step[d]) * stride;
  return at;
}

/* At most so many taps of a place lie inside the input. */
double more_window_most_taps(const more_op *m);

#endif
