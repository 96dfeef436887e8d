/* executor/bind.c: what a program needs to run: memory, handles of it for each device, streams, events, fences.
 * Launches and recordings are in launch.c. */
#include "executor/bind.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"

/* ---- memory */

heddle_status heddle__bound_slot(heddle__bound *b, uint32_t alloc, heddle__memory **out, heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  const heddle__allocation *a = &plan->allocs[alloc];
  const heddle__space *space = &plan->spaces[a->space];
  if (space->image.width > 0)
    return heddle__memory_create_image(plan->devices[space->device].dev, &space->image, out, err);
  return heddle__memory_create(plan->devices[space->device].dev, space->kind, a->bytes,
                               a->align > space->align ? a->align : space->align, b->granule, out, err);
}

static heddle_status take_memory(heddle__bound *b, heddle__memory *const *given, heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    if (given != NULL && given[i] != NULL) {
      b->memory[i] = heddle__memory_retain(given[i]);
      continue;
    }
    if (b->program->packed[i] != NULL) {
      b->memory[i] = heddle__memory_retain(b->program->packed[i]->memory);
      continue;
    }
    heddle_status s = heddle__bound_slot(b, i, &b->memory[i], err);
    if (s != HEDDLE_OK) return s;
    b->own_bytes += b->memory[i]->imported;
  }
  return HEDDLE_OK;
}

static heddle_status take_ports(heddle__bound *b, heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    b->n_inputs += plan->allocs[i].kind == HEDDLE__ALLOC_INPUT;
    b->n_outputs += plan->allocs[i].kind == HEDDLE__ALLOC_OUTPUT;
  }
  for (uint32_t k = 0; k < plan->req.n_ties; k++) b->n_outputs += plan->updates[k].step != HEDDLE__NONE;
  b->inputs = heddle__alloc(b->n_inputs, sizeof *b->inputs);
  b->outputs = heddle__alloc(b->n_outputs, sizeof *b->outputs);
  if (b->inputs == NULL || b->outputs == NULL) return heddle__no_memory(err, "inputs and outputs");
  uint32_t in = 0, out = 0;
  for (uint32_t k = 0; k < plan->req.n_ties; k++) { /* outputs in the memory of their inputs */
    const heddle__update *u = &plan->updates[k];
    if (u->step == HEDDLE__NONE) continue;
    const heddle__instance *it = &plan->instances[u->output];
    b->outputs[out++] = (heddle__port){it->io, it->alloc, u->output, NULL};
  }
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    const heddle__allocation *a = &plan->allocs[i];
    if (a->kind != HEDDLE__ALLOC_INPUT && a->kind != HEDDLE__ALLOC_OUTPUT) continue;
    heddle__port port = {plan->instances[a->instance].io, i, a->instance, NULL};
    if (b->memory[i]->host == NULL && !heddle__bound_is_resident(b, i))
      return heddle__fail(err, HEDDLE_EINTERNAL, "the plan puts an input or output where the host cannot reach it");
    if (a->kind == HEDDLE__ALLOC_INPUT) b->inputs[in++] = port;
    else b->outputs[out++] = port;
  }
  return HEDDLE_OK;
}

bool heddle__bound_is_resident(const heddle__bound *b, uint32_t alloc) {
  const heddle__plan *plan = b->program->plan;
  const heddle__allocation *a = &plan->allocs[alloc];
  return (a->kind == HEDDLE__ALLOC_INPUT || a->kind == HEDDLE__ALLOC_OUTPUT) && !plan->spaces[a->space].host_visible;
}

