/* Operators: what oneDNN offers, and regions through the reference kernels. bind resolves every operand to its address
 * and the op to its kernel, so that run is one indirect call; an op with enough work is cut into parts for the host's
 * threads. */
#include "cpu.h"
#include "onednn_join.h"
#include "wide.h"

#include "plugins/common/ref/ref.h"
#include "plugins/common/region.h"

/* Immutable. One of onednn, join, reorder and ref is there. operands: the inputs, then the outputs. */
struct heddle_pop {
  heddle_pdevice *dev;
  onednn_op *onednn;
  onednn_join *join;
  wide_reorder *reorder;
  ref_op *ref;
  uint64_t workspace_bytes;
  uint32_t n_inputs, n_outputs;
  bool open; /* its launches will be resized; then what they are bound to may be too small at first */
  cpu_operand operands[];
};

/* addresses: of the inputs, then of the outputs. The members that run reads come first. */
struct heddle_plaunch {
  ref_kernel kernel;
  const ref_op *ref;
  void **inputs, **outputs;
  void *workspace;
  uint64_t units;
  uint32_t parts, watched; /* watched: it may be stopped in the middle, or has indices */
  onednn_launch *onednn;   /* NULL, with join and reorder too: kernel and ref */
  onednn_join_launch *join;
  wide_reorder_launch *reorder;
  heddle_pdevice *dev;
  const heddle_pop *op;
  ref_op *own;            /* ref, where the launch can be resized; else NULL */
  _Atomic uint32_t fault; /* a part found an index out of range */
  void *addresses[];
};

static void launch_free(heddle_plaunch *launch) {
  if (launch == NULL) return;
  heddle_pdevice *dev = launch->dev;
  cpu_count(&dev->live_objects, -1);
  onednn_launch_free(launch->onednn);
  onednn_join_launch_free(launch->join);
  if (CPU_ONEDNN) wide_reorder_launch_free(launch->reorder);
  ref_free(launch->own);
  dev->host->free(dev->host->ctx, launch);
}

static void op_free(heddle_pop *op) {
  if (op == NULL) return;
  heddle_pdevice *dev = op->dev;
  cpu_count(&dev->live_objects, -1);
  onednn_op_free(op->onednn);
  onednn_join_free(op->join);
  if (CPU_ONEDNN) wide_reorder_free(op->reorder);
  ref_free(op->ref);
  dev->host->free(dev->host->ctx, op);
}

/* ---------------------------------------------------------------- query */

static heddle_status check_layouts(const heddle_pregion *region, heddle_error *err) {
  for (uint64_t i = 0; i < region->values.count; i++) {
    const heddle_pvalue *value = region_value(region, (int64_t)i);
    const heddle_pnode *node = region_node(region, 0);
    if (value == NULL || value->layout == 0) continue;
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%.200s': %.100s: cpu takes row-major operands only",
                  node != NULL && node->name != NULL ? node->name : "",
                  node != NULL && node->op != NULL ? node->op : "no operator");
  }
  return HEDDLE_OK;
}

