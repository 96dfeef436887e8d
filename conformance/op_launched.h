/* conformance/op_launched.h: a launch with its operands, for op_run.c and op_resized.c. */
#ifndef HEDDLE_CONFORMANCE_OP_LAUNCHED_H
#define HEDDLE_CONFORMANCE_OP_LAUNCHED_H

#include "op_case.h"
#include "op_clone.h"

enum { OP_PIECES = OP_IN + OP_OUT + 1, OP_SIZES = 16 };

/* A piece of device memory and what the host believes to be in it. */
typedef struct op_piece {
  heddle_pbuffer *buffer;
  unsigned char *image, *seen;
  uint64_t bytes;
} op_piece;

/* Where an operand lies. */
typedef struct op_place {
  op_piece *in;
  uint64_t offset, bytes;
  bool written;
} op_place;

struct op_launched {
  kit *k;
  heddle_pdevice *dev;
  heddle_pstream *stream;
  const op_ready *ready;
  uint32_t how;
  heddle_plaunch *made;
  char words[OP_WORDS + 512];
  op_piece pieces[OP_PIECES];
  uint32_t n_pieces;
  op_place in[OP_IN], out[OP_OUT], scratch;
  op_place *all[OP_PIECES]; /* those that need bytes */
  uint32_t n_all;
  heddle_pslice ins[OP_IN], outs[OP_OUT]; /* as the last bind or resize had them */
  op_clone gone[OP_SIZES];                /* regions of op.resize, which is not to keep them */
  uint32_t n_gone;
};

/* Operands of the sizes of ready, laid out and not filled. */
op_launched *op_launched_new(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_ready *ready, uint32_t how,
                             int32_t pair);
/* Lays the same operands out in memory of their own once more. */
void op_launched_move(op_launched *l);
/* The bytes of a region's operands in the offer's layouts. */
void op_launched_sizes(kit *k, const op_ready *ready, uint64_t *in, uint64_t *out);
/* The operands for bind and resize, in l's own slices. */
heddle_pbind op_launched_operands(op_launched *l);
/* Binds an op. */
void op_launched_bind(op_launched *l, heddle_pop *op);

#endif