heddle_status heddle__bound_handle(heddle__bound *b, uint32_t alloc, uint32_t device, heddle_pbuffer **out,
                                   heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  heddle__memory *m = b->memory[alloc];
  heddle_device *dev = plan->devices[device].dev;
  heddle_pbuffer **cached = &b->imports[(size_t)alloc * plan->n_devices + device];
  if (m->dev == dev) {
    *out = m->buffer;
    return HEDDLE_OK;
  }
  heddle_status s = HEDDLE_OK;
  if (*cached == NULL && m->host == NULL)
    s = heddle__fail_on(dev->name, err, HEDDLE_EINTERNAL, "the plan lets %s use memory of %s", dev->name, m->dev->name);
  else if (*cached == NULL && dev->t->memory.import_host == NULL)
    s = heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED, "%s cannot import memory of %s", dev->name, m->dev->name);
  else if (*cached == NULL) s = dev->t->memory.import_host(dev->handle, m->host, m->imported, cached, err);
  if (s != HEDDLE_OK)
    return heddle__prefix_on(m->dev->name, err, s, "host memory of %s for %s: ", m->dev->name, dev->name);
  *out = *cached;
  return HEDDLE_OK;
}

/* A view of exactly the instance's bytes, made once. */
static heddle_status part_of(heddle__bound *b, uint32_t alloc, uint32_t device, uint64_t offset, uint64_t bytes,
                             heddle_pbuffer *parent, heddle_pbuffer **out, heddle_error *err) {
  for (uint32_t i = 0; i < b->n_parts; i++) {
    const heddle__part *p = &b->parts[i];
    if (p->alloc != alloc || p->device != device || p->offset != offset || p->bytes != bytes) continue;
    *out = p->buffer;
    return HEDDLE_OK;
  }
  if (b->n_parts == b->cap_parts) {
    uint32_t cap = b->cap_parts == 0 ? 16 : b->cap_parts * 2;
    heddle__part *grown = heddle__grow(b->parts, b->cap_parts, cap, sizeof *grown);
    if (grown == NULL) return heddle__no_memory(err, "views of buffers");
    b->parts = grown;
    b->cap_parts = cap;
  }
  heddle_device *dev = b->program->plan->devices[device].dev;
  if (!heddle__device_has_views(dev))
    return heddle__fail_on(dev->name, err, HEDDLE_EINTERNAL, "the plan uses views on %s, whose plugin has none",
                           dev->name);
  heddle__part part = {alloc, device, offset, bytes, NULL};
  heddle_status s = dev->t->memory.view(dev->handle, parent, offset, bytes, &part.buffer, err);
  if (s != HEDDLE_OK) return s;
  b->parts[b->n_parts++] = part;
  *out = part.buffer;
  return HEDDLE_OK;
}

heddle_status heddle__bound_slice(heddle__bound *b, uint32_t instance, uint32_t device, bool bare, heddle_pslice *out,
                                  heddle_error *err) {
  *out = (heddle_pslice){NULL, 0, 0};
  if (instance == HEDDLE__NONE) return HEDDLE_OK;
  const heddle__plan *plan = b->program->plan;
  const heddle__instance *inst = &plan->instances[instance];
  if (inst->bytes == 0) return HEDDLE_OK;
  heddle_pbuffer *buffer = NULL;
  heddle_status s = heddle__bound_handle(b, inst->alloc, device, &buffer, err);
  if (s == HEDDLE_OK && bare && plan->allocs[inst->alloc].kind == HEDDLE__ALLOC_ARENA) {
    s = part_of(b, inst->alloc, device, inst->offset, inst->bytes, buffer, &buffer, err);
    *out = (heddle_pslice){buffer, 0, inst->bytes};
  } else {
    *out = (heddle_pslice){buffer, inst->offset, inst->bytes};
  }
  return s;
}

void heddle__bound_drop_derived(heddle__bound *b, uint32_t alloc) {
  const heddle__plan *plan = b->program->plan;
  for (uint32_t i = 0; i < b->n_parts; i++) {
    heddle__part *p = &b->parts[i];
    if (p->alloc != alloc) continue;
    heddle_device *dev = plan->devices[p->device].dev;
    dev->t->memory.free(dev->handle, p->buffer);
    b->parts[i--] = b->parts[--b->n_parts];
  }
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    heddle_pbuffer **import = &b->imports[(size_t)alloc * plan->n_devices + d];
    if (*import == NULL) continue;
    heddle_device *dev = plan->devices[d].dev;
    dev->t->memory.free(dev->handle, *import);
    *import = NULL;
  }
}

