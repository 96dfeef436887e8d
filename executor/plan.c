/* executor/plan.c: the plan's arena, and the row of passes that fills a plan.
 * A pass that fails leaves a plan that can only be freed. */
#include "executor/plan.h"

#include <stdarg.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "core/watch.h"
#include "executor/precedent.h"

void *heddle__plan_alloc(heddle__plan *plan, size_t count, size_t size) {
  return heddle__arena_take(&plan->arena, count, size);
}

char *heddle__plan_format(heddle__plan *plan, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = heddle__arena_format(&plan->arena, format, args);
  va_end(args);
  return text;
}

void heddle__plan_free(heddle__plan *plan) {
  if (plan == NULL) return;
  heddle__arena_drop(&plan->arena);
  heddle__free(plan);
}

heddle_status heddle__plan_watch(const heddle__plan *plan, const char *node, heddle_error *err) {
  heddle_status s = heddle__watch_check("planning", err);
  if (s == HEDDLE_OK) return s;
  if (node != NULL) heddle__at_node(heddle__prefix(err, s, "node '%s': ", node), err, HEDDLE__NO_NODE, node);
  return heddle__prefix(err, s, "%s: ", plan->req.graph->source);
}

static heddle_status take_devices(heddle__plan *plan, heddle_error *err) {
  plan->n_devices = plan->req.n_devices;
  plan->devices = heddle__plan_alloc(plan, plan->n_devices, sizeof *plan->devices);
  if (plan->devices == NULL) return heddle__no_memory(err, "a plan's devices");
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    plan->devices[i].dev = plan->req.devices[i];
    plan->devices[i].is_inline = heddle__device_inline(plan->req.devices[i]);
  }
  return HEDDLE_OK;
}

static heddle_status make(const heddle__request *request, heddle__plan **out, heddle_error *err) {
  static heddle_status (*const passes[])(heddle__plan *, heddle_error *) = {
      heddle__pass_infer,  heddle__pass_place,   heddle__pass_regions, heddle__pass_layout,
      heddle__pass_copies, heddle__pass_streams, heddle__pass_storage, heddle__pass_prove};
  enum { N = sizeof passes / sizeof passes[0] };

  heddle__plan *plan = heddle__alloc(1, sizeof *plan);
  if (plan == NULL) return heddle__no_memory(err, "a plan");
  plan->req = *request;
  if (plan->req.in_flight == 0) plan->req.in_flight = 1;
  heddle_status s = take_devices(plan, err);
  uint64_t start = heddle__now_ns(), t = start;
  for (size_t i = 0; s == HEDDLE_OK && i < N; i++) {
    s = passes[i](plan, err);
    if (s == HEDDLE_OK) s = heddle__plan_watch(plan, NULL, err);
    uint64_t now = heddle__now_ns();
    plan->pass_ns[i] = now - t;
    t = now;
  }
  plan->pass_ns[N] = t - start;
  plan->followed = request->precedent != NULL;
  plan->req.precedent = NULL;
  if (s != HEDDLE_OK) {
    heddle__plan_free(plan);
    return s;
  }
  *out = plan;
  return HEDDLE_OK;
}

heddle_status heddle__plan_infer(const heddle__request *request, heddle__plan **out, heddle_error *err) {
  heddle__plan *plan = heddle__alloc(1, sizeof *plan);
  *out = NULL;
  if (plan == NULL) return heddle__no_memory(err, "a plan");
  plan->req = *request;
  plan->req.precedent = NULL;
  heddle_status s = take_devices(plan, err);
  if (s == HEDDLE_OK) s = heddle__pass_infer(plan, err);
  if (s == HEDDLE_OK) *out = plan;
  else heddle__plan_free(plan);
  return s;
}

heddle_status heddle__plan_make(const heddle__request *request, heddle__plan **out, heddle_error *err) {
  heddle__request anew = *request;
  *out = NULL;
  if (HEDDLE_HAS_RANGES && request->precedent != NULL && request->precedent->graph == request->graph) {
    heddle_error why = {0};
    heddle_status s = make(request, out, &why);
    if (s == HEDDLE_OK) return s;
    if (s == HEDDLE_ENOMEM || s == HEDDLE_ETIMEOUT || s == HEDDLE_ECANCELED) {
      if (err != NULL) *err = why;
      return s;
    }
    heddle__logf(heddle__context_log(request->ctx), HEDDLE_LOG_DEBUG, "plan",
                 "%s: the plan for shapes alike is not followed: %s", request->graph->source, why.text);
  }
  anew.precedent = NULL;
  return make(&anew, out, err);
}
