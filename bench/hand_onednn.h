/* bench/hand_onednn.h: networks as they would be written straight on oneDNN, in the layouts that it chooses. */
#ifndef BENCH_HAND_ONEDNN_H
#define BENCH_HAND_ONEDNN_H

#include <stdbool.h>

/* A square convolution of stride 1 whose result is as large as its input. */
typedef struct hand_conv {
  int in, out, kernel, size, groups;
} hand_conv;

typedef struct hand_net hand_net;

/* Is there a oneDNN in this build? Without, the rest gives NULL and does nothing. */
bool hand_is_built(void);

/* Member i of a row: channels go back and forth. */
static inline hand_conv hand_row_member(hand_conv c, int i) {
  return i % 2 == 0 ? c : (hand_conv){c.out, c.in, c.kernel, c.size, c.groups};
}

/* A row of count convolutions between a row-major input and a row-major output; on so many threads. */
hand_net *hand_row(hand_conv c, int count, int threads);

/* The digits network of examples/digits, on one thread. */
hand_net *hand_digits(void);
void hand_run(hand_net *net);
void hand_free(hand_net *net);

#endif
