/* executor/launch.c: the steps of a segment with everything resolved: launches bound, handles and offsets looked up,
 * the whole recorded where the plugin can replay it. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "executor/range.h"

enum { FEW = 16 };

/* ---- one step */

/* The operands of a step; few has room for 2 * FEW, and *slices, where it is not few, is freed by the caller. */
static heddle_status fill_operands(heddle__bound *b, const heddle__step *step, heddle_pslice *few,
                                   heddle_pslice **slices, heddle_pbind *out, heddle_error *err) {
  const heddle__region *r = &b->program->plan->regions[step->region];
  const bool bare = (r->offers[r->offer].flags & HEDDLE_OFFER_BARE) != 0;
  const uint32_t n = r->n_inputs + r->n_outputs;
  heddle_pslice *all = n > 2 * FEW ? heddle__alloc(n, sizeof *all) : few;
  *slices = all;
  if (all == NULL) return heddle__no_memory(err, "operands");
  *out = (heddle_pbind){.struct_size = sizeof *out,
                        .inputs = all,
                        .outputs = all + r->n_inputs,
                        .n_inputs = r->n_inputs,
                        .n_outputs = r->n_outputs};
  heddle_status s = heddle__bound_slice(b, step->workspace, step->device, bare, &out->workspace, err);
  for (uint32_t i = 0; i < r->n_inputs && s == HEDDLE_OK; i++)
    s = heddle__bound_slice(b, step->in[i], step->device, bare, &all[i], err);
  for (uint32_t i = 0; i < r->n_outputs && s == HEDDLE_OK; i++)
    s = heddle__bound_slice(b, step->out[i], step->device, bare, &all[r->n_inputs + i], err);
  return s;
}

/* What the caller lent for an earlier shape may be too small; it is replaced before the run. */
static bool has_room(const heddle__bound *b, const uint32_t *instances, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (instances[i] == HEDDLE__NONE) continue;
    const heddle__instance *it = &b->program->plan->instances[instances[i]];
    const heddle__memory *m = b->memory[it->alloc];
    if (it->bytes > 0 && (it->offset > m->bytes || it->bytes > m->bytes - it->offset)) return false;
  }
  return true;
}

heddle_status heddle__action_resize(heddle__bound *b, heddle__action *a, heddle_error *err) {
  const heddle__step *step = &b->program->plan->steps[a->step];
  heddle_pslice few[2 * FEW], *slices = few;
  heddle_pbind operands;
  const heddle__region *r = &b->program->plan->regions[step->region];
  if (a->op->resize == NULL || !has_room(b, step->in, r->n_inputs) || !has_room(b, step->out, r->n_outputs))
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "the launch cannot be resized");
  heddle_status s = fill_operands(b, step, few, &slices, &operands, err);
  if (s == HEDDLE_OK) s = a->op->resize(a->launch, r->ask, &operands, err);
  if (s == HEDDLE_OK) a->sized = r->ask;
  if (slices != few) heddle__free(slices);
  return s;
}

/* A launch of the root's operator gets the shapes of the program; where that does not do, one is prepared for them. */
static heddle_status bind_op(heddle__bound *b, const heddle__line *line, const heddle__step *step, heddle__action *a,
                             heddle_error *err) {
  heddle__program *p = b->program;
  const heddle__region *r = &p->plan->regions[step->region];
  heddle_pslice few[2 * FEW], *slices = few;
  heddle_pbind operands;
  heddle_plaunch *launch = NULL;
  heddle_error why = {0};
  a->op = heddle__region_ops(p->plan, r);
  heddle_status s = fill_operands(b, step, few, &slices, &operands, err);
  for (bool again = true; s == HEDDLE_OK && again;) {
    heddle_pop *op = heddle__program_op(p, step->region);
    a->prepared = op;
    a->sized = r->ask;
    s = a->op->bind(op, line->stream, &operands, &launch, err);
    if (!HEDDLE_HAS_RANGES || s != HEDDLE_OK || p->root == NULL || op != p->root->ops[step->region] ||
        r->ask == p->root->plan->regions[step->region].ask)
      break;
    s = a->op->resize(launch, r->ask, &operands, &why);
    if (s == HEDDLE_OK) break;
    a->op->launch_free(launch);
    launch = NULL;
    again = s == HEDDLE_EUNSUPPORTED;
    if (again) s = heddle__program_late(p, step->region, err);
    else if (err != NULL) *err = why;
  }
  if (s == HEDDLE_OK) a->launch = launch;
  if (slices != few) heddle__free(slices);
  return s;
}

