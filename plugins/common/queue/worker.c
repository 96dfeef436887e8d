/* A thread of the device: it takes the commands of its streams in turn, each stream's in order, and executes them without
 * the lock. After a failure it passes over the work of the stream until a sync has returned the failure. */
#include "plugins/common/queue/inside.h"

#include <time.h>

#define POLL_NS UINT64_C(500000) /* how often a fence is asked for that a stream waits for */

/* ---------------------------------------------------------------- signals of a lost device */

/* Takes the first signal that is pending; it is nobody else's then. With the lock. */
static bool take_signal(heddle_pdevice *dev, heddle_pfence *fence) {
  for (heddle_pstream *s = dev->streams; s != NULL; s = s->next) {
    for (uint64_t i = s->tail; i != s->submitted; i++) {
      queue_cmd *cmd = &s->ring[i % s->room];
      if (cmd->kind != CMD_SIGNAL) continue;
      *fence = cmd->u.fence.fence;
      cmd->kind = CMD_NOTHING;
      return true;
    }
  }
  return false;
}

void queue_fail_signals(heddle_pdevice *dev) {
  const heddle_host *host = dev->host;
  heddle_pfence fence;
  pthread_mutex_lock(&dev->lock);
  while (take_signal(dev, &fence)) {
    pthread_mutex_unlock(&dev->lock);
    host->fence_fail(host->ctx, fence, HEDDLE_EDEVICE, dev->fault.text);
    pthread_mutex_lock(&dev->lock);
  }
  pthread_mutex_unlock(&dev->lock);
}

/* ---------------------------------------------------------------- what may start */

/* Whether nothing waits for anything any more. With the lock. */
static bool gives_up(const heddle_pdevice *dev, const heddle_pstream *s) {
  return dev->stop || atomic_load(&dev->lost) || s->failure.status != HEDDLE_OK;
}

/* The thread's next stream whose first command may start; *polls: one waits for a fence. With the lock. */
static heddle_pstream *pick(const queue_thread *t, bool *polls) {
  const heddle_host *host = t->dev->host;
  for (heddle_pstream *s = t->dev->streams; s != NULL; s = s->next) {
    if (s->thread != t->number || s->tail == s->submitted) continue;
    const queue_cmd *cmd = &s->ring[s->tail % s->room];
    if (gives_up(t->dev, s)) return s;
    if (cmd->kind == CMD_WAIT && !cmd->u.point->reached) continue;
    if (cmd->kind != CMD_FENCE_WAIT ||
        host->fence_query(host->ctx, cmd->u.fence.fence, cmd->u.fence.value) != HEDDLE_EBUSY)
      return s;
    *polls = true;
  }
  return NULL;
}

/* ---------------------------------------------------------------- executing, without the lock */

static heddle_status copy(heddle_pdevice *dev, const queue_copy *c, heddle_error *err) {
  if (c->kind == QUEUE_FILL && c->pattern == dev->lose_at)
    return p_fail(err, HEDDLE_EDEVICE, 0, "%s:%u: device lost: a fill with the word of the setting lose_on_fill",
                  dev->driver->name, dev->index);
  return dev->driver->copy(dev->device, c, err);
}

static heddle_status work(heddle_pdevice *dev, const queue_cmd *cmd, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  switch (cmd->kind) {
  case CMD_COPY: return copy(dev, &cmd->u.copy, err);
  case CMD_RUN: return dev->driver->execute(dev->device, &cmd->u.launch->work, err);
  case CMD_REPLAY:
    for (uint64_t i = 0; i < cmd->u.graph->count && s == HEDDLE_OK; i++) s = work(dev, &cmd->u.graph->row[i], err);
    return s;
  default: return HEDDLE_OK;
  }
}

static heddle_status wait_for_fence(heddle_pdevice *dev, const queue_cmd *cmd, heddle_error *err) {
  const heddle_status s = dev->host->fence_query(dev->host->ctx, cmd->u.fence.fence, cmd->u.fence.value);
  if (s == HEDDLE_OK) return HEDDLE_OK;
  if (s == HEDDLE_EBUSY)
    return p_fail(err, HEDDLE_ECANCELED, 0, "%s:%u: closed before its work was done", dev->driver->name, dev->index);
  return p_fail(err, HEDDLE_EFAILED, 0, "%s:%u: waited for a fence that failed (%s)", dev->driver->name, dev->index,
                s == HEDDLE_EDEVICE ? "its device is lost" : "its work failed");
}

static void signal_fence(heddle_pdevice *dev, const queue_cmd *cmd, const heddle_error *failure) {
  const heddle_host *host = dev->host;
  if (failure->status == HEDDLE_OK) host->fence_signal(host->ctx, cmd->u.fence.fence, cmd->u.fence.value);
  else host->fence_fail(host->ctx, cmd->u.fence.fence, failure->status, failure->text);
}

