/* core/layers/wrap_op.c: the wrapped tables for operators, layouts, modules, capture, timing and external handles.
 * Arrays of operands are rebuilt with the plugin's own handles, which may allocate: layers are for finding faults. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/layers/wrap.h"

/* ---- op */

static void op_launch_free(heddle_plaunch *launch) {
  W *l = heddle__take(launch, HEDDLE__LAUNCH, "op.launch_free");
  if (l == NULL) return;
  l->layers->next->op.launch_free(l->real);
  heddle__drop(l);
}

static void op_op_free(heddle_pop *op) {
  W *o = heddle__take(op, HEDDLE__OP, "op.op_free");
  if (o == NULL) return;
  o->layers->next->op.op_free(o->real);
  heddle__drop(o);
}

/* Stands between a plugin's query and the host's sink. */
typedef struct offers {
  heddle__call *c;
  const heddle_pregion *region;
  heddle_offer_fn offer;
  void *sink;
  uint32_t count;
} offers;

static heddle_status see_offer(void *user, const heddle_poffer *offer, heddle_error *err) {
  offers *o = user;
  o->count++;
  if (o->c->layers->checks) {
    heddle_status s = heddle__check_offer(o->c, o->region, offer, err);
    if (s != HEDDLE_OK) return s;
  }
  return o->offer(o->sink, offer, err);
}

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  BEGIN("op.query", HEDDLE__PURE);
  W *i = heddle__unwrap(&c, self, HEDDLE__INSTANCE);
  offers o = {&c, region, offer, sink, 0};
  c.index = index;
  if (c.status == HEDDLE_OK && c.layers->checks) heddle__check_region(&c, region);
  CALL(NEXT->op.query(i->real, index, region, see_offer, &o, err));
  if (c.status == HEDDLE_OK && o.count == 0) heddle__broken(&c, HEDDLE_EABI, "it said yes and offered nothing");
  return c.status;
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  BEGIN("op.prepare", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_pop *real = NULL;
  if (c.status == HEDDLE_OK && c.layers->checks) heddle__check_region(&c, region);
  CALL(NEXT->op.prepare(d->real, region, offer, &real, err));
  GIVE(HEDDLE__OP, heddle_pop, d, NULL, NEXT->op.op_free(real));
  if (w != NULL) {
    w->n_inputs = region->n_inputs;
    w->n_outputs = region->n_outputs;
  }
  return c.status;
}

/* The slice with the plugin's handle; each is looked at as an operand of the stream's device. */
static heddle_pslice slice(heddle__call *c, const heddle_pslice *given, const W *stream) {
  heddle_pslice real = *given;
  if (given->buffer == NULL) return real;
  const W *b = heddle__unwrap(c, given->buffer, HEDDLE__BUFFER);
  if (c->status == HEDDLE_OK && c->layers->checks &&
      (given->offset > b->bytes || given->bytes > b->bytes - given->offset))
    heddle__broken(c, HEDDLE_EINTERNAL, "an operand of %llu bytes at %llu leaves its buffer of %llu",
                   (unsigned long long)given->bytes, (unsigned long long)given->offset, (unsigned long long)b->bytes);
  if (c->status == HEDDLE_OK && c->layers->checks && b->device != stream->device)
    heddle__broken(c, HEDDLE_EINTERNAL, "an operand is a buffer of another device");
  real.buffer = b->real;
  return real;
}

