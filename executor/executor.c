/* executor/executor.c: executors: made, distinguished from dead ones, run, timed, counted, released.
 * Inputs and outputs are in ports.c, planning and binding in rebind.c, the helm in drive.c. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/trace.h"
#include "core/watch.h"
#include "executor/chain.h"
#include "executor/flight.h"
#include "executor/sizes.h"
#include "executor/stages.h"
#include "executor/states.h"

/* Puts the graph's file before words that do not begin with it; gives s. */
HEDDLE__COLD heddle_status heddle__name_file(const heddle_model *m, heddle_status s, heddle_error *err) {
  return s == HEDDLE_OK ? s : heddle__prefix_name(err, s, m->graph->source);
}

/* ---- the end of a run, reported by its driver */

HEDDLE__COLD heddle_status heddle__single_ended(heddle_executor *ex, heddle_status status, const char *hung,
                                                heddle_error *words) {
  if (ex->tracing) {
    char row[32] = "runs";
    if (ex->lane > 0) snprintf(row, sizeof row, "runs %u", (unsigned)ex->lane + 1);
    heddle__span span = {"host", row, "run", ex->began_ns, heddle__now_ns(), NULL, 0};
    heddle__trace_span(heddle__context_trace(ex->model->ctx), &span);
  }
  if (hung != NULL) {
    ex->dead_words = *words;
    heddle__prefix_on(hung, &ex->dead_words, status == HEDDLE_EDEVICE ? status : HEDDLE_ETIMEOUT,
                      "the executor cannot be used any more, since work on %s did not end after a failed run: ", hung);
    atomic_store(&ex->dead, ex->dead_words.status);
    heddle__prefix_on(hung, words, status,
                      "%s did not end after the failure, so that this executor cannot be used any more: ", hung);
  }
  return status;
}

/* ---- creation and end */

static heddle_status name_results(heddle_executor *ex, heddle_error *err) {
  const heddle_graph *g = ex->model->graph;
  ex->n_results = g->n_heads + ex->model->n_keep;
  ex->results = heddle__alloc(ex->n_results, sizeof *ex->results);
  if (ex->results == NULL) return heddle__no_memory(err, "outputs");
  for (uint32_t i = 0; i < ex->n_results; i++) {
    heddle__keep k =
        i < g->n_heads ? (heddle__keep){g->heads[i].node, g->heads[i].index} : ex->model->keep[i - g->n_heads];
    const heddle__node *n = &g->nodes[k.node];
    ex->results[i].name =
        n->n_outputs == 1 ? heddle__strdup(n->name) : heddle__format("%s:%u", n->name, (unsigned)k.index);
    if (ex->results[i].name == NULL) return heddle__no_memory(err, "the name of an output");
  }
  return HEDDLE_OK;
}

HEDDLE__COLD void heddle__single_free(heddle_executor *ex) {
  if (heddle__drive_pending(&ex->drive)) {
    heddle__drive_cancel(&ex->drive);
    heddle__drive_wait(&ex->drive, HEDDLE_FOREVER, NULL);
  }
  heddle__drive_stop(&ex->drive);
  heddle__staged_free(ex);
  heddle__profile_release(ex->profile);
  bool quiet = atomic_load(&ex->dead) == HEDDLE_OK || ex->bound == NULL || heddle__bound_quiet(ex->bound, 0);
  if (quiet) heddle__bound_free(ex->bound, true);
  else heddle__model_keep_orphan(ex->active, ex->bound);
  if (HEDDLE_HAS_RANGES) heddle__sizes_free(ex->sizes);
  heddle__drive_finish(&ex->drive);
  heddle__chain_free(ex);
  for (uint32_t i = 0; ex->args != NULL && i < ex->n_args; i++) heddle_tensor_release(ex->args[i].value);
  for (uint32_t i = 0; ex->results != NULL && i < ex->n_results; i++) {
    heddle_tensor_release(ex->results[i].lent);
    heddle__free(ex->results[i].name);
  }
  heddle__states_free(ex);
  heddle__free(ex->args);
  heddle__free(ex->results);
  heddle__model_retry_orphans(ex->active);
  if (ex->active != ex->model) heddle__model_retry_orphans(ex->model); /* of devices that it went on without */
  atomic_fetch_sub(&ex->active->users, 1);
  heddle_model_release(ex->model);
  heddle__free(ex);
}

