/* float16 and bfloat16 through the kernels of float32. A wide layout is one of float32's for a tensor of halves: its
 * elements are float32. A region with halves is asked about, and prepared, as the same region of float32, and the offers
 * have wide layouts where halves were, so that values stay float32 from one node to the next; Reorders convert. */
#ifndef HEDDLE_PLUGINS_CPU_WIDE_H
#define HEDDLE_PLUGINS_CPU_WIDE_H

#include "onednn.h"

#include "plugins/common/region.h"

/* A region with float32 in place of halves. nodes, inputs and outputs are the original's. */
typedef struct wide_region {
  heddle_pregion region;
  const heddle_host *host;
  void *memory;
} wide_region;

/* Has a value of float16 or bfloat16; every one of its nodes may be computed with float32 in place of halves. */
bool wide_has_halves(const heddle_pregion *region);
bool wide_takes(const heddle_pregion *region);
/* A node whose meaning is how it rounds: Cast, and what quantises. */
bool wide_keeps(const heddle_pnode *node);

/* The layouts of values lose what makes them wide. Small constants have float32 bytes; larger weights of products have
 * data that is not NULL and not to be read, other constants none. free takes what make left. */
heddle_status wide_make(const heddle_host *host, const heddle_pregion *region, wide_region *out, heddle_error *err);
void wide_free(wide_region *wide);

/* One of the region's operands or results has a wide layout. */
bool wide_is_laid(const heddle_pregion *region);

/* An offer for the widened region, as one for the region: sink is a wide_offer. */
typedef struct wide_offer {
  const heddle_host *host;
  const heddle_pregion *region; /* the original */
  heddle_offer_fn offer;
  void *sink;
  uint32_t made;
} wide_offer;
heddle_status wide_pass(void *sink, const heddle_poffer *offer, heddle_error *err);

/* ---- wide_reorder.c: Reorder of halves. query is HEDDLE_EUNSUPPORTED, without words, for another region or where there is
 * no way between the layouts. */
typedef struct wide_reorder wide_reorder;
typedef struct wide_reorder_launch wide_reorder_launch;

bool wide_reorder_is(const heddle_pregion *region);
heddle_status wide_reorder_query(const heddle_host *host, const onednn *self, const heddle_pregion *region,
                                 heddle_offer_fn offer, void *sink, heddle_error *err);
heddle_status wide_reorder_prepare(const heddle_host *host, onednn *self, const heddle_pregion *region,
                                   cpu_operand *operands, wide_reorder **out, heddle_error *err);
void wide_reorder_free(wide_reorder *op);
uint64_t wide_reorder_workspace(const wide_reorder *op);
heddle_status wide_reorder_bind(wide_reorder *op, void *in, void *out, void *workspace, wide_reorder_launch **launch,
                                heddle_error *err);
void wide_reorder_launch_free(wide_reorder_launch *launch);
heddle_status wide_reorder_run(wide_reorder_launch *launch, heddle_error *err);

extern const heddle_layout_table wide_layout_table;

#endif
