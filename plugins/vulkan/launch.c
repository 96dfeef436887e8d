/* Launches of operators: bind writes the descriptors of each step, so that run only records commands. */
#include "ops.h"

#include <string.h>

/* A step in its place. */
typedef struct dispatch {
  const vlk_step *step; /* NULL: a copy */
  VkDescriptorSet set;
  VkBuffer src, dst;
  VkBufferCopy copy;
} dispatch;

/* What run reads comes first. pool: the descriptors; VK_NULL_HANDLE: nothing but copies. What follows is for a resize:
 * operands at their places, and steps of its own with what they store, for the present shapes and for others. */
struct heddle_plaunch {
  heddle_pstream *stream;
  heddle_pdevice *dev;
  uint32_t n_dispatches, reserved;
  dispatch *dispatches;
  VkDescriptorPool pool;
  heddle_pop *op;
  VkDescriptorBufferInfo *operands;
  vlk_step *steps;
  heddle_pbuffer *stored;
  k_sized sized;
};

void vlk_launch_free(heddle_plaunch *launch) {
  if (launch == NULL) return;
  heddle_pdevice *dev = launch->dev;
  const heddle_host *host = dev->host;
  vlk_count(&dev->live_objects, -1);
  dev->vk.DestroyDescriptorPool(dev->device, launch->pool, NULL);
  const k_site site = vlk_site(dev->self, dev->info);
  k_sized_finish(&site, &launch->sized);
  host->free(host->ctx, launch->operands);
  host->free(host->ctx, launch->steps);
  if (launch->stored != NULL) vlk_buffer_free(launch->stored);
  host->free(host->ctx, launch->dispatches);
  host->free(host->ctx, launch);
}

/* ---------------------------------------------------------------- operands */

typedef struct binding {
  heddle_pop *op;
  const k_op *k;               /* the op's, or that of other shapes */
  VkDescriptorBufferInfo *all; /* at their places */
} binding;

static heddle_status reach(void *ctx, uint32_t place, const heddle_pslice *slice, const char *what, heddle_error *err) {
  const binding *to = ctx;
  heddle_pdevice *dev = to->op->dev;
  const heddle_pbuffer *b = slice->buffer;
  if (b->dev != dev || b->kind == HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: %s must be memory of kind device or unified", dev->index, what);
  if ((b->base + slice->offset) % dev->info->alignment != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: %s begins at %llu, no multiple of %llu", dev->index, what,
                  (unsigned long long)slice->offset, (unsigned long long)dev->info->alignment);
  const uint64_t bytes = to->k->bytes[place] < slice->bytes ? to->k->bytes[place] : slice->bytes;
  to->all[place] = (VkDescriptorBufferInfo){b->buffer, b->base + slice->offset, bytes};
  return vlk_range(dev, b, slice->offset, slice->bytes, what, err);
}

static VkDescriptorBufferInfo *operand_of(const heddle_pop *op, VkDescriptorBufferInfo *operands, uint32_t arg) {
  return &operands[k_op_place(&op->k, arg)];
}

/* What is not in a slice: the table, and weights kept as float16. */
static void place_constants(const heddle_pop *op, VkDescriptorBufferInfo *all) {
  const heddle_pbuffer *c = op->constants;
  if (op->k.plan.table != NULL)
    all[k_op_table(&op->k)] = (VkDescriptorBufferInfo){c->buffer, c->base, op->k.plan.table_bytes};
  if (op->half.input != VLK_NO_INPUT)
    all[op->half.input] = (VkDescriptorBufferInfo){c->buffer, c->base + op->half.at, op->half.bytes};
}

/* ---------------------------------------------------------------- bind */

static heddle_status make_pool(const heddle_pop *op, heddle_plaunch *launch, heddle_error *err) {
  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0};
  VkDescriptorPoolCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .poolSizeCount = 1, .pPoolSizes = &size};
  for (uint32_t i = 0; i < op->k.plan.n_steps; i++) {
    if (op->steps[i].pipeline == NULL) continue;
    info.maxSets++;
    size.descriptorCount += op->steps[i].pipeline->n_operands + 1;
  }
  if (info.maxSets == 0) return HEDDLE_OK;
  const VkResult code = op->dev->vk.CreateDescriptorPool(op->dev->device, &info, NULL, &launch->pool);
  if (code != VK_SUCCESS) launch->pool = VK_NULL_HANDLE;
  return vlk_check(op->dev, code, "make room for an operator's operands", err);
}

