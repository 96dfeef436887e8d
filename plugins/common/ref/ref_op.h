/* What the files of ref/ share: an op as the kernels see it, a node as the plans see it, and the table of operators.
 * For this folder, and for a plugin that has other kernels for some operators and reads their nodes as is done here.
 *
 * An operator is a plan and one or more kernels. The plan reads the node, refuses what it cannot do, and fills a
 * ref_op; it is what query, prepare, cost and in-place answers all come from, so that they cannot disagree. To add an
 * operator: write its plan in a file of its family, declare it below, and name it in the operator's line in operators/. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_REF_OP_H
#define HEDDLE_PLUGINS_COMMON_REF_REF_OP_H

#include "operators/operators.h"
#include "plugins/common/perror.h"
#include "plugins/common/ref/ref.h"
#include "plugins/common/region.h"

enum {
  REF_OPERANDS = 5,  /* operands that an op knows by slot; Concat and its like keep their own list */
  REF_RESULTS = 3,   /* results that an op knows by slot; Split keeps its own list */
  REF_MAX_DIMS = 16, /* dimensions of an operand that is walked */
  REF_SPATIAL = 3    /* spatial dimensions of Conv and pools; fewer are padded with leading 1s */
};

/* A node with its values found. Operands beyond the first REF_OPERANDS are reached through the node. */
typedef struct ref_node {
  const heddle_pregion *region;
  const heddle_pnode *node;
  const heddle_pvalue *in[REF_OPERANDS]; /* NULL: absent */
  const heddle_pvalue *out;              /* the first result */
} ref_node;

/* What one element of an elementwise operator is computed with: n elements of each operand, in the type that the
 * operator computes in, to n of the result. Operands and result may be the same bytes. */
typedef void (*ref_lanes)(void *out, const void *const *in, int64_t n, const float *params);

/* An elementwise operator; its operands are ref_operand in the tail. Outer dimensions are those of the result, joined
 * where all operands walk them in one stride. */
typedef struct ref_elementwise {
  ref_lanes lanes;
  uint64_t count; /* elements of the result */
  float params[2];
  uint32_t operands;
  uint32_t arity;     /* operands of one step; more operands are taken in turn, with the result so far as the first */
  uint8_t type, kind; /* of the result: as it lies in memory, as it is computed; REF_TYPE_* */
  uint8_t step, reserved; /* bytes of one element of the result as it lies */
  int32_t dims;
  int64_t dim[REF_MAX_DIMS];
} ref_elementwise;

typedef struct ref_operand {
  uint32_t slot;
  uint8_t type, kind; /* as it lies, as the operator computes it */
  uint8_t dense;      /* element i goes with element i of the result */
  uint8_t single;     /* one element, which the operator takes as such */
  int64_t stride[REF_MAX_DIMS];
} ref_operand;

/* A tensor that is read with strides into a dense one; offsets and strides in elements. */
typedef struct ref_strided {
  int64_t offset, run; /* where it begins; elements that lie side by side in both */
  uint32_t size;       /* bytes of an element */
  int32_t dims;
  int32_t across; /* the dimension whose elements lie side by side in the operand, where the run's do not; -1 */
  uint32_t reserved;
  int64_t dim[REF_MAX_DIMS], stride[REF_MAX_DIMS];
} ref_strided;

/* turn.c. start: joins the dimensions of the result, of which there are at most REF_MAX_DIMS then (else false), and finds
 * the units. run: units first to last; in is where the operand begins. */
bool ref_strided_start(ref_strided *t, uint32_t size, int64_t offset, int32_t dims, const int64_t *dim,
                       const int64_t *stride, uint64_t *units);
void ref_strided_run(const ref_strided *t, const void *in, void *out, uint64_t first, uint64_t last);

/* turn.c: rows of n elements of 1, 2, 4 or 8 bytes become n rows; the two lie apart. What goes along short rows is done
 * with columns in this way, a block of REF_TURN_BYTES at a time: rows of up to REF_TURN_SHORT elements. */
enum { REF_TURN_BYTES = 16384, REF_TURN_SHORT = 32 };
void ref_turn(uint32_t size, const void *in, int64_t rows, int64_t n, void *out);

/* out[o, i, ...] = in[o, index[i], ...] */
typedef struct ref_gather {
  uint64_t indices, axis; /* how many; the size of the dimension they point into */
  uint64_t bytes;         /* of what one index takes */
  uint32_t wide;          /* int64, else int32 */
  uint32_t reserved;
} ref_gather;

