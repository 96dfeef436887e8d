/* Operators: regions through the plans of plugins/common/kernels, whose steps are shaders here (shader.h). query makes
 * the plan and finds each step's shader, so that what cannot run is refused before; prepare compiles the pipelines and
 * puts tables and parameters on the device. */
#include "ops.h"

#include "plugins/common/region.h"

k_site vlk_site(const heddle_pinstance *self, const vlk_info *info) {
  return (k_site){
      .host = self->host,
      .name = "vulkan",
      .index = (uint32_t)(info - self->devices),
      .compute_units = info->compute_units,
      .features = (info->float64 && info->int64 ? K_HAS_F64 : 0) | (info->is_cpu ? K_HOST_CORES : 0),
      .workspace_align = info->alignment,
  };
}

/* ---------------------------------------------------------------- query */

/* Puts node and operator before why not. */
static heddle_status refused(const heddle_pregion *region, heddle_status status, heddle_error *err) {
  const heddle_pnode *node = region_node(region, 0);
  if (node != NULL && status != HEDDLE_OK)
    p_prefix(err, "node '%.200s': %.100s: ", node->name != NULL ? node->name : "", node->op != NULL ? node->op : "");
  return status;
}

static uint64_t bytes_of(const k_plan *plan, const vlk_half *half, const heddle_pregion *region, uint32_t arg) {
  uint64_t bytes = 0;
  if (arg == half->input) return half->bytes;
  if (arg == K_TABLE) return plan->table_bytes;
  if (K_IS_WORKSPACE(arg)) return plan->part_bytes[arg - K_WORKSPACE];
  const heddle_pvalue *value =
      region_value(region, (arg & K_OUTPUT) != 0 ? region->outputs[arg & ~K_OUTPUT] : region->inputs[arg]);
  return value != NULL && region_value_bytes(value, &bytes) ? bytes : 0;
}

/* A shader reaches so much of a buffer, and a descriptor so says. */
static heddle_status check_reach(const vlk_info *info, const k_plan *plan, const vlk_half *half,
                                 const heddle_pregion *region, heddle_error *err) {
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const k_step *step = &plan->steps[i];
    for (uint32_t k = 0; k < step->n_args && step->kind == K_STEP_KERNEL; k++) {
      const uint64_t bytes = bytes_of(plan, half, region, step->args[k]);
      if (bytes > info->max_storage_range)
        return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                      "an operand has %llu bytes, and a shader of this device reaches %llu; split it, or place the "
                      "node elsewhere",
                      (unsigned long long)bytes, (unsigned long long)info->max_storage_range);
    }
  }
  return HEDDLE_OK;
}

/* Every step's shader is there, and reaches its operands. */
static heddle_status check_steps(const heddle_host *host, const vlk_info *info, const k_plan *plan,
                                 const vlk_half *half, const heddle_pregion *region, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < plan->n_steps && s == HEDDLE_OK; i++) {
    vlk_shader shader;
    if (plan->steps[i].kind != K_STEP_KERNEL) continue;
    s = vlk_shader_of(host, info, &plan->steps[i], vlk_half_args(half, &plan->steps[i]), &shader, err);
    if (s == HEDDLE_OK) vlk_shader_free(host, &shader);
  }
  return s == HEDDLE_OK ? check_reach(info, plan, half, region, err) : s;
}

typedef struct asked {
  const heddle_host *host;
  const vlk_info *info;
} asked;

static heddle_status accept_plan(void *ctx, const heddle_pregion *region, k_plan *plan, uint64_t *workspace,
                                 heddle_error *err) {
  const asked *a = ctx;
  const vlk_half half = vlk_half_choose(a->info, region, plan);
  (void)workspace;
  return refused(region, check_steps(a->host, a->info, plan, &half, region, err), err);
}

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "vulkan:%u: there are %u devices", index, self->n_devices);
  asked a = {self->host, &self->devices[index]};
  const k_site site = vlk_site(self, a.info);
  return k_op_offer(&site, region, accept_plan, &a, offer, sink, err);
}

static heddle_status op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                             heddle_error *err) {
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "vulkan:%u: there are %u devices", index, self->n_devices);
  return k_plan_list(list, sink, err);
}

/* ---------------------------------------------------------------- prepare */

static void op_free(heddle_pop *op) {
  if (op == NULL) return;
  heddle_pdevice *dev = op->dev;
  const heddle_host *host = dev->host;
  vlk_count(&dev->live_objects, -1);
  k_op_finish(&op->k);
  if (op->constants != NULL) vlk_buffer_free(op->constants);
  host->free(host->ctx, op->steps);
  host->free(host->ctx, op);
}

/* Groups in x and y, each within 65535, with few left over. */
static heddle_status set_groups(const heddle_pop *op, uint64_t groups, vlk_step *step, heddle_error *err) {
  enum { MOST = 65535 };
  const uint64_t lines = groups / MOST + (groups % MOST != 0);
  if (lines > MOST) return p_fail(err, HEDDLE_EINTERNAL, 0, "vulkan:%u: a step has too many groups", op->dev->index);
  step->groups[0] = (uint32_t)(lines > 0 ? groups / lines + (groups % lines != 0) : 0);
  step->groups[1] = (uint32_t)lines;
  return HEDDLE_OK;
}

