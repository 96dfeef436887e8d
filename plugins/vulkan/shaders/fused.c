/* The family of chains: the template fused, with the chain's expression spliced in. */
#include "plugins/vulkan/vulkan.h"

#include "family.h"

#include "plugins/common/chain.h"
#include "plugins/vulkan/splice.h"

heddle_status vlk_fused(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                        heddle_error *err) {
  const heddle_chain *c = step->chain;
  uint32_t kinds = 0;
  (void)info;
  if (c == NULL) return p_fail(err, HEDDLE_EINTERNAL, 0, "a fused step has no expression");
  heddle_status s = vlk_pick_code(out, err, "fused");
  if (s != HEDDLE_OK) return s;
  for (uint32_t k = 0; k < c->program.n_inputs; k++) kinds |= c->kind[k] << 2 * k;
  vlk_spec(out, kinds);
  vlk_spec(out, c->walked > 0);
  if (c->walked == 0) {
    vlk_param(out, step->params.flat.count);
  } else {
    const k_fused *p = &step->params.fused;
    vlk_param(out, p->count);
    vlk_param(out, p->dims);
    vlk_params(out, p->dim, K_DIMS);
    for (uint32_t k = 0; k < K_INPUTS; k++) vlk_params(out, p->step[k], K_DIMS);
  }
  return vlk_splice(host, out->code->words, out->code->bytes, &c->program, &out->made, &out->made_bytes, err);
}
