/* QLinearConv and ConvInteger with vectors of bytes. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_CONV_BYTES_H
#define HEDDLE_PLUGINS_COMMON_MORE_CONV_BYTES_H

#include "more.h"

enum { CONV_BYTES_DEPTH = 16384 }; /* products of a sum, which int32 holds then */

/* A convolution: channels of the operand and of the result in a group, taps, and which operands are weights and zero
 * points (negative: none). */
typedef struct conv_bytes {
  int64_t groups, per, out_per, taps, weights, x_point, w_point;
  bool direct; /* patches are the operand itself */
} conv_bytes;

/* conv.c: as it left it in m; and element i of operand k, of one number the only one, where the node has it. */
conv_bytes conv_bytes_of(const more_op *m);
double conv_number(const more_op *m, const more_args *a, int64_t k, int64_t i, double absent);

/* conv_bytes.c: sums of channel c at places from `at` on, of which plus is to be added, to the result. */
void conv_bytes_put(const more_op *m, const more_args *a, const int32_t *sums, int32_t plus, int64_t c, int64_t at,
                    int64_t n);

/* depthwise_bytes.c: takes a node of one channel a group; false: it takes too much memory. */
bool depthwise_bytes_plan(more_plan *p);

/* Takes the node, once it is read; false: not this one, or not on this CPU. */
bool conv_bytes_plan(more_plan *p);

#endif
