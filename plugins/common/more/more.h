/* What the files of more/ share: the general kernels, for every operator and type that ref/ has no fast kernel for. ref.c
 * comes to them when its own table does not take a node; graph/general.c infers shapes by their setups.
 *
 * An operator is a setup and a kernel. The setup reads the node's operands and attributes, says what dtypes and
 * shapes come out, and fills a more_op; it serves inference and planning alike, so that they cannot disagree. Kernels
 * work on row-major operands through numbers (double or int64), allocate nothing, and reach no byte outside of their
 * operands whatever these hold. To add an operator: write both in a file of its family, and name the setup below and in
 * the operator's line in operators/. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_MORE_H
#define HEDDLE_PLUGINS_COMMON_MORE_MORE_H

#include "plugins/common/more/number.h"
#include "plugins/common/ref/ref_op.h"

enum { MORE_DIMS = 8, MORE_IN = 16, MORE_OUT = 4, MORE_INTS = 40, MORE_FLOATS = 16, MORE_KEPT = 4 };

/* An operand or a result. */
typedef struct more_value {
  int64_t count; /* elements */
  int64_t shape[MORE_DIMS];
  int32_t ndim;
  uint32_t slot; /* of the region; UINT32_MAX: not there, or not wanted */
  uint8_t type;  /* REF_TYPE_*, MORE_TYPE_* */
  uint8_t size;  /* bytes of an element */
  bool here;     /* as an operand or a result of the node */
  uint8_t reserved[5];
} more_value;

typedef struct more_op more_op;

/* Addresses of the operands and results; NULL: absent or empty. */
typedef struct more_args {
  const void *in[MORE_IN];
  void *out[MORE_OUT];
  void *scratch;
} more_args;

/* Units [first, last) of the op's. Parts may run at the same time, with the same scratch memory. */
typedef void (*more_kernel)(const more_op *m, const more_args *a, int64_t first, int64_t last);

struct more_op {
  more_kernel run;
  void (*settle)(more_op *m);   /* puts kept attributes in another order, when all are there; NULL: they stay */
  const struct more_lane *lane; /* elementwise.c: what is done with a number */
  int64_t units;
  uint64_t scratch_bytes;
  uint64_t part_scratch; /* or of each part by itself */
  double steps;          /* for the cost: as long as a product each */
  bool loops;            /* see more_loop */
  bool unsliced;         /* the kernel asks by itself, and its parts are not cut */
  uint32_t n_in, n_out;
  more_value in[MORE_IN], out[MORE_OUT];
  int64_t i[MORE_INTS]; /* what the setup leaves for the kernel */
  double f[MORE_FLOATS];
  /* Attributes of any length, which lie behind the op: names, and where each begins and how many numbers it has. */
  const char *kept[MORE_KEPT];
  uint8_t in_place[MORE_OUT]; /* 1 + the operand, of the first REF_OPERANDS, whose bytes result k may be in; 0: none */
  bool extends;               /* such a result extends its operand (heddle_poffer.extends) */
  uint8_t reserved[3];
  uint64_t kept_at[MORE_KEPT], kept_count[MORE_KEPT], kept_all;
};

/* ref_tick for kernels of more/, whose more_op lies behind its ref_op. Not in setups. */
static inline const ref_op *more_ref_op(const more_op *m) {
  return (const ref_op *)(const void *)m - 1;
}
static inline bool more_tick(const more_op *m, int64_t *work, int64_t steps) {
  return ref_tick(more_ref_op(m), work, steps);
}

/* The numbers, int64_t or double, of kept attribute k. For kernels only. */
static inline const void *more_kept(const more_op *m, int k) {
  return (const int64_t *)(const void *)(m + 1) + m->kept_at[k];
}

static inline void *more_kept_to_settle(more_op *m, int k) {
  return (int64_t *)(void *)(m + 1) + m->kept_at[k];
}

/* What a setup sees. The first thing that is wrong stays in status, and everything after it does nothing. */
typedef struct more_plan {
  const ref_node *n;
  more_op *m;
  const void *data[MORE_IN];    /* bytes of operands that are known now */
  const heddle__version *entry; /* its definition */
  uint32_t n_in, n_out;         /* of the node, absent ones among them */
  heddle_status status;
  int32_t needs; /* the operand whose bytes decide the shape and are not known; -1 */
  heddle_error *err;
} more_plan;

typedef void (*more_setup)(more_plan *p);

/* In the order of heddle__operators; NULL: there is none here. */
extern const more_setup more_table[];

