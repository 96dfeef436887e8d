/* program.h: what a region is compiled to, and the two halves of the compiler: where its values lie (place.c), and the
 * instructions (compile.c). */
#ifndef NPU_PROGRAM_H
#define NPU_PROGRAM_H

#include "layer.h"

/* How a tensor lies in DRAM, for the boxes of npu_box: image n, block of 16 channels, row, column, lane. Between two
 * nodes of a region the 16 channels of a block lie side by side, so that the bus moves them in one cycle; at the
 * region's ends tensors are row-major, and are gathered byte by byte. */
typedef struct npu_view {
  uint32_t operand; /* NPU_OPERAND_* */
  uint32_t blocked;
  uint64_t offset;
  int64_t step_n, step_block, step_y, step_x, step_lane;
} npu_view;

typedef struct npu_program {
  npu_instr *code; /* boxes hold an operand and an offset in it */
  uint64_t n_code, room_code;
  uint8_t *constants;
  uint64_t constant_bytes, room_constants;
  uint64_t workspace_bytes;
  const heddle_host *host;
  int no_memory;
} npu_program;

/* The layers of a region, and where each value lies: operand, offset and blocked of a view; its steps are the layer's
 * matter. Free with npu_plan_free. */
typedef struct npu_plan {
  const heddle_host *host;
  npu_layer *layers;
  npu_view *places; /* one a value of the region */
  uint32_t n_layers;
  uint64_t workspace_bytes;
  double cost_ns;
} npu_plan;

/* Reads a region; HEDDLE_EUNSUPPORTED with the reason. Pure, any thread. *out needs no free after a failure. */
heddle_status npu_plan_make(const heddle_host *host, const heddle_pregion *region, npu_plan *out, heddle_error *err);
void npu_plan_free(npu_plan *plan);

/* How a layer of the plan reads its operand, or writes its result. */
npu_view npu_plan_view(const npu_plan *plan, const npu_layer *l, int is_result);

/* Is value v of the region one that the compiler reads and bind need not give? */
int npu_plan_absorbs(const npu_plan *plan, const heddle_pregion *region, int32_t v);

/* Writes the program of a plan: HEDDLE_ENOMEM. *out needs no free after a failure. */
heddle_status npu_compile(const npu_plan *plan, npu_program *out, heddle_error *err);
void npu_program_free(npu_program *program);

/* Proposes the regions that the device wants: a node that it runs, and all that only follow from it. */
heddle_status npu_propose(const heddle_host *host, const heddle_pregion *region, heddle_propose_fn propose, void *sink,
                          heddle_error *err);

#endif
