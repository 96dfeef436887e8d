/* generate/batch_request.c: requests of a batch: made, read, waited for, cancelled, ended. */
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/thread.h"
#include "generate/batch.h"

/* ---- memory */

static void free_request(heddle_generation_request *r) {
  heddle_generation_batch *b = r->b;
  for (uint32_t k = 0; r->caches != NULL && k < b->prompts->n_caches; k++) heddle_tensor_release(r->caches[k]);
  heddle__free(r->caches);
  heddle__free(r->tokens);
  heddle__free(r->stops);
  heddle__free(r->bias_tokens);
  heddle__free(r->biases);
  heddle__free(r);
  heddle__batch_drop_hold(b);
}

heddle_generation_request *heddle_generation_request_retain(heddle_generation_request *r) {
  atomic_fetch_add_explicit(&r->references, 1, memory_order_relaxed);
  return r;
}

void heddle_generation_request_release(heddle_generation_request *r) {
  if (r == NULL || atomic_fetch_sub_explicit(&r->references, 1, memory_order_acq_rel) != 1) return;
  if (r->b->process == getpid()) free_request(r);
}

/* ---- made */

static void *copied(const void *from, size_t n, size_t size) {
  void *to = heddle__alloc(n + 1, size);
  if (to != NULL && n > 0) memcpy(to, from, n * size);
  return to;
}

static heddle_status check_call(const heddle_generation_batch *b, const heddle_generation_call *c, heddle_error *err) {
  const heddle_generator *g = b->prompts;
  if (c->tokens == NULL || c->n_tokens == 0)
    return heddle__fail(err, HEDDLE_EINVAL, "a request has no token to go on from");
  if (c->n_tokens > g->max_length)
    return heddle__fail(err, HEDDLE_ELIMIT, "%zu tokens are given; the most is %u (max_length)", c->n_tokens,
                        (unsigned)g->max_length);
  return heddle__generate_check_tokens(g, c->tokens, c->n_tokens, err);
}

static heddle_status copy_options(heddle_generation_request *r, const heddle_generation *o, heddle_error *err) {
  heddle_sampling *s = &r->sampling;
  heddle_status status = heddle__sampling_take(o->sampling, r->b->prompts->vocabulary, s, err);
  if (status != HEDDLE_OK) return status;
  r->options = *o;
  r->stops = copied(o->stop_tokens, o->n_stop_tokens, sizeof *r->stops);
  r->bias_tokens = copied(s->bias_tokens, s->n_biases, sizeof *r->bias_tokens);
  r->biases = copied(s->biases, s->n_biases, sizeof *r->biases);
  if (r->stops == NULL || r->bias_tokens == NULL || r->biases == NULL) return heddle__no_memory(err, "a request");
  r->options.stop_tokens = r->stops;
  r->options.sampling = s;
  s->bias_tokens = r->bias_tokens;
  s->biases = r->biases;
  return HEDDLE_OK;
}

heddle_status heddle__request_make(heddle_generation_batch *b, const heddle_generation_call *c,
                                   heddle_generation_request **out, heddle_error *err) {
  heddle_generation o;
  *out = NULL;
  heddle_status s = heddle__generation_take(c->generation, &o, err);
  if (s == HEDDLE_OK) s = check_call(b, c, err);
  if (s != HEDDLE_OK) return s;
  heddle_generation_request *r = heddle__alloc(1, sizeof *r);
  if (r == NULL) return heddle__no_memory(err, "a request");
  atomic_init(&r->references, 1);
  atomic_init(&r->cancelled, false);
  r->b = b;
  atomic_fetch_add_explicit(&b->holds, 1, memory_order_relaxed);
  s = copy_options(r, &o, err);
  r->n = r->n_prompt = c->n_tokens;
  r->most = b->prompts->max_length;
  if (o.max_tokens > 0 && o.max_tokens < r->most - r->n) r->most = r->n + (size_t)o.max_tokens;
  if (s == HEDDLE_OK) {
    r->tokens = heddle__alloc(r->most, sizeof *r->tokens);
    r->caches = heddle__alloc(b->prompts->n_caches, sizeof(heddle_tensor *));
    if (r->tokens == NULL || r->caches == NULL) s = heddle__no_memory(err, "a request");
  }
  if (s != HEDDLE_OK) {
    free_request(r);
    return s;
  }
  memcpy(r->tokens, c->tokens, r->n * sizeof *r->tokens);
  r->done = c->done;
  r->user = c->user;
  r->began_ns = heddle__now_ns();
  r->until_ns = o.deadline_ns > 0 ? heddle__generate_until(o.deadline_ns) : UINT64_MAX;
  r->result.end = HEDDLE_GENERATION_LENGTH;
  *out = r;
  return HEDDLE_OK;
}