typedef struct ref_pad {
  uint32_t mode; /* REF_PAD_* */
  uint32_t size; /* bytes of an element */
  int32_t dims;
  int32_t reserved;
  int64_t in[REF_MAX_DIMS], out[REF_MAX_DIMS], before[REF_MAX_DIMS];
} ref_pad;

/* Resize: place i of the result along dimension d has the row of cells at[d] + i * (1 + taps[d]), the first element and
 * a weight for each that it is made of. The tail: this and then the cells. */
enum { REF_OUTSIDE = INT32_MIN };
typedef union ref_cell {
  int32_t first; /* REF_OUTSIDE: the result is the extrapolation value */
  float weight;
} ref_cell;

typedef struct ref_resize_tables {
  int64_t in[REF_MAX_DIMS], out[REF_MAX_DIMS], taps[REF_MAX_DIMS], at[REF_MAX_DIMS];
  int32_t dims;
  float extrapolation;
  bool single;  /* every place is one element */
  bool crops;   /* some place is outside */
  uint8_t type; /* REF_TYPE_* of operand and result */
  uint8_t reserved[5];
  int64_t repeats; /* where single: how often each element of a row is taken in turn; 0: not so */
} ref_resize_tables;

/* Every result element is made of those that reduced dimensions give at the place of the kept ones. */
typedef struct ref_reduce {
  uint32_t what;           /* REF_SUM ... */
  uint32_t type;           /* REF_TYPE_* */
  int64_t row, row_stride; /* the innermost dimension: elements of a row that is reduced, or of one that is kept */
  int64_t count;           /* elements that make one */
  int32_t kept, reduced;   /* dimensions besides the row */
  uint32_t row_kept;
  uint32_t reserved;
  int64_t kept_dim[REF_MAX_DIMS], kept_stride[REF_MAX_DIMS];
  int64_t dim[REF_MAX_DIMS], stride[REF_MAX_DIMS];
} ref_reduce;

/* What a whole number begins as, before elements are folded into it. */
int64_t ref_reduce_start(const ref_reduce *r);

/* Along one axis, as ref_softmax; ArgMax and TopK. */
typedef struct ref_along {
  int64_t n, inner, k;
  uint32_t type;
  uint8_t largest, last, nan_first; /* the greatest or the least; of equals the last; NaN before all numbers */
  uint8_t reserved;
} ref_along;

typedef struct ref_norm {
  int64_t n, inner, channels; /* elements of a row; of a channel's plane; channels */
  float epsilon, alpha, beta, bias;
  int64_t size;
} ref_norm;

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
  bool log; /* the logarithm of it */
} ref_softmax;

/* AveragePool counts taps; MaxPool may say where its maxima were. */
typedef struct ref_pool {
  ref_window window;
  int64_t end[REF_SPATIAL]; /* pads after the last element */
  uint32_t count_pads, column_major;
} ref_pool;

typedef struct ref_concat {
  uint64_t count, row; /* operands; bytes of a row of the result */
} ref_concat;

typedef struct ref_part {
  uint64_t slot, bytes; /* region input; bytes that it gives to each row */
  uint64_t pitch;       /* of an operand of Concat: from row to row */
} ref_part;

/* The operand whose numbers point into another, indices.c: number i is of column i % columns. columns 0: there is none. */
typedef struct ref_indices {
  const char *op; /* of operators/indices.def */
  uint32_t columns, slot, operand;
  bool wide, skips; /* int64, else int32; the number `skip` is in range too */
  uint64_t count;
  int64_t skip, low[REF_MAX_DIMS], high[REF_MAX_DIMS];
} ref_indices;

struct ref_op {
  ref_kernel kernel;
  uint64_t units;
  uint32_t slot[REF_OPERANDS];  /* region input of each operand; unused for absent ones */
  uint32_t result[REF_RESULTS]; /* region output of each result; UINT32_MAX for absent ones */
  uint32_t parts;
  union {
    ref_elementwise elementwise;
    ref_matmul matmul;
    ref_conv conv;
    ref_pool pool;
    ref_softmax softmax;
    ref_concat concat;
    ref_strided strided;
    ref_gather gather;
    ref_pad pad;
    ref_reduce reduce;
    ref_along along;
    ref_norm norm;
    uint64_t bytes; /* of a copy */
  } u;
  uint32_t present;  /* bit k: operand k is there */
  uint32_t in_place; /* bit k: operand k may share the bytes of region output in_place_of[k], the first result */
  uint32_t in_place_of[REF_OPERANDS];
  uint32_t extends; /* bit k: region output in_place_of[k] is operand k with more elements (heddle_poffer.extends) */
  int32_t extends_along; /* the axis of such entries, or -1 */
  uint32_t absorbed;     /* bit k: operand k is not read when running */
  uint32_t watched;      /* long enough to be stopped in the middle */
  uint64_t slice;        /* units between two looks at whether it is to stop; 0: all */
  double cost_ns;
  uint64_t workspace_bytes;
  uint64_t part_bytes;                /* of workspace that each part has to itself: parts of them; 0: all share it */
  uint64_t tail_bytes;                /* what the plan wants behind the op, for fill */
  uint64_t room_tail, room_workspace; /* of a copy that is resized: what there is */
  const heddle_host *host;
  ref_indices indices;
};

