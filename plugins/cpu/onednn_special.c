/* Which regions are computed in a way of their own: each kind is asked in turn. */
#include "onednn_special.h"

static const struct {
  heddle_status (*query)(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                         uint32_t *made, bool *only, heddle_error *err);
  heddle_status (*prepare)(onednn *self, const heddle_pregion *region, cpu_operand *operands, onednn_special **out,
                           heddle_error *err);
} kinds[] = {{attention_query, attention_prepare}, {softmax_query, softmax_prepare}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

heddle_status onednn_query_special(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                   uint32_t *made, bool *only, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < KINDS && self != NULL && s == HEDDLE_OK && *made == 0; i++)
    s = kinds[i].query(self, region, offer, sink, made, only, err);
  return s;
}

heddle_status onednn_prepare_special(onednn *self, const heddle_pregion *region, cpu_operand *operands,
                                     onednn_special **out, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < KINDS && self != NULL && s == HEDDLE_OK && *out == NULL; i++)
    s = kinds[i].prepare(self, region, operands, out, err);
  return s;
}