/* ---- its tokens and its end */

void heddle__request_end(heddle_generation_request *r, heddle_status s, const heddle_error *err) {
  heddle_generation_batch *b = r->b;
  const bool had_row = r->state != HEDDLE__WAITS;
  if (err != NULL) r->err = *err;
  else if (s == HEDDLE_ETIMEOUT) heddle__fail(&r->err, s, "the deadline of the request passed");
  else if (s == HEDDLE_ECANCELED) heddle__fail(&r->err, s, "the request was cancelled");
  r->err.status = s;
  r->result.tokens = r->n - r->n_prompt;
  if (had_row) {
    b->rows[r->row] = NULL;
    b->n_used--;
    if (b->filling == r) b->filling = NULL;
  }
  if (s == HEDDLE_OK) b->stats.finished++;
  else b->stats.failed++;
  r->state = HEDDLE__LEAVES;
  if (r->done != NULL) {
    pthread_mutex_unlock(&b->lock);
    r->done(r->user, r, s);
    pthread_mutex_lock(&b->lock);
  }
  r->state = HEDDLE__ENDED;
  b->n_open--;
  pthread_cond_broadcast(&b->change);
}

void heddle__batch_publish(heddle_generation_batch *b) {
  b->stats.runs = b->own.runs;
  b->stats.chunks = b->own.chunks;
  b->stats.computed = b->own.computed;
  b->stats.reused = b->own.reused;
  b->stats.sampled = b->own.sampled;
  b->stats.run_ns = b->own.run_ns;
  b->stats.join_ns = b->own.join_ns;
}

static void end_now(heddle_generation_request *r, uint32_t end) {
  heddle_generation_batch *b = r->b;
  pthread_mutex_lock(&b->lock);
  heddle__batch_publish(b);
  r->result.end = end;
  heddle__request_end(r, HEDDLE_OK, NULL);
  pthread_mutex_unlock(&b->lock);
  heddle_generation_request_release(r);
}

bool heddle__request_push(heddle_generation_request *r, int64_t token) {
  heddle_generation_batch *b = r->b;
  const heddle_generation *o = &r->options;
  const uint64_t now = heddle__now_ns();
  pthread_mutex_lock(&b->lock);
  r->tokens[r->n++] = token;
  if (r->n == r->n_prompt + 1) {
    r->first_ns = now;
    r->result.first_ns = now - r->began_ns;
  }
  r->result.rest_ns = now - r->first_ns;
  pthread_cond_broadcast(&b->change);
  pthread_mutex_unlock(&b->lock);
  if (heddle__generation_stops(&b->prompts->config, o, token)) end_now(r, HEDDLE_GENERATION_STOP);
  else if (o->token != NULL && o->token(o->user, token) != 0) end_now(r, HEDDLE_GENERATION_CALLBACK);
  else if (r->n == r->most) end_now(r, HEDDLE_GENERATION_LENGTH);
  else return true;
  return false;
}

/* ---- calls */

static heddle_status check(const heddle_generation_request *r, const char *what, heddle_error *err) {
  if (r == NULL) return heddle__fail(err, HEDDLE_EINVAL, "%s: the request is NULL", what);
  return heddle__generation_process(r->b, err);
}

