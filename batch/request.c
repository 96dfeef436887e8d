/* batch/request.c: requests: submitted, waited for, cancelled, and their outputs. Their memory is used again. */
#include <string.h>

#include "batch/batcher.h"
#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/thread.h"

/* ---- memory */

void heddle__batch_request_free(heddle_batch_request *r) {
  heddle__free(r->inputs);
  heddle__free(r->outputs);
  heddle__free(r->dims);
  pthread_cond_destroy(&r->ended);
  pthread_mutex_destroy(&r->lock);
  heddle__free(r);
}

static heddle_batch_request *made(const heddle_batcher *b, heddle_error *err) {
  heddle_batch_request *r = heddle__alloc(1, sizeof *r);
  if (r == NULL || heddle__cond_init(&r->lock, &r->ended, err) != HEDDLE_OK) {
    heddle__free(r);
    heddle__no_memory(err, "a request");
    return NULL;
  }
  r->inputs = heddle__alloc(b->ports.n_inputs, sizeof(heddle_tensor *));
  r->outputs = heddle__alloc(b->ports.n_outputs, sizeof(heddle_tensor *));
  r->dims = heddle__alloc(b->ports.n_symbols, sizeof *r->dims);
  if (r->inputs != NULL && r->outputs != NULL && r->dims != NULL) return r;
  heddle__batch_request_free(r);
  heddle__no_memory(err, "a request");
  return NULL;
}

heddle_batch_request *heddle__batch_request_make(heddle_batcher *b, heddle_error *err) {
  pthread_mutex_lock(&b->lock);
  heddle_batch_request *r = b->free;
  if (r != NULL) b->free = r->next_done;
  pthread_mutex_unlock(&b->lock);
  if (r == NULL) r = made(b, err);
  if (r == NULL) return NULL;
  atomic_store(&r->references, 1);
  atomic_fetch_add(&b->holds, 1);
  r->b = b;
  r->has_ended = false;
  r->err.status = HEDDLE_OK;
  r->next_done = NULL;
  r->taken_ns = r->run_ns = r->ran_ns = r->ended_ns = 0;
  r->run_items = r->run_rows = 0;
  return r;
}

static void drop_tensors(heddle_tensor **tensors, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    heddle_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}

void heddle__batch_request_clear(heddle_batch_request *r) {
  drop_tensors(r->inputs, r->b->ports.n_inputs);
  if (r->err.status != HEDDLE_OK) drop_tensors(r->outputs, r->b->ports.n_outputs);
}

heddle_batch_request *heddle_batch_request_retain(heddle_batch_request *r) {
  atomic_fetch_add_explicit(&r->references, 1, memory_order_relaxed);
  return r;
}

void heddle_batch_request_release(heddle_batch_request *r) {
  if (r == NULL || atomic_fetch_sub_explicit(&r->references, 1, memory_order_acq_rel) != 1) return;
  heddle_batcher *b = r->b;
  if (heddle__batch_check_process(b, NULL) != HEDDLE_OK) return;
  drop_tensors(r->inputs, b->ports.n_inputs);
  drop_tensors(r->outputs, b->ports.n_outputs);
  heddle__batch_steps_release(r->steps);
  r->steps = NULL;
  pthread_mutex_lock(&b->lock);
  r->next_done = b->free;
  b->free = r;
  pthread_mutex_unlock(&b->lock);
  heddle__batch_unhold(b);
}

/* ---- in */

/* Waits for room in the queue, and puts the request there. */
static heddle_status enter(heddle_batcher *b, heddle_batch_request *r, uint64_t until_ns, heddle_error *err) {
  const bool by_deadline = r->deadline_ns < until_ns;
  if (by_deadline) until_ns = r->deadline_ns;
  pthread_mutex_lock(&b->lock);
  while (!b->closed && b->queued + r->items > (int64_t)b->max_queue && heddle__cond_sleep(&b->room, &b->lock, until_ns))
    continue;
  heddle_status s = HEDDLE_OK;
  if (b->closed) {
    s = heddle__fail(err, HEDDLE_ECANCELED, "the batcher is closed");
    b->stats.refused++;
  } else if (b->queued + r->items > (int64_t)b->max_queue) {
    b->stats.rejected++;
    s = by_deadline ? heddle__fail(err, HEDDLE_ETIMEOUT, "the deadline passed while the queue of the batcher was full")
                    : heddle__fail(err, HEDDLE_EBUSY, "the queue of the batcher is full: %lld items wait",
                                   (long long)b->queued);
  } else {
    atomic_fetch_add(&r->references, 1); /* the queue's */
    s = heddle__batch_enqueue(b, r, err);
    if (s != HEDDLE_OK) atomic_fetch_sub(&r->references, 1);
  }
  pthread_mutex_unlock(&b->lock);
  return s;
}

static void count_refused(heddle_batcher *b) {
  pthread_mutex_lock(&b->lock);
  b->stats.refused++;
  pthread_mutex_unlock(&b->lock);
}