void heddle__bound_drop_parts(heddle__bound *b) {
  const heddle__plan *plan = b->program->plan;
  while (b->n_parts > 0) {
    const heddle__part *p = &b->parts[--b->n_parts];
    heddle_device *dev = plan->devices[p->device].dev;
    dev->t->memory.free(dev->handle, p->buffer);
  }
}

uint64_t heddle__bound_import_align(const heddle__bound *b, uint32_t alloc) {
  const heddle__program *p = b->program;
  uint64_t most = b->memory[alloc]->dev->desc.import_alignment;
  for (uint32_t i = 0; i < p->n_segments; i++) {
    const heddle_device *dev = b->lines[p->segments[i].stream].dev;
    if (dev != NULL && dev->desc.import_alignment > most && heddle__stretch_uses(b, i, alloc))
      most = dev->desc.import_alignment;
  }
  return most;
}

void heddle__bound_replace(heddle__bound *b, uint32_t alloc, heddle__memory *take) {
  heddle__bound_drop_other(b);
  heddle__bound_replace_here(b, alloc, take);
}

void heddle__bound_replace_here(heddle__bound *b, uint32_t alloc, heddle__memory *take) {
  for (uint32_t i = 0; i < b->program->n_segments; i++) {
    if (!heddle__stretch_uses(b, i, alloc)) continue;
    heddle__stretch_unbind(b, i);
    b->stretches[i].stale = true;
    b->stale = true;
  }
  heddle__bound_drop_derived(b, alloc);
  b->own_bytes -= b->memory[alloc]->lender == NULL ? b->memory[alloc]->imported : 0;
  b->own_bytes += take->lender == NULL ? take->imported : 0;
  heddle__memory_release(b->memory[alloc]);
  b->memory[alloc] = take;
}

heddle_status heddle__bound_refresh(heddle__bound *b, heddle_error *err) {
  for (uint32_t i = 0; i < b->program->n_segments && b->stale; i++) {
    if (!b->stretches[i].stale) continue;
    heddle_status s = heddle__stretch_bind(b, i, err);
    if (s != HEDDLE_OK) {
      heddle__stretch_unbind(b, i);
      return s;
    }
    b->stretches[i].stale = false;
  }
  b->stale = false;
  return HEDDLE_OK;
}

/* ---- streams, events, fences */

static heddle_status open_line(heddle__bound *b, uint32_t i, heddle__waker *waker, heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  const heddle__lane *lane = &b->program->lanes[i];
  const heddle__plan_stream *ps = &plan->streams[i];
  heddle__line *l = &b->lines[i];
  l->is_host = ps->is_host;
  l->first = l->next = lane->first;
  l->end = lane->end;
  if (ps->device == HEDDLE__NONE || ps->n_steps == 0) {
    l->is_host = true; /* nothing to submit */
    return HEDDLE_OK;
  }
  l->dev = plan->devices[ps->device].dev;
  heddle_status s = HEDDLE_OK;
  if (lane->needs_stream || !ps->is_host) {
    l->t = l->dev->t;
    s = l->t->stream.create(l->dev->handle, ps->kind, 0, &l->stream, err);
    if (s != HEDDLE_OK) return heddle__prefix_on(l->dev->name, err, s, "%s: stream %u: ", l->dev->name, (unsigned)i);
  }
  if (ps->is_host) return HEDDLE_OK;
  s = heddle__fence_create(waker, &l->fence, err);
  if (s == HEDDLE_OK) l->fence_handle = heddle__fence_handle(l->fence);
  b->has_watchdog = b->has_watchdog || l->dev->watchdog_ns != 0;
  b->spins = b->spins || (l->dev->desc.caps & HEDDLE_CAP_HOST_CORES) == 0;
  if (s == HEDDLE_OK && (l->dev->desc.caps & HEDDLE_CAP_POLLED) != 0) {
    int64_t spin_us = 0;
    s = heddle__context_number(l->dev->ctx, "spin_us", 0, 0, 1000, &spin_us, err);
    b->polls_ns = (uint64_t)spin_us * 1000;
  }
  b->all_inline = false;
  return s;
}

