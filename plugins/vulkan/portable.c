/* Steps of portable texts (plugins/common/kernels/portable.cl): the plan's kernel, types and parameters are the variant,
 * so that nothing here knows an operator. */
#include "vulkan.h"

#include "shaders/family.h"

static heddle_status want_type(const vlk_info *info, uint8_t type, heddle_error *err) {
  heddle_status s = vlk_want_words(info, k_element_bytes[type], err);
  if (s != HEDDLE_OK) return s;
  if ((type == K_ELEMENT_I64 || type == K_ELEMENT_U64) && !info->int64)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the device has no integers of 64 bits in shaders");
  if (type == K_ELEMENT_F64 && !info->float64)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the device has no float64 in shaders");
  return HEDDLE_OK;
}

heddle_status vlk_portable(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                           heddle_error *err) {
  const k_code *code = &step->code;
  char name[64];
  (void)host;
  int used = snprintf(name, sizeof name, "%s", k_kernels[code->kernel].name);
  heddle_status s = vlk_want_turns(info, step->turns, err);
  for (uint32_t t = 0; t < code->n_types && s == HEDDLE_OK; t++) {
    used += snprintf(name + used, sizeof name - (size_t)used, "_%s", k_element_names[code->types[t]]);
    s = want_type(info, code->types[t], err);
  }
  if (s != HEDDLE_OK) return s;
  if (code->variant != 0) vlk_spec(out, (uint32_t)code->variant);
  const char *params = (const char *)&step->params;
  for (uint64_t at = 0; at < step->params_bytes;) {
    int64_t whole;
    float real;
    if (at < step->param_ints * sizeof whole) {
      memcpy(&whole, params + at, sizeof whole);
      vlk_param(out, whole);
      at += sizeof whole;
    } else {
      memcpy(&real, params + at, sizeof real);
      vlk_param_float(out, real);
      at += sizeof real;
    }
  }
  return vlk_pick_code(out, err, "%s", name);
}