/* The operands with the plugin's handles; *slices is freed by the caller. */
static void unwrap_operands(heddle__call *c, const W *owner, const W *stream, const heddle_pbind *operands,
                            heddle_pslice **slices, heddle_pbind *out, heddle_error *err) {
  *slices = NULL;
  *out = (heddle_pbind){.struct_size = sizeof *out};
  if (c->status == HEDDLE_OK && (operands->n_inputs != owner->n_inputs || operands->n_outputs != owner->n_outputs))
    heddle__broken(c, HEDDLE_EINTERNAL, "%u inputs and %u outputs for an op of %u and %u", (unsigned)operands->n_inputs,
                   (unsigned)operands->n_outputs, (unsigned)owner->n_inputs, (unsigned)owner->n_outputs);
  if (c->status != HEDDLE_OK) return;
  const uint32_t n = operands->n_inputs + operands->n_outputs;
  heddle_pslice *all = heddle__alloc(n, sizeof *all);
  if (all == NULL) c->status = heddle__no_memory(err, "a layer's operands");
  for (uint32_t i = 0; all != NULL && i < n; i++)
    all[i] =
        slice(c, i < operands->n_inputs ? &operands->inputs[i] : &operands->outputs[i - operands->n_inputs], stream);
  out->inputs = all;
  out->outputs = all != NULL ? all + operands->n_inputs : NULL;
  out->n_inputs = operands->n_inputs;
  out->n_outputs = operands->n_outputs;
  out->workspace = slice(c, &operands->workspace, stream);
  *slices = all;
}

static heddle_status op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                             heddle_error *err) {
  BEGIN("op.bind", HEDDLE__ANY_THREAD);
  W *o = heddle__unwrap(&c, op, HEDDLE__OP), *s = heddle__unwrap_stream(&c, stream);
  heddle_plaunch *real = NULL;
  heddle_pslice *slices = NULL;
  heddle_pbind bind;
  if (c.status == HEDDLE_OK && o->device != s->device)
    heddle__broken(&c, HEDDLE_EINTERNAL, "op and stream are of two devices");
  unwrap_operands(&c, o, s, operands, &slices, &bind, err);
  CALL(NEXT->op.bind(o->real, s->real, &bind, &real, err));
  heddle__free(slices);
  GIVE(HEDDLE__LAUNCH, heddle_plaunch, s->device, o, NEXT->op.launch_free(real));
  if (w != NULL) {
    w->stream = s;
    w->n_inputs = operands->n_inputs;
    w->n_outputs = operands->n_outputs;
  }
  return c.status;
}

#if HEDDLE_ABI_MINOR >= 2 /* tests/abi builds the layers with the header of 1.0 too */
static heddle_status op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                               heddle_error *err) {
  BEGIN("op.resize", HEDDLE__ANY_THREAD);
  W *l = heddle__unwrap(&c, launch, HEDDLE__LAUNCH);
  heddle_pslice *slices = NULL;
  heddle_pbind bind;
  if (l == NULL) return c.status;
  if (c.status == HEDDLE_OK && c.layers->checks) heddle__check_region(&c, region);
  unwrap_operands(&c, l, l->stream, operands, &slices, &bind, err);
  CALL(NEXT->op.resize(l->real, region, &bind, err));
  heddle__free(slices);
  return c.status;
}
#endif

static heddle_status op_run(heddle_plaunch *launch, heddle_error *err) {
  BEGIN("op.run", HEDDLE__RECORDS);
  W *l = heddle__unwrap(&c, launch, HEDDLE__LAUNCH);
  if (c.status == HEDDLE_OK) heddle__unwrap_stream(&c, (heddle_pstream *)(void *)l->stream);
  CALL(NEXT->op.run(l->real, err));
  return c.status;
}

static heddle_status op_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                  heddle_propose_fn propose, void *sink, heddle_error *err) {
  BEGIN("op.partition", HEDDLE__PURE);
  W *i = heddle__unwrap(&c, self, HEDDLE__INSTANCE);
  c.index = index;
  CALL(NEXT->op.partition(i->real, index, region, propose, sink, err));
  return c.status;
}

static heddle_status op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                             heddle_error *err) {
  BEGIN("op.list", HEDDLE__PURE);
  W *i = heddle__unwrap(&c, self, HEDDLE__INSTANCE);
  c.index = index;
  CALL(NEXT->op.list(i->real, index, list, sink, err));
  return c.status;
}

/* ---- layout */

