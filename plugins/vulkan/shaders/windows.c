/* The families of pool.cl, pool_where.cl and resize.cl. */
#include "plugins/vulkan/vulkan.h"

#include "family.h"

/* Does every place of a window, and of its padding, fit the 31 bits in which shaders count? */
static bool fits(const k_pool *p) {
  bool all = true;
  for (int d = 0; d < K_SPATIAL; d++) {
    const double reach = (double)p->out[d] * (double)p->stride[d] + (double)p->window[d] * (double)p->dilation[d];
    all = all && reach + (double)p->in[d] + (double)p->pad[d] + (double)p->pad_end[d] < 2147483647.0;
  }
  return all;
}

heddle_status vlk_pool(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                       heddle_error *err) {
  const k_pool *p = &step->params.pool;
  double inside[K_SPATIAL]; /* taps that are walked: those that lie in the input */
  for (int d = 0; d < K_SPATIAL; d++) {
    const int64_t fit = p->in[d] / p->dilation[d] + 1;
    inside[d] = (double)(fit < p->window[d] ? fit : p->window[d]);
  }
  const double turns = inside[0] * (inside[1] * (inside[2] + 1) + 1);
  (void)host;
  heddle_status s = vlk_want_turns(info, turns, err);
  if (s != HEDDLE_OK) return s;
  if (!fits(p)) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "a window reaches over more than its shaders count");
  vlk_spec(out, (uint32_t)vlk_option_int(step, "COLUMN_MAJOR", 0));
  vlk_param(out, p->count);
  vlk_param(out, p->include_pad);
  vlk_params(out, p->in, K_SPATIAL);
  vlk_params(out, p->out, K_SPATIAL);
  vlk_params(out, p->window, K_SPATIAL);
  vlk_params(out, p->stride, K_SPATIAL);
  vlk_params(out, p->dilation, K_SPATIAL);
  vlk_params(out, p->pad, K_SPATIAL);
  vlk_params(out, p->pad_end, K_SPATIAL);
  return vlk_pick_code(out, err, "%s", step->name);
}

heddle_status vlk_resize(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                         heddle_error *err) {
  const k_resize *p = &step->params.resize;
  (void)host;
  heddle_status s = vlk_want_turns(info, (double)p->sums, err);
  if (s != HEDDLE_OK) return s;
  vlk_spec(out, (uint32_t)p->dims);
  vlk_param(out, p->count);
  vlk_param(out, p->sums);
  vlk_params(out, p->in, K_DIMS);
  vlk_params(out, p->out, K_DIMS);
  vlk_params(out, p->taps, K_DIMS);
  vlk_params(out, p->at, K_DIMS);
  vlk_param_float(out, p->outside);
  return vlk_pick_code(out, err, "resize");
}