/* The operands of step i where its shader finds them. made: the step as it is launched, with parameters in stored. */
static void set_operands(const heddle_pop *op, uint32_t i, const vlk_step *made, const heddle_pbuffer *stored,
                         VkDescriptorBufferInfo *operands, VkDescriptorSet set) {
  const k_step *step = &op->k.plan.steps[i];
  VkDescriptorBufferInfo nothing = {op->nothing->buffer, op->nothing->base, op->nothing->bytes}, params = nothing;
  VkWriteDescriptorSet writes[K_ARGS + 1];
  const uint32_t n = made->pipeline->n_operands;
  if (made->params_at != UINT64_MAX)
    params = (VkDescriptorBufferInfo){stored->buffer, stored->base + made->params_at, made->params_bytes};
  for (uint32_t k = 0; k <= n; k++) {
    const VkDescriptorBufferInfo *operand = &nothing;
    if (k == 0) operand = &params;
    else if (k == n) operand = operand_of(op, operands, step->args[step->n_args - 1]);
    else if (k < step->n_args) operand = operand_of(op, operands, step->args[k - 1]);
    writes[k] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                       .dstSet = set,
                                       .dstBinding = k,
                                       .descriptorCount = 1,
                                       .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       .pBufferInfo = operand};
  }
  op->dev->vk.UpdateDescriptorSets(op->dev->device, n + 1, writes, 0, NULL);
}

static heddle_status bind_step(const heddle_pop *op, uint32_t i, VkDescriptorBufferInfo *operands,
                               heddle_plaunch *launch, heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  dispatch *d = &launch->dispatches[launch->n_dispatches++];
  const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = launch->pool,
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &op->steps[i].pipeline->set};
  d->step = &op->steps[i];
  const VkResult code = dev->vk.AllocateDescriptorSets(dev->device, &info, &d->set);
  if (code != VK_SUCCESS) return vlk_check(dev, code, "bind a shader", err);
  set_operands(op, i, d->step, op->constants, operands, d->set);
  return HEDDLE_OK;
}

/* In place there is nothing to move. */
static void set_copy(const k_op *k, uint32_t i, const VkDescriptorBufferInfo *operands, dispatch *d) {
  const k_step *step = &k->plan.steps[i];
  const VkDescriptorBufferInfo *src = &operands[k_op_place(k, step->args[0])],
                               *dst = &operands[k_op_place(k, step->args[1])];
  d->src = src->buffer;
  d->dst = dst->buffer;
  d->copy = (VkBufferCopy){src->offset + step->copy_from, dst->offset + step->copy_at, step->copy_bytes};
  if (d->src == d->dst && d->copy.srcOffset == d->copy.dstOffset) d->copy.size = 0;
}

static heddle_status bind_steps(const heddle_pop *op, heddle_plaunch *launch, VkDescriptorBufferInfo *all,
                                heddle_error *err) {
  heddle_status s = make_pool(op, launch, err);
  for (uint32_t i = 0; i < op->k.plan.n_steps && s == HEDDLE_OK; i++) {
    if (op->steps[i].pipeline != NULL) s = bind_step(op, i, all, launch, err);
    else set_copy(&op->k, i, all, &launch->dispatches[launch->n_dispatches++]);
  }
  return s;
}

static void place_all(const heddle_pop *op, VkDescriptorBufferInfo *all) {
  for (uint32_t i = 0; i < k_op_places(&op->k); i++)
    all[i] = (VkDescriptorBufferInfo){op->nothing->buffer, op->nothing->base, op->nothing->bytes};
  place_constants(op, all);
}

heddle_status vlk_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *slices, heddle_plaunch **out,
                       heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  const k_site site = vlk_site(dev->self, dev->info);
  void *memory = NULL, *dispatches = NULL, *operands = NULL, *steps = NULL;
  heddle_status s = vlk_health(dev, err);
  if (s == HEDDLE_OK) s = k_op_memory(&site, 1, sizeof(heddle_plaunch), &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_plaunch *launch = memory;
  launch->dev = dev;
  launch->stream = stream;
  launch->op = op;
  vlk_count(&dev->live_objects, 1);
  s = k_op_memory(&site, (uint64_t)op->k.plan.n_steps + 1, sizeof(dispatch), &dispatches, err);
  launch->dispatches = dispatches;
  if (s == HEDDLE_OK) s = k_op_memory(&site, k_op_places(&op->k), sizeof(VkDescriptorBufferInfo), &operands, err);
  launch->operands = operands;
  if (s == HEDDLE_OK && op->k.open)
    s = k_op_memory(&site, 2 * (uint64_t)op->k.plan.n_steps + 1, sizeof(vlk_step), &steps, err);
  launch->steps = steps;
  if (s == HEDDLE_OK && op->k.open && op->stores && !op->k.plan.is_fixed)
    s = vlk_buffer_make(dev, HEDDLE_MEMORY_PINNED, 2 * op->k.plan.n_steps * vlk_stored_bytes(dev), &launch->stored,
                        err);
  if (s == HEDDLE_OK) s = k_sized_make(&site, &op->k, &launch->sized, err);
  binding b = {op, &op->k, operands};
  if (s == HEDDLE_OK) {
    place_all(op, b.all);
    s = k_op_bind(&site, &op->k, stream != NULL && vlk_stream_device(stream) == dev, slices, reach, &b, err);
  }
  if (s == HEDDLE_OK) s = bind_steps(op, launch, b.all, err);
  if (s != HEDDLE_OK) {
    vlk_launch_free(launch);
    return s;
  }
  *out = launch;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- resize */

/* The pipeline of a step's shader for other shapes: the op's, or another that was made before. */
static const vlk_pipeline *pipeline_of(const heddle_pop *op, const vlk_step *was, const vlk_shader *shader) {
  if (shader->n_operands != was->pipeline->n_operands) return NULL;
  if (shader->code == was->code && shader->n_specs == was->n_specs &&
      memcmp(shader->specs, was->specs, sizeof was->specs) == 0)
    return was->pipeline;
  return was->is_made ? NULL : vlk_pipeline_find(op->dev, shader);
}

/* The steps of other shapes; at: where their parameters are stored. */
static heddle_status size_steps(heddle_plaunch *launch, const k_op *k, vlk_step *steps, uint64_t at,
                                heddle_error *err) {
  const heddle_pop *op = launch->op;
  const uint64_t each = vlk_stored_bytes(op->dev);
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < k->plan.n_steps && s == HEDDLE_OK; i++, at += each) {
    vlk_shader shader;
    steps[i] = op->steps[i];
    if (steps[i].pipeline == NULL) continue;
    s = vlk_shader_of(NULL, op->dev->info, &k->plan.steps[i], 0, &shader, err);
    if (s != HEDDLE_OK) return s;
    steps[i].pipeline = pipeline_of(op, &op->steps[i], &shader);
    if (steps[i].pipeline == NULL || (shader.n_params > VLK_PUSH_WORDS && launch->stored == NULL))
      return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "vulkan:%u: these shapes have another shader than their bound",
                    op->dev->index);
    s = vlk_step_set(op, &shader, &steps[i], err);
    if (shader.n_params <= VLK_PUSH_WORDS) continue;
    steps[i].params_at = at;
    steps[i].params_bytes = shader.n_params * sizeof(uint32_t);
    memcpy(launch->stored->host + at, shader.params, (size_t)steps[i].params_bytes);
  }
  return s;
}