heddle_status heddle_batcher_submit(heddle_batcher *b, const heddle_batch_call *call, heddle_batch_request **out,
                                    heddle_error *err) {
  if (out != NULL) *out = NULL;
  if (b == NULL || call == NULL) return heddle__fail(err, HEDDLE_EINVAL, "submit: the batcher or the call is NULL");
  heddle_status s = heddle__batch_check_process(b, err);
  if (s != HEDDLE_OK) return s;
  heddle_batch_call c = {0};
  memcpy(&c, call, call->struct_size < sizeof c ? call->struct_size : sizeof c);
  heddle_batch_request *r = heddle__batch_request_make(b, err);
  if (r == NULL) return HEDDLE_ENOMEM;
  const uint64_t now_ns = heddle__now_ns();
  r->priority = c.priority;
  r->flags = c.flags;
  r->deadline_ns = c.deadline_ns > 0 ? heddle__batch_after(now_ns, c.deadline_ns) : UINT64_MAX;
  r->done_fn = c.done;
  r->user = c.user;
  s = heddle__batch_check(b, &c, r, err);
  if (s != HEDDLE_OK) count_refused(b);
  else s = enter(b, r, heddle__batch_after(now_ns, c.wait_ns), err);
  if (s == HEDDLE_OK && out != NULL) *out = r;
  else heddle_batch_request_release(r);
  return s;
}

/* ---- results */

heddle_status heddle_batch_request_wait(heddle_batch_request *r, uint64_t timeout_ns, heddle_error *err) {
  if (r == NULL) return heddle__fail(err, HEDDLE_EINVAL, "wait: the request is NULL");
  heddle_status s = heddle__batch_check_process(r->b, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t until_ns = heddle__batch_after(heddle__now_ns(), timeout_ns);
  pthread_mutex_lock(&r->lock);
  while (!r->has_ended && heddle__cond_sleep(&r->ended, &r->lock, until_ns)) continue;
  const bool has_ended = r->has_ended;
  pthread_mutex_unlock(&r->lock);
  if (!has_ended) return heddle__fail(err, HEDDLE_EBUSY, "the request has no result yet");
  if (r->err.status != HEDDLE_OK && err != NULL) *err = r->err;
  return r->err.status;
}

heddle_status heddle_batch_request_cancel(heddle_batch_request *r) {
  if (r == NULL) return HEDDLE_EINVAL;
  heddle_status s = heddle__batch_check_process(r->b, NULL);
  if (s != HEDDLE_OK) return s;
  heddle_batch_request *list = NULL;
  pthread_mutex_lock(&r->b->lock);
  const bool stops = heddle__batch_stop(r, HEDDLE_ECANCELED, &list);
  pthread_mutex_unlock(&r->b->lock);
  heddle__batch_finish(r->b, list);
  if (!stops) return HEDDLE_EBUSY;
  pthread_mutex_lock(&r->lock); /* its inputs are being read: a moment */
  while (!r->has_ended) heddle__cond_sleep(&r->ended, &r->lock, UINT64_MAX);
  pthread_mutex_unlock(&r->lock);
  return HEDDLE_OK;
}

heddle_status heddle_batch_request_output(heddle_batch_request *r, uint32_t i, heddle_tensor **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "output: out is NULL");
  *out = NULL;
  if (r == NULL) return heddle__fail(err, HEDDLE_EINVAL, "output: the request is NULL");
  heddle_status s = heddle__batch_check_process(r->b, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&r->b->lock);
  const bool succeeded = r->state == HEDDLE__BATCH_DONE && r->err.status == HEDDLE_OK;
  pthread_mutex_unlock(&r->b->lock);
  if (!succeeded) return heddle__fail(err, HEDDLE_EINVAL, "the request has not succeeded: it has no outputs");
  if (i >= r->b->ports.n_outputs)
    return heddle__fail(err, HEDDLE_ENOTFOUND, "output %u of %u", (unsigned)i, (unsigned)r->b->ports.n_outputs);
  *out = heddle_tensor_retain(r->outputs[i]);
  return HEDDLE_OK;
}

heddle_status heddle_batcher_run(heddle_batcher *b, const heddle_batch_call *call, heddle_tensor **outputs, size_t n,
                                 heddle_error *err) {
  heddle_batch_request *r = NULL;
  for (size_t i = 0; outputs != NULL && i < n; i++) outputs[i] = NULL;
  if (b != NULL && outputs != NULL && n > b->ports.n_outputs)
    return heddle__fail(err, HEDDLE_ENOTFOUND, "%zu outputs are asked for, and the model has %u", n,
                        (unsigned)b->ports.n_outputs);
  heddle_status s = heddle_batcher_submit(b, call, &r, err);
  if (s != HEDDLE_OK) return s;
  s = heddle_batch_request_wait(r, HEDDLE_FOREVER, err);
  for (size_t i = 0; s == HEDDLE_OK && outputs != NULL && i < n; i++) outputs[i] = heddle_tensor_retain(r->outputs[i]);
  heddle_batch_request_release(r);
  return s;
}
