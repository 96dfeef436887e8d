/* Operators: regions through the kernels of plugins/common/kernels, or a library of the vendor's where it takes a step.
 * query makes the plan and asks whether it could be compiled; prepare builds the programs of an operator's plan. */
#include "ops.h"

#include "plugins/common/region.h"

/* ---------------------------------------------------------------- query */

/* Can programs for this device be built? */
static heddle_status check_compiler(heddle_pinstance *self, const gpu_info *info, heddle_error *err) {
  const gpu_vendor *vendor = self->vendor;
  char words[128] = "";
  if (info->max_group < K_GROUP)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: its blocks have %u threads at most, and kernels need %d",
                  vendor->name, info->index, info->max_group, K_GROUP);
  if (vendor->can_compile != NULL) return vendor->can_compile(self, info, err);
  vendor->compiler_words(self, words, sizeof words);
  if (words[0] != '\0') return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: there is no compiler for %s's kernels", vendor->name, info->index,
                vendor->api);
}

/* A grid has so many blocks along x. */
static heddle_status check_groups(const heddle_pinstance *self, const gpu_info *info, const heddle_pregion *region,
                                  const k_plan *plan, heddle_error *err) {
  const heddle_pnode *node = region_node(region, 0);
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    if (plan->steps[i].kind != K_STEP_KERNEL || plan->steps[i].groups <= self->vendor->launch_limit_x) continue;
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "node '%.200s': %.100s: it needs a grid of %llu blocks, and %s:%u takes %u; split it, or place the "
                  "node elsewhere",
                  node != NULL && node->name != NULL ? node->name : "", node != NULL ? node->op : "",
                  (unsigned long long)plan->steps[i].groups, self->vendor->name, info->index,
                  self->vendor->launch_limit_x);
  }
  return HEDDLE_OK;
}

/* Steps run one after the other, so that they share what the library wants. A plan's own is never beside it. */
static uint64_t workspace_of(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, const k_plan *plan) {
  uint64_t most = k_workspace_bytes(plan);
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    if (plan->steps[i].kind != K_STEP_KERNEL) continue;
    const uint64_t bytes = gpu_library_workspace(self, index, region, &plan->steps[i]);
    if (bytes > most) most = bytes;
  }
  return most;
}

k_site gpu_site(const heddle_pinstance *self, const gpu_info *info) {
  return (k_site){
      .host = self->host,
      .name = self->vendor->name,
      .index = info->index,
      .compute_units = info->compute_units,
      .features = K_HAS_F64, /* all devices that these drivers take */
      .workspace_align = info->alignment > GPU_WORKSPACE_ALIGN ? info->alignment : GPU_WORKSPACE_ALIGN,
  };
}

typedef struct asked {
  heddle_pinstance *self;
  const gpu_info *info;
} asked;

static heddle_status accept_plan(void *ctx, const heddle_pregion *region, k_plan *plan, uint64_t *workspace,
                                 heddle_error *err) {
  const asked *a = ctx;
  heddle_status s = check_groups(a->self, a->info, region, plan, err);
  if (s == HEDDLE_OK) *workspace = workspace_of(a->self, a->info->index, region, plan);
  return s;
}

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "%s:%u: there are %u devices", self->vendor->name, index, self->n_devices);
  asked a = {self, &self->devices[index]};
  heddle_status s = check_compiler(self, a.info, err);
  if (s != HEDDLE_OK) return s;
  const k_site site = gpu_site(self, a.info);
  return k_op_offer(&site, region, accept_plan, &a, offer, sink, err);
}

static heddle_status op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                             heddle_error *err) {
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "%s:%u: there are %u devices", self->vendor->name, index, self->n_devices);
  return k_plan_list(list, sink, err);
}

/* ---------------------------------------------------------------- prepare */

