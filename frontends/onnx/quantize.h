/* frontends/onnx/quantize.h: what the files of heddle_quantize share. */
#ifndef HEDDLE_ONNX_QUANTIZE_H
#define HEDDLE_ONNX_QUANTIZE_H

#include "heddle/quantize.h"

#include "frontends/onnx/reader.h"
#include "frontends/onnx/types.h"

/* A weight as rows that are cut into blocks: number (row, column) is element row * row_step + column * column_step. */
typedef struct quantize_matrix {
  const unsigned char *data;
  int32_t type; /* ONNX's: float32, float16, bfloat16 */
  int64_t rows, columns, row_step, column_step;
} quantize_matrix;

/* Integers of a row for each row, and a scale and a zero point for each block: on the heap. */
typedef struct quantize_result {
  uint8_t *q;     /* rows of blocks * block, behind a row's end its zero point */
  uint16_t *half; /* scales of float16 and bfloat16; else NULL */
  float *scale;   /* as numbers */
  uint8_t *zero;
  int64_t blocks;
  double error, worst;
} quantize_result;

/* quantize_blocks.c. False where memory is out, or a number is not finite, *finite. */
bool heddle__onnx_quantise(const quantize_matrix *w, const heddle_quantize_options *o, quantize_result *out,
                           bool *finite);
void heddle__onnx_quantise_free(quantize_result *x);

/* quantize_write.c: the model to a file, with the bytes of all its tensors. */
heddle_status heddle__onnx_write(heddle__onnx_reader *r, Onnx__ModelProto *model, const char *output);

#endif