static uint32_t owner(const heddle__plan *plan, uint32_t instance) {
  return plan->spaces[plan->instances[instance].space].device;
}

/* Whose handle of host memory the copies of a device take: the owner's, where the ABI lets a handle cross. */
static uint32_t host_side(const heddle__plan *plan, uint32_t instance, uint32_t device) {
  uint32_t at = owner(plan, instance);
  const heddle_device *a = plan->devices[at].dev, *b = plan->devices[device].dev;
  bool crosses =
      !plan->devices[at].is_inline && a->instance == b->instance && a->desc.event_domain == b->desc.event_domain;
  return crosses ? at : device;
}

/* Both ends of a copy as handles of the given devices. */
static heddle_status bind_copy(heddle__bound *b, const heddle__step *step, uint32_t dst_device, uint32_t src_device,
                               heddle__action *a, heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  heddle_pslice dst, src;
  heddle_status s = heddle__bound_slice(b, step->dst, dst_device, false, &dst, err);
  if (s == HEDDLE_OK) s = heddle__bound_slice(b, step->src, src_device, false, &src, err);
  if (s != HEDDLE_OK) return s;
  a->dst = dst.buffer;
  a->dst_offset = dst.offset;
  a->src = src.buffer;
  a->src_offset = src.offset;
  a->bytes = plan->instances[step->dst].bytes;
  a->dst_dev = plan->devices[dst_device].dev;
  a->src_dev = plan->devices[src_device].dev;
  return HEDDLE_OK;
}

static void *host_address(const heddle__bound *b, uint32_t instance) {
  const heddle__instance *inst = &b->program->plan->instances[instance];
  char *base = b->memory[inst->alloc]->host;
  return base != NULL ? base + inst->offset : NULL;
}

static heddle_status bind_step(heddle__bound *b, const heddle__line *line, uint32_t id, heddle__action *a,
                               heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  const heddle__step *step = &plan->steps[id];
  *a = (heddle__action){.kind = step->kind, .step = id};
  if (step->kind <= HEDDLE__STEP_PEER && (line->stream == NULL || step->device == HEDDLE__NONE))
    return heddle__fail(err, HEDDLE_EINTERNAL, "the plan has work for a plugin on a stream without device");
  switch (step->kind) {
  case HEDDLE__STEP_OP: return bind_op(b, line, step, a, err);
  case HEDDLE__STEP_H2D: return bind_copy(b, step, step->device, host_side(plan, step->src, step->device), a, err);
  case HEDDLE__STEP_D2H: return bind_copy(b, step, host_side(plan, step->dst, step->device), step->device, a, err);
  case HEDDLE__STEP_D2D: return bind_copy(b, step, step->device, step->device, a, err);
  case HEDDLE__STEP_PEER: return bind_copy(b, step, owner(plan, step->dst), owner(plan, step->src), a, err);
  case HEDDLE__STEP_HOST_COPY:
    a->to = host_address(b, step->dst);
    a->from = host_address(b, step->src);
    a->bytes = plan->instances[step->dst].bytes;
    if (a->bytes > 0 && (a->to == NULL || a->from == NULL))
      return heddle__fail(err, HEDDLE_EINTERNAL, "the plan copies memory that the host cannot reach");
    return HEDDLE_OK;
  case HEDDLE__STEP_RELEASE:
  case HEDDLE__STEP_ACQUIRE: {
    const heddle__instance *inst = &plan->instances[step->src];
    const heddle__memory *m = b->memory[inst->alloc];
    a->dst = m->buffer;
    a->dst_offset = inst->offset;
    a->bytes = m->coherent ? 0 : inst->bytes; /* nothing to do */
    a->dst_dev = m->dev;
    return HEDDLE_OK;
  }
  case HEDDLE__STEP_FINISH: break;
  }
  return heddle__fail(err, HEDDLE_EINTERNAL, "the plan has a step of an unknown kind");
}

