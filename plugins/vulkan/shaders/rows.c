/* The families whose kernels fold or share a row: those of rows.cl, reduce.cl, norm.cl and along.cl. Where a group has a
 * row, its items add up by subgroups where the device can. */
#include "plugins/vulkan/vulkan.h"

#include "family.h"

enum { TURN = 4 }; /* BLOCK of total.glsl: elements that a turn of a loop takes */

bool vlk_adds_subgroups(const vlk_info *info) {
  const uint32_t wanted = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  return info->subgroup_size > 0 && (info->subgroup_ops & wanted) == wanted;
}

static bool by_group(const k_step *step) {
  const uint32_t kernel = step->code.kernel;
  return kernel == KERNEL_softmax_group || kernel == KERNEL_reduce_group || kernel == KERNEL_norm_group;
}

heddle_status vlk_want_turns(const vlk_info *info, double turns, heddle_error *err) {
  enum { MOST = 65000 };
  if (!info->is_cpu || turns <= MOST) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "a shader would loop %.0f times, and this device's driver stops at 65535",
                turns);
}

/* Turns of the three loops over a row of n elements. */
static double row_turns(const k_step *step, int64_t n) {
  return 3.0 * ((double)n / (by_group(step) ? K_GROUP * TURN : TURN) + 1.0);
}

/* The end of a variant's name: who has a row. */
static const char *who(const vlk_info *info, const k_step *step) {
  return !by_group(step) ? "_item" : vlk_adds_subgroups(info) ? "_subgroups" : "_group";
}

heddle_status vlk_rows(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                       heddle_error *err) {
  const k_rows *p = &step->params.rows;
  (void)host;
  heddle_status s = vlk_want_turns(info, row_turns(step, p->n), err);
  if (s != HEDDLE_OK) return s;
  vlk_spec(out, vlk_has(step, K_LOG));
  vlk_param(out, p->rows);
  vlk_param(out, p->n);
  vlk_param(out, p->inner);
  return vlk_pick_code(out, err, "rows%s", who(info, step));
}

heddle_status vlk_reduce(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                         heddle_error *err) {
  static const uint32_t flags[] = {K_R_SUM, K_R_MEAN, K_R_MAX, K_R_MIN, K_R_PROD}; /* as reduce.comp counts them */
  const k_reduce *p = &step->params.reduce;
  const vlk_type *type = vlk_type_of(step, 0);
  uint32_t what = 0;
  (void)host;
  heddle_status s = vlk_want_type(info, type, err);
  if (s != HEDDLE_OK) return s;
  if (type->kind != VLK_REAL && !info->int64)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "the device has no integers of 64 bits, in which whole numbers are gathered");
  const double shares = by_group(step) ? K_GROUP : 1, rows = (double)p->outer / (p->by_row ? 1 : shares) + 1;
  s = vlk_want_turns(info, rows * ((double)p->row / (TURN * (p->by_row ? shares : 1)) + (double)p->dims + 2), err);
  if (s != HEDDLE_OK) return s;
  while (what < 4 && !vlk_has(step, flags[what])) what++;
  vlk_spec(out, what);
  vlk_param(out, p->results);
  vlk_param(out, p->count);
  vlk_param(out, p->outer);
  vlk_param(out, p->row);
  vlk_param(out, p->row_step);
  vlk_param(out, p->by_row);
  vlk_param(out, (int32_t)(uint32_t)p->start);
  vlk_param(out, p->start >> 32);
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
  const uint32_t kernel = step->code.kernel;
  const bool rows = kernel == KERNEL_norm_group || kernel == KERNEL_norm_item;
  (void)host;
  heddle_status s = vlk_want_turns(info,
                                   rows                   ? row_turns(step, p->n)
                                   : kernel == KERNEL_lrn ? (double)p->size
                                                          : 0,
                                   err);
  if (s != HEDDLE_OK) return s;
  vlk_param(out, p->rows);
  vlk_param(out, p->n);
  vlk_param(out, p->channels);
  vlk_param(out, p->size);
  vlk_param_float(out, p->epsilon);
  vlk_param_float(out, p->alpha);
  vlk_param_float(out, p->beta);
  vlk_param_float(out, p->bias);
  if (!rows) return vlk_pick_code(out, err, "%s", k_kernels[kernel].name);
  if (!vlk_has(step, K_LAYER)) return vlk_pick_code(out, err, "instance%s", who(info, step));
  return vlk_pick_code(out, err, "layer%s%s%s%s", who(info, step), vlk_has(step, K_HAS_BIAS) ? "_bias" : "",
                       vlk_has(step, K_HAS_MEAN) ? "_mean" : "", vlk_has(step, K_HAS_LESS) ? "_less" : "");
}

/* Turns of the loops of an item that keeps a heap, at worst; and of a group's where it picks. */
static double heap_turns(const k_along *p) {
  double levels = 2;
  for (int64_t k = p->k; k > 1; k /= 2) levels++;
  return ((double)p->n + 2.0 * (double)p->k) * levels;
}

static double pick_turns(const k_along *p) {
  return (double)p->k * ((double)p->n / (K_GROUP * TURN) + 2.0);
}

heddle_status vlk_along(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                        heddle_error *err) {
  const k_along *p = &step->params.along;
  const vlk_type *type = vlk_type_of(step, 0);
  (void)host;
  heddle_status s = vlk_want_type(info, type, err);
  if (s != HEDDLE_OK) return s;
  const uint32_t kernel = step->code.kernel;
  const char *name = k_kernels[kernel].name;
  double turns = (double)p->n; /* top_rank and arg_item */
  if (kernel == KERNEL_arg_group) turns /= 4 * K_GROUP;
  if (kernel == KERNEL_top_heap) {
    const bool pick = info->is_cpu && vlk_want_turns(info, heap_turns(p), NULL) != HEDDLE_OK;
    turns = pick ? pick_turns(p) : heap_turns(p);
    if (pick) out->groups = (uint64_t)p->columns;
    if (pick) name = "top_pick";
  }
  s = vlk_want_turns(info, turns, err);
  if (s != HEDDLE_OK) return s;
  vlk_param(out, p->columns);
  vlk_param(out, p->n);
  vlk_param(out, p->inner);
  vlk_param(out, p->k);
  vlk_param(out, p->largest);
  vlk_param(out, p->last);
  vlk_param(out, p->nan_first);
  return vlk_pick_code(out, err, "%s_%s", name, type->name);
}
