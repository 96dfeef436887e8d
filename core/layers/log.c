/* core/layers/log.c: one line a call: device, function, ranges, answer, time. At level info of the context's log.
 * Frees have no answer and no time. */
#include <stdio.h>

#include "core/error.h"
#include "core/layers/call.h"

static void after(void *state, heddle__call *c) {
  (void)state;
  const heddle__plugin *p = c->layers->plugin;
  if (!heddle__log_on(&p->ctx->log, HEDDLE_LOG_INFO)) return;
  char ranges[160] = "";
  int used = 0;
  for (unsigned i = 0; i < c->n_ranges && used >= 0 && (size_t)used < sizeof ranges; i++)
    used += snprintf(ranges + used, sizeof ranges - (size_t)used, " [%llu+%llu)",
                     (unsigned long long)c->range[i].offset, (unsigned long long)c->range[i].bytes);
  unsigned index = (unsigned)(c->device != NULL ? c->device->index : c->index);
  if (c->t0 == 0) {
    heddle__logf(&p->ctx->log, HEDDLE_LOG_INFO, "calls", "%s:%u %s", p->name, index, c->name);
    return;
  }
  double us = (double)(heddle__now_ns() - c->t0) / 1e3;
  heddle__logf(&p->ctx->log, HEDDLE_LOG_INFO, "calls", "%s:%u %s%s: %s, %.1f us%s%.200s", p->name, index, c->name,
               ranges, heddle_status_name(c->status), us, c->status != HEDDLE_OK && c->err != NULL ? ": " : "",
               c->status != HEDDLE_OK && c->err != NULL ? c->err->text : "");
}

const heddle__layer heddle__layer_log = {"log", NULL, NULL, NULL, after};