heddle_status heddle_generation_request_wait(heddle_generation_request *r, uint64_t timeout_ns, heddle_generated *out,
                                             heddle_error *err) {
  heddle_status s = check(r, "wait", err);
  if (s != HEDDLE_OK) return s;
  heddle_generation_batch *b = r->b;
  const uint64_t until_ns = heddle__generate_until(timeout_ns);
  pthread_mutex_lock(&b->lock);
  while (r->state != HEDDLE__ENDED && heddle__cond_sleep(&b->change, &b->lock, until_ns)) continue;
  const bool ended = r->state == HEDDLE__ENDED;
  pthread_mutex_unlock(&b->lock);
  if (!ended) return heddle__fail(err, HEDDLE_EBUSY, "the request has not ended");
  s = r->err.status;
  if (s != HEDDLE_OK && err != NULL) *err = r->err;
  const heddle_status given =
      out != NULL ? heddle__info_give(out, &r->result, sizeof r->result, s == HEDDLE_OK ? err : NULL) : HEDDLE_OK;
  return s != HEDDLE_OK ? s : given;
}

heddle_status heddle_generation_request_read(heddle_generation_request *r, uint64_t first, int64_t *tokens, size_t room,
                                             uint64_t timeout_ns, size_t *n, heddle_error *err) {
  heddle_status s = check(r, "read", err);
  if (s == HEDDLE_OK && (n == NULL || (tokens == NULL && room > 0)))
    s = heddle__fail(err, HEDDLE_EINVAL, "there is no place for the tokens, or for their number");
  if (s != HEDDLE_OK) return s;
  heddle_generation_batch *b = r->b;
  const uint64_t until_ns = heddle__generate_until(timeout_ns);
  *n = 0;
  pthread_mutex_lock(&b->lock);
  while (r->n - r->n_prompt <= first && r->state < HEDDLE__LEAVES && heddle__cond_sleep(&b->change, &b->lock, until_ns))
    continue;
  const uint64_t made = r->n - r->n_prompt;
  if (made > first) {
    *n = made - first < room ? (size_t)(made - first) : room;
    if (*n > 0) memcpy(tokens, r->tokens + r->n_prompt + first, *n * sizeof *tokens);
  } else if (r->state < HEDDLE__LEAVES) {
    s = heddle__fail(err, HEDDLE_EBUSY, "the request has no new token yet");
  }
  pthread_mutex_unlock(&b->lock);
  return s;
}

/* With the lock: out of the list of those that wait. */
static void take_out(heddle_generation_batch *b, heddle_generation_request *r) {
  heddle_generation_request **at = &b->first, *last = NULL;
  while (*at != r) {
    last = *at;
    at = &(*at)->next;
  }
  *at = r->next;
  if (b->last == r) b->last = last;
  b->n_waiting--;
}

bool heddle__request_stop(heddle_generation_request *r, heddle_status s) {
  heddle_generation_batch *b = r->b;
  if (r->state == HEDDLE__WAITS) {
    take_out(b, r);
    heddle__request_end(r, s, NULL);
    return true;
  }
  if (r->state >= HEDDLE__LEAVES || s != HEDDLE_ECANCELED) return false;
  atomic_store_explicit(&r->cancelled, true, memory_order_release);
  if (r->state == HEDDLE__FILLS) heddle_generator_cancel(b->prompts);
  return false;
}

void heddle_generation_request_cancel(heddle_generation_request *r) {
  if (check(r, "cancel", NULL) != HEDDLE_OK) return;
  heddle_generation_batch *b = r->b;
  pthread_mutex_lock(&b->lock);
  const bool ended = heddle__request_stop(r, HEDDLE_ECANCELED);
  pthread_mutex_unlock(&b->lock);
  if (ended) heddle_generation_request_release(r); /* the batch's */
}
