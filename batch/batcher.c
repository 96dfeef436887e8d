/* batch/batcher.c: batchers: made, drained, closed, counted, released. */
#include "batch/batcher.h"

#include <string.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/thread.h"

enum { MOST_ITEMS = 1 << 20, SOME_ITEMS = 32, QUEUED_RUNS = 8 };

static atomic_uint forks; /* of this process and those before it, since the first batcher was made */
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void count_fork(void) {
  atomic_fetch_add(&forks, 1);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, count_fork);
}

heddle_status heddle__batch_check_process(const heddle_batcher *b, heddle_error *err) {
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK || b->forks == atomic_load_explicit(&forks, memory_order_relaxed)) return s;
  return heddle__fail(err, HEDDLE_EFORK,
                      "this process was forked from the one whose threads the batcher has; make another");
}

/* ---- end */

static void free_worker(heddle__batch_worker *w) {
  for (uint32_t i = 0; w->stages != NULL && i < w->b->ports.n_inputs; i++) heddle__batch_stage_free(&w->stages[i]);
  heddle_executor_release(w->ex);
  heddle__free(w->stages);
  heddle__free(w->views);
  heddle__free(w->batch);
  heddle__free(w->present);
}

/* The executors and all that a request does not need that is held longer. */
static void end_work(heddle_batcher *b) {
  for (uint32_t i = 0; i < b->n_threads; i++) pthread_join(b->workers[i].thread, NULL);
  if (b->has_keeper) pthread_join(b->keeper, NULL);
  b->n_threads = 0;
  b->has_keeper = false;
  for (uint32_t i = 0; b->workers != NULL && i < b->n_workers; i++) free_worker(&b->workers[i]);
  heddle__free(b->workers);
  b->workers = NULL;
  heddle_model_release(b->model);
  b->model = NULL;
}

void heddle__batch_unhold(heddle_batcher *b) {
  if (atomic_fetch_sub_explicit(&b->holds, 1, memory_order_acq_rel) != 1) return;
  while (b->free != NULL) {
    heddle_batch_request *r = b->free;
    b->free = r->next_done;
    heddle__batch_request_free(r);
  }
  while (b->free_groups != NULL) {
    heddle__batch_group *g = b->free_groups;
    b->free_groups = g->next;
    heddle__free(g);
  }
  heddle__batch_ports_free(&b->ports);
  pthread_cond_destroy(&b->work);
  pthread_cond_destroy(&b->room);
  pthread_cond_destroy(&b->fewer);
  pthread_cond_destroy(&b->time);
  pthread_mutex_destroy(&b->lock);
  heddle__free(b);
}

heddle_batcher *heddle_batcher_retain(heddle_batcher *b) {
  atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
  return b;
}

void heddle_batcher_release(heddle_batcher *b) {
  if (b == NULL || atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) != 1) return;
  if (heddle__batch_check_process(b, NULL) != HEDDLE_OK) return; /* devices and threads are the parent's */
  heddle_batcher_close(b, 1, HEDDLE_FOREVER, NULL);
  end_work(b);
  heddle__batch_unhold(b);
}

/* ---- creation */

static heddle_status make_locks(heddle_batcher *b, heddle_error *err) {
  pthread_cond_t *const conds[] = {&b->work, &b->room, &b->fewer, &b->time};
  for (int i = 0; i < 4; i++) {
    pthread_mutex_t *lock = &b->lock;
    pthread_mutex_t other;
    heddle_status s = heddle__cond_init(i == 0 ? lock : &other, conds[i], err);
    if (s != HEDDLE_OK) {
      if (i > 0) pthread_mutex_destroy(lock);
      while (i-- > 0) pthread_cond_destroy(conds[i]);
      return s;
    }
    if (i > 0) pthread_mutex_destroy(&other);
  }
  return HEDDLE_OK;
}

