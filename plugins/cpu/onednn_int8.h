/* Quantised regions: products of bytes with constant weights (QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger), sums
 * of two quantised tensors, functions of a byte, and MaxPool of bytes. oneDNN makes the sums of products in int32 where it
 * has exact ones, else onednn_int8_pairs.c does; zero points, bias and rounding are done here, as the operators define them, while a block of sums is in the
 * cache. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_INT8_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_INT8_H

#include "onednn_special.h"

enum { INT8_STEPS = 10 /* nodes of a function of bytes */ };
enum { INT8_TASKS = 64, INT8_KINDS = 8, INT8_GROUPS = 32, INT8_PIECES = 8 };

/* A product as its node says it. A matrix product has one image with m rows of one column, k and n channels; the spatial
 * dimensions are 1 and 2 of the window. MatMulInteger may have a Cast to float32 behind it, a Mul with one number or one
 * for each channel (which may come with the run) and an Add of one for each channel: then real is set, and the result is
 * float32. */
typedef struct int8_product {
  const heddle_pregion *region;
  const heddle_pnode *node;
  bool matmul, rounds, real; /* rounds: the result is in bytes, else int32 */
  const heddle_pvalue *x, *w, *y, *x_zero, *w_zero, *bias;
  int32_t x_value, x_zero_value;                     /* x_zero_value: where it is only known in the run; else -1 */
  int32_t times_value, plus_value;                   /* of real; -1: none */
  bool times_one;                                    /* one number for all channels */
  int64_t images, groups, in_channels, out_channels; /* channels of all groups */
  int64_t taps;                                      /* of the window */
  ref_window window;
  const float *x_scale, *w_scale, *y_scale; /* for rounds; w_scale has scales members */
  int64_t scales;
  int32_t y_zero, y_least, y_most;
} int8_product;

/* The sum, or the product, of two dequantised tensors, quantised again; scale and zero of a, b and the result. */
typedef struct int8_sum {
  int32_t values[2];
  const heddle_pvalue *a, *b, *y;
  float scale[3];
  int32_t zero[3];
  bool relu, times; /* times: their product */
} int8_sum;

/* A function of each byte. */
typedef struct int8_table {
  const heddle_pregion *region;
  int32_t value, reserved;
  const heddle_pvalue *x, *y;
} int8_table;

/* MaxPool of bytes. */
typedef struct int8_pool {
  const heddle_pvalue *x, *y;
  int32_t value;
  ref_window window;
} int8_pool;

/* ---- onednn_int8_read.c: false where a region is no such thing, or one whose result here might not be exact */

bool int8_read_product(const heddle_pregion *region, int8_product *out);
bool int8_read_sum(const heddle_pregion *region, int8_sum *out);
bool int8_read_pool(const heddle_pregion *region, int8_pool *out);
bool int8_is_byte(const heddle_pvalue *value); /* int8 or uint8 */
static inline int32_t int8_byte(const heddle_pvalue *value, uint64_t i) {
  return value->dtype.code == HEDDLE_DTYPE_INT ? ((const int8_t *)value->data)[i] : ((const uint8_t *)value->data)[i];
}

bool int8_is_op(const heddle_pnode *node, const char *op); /* of ONNX's own, with one result */

/* The constant scale and zero point of a QuantizeLinear or DequantizeLinear for a whole tensor of bytes. */
bool int8_read_quantum(const heddle_pregion *region, const heddle_pnode *node, const heddle_pvalue *bytes, float *scale,
                       int32_t *zero);

/* ---- onednn_int8_table.c */

bool int8_read_table(const heddle_pregion *region, int8_table *out);

/* Computes it; HEDDLE_EUNSUPPORTED where the plain kernels lack an operator. */
heddle_status int8_table_make(const heddle_host *host, const int8_table *t, uint8_t table[256], heddle_error *err);

/* Whether a node is a function of one value, *on, and constants. */
bool int8_is_function(const heddle_pregion *region, const heddle_pnode *node, int32_t *on);

/* ---- onednn_int8_lanes.c: the loops over elements, for this processor */

/* How sums become results: byte = sat(round((sum + add - w_zero * ones) * scale) + zero), where ones is the sum behind the
 * channels. Without scale the int32 itself is the result; with real it is float32(sum) * scale + bias. Steps from one
 * place to the next in elements. */
typedef struct int8_round {
  const float *scale, *bias; /* bias: of real, or NULL */
  const int32_t *w_zero;     /* NULL: there is no sum of ones */
  float least, most;         /* of the result, without its zero point */
  int32_t zero;
  bool real;
  int64_t channels, acc_step, out_step;
} int8_round;

/* As int8_sum; flip is 128 for int8, whose zero point has 128 added. */
typedef struct int8_mix {
  float scale[3], least, most, floor; /* floor: 0 for Relu */
  int32_t zero[3], flip[2];
  bool times;
} int8_mix;

typedef struct int8_lanes {
  void (*round)(const int8_round *r, const int32_t *acc, const int32_t *add, void *out, int64_t places);
  void (*mix)(const int8_mix *m, const uint8_t *a, const uint8_t *b, uint8_t *out, int64_t n);
  void (*look)(const uint8_t *table, const uint8_t *in, uint8_t *out, int64_t n);
  void (*most)(uint8_t *out, const uint8_t *in, uint8_t flip, int64_t n); /* out = max(out, in) */
} int8_lanes;