static heddle_status make_events(heddle__bound *b, heddle_error *err) {
  const heddle__program *p = b->program;
  for (uint32_t i = 0; i < p->n_segments; i++) {
    uint32_t step = p->segments[i].event_step;
    if (step == HEDDLE__NONE) continue;
    const heddle__line *l = &b->lines[p->segments[i].stream];
    heddle_status s = l->t != NULL && l->t->event.create != NULL
                          ? l->t->event.create(l->dev->handle, &b->events[step], err)
                          : heddle__fail(err, HEDDLE_EINTERNAL, "the plan uses an event on a device without events");
    if (s != HEDDLE_OK) return heddle__prefix(err, s, "an event: ");
  }
  return HEDDLE_OK;
}

void heddle__bound_renew_fences(heddle__bound *b, heddle__waker *waker) {
  for (uint32_t i = 0; i < b->n_lines; i++) {
    heddle__line *l = &b->lines[i];
    if (l->fence == NULL) continue;
    heddle__fence *fresh = NULL;
    if (heddle__fence_create(waker, &fresh, NULL) != HEDDLE_OK) {
      heddle__fence_reset(l->fence); /* memory is out; the drained stream will not signal it again */
      l->base = atomic_load(&l->fence->value) > l->base + b->program->lanes[i].n_signals
                    ? atomic_load(&l->fence->value)
                    : l->base + b->program->lanes[i].n_signals;
      continue;
    }
    heddle__fence_free(l->fence);
    l->fence = fresh;
    l->fence_handle = heddle__fence_handle(fresh);
    l->base = 0;
  }
}

/* ---- the whole */

static heddle_status allocate(heddle__bound *b, heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  b->memory = heddle__alloc(plan->n_allocs, sizeof *b->memory);
  b->imports = heddle__alloc((size_t)plan->n_allocs * plan->n_devices, sizeof *b->imports);
  b->events = heddle__alloc(plan->n_steps, sizeof *b->events);
  b->actions = heddle__alloc(plan->n_steps, sizeof *b->actions);
  b->launches = heddle__alloc(plan->n_steps, sizeof *b->launches);
  b->stretches = heddle__alloc(b->program->n_segments, sizeof *b->stretches);
  b->lines = heddle__alloc(plan->n_streams, sizeof *b->lines);
  b->n_lines = b->lines != NULL ? plan->n_streams : 0;
  bool all = b->memory != NULL && b->imports != NULL && b->events != NULL && b->actions != NULL &&
             b->launches != NULL && b->stretches != NULL && b->lines != NULL;
  return all ? HEDDLE_OK : heddle__no_memory(err, "the memory of an executor");
}

heddle_status heddle__bound_make(heddle__program *program, heddle__waker *waker, heddle__memory *const *given,
                                 heddle__bound **out, heddle_error *err) {
  *out = NULL;
  heddle__bound *b = heddle__alloc(1, sizeof *b);
  if (b == NULL) return heddle__no_memory(err, "an executor's bindings");
  b->program = heddle__program_retain(program);
  b->granule = heddle__plan_granule(program->plan);
  b->all_inline = true;
  b->waited = HEDDLE__NONE;
  heddle_status s = allocate(b, err);
  for (uint32_t i = 0; i < program->plan->n_devices && s == HEDDLE_OK; i++)
    if (program->plan->devices[i].used) s = heddle__device_check(program->plan->devices[i].dev, err);
  if (s == HEDDLE_OK) s = take_memory(b, given, err);
  if (s == HEDDLE_OK) s = take_ports(b, err);
  for (uint32_t i = 0; i < b->n_lines && s == HEDDLE_OK; i++) s = open_line(b, i, waker, err);
  if (s == HEDDLE_OK) s = make_events(b, err);
  for (uint32_t i = 0; i < program->n_segments && s == HEDDLE_OK; i++) s = heddle__stretch_bind(b, i, err);
  if (s != HEDDLE_OK) {
    heddle__bound_free(b, true); /* nothing was run, and a recording runs nothing */
    return s;
  }
  *out = b;
  return HEDDLE_OK;
}

