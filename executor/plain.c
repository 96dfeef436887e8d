/* executor/plain.c: the course of an executor whose model is one program: begins its runs, ends them, and runs up to a node. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/trace.h"
#include "core/watch.h"
#include "executor/chain.h"
#include "executor/course.h"
#include "executor/explain.h"
#include "executor/states.h"
#include "executor/survive.h"

/* ---- a bound program as the work of a drive */

static heddle__run_end drive_bound(void *self, const heddle__helm *helm, heddle_status *status, heddle_error *err) {
  return heddle__run_drive(self, helm, status, err);
}

static bool drain_bound(void *self, heddle__waker *waker, char *what, size_t size) {
  const bool drained = heddle__run_drain(self, HEDDLE__DRAIN_NS, what, size);
  if (drained) heddle__bound_renew_fences(self, waker);
  return drained;
}

static uint32_t say_bound(const void *self, char *what, size_t size) {
  return heddle__run_say(self, what, size);
}

static heddle__program *program_of_bound(const void *self) {
  return ((const heddle__bound *)self)->program;
}

static const heddle__work bound_work = {drive_bound, drain_bound, say_bound, program_of_bound};

static void begin_bound(heddle_executor *ex, heddle__bound *b, heddle__profile *profile) {
  heddle__run_reset(b);
  heddle__drive_begin(&ex->drive, &bound_work, b, b->lengthy, profile);
}

/* ---- the end of a run */

static heddle_status copy_out(heddle_executor *ex, heddle_error *err) {
  for (uint32_t i = 0; i < ex->n_results; i++) {
    heddle__port *port = heddle__bound_output_port(ex->bound, i);
    if (port == NULL || port->lent == NULL) continue;
    const heddle__memory *m = ex->bound->memory[port->alloc];
    const heddle__instance *inst = &ex->bound->program->plan->instances[port->instance];
    heddle_status s = heddle__tensor_write(port->lent, (char *)m->host + inst->offset, err);
    if (s != HEDDLE_OK) return heddle__prefix(err, s, "output '%s': ", ex->results[i].name);
  }
  return HEDDLE_OK;
}

static void take_outputs(heddle_executor *ex, heddle_status *status, heddle_error *err) {
  heddle__bound *b = ex->drive.self;
  heddle_status s = HEDDLE_OK;
  heddle__run_finish(b);
  if (b == ex->bound) { /* a run up to a node has its own */
    bool lends = false;
    for (uint32_t i = 0; i < b->n_outputs; i++) lends = lends || b->outputs[i].lent != NULL;
    if (lends) s = copy_out(ex, err);
    if (HEDDLE_HAS_STATE && s == HEDDLE_OK && ex->states != NULL) heddle__states_advance(ex);
    atomic_store_explicit(&ex->has_outputs, s == HEDDLE_OK, memory_order_relaxed);
  }
  atomic_fetch_add_explicit(&ex->runs, 1, memory_order_relaxed);
  if (b->program->copies > 0) {
    atomic_fetch_add_explicit(&ex->copies, b->program->copies, memory_order_relaxed);
    atomic_fetch_add_explicit(&ex->bytes_copied, b->program->bytes_copied, memory_order_relaxed);
  }
  if (b->n_recorded > 0 && ex->drive.profile == NULL)
    atomic_fetch_add_explicit(&ex->replays, b->n_recorded, memory_order_relaxed);
  if (ex->tracing) {
    const heddle_profile_entry *entries;
    size_t n;
    heddle__profile_finish(ex->drive.profile, b, &entries, &n, NULL);
  }
  *status = s;
}

static heddle_status end_plain(void *user, heddle_status status, const char *hung, heddle_error *words) {
  heddle_executor *ex = user;
  if (status == HEDDLE_OK) take_outputs(ex, &status, words);
  if (ex->chain != NULL) heddle__chain_end(ex, status);
  return ex->tracing || hung != NULL ? heddle__single_ended(ex, status, hung, words) : status;
}

/* ---- runs */

static heddle_status take_profile(heddle_executor *ex, heddle_error *err) {
  heddle_status s = ex->profile == NULL ? heddle__profile_create(ex->bound, ex->lane, &ex->profile, err) : HEDDLE_OK;
  if (s == HEDDLE_OK) heddle__profile_begin(ex->profile);
  return s;
}