static heddle_status offer_ref(heddle_pinstance *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                               heddle_error *err) {
  enum { FEW = 16, PAIRS = 4 };
  uint32_t few[FEW], *flags = few;
  int32_t pairs[2 * PAIRS], extends[3 * PAIRS];
  const heddle_host *host = self->host;
  heddle_status s = check_layouts(region, err);
  if (s == HEDDLE_OK) s = ref_query(region, err);
  if (s != HEDDLE_OK) return s;

  if (region->n_inputs > FEW) {
    flags = host->alloc(host->ctx, region->n_inputs * sizeof *flags, _Alignof(uint32_t));
    if (flags == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu:0: no memory to query an operator");
  }
  ref_input_flags(region, flags);
  heddle_poffer answer = {
      .struct_size = sizeof answer,
      .flags = (region->flags & HEDDLE_REGION_OPEN) != 0 ? HEDDLE_OFFER_RESIZES : 0,
      .input_flags = flags,
      .in_place = pairs,
      .n_in_place = ref_in_place(region, pairs, PAIRS),
      .workspace_bytes = ref_workspace(region),
      .workspace_align = CPU_ALIGNMENT,
      .cost_ns = ref_cost_ns(region, host->parallelism(host->ctx)),
      .kept_bytes = ref_kept(region),
      .extends = extends,
      .n_extends = ref_extends(region, extends, PAIRS),
  };
  s = offer(sink, &answer, err);
  if (flags != few) host->free(host->ctx, flags);
  return s;
}

/* Once an instance: a log line is no part of the answer. */
static void tell_strict(heddle_pinstance *self) {
  const heddle_host *host = self->host;
  if (!atomic_flag_test_and_set_explicit(&self->told, memory_order_relaxed))
    host->log(
        host->ctx, HEDDLE_LOG_WARN, "cpu",
        "precision fast: everything stays float32 but for products with weights of few bits, since the CPU (or oneDNN, "
        "where it is built in) has no bfloat16");
}

/* The reference kernels come last. Where they cannot, oneDNN's offers are still good. */
static heddle_status offer_all(heddle_pinstance *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                               heddle_error *err) {
  uint32_t made = 0;
  bool only = false;
  heddle_status s = onednn_query(self->onednn, region, offer, sink, &made, &only, err);
  if (s != HEDDLE_OK || only) return s;
  if (onednn_join_is(region)) return onednn_join_query(self->onednn, region, offer, sink, err);
  s = offer_ref(self, region, offer, sink, err);
  return s == HEDDLE_EUNSUPPORTED && made > 0 ? HEDDLE_OK : s;
}

/* Float16 and bfloat16: as float32, in wide layouts, and then row-major, which is how data is moved without conversion. */
static heddle_status offer_halves(heddle_pinstance *self, const heddle_pregion *region, heddle_offer_fn offer,
                                  void *sink, heddle_error *err) {
  wide_region wide;
  wide_offer pass = {.host = self->host, .region = region, .offer = offer, .sink = sink};
  if (wide_reorder_is(region)) return wide_reorder_query(self->host, self->onednn, region, offer, sink, err);
  heddle_status s = wide_make(self->host, region, &wide, err);
  if (s != HEDDLE_OK) return s;
  wide.region.flags &= ~HEDDLE_REGION_OPEN; /* launches of wide layouts are not resized */
  s = offer_all(self, &wide.region, wide_pass, &pass, err);
  wide_free(&wide);
  if (s != HEDDLE_OK && s != HEDDLE_EUNSUPPORTED) return s;
  s = offer_ref(self, region, offer, sink, err);
  return s == HEDDLE_EUNSUPPORTED && pass.made > 0 ? HEDDLE_OK : s;
}

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpu:%u: there is one cpu device, cpu:0", index);
  if ((region->flags & HEDDLE_REGION_FAST) != 0 && !onednn_is_fast(self->onednn)) tell_strict(self);
  if (CPU_ONEDNN && self->onednn != NULL && wide_takes(region)) return offer_halves(self, region, offer, sink, err);
  return offer_all(self, region, offer, sink, err);
}

static heddle_status op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                             heddle_error *err) {
  (void)self;
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpu:%u: there is one cpu device, cpu:0", index);
  return ref_list(list, sink, err);
}

/* ---------------------------------------------------------------- prepare */

/* What bind must find for each operand; flags is scratch for as many as there are inputs. */
static void set_operands(heddle_pop *op, const heddle_pregion *region, uint32_t *flags) {
  ref_input_flags(region, flags);
  for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
    const bool is_input = i < op->n_inputs;
    const heddle_pvalue *value = region_value(region, is_input ? region->inputs[i] : region->outputs[i - op->n_inputs]);
    op->operands[i] = (cpu_operand){0, 1};
    if (value == NULL || (is_input && (flags[i] & HEDDLE_INPUT_ABSORBED) != 0)) continue;
    region_value_bytes(value, &op->operands[i].bytes);
    op->operands[i].align = ((uint64_t)value->dtype.bits + 7) / 8;
  }
}

static heddle_status prepare_ref(heddle_pop *op, const heddle_pregion *region, heddle_error *err) {
  const heddle_host *host = op->dev->host;
  void *flags = NULL;
  heddle_status s = check_layouts(region, err);
  if (s == HEDDLE_OK) s = ref_prepare(host, region, &op->ref, err);
  if (s == HEDDLE_OK) s = cpu_new(host, (region->n_inputs + 1) * sizeof(uint32_t), "an operator", &flags, err);
  if (s != HEDDLE_OK) return s;
  op->workspace_bytes = ref_workspace(region);
  set_operands(op, region, flags);
  host->free(host->ctx, flags);
  return HEDDLE_OK;
}

