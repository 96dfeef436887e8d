/* bindings/python/src/pool.c: a model's executors that calls share: at most so many, made when they are needed, handed
 * over in the order in which callers came. The GIL is the lock; only sleeping callers use a real one. */
#include "model.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int heddle_py_pool_init(pool *p, uint32_t limit) {
  *p = (pool){.limit = limit, .process = getpid()};
  if (pthread_mutex_init(&p->lock, NULL) == 0) return 0;
  p->limit = 0; /* heddle_py_pool_free has nothing to destroy */
  heddle_py_fail_words(HEDDLE_ENOMEM, "a lock for the model's pool of executors");
  return -1;
}

/* ---- executors */

static void slot_free(const heddle_py_model *model, slot *s) {
  for (uint32_t i = 0; s->inputs != NULL && i < model->n_inputs; i++) heddle_py_tensor_release(s->inputs[i].stage);
  for (uint32_t i = 0; s->outputs != NULL && i < model->n_outputs; i++) heddle_py_tensor_release(s->outputs[i].stage);
  Py_BEGIN_ALLOW_THREADS; /* what is pending is waited for */
  heddle_executor_release(s->ex);
  Py_END_ALLOW_THREADS;
  free(s->inputs);
  free(s->outputs);
  free(s);
}

static slot *slot_make(heddle_py_model *model) {
  heddle_error err;
  heddle_status status;
  slot *s = calloc(1, sizeof *s);
  if (s == NULL) return (slot *)PyErr_NoMemory();
  heddle_model *m = heddle_model_retain(model->m); /* close() may drop the model's own meanwhile */
  Py_BEGIN_ALLOW_THREADS;
  status = heddle_executor_create(m, &s->ex, &err);
  heddle_model_release(m);
  Py_END_ALLOW_THREADS;
  if (status != HEDDLE_OK) {
    free(s);
    return heddle_py_fail(status, &err, model->file), NULL;
  }
  int failed = model->has_ports ? 0 : heddle_py_ports_learn(model, s->ex);
  if (failed == 0) {
    s->inputs = calloc(model->n_inputs + 1, sizeof *s->inputs);
    s->outputs = calloc(model->n_outputs + 1, sizeof *s->outputs);
    if (s->inputs == NULL || s->outputs == NULL) PyErr_NoMemory(), failed = -1;
  }
  if (failed == 0) return s;
  slot_free(model, s);
  return NULL;
}

/* ---- waiting */

static void enqueue(pool *p, waiter *w) {
  if (p->last != NULL) p->last->next = w;
  else p->first = w;
  p->last = w;
}

static void dequeue(pool *p, waiter *w) {
  waiter **at = &p->first, *before = NULL;
  while (*at != NULL && *at != w) {
    before = *at;
    at = &before->next;
  }
  if (*at == NULL) return;
  *at = w->next;
  if (p->last == w) p->last = before;
}

/* Hands an executor, or with NULL the right to make one, to the first waiter; false where there is none. */
static bool serve(pool *p, slot *s) {
  waiter *w = p->first;
  if (w == NULL) return false;
  dequeue(p, w);
  pthread_mutex_lock(&p->lock);
  w->given = s;
  w->is_served = true;
  pthread_cond_signal(&w->woken);
  pthread_mutex_unlock(&p->lock);
  return true;
}

static void put_back(pool *p, slot *s) {
  p->out--;
  s->next = p->idle;
  p->idle = s;
}

/* Sleeps until served, at most for a moment; returns whether it is. Without the GIL. */
static bool doze(pool *p, waiter *w) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 50000000;
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  pthread_mutex_lock(&p->lock);
  if (!w->is_served) pthread_cond_timedwait(&w->woken, &p->lock, &until);
  bool is_served = w->is_served;
  pthread_mutex_unlock(&p->lock);
  return is_served;
}

/* 0 with *out, which is NULL for the right to make one; -1 with an exception; 1 with both, of which *out is to be given
 * back. */
static int wait_for(pool *p, slot **out) {
  waiter w = {.woken = PTHREAD_COND_INITIALIZER};
  if (p->process != getpid()) { /* its threads are not here, and give nothing back */
    heddle_py_fail_words(HEDDLE_EFORK,
                         "the process was forked while all executors of the model were in use; load models "
                         "in the child, or start it with the method 'spawn'");
    return -1;
  }
  enqueue(p, &w);
  for (bool is_served = false; !is_served;) {
    Py_BEGIN_ALLOW_THREADS;
    is_served = doze(p, &w);
    Py_END_ALLOW_THREADS;
    if (is_served || PyErr_CheckSignals() == 0) continue;
    if (!w.is_served) dequeue(p, &w); /* the server holds the GIL, as this does */
    pthread_cond_destroy(&w.woken);
    *out = w.given;
    return w.is_served ? 1 : -1;
  }
  pthread_cond_destroy(&w.woken);
  *out = w.given;
  return 0;
}

/* ---- taking and giving */

PyObject *heddle_py_say_closed(const heddle_py_model *model) {
  const char *file = model->file != NULL ? model->file : "the model";
  return heddle_py_fail_words(HEDDLE_EINVAL, "%s: the model is closed; load it again", file);
}

void heddle_py_pool_drop_model(heddle_py_model *model) {
  heddle_model *m = model->m;
  if (m == NULL || !model->is_closed || model->pool.out > 0) return;
  model->m = NULL;
  Py_BEGIN_ALLOW_THREADS;
  heddle_model_release(m);
  Py_END_ALLOW_THREADS;
}

/* The right to make one ends: for good, or for the next waiter. */
static void leave(heddle_py_model *model) {
  if (!serve(&model->pool, NULL)) model->pool.out--;
  heddle_py_pool_drop_model(model);
}

slot *heddle_py_pool_take(heddle_py_model *model) {
  pool *p = &model->pool;
  if (model->m == NULL || model->is_closed) return (slot *)heddle_py_say_closed(model);
  slot *s = p->idle;
  if (s != NULL) {
    p->idle = s->next;
    p->out++;
    return s;
  }
  if (p->made == 0 && p->out == 0) p->process = getpid();
  if (p->out < p->limit) {
    p->out++;
  } else {
    int failed = wait_for(p, &s);
    if (failed > 0 && s != NULL) heddle_py_pool_give(model, s, true);
    else if (failed > 0) leave(model);
    if (failed != 0) return NULL;
  }
  if (s != NULL && !model->is_closed) return s;
  if (model->is_closed) {
    if (s != NULL) heddle_py_pool_give(model, s, false);
    else leave(model);
    return (slot *)heddle_py_say_closed(model);
  }
  s = slot_make(model);
  if (s == NULL) leave(model);
  else p->made++;
  return s;
}

void heddle_py_pool_give(heddle_py_model *model, slot *s, bool is_sound) {
  pool *p = &model->pool;
  if (is_sound && !model->is_closed) {
    if (!serve(p, s)) put_back(p, s);
    return;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  p->made--;
  slot_free(model, s);
  leave(model);
  PyErr_Restore(type, value, trace);
}

uint32_t heddle_py_pool_trim(heddle_py_model *model) {
  pool *p = &model->pool;
  slot *s = p->idle;
  uint32_t n = 0;
  p->idle = NULL;
  for (; s != NULL; n++) {
    slot *next = s->next;
    p->made--;
    slot_free(model, s);
    s = next;
  }
  return n;
}

void heddle_py_pool_free(pool *p) {
  if (p->limit > 0) pthread_mutex_destroy(&p->lock);
  p->limit = 0;
}
