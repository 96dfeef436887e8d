/* frontends/onnx/blocked.h: weights of few bits in blocks, as MatMulNBits has them, which the reader unpacks. */
#ifndef HEDDLE_ONNX_BLOCKED_H
#define HEDDLE_ONNX_BLOCKED_H

#include "frontends/onnx/reader.h"

/* A matrix of rows by columns. Each row is cut into blocks, the last of which may be cut short; a block fills whole bytes,
 * its first number in the lowest bits, and has a scale and a zero point. */
typedef struct heddle__onnx_blocked {
  const Onnx__TensorProto *q, *scales;
  const Onnx__TensorProto
      *zeros; /* packed like numbers of a row, or of the type of the scales; NULL: half of the range */
  const Onnx__TensorProto *index; /* int32: the block of each column; NULL: in order */
  int64_t rows, columns, block, bits;
} heddle__onnx_blocked;

/* What is wrong with it, of sizes and types; NULL: nothing. */
const char *heddle__onnx_blocked_check(const heddle__onnx_blocked *b);

/* A new tensor of the model, of columns by rows and of the type of the scales, whose numbers are computed when it is
 * written. Returns its name; NULL where memory is out. */
const char *heddle__onnx_blocked_tensor(heddle__onnx_reader *r, const Onnx__NodeProto *node,
                                        const heddle__onnx_blocked *b);

/* The place of such a tensor, whose raw_data is a heddle__onnx_blocked. */
enum { HEDDLE__ONNX_BLOCKED = 1 << 21 };

/* Its numbers, to out, where there is room for them. */
heddle_status heddle__onnx_blocked_fill(heddle__onnx_reader *r, const heddle__onnx_blocked *b, void *out);

#endif