/* A command of a stream with a failure, or without one. err: what becomes the failure of the stream. */
static heddle_status execute(heddle_pdevice *dev, const queue_cmd *cmd, const heddle_error *failure,
                             heddle_error *err) {
  err->text[0] = '\0';
  err->api_code = 0;
  if (cmd->kind == CMD_SIGNAL) signal_fence(dev, cmd, failure);
  if (failure->status != HEDDLE_OK || cmd->kind == CMD_SIGNAL) return HEDDLE_OK;
  heddle_status s = cmd->kind == CMD_FENCE_WAIT ? wait_for_fence(dev, cmd, err) : work(dev, cmd, err);
  if (s != HEDDLE_OK && err->text[0] == '\0')
    p_fail(err, s, 0, "%s:%u: a call of its driver failed", dev->driver->name, dev->index);
  err->status = s;
  if (s == HEDDLE_EDEVICE) queue_lose(dev, err->api_code, err->text);
  return s;
}

/* ---------------------------------------------------------------- the row of commands, with the lock */

static void end_wait(heddle_pstream *s, const queue_point *point) {
  const heddle_pdevice *dev = s->dev;
  if (s->failure.status != HEDDLE_OK) return;
  if (!point->reached)
    p_fail(&s->failure, HEDDLE_ECANCELED, 0, "%s:%u: closed before its work was done", dev->driver->name, dev->index);
  else if (point->failure.status != HEDDLE_OK)
    p_fail(&s->failure, HEDDLE_EFAILED, 0, "%s:%u: waited for an event whose work failed: %.400s", dev->driver->name,
           dev->index, point->failure.text);
}

static void end_command(heddle_pstream *s, const queue_cmd *cmd, heddle_status status, const heddle_error *err) {
  heddle_pdevice *dev = s->dev;
  if (status != HEDDLE_OK && s->failure.status == HEDDLE_OK) s->failure = *err;
  if (cmd->kind == CMD_RECORD) {
    cmd->u.point->reached = true;
    cmd->u.point->failure = atomic_load(&dev->lost) ? dev->fault : s->failure;
  }
  if (cmd->kind == CMD_WAIT) end_wait(s, cmd->u.point);
  if (cmd->kind == CMD_RECORD || cmd->kind == CMD_WAIT) queue_point_drop(dev->host, cmd->u.point);
  s->tail++;
  if (dev->streams == s && s->next != NULL) { /* the next stream's turn */
    heddle_pstream **end = &dev->streams;
    dev->streams = s->next;
    s->next = NULL;
    while (*end != NULL) end = &(*end)->next;
    *end = s;
  }
  pthread_cond_broadcast(&dev->done);
  pthread_cond_broadcast(&dev->work);
}

/* Frees what was kept for work that has ended. The lock is released meanwhile. */
static bool free_kept(heddle_pdevice *dev) {
  queue_kept *item = queue_busy(dev) ? NULL : dev->kept;
  if (item == NULL) return false;
  dev->kept = NULL;
  pthread_mutex_unlock(&dev->lock);
  while (item != NULL) {
    queue_kept *next = item->next;
    item->destroy(dev, item);
    item = next;
  }
  pthread_mutex_lock(&dev->lock);
  return true;
}

static void sleep_until_work(heddle_pdevice *dev, bool polls) {
  const struct timespec until = queue_deadline(POLL_NS);
  if (polls) pthread_cond_timedwait(&dev->work, &dev->lock, &until);
  else pthread_cond_wait(&dev->work, &dev->lock);
}

void *queue_work_off(void *thread) {
  queue_thread *t = thread;
  heddle_pdevice *dev = t->dev;
  heddle_error failure, err;
  pthread_mutex_lock(&dev->lock);
  for (;;) {
    bool polls = false;
    queue_drop_closed(dev);
    heddle_pstream *s = pick(t, &polls);
    if (s == NULL) {
      if (dev->stop) break;
      if (!free_kept(dev)) sleep_until_work(dev, polls);
      continue;
    }
    const queue_cmd cmd = s->ring[s->tail % s->room];
    s->ring[s->tail % s->room].kind = CMD_NOTHING; /* it is this thread's now */
    failure.status = HEDDLE_OK;
    if (atomic_load(&dev->lost)) failure = dev->fault;
    else if (s->failure.status != HEDDLE_OK) failure = s->failure;
    t->running = true;
    pthread_mutex_unlock(&dev->lock);
    const heddle_status status = execute(dev, &cmd, &failure, &err);
    pthread_mutex_lock(&dev->lock);
    t->running = false;
    if (atomic_load(&dev->abandoned)) break; /* the host may be gone */
    end_command(s, &cmd, status, &err);
  }
  t->ended = true;
  pthread_cond_broadcast(&dev->done);
  pthread_mutex_unlock(&dev->lock);
  return NULL;
}