/* Why not, after the node's name and operator. Keeps the first. */
P_PRINTF(2, 3) void more_refuse(more_plan *p, const char *format, ...);

static inline bool more_ok(const more_plan *p) {
  return p->status == HEDDLE_OK;
}

/* Fills m of a node by the table's lines for its operator: HEDDLE_EUNSUPPORTED where there are none (known false) or
 * the setup refuses. n: out may be NULL, when results are to be inferred; then m->out has them. */
heddle_status more_plan_node(const ref_node *n, more_op *m, int32_t *needs, bool *known, heddle_error *err);

/* half.c: a node of float16 or bfloat16 that ref/ takes with float32 in their place. */
/* The region with float32 in place of float16 and bfloat16, whose bytes are then not known; false where there are none. */
enum { MORE_WIDENED = 24 };
typedef struct more_widened {
  heddle_pregion region;
  heddle_pvalue values[MORE_WIDENED];
} more_widened;
bool more_is_half(heddle_dtype d);
bool more_widen(const heddle_pregion *region, more_widened *w);

heddle_status more_plan_half(const heddle_pregion *region, ref_node *n, ref_op *op, const ref_entry **entry,
                             heddle_error *err);

/* The kernel and its work. units: how many parts there are at most; steps: see ref_set_work. */
void more_work(more_plan *p, more_kernel run, int64_t units, double steps);
/* The same of a kernel whose loops are as fast as those of ref/: steps and bytes cost what they do there. */
void more_loop(more_plan *p, more_kernel run, int64_t units, double steps);
void more_scratch(more_plan *p, double bytes); /* for all units together */

/* Whether the definition has the attribute: another one may not, and then mean something else. */
static inline bool more_defines(const more_plan *p, const char *name) {
  return heddle__version_attr(p->entry, name) != 0;
}

/* Attributes; with a fallback. ints, floats: at most cap; returns how many, -1 where absent. */
int64_t more_int(more_plan *p, const char *name, int64_t absent);
double more_float(more_plan *p, const char *name, double absent);
const char *more_string(more_plan *p, const char *name, const char *absent);
int64_t more_ints(more_plan *p, const char *name, int64_t *out, int64_t cap);
int64_t more_floats(more_plan *p, const char *name, double *out, int64_t cap);
/* Keeps a list of integers or of floats as attribute k, for the kernel; absent: of no numbers. */
const void *more_keep(more_plan *p, int k, const char *name, uint32_t kind);
/* Which of the words, between spaces, a string attribute is; refuses others. */
int64_t more_choice(more_plan *p, const char *name, const char *absent, const char *words);
/* An axis in [-rank, rank), or up to rank itself, made positive. */
int64_t more_axis(more_plan *p, int64_t axis, int64_t rank);
/* The same of count axes, in place, of which no two may be the same. */
void more_axes(more_plan *p, int64_t *axes, int64_t count, int64_t rank);

/* The numbers of operand k, whose bytes are known now; at most cap; -1 where it is absent. */
int64_t more_operand_ints(more_plan *p, uint32_t k, int64_t *out, int64_t cap);
double more_operand_number(more_plan *p, uint32_t k, double absent);
int64_t more_operand_int(more_plan *p, uint32_t k, int64_t absent); /* one integer */
const void *more_operand_bytes(more_plan *p, uint32_t k);           /* NULL and a refusal where they are not known */

/* Operand k: whether it is there; refusals where its type or rank is not what is wanted. */
bool more_operand(const more_plan *p, uint32_t k);
bool more_wants(const more_plan *p, uint32_t k); /* result k */
void more_rank(more_plan *p, uint32_t k, int32_t least, int32_t most);
void more_real(more_plan *p, uint32_t k);                  /* floating-point */
void more_number(more_plan *p, uint32_t k);                /* anything but bool */
void more_whole(more_plan *p, uint32_t k);                 /* integers */
void more_index_type(more_plan *p, uint32_t k);            /* int32 or int64 */
void more_same_type(more_plan *p, uint32_t a, uint32_t b); /* where b is there */
void more_same_shape(more_plan *p, uint32_t a, uint32_t b);
void more_shape_is(more_plan *p, uint32_t k, int32_t ndim, const int64_t *shape); /* where k is there */

/* Result k has a type and a shape. */
void more_result(more_plan *p, uint32_t k, int type, int32_t ndim, const int64_t *shape);
void more_result_like(more_plan *p, uint32_t k, uint32_t operand);