uint64_t vlk_stored_bytes(const heddle_pdevice *dev) {
  const uint64_t align = dev->info->alignment;
  return (VLK_PARAM_WORDS * sizeof(uint32_t) + align - 1) / align * align;
}

/* A shader that has stored parameters may have its first ones as push constants too, for another way through it. */
heddle_status vlk_step_set(const heddle_pop *op, const vlk_shader *shader, vlk_step *step, heddle_error *err) {
  step->params_at = UINT64_MAX;
  step->n_push = shader->n_params < VLK_PUSH_WORDS ? shader->n_params : VLK_PUSH_WORDS;
  memcpy(step->push, shader->params, step->n_push * sizeof(uint32_t));
  return set_groups(op, shader->groups, step, err);
}

/* image: the bytes of constants, growing; *used of them are taken. */
static heddle_status prepare_step(heddle_pop *op, uint32_t i, char *image, uint64_t *used, heddle_error *err) {
  const k_step *step = &op->k.plan.steps[i];
  vlk_step *out = &op->steps[i];
  vlk_shader shader;
  if (step->kind != K_STEP_KERNEL) return HEDDLE_OK;
  heddle_status s = vlk_shader_of(op->dev->host, op->dev->info, step, vlk_half_args(&op->half, step), &shader, err);
  if (s != HEDDLE_OK) return s;
  s = vlk_step_set(op, &shader, out, err);
  out->code = shader.code;
  out->is_made = shader.made != NULL;
  out->n_specs = shader.n_specs;
  memcpy(out->specs, shader.specs, sizeof out->specs);
  op->stores |= shader.n_params > VLK_PUSH_WORDS;
  if (shader.n_params > VLK_PUSH_WORDS) {
    out->params_at = *used;
    out->params_bytes = shader.n_params * sizeof(uint32_t);
    memcpy(image + *used, shader.params, (size_t)out->params_bytes);
    *used += (out->params_bytes + op->dev->info->alignment - 1) / op->dev->info->alignment * op->dev->info->alignment;
  }
  if (s == HEDDLE_OK) s = vlk_pipeline_get(op->dev, &shader, &out->pipeline, err);
  vlk_shader_free(op->dev->host, &shader);
  return s;
}

static heddle_status prepare_steps(heddle_pop *op, const heddle_pregion *region, heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  const heddle_host *host = dev->host;
  const uint64_t align = dev->info->alignment, each = vlk_stored_bytes(dev);
  void *image = NULL;
  op->half.at = (op->k.plan.table_bytes + align - 1) / align * align;
  uint64_t used = (op->half.at + op->half.bytes + align - 1) / align * align;
  heddle_status s = vlk_new(host, used + op->k.plan.n_steps * each + 1, "an operator", &image, err);
  if (s != HEDDLE_OK) return s;
  if (op->k.plan.table != NULL) memcpy(image, op->k.plan.table, (size_t)op->k.plan.table_bytes);
  vlk_half_write(&op->half, region, (char *)image + op->half.at);
  for (uint32_t i = 0; i < op->k.plan.n_steps && s == HEDDLE_OK; i++) s = prepare_step(op, i, image, &used, err);
  if (s == HEDDLE_OK && used > 0) {
    s = vlk_buffer_make(dev, HEDDLE_MEMORY_DEVICE, used, &op->constants, err);
    if (s == HEDDLE_OK) s = vlk_upload(dev, op->constants, image, used, err);
  }
  host->free(host->ctx, image);
  return s;
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  const k_site site = vlk_site(dev->self, dev->info);
  void *memory = NULL, *steps = NULL;
  heddle_status s = vlk_health(dev, err);
  if (s == HEDDLE_OK) s = k_op_memory(&site, 1, sizeof(heddle_pop), &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pop *op = memory;
  op->dev = dev;
  op->half.input = VLK_NO_INPUT;
  vlk_count(&dev->live_objects, 1);
  s = k_op_init(&site, region, offer, &op->k, err);
  if (s == HEDDLE_OK) op->half = vlk_half_choose(dev->info, region, &op->k.plan);
  if (op->half.input != VLK_NO_INPUT) op->k.bytes[op->half.input] = 0; /* a launch is not given it */
  op->k.plan.is_fixed |= op->half.input != VLK_NO_INPUT;
  if (s == HEDDLE_OK) s = k_op_memory(&site, op->k.plan.n_steps + 1, sizeof(vlk_step), &steps, err);
  op->steps = steps;
  if (s == HEDDLE_OK) s = vlk_nothing(dev, &op->nothing, err);
  if (s == HEDDLE_OK) s = refused(region, check_reach(dev->info, &op->k.plan, &op->half, region, err), err);
  if (s == HEDDLE_OK) s = refused(region, prepare_steps(op, region, err), err);
  op->k.plan.is_fixed |= op->stores && dev->info->noncoherent; /* a launch writes them to the host's memory */
  if (s != HEDDLE_OK) {
    op_free(op);
    return s;
  }
  *out = op;
  return HEDDLE_OK;
}

const heddle_op_table vlk_op_table = {
    .struct_size = sizeof vlk_op_table,
    .launch_free = vlk_launch_free,
    .op_free = op_free,
    .query = op_query,
    .prepare = op_prepare,
    .bind = vlk_bind,
    .run = vlk_run,
    .partition = vlk_partition,
    .list = op_list,
    .resize = vlk_op_resize,
};
