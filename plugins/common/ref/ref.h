/* Reference kernels: every operator in plain C, on row-major host memory, for one-node regions of ONNX's own domain,
 * opsets 13 to 28, and of domain "heddle", and for the chains of several nodes that plugins/common/chain.h reads. A
 * plugin compiles these files into itself, with those of plugins/common/more, which have the general kernels, and of
 * operators/, which say what an operator is; nothing here knows a device.
 *
 * Layout tokens are not looked at: the caller has the operands row-major. Results do not depend on how the work is
 * split, on the number of threads, or on where operands lie. Operands are aligned to their element. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_REF_H
#define HEDDLE_PLUGINS_COMMON_REF_REF_H

#include <stdbool.h>

#include "heddle/plugin.h"

typedef struct ref_op ref_op;

/* What runs an op, or a part of it: the units [first, last) of its units. Any thread; parts of one op may run at the
 * same time. Allocates nothing. */
typedef void (*ref_kernel)(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                           uint64_t last);

/* Can this region run? HEDDLE_OK, or HEDDLE_EUNSUPPORTED with why: node, operator, dtype and opset are named.
 * Pure. Any thread. */
heddle_status ref_query(const heddle_pregion *region, heddle_error *err);

/* Region inputs that are read at prepare time (constant shape operands): sets HEDDLE_INPUT_ABSORBED in
 * flags[0..n_inputs), and 0 elsewhere. Pure. */
void ref_input_flags(const heddle_pregion *region, uint32_t *flags);

/* In-place pairs (region input index, region output index), two numbers a pair, at most cap pairs; returns how many
 * were written. Pure. */
uint64_t ref_in_place(const heddle_pregion *region, int32_t *pairs, uint64_t cap);
/* Likewise those of heddle_poffer.extends. */
uint64_t ref_extends(const heddle_pregion *region, int32_t *entries, uint64_t cap);

/* Bytes of scratch memory that run needs. Pure. */
uint64_t ref_workspace(const heddle_pregion *region);

/* Estimated time on so many threads; 0 for a region that ref_query refuses. Pure. */
double ref_cost_ns(const heddle_pregion *region, uint32_t threads);

/* Makes an op from a region that ref_query takes; memory through host->alloc, which must outlive the op. The op is
 * immutable, for any thread, and keeps nothing of the region. */
heddle_status ref_prepare(const heddle_host *host, const heddle_pregion *region, ref_op **out, heddle_error *err);
void ref_free(ref_op *op); /* takes NULL */

/* A copy of an op that can be resized to smaller shapes of its region. Freed with ref_free. */
heddle_status ref_copy(const ref_op *op, ref_op **out, heddle_error *err);

/* Gives such a copy the shapes of a region of the same nodes. Allocates nothing. HEDDLE_EUNSUPPORTED where the shapes need
 * other kernels with more memory than the op has; then it is as before. No thread may use the copy meanwhile. */
heddle_status ref_resize(ref_op *copy, const heddle_pregion *region, heddle_error *err);

/* Runs an op. inputs and outputs are addresses, one per region input and output: NULL for absent, absorbed or empty
 * ones. On the calling thread; allocates nothing; complete on return. */
void ref_run(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace);

/* The same in parts, for threads: part of parts, 0 <= part < parts. Together all parts do what ref_run does, to the
 * bit, for any number of them. ref_parts is how many are worth having (1: do not split). */
void ref_run_range(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint32_t part,
                   uint32_t parts);
uint32_t ref_parts(const ref_op *op);

/* Whether an op has an operand whose numbers point into another (operators/indices.def) and are not known before a run.
 * ref_indices_hold: whether all numbers of a part of it, out of so many, are in range; inputs as ref_run takes them. Where
 * one is not, the op still runs and reaches no byte outside of its operands; ref_indices_fail is what is wrong. */
bool ref_has_indices(const ref_op *op);
bool ref_indices_hold(const ref_op *op, void *const *inputs, uint32_t part, uint32_t parts);
heddle_status ref_indices_fail(const ref_op *op, void *const *inputs, heddle_error *err);

/* Whether an op takes so long that it looks at heddle_host.stop_requested while it runs; then its caller calls
 * ref_stopped after it: HEDDLE_OK, or the status and text of a run that may be unfinished. */
bool ref_watched(const ref_op *op);
heddle_status ref_stopped(const ref_op *op, heddle_error *err);

/* Bytes of tables that an op of this region keeps, for heddle_poffer.kept_bytes; 0 where it has none to speak of, and where
 * ref_query refuses it. Pure. */
uint64_t ref_kept(const heddle_pregion *region);

/* The kernel behind an op and how many units it has, for callers that save themselves the call through ref_run. */
ref_kernel ref_op_kernel(const ref_op *op, uint64_t *units);

/* Every operator, for heddle_op_table.list. */
heddle_status ref_list(heddle_list_fn list, void *sink, heddle_error *err);

#endif
