/* The family of pick.cl: Gather and Pad, which move words. */
#include "plugins/vulkan/vulkan.h"

#include "family.h"

heddle_status vlk_pick(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                       heddle_error *err) {
  const vlk_type *type = vlk_type_of(step, "T"), *index = vlk_type_of(step, "TI");
  (void)host;
  if (type == NULL) return p_fail(err, HEDDLE_EINTERNAL, 0, "a step's type is not known");
  heddle_status s = vlk_want_words(info, type->bytes, err);
  if (s != HEDDLE_OK) return s;
  if (index != NULL) {
    const k_gather *p = &step->params.gather;
    s = vlk_pick_code(out, err, "gather_%u", type->bytes);
    vlk_spec(out, index->bytes == 8);
    vlk_param(out, p->count);
    vlk_param(out, p->indices);
    vlk_param(out, p->axis);
    vlk_param(out, p->inner);
    return s;
  }
  const k_pad *p = &step->params.pad;
  s = vlk_pick_code(out, err, vlk_option_int(step, "FILL", 0) != 0 ? "pad_fill_%u" : "pad_%u", type->bytes);
  vlk_param(out, p->count);
  vlk_param(out, p->dims);
  vlk_param(out, p->words);
  vlk_param(out, p->mode);
  vlk_params(out, p->in, K_DIMS);
  vlk_params(out, p->out, K_DIMS);
  vlk_params(out, p->before, K_DIMS);
  return s;
}
