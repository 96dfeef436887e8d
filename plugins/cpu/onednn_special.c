/* Which regions are computed in a way of their own: each kind is asked in turn. */
#include "onednn_special.h"

static const struct {
  heddle_status (*query)(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                         uint32_t *made, bool *only, heddle_error *err);
  heddle_status (*prepare)(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                           onednn_special **out, uint32_t *made, heddle_error *err);
} kinds[] = {{attention_query, attention_prepare},
             {softmax_query, softmax_prepare},
             {mean_query, mean_prepare},
             {split_query, split_prepare},
             {onednn_int8_query, onednn_int8_prepare},
             {patches_query, patches_prepare},
             {winograd_pack_query, winograd_pack_prepare}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

heddle_status onednn_query_special(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                   uint32_t *made, bool *only, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < KINDS && self != NULL && s == HEDDLE_OK && *made == 0; i++)
    s = kinds[i].query(self, region, offer, sink, made, only, err);
  return s;
}

heddle_status onednn_prepare_special(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                     onednn_special **out, uint32_t *made, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < KINDS && self != NULL && s == HEDDLE_OK && *made == 0; i++)
    s = kinds[i].prepare(self, region, offer, operands, out, made, err);
  return s;
}