static heddle_status take_options(heddle_batcher *b, const heddle_batcher_options *o, heddle_error *err) {
  if (o->max_items > MOST_ITEMS || o->max_queue > INT32_MAX)
    return heddle__fail(err, HEDDLE_EINVAL, "max_items is %u and max_queue %u; the most are %d and %d",
                        (unsigned)o->max_items, (unsigned)o->max_queue, MOST_ITEMS, INT32_MAX);
  if (o->workers > HEDDLE__BATCH_WORKERS)
    return heddle__fail(err, HEDDLE_EINVAL, "%u workers are asked for; the most are %d", (unsigned)o->workers,
                        HEDDLE__BATCH_WORKERS);
  if ((o->flags & ~(HEDDLE_BATCH_EXACT | HEDDLE_BATCH_KEEP_PADDING | HEDDLE_BATCH_TOGETHER)) != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "the flags %#x of a batcher are not known", (unsigned)o->flags);
  if ((o->n_inputs > 0 && o->inputs == NULL) || (o->n_outputs > 0 && o->outputs == NULL))
    return heddle__fail(err, HEDDLE_EINVAL, "the ports of a batcher are at NULL");
  if (o->max_queue > 0 && o->max_queue < o->max_items)
    return heddle__fail(err, HEDDLE_EINVAL, "max_queue is %u, and a run has up to %u items: it is at least as many",
                        (unsigned)o->max_queue, (unsigned)o->max_items);
  b->flags = o->flags;
  b->n_workers = o->workers > 0 ? o->workers : 1;
  b->max_delay_ns = o->max_delay_ns;
  b->run_timeout_ns = o->run_timeout_ns;
  return HEDDLE_OK;
}

/* Once the ports are known. */
static heddle_status size_queue(heddle_batcher *b, const heddle_batcher_options *o, heddle_error *err) {
  const int64_t fixed = b->ports.fixed;
  if (fixed > MOST_ITEMS)
    return heddle__fail(err, HEDDLE_ELIMIT, "a run of the model has %lld items; the most are %d", (long long)fixed,
                        MOST_ITEMS);
  b->max_items = o->max_items > 0 ? o->max_items : fixed > 0 ? (uint32_t)fixed : SOME_ITEMS;
  if (fixed > 0 && b->max_items > (uint32_t)fixed) b->max_items = (uint32_t)fixed;
  if (o->max_queue > 0 && o->max_queue < b->max_items) b->max_items = o->max_queue;
  b->max_queue = o->max_queue > 0 ? o->max_queue : QUEUED_RUNS * b->max_items;
  b->stats.most_items = b->max_items;
  return HEDDLE_OK;
}

static heddle_status make_worker(heddle_batcher *b, heddle__batch_worker *w, heddle_error *err) {
  w->stages = heddle__alloc(b->ports.n_inputs, sizeof *w->stages);
  w->views = heddle__alloc(b->ports.n_outputs, sizeof(heddle_tensor *));
  w->batch = heddle__alloc(b->max_items, sizeof(heddle_batch_request *));
  w->present = heddle__alloc(b->max_items, sizeof(heddle_batch_request *));
  if (w->stages == NULL || w->views == NULL || w->batch == NULL || w->present == NULL)
    return heddle__no_memory(err, "a batcher's worker");
  return w->ex != NULL ? HEDDLE_OK : heddle_executor_create(b->model, &w->ex, err);
}

static heddle_status make(heddle_batcher *b, const heddle_batcher_options *o, heddle_error *err) {
  heddle_status s = take_options(b, o, err);
  if (s != HEDDLE_OK) return s;
  b->workers = heddle__alloc(b->n_workers, sizeof *b->workers);
  if (b->workers == NULL) return heddle__no_memory(err, "a batcher's workers");
  for (uint32_t i = 0; i < b->n_workers; i++) b->workers[i].b = b;
  s = heddle_executor_create(b->model, &b->workers[0].ex, err);
  if (s == HEDDLE_OK) s = heddle__batch_ports_read(&b->ports, b->model, b->workers[0].ex, o, err);
  if (s == HEDDLE_OK) s = size_queue(b, o, err);
  for (uint32_t i = 0; i < b->n_workers && s == HEDDLE_OK; i++) s = make_worker(b, &b->workers[i], err);
  for (uint32_t i = 0; i < b->n_workers && s == HEDDLE_OK; i++) {
    s = heddle__thread_start(&b->workers[i].thread, heddle__batch_work, &b->workers[i], "a batcher's worker", err);
    if (s == HEDDLE_OK) b->n_threads++;
  }
  if (s != HEDDLE_OK) return s;
  s = heddle__thread_start(&b->keeper, heddle__batch_keep, b, "a batcher's keeper of deadlines", err);
  b->has_keeper = s == HEDDLE_OK;
  return s;
}

