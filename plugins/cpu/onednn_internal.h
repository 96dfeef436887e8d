/* What the files onednn_*.c share. A region that oneDNN takes is a chain: one head, and what is computed on its result
 * on the way out (post-operations). A form is a way of laying out the activations; for each form that works there is
 * an offer, made from a plan: the primitive descriptor, which region operand is which of its arguments, and layouts. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_INTERNAL_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_INTERNAL_H

#include "onednn.h"
#include "winograd.h"

#include "plugins/common/ref/ref_op.h"

#include <oneapi/dnnl/dnnl.h>

enum {
  ONEDNN_INPUTS = 16, /* operands of a region; one with more is left to the reference kernels */
  ONEDNN_POSTS = 6,
  ONEDNN_NODES = ONEDNN_POSTS + 1,
  ONEDNN_ARGS = ONEDNN_INPUTS + ONEDNN_POSTS + 2,
  ONEDNN_TASKS = 32,  /* that a region is cut into for threads */
  ONEDNN_PARTS = 512, /* and so that none takes long */
  ONEDNN_KINDS = 4    /* of parts: first, middle, last, and a shorter one */
};

enum { ONEDNN_AUTO, ONEDNN_ALWAYS };
enum { WINOGRAD_AUTO, WINOGRAD_OFF, WINOGRAD_ALWAYS };

/* A format tag with more than one dimension's order in it. */
typedef struct onednn_tag {
  dnnl_format_tag_t tag;
  uint32_t hash; /* of the name */
  const char *name;
  const char *blocks; /* the part of the name that describes inner blocks */
  int32_t ndims;
  uint32_t reserved;
} onednn_tag;

typedef struct onednn_keep onednn_keep;

struct onednn {
  const heddle_host *host;
  dnnl_engine_t engine;
  int mode, winograd;
  int (*omp_get)(void);
  void (*omp_set)(int);
  uint32_t n_tags;
  uint32_t block; /* channels of a block of activations: 16 or 8 */
  onednn_tag *tags;
  onednn_keep *keep;
  bool bf16; /* the CPU multiplies bfloat16 */
};

/* dnnl_success, or the error in Heddle's words: what was asked of oneDNN. */
heddle_status onednn_fail(dnnl_status_t status, const char *what, heddle_error *err);

/* Whether the run that this thread is in is to end: asked before each part but a launch's first. And its status, with
 * words. */
static inline bool onednn_stops(const onednn *self) {
  const heddle_host *host = self->host;
  return HEDDLE_HAS(heddle_host, host, stop_requested) && host->stop_requested != NULL &&
         host->stop_requested(host->ctx) != HEDDLE_OK;
}

heddle_status onednn_stopped(const onednn *self, heddle_error *err);

/* ---- onednn_threads.c ---- */

/* Finds the OpenMP run time that libdnnl is linked with. */
heddle_status onednn_threads_init(onednn *self, heddle_error *err);

/* Sets the calling thread's OpenMP thread count to one and gives what it was, for leave. */
int onednn_threads_enter(const onednn *self);
void onednn_threads_leave(const onednn *self, int before);

/* ---- onednn_keep.c ---- */

heddle_status onednn_keep_init(onednn *self, heddle_error *err);
void onednn_keep_finish(onednn *self);

/* dnnl_matmul_primitive_desc_create with the instance's engine, which is not asked again for what it was asked lately.
 * attr: of onednn_chain_attr's kind, or without post operations. Any thread. */
dnnl_status_t onednn_matmul_pd(const onednn *self, dnnl_primitive_desc_t *pd, const_dnnl_memory_desc_t a,
                               const_dnnl_memory_desc_t b, const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t out,
                               const_dnnl_primitive_attr_t attr);

/* The same of a convolution, or a transposed one: source, weights, bias (or NULL) and result. */
enum { ONEDNN_WINDOW = 4 * REF_SPATIAL };
typedef struct onednn_conv_window {
  dnnl_dims_t strides, dilations, before, after;
} onednn_conv_window;
dnnl_status_t onednn_conv_pd(const onednn *self, dnnl_primitive_desc_t *pd, bool transposed,
                             const_dnnl_memory_desc_t const operands[4], const onednn_conv_window *w,
                             const_dnnl_primitive_attr_t attr);

/* ---- onednn_layout.c ---- */

/* The activations' layouts. ANY lets oneDNN choose. With BF16 they are held, and computed with, in bfloat16; with WIDE
 * too, the result is float32. */
typedef enum onednn_form {
  ONEDNN_FORM_ANY,
  ONEDNN_FORM_BLOCKED,
  ONEDNN_FORM_CHANNELS_LAST,
  ONEDNN_FORM_PLAIN,
  ONEDNN_FORMS,
  ONEDNN_FORM_BF16 = 8,
  ONEDNN_FORM_WIDE = 16
} onednn_form;

