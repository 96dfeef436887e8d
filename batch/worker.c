/* batch/worker.c: a worker's runs, and the keeper of deadlines. */
#include "batch/batcher.h"
#include "core/context.h"
#include "core/error.h"
#include "core/thread.h"
#include "core/tensor.h"

#define PATIENCE_NS UINT64_C(2000000000) /* with a run that was cancelled */

/* ---- one run */

static void drop_views(heddle__batch_worker *w) {
  for (uint32_t i = 0; i < w->b->ports.n_outputs; i++) {
    heddle_tensor_release(w->views[i]);
    w->views[i] = NULL;
  }
}

/* The outputs in host memory. */
static heddle_status see_outputs(heddle__batch_worker *w, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < w->b->ports.n_outputs && s == HEDDLE_OK; i++) {
    s = heddle_executor_view_output(w->ex, i, &w->views[i], err);
    if (s != HEDDLE_OK || heddle_tensor_device(w->views[i]) == NULL) continue;
    heddle_tensor *there = w->views[i];
    w->views[i] = NULL;
    s = heddle_tensor_create(NULL, heddle_tensor_dtype(there), heddle_tensor_shape(there), heddle_tensor_ndim(there),
                             &w->views[i], err);
    if (s == HEDDLE_OK) s = heddle_tensor_copy(w->views[i], there, err);
    heddle_tensor_release(there);
  }
  return s;
}

/* After a failure that may be the device's, the next run has a new executor. */
static void drop_executor(heddle__batch_worker *w) {
  pthread_mutex_lock(&w->b->lock);
  heddle_executor *ex = w->ex;
  w->ex = NULL;
  pthread_mutex_unlock(&w->b->lock);
  for (uint32_t i = 0; i < w->b->ports.n_inputs; i++) heddle__batch_stage_free(&w->stages[i]);
  heddle_executor_release(ex);
}

/* Is it about the values, the shapes or the number of items of a run, so that its requests may succeed alone? */
static bool is_of_requests(heddle_status s) {
  return s == HEDDLE_EINVAL || s == HEDDLE_EUNSUPPORTED || s == HEDDLE_ELIMIT || s == HEDDLE_ENOMEM;
}

static heddle_status run_batch(heddle__batch_worker *w, bool with_steps, heddle_error *err) {
  heddle_batcher *b = w->b;
  if (with_steps && b->run_timeout_ns == 0) {
    heddle_status timed = heddle__batch_run_steps(w, err);
    return timed == HEDDLE_OK ? see_outputs(w, err) : timed;
  }
  heddle_status s = heddle_executor_run(w->ex, b->run_timeout_ns > 0 ? b->run_timeout_ns : HEDDLE_FOREVER, err);
  if (s == HEDDLE_ETIMEOUT && heddle_executor_poll(w->ex) == HEDDLE_EBUSY) {
    heddle_executor_cancel(w->ex, NULL);
    heddle_executor_wait(w->ex, PATIENCE_NS, NULL);
  }
  return s == HEDDLE_OK ? see_outputs(w, err) : s;
}

static heddle_status prepare(heddle__batch_worker *w, heddle_error *err) {
  if (w->ex != NULL) return HEDDLE_OK;
  heddle_executor *ex = NULL;
  heddle_status s = heddle_executor_create(w->b->model, &ex, err);
  pthread_mutex_lock(&w->b->lock);
  w->ex = ex;
  pthread_mutex_unlock(&w->b->lock);
  return s;
}

static int64_t rows_of(const heddle_batcher *b, int64_t items) {
  if (b->ports.fixed > 0) return b->ports.fixed;
  int64_t rows = 1;
  while (rows < items) rows *= 2;
  if ((b->flags & HEDDLE_BATCH_EXACT) != 0) rows = items;
  return rows < (int64_t)b->max_items ? rows : (int64_t)b->max_items;
}