const int8_lanes *int8_lanes_here(void);

/* ---- onednn_int8_weights.c: what a product has of its constants, made once */

/* Kinds of places by which taps of the window lie inside the input: one of row and one of column make a class. */
typedef struct int8_weights {
  const heddle_host *host;
  int32_t x_zero;
  bool ones;                    /* a channel of ones is behind each group's, since weights keep a zero point */
  bool ready;                   /* add holds; else sums are to be made into it in the run */
  int64_t rows, cols, channels; /* classes of each; channels of the result */
  uint16_t *row_class, *col_class;
  int32_t *add;    /* [class][channel]: bias less zero point of x times sums */
  int32_t *sums;   /* [class][channel]: of weights less their zero points */
  int32_t *bias;   /* [channel] */
  int32_t *w_zero; /* [channel], for ones */
  float *scale;    /* [channel] */
  int8_t *bytes; /* weights as oneDNN takes them, row-major [channel][in][tap], or [in][channel] of a matrix product */
} int8_weights;

/* Whether a zero point of the weights stays, and what is taken off each of them to be int8. */
bool int8_keeps_zero(const int8_product *p, int32_t *shift);

/* A channel's weights [*first, *last) that are piece i of n. */
void int8_piece(const int8_product *p, uint32_t i, uint32_t n, int64_t *first, int64_t *last);

/* The greatest magnitude that a sum of products may have, of any of n pieces. */
int64_t int8_most_sum(const int8_product *p, uint32_t n);
heddle_status int8_weights_make(const heddle_host *host, const int8_product *p, int8_weights *out, heddle_error *err);
uint64_t int8_weights_kept(const int8_product *p); /* bytes that it holds once its bytes are packed */
void int8_weights_free(int8_weights *w);
void int8_weights_add(const int8_weights *w, int32_t x_zero, int32_t *add);
/* How many there are along a dimension. classes: one a place; or NULL, and then a number that no plan takes where there
 * are too many, or they would take long to count. */
int64_t int8_classes(const int8_product *p, int dim, uint16_t *classes);

/* ---- onednn_int8_plan.c: a product in blocks */

/* A primitive for blocks of one size: rows of the result from rows of the input; channels of the result. */
typedef struct int8_kind {
  int64_t in_rows, rows, before, after, channels;
  dnnl_primitive_desc_t pd;
} int8_kind;

/* rows_each rows a block; or, with more than one group, all rows and channels_each channels. */
typedef struct int8_plan {
  const onednn *self;
  const int8_product *p;
  bool ones, pairs; /* pairs: onednn_int8_pairs.c makes the sums, and no kind has a primitive */
  uint32_t n_kinds, groups, tasks;
  uint32_t pieces; /* of each sum, which is computed in so many primitives whose sums are exact, and added up */
  int64_t rows_each, channels_each, blocks; /* blocks: images * row blocks * groups */
  heddle_layout in, out;
  uint64_t acc_bytes, each; /* of a task: sums, and all */
  uint64_t table_bytes;     /* for classes whose numbers come with the run */
  uint64_t times_bytes;     /* for the one factor of real, once a channel */
  int64_t most_sum;         /* of a piece */
  double cost_ns;
  int8_kind kinds[INT8_KINDS];
} int8_plan;

/* ---- onednn_int8_pairs.c: the sums of a block without oneDNN. channels: of all groups, with the one of ones */

bool int8_pairs_here(void);                                          /* whether this processor can */
uint64_t int8_pairs_packed(const int8_product *p, int64_t channels); /* bytes of packed weights */
uint64_t int8_pairs_scratch(const int8_product *p, const int8_kind *kind, int64_t channels);
/* plain: as int8_weights.bytes of these channels. */
void int8_pairs_pack(const int8_product *p, int64_t channels, const int8_t *plain, int16_t *to);
/* x: the block's first input row; out: [place][channel]. */
void int8_pairs_run(const int8_product *p, const int8_kind *kind, int64_t channels, bool is_signed, const void *x,
                    const int16_t *packed, int16_t *scratch, int32_t *out);

/* A block: which kind, and where it lies. */
typedef struct int8_block {
  uint32_t kind, group;
  int64_t image, row, in_row, first_channel;
} int8_block;

dnnl_status_t int8_plan_make(const onednn *self, const int8_product *p, uint32_t parts, int8_plan *out);
void int8_plan_drop(int8_plan *plan);
int8_block int8_plan_block(const int8_plan *plan, int64_t i);

/* ---- onednn_int8.c: its offers are those of a special region */

/* Whether oneDNN's sums of products of bytes are exact on this processor. */
bool onednn_int8_exact(void);

/* Whether there are exact sums of products of bytes for this processor; self may be NULL. */
bool onednn_int8_able(const onednn *self);

/* ---- onednn_int8_propose.c: proposes sums, and what is behind MatMulInteger, as onednn_propose */

heddle_status onednn_int8_propose(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                                  heddle_propose_fn propose, void *sink, heddle_error *err);

#endif
