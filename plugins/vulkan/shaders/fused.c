/* The family of chains: the template fused, with the chain's expression spliced in. */
#include "plugins/vulkan/vulkan.h"

#include "family.h"

#include "plugins/common/chain.h"
#include "plugins/vulkan/splice.h"

/* Makes items of four elements where they lie together, as fused.comp says; *wide gets a bit for each walked input in
 * which they do. False, and nothing is changed, where they do not. */
static bool make_fours(const heddle_chain *c, k_fused *p, uint32_t *wide) {
  const int64_t last = p->dims - 1;
  *wide = 0;
  if (c->walked == 0) {
    p->count = (p->count + 3) / 4;
    return true;
  }
  if (last < 0 || p->dim[last] % 4 != 0) return false;
  for (uint32_t k = 0; k < c->program.n_inputs; k++) {
    if (c->kind[k] != HEDDLE_CHAIN_WALKED || p->step[k][last] == 0) continue;
    if (p->step[k][last] != 1) return false;
    for (int64_t d = 0; d < last; d++) {
      if (p->step[k][d] % 4 != 0) return false;
    }
    *wide |= UINT32_C(1) << k;
  }
  p->count /= 4;
  p->dim[last] /= 4;
  for (uint32_t k = 0; k < c->program.n_inputs; k++) {
    for (int64_t d = 0; d < last && (*wide >> k & 1) != 0; d++) p->step[k][d] /= 4;
  }
  return true;
}

heddle_status vlk_fused(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                        heddle_error *err) {
  const heddle_chain *c = step->chain;
  uint32_t kinds = 0, wide = 0;
  k_fused p = {.count = step->params.flat.count};
  (void)info;
  if (c == NULL) return p_fail(err, HEDDLE_EINTERNAL, 0, "a fused step has no expression");
  heddle_status s = vlk_pick_code(out, err, "fused");
  if (s != HEDDLE_OK) return s;
  if (c->walked > 0) p = step->params.fused;
  const int64_t elements = p.count;
  const bool four = make_fours(c, &p, &wide);
  for (uint32_t k = 0; k < c->program.n_inputs; k++) kinds |= c->kind[k] << 2 * k;
  vlk_spec(out, kinds);
  vlk_spec(out, c->program.n_inputs);
  vlk_spec(out, c->walked > 0);
  vlk_spec(out, four);
  vlk_spec(out, wide);
  out->n_operands = K_INPUTS + 1;
  out->groups = ((uint64_t)p.count + K_GROUP - 1) / K_GROUP;
  vlk_param(out, p.count);
  vlk_param(out, elements);
  if (c->walked > 0) {
    vlk_param(out, p.dims);
    vlk_params(out, p.dim, K_DIMS);
    for (uint32_t k = 0; k < K_INPUTS; k++) vlk_params(out, p.step[k], K_DIMS);
  }
  if (host == NULL) return HEDDLE_OK;
  return vlk_splice(host, out->code->words, out->code->bytes, &c->program, &out->made, &out->made_bytes, err);
}