/* By the maker of offer number `offer`: oneDNN's come first. */
static heddle_status prepare_offer(heddle_pop *op, const heddle_pregion *region, uint32_t offer, heddle_error *err) {
  onednn *self = op->dev->onednn;
  uint32_t made = 0;
  heddle_status s;
  if (onednn_join_is(region) && offer == 0) {
    s = onednn_join_prepare(self, region, op->operands, &op->join, err);
    if (s == HEDDLE_OK) op->workspace_bytes = onednn_join_workspace(op->join);
    return s;
  }
  s = onednn_prepare(self, region, offer, op->operands, &op->onednn, &made, err);
  if (s == HEDDLE_OK && op->onednn != NULL) op->workspace_bytes = onednn_workspace(op->onednn);
  else if (s == HEDDLE_OK && offer == made) s = prepare_ref(op, region, err);
  else if (s == HEDDLE_OK) s = p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: offer %u was not made", offer);
  return s;
}

/* A region with wide layouts is prepared as that of float32 which its offer was made for; another one row-major. */
static heddle_status prepare_any(heddle_pop *op, const heddle_pregion *region, uint32_t offer, heddle_error *err) {
  const heddle_host *host = op->dev->host;
  onednn *self = op->dev->onednn;
  wide_region wide;
  if (!CPU_ONEDNN || self == NULL || !wide_takes(region)) return prepare_offer(op, region, offer, err);
  if (wide_reorder_is(region)) {
    heddle_status s = wide_reorder_prepare(host, self, region, op->operands, &op->reorder, err);
    if (s == HEDDLE_OK) op->workspace_bytes = wide_reorder_workspace(op->reorder);
    return s;
  }
  if (!wide_is_laid(region)) return prepare_ref(op, region, err);
  heddle_status s = wide_make(host, region, &wide, err);
  if (s != HEDDLE_OK) return s;
  wide.region.flags &= ~HEDDLE_REGION_OPEN;
  s = prepare_offer(op, &wide.region, offer, err);
  wide_free(&wide);
  return s;
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  const heddle_host *host = dev->host;
  const uint64_t count = (uint64_t)region->n_inputs + region->n_outputs;
  void *memory = NULL;
  heddle_status s = cpu_new(host, sizeof(heddle_pop) + count * sizeof(cpu_operand), "an operator", &memory, err);
  if (s != HEDDLE_OK) return s;

  heddle_pop *op = memory;
  op->dev = dev;
  op->n_inputs = region->n_inputs;
  op->n_outputs = region->n_outputs;
  s = prepare_any(op, region, offer, err);
  if (s != HEDDLE_OK) {
    onednn_op_free(op->onednn);
    ref_free(op->ref);
    host->free(host->ctx, op);
    return s;
  }
  op->open = (region->flags & HEDDLE_REGION_OPEN) != 0 && !wide_is_laid(region) &&
             (op->ref != NULL || (op->onednn != NULL && onednn_op_resizes(op->onednn)));
  cpu_count(&dev->live_objects, 1);
  *out = op;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- bind and run */

/* The address of an operand, NULL for one that needs no buffer. */
static heddle_status resolve(const cpu_operand *want, const heddle_pslice *slice, const char *what, uint32_t k,
                             void **out, heddle_error *err) {
  char *address = NULL;
  *out = NULL;
  if (want->bytes == 0) return HEDDLE_OK;
  if (slice->buffer == NULL || slice->bytes < want->bytes) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: %s %u of an operator needs %llu bytes and is given %llu", what, k,
                  (unsigned long long)want->bytes, slice->buffer != NULL ? (unsigned long long)slice->bytes : 0);
  }
  heddle_status s = cpu_range(slice->buffer, slice->offset, slice->bytes, what, &address, err);
  if (s != HEDDLE_OK) return s;
  if (want->align > 1 && (uintptr_t)address % want->align != 0) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: %s %u of an operator is not aligned to its element of %llu bytes",
                  what, k, (unsigned long long)want->align);
  }
  *out = address;
  return HEDDLE_OK;
}