/* ---- recording */

static bool may_record(const heddle__line *line, const heddle__action *a) {
  return (a->kind == HEDDLE__STEP_OP && a->op == &line->t->op) || a->kind == HEDDLE__STEP_H2D ||
         a->kind == HEDDLE__STEP_D2H || a->kind == HEDDLE__STEP_D2D;
}

static heddle_status record(heddle__bound *b, const heddle__line *line, heddle__stretch *x, heddle_error *err) {
  heddle_error why = {0};
  const heddle_capture_table *capture = &line->t->capture;
  heddle_status s = capture->begin(line->stream, &why);
  bool begun = s == HEDDLE_OK;
  char what[256] = "";
  for (uint32_t i = 0; i < x->count && s == HEDDLE_OK; i++) {
    s = heddle__action_run(line, &x->actions[i], &why);
    if (s != HEDDLE_OK) heddle__program_say(b->program, x->actions[i].step, what, sizeof what);
  }
  if (begun) {
    heddle_pgraph *graph = NULL;
    heddle_error ignored;
    heddle_status ended = capture->end(line->stream, &graph, s == HEDDLE_OK ? &why : &ignored);
    if (s == HEDDLE_OK) s = ended;
    if (s == HEDDLE_OK) {
      x->graph = graph;
      b->n_recorded++;
    }
    if (s != HEDDLE_OK && ended == HEDDLE_OK) capture->free(graph);
  }
  if (s == HEDDLE_OK) return s;
  if (s == HEDDLE_ENOMEM || s == HEDDLE_EDEVICE) {
    if (s == HEDDLE_EDEVICE) heddle__device_fault(line->dev, why.api_code, why.text);
    if (err != NULL) *err = why;
    return heddle__prefix_on(line->dev->name, err, s, "%s: recording of %u steps: %s%s", line->dev->name,
                             (unsigned)x->count, what, what[0] != '\0' ? ": " : "");
  }
  heddle__logf(heddle__context_log(b->program->model->ctx),
               s == HEDDLE_EUNSUPPORTED ? HEDDLE_LOG_INFO : HEDDLE_LOG_WARN, "executor",
               "%s: a row of %u steps is run step by step, since it could not be recorded: %s", line->dev->name,
               (unsigned)x->count, why.text);
  return HEDDLE_OK;
}

/* ---- a segment */

/* Whether a step may keep its driving thread for long, or its time is not known. */
static bool is_lengthy(const heddle__plan *plan, uint32_t step) {
  const double LONG_NS = 5e6;
  if (plan->steps[step].kind != HEDDLE__STEP_OP) return false;
  const heddle__region *r = &plan->regions[plan->steps[step].region];
  const double cost = r->foreign == NULL && r->offer < r->n_offers ? r->offers[r->offer].cost_ns : 0;
  return cost <= 0 || cost > LONG_NS;
}