/* Of n requests those that still want a result; their inputs may be read from now on. */
static uint32_t begin(heddle__batch_worker *w, heddle_batch_request **batch, uint32_t n, int64_t *items) {
  const uint64_t now_ns = heddle__now_ns();
  uint32_t n_present = 0;
  *items = 0;
  pthread_mutex_lock(&w->b->lock);
  for (uint32_t i = 0; i < n; i++) {
    if (batch[i]->state == HEDDLE__BATCH_DONE) continue;
    batch[i]->state = HEDDLE__BATCH_GATHER;
    batch[i]->taken_ns = now_ns;
    batch[i]->run_ns = batch[i]->ran_ns = 0;
    w->present[n_present++] = batch[i];
    *items += batch[i]->items;
  }
  pthread_mutex_unlock(&w->b->lock);
  return n_present;
}

/* The inputs are read. false: no request is left. *with_steps: one of them wants to know the run's steps. */
static bool gathered(heddle__batch_worker *w, uint32_t n, int64_t items, int64_t rows, bool *with_steps) {
  const uint64_t now_ns = heddle__now_ns();
  heddle_batch_request *list = NULL;
  bool any = false;
  *with_steps = false;
  pthread_mutex_lock(&w->b->lock);
  for (uint32_t i = 0; i < n; i++) {
    heddle_batch_request *r = w->present[i];
    const heddle_status stop = r->stop;
    r->stop = HEDDLE_OK;
    r->state = HEDDLE__BATCH_RUNNING;
    r->run_ns = now_ns, r->run_items = items, r->run_rows = rows;
    *with_steps = *with_steps || (r->flags & HEDDLE_BATCH_CALL_STEPS) != 0;
    if (stop != HEDDLE_OK) heddle__batch_end(r, stop, NULL, &list);
    else any = true;
  }
  w->in_run = any;
  pthread_mutex_unlock(&w->b->lock);
  heddle__batch_finish(w->b, list);
  return any;
}

/* Gives the results of a run that succeeded. */
static void deliver(heddle__batch_worker *w, uint32_t n, int64_t items, int64_t rows) {
  heddle_batcher *b = w->b;
  const uint64_t now_ns = heddle__now_ns();
  heddle_batch_request *list = NULL;
  int64_t first = 0;
  pthread_mutex_lock(&b->lock);
  w->in_run = false;
  b->stats.runs++;
  b->stats.items += (uint64_t)items;
  b->stats.filled += (uint64_t)(rows - items);
  for (uint32_t i = 0; i < n; i++) {
    heddle_batch_request *r = w->present[i];
    if (r->state != HEDDLE__BATCH_RUNNING) continue;
    r->state = HEDDLE__BATCH_SCATTER;
    r->ran_ns = now_ns;
    if (w->steps != NULL && (r->flags & HEDDLE_BATCH_CALL_STEPS) != 0) r->steps = heddle__batch_steps_retain(w->steps);
  }
  pthread_mutex_unlock(&b->lock);
  for (uint32_t i = 0; i < n; i++) {
    heddle_batch_request *r = w->present[i];
    /* No other thread changes the state SCATTER, or DONE to another. */
    if (r->state == HEDDLE__BATCH_SCATTER) heddle__batch_scatter(w, r, first, rows, &r->err);
    first += r->items;
  }
  pthread_mutex_lock(&b->lock);
  for (uint32_t i = 0; i < n; i++) {
    heddle_batch_request *r = w->present[i];
    if (r->state != HEDDLE__BATCH_SCATTER) continue;
    const heddle_status s = r->err.status;
    heddle__batch_end(r, s, s != HEDDLE_OK ? &r->err : NULL, &list);
  }
  pthread_mutex_unlock(&b->lock);
  heddle__batch_finish(b, list);
}

/* Reports the failure of a run to each of its requests. */
static void report(heddle__batch_worker *w, uint32_t n, heddle_status s, const heddle_error *err) {
  const uint64_t now_ns = heddle__now_ns();
  heddle_batch_request *list = NULL;
  pthread_mutex_lock(&w->b->lock);
  w->in_run = false;
  for (uint32_t i = 0; i < n; i++) {
    if (w->present[i]->state == HEDDLE__BATCH_DONE) continue;
    w->present[i]->ran_ns = now_ns;
    heddle__batch_end(w->present[i], s, err, &list);
  }
  pthread_mutex_unlock(&w->b->lock);
  heddle__batch_finish(w->b, list);
}