/* A form without its precision; the type of the activations that go in; the form of those that come out. */
static inline onednn_form onednn_base(onednn_form form) {
  return (onednn_form)(form & ONEDNN_FORM_PLAIN);
}

static inline dnnl_data_type_t onednn_form_type(onednn_form form) {
  return (form & ONEDNN_FORM_BF16) != 0 ? dnnl_bf16 : dnnl_f32;
}

static inline onednn_form onednn_form_out(onednn_form form) {
  return (form & ONEDNN_FORM_WIDE) != 0 ? onednn_base(form) : form;
}

heddle_status onednn_layout_init(onednn *self, heddle_error *err);
void onednn_layout_finish(onednn *self);

/* How oneDNN sees a tensor: swapped changes its first two dimensions with each other, groups splits the first into so
 * many (0: not) before that. Weights of Conv with groups, of ConvTranspose and of Gemm are seen so. */
typedef struct onednn_view {
  int ndims;
  uint32_t groups;
  bool swapped;
  dnnl_data_type_t type;     /* of elements; undefined stands for float32 */
  dnnl_dims_t dims, strides; /* strides of the row-major tensor */
} onednn_view;

/* False where the shape does not fit. */
bool onednn_view_of(const heddle_pvalue *tensor, uint32_t groups, bool swapped, onednn_view *out);

/* A descriptor of what is row-major; of what oneDNN may choose; of a token's layout of the tensor. */
dnnl_status_t onednn_plain(const onednn_view *view, dnnl_memory_desc_t *out);
dnnl_status_t onednn_any(const onednn_view *view, dnnl_memory_desc_t *out);
dnnl_status_t onednn_from_token(const onednn *self, const heddle_pvalue *tensor, heddle_layout token,
                                dnnl_memory_desc_t *out);

/* How a token's tensor is seen; false for a token that is not ours or does not fit. */
bool onednn_view_from_token(const onednn *self, const heddle_pvalue *tensor, heddle_layout token, onednn_view *out);

/* The token of what is row-major. */
heddle_layout onednn_plain_layout(dnnl_data_type_t type);

/* Activations of a form; dnnl_unimplemented where it has none for so many dimensions. */
dnnl_status_t onednn_in_form(const onednn *self, const heddle_pvalue *tensor, onednn_form form,
                             dnnl_memory_desc_t *out);

/* Their token. */
dnnl_status_t onednn_form_token(const onednn *self, const heddle_pvalue *value, onednn_form form, heddle_layout *out);

/* The token of a descriptor; false where it has none. */
bool onednn_token_of(const onednn *self, const onednn_view *view, const_dnnl_memory_desc_t md, heddle_layout *out);

/* Positions [from, from + count) along one dimension of a tensor in a layout (0: row-major, of the view's type): their
 * descriptor, and where they begin in bytes. dnnl_unimplemented where they do not lie in one piece. */
dnnl_status_t onednn_slice(const onednn *self, const onednn_view *view, heddle_layout layout, int dim, int64_t from,
                           int64_t count, dnnl_memory_desc_t *out, uint64_t *offset);

/* ---- onednn_chain.c ---- */

/* value: of the region, the other operand of a binary operation; -1 for one without. full: of the result's shape. */
typedef struct onednn_post {
  dnnl_alg_kind_t alg;
  float alpha, beta;
  int32_t value;
  bool full;
} onednn_post;

/* node and op are as the reference kernels read the head. */
typedef struct onednn_chain {
  const heddle_pregion *region;
  ref_node node;
  ref_op op;
  const heddle_pvalue *out; /* of the last node */
  uint32_t n_posts;
  onednn_post posts[ONEDNN_POSTS];
} onednn_chain;

/* Reads a region; false where it is no chain, or has an operand that oneDNN does not take. */
bool onednn_chain_read(const heddle_pregion *region, onednn_chain *out);

/* Attributes with the chain's post-operations; those on a full operand take dst's layout. dst has the result's rank, or
 * is a matrix of the same row-major elements and the same last dimension. */
dnnl_status_t onednn_chain_attr(const onednn_chain *chain, const_dnnl_memory_desc_t dst, dnnl_primitive_attr_t *out);
bool onednn_chain_has_full(const onednn_chain *chain);

/* Some nodes of a region as the region that the host would ask about; values keep their numbers. */
enum { ONEDNN_PICKS = 24 };
typedef struct onednn_picked {
  heddle_pregion region;
  heddle_pnode nodes[ONEDNN_PICKS];
  int32_t inputs[ONEDNN_INPUTS], output;
} onednn_picked;

/* picks: at most ONEDNN_PICKS, ascending; the first result of the last is the region's only one. False where there are
 * too many operands. */