HEDDLE__COLD heddle_status heddle__executor_single(heddle_model *m, heddle_executor **out, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  heddle_executor *ex = heddle__alloc(1, sizeof *ex);
  if (ex == NULL) return heddle__no_memory(err, "an executor");
  s = heddle__drive_init(&ex->drive, heddle__plain_course.ended, ex, err);
  if (s != HEDDLE_OK) {
    heddle__free(ex);
    return s;
  }
  atomic_init(&ex->references, 1);
  ex->model = ex->active = heddle_model_retain(m);
  atomic_fetch_add(&m->users, 1);
  ex->course = &heddle__plain_course;
  if (m->on_failure != NULL && m->stages == NULL) ex->drive.again = heddle__plain_again;
  ex->n_args = m->graph->n_args;
  ex->unset = HEDDLE__NONE;
  ex->args = heddle__alloc(ex->n_args, sizeof *ex->args);
  s = ex->args != NULL ? name_results(ex, err) : heddle__no_memory(err, "inputs");
  if (s == HEDDLE_OK && m->stages != NULL) s = heddle__staged_make(ex, err);
  if (s == HEDDLE_OK) s = heddle__states_make(ex, err);
  heddle__wish wish = {.values = NULL};
  uint32_t lacks = HEDDLE__NONE;
  if (s == HEDDLE_OK) s = heddle__executor_wish(ex, &wish, err);
  if (s == HEDDLE_OK) s = heddle__order_lacks(m, &wish, &lacks, err);
  heddle__wish_free(&wish);
  if (s == HEDDLE_OK && lacks == HEDDLE__NONE) s = ex->course->prepare(ex, err);
  if (s != HEDDLE_OK) {
    heddle__name_file(m, s, err);
    heddle__single_free(ex);
    return s;
  }
  *out = ex;
  return HEDDLE_OK;
}

HEDDLE__COLD heddle_status heddle_executor_create(heddle_model *m, heddle_executor **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the executor: out is NULL");
  *out = NULL;
  if (m == NULL) return heddle__fail(err, HEDDLE_EINVAL, "an executor needs a model");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  return m->in_flight > 1 ? heddle__flight_make(m, out, err) : heddle__executor_single(m, out, err);
}

heddle_executor *heddle_executor_retain(heddle_executor *ex) {
  atomic_fetch_add_explicit(&ex->references, 1, memory_order_relaxed);
  return ex;
}

void heddle_executor_release(heddle_executor *ex) {
  if (ex == NULL || atomic_fetch_sub_explicit(&ex->references, 1, memory_order_acq_rel) != 1) return;
  if (heddle__check_fork(NULL) != HEDDLE_OK) return; /* devices and thread are the parent's */
  ex->course->free(ex);
}

/* ---- checks */