heddle_status heddle_batcher_create(heddle_model *m, const heddle_batcher_options *options, heddle_batcher **out,
                                    heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the batcher: out is NULL");
  *out = NULL;
  if (m == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a batcher needs a model");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  heddle_batcher_options o = {0};
  if (options != NULL) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  heddle_batcher *b = heddle__alloc(1, sizeof *b);
  if (b == NULL) return heddle__no_memory(err, "a batcher");
  s = make_locks(b, err);
  if (s != HEDDLE_OK) {
    heddle__free(b);
    return s;
  }
  atomic_init(&b->references, 1);
  atomic_init(&b->holds, 1);
  b->next_deadline_ns = UINT64_MAX;
  pthread_once(&forks_once, watch_forks);
  b->forks = atomic_load(&forks);
  b->model = heddle_model_retain(m);
  s = make(b, &o, err);
  if (s == HEDDLE_OK) *out = b;
  else heddle_batcher_release(b);
  return s;
}

/* ---- names */

const char *heddle_batcher_input_name(const heddle_batcher *b, uint32_t i) {
  return b != NULL && i < b->ports.n_inputs ? b->ports.inputs[i].name : NULL;
}

const char *heddle_batcher_output_name(const heddle_batcher *b, uint32_t i) {
  return b != NULL && i < b->ports.n_outputs ? b->ports.outputs[i].name : NULL;
}

/* ---- drain and close */

heddle_status heddle_batcher_drain(heddle_batcher *b, uint64_t timeout_ns, heddle_error *err) {
  if (b == NULL) return heddle__fail(err, HEDDLE_EINVAL, "drain: the batcher is NULL");
  heddle_status s = heddle__batch_check_process(b, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t until_ns = heddle__batch_after(heddle__now_ns(), timeout_ns);
  pthread_mutex_lock(&b->lock);
  const uint64_t last = b->numbers;
  b->drains++;
  pthread_cond_broadcast(&b->work);
  while (b->first != NULL && b->first->number <= last && heddle__cond_sleep(&b->fewer, &b->lock, until_ns)) continue;
  b->drains--;
  if (b->first != NULL && b->first->number <= last)
    s = heddle__fail(err, HEDDLE_ETIMEOUT, "requests have no result yet");
  pthread_mutex_unlock(&b->lock);
  return s;
}

heddle_status heddle_batcher_close(heddle_batcher *b, int cancel, uint64_t timeout_ns, heddle_error *err) {
  if (b == NULL) return heddle__fail(err, HEDDLE_EINVAL, "close: the batcher is NULL");
  heddle_status s = heddle__batch_check_process(b, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t until_ns = heddle__batch_after(heddle__now_ns(), timeout_ns);
  heddle_batch_request *list = NULL;
  pthread_mutex_lock(&b->lock);
  b->closed = true;
  for (heddle_batch_request *r = b->first; cancel != 0 && r != NULL; r = r->next_all)
    heddle__batch_stop(r, HEDDLE_ECANCELED, &list);
  pthread_cond_broadcast(&b->work);
  pthread_cond_broadcast(&b->room);
  pthread_cond_signal(&b->time);
  pthread_mutex_unlock(&b->lock);
  heddle__batch_finish(b, list);
  pthread_mutex_lock(&b->lock);
  while (b->first != NULL && heddle__cond_sleep(&b->fewer, &b->lock, until_ns)) continue;
  if (b->first != NULL)
    s = heddle__fail(err, HEDDLE_ETIMEOUT, "the batcher is closed, and requests have no result yet");
  pthread_mutex_unlock(&b->lock);
  return s;
}

heddle_status heddle_batcher_get_stats(heddle_batcher *b, heddle_batcher_stats *out, heddle_error *err) {
  if (b == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "stats: the batcher or out is NULL");
  heddle_status s = heddle__batch_check_process(b, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&b->lock);
  heddle_batcher_stats all = b->stats;
  all.queued = (uint64_t)b->queued;
  all.running = (uint64_t)b->running;
  pthread_mutex_unlock(&b->lock);
  return heddle__info_give(out, &all, sizeof all, err);
}