/* Counts, or takes back, the memory of a bound thing as orphaned. */
static void count_orphans(heddle__bound *b, bool add) {
  const heddle__plan *plan = b->program->plan;
  b->orphan_bytes = 0;
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    heddle__memory *m = b->memory[i];
    if (m == NULL || b->program->packed[i] != NULL) continue;
    if (add) atomic_fetch_add(&m->dev->orphan_bytes, m->imported);
    else atomic_fetch_sub(&m->dev->orphan_bytes, m->imported);
    if (add) b->orphan_bytes += m->imported;
  }
}

/* Whether work of a device, rather than the host alone, may touch an allocation. */
static bool is_touched(const heddle__bound *b, uint32_t alloc) {
  const heddle__plan *plan = b->program->plan;
  bool touched = !heddle__device_inline(b->memory[alloc]->dev);
  for (uint32_t d = 0; d < plan->n_devices; d++)
    touched = touched || (!plan->devices[d].is_inline && b->imports[(size_t)alloc * plan->n_devices + d] != NULL);
  return touched;
}

void heddle__bound_free(heddle__bound *b, bool quiet) {
  if (b == NULL) return;
  const heddle__program *p = b->program;
  const heddle__plan *plan = p->plan;
  if (b->orphan_bytes > 0) count_orphans(b, false);
  for (uint32_t i = 0; !quiet && b->memory != NULL && b->imports != NULL && i < plan->n_allocs; i++)
    if (b->memory[i] != NULL && is_touched(b, i)) b->memory[i]->keep_block = true;
  heddle__bound_drop_other(b);
  heddle__side_unbind(b);
  for (uint32_t i = 0; i < p->n_segments && b->events != NULL; i++) {
    uint32_t step = p->segments[i].event_step;
    if (step != HEDDLE__NONE && b->events[step] != NULL) b->lines[p->segments[i].stream].t->event.free(b->events[step]);
  }
  for (uint32_t i = 0; i < b->n_lines; i++) {
    heddle__line *l = &b->lines[i];
    heddle__fence_free(l->fence);
    if (l->stream != NULL) l->t->stream.close(l->stream);
  }
  heddle__side_free(b);
  for (uint32_t i = 0; b->inputs != NULL && i < b->n_inputs; i++) heddle_tensor_release(b->inputs[i].lent);
  for (uint32_t i = 0; b->outputs != NULL && i < b->n_outputs; i++) heddle_tensor_release(b->outputs[i].lent);
  heddle__free(b->events);
  heddle__free(b->lines);
  heddle__free(b->inputs);
  heddle__free(b->outputs);
  heddle__program_release(b->program);
  heddle__free(b);
}

bool heddle__bound_quiet(heddle__bound *b, uint64_t timeout_ns) {
  for (uint32_t i = 0; i < b->n_lines; i++) {
    const heddle__line *l = &b->lines[i];
    if (l->is_host || l->stream == NULL) continue;
    heddle_status s = l->dev->t->device.idle(l->dev->handle, heddle__device_patience(l->dev, timeout_ns), NULL);
    if (s != HEDDLE_OK && s != HEDDLE_EDEVICE) return false;
  }
  return true;
}

heddle__bound *heddle__bound_push_orphan(heddle__bound *list, heddle__bound *take) {
  if (take->orphan_bytes == 0) count_orphans(take, true);
  for (uint32_t i = 0; i < take->n_lines; i++) { /* what they would wake is gone soon */
    heddle__fence_free(take->lines[i].fence);
    take->lines[i].fence = NULL;
  }
  take->next_orphan = list;
  return take;
}

heddle__bound *heddle__bound_next_orphan(const heddle__bound *b) {
  return b->next_orphan;
}
