/* Operators: regions through the kernels of plugins/common/kernels. prepare builds the programs of an
 * operator's plan; bind makes a kernel object for each step and sets its arguments, so that run only enqueues. */
#include "opencl.h"

#include "plugins/common/kernels/op.h"

/* Immutable. */
struct heddle_pop {
  heddle_pdevice *dev;
  k_op k;
  cl_program *programs; /* one per step; NULL for copies; they belong to the device */
  cl_mem table;         /* NULL: the plan has none */
  bool *by_blas;        /* one per step: a product that CLBlast does */
};

typedef struct dispatch {
  cl_kernel kernel; /* NULL: a copy, or a product */
  size_t global;
  ocl_product product; /* m is not 0 */
  cl_mem src, dst;
  size_t src_at, dst_at, bytes;
} dispatch;

/* A slice as a kernel sees it. Two operands at the same place share an object, since a kernel may not reach the same
 * bytes through two. */
typedef struct operand {
  cl_mem object;
  cl_mem mem; /* and where it begins in the allocation */
  uint64_t base;
  uint64_t bytes; /* of the object from there on */
} operand;

/* What run reads comes first. objects: sub-buffers of this launch's own. operands: at their places, and as many more
 * where the launch can be resized, for those of other shapes. */
struct heddle_plaunch {
  heddle_pstream *stream;
  uint32_t n_dispatches, n_objects;
  dispatch *dispatches;
  heddle_pdevice *dev;
  cl_mem *objects;
  heddle_pop *op;
  operand *operands;
  k_sized sized;
};

static k_site site_of(const heddle_pinstance *self, const ocl_info *info) {
  const bool on_host = (info->type & CL_DEVICE_TYPE_CPU) != 0 && !self->gpu_kernels;
  return (k_site){
      .host = self->host,
      .name = "opencl",
      .index = (uint32_t)(info - self->devices),
      .compute_units = info->compute_units,
      .features = (info->doubles ? K_HAS_F64 : 0) | (on_host ? K_HOST_CORES | K_FLASH : 0),
      .workspace_align = info->alignment,
  };
}

/* ---------------------------------------------------------------- query */

/* The largest file that PoCL's compiler makes, as measured of PoCL 3.1 with our texts. Where the
 * process may not write so much (RLIMIT_FSIZE), the signal or LLVM's own exit would end it in the driver. */
enum { WRITES_BYTES = 1 << 20 };

static heddle_status accept_plan(void *ctx, const heddle_pregion *region, k_plan *plan, uint64_t *workspace,
                                 heddle_error *err) {
  (void)ctx, (void)region, (void)plan, (void)workspace, (void)err;
  return HEDDLE_OK;
}

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
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
  const k_site site = site_of(self, info);
  return k_op_offer(&site, region, accept_plan, NULL, offer, sink, err);
}

static heddle_status op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                             heddle_error *err) {
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "opencl:%u: there are %u devices", index, self->n_devices);
  return k_plan_list(list, sink, err);
}

/* ---------------------------------------------------------------- prepare */

static void op_free(heddle_pop *op) {
  if (op == NULL) return;
  heddle_pdevice *dev = op->dev;
  const heddle_host *host = dev->host;
  ocl_count(&dev->live_objects, -1);
  k_op_finish(&op->k);
  if (op->table != NULL) clReleaseMemObject(op->table);
  host->free(host->ctx, op->programs);
  host->free(host->ctx, op->by_blas);
  host->free(host->ctx, op);
}

