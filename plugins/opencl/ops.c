/* Operators: regions through the kernels of plugins/common/kernels. prepare builds the programs of an
 * operator's plan; bind makes a kernel object for each step and sets its arguments, so that run only enqueues. */
#include "opencl.h"

#include "plugins/common/kernels/plan.h"
#include "plugins/common/region.h"

/* Immutable. bytes: what bind must find behind each operand, the inputs and then the outputs, and, two behind, the
 * parts of the workspace; 0: nothing. */
struct heddle_pop {
  heddle_pdevice *dev;
  k_plan plan;
  cl_program *programs; /* one per step; NULL for copies; they belong to the device */
  cl_mem table;         /* NULL: the plan has none */
  bool *by_blas;        /* one per step: a product that CLBlast does */
  uint64_t *bytes;
  uint32_t n_inputs, n_outputs;
};

typedef struct dispatch {
  cl_kernel kernel; /* NULL: a copy, or a product */
  size_t global;
  ocl_product product; /* m is not 0 */
  cl_mem src, dst;
  size_t src_at, dst_at, bytes;
} dispatch;

/* What run reads comes first. objects: sub-buffers of this launch's own. */
struct heddle_plaunch {
  heddle_pstream *stream;
  uint32_t n_dispatches, n_objects;
  dispatch *dispatches;
  heddle_pdevice *dev;
  cl_mem *objects;
};

static uint64_t features_of(const heddle_pinstance *self, const ocl_info *info) {
  const bool on_host = (info->type & CL_DEVICE_TYPE_CPU) != 0 && !self->gpu_kernels;
  return (info->doubles ? K_HAS_F64 : 0) | (on_host ? K_HOST_CORES : 0);
}

/* ---------------------------------------------------------------- query */

/* The largest file that PoCL's compiler makes, as measured of PoCL 3.1 with our texts. Where the
 * process may not write so much (RLIMIT_FSIZE), the signal or LLVM's own exit would end it in the driver. */
enum { WRITES_BYTES = 1 << 20 };

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  k_plan plan;
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "opencl:%u: there are %u devices", index, self->n_devices);
  const ocl_info *info = &self->devices[index];
  if (info->max_group < K_GROUP)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "opencl:%u: its work-groups have %llu items at most, and kernels need %d", index,
                  (unsigned long long)info->max_group, K_GROUP);
  char why[CACHEFILE_WHY];
  if (info->writes && !cachefile_fits(WRITES_BYTES, why)) {
    if (!atomic_exchange(&self->cache.said, true)) self->host->log(self->host->ctx, HEDDLE_LOG_WARN, "opencl", why);
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "opencl:%u: its compiler works on files, and would end the process: %.300s", index, why);
  }
  heddle_status s = k_plan_make(self->host, region, features_of(self, info), &plan, err);
  if (s != HEDDLE_OK) return s;
  const heddle_poffer answer = {
      .struct_size = sizeof answer,
      .input_flags = plan.input_flags,
      .in_place = plan.pairs,
      .n_in_place = plan.n_pairs,
      .workspace_bytes = k_workspace_bytes(&plan),
      .workspace_align = info->alignment,
      .kept_bytes = k_plan_kept(&plan),
      .cost_ns = 5000.0 * plan.n_steps + plan.work / (info->compute_units > 0 ? info->compute_units : 1),
  };
  s = offer(sink, &answer, err);
  k_plan_free(&plan);
  return s;
}

static heddle_status op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                             heddle_error *err) {
  (void)self, (void)index;
  return k_plan_list(list, sink, err);
}

/* ---------------------------------------------------------------- prepare */

static void op_free(heddle_pop *op) {
  if (op == NULL) return;
  heddle_pdevice *dev = op->dev;
  const heddle_host *host = dev->host;
  ocl_count(&dev->live_objects, -1);
  k_plan_free(&op->plan);
  if (op->table != NULL) clReleaseMemObject(op->table);
  host->free(host->ctx, op->programs);
  host->free(host->ctx, op->by_blas);
  host->free(host->ctx, op->bytes);
  host->free(host->ctx, op);
}

static void set_bytes(heddle_pop *op, const heddle_pregion *region) {
  for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
    const bool is_input = i < op->n_inputs;
    const heddle_pvalue *value = region_value(region, is_input ? region->inputs[i] : region->outputs[i - op->n_inputs]);
    if (value == NULL || (is_input && (op->plan.input_flags[i] & HEDDLE_INPUT_ABSORBED) != 0)) continue;
    region_value_bytes(value, &op->bytes[i]);
  }
  memcpy(op->bytes + op->n_inputs + op->n_outputs + 1, op->plan.part_bytes, sizeof op->plan.part_bytes);
}