/* Shapes of operands broadcast; false (and a refusal) where they do not. */
bool more_broadcast(more_plan *p, int64_t *shape, int32_t *ndim, uint32_t operand);

/* ---- quantize.c. A sum of products times x * w / y, the scales of operands and result: as ONNX Runtime does it, each step
 * rounded as float32, where operand k, the first scale, is of that type. */
double more_rescale(const more_op *m, uint32_t k, double sum, double x, double w, double y);

/* Sums of at most MORE_PRODUCTS products of numbers in [-255, 255], which int32 holds: of a with n int8 or uint8; and
 * acc[i] += x * row[i]. */
enum { MORE_PRODUCTS = 32768 };
int32_t more_dot(int type, const int16_t *a, const void *b, int64_t n);
void more_add_row(int type, int32_t *acc, int32_t x, const void *row, int64_t n);

/* softmax.c: rows of n elements, inner apart; float64. */
void more_run_softmax_f64(const more_op *m, const more_args *a, int64_t first, int64_t last, int64_t n, int64_t inner,
                          bool log_of_it);

/* scan.c: CumSum and CumProd; of m->i from MORE_SCAN_N on: the axis' length, what lies inside of it, and whether it is
 * reverse, exclusive, a product. */
enum { MORE_SCAN_N = 0 };
void more_run_scan(const more_op *m, const more_args *a, int64_t first, int64_t last);
int64_t more_scan_units(const more_op *m);

/* norm_fast.c: MeanVarianceNormalization's rows of float32 or float64 that lie without gaps: the sum of their elements,
 * the sum of their squared distances from the mean, and (x - mean) * by. */
double more_row_sum(int type, const void *x, int64_t n);
double more_row_square(int type, const void *x, int64_t n, double mean);
void more_row_scale(int type, const void *x, void *y, int64_t n, double mean, double by);

/* norm_fast.c: RMSNormalization of float32, as norm.c leaves it. */
void more_run_rms_rows(const more_op *m, const more_args *a, int64_t first, int64_t last);

/* The offset, in elements of v, of element i of a tensor of that shape that v is broadcast to. */
int64_t more_at(const more_value *v, const more_value *out, int64_t i);

/* Product of shape[from .. to). */
int64_t more_count(const int64_t *shape, int64_t from, int64_t to);

static inline double more_get(const more_value *v, const void *p, int64_t i) {
  return more_load(v->type, p, i);
}
static inline void more_put(const more_value *v, void *p, int64_t i, double x) {
  more_store(v->type, p, i, x);
}
static inline int64_t more_get_int(const more_value *v, const void *p, int64_t i) {
  return more_load_int(v->type, p, i);
}

/* clang-format off */
#define MORE_SETUPS(X) \
  X(affine_grid) X(arg) X(attention) X(batch_norm) X(bernoulli) X(binary) X(bit_cast) X(cast) X(cast_like) X(causal_conv)  \
  X(center_crop_pad) X(clip) X(col2im) X(compress) X(conv) X(conv_integer) X(cumulate) X(deform_conv)  \
  X(depth_to_space) X(dequantize) X(det) X(dft) X(dropout) X(dynamic_quantize) X(einsum) X(eye_like) X(from_blocks) X(gather_elements)  \
  X(gather_nd) X(gemm) X(global_lp_pool) X(gqa) X(grid_sample) X(group_norm) X(gru) X(hardmax) X(kernel_matrix) X(linear_attention)  \
  X(lookup) X(lp_norm) X(lstm) X(matmul) X(matmul_blocks) X(matmul_experts) X(matmul_integer) X(matmul_nbits) X(max_unpool) X(mean_variance) X(mel) X(multinomial) X(nll)  \
  X(non_max_suppression) X(non_zero) X(normalize) X(one_hot) X(pad) X(pair_probabilities) X(pool) X(post_transform)  \
  X(qlinear_conv) X(qlinear_matmul) X(quantize) X(random) X(random_like) X(range) X(reduce) X(reverse_sequence) X(rnn)  \
  X(roi_align) X(rotary) X(rotate) X(scatter_elements)  \
  X(scatter_nd) X(sce) X(size) X(softmax) X(space_to_depth) X(stft) X(tensor_scatter) X(tfidf) X(top_k)  \
  X(tree_ensemble) X(trilu) X(unary) X(unique) X(window)
/* clang-format on */
#define MORE_DECLARE(name) void more_setup_##name(more_plan *p);
MORE_SETUPS(MORE_DECLARE)
#undef MORE_DECLARE

#endif