/* The same of an operand that the launch is given its size for later. */
static heddle_status resolve_open(const cpu_operand *want, const heddle_pslice *slice, const char *what, uint32_t k,
                                  void **out, heddle_error *err) {
  const cpu_operand any = {slice->bytes < want->bytes ? slice->bytes : want->bytes, want->align};
  *out = NULL;
  return slice->buffer != NULL ? resolve(&any, slice, what, k, out, err) : HEDDLE_OK;
}

static heddle_status resolve_all(const heddle_pop *op, const heddle_pbind *operands, heddle_plaunch *launch,
                                 heddle_error *err) {
  const cpu_operand workspace = {op->workspace_bytes, CPU_ALIGNMENT};
  heddle_status (*one)(const cpu_operand *, const heddle_pslice *, const char *, uint32_t, void **, heddle_error *) =
      op->open ? resolve_open : resolve;
  heddle_status s = resolve(&workspace, &operands->workspace, "workspace", 0, &launch->workspace, err);
  for (uint32_t i = 0; i < op->n_inputs && s == HEDDLE_OK; i++) {
    s = one(&op->operands[i], &operands->inputs[i], "input", i, &launch->inputs[i], err);
  }
  for (uint32_t i = 0; i < op->n_outputs && s == HEDDLE_OK; i++) {
    s = one(&op->operands[op->n_inputs + i], &operands->outputs[i], "output", i, &launch->outputs[i], err);
  }
  return s;
}

static void set_kernel(heddle_plaunch *launch, const ref_op *op) {
  const heddle_host *host = launch->dev->host;
  const uint32_t threads = host->parallelism(host->ctx);
  launch->ref = op;
  launch->kernel = ref_op_kernel(op, &launch->units);
  launch->parts = ref_parts(op);
  if (launch->parts > threads) launch->parts = threads;
  launch->watched = ref_watched(op) || ref_has_indices(op);
}

static heddle_status op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                             heddle_error *err) {
  const heddle_host *host = op->dev->host;
  const uint64_t count = (uint64_t)op->n_inputs + op->n_outputs;
  void *memory = NULL;
  if (stream == NULL || stream->dev != op->dev) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: an operator is bound to a stream of another device");
  }
  if (operands->n_inputs != op->n_inputs || operands->n_outputs != op->n_outputs) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: an operator of %u inputs and %u outputs is given %u and %u",
                  op->n_inputs, op->n_outputs, operands->n_inputs, operands->n_outputs);
  }
  heddle_status s = cpu_new(host, sizeof(heddle_plaunch) + count * sizeof(void *), "a launch", &memory, err);
  if (s != HEDDLE_OK) return s;

  heddle_plaunch *launch = memory;
  launch->dev = op->dev;
  launch->op = op;
  launch->inputs = launch->addresses;
  launch->outputs = launch->addresses + op->n_inputs;
  s = resolve_all(op, operands, launch, err);
  if (s == HEDDLE_OK && op->join != NULL) {
    s = onednn_join_bind(op->join, launch->inputs, launch->outputs, launch->workspace, &launch->join, err);
  } else if (CPU_ONEDNN && s == HEDDLE_OK && op->reorder != NULL) {
    s = wide_reorder_bind(op->reorder, launch->inputs[0], launch->outputs[0], launch->workspace, &launch->reorder, err);
  } else if (s == HEDDLE_OK && op->onednn != NULL) {
    s = onednn_bind(op->onednn, launch->inputs, launch->outputs, launch->workspace, &launch->onednn, err);
  } else if (s == HEDDLE_OK) {
    if (op->open) s = ref_copy(op->ref, &launch->own, err);
    set_kernel(launch, op->open && s == HEDDLE_OK ? launch->own : op->ref);
  }
  if (s != HEDDLE_OK) {
    host->free(host->ctx, launch);
    return s;
  }
  cpu_count(&op->dev->live_objects, 1);
  *out = launch;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- resize */

#ifndef HEDDLE_NO_RANGES
enum { RESIZED = 32 /* operands of a launch that can be resized */ };

