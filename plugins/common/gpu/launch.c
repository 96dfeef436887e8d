/* Launches: bind lays out the arguments of each step of an operator for good, so that run only hands them to the
 * driver, a call for each step. */
#include "ops.h"

/* One step. args and operands are of the launch's memory. */
typedef struct dispatch {
  void *function; /* NULL: a library's step, or a copy */
  void **args;    /* the parameters, which the operator keeps, and then addresses */
  unsigned groups;
  gpu_library_step *by_library;
  const gpu_address *operands; /* in the order of the step's */
  gpu_address dst, src;
  size_t bytes;
} dispatch;

/* What run reads comes first. all: the operands at their places, for a resize. */
struct heddle_plaunch {
  heddle_pstream *stream;
  uint32_t n_dispatches;
  dispatch *dispatches;
  gpu_address workspace;
  heddle_pdevice *dev;
  gpu_address *operands, *all;
  void **args;
  heddle_pop *op;
  k_sized sized;
};

void gpu_launch_free(heddle_plaunch *launch) {
  if (launch == NULL) return;
  heddle_pdevice *dev = launch->dev;
  const heddle_host *host = dev->host;
  const k_site site = gpu_site(dev->self, dev->info);
  gpu_count(&dev->live_objects, -1);
  k_sized_finish(&site, &launch->sized);
  host->free(host->ctx, launch->dispatches);
  host->free(host->ctx, launch->operands);
  host->free(host->ctx, launch->all);
  host->free(host->ctx, launch->args);
  host->free(host->ctx, launch);
}

/* ---------------------------------------------------------------- bind */

typedef struct binding {
  heddle_pop *op;
  gpu_address *all; /* the operands, at their places */
} binding;

static heddle_status reach(void *ctx, uint32_t place, const heddle_pslice *slice, const char *what, heddle_error *err) {
  const binding *b = ctx;
  heddle_pdevice *dev = b->op->dev;
  const char *name = dev->vendor->name;
  if (slice->buffer->dev != dev || slice->buffer->address == 0 || slice->buffer->kind == HEDDLE_MEMORY_PINNED)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s must be memory of kind device or unified of this device", name,
                  dev->index, what);
  if (slice->offset % dev->info->alignment != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s begins at %llu, no multiple of %llu", name, dev->index, what,
                  (unsigned long long)slice->offset, (unsigned long long)dev->info->alignment);
  b->all[place] = slice->buffer->address + slice->offset;
  return gpu_range(dev, slice->buffer, slice->offset, slice->bytes, what, err);
}

static heddle_status resolve_workspace(const heddle_pop *op, const heddle_pslice *slice, gpu_address *out,
                                       heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  if (op->workspace_bytes == 0) return HEDDLE_OK;
  const bool here = slice->buffer != NULL && slice->buffer->dev == dev && slice->buffer->kind == HEDDLE_MEMORY_DEVICE;
  if (!here || slice->bytes < op->workspace_bytes ||
      (slice->buffer->address + slice->offset) % GPU_WORKSPACE_ALIGN != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: the workspace of an operator is %llu bytes of device memory",
                  dev->vendor->name, dev->index, (unsigned long long)op->workspace_bytes);
  *out = slice->buffer->address + slice->offset;
  return gpu_range(dev, slice->buffer, slice->offset, slice->bytes, "workspace of an operator", err);
}

/* The step's own operands from operands on, and its arguments from args on. k: the op's plan, or that of other shapes. */
static void bind_step(heddle_pop *op, const k_op *k, uint32_t i, const gpu_address *all, heddle_plaunch *launch,
                      gpu_address *operands, void **args) {
  k_step *step = &k->plan.steps[i];
  dispatch d = {.args = args, .operands = operands};
  for (uint32_t n = 0; n < step->n_args; n++) operands[n] = all[k_op_place(k, step->args[n])];
  if (step->kind == K_STEP_KERNEL) {
    d.function = op->functions[i];
    d.by_library = op->by_library[i];
    d.groups = (unsigned)step->groups; /* query has seen that it fits */
    args[0] = &step->params;
    for (uint32_t n = 0; n < step->n_args; n++) args[n + 1] = &operands[n];
    if (d.groups == 0 && d.by_library == NULL) return;
  } else {
    d.src = operands[0] + step->copy_from;
    d.dst = operands[1] + step->copy_at;
    d.bytes = (size_t)step->copy_bytes;
    if (d.src == d.dst || d.bytes == 0) return; /* in place there is nothing to move */
  }
  launch->dispatches[launch->n_dispatches++] = d;
}

static void bind_steps(heddle_pop *op, const k_op *k, heddle_plaunch *launch, const gpu_address *all) {
  uint64_t used = 0;
  launch->n_dispatches = 0;
  for (uint32_t i = 0; i < k->plan.n_steps; i++) {
    bind_step(op, k, i, all, launch, launch->operands + used, launch->args + used + i);
    used += k->plan.steps[i].n_args;
  }
}

