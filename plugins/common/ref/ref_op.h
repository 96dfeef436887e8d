/* What the files of ref/ share: an op as the kernels see it, a node as the plans see it, and the table of operators.
 * Not for anybody outside this folder.
 *
 * An operator is a plan and one or more kernels. The plan reads the node, refuses what it cannot do, and fills a
 * ref_op; it is what query, prepare, cost and in-place answers all come from, so that they cannot disagree. To add an
 * operator: write its plan in a file of its family, declare it below, and add one line to table.c. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_REF_OP_H
#define HEDDLE_PLUGINS_COMMON_REF_REF_OP_H

#include "plugins/common/perror.h"
#include "plugins/common/ref/ref.h"
#include "plugins/common/region.h"

enum {
  REF_OPERANDS = 3,  /* operands that an op knows by slot; Concat keeps its own list */
  REF_MAX_DIMS = 16, /* dimensions of an operand that is broadcast */
  REF_SPATIAL = 3    /* spatial dimensions of Conv and pools; fewer are padded with leading 1s */
};

/* A node with its values found. Operands beyond the first REF_OPERANDS are reached through the node. */
typedef struct ref_node {
  const heddle_pregion *region;
  const heddle_pnode *node;
  const heddle_pvalue *in[REF_OPERANDS]; /* NULL: absent */
  const heddle_pvalue *out;
} ref_node;

/* A row of outer dimensions round an inner row, with element strides of both operands. */
typedef struct ref_elementwise {
  int64_t inner, inner_a, inner_b; /* length of a row; strides in it, each 0 or 1 */
  int32_t outer;                   /* how many outer dimensions, slowest first */
  int32_t reserved;
  int64_t dim[REF_MAX_DIMS], a[REF_MAX_DIMS], b[REF_MAX_DIMS];
} ref_elementwise;

/* Matrices with strides: element (i, j) of A lies at i * row + j * col. */
typedef struct ref_matmul {
  int64_t m, n, k;
  int64_t a_row, a_col, b_row, b_col;
  int64_t c_row, c_col; /* Gemm's third operand; strides 0 where it is broadcast */
  float alpha, beta;
  int32_t batch_dims; /* batch dimensions, slowest first, with element strides of A and B */
  int32_t reserved;
  int64_t batch_dim[REF_MAX_DIMS], batch_a[REF_MAX_DIMS], batch_b[REF_MAX_DIMS];
} ref_matmul;

/* A window that slides over up to three spatial dimensions. */
typedef struct ref_window {
  int64_t in[REF_SPATIAL], out[REF_SPATIAL], kernel[REF_SPATIAL];
  int64_t stride[REF_SPATIAL], dilation[REF_SPATIAL];
  int64_t pad[REF_SPATIAL]; /* before the first element */
} ref_window;

typedef struct ref_conv {
  ref_window window;
  int64_t images, groups;
  int64_t in_channels, out_channels; /* of one group */
} ref_conv;

/* outer rows of n elements, stride elements apart; element i of column c at ((outer * n) + i) * inner + c. */
typedef struct ref_softmax {
  int64_t n, inner;
} ref_softmax;

typedef struct ref_concat {
  uint64_t count, row; /* operands; bytes of a row of the result */
} ref_concat;

typedef struct ref_part {
  uint64_t slot, bytes; /* region input; bytes that it gives to each row */
} ref_part;

struct ref_op {
  ref_kernel kernel;
  uint64_t units;
  uint32_t slot[REF_OPERANDS]; /* region input of each operand; unused for absent ones */
  uint32_t parts;
  union {
    ref_elementwise elementwise;
    ref_matmul matmul;
    ref_conv conv;
    ref_window pool;
    ref_softmax softmax;
    ref_concat concat;
    uint64_t bytes; /* of a copy */
  } u;
  uint32_t present;  /* bit k: operand k is there */
  uint32_t in_place; /* bit k: operand k may share the result's bytes */
  uint32_t absorbed; /* bit k: operand k is not read when running */
  uint32_t reserved;
  double cost_ns;
  uint64_t tail_bytes; /* what the plan wants behind the op, for fill */
  const heddle_host *host;
};

/* The bytes behind the op. */
static inline void *ref_tail(const ref_op *op) {
  return (void *)(uintptr_t)(op + 1);
}

typedef heddle_status (*ref_plan)(const ref_node *n, ref_op *op, heddle_error *err);

typedef struct ref_entry {
  const char *op;
  const char *dtypes;
  const char *attrs; /* names that it knows, each between spaces */
  uint32_t min_inputs, max_inputs;
  ref_plan plan;
  void (*fill)(const ref_node *n, ref_op *op); /* writes the tail; NULL where there is none */
} ref_entry;

enum { REF_OPSET_FIRST = 13, REF_OPSET_LAST = 18 };

extern const ref_entry ref_table[];
extern const uint32_t ref_table_count;

/* Refuses a node: "node 'x': Conv (opset 13, float32): " and the words. Returns HEDDLE_EUNSUPPORTED. */
P_PRINTF(3, 4)
heddle_status ref_refuse(const ref_node *n, heddle_error *err, const char *format, ...);

/* Refuses a result whose shape is not what the operator gives. */
heddle_status ref_refuse_shape(const ref_node *n, heddle_error *err);

/* Refuses any of the first REF_OPERANDS operands or the result that is not float32. */
heddle_status ref_want_float32(const ref_node *n, heddle_error *err);

/* Fills kernel, units and the cost, and from that the number of parts. steps: what takes as long as one product of a
 * matrix product; bytes: those moved besides. */
void ref_set_work(ref_op *op, ref_kernel kernel, uint64_t units, double steps, double bytes);

/* Fills w from the attributes of a Conv or MaxPool; kernel_shape must be set in attributes or given as weights_shape
 * (spatial members only). Checks the spatial result. */
heddle_status ref_window_plan(const ref_node *n, const int64_t *weights_shape, ref_window *w, heddle_error *err);

/* Positions [*first, *last) of the result along one dimension for which tap k lies inside the input. */
void ref_window_range(const ref_window *w, int dim, int64_t k, int64_t *first, int64_t *last);

/* Taps [*first, *last) along one dimension that lie inside the input for some of the positions from .. to. A window
 * may be far larger than its input, so loops go over these only. */
void ref_window_taps(const ref_window *w, int dim, int64_t from, int64_t to, int64_t *first, int64_t *last);

heddle_status ref_plan_add(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_mul(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_relu(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_matmul(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_gemm(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_conv(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_max_pool(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_global_average_pool(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_softmax(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_reshape(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_flatten(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_identity(const ref_node *n, ref_op *op, heddle_error *err);
heddle_status ref_plan_concat(const ref_node *n, ref_op *op, heddle_error *err);
void ref_fill_concat(const ref_node *n, ref_op *op);

#endif
