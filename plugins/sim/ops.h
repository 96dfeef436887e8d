/* Operators: a region becomes one reference op a node, run one after another on plain row-major bytes. Operands in a
 * blocked layout are unpacked into the workspace before, and packed from it after, so that results are the same to the
 * bit in every layout. */
#ifndef HEDDLE_PLUGINS_SIM_OPS_H
#define HEDDLE_PLUGINS_SIM_OPS_H

#include "stream.h"

#include "plugins/common/ref/ref.h"
#include "plugins/common/region.h"

/* ---- blocked.c: the layouts, as arithmetic ---- */

/* Contents of the tokens never change: the first 64 bits of SHA-256 of "sim:NAME:float32". */
#define SIM_NCHW8C UINT64_C(0xce5ddf8d2aea2635) /* [N][C/8][H][W][8], channels padded with zeros */
#define SIM_OIHW8O UINT64_C(0x96fdbcad0746cbba) /* [O/8][I][kh][kw][8], likewise */

/* How a tensor is blocked: outer rows of blocks of 8 channels, inner positions each. */
typedef struct sim_blocking {
  heddle_layout token; /* 0: plain, and the rest is unused */
  uint64_t outer;
  uint64_t channels;
  uint64_t inner;
} sim_blocking;

bool sim_layout_known(heddle_layout token); /* 0 too */
/* Has the value what the blocked layouts take: four dimensions of float32? */
bool sim_layout_takes(const heddle_pvalue *value);
/* False where the value cannot lie in that layout, or its size does not fit. */
bool sim_blocking_of(const heddle_pvalue *value, heddle_layout token, sim_blocking *out, uint64_t *bytes);
void sim_pack(const sim_blocking *b, const void *plain, void *packed); /* every byte, padding too */
void sim_unpack(const sim_blocking *b, const void *packed, void *plain);

/* ---- regions.c: regions as rows of one-node regions ---- */

/* A node of a region as a region of its own. Pointers lead into the parent and into the array that holds it. */
typedef struct sim_sub {
  heddle_pregion region;
} sim_sub;

/* One for each node, in one allocation that the caller frees through host; HEDDLE_EINVAL where the region's indices are
 * wrong. */
heddle_status sim_subs_make(const heddle_host *host, const heddle_pregion *region, sim_sub **out, heddle_error *err);
/* Is a region of several nodes in one piece? Scratch memory through host; HEDDLE_EUNSUPPORTED where it is not. */
heddle_status sim_region_connected(const heddle_host *host, const heddle_pregion *region, heddle_error *err);
bool sim_node_is(const heddle_pnode *node, const char *domain, const char *op);

/* op.partition: Conv, Add or Gemm with the Relu behind it, MatMul with Add and Relu. */
heddle_status sim_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err);

/* ---- plan.c: what one way of running a region needs; query and prepare share it, so they cannot disagree ---- */

typedef struct sim_plan {
  uint32_t n_inputs, n_outputs, n_nodes;
  bool reorder;
  bool blocked; /* there is an offer with blocked operands, before the plain one */
  sim_sub *subs;
  heddle_layout *input_layouts; /* of the blocked offer */
  heddle_layout *output_layouts;
  heddle_layout *wanted; /* of each value, while the above are worked out */
  uint32_t *input_flags;
  int32_t *in_place;
  uint64_t n_in_place;
  int32_t *extends; /* entries of heddle_poffer.extends */
  uint64_t n_extends;
  double cost_ns;
} sim_plan;

/* Makes the plan, or HEDDLE_EUNSUPPORTED with why. finish takes half-made ones. */
heddle_status sim_plan_init(heddle_pinstance *self, const heddle_pregion *region, sim_plan *plan, heddle_error *err);
void sim_plan_finish(const heddle_host *host, sim_plan *plan);

/* Where plain bytes of a value lie when a launch runs. */
enum { SIM_AT_NOWHERE, SIM_AT_INPUT, SIM_AT_OUTPUT, SIM_AT_WORKSPACE };
typedef struct sim_place {
  uint32_t at;
  uint32_t slot;   /* of the input or output */
  uint64_t offset; /* in the workspace */
} sim_place;

/* Gives each value a place, for the blocked or the plain offer, and the offsets of the workspace: values between nodes
 * and plain copies of blocked operands lie before scratch, what a reference op needs for itself from there on. */
heddle_status sim_plan_places(const heddle_pregion *region, const sim_plan *plan, bool blocked, sim_place *places,
                              uint64_t *scratch, uint64_t *workspace_bytes, heddle_error *err);

/* ---- wrong.c ---- */

typedef struct sim_step sim_step;

/* What the settings plant in a region of one node. */
void sim_wrong_plant(const sim_settings *settings, const heddle_pregion *region, sim_step *step);
void sim_wrong_apply(const sim_step *step, void *result);

/* ---- ops.c and launch.c ---- */

typedef struct sim_operand {
  sim_blocking blocking;
  uint64_t bytes;        /* in its layout */
  uint64_t plain_offset; /* of its plain copy in the workspace, where it is blocked */
  bool absorbed;
} sim_operand;

/* A planted fault: one element of a step's first result comes out wrong (setting "wrong"). */
typedef struct sim_wrong {
  uint64_t elements; /* 0: nothing is planted */
  uint64_t at;
  heddle_dtype dtype;
} sim_wrong;

struct sim_step {
  ref_op *op;
  sim_wrong wrong;
  uint32_t first; /* of its inputs among the op's places; its outputs follow */
  uint32_t n_inputs;
  uint32_t n_outputs;
};

struct heddle_pop {
  sim_retired retired; /* first */
  uint32_t magic;
  atomic_uint references; /* the host's, and one a launch */
  heddle_pdevice *dev;
  uint32_t n_inputs, n_outputs, n_steps, n_places;
  bool reorder;
  bool any_blocked;
  bool bare;
  bool open; /* its launches will be resized: one step, plain; what they are bound to may be too small at first */
  uint64_t busy_us; /* setting op_us, of all its nodes */
  uint64_t workspace_bytes;
  uint64_t scratch;      /* offset of the reference ops' own workspace */
  sim_operand *operands; /* inputs, then outputs */
  sim_step *steps;
  sim_place *places;
  char name[64]; /* of the first node, for error texts */
};

void sim_op_drop(heddle_pop *op); /* takes one reference off */

/* References of a launch: the host's, and one for each capture that recorded it. */
void sim_launch_keep(heddle_plaunch *launch);
void sim_launch_drop(heddle_plaunch *launch);

heddle_status sim_op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                          heddle_error *err);
heddle_status sim_op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                            heddle_error *err);
heddle_status sim_op_run(heddle_plaunch *launch, heddle_error *err);
void sim_launch_free(heddle_plaunch *launch);

#endif