heddle_status gpu_op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *slices, heddle_plaunch **out,
                          heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  const k_site site = gpu_site(dev->self, dev->info);
  const uint64_t steps = op->k.plan.n_steps;
  void *memory = NULL, *dispatches = NULL, *operands = NULL, *args = NULL, *all = NULL;
  uint64_t n_args = 0;
  for (uint64_t i = 0; i < steps; i++) n_args += op->k.plan.steps[i].n_args;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = k_op_memory(&site, 1, sizeof(heddle_plaunch), &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_plaunch *launch = memory;
  launch->dev = dev;
  launch->stream = stream;
  launch->op = op;
  gpu_count(&dev->live_objects, 1);
  s = k_op_memory(&site, steps + 1, sizeof(dispatch), &dispatches, err);
  launch->dispatches = dispatches;
  if (s == HEDDLE_OK) s = k_op_memory(&site, n_args + 1, sizeof(gpu_address), &operands, err);
  launch->operands = operands;
  if (s == HEDDLE_OK) s = k_op_memory(&site, n_args + steps + 1, sizeof(void *), &args, err);
  launch->args = args;
  if (s == HEDDLE_OK) s = k_op_memory(&site, k_op_places(&op->k), sizeof(gpu_address), &all, err);
  launch->all = all;
  if (s == HEDDLE_OK) s = k_sized_make(&site, &op->k, &launch->sized, err);
  binding b = {op, all};
  if (s == HEDDLE_OK) b.all[k_op_table(&op->k)] = op->table;
  if (s == HEDDLE_OK) s = k_op_bind(&site, &op->k, stream != NULL && stream->dev == dev, slices, reach, &b, err);
  if (s == HEDDLE_OK) s = resolve_workspace(op, &slices->workspace, &launch->workspace, err);
  if (s == HEDDLE_OK) bind_steps(op, &op->k, launch, b.all);
  if (s != HEDDLE_OK) {
    gpu_launch_free(launch);
    return s;
  }
  *out = launch;
  return HEDDLE_OK;
}

/* The workspace is that of the bound. */
heddle_status gpu_op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *slices,
                            heddle_error *err) {
  heddle_pop *op = launch->op;
  const k_site site = gpu_site(op->dev->self, op->dev->info);
  const k_op *next = NULL;
  gpu_address workspace = launch->workspace;
  binding b = {op, launch->all};
  heddle_status s = gpu_health(op->dev, err);
  if (s == HEDDLE_OK) s = k_sized_plan(&site, &op->k, region, &launch->sized, &next, err);
  if (s != HEDDLE_OK) return s;
  memset(b.all, 0, k_op_places(next) * sizeof *b.all); /* nothing that runs reads it */
  b.all[k_op_table(next)] = op->table;
  s = k_op_bind(&site, next, true, slices, reach, &b, err);
  if (s == HEDDLE_OK) s = resolve_workspace(op, &slices->workspace, &workspace, err);
  if (s != HEDDLE_OK) return s;
  launch->workspace = workspace;
  bind_steps(op, next, launch, b.all);
  k_sized_take(&launch->sized);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- run */

/* A library that failed has words of its own, also where it only met a fault of work before it: the driver knows. A capture
 * must not be asked. */
static heddle_status ask_driver(heddle_pstream *stream, heddle_status s, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  if (stream->capturing || s == HEDDLE_EDEVICE) return s;
  const int code = dev->driver->stream_query(stream->handle);
  return gpu_fate_of(dev, code) == GPU_LOST ? gpu_check(dev, code, "run an operator", err) : s;
}

heddle_status gpu_op_run(heddle_plaunch *launch, heddle_error *err) {
  heddle_pstream *stream = launch->stream;
  const gpu_driver *driver = launch->dev->driver;
  int code = 0;
  gpu_scope scope;
  heddle_status s = gpu_stream_enter(stream, &scope, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < launch->n_dispatches && code == 0; i++) {
    const dispatch *d = &launch->dispatches[i];
    if (d->function != NULL) {
      code = driver->launch(d->function, d->groups, 1, 1, K_GROUP, 1, 1, 0, stream->handle, d->args, NULL);
    } else if (d->by_library != NULL) {
      s = gpu_library_run(d->by_library, stream, d->operands, launch->workspace, err);
      if (s != HEDDLE_OK) {
        s = ask_driver(stream, s, err);
        gpu_stream_leave(stream, &scope);
        return s;
      }
    } else {
      code = driver->copy_d2d(d->dst, d->src, d->bytes, stream->handle);
    }
  }
  return gpu_stream_done(stream, &scope, code, "run an operator", err);
}
