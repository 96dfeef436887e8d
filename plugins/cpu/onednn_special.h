/* Regions that are computed by more than one primitive, or by none: attention, Softmax, means of images, Split, quantised
 * products and sums, Conv over images that change their size, and the packing of a kernel for Winograd. They are asked before
 * the walk over plans, and are prepared as what onednn_op only holds. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_SPECIAL_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_SPECIAL_H

#include "onednn_run.h"

/* The first member of a prepared region's struct, and of its launch's. bind as onednn_bind; free frees the whole. */
typedef struct onednn_special_launch onednn_special_launch;
struct onednn_special {
  uint64_t workspace;
  void (*free)(onednn_special *op);
  heddle_status (*bind)(onednn_special *op, void *const *inputs, void *const *outputs, void *workspace,
                        onednn_special_launch **out, heddle_error *err);
  bool resizes;                                                 /* its launches have resize */
  uint64_t (*each)(const onednn_special *op, uint32_t operand); /* as onednn_op_each; or NULL: 0 */
};
struct onednn_special_launch {
  void (*free)(onednn_special_launch *launch);
  heddle_status (*run)(onednn_special_launch *launch, heddle_error *err);
  heddle_status (*resize)(onednn_special_launch *launch, const heddle_pregion *region, void *const *inputs,
                          void *const *outputs, heddle_error *err); /* as onednn_resize; or NULL */
  void (*move)(onednn_special_launch *launch, void *const *inputs, void *const *outputs); /* as onednn_move; or NULL */
};

/* The offers for a region that is one: *made is their number, else 0; only as of onednn_query. */
heddle_status onednn_query_special(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                   uint32_t *made, bool *only, heddle_error *err);

/* Prepares an offer of a region that is one; *made as above, and *out stays NULL where there are not as many. operands as
 * of onednn_prepare. */
heddle_status onednn_prepare_special(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                     onednn_special **out, uint32_t *made, heddle_error *err);

/* Each kind's own of the two. */
heddle_status attention_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                              uint32_t *made, bool *only, heddle_error *err);
heddle_status attention_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                onednn_special **out, uint32_t *made, heddle_error *err);
heddle_status softmax_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                            uint32_t *made, bool *only, heddle_error *err);
heddle_status softmax_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                              onednn_special **out, uint32_t *made, heddle_error *err);
heddle_status mean_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                         uint32_t *made, bool *only, heddle_error *err);
heddle_status mean_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                           onednn_special **out, uint32_t *made, heddle_error *err);
heddle_status split_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                          uint32_t *made, bool *only, heddle_error *err);
heddle_status split_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                            onednn_special **out, uint32_t *made, heddle_error *err);
heddle_status onednn_int8_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                uint32_t *made, bool *only, heddle_error *err);
heddle_status onednn_int8_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                  onednn_special **out, uint32_t *made, heddle_error *err);
heddle_status patches_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                            uint32_t *made, bool *only, heddle_error *err);
heddle_status patches_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                              onednn_special **out, uint32_t *made, heddle_error *err);
heddle_status winograd_pack_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                  uint32_t *made, bool *only, heddle_error *err);
heddle_status winograd_pack_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                    onednn_special **out, uint32_t *made, heddle_error *err);

#endif
