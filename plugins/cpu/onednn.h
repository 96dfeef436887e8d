/* What the rest of the cpu plugin knows of its oneDNN half: offers for regions, prepared ones, launches, layouts. Built
 * without oneDNN, or with the setting cpu.onednn=off, nothing is ever offered and everything else is unreachable. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_H

#include "heddle/plugin.h"

#include <stdbool.h>

typedef struct onednn onednn;               /* of an instance; for any thread */
typedef struct onednn_op onednn_op;         /* a prepared region; immutable, for any thread */
typedef struct onednn_launch onednn_launch; /* with its operands; one thread at a time */

/* What bind must find behind an operand. bytes 0: no buffer is needed. */
typedef struct cpu_operand {
  uint64_t bytes, align;
} cpu_operand;

#ifdef HEDDLE_ONEDNN

enum { CPU_ONEDNN = 1 }; /* what follows may do something */

/* Reads the setting "onednn" (auto, always, off; HEDDLE_EINVAL for another word) and starts the engine; *out is NULL
 * where it is off. close takes NULL. */
heddle_status onednn_open(const heddle_host *host, onednn **out, heddle_error *err);
void onednn_close(onednn *self);

/* Adds its version to a description; nothing where self is NULL. */
void onednn_describe(const onednn *self, char *text, uint64_t bytes);

/* Is there anything that it would do in bfloat16 on this CPU? self may be NULL. */
bool onednn_is_fast(const onednn *self);

/* Hands over the offers that oneDNN makes for a region, best first, and says how many. only: where there is one, the
 * reference kernels need not be offered beside it. Pure. */
heddle_status onednn_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                           uint32_t *made, bool *only, heddle_error *err);

/* Prepares offer number `offer` of a region; *out stays NULL where oneDNN made fewer, and *made says how many.
 * operands: one per region input, then one per output. */
heddle_status onednn_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                             onednn_op **out, uint32_t *made, heddle_error *err);
void onednn_op_free(onednn_op *op);
uint64_t onednn_workspace(const onednn_op *op);
bool onednn_op_resizes(const onednn_op *op); /* its launches can be resized */

/* Bytes for each position of an operand's first dimension, where launches are resized along it alone; else 0. operand: an
 * input, or behind them an output. */
uint64_t onednn_op_each(const onednn_op *op, uint32_t operand);

/* addresses are of the region's inputs, its outputs and the workspace, and outlive the launch. */
heddle_status onednn_bind(onednn_op *op, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_launch **out, heddle_error *err);
void onednn_launch_free(onednn_launch *launch);
heddle_status onednn_run(onednn_launch *launch, heddle_error *err);

/* heddle_op_table.resize, with the addresses of the new operands. */
heddle_status onednn_resize(onednn_launch *launch, const heddle_pregion *region, void *const *inputs,
                            void *const *outputs, heddle_error *err);

/* Proposes Conv, ConvTranspose, MatMul and Gemm with what can be computed on their results on the way out. taken: one
 * byte a node of the region; set nodes are left alone, proposed ones get set. Pure. */
heddle_status onednn_propose(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                             heddle_propose_fn propose, void *sink, heddle_error *err);

extern const heddle_layout_table onednn_layout_table;

#else

enum { CPU_ONEDNN = 0 };

static inline heddle_status onednn_open(const heddle_host *host, onednn **out, heddle_error *err) {
  (void)host, (void)err;
  *out = NULL;
  return HEDDLE_OK;
}

static inline void onednn_close(onednn *self) {
  (void)self;
}

static inline void onednn_describe(const onednn *self, char *text, uint64_t bytes) {
  (void)self, (void)text, (void)bytes;
}

static inline bool onednn_is_fast(const onednn *self) {
  (void)self;
  return false;
}

static inline heddle_status onednn_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer,
                                         void *sink, uint32_t *made, bool *only, heddle_error *err) {
  (void)self, (void)region, (void)offer, (void)sink, (void)err;
  *made = 0;
  *only = false;
  return HEDDLE_OK;
}

static inline heddle_status onednn_prepare(onednn *self, const heddle_pregion *region, uint32_t offer,
                                           cpu_operand *operands, onednn_op **out, uint32_t *made, heddle_error *err) {
  (void)self, (void)region, (void)offer, (void)operands, (void)err;
  *out = NULL;
  *made = 0;
  return HEDDLE_OK;
}

static inline void onednn_op_free(onednn_op *op) {
  (void)op;
}

static inline bool onednn_op_resizes(const onednn_op *op) {
  (void)op;
  return false;
}

static inline uint64_t onednn_op_each(const onednn_op *op, uint32_t operand) {
  (void)op, (void)operand;
  return 0;
}

static inline uint64_t onednn_workspace(const onednn_op *op) {
  (void)op;
  return 0;
}

static inline heddle_status onednn_bind(onednn_op *op, void *const *inputs, void *const *outputs, void *workspace,
                                        onednn_launch **out, heddle_error *err) {
  (void)op, (void)inputs, (void)outputs, (void)workspace, (void)err;
  *out = NULL;
  return HEDDLE_OK;
}

static inline void onednn_launch_free(onednn_launch *launch) {
  (void)launch;
}

static inline heddle_status onednn_run(onednn_launch *launch, heddle_error *err) {
  (void)launch, (void)err;
  return HEDDLE_OK;
}

static inline heddle_status onednn_resize(onednn_launch *launch, const heddle_pregion *region, void *const *inputs,
                                          void *const *outputs, heddle_error *err) {
  (void)launch, (void)region, (void)inputs, (void)outputs, (void)err;
  return HEDDLE_EUNSUPPORTED;
}

static inline heddle_status onednn_propose(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                                           heddle_propose_fn propose, void *sink, heddle_error *err) {
  (void)self, (void)region, (void)taken, (void)propose, (void)sink, (void)err;
  return HEDDLE_OK;
}

#endif

#endif
