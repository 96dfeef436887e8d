/* generate/batch_work.c: the thread of a batch. In turn: a chunk of one prompt, and a run for a token of each text. */
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "core/tensor.h"
#include "core/thread.h"
#include "generate/batch.h"

/* ---- ends, with the lock held */

/* s HEDDLE_OK: it goes on. */
static heddle_status state_of(const heddle_generation_request *r, uint64_t now_ns) {
  if (atomic_load_explicit(&r->cancelled, memory_order_acquire)) return HEDDLE_ECANCELED;
  return r->until_ns <= now_ns ? HEDDLE_ETIMEOUT : HEDDLE_OK;
}

/* The first that waits and whose time is over. */
static heddle_generation_request *late(const heddle_generation_batch *b, uint64_t now_ns) {
  for (heddle_generation_request *r = b->first; r != NULL; r = r->next)
    if (r->until_ns <= now_ns) return r;
  return NULL;
}

static void end_some(heddle_generation_batch *b) {
  const uint64_t now = heddle__now_ns();
  for (heddle_generation_request *r; (r = late(b, now)) != NULL;) {
    heddle__request_stop(r, HEDDLE_ETIMEOUT);
    heddle_generation_request_release(r);
  }
  for (uint32_t i = 0; i < b->n_rows; i++) {
    heddle_generation_request *r = b->rows[i];
    const heddle_status s = r != NULL ? state_of(r, now) : HEDDLE_OK;
    if (s == HEDDLE_OK) continue;
    heddle__request_end(r, s, NULL);
    heddle_generation_request_release(r);
  }
}

static void admit(heddle_generation_batch *b) {
  heddle_generation_request *r = b->first;
  if (b->filling != NULL || r == NULL || b->n_used == b->n_rows) return;
  b->first = r->next;
  if (b->first == NULL) b->last = NULL;
  b->n_waiting--;
  while (b->rows[r->row] != NULL) r->row++;
  b->rows[r->row] = b->filling = r;
  b->n_used++;
  r->state = HEDDLE__FILLS;
  pthread_cond_broadcast(&b->change);
}

/* ---- prompts */

static void fail(heddle_generation_request *r, heddle_status s, const heddle_error *err) {
  heddle_generation_batch *b = r->b;
  pthread_mutex_lock(&b->lock);
  heddle__batch_publish(b);
  const heddle_status own = state_of(r, heddle__now_ns()); /* it was cancelled, or its time is over */
  if (own != HEDDLE_OK) heddle__request_end(r, own, NULL);
  else heddle__request_end(r, s, err);
  pthread_mutex_unlock(&b->lock);
  heddle_generation_request_release(r);
}

/* What the prompt before it has in common with it stays. */
static heddle_status begin_prompt(heddle_generation_batch *b, heddle_error *err) {
  const heddle_generation_request *r = b->filling;
  const heddle_generator *g = b->prompts;
  size_t common = 0;
  while (common < r->n && common < g->n && r->tokens[common] == g->tokens[common]) common++;
  if (common > g->cached) common = g->cached;
  b->filled = common;
  b->own.reused += common;
  return heddle_generator_truncate(b->prompts, common, err);
}

static bool choose(heddle_generation_request *r, void *logits, heddle_dtype dtype) {
  heddle_generation_batch *b = r->b;
  int64_t token = 0;
  heddle_error err = {0};
  heddle_status s =
      heddle__sampler_choose(&b->sampler, logits, dtype, r->tokens, r->n, r->n, &r->sampling, &token, &err);
  b->own.sampled++;
  if (s == HEDDLE_OK) return heddle__request_push(r, token);
  heddle__prefix(&err, s, "output '%s': ", b->prompts->config.logits);
  heddle__generate_blame(b->prompts, s, &err);
  fail(r, s, &err);
  return false;
}

/* The prompt's caches leave the generator, which goes on with the next one. */
static heddle_status take_caches(heddle_generation_request *r, heddle_error *err) {
  const heddle_generator *g = r->b->prompts;
  heddle_status s = HEDDLE_OK;
  for (uint32_t k = 0; k < g->n_caches && s == HEDDLE_OK; k++)
    s = heddle_executor_read_state(g->ex, g->caches[k].state, &r->caches[k], err);
  r->cached = r->n_prompt;
  return s;
}

