/* From a region of one node, or a chain of elementwise ones, to launches of the kernels in this folder: which text, built with which options, how many
 * work-groups, which parameters and operands. Nothing here knows a device's API; a plugin builds the text, and launches
 * what the plan says. Row-major operands only. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_H

#include "heddle/plugin.h"
#include "plugins/common/kernels/params.h"

enum { K_ARGS = K_INPUTS + 1, K_OPTIONS_BYTES = 160, K_PAIRS = 4 };

/* Which operand: a region input, or with K_OUTPUT added a region output. */
#define K_OUTPUT UINT32_C(0x80000000)

enum { K_STEP_KERNEL = 0, K_STEP_COPY = 1 };

/* A kernel's launch: groups work-groups of K_GROUP items, the parameters by value and then the operands. Or a copy of
 * all of args[0], copy_bytes, to byte copy_at of args[1]. */
typedef struct k_step {
  uint32_t kind;
  uint32_t n_args;
  uint32_t args[K_ARGS];
  const char *text; /* name of the text: k_text_find */
  const char *name; /* of the kernel in it, or in tail */
  char *tail;       /* text that comes behind it, of the plan's memory; NULL: none */
  char options[K_OPTIONS_BYTES];
  uint64_t groups;
  uint64_t params_bytes;
  union {
    k_flat flat;
    k_walk walk;
    k_matmul matmul;
    k_conv conv;
    k_pool pool;
    k_rows rows;
    k_fused fused;
  } params;
  uint64_t copy_bytes, copy_at;
} k_step;

typedef struct k_plan {
  const heddle_host *host;
  k_step *steps;
  uint32_t n_steps, cap_steps;
  uint32_t *input_flags; /* one per region input */
  int32_t pairs[2 * K_PAIRS];
  uint32_t n_pairs, reserved;
  double work; /* products, or elements moved: for an estimate of time */
} k_plan;

/* Plans a region: HEDDLE_OK, or HEDDLE_EUNSUPPORTED with node, operator and why. The same region gives the same plan.
 * Memory through host->alloc; the plan keeps nothing of the region. Any thread. */
heddle_status k_plan_make(const heddle_host *host, const heddle_pregion *region, k_plan *out, heddle_error *err);
void k_plan_free(k_plan *plan);

/* Every operator, for heddle_op_table.list. */
heddle_status k_plan_list(heddle_list_fn list, void *sink, heddle_error *err);

/* The texts, which cmake/embed_kernel.cmake makes of the files of this folder. A program is the prelude, params, one
 * text and a step's tail, in that order. NULL where there is no such text. */
typedef struct k_text {
  const char *name; /* "contract" for contract.cl */
  const char *text; /* terminated */
  uint64_t bytes;   /* without the terminator */
} k_text;
const k_text *k_text_find(const char *name);

#endif