heddle_status vlk_op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *slices,
                            heddle_error *err) {
  heddle_pop *op = launch->op;
  const k_site site = vlk_site(op->dev->self, op->dev->info);
  const k_op *next = NULL;
  heddle_status s = vlk_health(op->dev, err);
  if (s == HEDDLE_OK) s = k_sized_plan(&site, &op->k, region, &launch->sized, &next, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t other = (launch->sized.now ^ 1) * op->k.plan.n_steps;
  vlk_step *steps = launch->steps + other;
  s = size_steps(launch, next, steps, other * vlk_stored_bytes(op->dev), err);
  if (s != HEDDLE_OK) return s;
  binding b = {op, next, launch->operands}; /* which nothing that runs reads */
  place_all(op, b.all);
  s = k_op_bind(&site, next, true, slices, reach, &b, err);
  for (uint32_t i = 0; i < launch->n_dispatches && s == HEDDLE_OK; i++) {
    dispatch *d = &launch->dispatches[i]; /* step i's */
    if (d->step == NULL) {
      set_copy(next, i, b.all, d);
      continue;
    }
    d->step = &steps[i];
    set_operands(op, i, d->step, launch->stored, b.all, d->set);
  }
  if (s == HEDDLE_OK) k_sized_take(&launch->sized);
  return s;
}

/* ---------------------------------------------------------------- run */

/* Binds the pipeline and pushes the parameters of a step where the command buffer does not have them yet. */
static void prepare_step(const vlk_device_calls *vk, VkCommandBuffer commands, const vlk_step *step, vlk_bound *bound) {
  const uint32_t bytes = step->n_push * (uint32_t)sizeof(uint32_t);
  if (bound->pipeline != step->pipeline->pipeline)
    vk->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, step->pipeline->pipeline);
  bound->pipeline = step->pipeline->pipeline;
  if (step->n_push == 0 || (step->n_push <= bound->n_push && memcmp(bound->push, step->push, bytes) == 0)) return;
  vk->CmdPushConstants(commands, step->pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, step->push);
  memcpy(bound->push, step->push, bytes);
  if (bound->n_push < step->n_push) bound->n_push = step->n_push;
}

heddle_status vlk_run(heddle_plaunch *launch, heddle_error *err) {
  const vlk_device_calls *vk = &launch->dev->vk;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  vlk_bound *bound = NULL;
  if (launch->n_dispatches == 0) return HEDDLE_OK;
  heddle_status s = vlk_stream_work_bound(launch->stream, &commands, &bound, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < launch->n_dispatches; i++) {
    const dispatch *d = &launch->dispatches[i];
    const vlk_step *step = d->step;
    if (i > 0) vlk_barrier(launch->dev, commands);
    if (step == NULL) {
      if (d->copy.size > 0) vk->CmdCopyBuffer(commands, d->src, d->dst, 1, &d->copy);
      continue;
    }
    prepare_step(vk, commands, step, bound);
    vk->CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, step->pipeline->layout, 0, 1, &d->set, 0, NULL);
    vk->CmdDispatch(commands, step->groups[0], step->groups[1], 1);
  }
  vlk_stream_worked(launch->stream);
  return HEDDLE_OK;
}
