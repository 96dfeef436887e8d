/* The families whose kernels fold or share a row: those of rows.cl, reduce.cl, norm.cl and along.cl. Where a group has a
 * row, its items add up by subgroups where the device can. */
#include "plugins/vulkan/vulkan.h"

#include "family.h"

bool vlk_adds_subgroups(const vlk_info *info) {
  const uint32_t wanted = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  return info->subgroup_size > 0 && (info->subgroup_ops & wanted) == wanted;
}

static bool by_group(const k_step *step) {
  const size_t length = strlen(step->name), tail = strlen("_group");
  return length > tail && strcmp(step->name + length - tail, "_group") == 0;
}

/* The end of a variant's name: who has a row. */
static const char *who(const vlk_info *info, const k_step *step) {
  return !by_group(step) ? "_item" : vlk_adds_subgroups(info) ? "_subgroups" : "_group";
}

static bool has(const k_step *step, const char *key) {
  char word[VLK_OPTION_BYTES];
  return vlk_option(step, key, word);
}

heddle_status vlk_rows(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                       heddle_error *err) {
  const k_rows *p = &step->params.rows;
  (void)host;
  vlk_spec(out, has(step, "LOG"));
  vlk_param(out, p->rows);
  vlk_param(out, p->n);
  vlk_param(out, p->inner);
  return vlk_pick_code(out, err, "rows%s", who(info, step));
}

heddle_status vlk_reduce(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                         heddle_error *err) {
  static const char *const words[] = {"R_SUM", "R_MEAN", "R_MAX", "R_MIN", "R_PROD"}; /* as reduce.comp counts them */
  const k_reduce *p = &step->params.reduce;
  const vlk_type *type = vlk_type_of(step, "TYPE");
  uint32_t what = 0;
  (void)host;
  heddle_status s = vlk_want_type(info, type, err);
  if (s != HEDDLE_OK) return s;
  if (type->kind != VLK_REAL && !info->int64)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "the device has no integers of 64 bits, in which whole numbers are gathered");
  while (what < 4 && !has(step, words[what])) what++;
  vlk_spec(out, what);
  vlk_param(out, p->results);
  vlk_param(out, p->count);
  vlk_param(out, p->outer);
  vlk_param(out, p->row);
  vlk_param(out, p->row_step);
  vlk_param(out, p->by_row);
  vlk_param(out, p->kept_dims);
  vlk_params(out, p->kept_dim, K_DIMS);
  vlk_params(out, p->kept_step, K_DIMS);
  vlk_param(out, p->dims);
  vlk_params(out, p->dim, K_DIMS);
  vlk_params(out, p->step, K_DIMS);
  return vlk_pick_code(out, err, "reduce%s_%s", by_group(step) ? "_group" : "_item", type->name);
}

heddle_status vlk_norm(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                       heddle_error *err) {
  const k_norm *p = &step->params.norm;
  (void)host;
  vlk_param(out, p->rows);
  vlk_param(out, p->n);
  vlk_param(out, p->channels);
  vlk_param(out, p->size);
  vlk_param_float(out, p->epsilon);
  vlk_param_float(out, p->alpha);
  vlk_param_float(out, p->beta);
  vlk_param_float(out, p->bias);
  if (strncmp(step->name, "norm_", strlen("norm_")) != 0) return vlk_pick_code(out, err, "%s", step->name);
  if (!has(step, "LAYER")) return vlk_pick_code(out, err, "instance%s", who(info, step));
  return vlk_pick_code(out, err, "layer%s%s%s%s", who(info, step), has(step, "HAS_BIAS") ? "_bias" : "",
                       has(step, "HAS_MEAN") ? "_mean" : "", has(step, "HAS_LESS") ? "_less" : "");
}

heddle_status vlk_along(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                        heddle_error *err) {
  const k_along *p = &step->params.along;
  const vlk_type *type = vlk_type_of(step, "T");
  (void)host;
  heddle_status s = vlk_want_type(info, type, err);
  if (s != HEDDLE_OK) return s;
  vlk_param(out, p->columns);
  vlk_param(out, p->n);
  vlk_param(out, p->inner);
  vlk_param(out, p->k);
  vlk_param(out, p->largest);
  vlk_param(out, p->last);
  return vlk_pick_code(out, err, "%s_%s", step->name, type->name);
}
