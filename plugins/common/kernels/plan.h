/* From a region of one node, or a chain of elementwise ones, to launches of the kernels in this folder: which one, built
 * as what (code.h), how many work-groups, which parameters and operands. Nothing here knows a device's API; a
 * plugin builds the text, and launches what the plan says. Row-major operands only. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_H

#include "heddle/plugin.h"
#include "plugins/common/kernels/code.h"
#include "plugins/common/kernels/params.h"

#include <stdbool.h>

enum { K_ARGS = 12, K_PAIRS = 4 };

/* Which operand: a region input, or with K_OUTPUT added a region output, or the plan's table, or K_WORKSPACE + i for part i of its
 * workspace. */
#define K_OUTPUT UINT32_C(0x80000000)
#define K_TABLE UINT32_C(0x40000000)
#define K_WORKSPACE UINT32_C(0x20000000)
#define K_IS_WORKSPACE(arg) (((arg) & ~UINT32_C(0xff)) == K_WORKSPACE)
enum { K_WORKSPACES = K_ARGS, K_WORKSPACE_ALIGN = 1024 };

/* What a device can do besides float32 and integers. */
#define K_HAS_F64 UINT32_C(1)

/* What a device is like: items of a group run one after the other, on the host's cores. */
#define K_HOST_CORES UINT32_C(2)

/* What a driver has kernels for: attention in one pass over tiles. */
#define K_FLASH UINT32_C(4)

enum { K_STEP_KERNEL = 0, K_STEP_COPY = 1 };

/* A kernel's launch: groups work-groups of K_GROUP items, the parameters by value and then the operands. Or a copy of
 * copy_bytes from byte copy_from of args[0] to byte copy_at of args[1]. */
typedef struct k_step {
  uint32_t kind;
  uint32_t n_args;
  uint32_t args[K_ARGS];
  k_code code;
  struct heddle_chain *chain; /* of KERNEL_fused, of the plan's memory, without its node and value; else NULL */
  uint64_t groups;
  bool is_product; /* params.matmul with operands A, B, C where there are four, and the result: a library may do it */
  bool is_conv;    /* params.conv, not transposed, with operands weights, input, bias where there are four, result */
  int64_t images;  /* of a convolution */
  uint64_t params_bytes;
  union {
    k_flat flat;
    k_walk walk;
    k_gather gather;
    k_pad pad;
    k_along along;
    k_resize resize;
    k_matmul matmul;
    k_conv conv;
    k_pool pool;
    k_rows rows;
    k_reduce reduce;
    k_norm norm;
    k_fused fused;
    k_select select;
    k_lines lines;
    k_scaled scaled;
    k_loss loss;
    k_quantize quantize;
    k_narrow narrow;
    k_random random;
    k_batch batch;
    k_general general;
    k_signal signal;
  } params;
  /* Of a portable text, else 0: the integers that the parameters begin with, behind which are floats; and how often an item's
   * loops turn, in all. */
  uint32_t param_ints;
  double turns;
  uint64_t copy_bytes, copy_at, copy_from;
} k_step;

typedef struct k_plan {
  const heddle_host *host;
  uint64_t features; /* K_HAS_F64, K_HOST_CORES, K_FLASH: of the device */
  void *table;       /* what K_TABLE stands for: bytes to be on the device before a step runs; NULL: none */
  uint64_t table_bytes;
  uint64_t part_bytes[K_WORKSPACES]; /* of the workspace: memory that only the steps of one run use; 0: none */
  k_step *steps;
  uint32_t n_steps, cap_steps;
  uint32_t *input_flags; /* one per region input */
  int32_t pairs[2 * K_PAIRS];
  uint32_t n_pairs;
  int32_t extends[3 * K_PAIRS]; /* the entries of heddle_poffer.extends */
  uint32_t n_extends;
  bool is_fixed; /* a launch of it cannot be resized; the driver's to say */
  double work;   /* products, or elements moved: for an estimate of time */
  const struct k_plan
      *like; /* while it is planned: another one whose kernels are to serve, where they can; else NULL */
} k_plan;

/* Plans a region for a device with features: HEDDLE_OK, or HEDDLE_EUNSUPPORTED with node, operator and why. The same
 * region gives the same plan. Memory through host->alloc; the plan keeps nothing of the region. Any thread. */
heddle_status k_plan_make(const heddle_host *host, const heddle_pregion *region, uint64_t features, k_plan *out,
                          heddle_error *err);
heddle_status k_plan_make_like(const heddle_host *host, const heddle_pregion *region, uint64_t features,
                               const k_plan *like, k_plan *out, heddle_error *err);

/* Bytes of its table, for heddle_poffer.kept_bytes; small ones are bookkeeping. */
static inline uint64_t k_plan_kept(const k_plan *plan) {
  return plan->table != NULL && plan->table_bytes >= 4096 ? plan->table_bytes : 0;
}

/* Where part i of the workspace begins; i of K_WORKSPACES: the bytes of all. */
static inline uint64_t k_workspace_at(const k_plan *plan, uint32_t i) {
  uint64_t at = 0;
  for (uint32_t k = 0; k < i; k++)
    at += (plan->part_bytes[k] + K_WORKSPACE_ALIGN - 1) / K_WORKSPACE_ALIGN * K_WORKSPACE_ALIGN;
  return at;
}
static inline uint64_t k_workspace_bytes(const k_plan *plan) {
  return k_workspace_at(plan, K_WORKSPACES);
}

void k_plan_free(k_plan *plan);

/* Every operator, for heddle_op_table.list. */
heddle_status k_plan_list(heddle_list_fn list, void *sink, heddle_error *err);

/* The texts, which cmake/embed_kernel.cmake makes of the files of this folder. A program is the prelude, params, one
 * text and the kernel of a chain, in that order, with the macros of k_code_text defined. NULL where there
 * is no such text. */
typedef struct k_text {
  const char *name; /* "contract" for contract.cl */
  const char *text; /* terminated */
  uint64_t bytes;   /* without the terminator */
} k_text;
const k_text *k_text_find(const char *name);

#endif
