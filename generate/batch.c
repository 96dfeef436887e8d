/* generate/batch.c: continuous batching: batches made, closed, counted, released; requests taken. */
#include "generate/batch.h"

#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/thread.h"

enum { MOST_ROWS = 1024, SOME_ROWS = 8, QUEUED = 4 };

heddle_status heddle__generation_process(const heddle_generation_batch *b, heddle_error *err) {
  if (b->process == getpid()) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EFORK,
                      "this process was forked from the one whose thread the batch has; make another");
}

/* ---- release */

void heddle__batch_drop_hold(heddle_generation_batch *b) {
  if (atomic_fetch_sub_explicit(&b->holds, 1, memory_order_acq_rel) != 1) return;
  heddle_generator_release(b->prompts);
  pthread_cond_destroy(&b->work);
  pthread_cond_destroy(&b->change);
  pthread_mutex_destroy(&b->lock);
  heddle__free(b->rows);
  heddle__free(b);
}

heddle_generation_batch *heddle_generation_batch_retain(heddle_generation_batch *b) {
  atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
  return b;
}

void heddle_generation_batch_release(heddle_generation_batch *b) {
  if (b == NULL || atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) != 1) return;
  if (b->process != getpid()) return; /* devices and the thread are the parent's */
  if (b->has_thread) {
    heddle_generation_batch_close(b, 1, HEDDLE_FOREVER, NULL);
    pthread_join(b->thread, NULL);
  }
  heddle_tensor_release(b->view);
  heddle_executor_release(b->ex);
  heddle_tensor_release(b->ids.tensor);
  heddle_tensor_release(b->mask.tensor);
  heddle_tensor_release(b->positions.tensor);
  heddle__sampler_free(&b->sampler);
  heddle__batch_drop_hold(b);
}

/* ---- creation */