/* What can be asked of any executor, pending or not. */
static heddle_status check_alive(heddle_executor *ex, heddle_error *err) {
  if (ex == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the executor is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  s = atomic_load_explicit(&ex->dead, memory_order_acquire);
  if (s != HEDDLE_OK && err != NULL) *err = ex->dead_words;
  return s;
}

heddle_status heddle__executor_check(heddle_executor *ex, heddle_error *err) {
  heddle_status s = check_alive(ex, err);
  if (s != HEDDLE_OK || !heddle__drive_pending(&ex->drive)) return s;
  return heddle__fail(err, HEDDLE_EBUSY, "a run is pending; wait for it, or cancel it");
}

/* ---- runs */

static uint64_t deadline_of(uint64_t timeout_ns) {
  if (timeout_ns == HEDDLE_FOREVER) return HEDDLE_FOREVER;
  uint64_t now = heddle__now_ns();
  return timeout_ns < HEDDLE_FOREVER - now ? now + timeout_ns : HEDDLE_FOREVER;
}

heddle_executor *heddle__single_holder(const heddle_executor *ex, uint32_t arg) {
  (void)arg;
  return (heddle_executor *)ex;
}

heddle_status heddle__single_begin(heddle_executor *ex, bool timed, uint64_t deadline_ns, heddle_error *err) {
  heddle__watch watch = {.deadline_ns = deadline_ns}; /* of what is planned, too */
  heddle__watch_enter(&watch);
  heddle_status s = ex->course->begin(ex, timed, err);
  heddle__watch_leave(&watch);
  return s;
}

HEDDLE__COLD heddle_status heddle__single_end_failed(heddle_executor *ex, heddle_status s, bool *goes_on,
                                                     heddle_error *err) {
  *goes_on = s == HEDDLE_ETIMEOUT && heddle__drive_pending(&ex->drive);
  if (*goes_on) heddle__drive_leave(&ex->drive, NULL); /* it goes on while no thread waits, where a thread can be had */
  return heddle__name_file(ex->model, s, err);
}

heddle_status heddle__single_end(heddle_executor *ex, uint64_t deadline_ns, bool *goes_on, heddle_error *err) {
  heddle_status s = heddle__drive_attend(&ex->drive, deadline_ns, err);
  *goes_on = false;
  return s == HEDDLE_OK ? s : heddle__single_end_failed(ex, s, goes_on, err);
}

heddle_status heddle__single_run(heddle_executor *ex, bool timed, uint64_t deadline_ns, heddle_executor **lane,
                                 heddle_error *err) {
  bool goes_on;
  *lane = ex;
  heddle_status s = heddle__single_begin(ex, timed, deadline_ns, err);
  return s == HEDDLE_OK ? heddle__single_end(ex, deadline_ns, &goes_on, err) : s;
}

heddle_status heddle__single_start(heddle_executor *ex, heddle_error *err) {
  heddle_status s = ex->course->begin(ex, false, err);
  if (s != HEDDLE_OK) return s;
  if (ex->chain != NULL) heddle__chain_start(ex);
  s = heddle__drive_leave(&ex->drive, err);
  if (s != HEDDLE_OK) heddle__drive_cancel(&ex->drive);
  return s;
}

heddle_status heddle__single_wait(heddle_executor *ex, uint64_t deadline_ns, heddle_error *err) {
  return heddle__drive_attend(&ex->drive, deadline_ns, err);
}

heddle_status heddle__single_cancel(heddle_executor *ex, heddle_error *err) {
  (void)err;
  heddle__drive_cancel(&ex->drive);
  return HEDDLE_OK;
}

static HEDDLE__COLD heddle_status no_executor(heddle_error *err) {
  return heddle__fail(err, HEDDLE_EINVAL, "the executor is NULL");
}

heddle_status heddle_executor_run(heddle_executor *ex, uint64_t timeout_ns, heddle_error *err) {
  heddle_executor *lane;
  return ex != NULL ? ex->course->run(ex, false, deadline_of(timeout_ns), &lane, err) : no_executor(err);
}

heddle_status heddle_executor_start(heddle_executor *ex, heddle_error *err) {
  return ex != NULL ? ex->course->start(ex, err) : no_executor(err);
}

heddle_status heddle_executor_wait(heddle_executor *ex, uint64_t timeout_ns, heddle_error *err) {
  heddle_status s = ex != NULL ? heddle__check_fork(err) : no_executor(err);
  if (s != HEDDLE_OK) return s;
  return heddle__name_file(ex->model, ex->course->wait(ex, deadline_of(timeout_ns), err), err);
}

heddle_status heddle_executor_cancel(heddle_executor *ex, heddle_error *err) {
  heddle_status s = check_alive(ex, err);
  return s == HEDDLE_OK ? ex->course->cancel(ex, err) : s;
}

heddle_status heddle_executor_poll(heddle_executor *ex) {
  heddle_executor *lane;
  heddle_status s = heddle__lane_for(ex, HEDDLE__LANE_OLDEST, &lane, NULL);
  if (s == HEDDLE_OK) s = check_alive(lane, NULL);
  if (s != HEDDLE_OK) return s;
  return heddle__drive_pending(&lane->drive) ? HEDDLE_EBUSY : HEDDLE_OK;
}

HEDDLE__COLD heddle_status heddle_executor_profile(heddle_executor *ex, const heddle_profile_entry **out, size_t *n,
                                                   heddle_error *err) {
  if (out == NULL || n == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the profile");
  *out = NULL;
  *n = 0;
  if (ex == NULL) return no_executor(err);
  heddle_executor *lane;
  heddle_status s = ex->course->run(ex, true, HEDDLE_FOREVER, &lane, err);
  if (s != HEDDLE_OK || lane->staged == NULL)
    return s == HEDDLE_OK ? heddle__profile_finish(lane->profile, lane->bound, out, n, err) : s;
  heddle__staged_profile(lane, out, n);
  return HEDDLE_OK;
}

HEDDLE__COLD heddle_status heddle_executor_run_to(heddle_executor *whole, const char *node, uint32_t output,
                                                  heddle_tensor **out, heddle_error *err) {
  if (out == NULL || node == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "a run up to a node needs the node's name and a place for the tensor");
  *out = NULL;
  heddle_executor *ex;
  heddle_status s = heddle__lane_for(whole, HEDDLE__LANE_ALONE, &ex, err);
  if (s == HEDDLE_OK) s = heddle__executor_check(ex, err);
  if (s != HEDDLE_OK) return s;
  const heddle_graph *g = ex->model->graph;
  heddle__keep target = {0, 0};
  s = heddle__model_find(g, node, &target, err);
  if (s != HEDDLE_OK) return s;
  if (output != 0) target.index = output;
  if (target.index >= g->nodes[target.node].n_outputs)
    return heddle__at_node(heddle__fail(err, HEDDLE_ENOTFOUND, "%s: node '%s' has %u outputs; there is no output %u",
                                        g->source, g->nodes[target.node].name,
                                        (unsigned)g->nodes[target.node].n_outputs, (unsigned)target.index),
                           err, target.node, g->nodes[target.node].name);
  return ex->course->value(ex, &target, out, err);
}

/* ---- facts */

uint32_t heddle_executor_input_count(const heddle_executor *ex) {
  return ex->n_args;
}

uint32_t heddle_executor_output_count(const heddle_executor *ex) {
  return ex->n_results;
}

static void give_info(heddle_io_info *out, const heddle_io_info *all) {
  size_t size = out->struct_size;
  memcpy(out, all, size < sizeof *all ? size : sizeof *all);
  out->struct_size = size;
}

/* dtype and shape as the graph's file has them. */
static void type_info(const heddle__type *t, int64_t *shape, heddle_io_info *info) {
  if (t->has_dtype) info->dtype = t->dtype;
  if (!t->has_shape) return;
  for (uint32_t d = 0; d < t->ndim; d++) shape[d] = t->dims[d].value;
  info->ndim = t->ndim;
}

HEDDLE__COLD heddle_status heddle_executor_input_info(heddle_executor *ex, uint32_t i, heddle_io_info *out,
                                                      heddle_error *err) {
  if (ex != NULL) ex = ex->course->holder(ex, i);
  heddle_status s = check_alive(ex, err);
  if (s != HEDDLE_OK) return s;
  if (out == NULL || i >= ex->n_args)
    return heddle__fail(err, HEDDLE_ENOTFOUND, "there is no input %u, or no place for what is known of it",
                        (unsigned)i);
  heddle__arg *arg = &ex->args[i];
  const heddle__constant *c = ex->model->constants[i];
  heddle_io_info info = {.name = heddle__model_arg(ex->model, i)->name,
                         .shape = arg->shape,
                         .ndim = UINT32_MAX,
                         .is_param =
                             (c != NULL && !arg->late) || arg->is_param || heddle__model_tie(ex->model, i) != NULL};
  type_info(&ex->model->graph->types[heddle__model_arg(ex->model, i)->first_entry], arg->shape, &info);
  pthread_mutex_lock(&ex->drive.lock);
  const heddle_tensor *t = arg->value;
  if (t != NULL || c != NULL) {
    info.dtype = t != NULL ? t->dtype : c->dtype;
    info.ndim = t != NULL ? t->ndim : c->ndim;
    memcpy(arg->shape, t != NULL ? t->shape : c->shape, info.ndim * sizeof arg->shape[0]);
  }
  pthread_mutex_unlock(&ex->drive.lock);
  give_info(out, &info);
  return HEDDLE_OK;
}

HEDDLE__COLD heddle_status heddle_executor_output_info(heddle_executor *whole, uint32_t i, heddle_io_info *out,
                                                       heddle_error *err) {
  heddle_executor *ex;
  heddle_status s = heddle__lane_for(whole, HEDDLE__LANE_INFO, &ex, err);
  if (s == HEDDLE_OK) s = check_alive(ex, err);
  if (s != HEDDLE_OK) return s;
  if (out == NULL || i >= ex->n_results)
    return heddle__fail(err, HEDDLE_ENOTFOUND, "there is no output %u, or no place for what is known of it",
                        (unsigned)i);
  const heddle_graph *g = ex->model->graph;
  heddle__result *r = &ex->results[i];
  heddle_io_info info = {.name = r->name, .shape = r->shape, .ndim = UINT32_MAX};
  const heddle__keep k = i < g->n_heads ? g->heads[i] : ex->model->keep[i - g->n_heads];
  type_info(&g->types[heddle__entry_id(g, k)], r->shape, &info);
  const heddle_tensor *own = ex->course->result(ex, i);
  if (own != NULL) {
    info.dtype = own->dtype;
    info.ndim = own->ndim;
    memcpy(r->shape, own->shape, own->ndim * sizeof r->shape[0]);
  }
  if (!heddle__drive_pending(&ex->drive) && (ex->bound == NULL || ex->stale))
    ex->course->prepare(ex, NULL);     /* where inputs are missing, the file's words stand */
  pthread_mutex_lock(&ex->drive.lock); /* a pending run may change what is bound, where a device fails */
  if (ex->bound != NULL) {
    const heddle__known *known = heddle__bound_output(ex->bound, i);
    info.dtype = known->dtype;
    info.ndim = known->ndim;
    memcpy(r->shape, known->shape, known->ndim * sizeof r->shape[0]);
  }
  pthread_mutex_unlock(&ex->drive.lock);
  give_info(out, &info);
  return HEDDLE_OK;
}

HEDDLE__COLD heddle_status heddle__single_add_stats(heddle_executor *ex, heddle_executor_stats *all,
                                                    heddle_error *err) {
  (void)err;
  pthread_mutex_lock(&ex->drive.lock);
  uint64_t bytes = ex->bound != NULL ? ex->bound->own_bytes : 0;
  pthread_mutex_unlock(&ex->drive.lock);
  all->runs += atomic_load(&ex->runs);
  all->bytes_copied += atomic_load(&ex->bytes_copied);
  all->copies += atomic_load(&ex->copies);
  all->replays += atomic_load(&ex->replays);
  all->retries += atomic_load(&ex->retries);
  all->failovers += atomic_load(&ex->failovers);
  all->growths += atomic_load(&ex->growths);
  all->device_bytes += bytes + heddle__states_bytes(ex);
  if (atomic_load(&ex->dead) != HEDDLE_OK) all->orphan_bytes += bytes;
  all->orphan_bytes += heddle__model_orphan_bytes(ex->model);
  return HEDDLE_OK;
}

HEDDLE__COLD heddle_status heddle_executor_get_stats(heddle_executor *ex, heddle_executor_stats *out,
                                                     heddle_error *err) {
  if (ex == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "numbers need an executor and a place");
  heddle_status s = heddle__check_fork(err);
  heddle_executor_stats all = {0};
  if (s == HEDDLE_OK) s = ex->course->add_stats(ex, &all, err);
  if (s != HEDDLE_OK) return s;
  size_t size = out->struct_size;
  memcpy(out, &all, size < sizeof all ? size : sizeof all);
  out->struct_size = size;
  return HEDDLE_OK;
}

HEDDLE__COLD heddle_status heddle_executor_explain(heddle_executor *whole, heddle_explain_format format, char **out,
                                                   heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the text: out is NULL");
  *out = NULL;
  heddle_executor *ex;
  heddle_status s = heddle__lane_for(whole, HEDDLE__LANE_START, &ex, err);
  if (s == HEDDLE_OK) s = heddle__executor_check(ex, err);
  return s == HEDDLE_OK ? ex->course->explain(ex, format, out, err) : s;
}