static heddle_status layout_bytes(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, uint64_t *bytes,
                                  uint64_t *align, heddle_error *err) {
  BEGIN("layout.bytes", HEDDLE__PURE);
  W *i = heddle__unwrap(&c, self, HEDDLE__INSTANCE);
  c.index = index;
  CALL(NEXT->layout.bytes(i->real, index, tensor, bytes, align, err));
  if (c.status == HEDDLE_OK && c.layers->checks && (*align == 0 || (*align & (*align - 1)) != 0))
    heddle__broken(&c, HEDDLE_EABI, "the alignment %llu is no power of two", (unsigned long long)*align);
  return c.status;
}

static heddle_status layout_pack(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, void *dst,
                                 uint64_t dst_bytes, heddle_error *err) {
  BEGIN("layout.pack", HEDDLE__PURE);
  W *i = heddle__unwrap(&c, self, HEDDLE__INSTANCE);
  c.index = index;
  if (c.status == HEDDLE_OK && dst_bytes > 0 && (tensor->data == NULL || dst == NULL))
    heddle__broken(&c, HEDDLE_EINTERNAL, "the tensor has no bytes");
  CALL(NEXT->layout.pack(i->real, index, tensor, dst, dst_bytes, err));
  return c.status;
}

static heddle_status layout_describe(heddle_pinstance *self, uint32_t index, heddle_layout layout, char *buf,
                                     uint64_t bytes, heddle_error *err) {
  BEGIN("layout.describe", HEDDLE__PURE);
  W *i = heddle__unwrap(&c, self, HEDDLE__INSTANCE);
  c.index = index;
  CALL(NEXT->layout.describe(i->real, index, layout, buf, bytes, err));
  if (c.status == HEDDLE_OK && bytes > 0 && memchr(buf, '\0', (size_t)bytes) == NULL)
    heddle__broken(&c, HEDDLE_EABI, "the name is not terminated");
  return c.status;
}

/* ---- module */

static void module_unload(heddle_pmodule *module) {
  W *m = heddle__take(module, HEDDLE__MODULE, "module.unload");
  if (m == NULL) return;
  heddle__drop_kernels(m);
  m->layers->next->module.unload(m->real);
  heddle__drop(m);
}

static const char *module_formats(heddle_pinstance *self, uint32_t index) {
  heddle_error *err = NULL;
  BEGIN("module.formats", HEDDLE__PURE);
  W *i = heddle__unwrap(&c, self, HEDDLE__INSTANCE);
  return c.status == HEDDLE_OK ? NEXT->module.formats(i->real, index) : "";
}