/* The first token, and then it may join. */
static void end_prompt(heddle_generation_batch *b) {
  heddle_generation_request *r = b->filling;
  heddle_error err = {0};
  heddle_status s = take_caches(r, &err);
  if (s != HEDDLE_OK) {
    fail(r, s, &err);
    return;
  }
  if (!choose(r, heddle__generate_row(b->prompts), heddle_tensor_dtype(b->prompts->view))) return;
  pthread_mutex_lock(&b->lock);
  r->state = HEDDLE__JOINS;
  b->filling = NULL;
  pthread_mutex_unlock(&b->lock);
}

static void fill_some(heddle_generation_batch *b) {
  heddle_generation_request *r = b->filling;
  heddle_generator *g = b->prompts;
  heddle_error err = {0};
  heddle_status s = r->cached == 0 ? begin_prompt(b, &err) : HEDDLE_OK;
  size_t n = r->n_prompt - b->filled;
  r->cached = 1; /* it has begun */
  if (n > g->chunk) n = g->chunk;
  if (s == HEDDLE_OK && r->n >= r->most) {
    pthread_mutex_lock(&b->lock);
    heddle__request_end(r, HEDDLE_OK, NULL);
    pthread_mutex_unlock(&b->lock);
    heddle_generation_request_release(r);
    return;
  }
  if (s == HEDDLE_OK) s = heddle_generator_append(g, r->tokens + b->filled, n, &err);
  if (s == HEDDLE_OK) s = heddle__generate_evaluate(g, r->until_ns, &err);
  if (s != HEDDLE_OK) {
    fail(r, s, &err);
    return;
  }
  b->filled += n;
  b->own.computed += n;
  b->own.chunks++;
  if (b->filled == r->n_prompt) end_prompt(b);
}

/* ---- all rows */

static void fail_all(heddle_generation_batch *b, heddle_status s, const heddle_error *err) {
  for (uint32_t i = 0; i < b->n_rows; i++) {
    heddle_generation_request *r = b->rows[i];
    if (r != NULL && (r->state == HEDDLE__JOINS || r->state == HEDDLE__RUNS)) fail(r, s, err);
  }
}

/* Those whose prompts were computed become those that run; false: no text does. */
static bool joined(heddle_generation_batch *b) {
  bool any = false;
  pthread_mutex_lock(&b->lock);
  for (uint32_t i = 0; i < b->n_rows; i++) {
    heddle_generation_request *r = b->rows[i];
    if (r == NULL || r->state < HEDDLE__JOINS) continue;
    r->state = HEDDLE__RUNS;
    any = true;
  }
  pthread_mutex_unlock(&b->lock);
  for (uint32_t i = 0; i < b->n_rows; i++) {
    heddle_generation_request *r = b->rows[i];
    for (uint32_t k = 0; r != NULL && r->state == HEDDLE__RUNS && k < b->prompts->n_caches; k++) {
      heddle_tensor_release(r->caches[k]);
      r->caches[k] = NULL;
    }
  }
  return any;
}

static void step(heddle_generation_batch *b) {
  heddle_error err = {0};
  bool any = false;
  for (uint32_t i = 0; i < b->n_rows; i++) any = any || (b->rows[i] != NULL && b->rows[i]->state >= HEDDLE__JOINS);
  if (!any) return;
  heddle_status s = heddle__rows_join(b, &err);
  if (s == HEDDLE_OK && joined(b)) s = heddle__rows_step(b, &err);
  if (s != HEDDLE_OK) {
    b->length = 0;
    fail_all(b, s, &err);
    return;
  }
  for (uint32_t i = 0; i < b->n_rows; i++) {
    heddle_generation_request *r = b->rows[i];
    if (r != NULL && r->state == HEDDLE__RUNS) choose(r, heddle__rows_logits(b, i), heddle_tensor_dtype(b->view));
  }
}

/* ---- the thread */

void *heddle__generation_work(void *batch) {
  heddle_generation_batch *b = batch;
  pthread_mutex_lock(&b->lock);
  for (;;) {
    heddle__batch_publish(b);
    end_some(b);
    admit(b);
    if (b->n_used == 0) {
      if (b->closed && b->first == NULL) break;
      if (b->first == NULL) heddle__cond_sleep(&b->work, &b->lock, UINT64_MAX);
      continue;
    }
    pthread_mutex_unlock(&b->lock);
    if (b->filling != NULL) fill_some(b);
    step(b);
    pthread_mutex_lock(&b->lock);
  }
  pthread_mutex_unlock(&b->lock);
  return NULL;
}
