/* What the drivers of all accelerators do alike with an operator: the offer of its plan, the sizes that its operands must
 * have, and the operands of a launch. A driver adds how it compiles a step, reaches a slice and launches. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_OP_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_OP_H

#include "plugins/common/kernels/plan.h"

/* The device of an operator. */
typedef struct k_site {
  const heddle_host *host;
  const char *name; /* the plugin's, with index for errors */
  uint32_t index, compute_units;
  uint64_t features;        /* of a plan */
  uint64_t workspace_align; /* of an offer */
} k_site;

/* Immutable once it is made. bytes: what a launch must find behind each operand, at its place; 0: nothing. open: its
 * launches will be resized, so that operands may be too small when they are bound. room: memory that planning took. */
typedef struct k_op {
  k_plan plan;
  uint64_t *bytes;
  uint32_t n_inputs, n_outputs;
  bool open;
  uint64_t room;
} k_op;

/* What the driver makes of a plan: refuses it, chooses other steps, or raises *workspace. */
typedef heddle_status (*k_accept)(void *ctx, const heddle_pregion *region, k_plan *plan, uint64_t *workspace,
                                  heddle_error *err);

/* Plans a region and offers the plan. For heddle_op_table.query; any thread. */
heddle_status k_op_offer(const k_site *site, const heddle_pregion *region, k_accept accept, void *ctx,
                         heddle_offer_fn offer, void *sink, heddle_error *err);

/* Plans the region again, for heddle_op_table.prepare of the only offer. out is zeroed, and k_op_finish has to follow also
 * where this fails. */
heddle_status k_op_init(const k_site *site, const heddle_pregion *region, uint32_t offer, k_op *out, heddle_error *err);
void k_op_finish(k_op *op);

/* Zeroed memory, one or more of a size; what it is for is for the error. */
heddle_status k_op_memory(const k_site *site, uint64_t count, uint64_t bytes, void **out, heddle_error *err);

/* Operands have places in one array: inputs, outputs, the table, the parts of the workspace. */
static inline uint32_t k_op_table(const k_op *op) {
  return op->n_inputs + op->n_outputs;
}
static inline uint32_t k_op_places(const k_op *op) {
  return k_op_table(op) + 1 + K_WORKSPACES;
}

/* The place of a step's operand. */
static inline uint32_t k_op_place(const k_op *op, uint32_t arg) {
  if (arg == K_TABLE) return k_op_table(op);
  if (K_IS_WORKSPACE(arg)) return k_op_table(op) + 1 + arg - K_WORKSPACE;
  return (arg & K_OUTPUT) != 0 ? op->n_inputs + (arg & ~K_OUTPUT) : arg;
}

/* Takes a slice that has a buffer and the bytes that the operand at a place needs. */
typedef heddle_status (*k_reach)(void *ctx, uint32_t place, const heddle_pslice *slice, const char *what,
                                 heddle_error *err);

/* Hands each operand of a launch that has bytes to reach, but the table, in the order of places. Of an open op, an operand
 * that is smaller than its bound is handed over as it is, and one without buffer is left out. */
heddle_status k_op_bind(const k_site *site, const k_op *op, bool same_device, const heddle_pbind *slices, k_reach reach,
                        void *ctx, heddle_error *err);

/* ---- launches that are resized (resize.c)
 *
 * A launch of an open op has a plan of its own, which is made again for each set of shapes in memory that was there when
 * the launch was bound. The plan must be the op's but for parameters, groups and bytes: then the op's programs serve. There
 * are two plans, so that the present one stays until the next one is known to do. */
typedef struct k_sized {
  k_op plans[2]; /* zeroed until there is one; their memory is in rooms */
  void *rooms[2];
  uint32_t now; /* which is the present one */
} k_sized;

/* Whether launches of the op of this region may be resized. */
bool k_may_resize(const heddle_pregion *region, const k_plan *plan);

/* For heddle_op_table.bind of an open op. out is zeroed; k_sized_finish has to follow also where this fails. */
heddle_status k_sized_make(const k_site *site, const k_op *op, k_sized *out, heddle_error *err);
void k_sized_finish(const k_site *site, k_sized *sized);

/* Plans the region's shapes into the plan that is not the present one, and returns it: *next is the present one when the
 * driver has called k_sized_take. Its workspace lies as the op's. HEDDLE_EUNSUPPORTED where the op's programs do not serve.
 * Allocates nothing. */
heddle_status k_sized_plan(const k_site *site, const k_op *op, const heddle_pregion *region, k_sized *sized,
                           const k_op **next, heddle_error *err);
static inline void k_sized_take(k_sized *sized) {
  sized->now ^= 1;
}

/* Room for the alignment of each piece of memory that planning takes. */
enum { K_ROOM_ALIGN = 16 };

/* For resize.c: as k_op_init, with memory through host, which the plan does not keep. */
heddle_status k_op_fill(const k_site *site, const heddle_host *host, const heddle_pregion *region, const k_plan *like,
                        k_op *out, heddle_error *err);

#endif