/* Runs requests together. false: the run failed, and its requests are to be repeated one by one. */
static bool serve(heddle__batch_worker *w, heddle_batch_request **batch, uint32_t n) {
  heddle_error err = {0};
  int64_t items;
  const uint32_t n_present = begin(w, batch, n, &items);
  if (n_present == 0) return true;
  const int64_t rows = rows_of(w->b, items);
  heddle_status s = prepare(w, &err);
  if (s == HEDDLE_OK) s = heddle__batch_gather(w, n_present, rows, &err);
  bool with_steps;
  if (!gathered(w, n_present, items, rows, &with_steps)) return true;
  if (s == HEDDLE_OK) s = run_batch(w, with_steps, &err);
  if (s == HEDDLE_OK) {
    deliver(w, n_present, items, rows);
    drop_views(w);
    heddle__batch_steps_release(w->steps);
    w->steps = NULL;
    return true;
  }
  drop_views(w);
  heddle__batch_steps_release(w->steps);
  w->steps = NULL;
  if (!is_of_requests(s)) drop_executor(w);
  if (n_present > 1 && is_of_requests(s) && (w->b->flags & HEDDLE_BATCH_TOGETHER) == 0) {
    pthread_mutex_lock(&w->b->lock);
    w->in_run = false;
    w->b->stats.repeated++;
    pthread_mutex_unlock(&w->b->lock);
    return false;
  }
  report(w, n_present, s, &err);
  return true;
}

void *heddle__batch_work(void *worker) {
  heddle__batch_worker *w = worker;
  heddle_batcher *b = w->b;
  for (;;) {
    uint64_t next_ns;
    pthread_mutex_lock(&b->lock);
    while (heddle__batch_take(b, w, heddle__now_ns(), &next_ns) == 0) {
      if (b->closed && b->groups == NULL) {
        pthread_mutex_unlock(&b->lock);
        return NULL;
      }
      b->idle++;
      heddle__cond_sleep(&b->work, &b->lock, next_ns);
      b->idle--;
    }
    pthread_mutex_unlock(&b->lock);
    if (!serve(w, w->batch, w->n_batch))
      for (uint32_t i = 0; i < w->n_batch; i++) serve(w, &w->batch[i], 1);
    for (uint32_t i = 0; i < w->n_batch; i++) heddle_batch_request_release(w->batch[i]);
  }
}

/* ---- deadlines */

/* Ends the requests of which the deadline has passed. Those whose outputs are being written get them. */
static heddle_batch_request *expire(heddle_batcher *b, uint64_t now_ns) {
  heddle_batch_request *list = NULL;
  b->next_deadline_ns = UINT64_MAX;
  for (heddle_batch_request *r = b->first; r != NULL; r = r->next_all) {
    if (r->deadline_ns <= now_ns) heddle__batch_stop(r, HEDDLE_ETIMEOUT, &list);
    else if (r->deadline_ns < b->next_deadline_ns && r->state != HEDDLE__BATCH_DONE)
      b->next_deadline_ns = r->deadline_ns;
  }
  return list;
}

void *heddle__batch_keep(void *batcher) {
  heddle_batcher *b = batcher;
  pthread_mutex_lock(&b->lock);
  while (!b->closed || b->first != NULL) {
    const uint64_t now_ns = heddle__now_ns();
    heddle_batch_request *list = now_ns >= b->next_deadline_ns ? expire(b, now_ns) : NULL;
    if (list != NULL) {
      pthread_mutex_unlock(&b->lock);
      heddle__batch_finish(b, list);
      pthread_mutex_lock(&b->lock);
    } else {
      heddle__cond_sleep(&b->time, &b->lock, b->next_deadline_ns);
    }
  }
  pthread_mutex_unlock(&b->lock);
  return NULL;
}