static heddle_status make_table(heddle_pop *op, heddle_error *err) {
  cl_int code = CL_SUCCESS;
  op->table = clCreateBuffer(op->dev->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, (size_t)op->plan.table_bytes,
                             op->plan.table, &code);
  if (code != CL_SUCCESS) op->table = NULL;
  return ocl_check(op->dev, code, "make an operator's table", err);
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  const heddle_host *host = dev->host;
  void *memory = NULL, *programs = NULL, *by_blas = NULL, *bytes = NULL;
  if (offer != 0) return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: offer %u was not made", dev->index, offer);
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = ocl_new(host, sizeof(heddle_pop), "an operator", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pop *op = memory;
  op->dev = dev;
  op->n_inputs = region->n_inputs;
  op->n_outputs = region->n_outputs;
  ocl_count(&dev->live_objects, 1);
  s = k_plan_make(host, region, features_of(dev->self, dev->info), &op->plan, err);
  const uint64_t count = (uint64_t)region->n_inputs + region->n_outputs;
  if (s == HEDDLE_OK) s = ocl_new(host, (op->plan.n_steps + 1) * sizeof(cl_program), "an operator", &programs, err);
  op->programs = programs;
  if (s == HEDDLE_OK) s = ocl_new(host, (count + 1 + K_WORKSPACES) * sizeof(uint64_t), "an operator", &bytes, err);
  op->bytes = bytes;
  if (s == HEDDLE_OK) s = ocl_new(host, op->plan.n_steps + 1, "an operator", &by_blas, err);
  op->by_blas = by_blas;
  for (uint32_t i = 0; i < op->plan.n_steps && s == HEDDLE_OK; i++) {
    const k_step *step = &op->plan.steps[i];
    ocl_product product;
    op->by_blas[i] = ocl_blas_takes(dev, step, &product) && ocl_blas_warm(dev, &product);
    if (step->kind == K_STEP_KERNEL && (!op->by_blas[i] || product.beta != 0.0f))
      s = ocl_program_get(dev, step->text, step->tail, step->options, &op->programs[i], err);
  }
  if (s == HEDDLE_OK && op->plan.table != NULL) s = make_table(op, err);
  if (s != HEDDLE_OK) {
    op_free(op);
    return s;
  }
  set_bytes(op, region);
  *out = op;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- bind */

static void launch_free(heddle_plaunch *launch) {
  if (launch == NULL) return;
  heddle_pdevice *dev = launch->dev;
  const heddle_host *host = dev->host;
  ocl_count(&dev->live_objects, -1);
  for (uint32_t i = 0; i < launch->n_dispatches; i++) {
    if (launch->dispatches[i].kernel != NULL) clReleaseKernel(launch->dispatches[i].kernel);
  }
  for (uint32_t i = 0; i < launch->n_objects; i++) clReleaseMemObject(launch->objects[i]);
  host->free(host->ctx, launch->dispatches);
  host->free(host->ctx, launch->objects);
  host->free(host->ctx, launch);
}

/* A slice as a kernel sees it. Two operands at the same place share an object, since a kernel may not reach the same
 * bytes through two. */
typedef struct operand {
  cl_mem object;
  cl_mem mem; /* and where it begins in the allocation */
  uint64_t base;
} operand;

static heddle_status check_slice(const heddle_pop *op, const heddle_pslice *slice, uint32_t i, heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  const char *what = i < op->n_inputs                   ? "input of an operator"
                     : i < op->n_inputs + op->n_outputs ? "output of an operator"
                                                        : "workspace of an operator";
  if (slice->buffer == NULL || slice->bytes < op->bytes[i])
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s needs %llu bytes and is given %llu", dev->index, what,
                  (unsigned long long)op->bytes[i], slice->buffer != NULL ? (unsigned long long)slice->bytes : 0);
  if (slice->buffer->dev->context != dev->context || slice->buffer->own == NULL ||
      slice->buffer->kind == HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s must be memory of kind device or unified", dev->index, what);
  if (slice->offset % dev->info->alignment != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s begins at %llu, no multiple of %llu", dev->index, what,
                  (unsigned long long)slice->offset, (unsigned long long)dev->info->alignment);
  return ocl_range(dev, slice->buffer, slice->offset, slice->bytes, what, err);
}

static heddle_status resolve(const heddle_pop *op, heddle_plaunch *launch, const heddle_pslice *slice, uint32_t i,
                             operand *all, heddle_error *err) {
  operand *o = &all[i];
  *o = (operand){NULL, NULL, 0};
  if (op->bytes[i] == 0) return HEDDLE_OK;
  heddle_status s = check_slice(op, slice, i, err);
  if (s != HEDDLE_OK) return s;
  const heddle_pbuffer *b = slice->buffer;
  o->mem = b->mem;
  o->base = b->base + slice->offset;
  for (uint32_t k = 0; k < i; k++) {
    if (all[k].mem != o->mem || all[k].base != o->base || op->bytes[k] < op->bytes[i]) continue;
    o->object = all[k].object;
    return HEDDLE_OK;
  }
  if (slice->offset == 0) {
    o->object = b->own;
    return HEDDLE_OK;
  }
  const cl_buffer_region region = {(size_t)o->base, (size_t)op->bytes[i]};
  cl_int code = CL_SUCCESS;
  o->object = clCreateSubBuffer(b->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  s = ocl_check(op->dev, code, "make a view for an operand", err);
  if (s == HEDDLE_OK) launch->objects[launch->n_objects++] = o->object;
  return s;
}

/* operands: the inputs, the outputs, the table, the workspace. */
static const operand *operand_of(const heddle_pop *op, const operand *operands, uint32_t arg) {
  if (arg == K_TABLE) return &operands[op->n_inputs + op->n_outputs];
  if (K_IS_WORKSPACE(arg)) return &operands[op->n_inputs + op->n_outputs + 1 + arg - K_WORKSPACE];
  return &operands[(arg & K_OUTPUT) != 0 ? op->n_inputs + (arg & ~K_OUTPUT) : arg];
}

/* A kernel of step i's program, with the step's operands from first on. */
static heddle_status bind_kernel(const heddle_pop *op, uint32_t i, const char *name, uint32_t first, uint64_t groups,
                                 const operand *operands, dispatch *d, heddle_error *err) {
  const k_step *step = &op->plan.steps[i];
  cl_int code = CL_SUCCESS;
  d->kernel = clCreateKernel(op->programs[i], name, &code);
  if (code != CL_SUCCESS) d->kernel = NULL;
  if (code == CL_SUCCESS) code = clSetKernelArg(d->kernel, 0, (size_t)step->params_bytes, &step->params);
  for (uint32_t k = first; k < step->n_args && code == CL_SUCCESS; k++) {
    const operand *o = operand_of(op, operands, step->args[k]);
    code = clSetKernelArg(d->kernel, k - first + 1, sizeof(cl_mem), &o->object);
  }
  d->global = (size_t)groups * K_GROUP;
  return ocl_check(op->dev, code, "bind a kernel", err);
}

/* A product of CLBlast's; where it adds to the result, C is spread over that first. */
static heddle_status bind_product(const heddle_pop *op, uint32_t i, const operand *operands, heddle_plaunch *launch,
                                  heddle_error *err) {
  const k_step *step = &op->plan.steps[i];
  const uint64_t results = (uint64_t)step->params.matmul.count;
  dispatch *d = &launch->dispatches[launch->n_dispatches];
  ocl_product product;
  ocl_blas_takes(op->dev, step, &product);
  if (product.beta != 0.0f) {
    launch->n_dispatches++;
    heddle_status s = bind_kernel(op, i, "spread", 2, results / K_GROUP + (results % K_GROUP != 0), operands, d++, err);
    if (s != HEDDLE_OK) return s;
  }
  d->product = product;
  d->product.a = operand_of(op, operands, step->args[0])->object;
  d->product.b = operand_of(op, operands, step->args[1])->object;
  d->product.out = operand_of(op, operands, step->args[step->n_args - 1])->object;
  launch->n_dispatches++;
  return HEDDLE_OK;
}

/* Copies are given to whole allocations, where the driver sees whether two ranges are apart. */
static void bind_copy(const heddle_pop *op, uint32_t i, const operand *operands, dispatch *d) {
  const k_step *step = &op->plan.steps[i];
  const operand *src = operand_of(op, operands, step->args[0]), *dst = operand_of(op, operands, step->args[1]);
  d->src = src->mem;
  d->dst = dst->mem;
  d->src_at = (size_t)(src->base + step->copy_from);
  d->dst_at = (size_t)(dst->base + step->copy_at);
  d->bytes = (size_t)step->copy_bytes;
}

static heddle_status bind_all(heddle_pop *op, const heddle_pbind *slices, heddle_plaunch *launch, operand *operands,
                              heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < op->n_inputs + op->n_outputs && s == HEDDLE_OK; i++) {
    const heddle_pslice *slice = i < op->n_inputs ? &slices->inputs[i] : &slices->outputs[i - op->n_inputs];
    s = resolve(op, launch, slice, i, operands, err);
  }
  const uint32_t table = op->n_inputs + op->n_outputs;
  for (uint32_t i = 0; i < K_WORKSPACES && s == HEDDLE_OK; i++) {
    heddle_pslice part = slices->workspace;
    part.offset += k_workspace_at(&op->plan, i);
    part.bytes = op->plan.part_bytes[i];
    s = resolve(op, launch, &part, table + 1 + i, operands, err);
  }
  operands[table] = (operand){op->table, op->table, 0};
  for (uint32_t i = 0; i < op->plan.n_steps && s == HEDDLE_OK; i++) {
    dispatch *d = &launch->dispatches[launch->n_dispatches];
    const k_step *step = &op->plan.steps[i];
    if (op->by_blas[i]) {
      s = bind_product(op, i, operands, launch, err);
      continue;
    }
    if (step->kind == K_STEP_KERNEL) {
      launch->n_dispatches++;
      s = bind_kernel(op, i, step->name, 0, step->groups, operands, d, err);
      continue;
    }
    bind_copy(op, i, operands, d);
    /* In place there is nothing to move. */
    if (d->src != d->dst || d->src_at != d->dst_at) launch->n_dispatches++;
  }
  return s;
}

static heddle_status op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *slices, heddle_plaunch **out,
                             heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  const heddle_host *host = dev->host;
  const uint64_t count = (uint64_t)op->n_inputs + op->n_outputs;
  void *memory = NULL, *dispatches = NULL, *objects = NULL, *operands = NULL;
  if (stream == NULL || stream->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: an operator is bound to a stream of another device", dev->index);
  if (slices->n_inputs != op->n_inputs || slices->n_outputs != op->n_outputs)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: an operator of %u inputs and %u outputs is given %u and %u",
                  dev->index, op->n_inputs, op->n_outputs, slices->n_inputs, slices->n_outputs);
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = ocl_new(host, sizeof(heddle_plaunch), "a launch", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_plaunch *launch = memory;
  launch->dev = dev;
  launch->stream = stream;
  ocl_count(&dev->live_objects, 1);
  s = ocl_new(host, (2 * (uint64_t)op->plan.n_steps + 1) * sizeof(dispatch), "a launch", &dispatches, err);
  launch->dispatches = dispatches;
  if (s == HEDDLE_OK) s = ocl_new(host, (count + 1 + K_WORKSPACES) * sizeof(cl_mem), "a launch", &objects, err);
  launch->objects = objects;
  if (s == HEDDLE_OK) s = ocl_new(host, (count + 1 + K_WORKSPACES) * sizeof(operand), "a launch", &operands, err);
  if (s == HEDDLE_OK) s = bind_all(op, slices, launch, operands, err);
  host->free(host->ctx, operands);
  if (s != HEDDLE_OK) {
    launch_free(launch);
    return s;
  }
  *out = launch;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- run */

static heddle_status op_run(heddle_plaunch *launch, heddle_error *err) {
  static const size_t local = K_GROUP;
  heddle_pstream *stream = launch->stream;
  heddle_status s = ocl_stream_enter(stream, err);
  if (s != HEDDLE_OK) return s;
  cl_int code = CL_SUCCESS;
  for (uint32_t i = 0; i < launch->n_dispatches && code == CL_SUCCESS; i++) {
    const dispatch *d = &launch->dispatches[i];
    if (d->kernel != NULL) {
      code = ocl_put_kernel(stream, d->kernel, 1, &d->global, &local);
    } else if (d->product.m != 0) {
      code = ocl_put(stream, &(ocl_command){.kind = OCL_PRODUCT, .product = &d->product});
    } else {
      code = ocl_put_copy(stream, d->src, d->dst, d->src_at, d->dst_at, d->bytes);
    }
  }
  return ocl_stream_done(stream, code, "run an operator", err);
}

const heddle_op_table ocl_op_table = {
    .struct_size = sizeof ocl_op_table,
    .launch_free = launch_free,
    .op_free = op_free,
    .query = op_query,
    .prepare = op_prepare,
    .bind = op_bind,
    .run = op_run,
    .partition = ocl_partition,
    .list = op_list,
};