bool onednn_pick(const heddle_pregion *region, const uint32_t *picks, uint32_t count, onednn_picked *out);

/* Would onednn_query make an offer for them? */
heddle_status onednn_takes_picks(const onednn *self, const heddle_pregion *region, const uint32_t *picks,
                                 uint32_t count, bool *out, heddle_error *err);

/* Conv, ConvTranspose, MatMul, Gemm: what begins a chain of several nodes. */
bool onednn_is_product(const heddle_pnode *node);

/* Reads an elementwise node as a post-operation on its operand `on`. */
bool onednn_read_post(const heddle_pregion *region, const heddle_pnode *node, int32_t on, onednn_post *out);
/* The same of a node that is to be computed on a product's result on its way out. */
bool onednn_read_follower(const heddle_pregion *region, const heddle_pnode *node, int32_t on, onednn_post *out);

/* The one node, from number `from` on, that uses a value nothing outside uses; UINT64_MAX: more or none. */
uint64_t onednn_only_user(const heddle_pregion *region, int32_t value, uint64_t from);

/* ---- plans ---- */

typedef struct onednn_arg {
  int arg;
  uint32_t slot; /* region input, or output */
  bool output;
} onednn_arg;

/* A part of the work: kind says which of the plan's primitive descriptors, offsets where each argument begins. */
typedef struct onednn_part {
  uint32_t kind, reserved;
  uint64_t offsets[ONEDNN_ARGS];
} onednn_part;

/* Primitives for numbers of rows: a product of any smaller number is put together of them, so that nothing is made when
 * the number changes (onednn_steps.c). Shapes belong to the ladder where each operand has as many elements for a row as at
 * the bound, or in all where it is the same for all rows, and as many in its last dimension. */
enum { ONEDNN_RUNGS = 6 };
typedef struct onednn_rows_of {
  uint64_t row_bytes; /* from one row to the next; 0: it is the same for all rows */
  uint64_t count;     /* elements of a row, or of all */
  int64_t last;       /* of the last dimension; 0: it has none, or that of the rows */
} onednn_rows_of;

typedef struct onednn_ladder {
  uint32_t n_rungs, reserved;
  int64_t most; /* rows */
  int64_t rows[ONEDNN_RUNGS];
  dnnl_primitive_desc_t rungs[ONEDNN_RUNGS];
  onednn_rows_of operands[ONEDNN_ARGS]; /* of each argument */
} onednn_ladder;

/* pd is the whole; with parts, kinds are what is run in its place. by_winograd: pd is NULL, winograd says all. */
typedef struct onednn_plan {
  const onednn *self;
  const heddle_pregion *region;
  dnnl_primitive_desc_t pd;
  uint32_t n_args;
  uint32_t wanted_parts; /* how many are worth having */
  uint32_t threads;      /* that run them at most */
  uint32_t n_parts, n_kinds;
  onednn_arg args[ONEDNN_ARGS];
  heddle_layout inputs[ONEDNN_INPUTS], output;
  uint32_t flags[ONEDNN_INPUTS];
  double cost_ns;
  dnnl_primitive_desc_t kinds[ONEDNN_KINDS];
  bool by_winograd;
  bool resizes;      /* a ladder can be made; it is where wants_ladder is set */
  bool wants_ladder; /* before the plan is built */
  onednn_ladder ladder;
  winograd_plan winograd;
  onednn_part parts[ONEDNN_PARTS]; /* last, and not set before they are used */
} onednn_plan;

/* Adds a region value as an argument, in the layout that the primitive descriptor has for it. */
dnnl_status_t onednn_plan_input(onednn_plan *plan, int32_t value, int arg, const onednn_view *view);
dnnl_status_t onednn_plan_output(onednn_plan *plan, int32_t value, int arg);

/* The same for operands that are only taken row-major, whatever oneDNN sees them as; of the type that it sees. */
dnnl_status_t onednn_plan_plain_input(onednn_plan *plan, int32_t value, int arg);
dnnl_status_t onednn_plan_plain_output(onednn_plan *plan, int32_t value, int arg);

/* The same in a layout of the caller's choice. */
dnnl_status_t onednn_plan_input_as(onednn_plan *plan, int32_t value, int arg, heddle_layout layout);
dnnl_status_t onednn_plan_output_as(onednn_plan *plan, int32_t value, int arg, heddle_layout layout);

/* The other operands of the chain's post-operations; the result has its argument already. */
dnnl_status_t onednn_plan_posts(onednn_plan *plan, const onednn_chain *chain);

/* ---- onednn_parts.c ---- */

/* How a result is cut: positions [from, from + count) of one of its dimensions. */
typedef struct onednn_range {
  int dim;
  int64_t from, count;
  int64_t from_column, columns; /* of a matrix that is cut in rows, those; 0: all of them */
} onednn_range;

