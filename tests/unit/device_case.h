/* One-node regions on a device of the plugin that the program names before it includes this, with CASE_PLUGIN_OPENCL,
 * CASE_PLUGIN_VULKAN, CASE_PLUGIN_CUDA or CASE_PLUGIN_ROCM: a device with a stream, and a case of op_case.h run on
 * it. */
#ifndef HEDDLE_TESTS_UNIT_DEVICE_CASE_H
#define HEDDLE_TESTS_UNIT_DEVICE_CASE_H

#ifdef CASE_PLUGIN_VULKAN
#include "vulkan_host.h"
#define device_open vulkan_open
#elif defined(CASE_PLUGIN_CUDA) || defined(CASE_PLUGIN_ROCM)
#ifdef CASE_PLUGIN_ROCM
#define GPU_PLUGIN "rocm"
#endif
#include "cuda_host.h"
#define device_open cuda_open
#else
#include "opencl_host.h"
#define device_open opencl_open
#endif
#include "op_case.h"

#define BOOL ((heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1})

typedef struct rig {
  sim_test t;
  fake_device d; /* what op_case.h asks through */
} rig;

static inline void rig_open(rig *r) {
  device_open(&r->t, 1, NULL);
  memset(&r->d, 0, sizeof r->d);
  r->d.plugin = r->t.p;
  r->d.self = r->t.self;
  r->d.dev = r->t.dev[0];
  r->d.stream = sim_stream(&r->t, r->t.dev[0]);
}

static inline void rig_close(rig *r) {
  r->t.p->stream->close(r->d.stream);
  sim_close(&r->t);
}

static inline uint64_t bytes_of(const op_case *c, int32_t v) {
  uint64_t bytes = c->values[v].v.dtype.bits / 8;
  for (int32_t i = 0; i < c->values[v].v.ndim; i++) bytes *= (uint64_t)c->shapes[v][i];
  return bytes;
}

/* A launch's scratch memory, with a guard before and behind it, at the alignment that was offered and no better. */
static inline heddle_pslice scratch_open(rig *r, const op_case *c, uint64_t *total) {
  heddle_pslice slice = {NULL, 0, c->workspace_bytes};
  if (slice.bytes == 0) return slice;
  slice.offset = c->workspace_align > 64 ? c->workspace_align : 64;
  *total = slice.offset + (slice.bytes + 3) / 4 * 4 + 64;
  slice.buffer = sim_buf(&r->t, r->t.dev[0], HEDDLE_MEMORY_DEVICE, *total);
  sim_fill(&r->t, r->d.stream, slice.buffer, *total, 0xEEEEEEEE);
  return slice;
}

static inline void scratch_close(rig *r, const op_case *c, const heddle_pslice *slice, uint64_t total) {
  uint8_t guard[64];
  if (slice->bytes == 0) return;
  for (int end = 0; end < 2; end++) {
    const uint64_t at = end == 0 ? slice->offset - sizeof guard : total - sizeof guard;
    OK(&r->t, r->t.p->copy->read(r->d.stream, guard, slice->buffer, at, sizeof guard, &r->t.err));
    for (size_t k = 0; k < sizeof guard; k++)
      if (guard[k] != 0xEE) fail_msg("%s wrote beside its workspace", c->node.op);
  }
  r->t.p->memory->free(r->t.dev[0], slice->buffer);
}

/* Runs the case on the device, every operand in an arena at its own offset, the bytes round the results checked. */
static inline void run(rig *r, op_case *c) {
  sim_test *t = &r->t;
  heddle_pslice in[OP_VALUES] = {{0}}, out[OP_VALUES] = {{0}};
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  uint64_t at = 512, total, scratch_total = 0;
  uint64_t place[OP_VALUES];
  OK(t, t->p->op->query(t->self, 0, &c->region, op_take_offer, c, &t->err));
  for (uint64_t v = 0; v < c->region.values.count; v++) {
    place[v] = at;
    at += (bytes_of(c, (int32_t)v) + 1023) / 512 * 512;
  }
  total = at;
  heddle_pbuffer *arena = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, total);
  sim_fill(t, r->d.stream, arena, total, 0xEEEEEEEE);
  for (uint32_t i = 0; i < c->region.n_inputs; i++) {
    const int32_t v = c->inputs[i];
    const uint64_t bytes = bytes_of(c, v);
    if ((c->flags[i] & HEDDLE_INPUT_ABSORBED) != 0 || bytes == 0) continue;
    if (c->in_place == (int32_t)i) place[v] = place[c->outputs[0]];
    OK(t, t->p->copy->write(r->d.stream, arena, place[v], c->data[v], bytes, &t->err));
    in[i] = (heddle_pslice){arena, place[v], bytes};
  }
  for (uint32_t i = 0; i < c->region.n_outputs; i++)
    if (bytes_of(c, c->outputs[i]) > 0)
      out[i] = (heddle_pslice){arena, place[c->outputs[i]], bytes_of(c, c->outputs[i])};
  const heddle_pslice scratch = scratch_open(r, c, &scratch_total);
  heddle_pbind bind = {sizeof bind, 0, in, out, c->region.n_inputs, c->region.n_outputs, scratch};
  OK(t, t->p->op->prepare(t->dev[0], &c->region, 0, &op, &t->err));
  OK(t, t->p->op->bind(op, r->d.stream, &bind, &launch, &t->err));
  OK(t, t->p->op->run(launch, &t->err));
  uint8_t *all = malloc(total);
  OK(t, t->p->copy->read(r->d.stream, all, arena, 0, total, &t->err));
  for (uint32_t i = 0; i < c->region.n_outputs; i++) {
    const int32_t v = c->outputs[i];
    const uint64_t bytes = bytes_of(c, v);
    if (bytes > 0) memcpy(c->data[v], all + place[v], bytes);
    for (uint64_t k = 1; k <= 64; k++)
      if (all[place[v] - k] != 0xEE || all[place[v] + bytes + k - 1] != 0xEE) fail_msg("%s wrote beside", c->node.op);
  }
  free(all);
  scratch_close(r, c, &scratch, scratch_total);
  t->p->op->launch_free(launch);
  t->p->op->op_free(op);
  t->p->memory->free(t->dev[0], arena);
}

#endif