static heddle_status make_table(heddle_pop *op, heddle_error *err) {
  cl_int code = CL_SUCCESS;
  op->table = clCreateBuffer(op->dev->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, (size_t)op->k.plan.table_bytes,
                             op->k.plan.table, &code);
  if (code != CL_SUCCESS) op->table = NULL;
  return ocl_check(op->dev, code, "make an operator's table", err);
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  const k_site site = site_of(dev->self, dev->info);
  void *memory = NULL, *programs = NULL, *by_blas = NULL;
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = k_op_memory(&site, 1, sizeof(heddle_pop), &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pop *op = memory;
  op->dev = dev;
  ocl_count(&dev->live_objects, 1);
  s = k_op_init(&site, region, offer, &op->k, err);
  if (s == HEDDLE_OK) s = k_op_memory(&site, op->k.plan.n_steps + 1, sizeof(cl_program), &programs, err);
  op->programs = programs;
  if (s == HEDDLE_OK) s = k_op_memory(&site, op->k.plan.n_steps + 1, sizeof(bool), &by_blas, err);
  op->by_blas = by_blas;
  for (uint32_t i = 0; i < op->k.plan.n_steps && s == HEDDLE_OK; i++) {
    const k_step *step = &op->k.plan.steps[i];
    ocl_product product;
    op->by_blas[i] = ocl_blas_takes(dev, step, &product) && ocl_blas_warm(dev, &product);
    k_code code = step->code;
    if (op->by_blas[i]) code.kernel = KERNEL_spread;
    if (step->kind == K_STEP_KERNEL && (!op->by_blas[i] || product.beta != 0.0f))
      s = ocl_program_get(dev, &code, step->chain, &op->programs[i], err);
    op->k.plan.is_fixed |= op->by_blas[i]; /* CLBlast chooses its kernels by sizes */
  }
  if (s == HEDDLE_OK && op->k.plan.table != NULL) s = make_table(op, err);
  if (s != HEDDLE_OK) {
    op_free(op);
    return s;
  }
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
  const k_site site = site_of(dev->self, dev->info);
  k_sized_finish(&site, &launch->sized);
  host->free(host->ctx, launch->dispatches);
  host->free(host->ctx, launch->objects);
  host->free(host->ctx, launch->operands);
  host->free(host->ctx, launch);
}

/* The operands of the launch's plan i. */
static operand *operands_of(const heddle_plaunch *launch, uint32_t i) {
  return launch->operands + (uint64_t)i * k_op_places(&launch->op->k);
}

/* k: what the operands are sized by; is_bound: objects are there already, and none is made. */
typedef struct binding {
  const k_op *k;
  heddle_plaunch *launch;
  operand *all; /* at their places */
  bool is_bound;
} binding;

/* A view of an operand; of an open op as large as for its bound, so that it serves larger shapes too. */
static heddle_status make_view(heddle_plaunch *launch, const heddle_pbuffer *b, uint64_t offset, uint64_t wanted,
                               operand *o, heddle_error *err) {
  o->bytes = wanted < b->bytes - offset ? wanted : b->bytes - offset;
  const cl_buffer_region region = {(size_t)o->base, (size_t)o->bytes};
  cl_int code = CL_SUCCESS;
  o->object = clCreateSubBuffer(b->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  const heddle_status s = ocl_check(launch->dev, code, "make a view for an operand", err);
  if (s == HEDDLE_OK) launch->objects[launch->n_objects++] = o->object;
  return s;
}

static heddle_status reach(void *ctx, uint32_t place, const heddle_pslice *slice, const char *what, heddle_error *err) {
  const binding *to = ctx;
  heddle_pdevice *dev = to->launch->dev;
  const heddle_pbuffer *b = slice->buffer;
  operand *o = &to->all[place];
  if (b->dev->context != dev->context || b->own == NULL || b->kind == HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s must be memory of kind device or unified", dev->index, what);
  if (slice->offset % dev->info->alignment != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s begins at %llu, no multiple of %llu", dev->index, what,
                  (unsigned long long)slice->offset, (unsigned long long)dev->info->alignment);
  heddle_status s = ocl_range(dev, b, slice->offset, slice->bytes, what, err);
  if (s != HEDDLE_OK) return s;
  o->mem = b->mem;
  o->base = b->base + slice->offset;
  for (uint32_t k = 0; k < place; k++) {
    const operand *other = &to->all[k];
    if (other->object == NULL || other->mem != o->mem || other->base != o->base || other->bytes < to->k->bytes[place])
      continue;
    o->object = other->object;
    o->bytes = other->bytes;
    return HEDDLE_OK;
  }
  if (slice->offset == 0) {
    o->object = b->own;
    o->bytes = b->bytes;
    return HEDDLE_OK;
  }
  const operand *before = operands_of(to->launch, to->launch->sized.now) + place;
  if (!to->is_bound) return make_view(to->launch, b, slice->offset, to->k->bytes[place], o, err);
  if (before->object == NULL || before->mem != o->mem || before->base != o->base || before->bytes < to->k->bytes[place])
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u: %s lies elsewhere than the launch was bound to", dev->index,
                  what);
  o->object = before->object;
  o->bytes = before->bytes;
  return HEDDLE_OK;
}

static const operand *operand_of(const heddle_pop *op, const operand *operands, uint32_t arg) {
  return &operands[k_op_place(&op->k, arg)];
}

/* The parameters and operands of a step, these from first on. */
static cl_int set_args(const k_op *k, uint32_t i, uint32_t first, uint64_t groups, const operand *operands,
                       dispatch *d) {
  const k_step *step = &k->plan.steps[i];
  cl_int code = clSetKernelArg(d->kernel, 0, (size_t)step->params_bytes, &step->params);
  for (uint32_t at = first; at < step->n_args && code == CL_SUCCESS; at++)
    code = clSetKernelArg(d->kernel, at - first + 1, sizeof(cl_mem), &operands[k_op_place(k, step->args[at])].object);
  d->global = (size_t)groups * K_GROUP;
  return code;
}

/* A kernel of step i's program, with the step's operands from first on. */
static heddle_status bind_kernel(const heddle_pop *op, uint32_t i, uint8_t kernel, uint32_t first, uint64_t groups,
                                 const operand *operands, dispatch *d, heddle_error *err) {
  cl_int code = CL_SUCCESS;
  d->kernel = clCreateKernel(op->programs[i], k_kernels[kernel].name, &code);
  if (code != CL_SUCCESS) d->kernel = NULL;
  if (code == CL_SUCCESS) code = set_args(&op->k, i, first, groups, operands, d);
  return ocl_check(op->dev, code, "bind a kernel", err);
}

/* A product of CLBlast's; where it adds to the result, C is spread over that first. */
static heddle_status bind_product(const heddle_pop *op, uint32_t i, const operand *operands, heddle_plaunch *launch,
                                  heddle_error *err) {
  const k_step *step = &op->k.plan.steps[i];
  const uint64_t results = (uint64_t)step->params.matmul.count;
  dispatch *d = &launch->dispatches[launch->n_dispatches];
  ocl_product product;
  ocl_blas_takes(op->dev, step, &product);
  if (product.beta != 0.0f) {
    launch->n_dispatches++;
    heddle_status s =
        bind_kernel(op, i, KERNEL_spread, 2, results / K_GROUP + (results % K_GROUP != 0), operands, d++, err);
    if (s != HEDDLE_OK) return s;
  }
  d->product = product;
  d->product.a = operand_of(op, operands, step->args[0])->object;
  d->product.b = operand_of(op, operands, step->args[1])->object;
  d->product.out = operand_of(op, operands, step->args[step->n_args - 1])->object;
  launch->n_dispatches++;
  return HEDDLE_OK;
}

/* Copies are given to whole allocations, where the driver sees whether two ranges are apart. In place there is nothing to
 * move. */
static void set_copy(const k_op *k, uint32_t i, const operand *operands, dispatch *d) {
  const k_step *step = &k->plan.steps[i];
  const operand *src = &operands[k_op_place(k, step->args[0])], *dst = &operands[k_op_place(k, step->args[1])];
  d->src = src->mem;
  d->dst = dst->mem;
  d->src_at = (size_t)(src->base + step->copy_from);
  d->dst_at = (size_t)(dst->base + step->copy_at);
  d->bytes = d->src != d->dst || d->src_at != d->dst_at ? (size_t)step->copy_bytes : 0;
}

static heddle_status bind_steps(heddle_pop *op, heddle_plaunch *launch, const operand *operands, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < op->k.plan.n_steps && s == HEDDLE_OK; i++) {
    dispatch *d = &launch->dispatches[launch->n_dispatches];
    const k_step *step = &op->k.plan.steps[i];
    if (op->by_blas[i]) {
      s = bind_product(op, i, operands, launch, err);
      continue;
    }
    launch->n_dispatches++;
    if (step->kind == K_STEP_KERNEL) s = bind_kernel(op, i, step->code.kernel, 0, step->groups, operands, d, err);
    else set_copy(&op->k, i, operands, d);
  }
  return s;
}

static heddle_status op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *slices, heddle_plaunch **out,
                             heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  const k_site site = site_of(dev->self, dev->info);
  void *memory = NULL, *dispatches = NULL, *objects = NULL, *operands = NULL;
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = k_op_memory(&site, 1, sizeof(heddle_plaunch), &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_plaunch *launch = memory;
  launch->dev = dev;
  launch->stream = stream;
  launch->op = op;
  ocl_count(&dev->live_objects, 1);
  s = k_op_memory(&site, 2 * (uint64_t)op->k.plan.n_steps + 1, sizeof(dispatch), &dispatches, err);
  launch->dispatches = dispatches;
  if (s == HEDDLE_OK) s = k_op_memory(&site, k_op_places(&op->k), sizeof(cl_mem), &objects, err);
  launch->objects = objects;
  const uint64_t plans = op->k.open ? 2 : 1;
  if (s == HEDDLE_OK) s = k_op_memory(&site, plans * k_op_places(&op->k), sizeof(operand), &operands, err);
  launch->operands = operands;
  if (s == HEDDLE_OK) s = k_sized_make(&site, &op->k, &launch->sized, err);
  binding b = {&op->k, launch, operands, false};
  if (s == HEDDLE_OK) s = k_op_bind(&site, &op->k, stream != NULL && stream->dev == dev, slices, reach, &b, err);
  if (s == HEDDLE_OK) {
    b.all[k_op_table(&op->k)] = (operand){op->table, op->table, 0, op->k.plan.table_bytes};
    s = bind_steps(op, launch, b.all, err);
  }
  if (s != HEDDLE_OK) {
    launch_free(launch);
    return s;
  }
  *out = launch;
  return HEDDLE_OK;
}

/* Arguments can only be refused here where a kernel does not have them, which the first shapes have shown. */
static heddle_status op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *slices,
                               heddle_error *err) {
  const heddle_pop *op = launch->op;
  const k_site site = site_of(op->dev->self, op->dev->info);
  const k_op *next = NULL;
  const uint32_t table = k_op_table(&op->k);
  heddle_status s = ocl_health(op->dev, err);
  if (s == HEDDLE_OK) s = k_sized_plan(&site, &op->k, region, &launch->sized, &next, err);
  if (s != HEDDLE_OK) return s;
  operand *operands = operands_of(launch, launch->sized.now ^ 1);
  memset(operands, 0, k_op_places(&op->k) * sizeof *operands);
  binding b = {next, launch, operands, true};
  operands[table] = operands_of(launch, launch->sized.now)[table];
  s = k_op_bind(&site, next, true, slices, reach, &b, err);
  cl_int code = CL_SUCCESS;
  for (uint32_t i = 0; i < launch->n_dispatches && s == HEDDLE_OK && code == CL_SUCCESS; i++) {
    dispatch *d = &launch->dispatches[i]; /* step i's */
    if (d->kernel != NULL) code = set_args(next, i, 0, next->plan.steps[i].groups, operands, d);
    else set_copy(next, i, operands, d);
  }
  if (s == HEDDLE_OK) s = ocl_check(op->dev, code, "resize an operator", err);
  if (s == HEDDLE_OK) k_sized_take(&launch->sized);
  return s;
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
    } else if (d->bytes > 0) {
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
    .resize = op_resize,
};