/* One part: always sets its signature (parts of equal ones share a primitive) and the offsets of its arguments, in the
 * order of plan->args; makes its primitive descriptor where pd is not NULL. */
enum { ONEDNN_SIGNATURE = 4 };
typedef dnnl_status_t (*onednn_cut)(const onednn_plan *plan, const onednn_chain *chain, const void *setup,
                                    const onednn_range *range, int64_t signature[ONEDNN_SIGNATURE],
                                    uint64_t offsets[ONEDNN_ARGS], dnnl_primitive_desc_t *pd);

/* Cuts the plan into parts of about size / wanted_parts positions, multiples of granule but the last; larger ones come
 * first. Leaves the plan whole where that does not work: only memory that is out is an error. */
dnnl_status_t onednn_cut_plan(onednn_plan *plan, const onednn_chain *chain, const void *setup, onednn_cut cut, int dim,
                              int64_t size, int64_t granule);

/* Cuts a matrix into tiles of so many rows and columns; else as onednn_cut_plan. */
dnnl_status_t onednn_cut_grid(onednn_plan *plan, const onednn_chain *chain, const void *setup, onednn_cut cut,
                              const int64_t sizes[2], const int64_t each[2]);

/* ---- onednn_steps.c ---- */

/* Gives a plan of an open region its ladder, cut along the rows of the result; leaves it without one where that does not
 * work. Only memory that is out is an error. */
dnnl_status_t onednn_ladder_plan(onednn_plan *plan, const onednn_chain *chain, const void *setup, onednn_cut cut,
                                 int64_t rows);
void onednn_ladder_drop(onednn_ladder *ladder);

/* Sets the offset of an argument; nothing where the plan does not have it. */
void onednn_set_offset(const onednn_plan *plan, int arg, uint64_t offset, uint64_t offsets[ONEDNN_ARGS]);

/* Sets the offsets of the chain's other operands for a range of the result, of which dst is the whole's descriptor. */
dnnl_status_t onednn_cut_posts(const onednn_plan *plan, const onednn_chain *chain, const onednn_range *range,
                               uint64_t dst_offset, uint64_t offsets[ONEDNN_ARGS]);

/* ---- onednn_cut.c ---- */

/* Cuts a plan without post-operations whose results each come from the same place of all operands, or from a window:
 * pool, Concat (not along its axis), Reorder, elementwise. chain is that of the plan; a Reorder has none. As
 * onednn_cut_plan. */
dnnl_status_t onednn_cut_same(onednn_plan *plan, const onednn_chain *chain);

/* So many of the dimensions that a descriptor answers what with. */
dnnl_status_t onednn_query_dims(const_dnnl_primitive_desc_t pd, dnnl_query_t what, dnnl_dims_t out, int count);

/* Nanoseconds on one thread, from the work in products and what the implementation is called. */
double onednn_product_cost(const_dnnl_primitive_desc_t pd, double products, bool grouped);

/* How many parts work of so many nanoseconds on one thread is worth. */
uint32_t onednn_parts_for(const onednn *self, double work_ns);

/* ---- onednn_seek.c ---- */

/* As onednn_propose, for attention; called before it. */
heddle_status onednn_propose_attention(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                                       heddle_propose_fn propose, void *sink, heddle_error *err);

/* One a family: fills pd, args and cost. dnnl_unimplemented where the form does not fit. */
typedef dnnl_status_t (*onednn_build)(const onednn *self, const onednn_chain *chain, onednn_form form,
                                      onednn_plan *plan);
dnnl_status_t onednn_build_conv(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan);
dnnl_status_t onednn_build_matmul(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan);
dnnl_status_t onednn_build_pool(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan);
dnnl_status_t onednn_build_eltwise(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan);
dnnl_status_t onednn_build_binary(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan);
dnnl_status_t onednn_build_batch_norm(const onednn *self, const onednn_chain *chain, onednn_form form,
                                      onednn_plan *plan);
dnnl_status_t onednn_build_layer_norm(const onednn *self, const onednn_chain *chain, onednn_form form,
                                      onednn_plan *plan);
dnnl_status_t onednn_build_concat(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan);

/* ---- winograd_plan.c ---- */

/* The setting "winograd": auto, off, or always (whatever the cost says); HEDDLE_EINVAL for another word. */
heddle_status winograd_read_mode(const heddle_host *host, int *mode, heddle_error *err);

/* An onednn_build of Conv, for forms of blocks and channels last. */
dnnl_status_t winograd_build(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan);

/* What bind must find behind an operand that the plan takes. */
cpu_operand winograd_operand(const winograd_plan *p, uint32_t slot, bool output);

#endif