heddle_status heddle__stretch_bind(heddle__bound *b, uint32_t segment, heddle_error *err) {
  const heddle__program *p = b->program;
  const heddle__segment *seg = &p->segments[segment];
  const heddle__line *line = &b->lines[seg->stream];
  heddle__stretch *x = &b->stretches[segment];
  x->actions = &b->actions[seg->first];
  x->count = seg->count;
  x->launches = line->is_host ? &b->launches[seg->first] : NULL;
  x->recordable = !line->is_host && line->t->has_capture && !p->plan->req.no_capture;
  for (uint32_t i = 0; i < seg->count; i++) {
    uint32_t id = p->order[seg->first + i];
    if (p->plan->steps[id].kind == HEDDLE__STEP_FINISH) { /* the last of its stream; nothing is run for it */
      x->count = i;
      break;
    }
    heddle__action *a = &x->actions[i];
    heddle_error why = {0};
    heddle_status s = a->launch != NULL ? HEDDLE_OK : bind_step(b, line, id, a, &why); /* retargeted already */
    if (s != HEDDLE_OK) {
      char what[256];
      heddle__program_say(p, id, what, sizeof what);
      if (s == HEDDLE_EDEVICE && line->dev != NULL) heddle__device_fault(line->dev, why.api_code, why.text);
      if (err != NULL) *err = why;
      x->count = i; /* what unbind frees */
      return heddle__program_blame(p, id, heddle__prefix(err, s, "%s: ", what), err);
    }
    b->lengthy = b->lengthy || (line->is_host && is_lengthy(p->plan, id));
    if (a->kind != HEDDLE__STEP_OP || a->op != x->actions[0].op) x->launches = NULL;
    x->recordable = x->recordable && may_record(line, a);
  }
  for (uint32_t i = 0; i < x->count && x->launches != NULL; i++) x->launches[i] = x->actions[i].launch;
  const heddle__foreign *foreign = NULL;
  if (x->count > 0 && x->actions[0].kind == HEDDLE__STEP_OP)
    foreign = p->plan->regions[p->plan->steps[x->actions[0].step].region].foreign;
  x->row = foreign != NULL && x->launches != NULL ? foreign->row : NULL;
  if (!x->recordable || x->count < 2) return HEDDLE_OK;
  return record(b, line, x, err);
}

void heddle__stretch_forget(heddle__bound *b, uint32_t segment) {
  heddle__stretch *x = &b->stretches[segment];
  if (x->graph == NULL) return;
  b->lines[b->program->segments[segment].stream].t->capture.free(x->graph);
  x->graph = NULL;
  b->n_recorded--;
}

void heddle__stretch_unbind(heddle__bound *b, uint32_t segment) {
  heddle__stretch *x = &b->stretches[segment];
  if (x->actions == NULL) return;
  heddle__stretch_forget(b, segment);
  for (uint32_t i = 0; i < b->program->segments[segment].count; i++) heddle__action_unbind(&x->actions[i]);
}

void heddle__action_unbind(heddle__action *a) {
  if (a->launch != NULL) a->op->launch_free(a->launch);
  a->launch = NULL;
}

bool heddle__stretch_uses(const heddle__bound *b, uint32_t segment, uint32_t alloc) {
  const heddle__program *p = b->program;
  const heddle__segment *seg = &p->segments[segment];
  const heddle__plan *plan = p->plan;
  for (uint32_t i = 0; i < seg->count; i++) {
    const heddle__step *step = &plan->steps[p->order[seg->first + i]];
    if (step->kind == HEDDLE__STEP_FINISH) continue;
    if (step->src != HEDDLE__NONE && plan->instances[step->src].alloc == alloc) return true;
    if (step->dst != HEDDLE__NONE && plan->instances[step->dst].alloc == alloc) return true;
    if (step->kind != HEDDLE__STEP_OP) continue;
    const heddle__region *r = &plan->regions[step->region];
    for (uint32_t k = 0; k < r->n_inputs; k++)
      if (step->in[k] != HEDDLE__NONE && plan->instances[step->in[k]].alloc == alloc) return true;
    for (uint32_t k = 0; k < r->n_outputs; k++)
      if (step->out[k] != HEDDLE__NONE && plan->instances[step->out[k]].alloc == alloc) return true;
  }
  return false;
}
