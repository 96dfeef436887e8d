/* What the two ways of computing RNN, GRU and LSTM share: where the setup leaves what it read. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_RNN_H
#define HEDDLE_PLUGINS_COMMON_MORE_RNN_H

#include "more.h"

/* Of more_op.i and .f. The kernels of accelerators (kernels/recurrent.cl) read them by these numbers. */
enum {
  RNN_HIDDEN,
  RNN_INPUTS,
  RNN_STEPS,
  RNN_BATCH,
  RNN_DIRECTIONS,
  RNN_BACKWARD,
  RNN_LAYOUT,
  RNN_LINEAR,
  RNN_COUPLED,
  RNN_GATES,
  RNN_ACTS,
  RNN_BLOCK = RNN_ACTS + 6 /* steps whose inputs are multiplied at once, of cpu's fast kernels */
};
enum { RNN_CLIP = 0, RNN_ALPHAS = 1, RNN_BETAS = 8 };
enum { RNN_SIGMOID, RNN_TANH, RNN_RELU }; /* the first of the activations */

/* Activation `which` of those of the node, clipped before it. */
double rnn_activate(const more_op *m, int64_t which, double x);

/* Plans the kernel for float32, of an operator that the setup has read. */
void rnn_plan_fast(more_plan *p);

#endif