static heddle_status module_load(heddle_pdevice *dev, const char *format, const void *data, uint64_t bytes,
                                 heddle_pmodule **out, heddle_error *err) {
  BEGIN("module.load", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_pmodule *real = NULL;
  CALL(NEXT->module.load(d->real, format, data, bytes, &real, err));
  GIVE(HEDDLE__MODULE, heddle_pmodule, d, NULL, NEXT->module.unload(real));
  return c.status;
}

static heddle_status module_kernel_get(heddle_pmodule *module, const char *name, heddle_pkernel **out,
                                       heddle_pkernel_info *info, heddle_error *err) {
  BEGIN("module.kernel_get", HEDDLE__ANY_THREAD);
  W *m = heddle__unwrap(&c, module, HEDDLE__MODULE);
  heddle_pkernel *real = NULL;
  CALL(NEXT->module.kernel_get(m->real, name, &real, info, err));
  GIVE(HEDDLE__KERNEL, heddle_pkernel, m->device, m, (void)0);
  return c.status;
}

static heddle_status module_launch(heddle_pstream *stream, heddle_pkernel *kernel, const uint32_t *grid,
                                   const uint32_t *block, uint32_t shared_bytes, const heddle_pargument *args,
                                   uint32_t n_args, heddle_error *err) {
  BEGIN("module.launch", HEDDLE__RECORDS);
  W *s = heddle__unwrap_stream(&c, stream), *k = heddle__unwrap(&c, kernel, HEDDLE__KERNEL);
  heddle_pargument *real = c.status == HEDDLE_OK ? heddle__alloc(n_args, sizeof *real) : NULL;
  if (c.status == HEDDLE_OK && real == NULL) c.status = heddle__no_memory(err, "a layer's arguments");
  for (uint32_t i = 0; real != NULL && c.status == HEDDLE_OK && i < n_args; i++) {
    real[i] = args[i];
    if (args[i].size != 0) continue;
    const W *b = heddle__unwrap(&c, args[i].buffer, HEDDLE__BUFFER);
    if (c.status == HEDDLE_OK && c.layers->checks && (args[i].offset > b->bytes || b->device != s->device))
      heddle__broken(&c, HEDDLE_EINTERNAL, "argument %u is past the end of its buffer, or of another device",
                     (unsigned)i);
    real[i].buffer = b->real;
  }
  CALL(NEXT->module.launch(s->real, k->real, grid, block, shared_bytes, real, n_args, err));
  heddle__free(real);
  return c.status;
}

/* ---- capture */

static void capture_free(heddle_pgraph *graph) {
  W *g = heddle__take(graph, HEDDLE__GRAPH, "capture.free");
  if (g == NULL) return;
  g->layers->next->capture.free(g->real);
  heddle__drop(g);
}

static heddle_status capture_begin(heddle_pstream *stream, heddle_error *err) {
  BEGIN("capture.begin", HEDDLE__NOT_CAPTURED);
  W *s = heddle__unwrap_stream(&c, stream);
  CALL(NEXT->capture.begin(s->real, err));
  if (c.status == HEDDLE_OK) atomic_store(&s->capturing, true);
  return c.status;
}

static heddle_status capture_end(heddle_pstream *stream, heddle_pgraph **out, heddle_error *err) {
  BEGIN("capture.end", HEDDLE__RECORDS);
  W *s = heddle__unwrap_stream(&c, stream);
  heddle_pgraph *real = NULL;
  if (c.status == HEDDLE_OK && c.layers->checks && !atomic_load(&s->capturing))
    heddle__broken(&c, HEDDLE_EINTERNAL, "nothing is being recorded on the stream");
  bool called = heddle__before(&c);
  if (c.status == HEDDLE_OK || called) c.status = NEXT->capture.end(s->real, &real, err);
  else if (s->layers != NULL && atomic_load(&s->capturing)) { /* a layer failed the call: the recording ends anyway */
    if (NEXT->capture.end(s->real, &real, NULL) == HEDDLE_OK) NEXT->capture.free(real);
    real = NULL;
  }
  if (s->layers != NULL) atomic_store(&s->capturing, false);
  heddle__after(&c);
  GIVE(HEDDLE__GRAPH, heddle_pgraph, s->device, NULL, NEXT->capture.free(real));
  return c.status;
}

static heddle_status capture_replay(heddle_pgraph *graph, heddle_pstream *stream, heddle_error *err) {
  BEGIN("capture.replay", HEDDLE__NOT_CAPTURED);
  W *g = heddle__unwrap(&c, graph, HEDDLE__GRAPH), *s = heddle__unwrap_stream(&c, stream);
  if (c.status == HEDDLE_OK && c.layers->checks && g->device != s->device)
    heddle__broken(&c, HEDDLE_EINTERNAL, "recording and stream are of two devices");
  CALL(NEXT->capture.replay(g->real, s->real, err));
  return c.status;
}

/* ---- timing */

static void timing_free(heddle_ptimer *timer) {
  W *t = heddle__take(timer, HEDDLE__TIMER, "timing.free");
  if (t == NULL) return;
  t->layers->next->timing.free(t->real);
  heddle__drop(t);
}

static heddle_status timing_create(heddle_pdevice *dev, uint32_t slots, heddle_ptimer **out, heddle_error *err) {
  BEGIN("timing.create", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_ptimer *real = NULL;
  CALL(NEXT->timing.create(d->real, slots, &real, err));
  GIVE(HEDDLE__TIMER, heddle_ptimer, d, NULL, NEXT->timing.free(real));
  if (w != NULL) w->bytes = slots;
  return c.status;
}

static heddle_status timing_mark(heddle_pstream *stream, heddle_ptimer *timer, uint32_t slot, heddle_error *err) {
  BEGIN("timing.mark", HEDDLE__RECORDS);
  W *s = heddle__unwrap_stream(&c, stream), *t = heddle__unwrap(&c, timer, HEDDLE__TIMER);
  if (c.status == HEDDLE_OK && slot >= t->bytes)
    heddle__broken(&c, HEDDLE_EINTERNAL, "slot %u of %llu", (unsigned)slot, (unsigned long long)t->bytes);
  CALL(NEXT->timing.mark(s->real, t->real, slot, err));
  return c.status;
}

static heddle_status timing_read(heddle_ptimer *timer, uint32_t first, uint32_t count, uint64_t *out_ns,
                                 heddle_error *err) {
  BEGIN("timing.read", HEDDLE__ANY_THREAD);
  W *t = heddle__unwrap(&c, timer, HEDDLE__TIMER);
  if (c.status == HEDDLE_OK && (first > t->bytes || count > t->bytes - first))
    heddle__broken(&c, HEDDLE_EINTERNAL, "slots %u and %u more of %llu", (unsigned)first, (unsigned)count,
                   (unsigned long long)t->bytes);
  CALL(NEXT->timing.read(t->real, first, count, out_ns, err));
  return c.status;
}

static heddle_status timing_calibrate(heddle_pdevice *dev, uint64_t *device_ns, uint64_t *host_ns, heddle_error *err) {
  BEGIN("timing.calibrate", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  CALL(NEXT->timing.calibrate(d->real, device_ns, host_ns, err));
  return c.status;
}

/* ---- external */

static heddle_status external_export_memory(heddle_pdevice *dev, heddle_pbuffer *buffer, uint32_t kind, int64_t *out,
                                            heddle_error *err) {
  BEGIN("external.export_memory", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE), *b = heddle__unwrap(&c, buffer, HEDDLE__BUFFER);
  CALL(NEXT->external.export_memory(d->real, b->real, kind, out, err));
  return c.status;
}

static heddle_status external_import_memory(heddle_pdevice *dev, uint32_t kind, int64_t handle, uint64_t bytes,
                                            heddle_pbuffer **out, heddle_error *err) {
  BEGIN("external.import_memory", HEDDLE__ANY_THREAD);
  W *d = heddle__unwrap(&c, dev, HEDDLE__DEVICE);
  heddle_pbuffer *real = NULL;
  CALL(NEXT->external.import_memory(d->real, kind, handle, bytes, &real, err));
  GIVE(HEDDLE__BUFFER, heddle_pbuffer, d, NULL, NEXT->memory.free(d->real, real));
  if (w != NULL) w->bytes = bytes;
  return c.status;
}

void heddle__wrap_op_tables(struct heddle__layers *layers) {
  PUT(op, launch_free);
  PUT(op, op_free);
  PUT(op, query);
  PUT(op, prepare);
  PUT(op, bind);
  PUT(op, run);
  PUT(op, partition);
  PUT(op, list);
#if HEDDLE_ABI_MINOR >= 2
  PUT(op, resize);
#endif
  PUT(layout, bytes);
  PUT(layout, pack);
  PUT(layout, describe);
  PUT(module, unload);
  PUT(module, formats);
  PUT(module, load);
  PUT(module, kernel_get);
  PUT(module, launch);
  PUT(capture, free);
  PUT(capture, begin);
  PUT(capture, end);
  PUT(capture, replay);
  PUT(timing, free);
  PUT(timing, create);
  PUT(timing, mark);
  PUT(timing, read);
  PUT(timing, calibrate);
  PUT(external, export_memory);
  PUT(external, import_memory);
}