/* A run has failed under a policy: what the policy says, and the run from its inputs. */
HEDDLE__COLD heddle_status heddle__plain_again(void *user, heddle_status status, heddle_error *words) {
  heddle_executor *ex = user;
  heddle__drive *d = &ex->drive;
  char hung[160];
  if (d->self != ex->bound) return status; /* a run up to a node has its own */
  const bool quiet = drain_bound(ex->bound, &d->waker, hung, sizeof hung);
  status = heddle__survive(ex, status, quiet, words);
  d->self = ex->bound;
  if (status == HEDDLE_OK && d->profile != NULL) status = take_profile(ex, words);
  d->profile = d->profile != NULL ? ex->profile : NULL;
  if (status == HEDDLE_OK && ex->chain != NULL) status = heddle__chain_begin(ex, words);
  if (status == HEDDLE_OK) heddle__run_reset(ex->bound);
  return status;
}

static heddle_status check_devices(const heddle__bound *b, heddle_error *err) {
  for (uint32_t i = 0; i < b->n_lines; i++) {
    if (b->lines[i].dev == NULL) continue;
    heddle_status s = heddle__device_check(b->lines[i].dev, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

static HEDDLE__COLD heddle_status survive_begin(heddle_executor *ex, heddle_status s, heddle_error *err) {
  heddle__chain_end(ex, s);
  s = heddle__survive(ex, s, true, err);
  return s == HEDDLE_OK && ex->chain != NULL ? heddle__chain_begin(ex, err) : s;
}

/* The checks are a few loads where nothing changed since the last run. */
static heddle_status begin_plain(heddle_executor *ex, bool timed, heddle_error *err) {
  heddle_error words;
  if (err == NULL) err = &words;
  heddle_status s = heddle__executor_check(ex, err);
  if (s != HEDDLE_OK) return s;
  if (HEDDLE_HAS_STATE && ex->states != NULL) s = heddle__states_begin(ex, err);
  if (s != HEDDLE_OK) return heddle__name_file(ex->model, s, err);
  if (ex->lent_shapes) heddle__executor_reread(ex);
  if (ex->stale || ex->bound == NULL || ex->bound->stale) s = heddle__executor_prepare(ex, err);
  if (s != HEDDLE_OK) return heddle__name_file(ex->model, s, err);
  if (ex->unset != HEDDLE__NONE) return heddle__executor_say_unset(ex, ex->unset, err);
  s = check_devices(ex->bound, err);
  if (s == HEDDLE_OK && ex->chain != NULL) s = heddle__chain_begin(ex, err);
  if (s == HEDDLE_OK && ex->copies_in) s = heddle__executor_copy_in(ex, ex->bound, err);
  ex->tries = 0;
  if (s != HEDDLE_OK) s = survive_begin(ex, s, err);
  if (s != HEDDLE_OK) return s;
  ex->tracing = heddle__trace_on(heddle__context_trace(ex->model->ctx)) && !timed;
  if (timed || ex->tracing) {
    s = take_profile(ex, err);
    if (s != HEDDLE_OK) {
      heddle__chain_end(ex, s);
      return s;
    }
    ex->began_ns = heddle__now_ns();
  }
  atomic_store_explicit(&ex->has_outputs, false, memory_order_relaxed);
  begin_bound(ex, ex->bound, timed || ex->tracing ? ex->profile : NULL);
  return HEDDLE_OK;
}

/* As heddle__single_run, and begin is known: a run of small operators is not much longer than a few calls. */
static heddle_status run_plain(heddle_executor *ex, bool timed, uint64_t deadline_ns, heddle_executor **lane,
                               heddle_error *err) {
  bool goes_on;
  *lane = ex;
  heddle__watch watch = {.deadline_ns = deadline_ns}; /* of what is planned, too */
  heddle__watch_enter(&watch);
  heddle_status s = begin_plain(ex, timed, err);
  heddle__watch_leave(&watch);
  if (s != HEDDLE_OK) return s;
  s = heddle__drive_attend(&ex->drive, deadline_ns, err);
  return s == HEDDLE_OK ? s : heddle__single_end_failed(ex, s, &goes_on, err);
}

/* ---- up to a node */

/* Runs a program that is bound for this once, and copies its only output. */
static heddle_status run_once(heddle_executor *ex, heddle__program *program, heddle_tensor **out, heddle_error *err) {
  heddle__bound *b = NULL;
  heddle_status s = heddle__chain_settle(ex, err);
  if (s == HEDDLE_OK) s = heddle__bound_make(program, &ex->drive.waker, NULL, &b, err);
  if (s == HEDDLE_OK) s = heddle__executor_fill(ex, b, HEDDLE__NONE, false, err);
  if (s == HEDDLE_OK) s = heddle__bound_refresh(b, err);
  if (s == HEDDLE_OK && heddle__executor_unset(ex, b) != HEDDLE__NONE)
    s = heddle__executor_say_unset(ex, heddle__executor_unset(ex, b), err);
  if (s == HEDDLE_OK) s = check_devices(b, err);
  if (s == HEDDLE_OK) {
    ex->tracing = false;
    begin_bound(ex, b, NULL);
    s = heddle__drive_wait(&ex->drive, HEDDLE_FOREVER, err);
  }
  if (s == HEDDLE_OK) {
    const heddle__known *known = heddle__bound_output(b, 0);
    const heddle__port *port = heddle__bound_output_port(b, 0);
    s = heddle_tensor_create(NULL, known->dtype, known->shape, known->ndim, out, err);
    if (s == HEDDLE_OK && known->bytes > 0)
      memcpy((*out)->data, (char *)b->memory[port->alloc]->host + program->plan->instances[port->instance].offset,
             (size_t)known->bytes);
  }
  if (atomic_load(&ex->dead) != HEDDLE_OK) heddle__model_keep_orphan(ex->model, b);
  else heddle__bound_free(b, true);
  return s;
}

/* Plans the graph up to a node, and runs that. */
static heddle_status run_up_to(heddle_executor *ex, const heddle__keep *target, heddle_tensor **out,
                               heddle_error *err) {
  heddle__wish wish;
  heddle__program *program = NULL;
  uint32_t lacks = HEDDLE__NONE;
  heddle_status s = heddle__executor_wish(ex, &wish, err);
  if (s != HEDDLE_OK) return s;
  wish.target = target;
  s = heddle__order_lacks(ex->model, &wish, &lacks, err);
  if (s == HEDDLE_OK && lacks != HEDDLE__NONE) s = heddle__executor_say_unset(ex, lacks, err);
  if (s == HEDDLE_OK) s = heddle__model_program(ex->active, &wish, &program, err);
  heddle__wish_free(&wish);
  if (s == HEDDLE_OK) s = run_once(ex, program, out, err);
  heddle__program_release(program);
  return s;
}

static HEDDLE__COLD heddle_status value_plain(heddle_executor *ex, const heddle__keep *target, heddle_tensor **out,
                                              heddle_error *err) {
  heddle_error words;
  heddle_status s;
  if (err == NULL) err = &words;
  ex->tries = 0;
  do s = run_up_to(ex, target, out, err);
  while (s != HEDDLE_OK && atomic_load(&ex->dead) == HEDDLE_OK && heddle__survive(ex, s, true, err) == HEDDLE_OK);
  return heddle__name_file(ex->model, s, err);
}

/* ---- the table */

static heddle_tensor *no_result(heddle_executor *ex, uint32_t i) {
  (void)ex, (void)i;
  return NULL;
}

static HEDDLE__COLD heddle_status explain_plain(heddle_executor *ex, heddle_explain_format format, char **out,
                                                heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (ex->stale || ex->bound == NULL) s = heddle__executor_prepare(ex, err);
  return s == HEDDLE_OK ? heddle__explain(ex->bound->program->plan, format, out, err) : s;
}

const heddle__course heddle__plain_course = {.lane = NULL,
                                             .holder = heddle__single_holder,
                                             .free = heddle__single_free,
                                             .begin = begin_plain,
                                             .run = run_plain,
                                             .start = heddle__single_start,
                                             .wait = heddle__single_wait,
                                             .cancel = heddle__single_cancel,
                                             .ended = end_plain,
                                             .prepare = heddle__executor_prepare,
                                             .result = no_result,
                                             .value = value_plain,
                                             .explain = explain_plain,
                                             .add_stats = heddle__single_add_stats};