/* Those of a node. HEDDLE_EINVAL: they are known, and one is out of range. */
heddle_status ref_find_indices(const ref_node *n, ref_indices *x, heddle_error *err);

/* Whether the run that the kernel is in is to end: the kernel then returns at once, whatever it has done. False for an op
 * that is not watched. */
bool ref_stops(const ref_op *op);

/* For a kernel whose unit may take long: adds steps to *work, and asks where enough have come together. */
static inline bool ref_tick(const ref_op *op, int64_t *work, int64_t steps) {
  enum { ASK_AFTER = 1 << 21 };
  *work += steps;
  if (*work < ASK_AFTER) return false;
  *work = 0;
  return ref_stops(op);
}

/* shape.c: whether the result of a Concat may extend its first operand: that is no other one too. And whether it has one row, in
 * this size and all smaller ones. */
bool ref_concat_extends(const ref_node *n);
bool ref_concat_is_flat(const ref_node *n, int32_t axis);

/* depthwise.c: of a Conv whose groups have one input channel. */
int64_t ref_depthwise_floats(const ref_conv *c);
void ref_depthwise_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                       uint64_t last);

/* The product of sizes that a model says and no bytes stand behind, of a window say: INT64_MAX where it is more. */
static inline int64_t ref_product(const int64_t *sizes, int64_t n) {
  int64_t product = 1;
  for (int64_t i = 0; i < n; i++)
    if (sizes[i] == 0) return 0;
  for (int64_t i = 0; i < n; i++) product = product > INT64_MAX / sizes[i] ? INT64_MAX : product * sizes[i];
  return product;
}

/* The bytes behind the op. */
static inline void *ref_tail(const ref_op *op) {
  return (void *)(uintptr_t)(op + 1);
}

typedef heddle_status (*ref_plan)(const ref_node *n, ref_op *op, heddle_error *err);

/* How an operator is planned. */
typedef struct ref_entry {
  ref_plan plan;                               /* NULL: there is none here */
  void (*fill)(const ref_node *n, ref_op *op); /* writes the tail; NULL where there is none */
} ref_entry;

/* In the order of heddle__operators. */
extern const ref_entry ref_table[];

/* Refuses a node: "node 'x': Conv (opset 13, float32): " and the words. Returns HEDDLE_EUNSUPPORTED. */
P_PRINTF(3, 4)
heddle_status ref_refuse(const ref_node *n, heddle_error *err, const char *format, ...);

/* The definition of the node's operator, which is known, in the node's opset. */
heddle_status ref_find_version(const ref_node *n, bool own, const heddle__version **version, heddle_error *err);

/* Refuses an attribute that the definition does not have. */
heddle_status ref_check_attrs(const ref_node *n, const heddle__version *version, heddle_error *err);

/* Refuses a result whose shape is not what the operator gives. */
heddle_status ref_refuse_shape(const ref_node *n, heddle_error *err);

/* Refuses any of the first REF_OPERANDS operands or the result that is not float32. */
heddle_status ref_want_float32(const ref_node *n, heddle_error *err);

/* Fills kernel, units and the cost, and from that the number of parts. steps: what takes as long as one product of a
 * matrix product; bytes: those moved besides. */
void ref_set_work(ref_op *op, ref_kernel kernel, uint64_t units, double steps, double bytes);

/* Behind ref_set_work: each part has so many bytes of workspace to itself; there are fewer parts where that is much. */
void ref_set_part_scratch(ref_op *op, uint64_t bytes);

/* Fills w from the attributes of a Conv or MaxPool; kernel_shape must be set in attributes or given as weights_shape
 * (spatial members only). Checks the spatial result. */
