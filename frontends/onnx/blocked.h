/* frontends/onnx/blocked.h: weights of few bits in blocks, as MatMulNBits has them. */
#ifndef HEDDLE_ONNX_BLOCKED_H
#define HEDDLE_ONNX_BLOCKED_H

#include "frontends/onnx/reader.h"

/* A matrix of rows by columns. Each row is cut into blocks, the last of which may be cut short; a block fills whole bytes,
 * its first number in the lowest bits, and has a scale and a zero point. NULL: no constant, or not there. */
typedef struct heddle__onnx_blocked {
  const Onnx__TensorProto *q, *scales;
  const Onnx__TensorProto *zeros; /* packed like numbers of a row, or of the type of the scales; half of the range */
  const Onnx__TensorProto *index; /* int32: the block of each column; in order */
  int64_t rows, columns, block, bits;
} heddle__onnx_blocked;

/* What is wrong with it, of sizes and types; NULL: nothing. */
const char *heddle__onnx_blocked_check(const heddle__onnx_blocked *b);

/* HEDDLE_EFORMAT where the index names a block that is not there. */
heddle_status heddle__onnx_blocked_index(heddle__onnx_reader *r, const heddle__onnx_blocked *b);

#endif
