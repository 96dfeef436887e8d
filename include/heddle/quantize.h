/* heddle/quantize.h: weights of an ONNX model as integers of 4 or 8 bits in blocks, in a new model. docs/quantize.md. */
#ifndef HEDDLE_QUANTIZE_H
#define HEDDLE_QUANTIZE_H

#include "heddle/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A weight that was looked at. Texts are valid during the call. */
typedef struct heddle_quantize_layer {
  size_t struct_size;
  const char *node, *op, *tensor;
  const char *kept;      /* why the weight stays as it is; NULL: it is quantised, and what follows is filled */
  int64_t rows, columns; /* rows are cut into blocks: of a product there is one for each column of its result */
  double error;          /* root of the mean square of the difference, over that of the weight */
  double worst;          /* the largest difference */
  uint64_t bytes_before, bytes_after;
} heddle_quantize_layer;

typedef void (*heddle_quantize_fn)(void *ctx, const heddle_quantize_layer *layer);

/* heddle_quantize_options.flags */
enum {
  HEDDLE_QUANTIZE_SYMMETRIC = 1, /* without zero points */
  HEDDLE_QUANTIZE_QDQ = 2        /* standard DequantizeLinear of opset 21 before products, which stay */
};

typedef struct heddle_quantize_options {
  size_t struct_size;
  uint32_t bits;  /* 4 or 8; 0: 4 */
  uint32_t block; /* a power of two, 16 to 256; 0: 32 */
  uint32_t flags;
  uint32_t accuracy_level; /* of MatMulNBits, 0 to 4: what its product may round the other operand to */
  const char *const *keep; /* patterns as a shell has them: nodes and weights of such names stay as they are */
  size_t n_keep;
  heddle_quantize_fn report; /* called for each weight of a product or an embedding; may be NULL */
  void *ctx;
} heddle_quantize_options;

/* Writes the model in a file to another one, in which constant weights of MatMul and Gemm are those of MatMulNBits, and tables
 * of Gather those of GatherBlockQuantized (both of com.microsoft); of the form QDQ, weights of MatMul and Gemm are
 * dequantised before them. Each row is cut into blocks that have a scale and a zero point; a scale is of the weight's type. If
 * the model has data in other files, or more than 1 GiB of it, the new one has its data in OUTPUT.data. options may be
 * NULL. The files appear when they are complete. HEDDLE_EINVAL: an option; HEDDLE_EFORMAT: the model is malformed; HEDDLE_EIO;
 * HEDDLE_EUNSUPPORTED: QDQ of a model of an opset before 21, or ONNX is left out of this build. Any thread; blocks. */
HEDDLE_API heddle_status heddle_quantize(const char *model, const char *output, const heddle_quantize_options *options,
                                         heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
