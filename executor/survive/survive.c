/* executor/survive/survive.c: decides what is done about a failure: the same again, or another plan; until that is ready to
 * run, or nothing is left to do. docs/failures.md has the rules. */
#include "executor/survive/survive.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "core/registry.h"

bool survive_no(scene *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(c->why, sizeof c->why, format, args);
  va_end(args);
  return false;
}

void survive_tell(const scene *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vlogf(&c->ex->model->ctx->log, HEDDLE_LOG_WARN, "executor", format, args);
  va_end(args);
}

bool survive_lost(const heddle_device *dev) {
  return atomic_load_explicit(&dev->faulted, memory_order_acquire) != 0;
}

const char *survive_lies_on(const scene *c, const heddle_device *dev) {
  const heddle_executor *ex = c->ex;
  for (uint32_t i = 0; i < ex->n_args; i++)
    if (ex->args[i].lent && ex->args[i].value->dev == dev) return heddle__model_arg(ex->model, i)->name;
  for (uint32_t i = 0; i < ex->n_results; i++)
    if (ex->results[i].lent != NULL && ex->results[i].lent->dev == dev) return ex->results[i].name;
  return NULL;
}

/* Asks every device whether it is well, and finds the one that failed: a lost one, the one whose step it was, or the one
 * that the error names. */
static void find_culprit(scene *c) {
  const heddle_model *m = c->ex->active;
  const char *failed = heddle__failed_device(c->words);
  heddle_device *lost = NULL, *named = NULL;
  for (uint32_t i = 0; i < m->n_devices; i++) {
    heddle_device *dev = m->devices[i];
    (void)heddle_device_health(dev, NULL);
    if (lost == NULL && survive_lost(dev)) lost = dev;
    if (failed != NULL && strcmp(failed, dev->name) == 0) named = dev;
  }
  heddle__bound *b = c->ex->bound;
  c->culprit = lost != NULL ? lost : b != NULL && b->culprit != NULL ? b->culprit : named;
  if (b != NULL) b->culprit = NULL;
}

/* The same plan again, bound anew: a recording may hold what failed. */
static bool same_again(scene *c) {
  heddle_executor *ex = c->ex;
  bool lost = c->culprit != NULL && survive_lost(c->culprit);
  atomic_fetch_add(&ex->retries, 1);
  survive_tell(c, "%.600s (code %d): it is tried again%s", c->words->text, (int)c->words->api_code,
               lost ? ", on the device opened anew" : "");
  if (lost) return survive_reopen(c);
  survive_detach(c);
  if (c->status == HEDDLE_ENOMEM) survive_forget(ex->active);
  return true;
}

static bool retry(scene *c) {
  if (c->ex->tries >= c->ex->model->retries)
    return survive_no(c, "it was tried %u time%s more", (unsigned)c->ex->tries, c->ex->tries == 1 ? "" : "s");
  c->ex->tries++;
  return same_again(c);
}

static bool failover(scene *c) {
  heddle_executor *ex = c->ex;
  bool lost = c->culprit != NULL && survive_lost(c->culprit);
  if (!lost && c->status == HEDDLE_EFAILED && ex->tries++ == 0) return same_again(c); /* the device can be used still */
  for (uint32_t i = 0; i < ex->model->n_devices; i++) {
    const heddle_device *dev = ex->model->devices[i];
    const char *bound = survive_lost(dev) ? survive_lies_on(c, dev) : NULL;
    if (bound != NULL) return survive_no(c, "'%.100s' is bound to memory of %s", bound, dev->name);
  }
  if (c->culprit == NULL)
    return survive_no(c, c->status == HEDDLE_ENOMEM ? "it is no device's memory" : "no device of its list is to blame");
  bool small = !lost && c->status == HEDDLE_ENOMEM && !ex->active->is_small;
  if (!survive_move(c, c->culprit, small)) return false;
  survive_tell(c, "%.600s (code %d): the model is planned again %s %s", c->words->text, (int)c->words->api_code,
               small ? "with less memory on" : "without", c->culprit->name);
  atomic_fetch_add(&ex->failovers, 1);
  return true;
}

/* Plans where that is needed, and brings what the caller bound. */
static heddle_status resume(scene *c) {
  heddle_executor *ex = c->ex;
  heddle_status s = HEDDLE_OK;
  if (ex->bound == NULL || ex->stale || ex->bound->stale) s = heddle__executor_plan(ex, c->words);
  if (s == HEDDLE_OK && ex->copies_in) s = heddle__executor_copy_in(ex, ex->bound, c->words);
  if (s == HEDDLE_OK) c->words->text[0] = '\0';
  return s;
}

static bool is_survivable(heddle_status s) {
  return s == HEDDLE_EDEVICE || s == HEDDLE_ENOMEM || s == HEDDLE_EFAILED;
}

heddle_status heddle__survive_failure(heddle_executor *ex, heddle_status status, bool quiet, heddle_error *words) {
  scene c = {.ex = ex, .status = status, .quiet = quiet, .words = words};
  heddle_error first = *words;
  heddle_model *before = ex->active;
  heddle__trace *trace = ex->model->ctx->trace;
  const bool fails_over = ex->model->retries == 0;
  uint64_t t0 = heddle__now_ns();
  for (;;) {
    find_culprit(&c);
    if (!(fails_over ? failover(&c) : retry(&c))) break;
    c.quiet = true;
    c.status = resume(&c);
    if (c.status == HEDDLE_OK) break;
    if (c.status == HEDDLE_ELIMIT && ex->active->is_small) c.status = HEDDLE_ENOMEM; /* what is free is not enough */
    if (is_survivable(c.status)) continue;
    if (c.status == HEDDLE_ETIMEOUT) break;
    survive_no(&c, "%.350s", words->text);
    break;
  }
  heddle__span span = {"host", "runs", fails_over ? "failover" : "retry", t0, heddle__now_ns(), NULL, 0};
  heddle__trace_span(trace, &span);
  if (c.status == HEDDLE_OK && c.why[0] == '\0') return HEDDLE_OK;
  if (c.status == HEDDLE_ETIMEOUT &&
      c.why[0] == '\0') { /* the run's time is over: the next one goes on with what was decided */
    ex->stale = true;
    return HEDDLE_ETIMEOUT;
  }
  if (ex->active != before) { /* what was tried last is no better than what was there */
    atomic_fetch_sub(&ex->active->users, 1);
    atomic_fetch_add(&before->users, 1);
    ex->active = before;
    ex->stale = true;
  }
  heddle__fail(words, status, "%.600s (%s: %s)", first.text, fails_over ? "no failover" : "no retry", c.why);
  words->api_code = first.api_code;
  heddle__copy_members(&first, words);
  return status;
}
