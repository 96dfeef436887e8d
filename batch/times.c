/* batch/times.c: when a request passed what, and what the steps of its run took. */
#include <string.h>

#include "batch/batcher.h"
#include "core/alloc.h"
#include "core/error.h"

/* ---- steps */

heddle__batch_steps *heddle__batch_steps_retain(heddle__batch_steps *steps) {
  atomic_fetch_add_explicit(&steps->references, 1, memory_order_relaxed);
  return steps;
}

void heddle__batch_steps_release(heddle__batch_steps *steps) {
  if (steps != NULL && atomic_fetch_sub_explicit(&steps->references, 1, memory_order_acq_rel) == 1) heddle__free(steps);
}

static const char *put(char **at, const char *text) {
  const size_t n = strlen(text) + 1;
  char *copy = memcpy(*at, text, n);
  *at += n;
  return copy;
}

/* NULL: there is no memory. */
static heddle__batch_steps *copy_steps(const heddle_profile_entry *entries, size_t n) {
  heddle__batch_steps *steps;
  size_t bytes = sizeof *steps + n * sizeof *entries;
  for (size_t i = 0; i < n; i++)
    bytes += strlen(entries[i].name) + strlen(entries[i].op) + strlen(entries[i].device) + 3;
  steps = heddle__alloc(1, bytes);
  if (steps == NULL) return NULL;
  char *at = (char *)&steps->entries[n];
  atomic_init(&steps->references, 1);
  steps->n = n;
  for (size_t i = 0; i < n; i++) {
    heddle_profile_entry *e = &steps->entries[i];
    *e = entries[i];
    e->name = put(&at, e->name), e->op = put(&at, e->op), e->device = put(&at, e->device);
  }
  return steps;
}

heddle_status heddle__batch_run_steps(heddle__batch_worker *w, heddle_error *err) {
  const heddle_profile_entry *entries = NULL;
  size_t n = 0;
  heddle_status s = heddle_executor_profile(w->ex, &entries, &n, err);
  if (s == HEDDLE_OK) w->steps = copy_steps(entries, n);
  return s;
}

/* ---- of a request */

heddle_status heddle_batch_request_times(heddle_batch_request *r, heddle_batch_times *out, heddle_error *err) {
  if (r == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "times: the request or the result is NULL");
  heddle_status s = heddle__batch_check_process(r->b, err);
  if (s != HEDDLE_OK) return s;
  const size_t size = out->struct_size < sizeof *out ? out->struct_size : sizeof *out;
  heddle_batch_times t = {.struct_size = size};
  pthread_mutex_lock(&r->b->lock);
  if (r->state == HEDDLE__BATCH_DONE) {
    t.accepted_ns = r->accepted_ns, t.taken_ns = r->taken_ns, t.run_ns = r->run_ns;
    t.ran_ns = r->ran_ns, t.ended_ns = r->ended_ns;
    t.items = (uint64_t)r->run_items, t.rows = (uint64_t)r->run_rows;
    if (r->steps != NULL) t.steps = r->steps->entries, t.n_steps = r->steps->n;
  } else s = HEDDLE_EBUSY;
  pthread_mutex_unlock(&r->b->lock);
  if (s != HEDDLE_OK) return heddle__fail(err, s, "the request has no result yet");
  memcpy(out, &t, size);
  return HEDDLE_OK;
}
