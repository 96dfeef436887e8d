/* executor/plan.c: the plan's arena, and the row of passes that fills a plan.
 * A pass that fails leaves a plan that can only be freed. */
#include "executor/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/watch.h"

#define CHUNK_BYTES ((size_t)64 * 1024)

typedef struct chunk {
  struct chunk *next;
  size_t used;
  size_t size;
  size_t reserved; /* keeps the bytes after it aligned to 16 */
} chunk;

void *heddle__plan_alloc(heddle__plan *plan, size_t count, size_t size) {
  uint64_t bytes = 0;
  if (!heddle__mul(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
  bytes = (bytes + 15) & ~(uint64_t)15;
  chunk *c = plan->arena;
  if (c == NULL || c->size - c->used < bytes) {
    size_t want = bytes > CHUNK_BYTES ? (size_t)bytes : CHUNK_BYTES;
    chunk *fresh = heddle__alloc(1, sizeof(chunk) + want);
    if (fresh == NULL) return NULL;
    fresh->size = want;
    if (c != NULL && bytes > CHUNK_BYTES) { /* keep filling the chunk in use */
      fresh->next = c->next;
      c->next = fresh;
    } else {
      fresh->next = c;
      plan->arena = fresh;
    }
    c = fresh;
  }
  void *p = (char *)(c + 1) + c->used;
  c->used += (size_t)bytes;
  return p;
}

char *heddle__plan_format(heddle__plan *plan, const char *format, ...) {
  va_list ap, again;
  va_start(ap, format);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, format, ap);
  va_end(ap);
  char *text = n < 0 ? NULL : heddle__plan_alloc(plan, (size_t)n + 1, 1);
  if (text != NULL) vsnprintf(text, (size_t)n + 1, format, again);
  va_end(again);
  return text;
}

void heddle__plan_free(heddle__plan *plan) {
  if (plan == NULL) return;
  for (chunk *c = plan->arena; c != NULL;) {
    chunk *next = c->next;
    heddle__free(c);
    c = next;
  }
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

heddle_status heddle__plan_make(const heddle__request *request, heddle__plan **out, heddle_error *err) {
  static heddle_status (*const passes[])(heddle__plan *, heddle_error *) = {
      heddle__pass_infer,  heddle__pass_place,   heddle__pass_regions, heddle__pass_layout,
      heddle__pass_copies, heddle__pass_streams, heddle__pass_storage, heddle__pass_prove};
  enum { N = sizeof passes / sizeof passes[0] };

  *out = NULL;
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
  if (s != HEDDLE_OK) {
    heddle__plan_free(plan);
    return s;
  }
  *out = plan;
  return HEDDLE_OK;
}