/* Where the operands of the new shapes are; an operand that needs no buffer at its bound needs none now. */
static heddle_status resolve_sized(const heddle_pop *op, const heddle_pregion *region, const heddle_pbind *operands,
                                   void **addresses, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < op->n_inputs + op->n_outputs && s == HEDDLE_OK; i++) {
    const bool in = i < op->n_inputs;
    const uint32_t k = in ? i : i - op->n_inputs;
    const heddle_pvalue *value = region_value(region, in ? region->inputs[k] : region->outputs[k]);
    cpu_operand want = op->operands[i];
    uint64_t bytes = 0;
    if (value == NULL || !region_value_bytes(value, &bytes)) return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: no operand");
    if (value->layout == 0 && want.bytes > 0) want.bytes = bytes;
    const uint64_t each = value->layout != 0 && op->onednn != NULL ? onednn_op_each(op->onednn, i) : 0;
    if (each > 0) want.bytes = each * (uint64_t)value->shape[0];
    if (want.bytes > op->operands[i].bytes)
      return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: a launch is resized beyond its bound");
    s = resolve(&want, in ? &operands->inputs[k] : &operands->outputs[k], in ? "input" : "output", k, &addresses[i],
                err);
  }
  return s;
}

static heddle_status op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                               heddle_error *err) {
  const heddle_pop *op = launch->op;
  const uint32_t n = op->n_inputs + op->n_outputs;
  void *addresses[RESIZED];
  const bool fits = op->open && n <= RESIZED && (launch->own != NULL || launch->onednn != NULL);
  if (!fits || operands->n_inputs != op->n_inputs || operands->n_outputs != op->n_outputs ||
      region->n_inputs != op->n_inputs || region->n_outputs != op->n_outputs)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: this launch cannot be resized");
  const cpu_operand scratch = {op->workspace_bytes, CPU_ALIGNMENT};
  void *workspace = NULL;
  heddle_status s = resolve_sized(op, region, operands, addresses, err);
  if (s == HEDDLE_OK) s = resolve(&scratch, &operands->workspace, "workspace", 0, &workspace, err);
  if (s == HEDDLE_OK && launch->onednn != NULL && workspace != launch->workspace)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: the workspace lies elsewhere than the launch was bound to");
  if (s == HEDDLE_OK && launch->onednn != NULL)
    return onednn_resize(launch->onednn, region, addresses, addresses + op->n_inputs, err);
  if (s == HEDDLE_OK) s = ref_resize(launch->own, region, err);
  if (s != HEDDLE_OK) return s;
  memcpy(launch->addresses, addresses, n * sizeof *addresses);
  launch->workspace = workspace;
  set_kernel(launch, launch->own);
  return HEDDLE_OK;
}
#endif

static void run_part(void *arg, uint32_t i, uint32_t n) {
  heddle_plaunch *launch = arg;
  if (!ref_indices_hold(launch->ref, launch->inputs, i, n))
    atomic_store_explicit(&launch->fault, 1, memory_order_relaxed);
  ref_run_range(launch->ref, launch->inputs, launch->outputs, launch->workspace, i, n);
}

static heddle_status after_run(heddle_plaunch *launch, heddle_error *err) {
  if (atomic_exchange_explicit(&launch->fault, 0, memory_order_relaxed) != 0)
    return ref_indices_fail(launch->ref, launch->inputs, err);
  return ref_stopped(launch->ref, err);
}

static heddle_status op_run(heddle_plaunch *launch, heddle_error *err) {
  if (launch->onednn != NULL) return onednn_run(launch->onednn, err);
  if (launch->join != NULL) return onednn_join_run(launch->join, err);
  if (CPU_ONEDNN && launch->reorder != NULL) return wide_reorder_run(launch->reorder, err);
  if (launch->parts > 1) {
    const heddle_host *host = launch->dev->host;
    host->run_parallel(host->ctx, launch->parts, 0, run_part, launch, NULL);
    return launch->watched != 0 ? after_run(launch, err) : HEDDLE_OK;
  }
  if (launch->watched != 0) {
    run_part(launch, 0, 1);
    return after_run(launch, err);
  }
  launch->kernel(launch->ref, launch->inputs, launch->outputs, launch->workspace, 0, launch->units);
  return HEDDLE_OK;
}

const heddle_op_table cpu_op_table = {
    .struct_size = sizeof cpu_op_table,
    .launch_free = launch_free,
    .op_free = op_free,
    .query = op_query,
    .prepare = op_prepare,
    .bind = op_bind,
    .run = op_run,
    .list = op_list,
#ifndef HEDDLE_NO_FUSION
    .partition = cpu_partition,
#endif
#ifndef HEDDLE_NO_RANGES
    .resize = op_resize,
#endif
};