static heddle_status make_locks(heddle_generation_batch *b, heddle_error *err) {
  pthread_mutex_t other;
  heddle_status s = heddle__cond_init(&b->lock, &b->work, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__cond_init(&other, &b->change, err);
  if (s == HEDDLE_OK) {
    pthread_mutex_destroy(&other);
    return s;
  }
  pthread_cond_destroy(&b->work);
  pthread_mutex_destroy(&b->lock);
  return s;
}

static heddle_status make(heddle_generation_batch *b, const heddle_generator *g, heddle_error *err) {
  heddle_status s = heddle__generator_like(g, &b->prompts, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(b->prompts->model, &b->ex, err);
  if (s == HEDDLE_OK) s = heddle__rows_begin(b, err);
  if (s != HEDDLE_OK) return s;
  b->sampler.vocabulary = b->prompts->vocabulary;
  s = heddle__thread_start(&b->thread, heddle__generation_work, b, "the thread of a batch", err);
  b->has_thread = s == HEDDLE_OK;
  return s;
}

heddle_status heddle_generation_batch_create(const heddle_generator *g, const heddle_generation_batch_options *options,
                                             heddle_generation_batch **out, heddle_error *err) {
  heddle_generation_batch_options o = {0};
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the batch: out is NULL");
  *out = NULL;
  if (g == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a batch needs a generator");
  if (options != NULL) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  if (o.rows > MOST_ROWS || o.max_queue > INT32_MAX)
    return heddle__fail(err, HEDDLE_EINVAL, "%u rows and a queue of %u are asked for; the most are %d and %d",
                        (unsigned)o.rows, (unsigned)o.max_queue, MOST_ROWS, INT32_MAX);
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  heddle_generation_batch *b = heddle__alloc(1, sizeof *b);
  if (b == NULL) return heddle__no_memory(err, "a batch");
  b->n_rows = o.rows > 0 ? o.rows : SOME_ROWS;
  b->max_queue = o.max_queue > 0 ? o.max_queue : QUEUED * b->n_rows;
  b->rows = heddle__alloc(b->n_rows, sizeof(heddle_generation_request *));
  s = b->rows != NULL ? make_locks(b, err) : heddle__no_memory(err, "a batch");
  if (s != HEDDLE_OK) {
    heddle__free(b->rows);
    heddle__free(b);
    return s;
  }
  atomic_init(&b->references, 1);
  atomic_init(&b->holds, 1);
  b->process = getpid();
  s = make(b, g, err);
  if (s == HEDDLE_OK) *out = b;
  else heddle_generation_batch_release(b);
  return s;
}

/* ---- requests */

/* With the lock. */
static heddle_status enter(heddle_generation_batch *b, heddle_generation_request *r, uint64_t until_ns,
                           heddle_error *err) {
  while (!b->closed && b->n_waiting >= b->max_queue && heddle__cond_sleep(&b->change, &b->lock, until_ns)) continue;
  if (b->closed) return heddle__fail(err, HEDDLE_ECANCELED, "the batch is closed");
  if (b->n_waiting >= b->max_queue) {
    b->stats.rejected++;
    return heddle__fail(err, HEDDLE_EBUSY, "%u requests wait for a row; there is no room for another",
                        (unsigned)b->n_waiting);
  }
  heddle_generation_request_retain(r);
  if (b->last != NULL) b->last->next = r;
  else b->first = r;
  b->last = r;
  b->n_waiting++;
  b->n_open++;
  b->stats.requests++;
  pthread_cond_signal(&b->work);
  return HEDDLE_OK;
}

heddle_status heddle_generation_batch_submit(heddle_generation_batch *b, const heddle_generation_call *call,
                                             heddle_generation_request **out, heddle_error *err) {
  heddle_generation_call c = {0};
  heddle_generation_request *r;
  if (out != NULL) *out = NULL;
  if (b == NULL || call == NULL) return heddle__fail(err, HEDDLE_EINVAL, "submit: the batch or the call is NULL");
  heddle_status s = heddle__generation_process(b, err);
  if (s != HEDDLE_OK) return s;
  memcpy(&c, call, call->struct_size < sizeof c ? call->struct_size : sizeof c);
  const uint64_t until_ns = heddle__generate_until(c.wait_ns);
  s = heddle__request_make(b, &c, &r, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&b->lock);
  s = enter(b, r, until_ns, err);
  pthread_mutex_unlock(&b->lock);
  if (s == HEDDLE_OK && out != NULL) *out = r;
  else heddle_generation_request_release(r);
  return s;
}

/* ---- close */

static void cancel_all(heddle_generation_batch *b) {
  while (b->first != NULL) {
    heddle_generation_request *r = b->first;
    heddle__request_stop(r, HEDDLE_ECANCELED);
    heddle_generation_request_release(r); /* of the batch: its user, or this hold of its own, keeps the lock's memory */
  }
  for (uint32_t i = 0; i < b->n_rows; i++)
    if (b->rows[i] != NULL) heddle__request_stop(b->rows[i], HEDDLE_ECANCELED);
  if (b->n_used > 0) heddle_executor_cancel(b->ex, NULL);
}

heddle_status heddle_generation_batch_close(heddle_generation_batch *b, int cancel, uint64_t timeout_ns,
                                            heddle_error *err) {
  if (b == NULL) return heddle__fail(err, HEDDLE_EINVAL, "close: the batch is NULL");
  heddle_status s = heddle__generation_process(b, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t until_ns = heddle__generate_until(timeout_ns);
  pthread_mutex_lock(&b->lock);
  b->closed = true;
  if (cancel != 0) cancel_all(b);
  pthread_cond_signal(&b->work);
  pthread_cond_broadcast(&b->change);
  while (b->n_open > 0 && heddle__cond_sleep(&b->change, &b->lock, until_ns)) continue;
  if (b->n_open > 0) s = heddle__fail(err, HEDDLE_ETIMEOUT, "the batch is closed, and requests have not ended");
  pthread_mutex_unlock(&b->lock);
  return s;
}

heddle_status heddle_generation_batch_get_stats(heddle_generation_batch *b, heddle_generation_batch_stats *out,
                                                heddle_error *err) {
  if (b == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "stats: the batch or out is NULL");
  heddle_status s = heddle__generation_process(b, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&b->lock);
  heddle_generation_batch_stats all = b->stats;
  all.queued = b->n_waiting;
  all.running = b->n_used;
  all.rows = b->n_rows;
  pthread_mutex_unlock(&b->lock);
  return heddle__info_give(out, &all, sizeof all, err);
}