heddle_status ref_window_plan(const ref_node *n, const int64_t *weights_shape, ref_window *w, heddle_error *err);

/* The geometry of a MaxPool or AveragePool, of any type; and how many taps of a window lie inside the input at most. */
heddle_status ref_pool_read(const ref_node *n, ref_pool *f, heddle_error *err);
double ref_pool_taps(const ref_window *w);

/* Positions [*first, *last) of the result along one dimension for which tap k lies inside the input. */
void ref_window_range(const ref_window *w, int dim, int64_t k, int64_t *first, int64_t *last);

/* Taps [*first, *last) along one dimension that lie inside the input for some of the positions from .. to. A window
 * may be far larger than its input, so loops go over these only. */
void ref_window_taps(const ref_window *w, int dim, int64_t from, int64_t to, int64_t *first, int64_t *last);

/* The numbers of a shape operand (int32 or int64, at most cap), which must be known now; *count is UINT32_MAX where the
 * operand is absent. */
heddle_status ref_ints(const ref_node *n, uint32_t k, int64_t *out, uint32_t cap, uint32_t *count, heddle_error *err);

/* Makes axes positive and checks them against rank; fallback: the first ones where count is UINT32_MAX. */
heddle_status ref_axes(const ref_node *n, int64_t *axes, uint32_t *count, int32_t rank, heddle_error *err);

/* Attribute axis as a dimension of x, and how the elements lie round it. */
heddle_status ref_axis(const ref_node *n, int64_t fallback, int32_t *axis, int64_t *size, int64_t *inner,
                       heddle_error *err);

/* n elements of an operand that is broadcast, from element first of the result on, side by side to out. */
void ref_collect(const ref_elementwise *e, const ref_operand *operand, const char *base, int64_t first, int64_t n,
                 char *out);

/* Sets the kernel of a copy with strides: out_dim and stride (elements of the operand) have dims members. */
heddle_status ref_set_strided(const ref_node *n, ref_op *op, int64_t offset, int32_t dims, const int64_t *out_dim,
                              const int64_t *stride, heddle_error *err);

/* Fills n and op from a region of one node. The answers to query, cost and in-place all come from here. Pure. */
heddle_status ref_plan_region(const heddle_pregion *region, ref_node *n, ref_op *op, const ref_entry **out_entry,
                              heddle_error *err);

/* more/: the same by the kernels for every type. Leaves err alone where there is none. */
#ifndef HEDDLE_NO_GENERAL
heddle_status more_plan_region(const heddle_pregion *region, ref_node *n, ref_op *op, const ref_entry **out_entry,
                               heddle_error *err);
bool more_has(uint32_t i); /* whether there is one for heddle__operators[i] */
#else                      /* a build of few operators leaves more/ out */
static inline heddle_status more_plan_region(const heddle_pregion *region, ref_node *n, ref_op *op,
                                             const ref_entry **out_entry, heddle_error *err) {
  (void)region, (void)n, (void)op, (void)out_entry, (void)err;
  return HEDDLE_EUNSUPPORTED;
}
static inline bool more_has(uint32_t i) {
  (void)i;
  return false;
}
#endif

#define REF_PLAN(name) heddle_status ref_plan_##name(const ref_node *n, ref_op *op, heddle_error *err)
#define REF_FILL(name) void ref_fill_##name(const ref_node *n, ref_op *op)
REF_PLAN(elementwise);
REF_FILL(elementwise);
REF_PLAN(fused);
REF_FILL(fused);
REF_PLAN(matmul);
REF_PLAN(gemm);
REF_PLAN(conv);
REF_PLAN(conv_transpose);
REF_PLAN(max_pool);
REF_PLAN(average_pool);
REF_PLAN(global_pool);
REF_PLAN(softmax);
REF_PLAN(reshape);
REF_PLAN(flatten);
REF_PLAN(identity);
REF_PLAN(dropout);
REF_PLAN(concat);
REF_FILL(concat);
REF_PLAN(split);
REF_FILL(split);
REF_PLAN(transpose);
REF_PLAN(expand);
REF_PLAN(tile);
REF_PLAN(slice);
REF_PLAN(gather);
REF_PLAN(pad);
REF_PLAN(fill);
REF_FILL(fill);
REF_PLAN(reduce);
REF_PLAN(arg);
REF_PLAN(top_k);
REF_PLAN(batch_norm);
REF_PLAN(instance_norm);
REF_PLAN(layer_norm);
REF_PLAN(lrn);
REF_PLAN(resize);
REF_FILL(resize);

#endif
