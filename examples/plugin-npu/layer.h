/* layer.h: a node of ONNX as the accelerator sees it. A layer is a convolution (a matrix product is one of 1 x 1 over a
 * row of pixels) or a max pool, of int8 or uint8, with everything but its one operand constant. */
#ifndef NPU_LAYER_H
#define NPU_LAYER_H

#include "isa.h"

#include "plugins/common/perror.h"
#include "plugins/common/region.h"

/* Halves of the scratchpads: one is filled while the other is used. */
enum {
  NPU_HALF_INPUT = NPU_INPUT_VECTORS / 2,
  NPU_HALF_WEIGHT = NPU_WEIGHT_TILES / 2,
  NPU_HALF_ACC = 1000,
  NPU_ACC_PARAMETERS = 2 * NPU_HALF_ACC, /* bias, multiplier, shift */
  NPU_POOL_INPUT = NPU_HALF_ACC, /* a pool reads from the second half and has its results in halves of the first */
  NPU_HALF_POOL = NPU_HALF_ACC / 2
};

typedef struct npu_layer {
  const heddle_pnode *node;
  int32_t x, y;       /* values of the region */
  int is_pool;        /* else a convolution */
  int is_matrix;      /* operand and result are [rows, channels], else [n, channels, rows, columns] */
  int flip_x, flip_y; /* uint8 there: less 128 inside the machine */
  int32_t n, c, h, w; /* operand; of a matrix n = h = 1 and w is its rows */
  int32_t m, oh, ow;  /* result */
  int32_t groups;     /* of channels; 1 but in a convolution */
  int32_t parts;      /* 2 where weights less their zero points do not fit int8: each is then a sum of two */
  int32_t kh, kw, sy, sx, dy, dx, top, left;
  int32_t zero_x, zero_y; /* as int8 inside the machine */
  const heddle_pvalue *weight, *zero_w, *bias, *scale_x, *scale_w, *scale_y;
  int32_t th, tw, rows, columns; /* of results in a tile, and of operands that it needs */
} npu_layer;

/* Reads a node; HEDDLE_EUNSUPPORTED with words that name it where the machine cannot run it. Pure, any thread. */
heddle_status npu_layer_read(const heddle_pregion *region, const heddle_pnode *node, npu_layer *out, heddle_error *err);

/* The multiplier and shift for output channel k: sum * multiplier / 2^shift is the result in steps of its scale. False
 * where the scales are no positive numbers, or their ratio is too large for the machine. */
int npu_layer_scale(const npu_layer *l, int32_t k, int32_t *multiplier, int32_t *shift);

/* Element k of a constant of int8 or uint8 as the machine has it; of float32; of int32. */
int32_t npu_byte_at(const heddle_pvalue *v, int64_t k);
/* Weight k, which is for output channel m, less its zero point: -255 to 255. */
int32_t npu_weight_at(const npu_layer *l, int32_t m, int64_t k);
float npu_float_at(const heddle_pvalue *v, int64_t k);
int32_t npu_int_at(const heddle_pvalue *v, int64_t k);

#endif