static void op_free(heddle_pop *op) {
  if (op == NULL) return;
  heddle_pdevice *dev = op->dev;
  const heddle_host *host = dev->host;
  for (uint32_t i = 0; op->by_library != NULL && i < op->k.plan.n_steps; i++) gpu_library_free(op->by_library[i]);
  if (op->table != 0) gpu_block_put(dev, op->table);
  gpu_count(&dev->live_objects, -1);
  k_op_finish(&op->k);
  host->free(host->ctx, op->functions);
  host->free(host->ctx, op->by_library);
  host->free(host->ctx, op);
}

/* The table is on the device before prepare returns, for any stream. */
static heddle_status make_table(heddle_pop *op, heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  gpu_scope scope;
  heddle_status s = gpu_block_get(dev, op->k.plan.table_bytes, &op->table, err);
  if (s != HEDDLE_OK) {
    op->table = 0;
    return s;
  }
  s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = dev->driver->copy_h2d(op->table, op->k.plan.table, (size_t)op->k.plan.table_bytes, dev->service);
  gpu_leave(dev, &scope);
  s = gpu_check(dev, code, "write an operator's table", err);
  return s == HEDDLE_OK ? gpu_stream_wait(dev, dev->service, UINT64_MAX, err) : s;
}

static heddle_status find_function(heddle_pdevice *dev, void *module, const char *name, void **out, heddle_error *err) {
  char what[96];
  gpu_scope scope;
  heddle_status s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = gpu_function_get(dev, module, name, out);
  gpu_leave(dev, &scope);
  snprintf(what, sizeof what, "find the kernel '%.60s'", name);
  return gpu_check(dev, code, what, err);
}

static heddle_status prepare_step(heddle_pop *op, const heddle_pregion *region, uint32_t i, heddle_error *err) {
  const k_step *step = &op->k.plan.steps[i];
  void *module = NULL;
  if (step->kind != K_STEP_KERNEL) return HEDDLE_OK;
  heddle_status s = gpu_library_prepare(op->dev, region, step, &op->by_library[i], err);
  if (s != HEDDLE_OK) op->by_library[i] = NULL;
  if (s != HEDDLE_OK || op->by_library[i] != NULL) return s;
  s = gpu_program_get(op->dev, &step->code, step->chain, &module, err);
  if (s != HEDDLE_OK) return s;
  return find_function(op->dev, module, k_kernels[step->code.kernel].name, &op->functions[i], err);
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  const k_site site = gpu_site(dev->self, dev->info);
  void *memory = NULL, *functions = NULL, *by_library = NULL;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = k_op_memory(&site, 1, sizeof(heddle_pop), &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pop *op = memory;
  op->dev = dev;
  gpu_count(&dev->live_objects, 1);
  s = k_op_init(&site, region, offer, &op->k, err);
  if (s == HEDDLE_OK) s = k_op_memory(&site, op->k.plan.n_steps + 1, sizeof(void *), &functions, err);
  op->functions = functions;
  if (s == HEDDLE_OK) s = k_op_memory(&site, op->k.plan.n_steps + 1, sizeof(void *), &by_library, err);
  op->by_library = by_library;
  if (s == HEDDLE_OK) op->workspace_bytes = workspace_of(dev->self, dev->index, region, &op->k.plan);
  for (uint32_t i = 0; i < op->k.plan.n_steps && s == HEDDLE_OK; i++) {
    s = prepare_step(op, region, i, err);
    op->k.plan.is_fixed |= op->by_library[i] != NULL; /* which a library has made ready for these sizes */
  }
  if (s == HEDDLE_OK && op->k.plan.table != NULL) s = make_table(op, err);
  if (s != HEDDLE_OK) {
    op_free(op);
    return s;
  }
  *out = op;
  return HEDDLE_OK;
}

const heddle_op_table gpu_op_table = {
    .struct_size = sizeof gpu_op_table,
    .launch_free = gpu_launch_free,
    .op_free = op_free,
    .query = op_query,
    .prepare = op_prepare,
    .bind = gpu_op_bind,
    .run = gpu_op_run,
    .partition = gpu_partition,
    .list = op_list,
    .resize = gpu_op_resize,
};
