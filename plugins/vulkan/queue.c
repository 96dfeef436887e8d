/* A VkQueue and its thread. Streams share the queue, so submissions take its lock. The thread tells the host of fences:
 * what a queue signals, it signals in the order of submission, so the thread waits for the first completion in its row
 * only, and sleeps while the row is empty; it never polls. Without timeline semaphores every submission stands in the
 * row, and waits for a stream are waits for the thread. */
#include "stream.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

enum { FIRST_ROOM = 64 };

#define SLICE_NS UINT64_C(100000000)
#define MOST_NS (UINT64_C(1000000000) * 1000000)

/* ---------------------------------------------------------------- the thread */

/* Waits until a completion is there: HEDDLE_OK, HEDDLE_ETIMEOUT after a slice, or the device's fault. One that only tells
 * stands behind the submission that it tells of: without timeline semaphores that was waited for already. */
static heddle_status await(heddle_pdevice *dev, const vlk_completion *c, heddle_error *err) {
  VkResult code = VK_SUCCESS;
  if (c->done != VK_NULL_HANDLE) {
    code = dev->vk.WaitForFences(dev->device, 1, &c->done, VK_TRUE, SLICE_NS);
  } else if (dev->timeline) {
    const VkSemaphoreWaitInfo how = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                     .semaphoreCount = 1,
                                     .pSemaphores = &c->stream->timeline,
                                     .pValues = &c->value};
    code = dev->vk.WaitSemaphores(dev->device, &how, SLICE_NS);
  }
  if (code == VK_SUCCESS) return HEDDLE_OK;
  const struct timespec nap = {0, 1000000};
  if (code != VK_TIMEOUT && vlk_check(dev, code, "wait for work", err) == HEDDLE_EDEVICE) return HEDDLE_EDEVICE;
  if (code != VK_TIMEOUT) nanosleep(&nap, NULL); /* the driver had no memory to wait with; the work is not over */
  return HEDDLE_ETIMEOUT;
}

/* A fence of the row that a poll has signalled is 0 there. */
static void tell(heddle_pdevice *dev, const vlk_completion *c, heddle_status s, const heddle_error *failed) {
  const heddle_host *host = dev->host;
  if (c->fence == 0) return;
  if (s == HEDDLE_OK) host->fence_signal(host->ctx, c->fence, c->fence_value);
  else host->fence_fail(host->ctx, c->fence, s, failed->text);
}

void vlk_queue_poll(heddle_pstream *stream, uint64_t reached) {
  enum { AT_ONCE = 8 };
  vlk_queue *q = stream->queue;
  const heddle_host *host = q->dev->host;
  vlk_completion found[AT_ONCE];
  uint32_t n = 0;
  pthread_mutex_lock(&q->done_lock);
  for (uint32_t i = 0; i < q->count && n < AT_ONCE; i++) {
    vlk_completion *c = &q->row[(q->first + i) % q->room];
    if (c->stream != stream || c->fence == 0 || c->value > reached) continue;
    found[n++] = *c;
    c->fence = 0;
  }
  pthread_mutex_unlock(&q->done_lock);
  for (uint32_t i = 0; i < n; i++) host->fence_signal(host->ctx, found[i].fence, found[i].fence_value);
}

/* Takes the first completion out of the row, and gives its fence back. */
static void take_out(vlk_queue *q, vlk_completion *c, heddle_status s) {
  if (c->done != VK_NULL_HANDLE && s == HEDDLE_OK) q->dev->vk.ResetFences(q->dev->device, 1, &c->done);
  pthread_mutex_lock(&q->done_lock);
  c->fence = q->row[q->first].fence;
  q->first = (q->first + 1) % q->room;
  q->count--;
  if (c->done != VK_NULL_HANDLE) q->idle_fences[q->n_idle_fences++] = c->done;
  if (s == HEDDLE_OK && atomic_load_explicit(&c->stream->reached, memory_order_relaxed) < c->value)
    atomic_store_explicit(&c->stream->reached, c->value, memory_order_release);
  pthread_cond_broadcast(&q->reached);
  pthread_mutex_unlock(&q->done_lock);
}

static void *run_queue(void *arg) {
  vlk_queue *q = arg;
  heddle_pdevice *dev = q->dev;
  for (;;) {
    heddle_error failed = {0};
    pthread_mutex_lock(&q->done_lock);
    while (q->count == 0 && !q->stop) pthread_cond_wait(&q->more, &q->done_lock);
    const bool none = q->count == 0, stop = q->stop;
    vlk_completion c = none ? (vlk_completion){0} : q->row[q->first];
    pthread_mutex_unlock(&q->done_lock);
    if (none) return NULL;
    heddle_status s = vlk_health(dev, &failed);
    if (s == HEDDLE_OK) s = await(dev, &c, &failed);
    if (s == HEDDLE_ETIMEOUT) {
      if (!stop) continue;
      s = p_fail(&failed, HEDDLE_ECANCELED, 0, "vulkan:%u was closed before its work was done", dev->index);
    }
    take_out(q, &c, s);
    tell(dev, &c, s, &failed);
  }
}

/* With done_lock held. Signals are for the host's own threads. */
static int start(vlk_queue *q) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&q->thread, NULL, run_queue, q);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  q->runs = failed == 0;
  return failed;
}

/* ---------------------------------------------------------------- the row */

/* Room for one more, and a fence for it where the device needs one; only the holder of lock adds to the row. */
static heddle_status reserve(vlk_queue *q, VkFence *fence, heddle_error *err) {
  heddle_pdevice *dev = q->dev;
  const heddle_host *host = dev->host;
  const bool fenced = fence != NULL;
  int failed = 0;
  pthread_mutex_lock(&q->done_lock);
  if (q->count == q->room) {
    const uint32_t room = q->room == 0 ? FIRST_ROOM : 2 * q->room;
    vlk_completion *row = host->alloc(host->ctx, room * (uint64_t)sizeof *row, _Alignof(vlk_completion));
    VkFence *idle = host->alloc(host->ctx, room * (uint64_t)sizeof *idle, _Alignof(VkFence));
    if (row != NULL && idle != NULL) {
      for (uint32_t i = 0; i < q->count; i++) row[i] = q->row[(q->first + i) % q->room];
      if (q->n_idle_fences > 0) memcpy(idle, q->idle_fences, q->n_idle_fences * sizeof *idle);
      host->free(host->ctx, q->row);
      host->free(host->ctx, q->idle_fences);
      q->row = row;
      q->idle_fences = idle;
      q->first = 0;
      q->room = room;
    } else {
      host->free(host->ctx, row);
      host->free(host->ctx, idle);
      failed = ENOMEM;
    }
  }
  if (failed == 0 && !q->runs) failed = start(q);
  if (failed == 0 && fenced && q->n_idle_fences > 0) *fence = q->idle_fences[--q->n_idle_fences];
  pthread_mutex_unlock(&q->done_lock);
  if (failed != 0)
    return p_fail(err, HEDDLE_ENOMEM, 0, "vulkan:%u: no memory or no thread to wait for work", dev->index);
  if (!fenced || *fence != VK_NULL_HANDLE) return HEDDLE_OK;
  const VkFenceCreateInfo how = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  const VkResult code = dev->vk.CreateFence(dev->device, &how, NULL, fence);
  if (code != VK_SUCCESS) *fence = VK_NULL_HANDLE;
  return vlk_check(dev, code, "make a fence", err);
}

static void add(vlk_queue *q, const vlk_completion *c) {
  pthread_mutex_lock(&q->done_lock);
  q->row[(q->first + q->count++) % q->room] = *c;
  pthread_cond_signal(&q->more);
  pthread_mutex_unlock(&q->done_lock);
}

heddle_status vlk_queue_submit(vlk_queue *q, const VkSubmitInfo *commands, const vlk_completion *completion,
                               heddle_error *err) {
  heddle_pdevice *dev = q->dev;
  vlk_completion c = completion != NULL ? *completion : (vlk_completion){0};
  const bool fenced = !dev->timeline && commands != NULL;
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&q->lock);
  if (completion != NULL) s = reserve(q, fenced ? &c.done : NULL, err);
  if (s == HEDDLE_OK && commands != NULL)
    s = vlk_check(dev, dev->vk.QueueSubmit(q->queue, 1, commands, c.done), "submit", err);
  if (s == HEDDLE_OK && completion != NULL) {
    add(q, &c);
  } else if (c.done != VK_NULL_HANDLE) {
    pthread_mutex_lock(&q->done_lock);
    q->idle_fences[q->n_idle_fences++] = c.done;
    pthread_mutex_unlock(&q->done_lock);
  }
  pthread_mutex_unlock(&q->lock);
  return s;
}

heddle_status vlk_queue_wait(vlk_queue *q, heddle_pstream *stream, uint64_t value, uint64_t timeout_ns,
                             heddle_error *err) {
  struct timespec until;
  heddle_status s = HEDDLE_OK;
  int late = 0;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const uint64_t ns = (uint64_t)until.tv_nsec + (timeout_ns < MOST_NS ? timeout_ns : MOST_NS);
  until.tv_sec += (time_t)(ns / 1000000000u);
  until.tv_nsec = (long)(ns % 1000000000u);
  pthread_mutex_lock(&q->done_lock);
  while (late == 0 && s == HEDDLE_OK && atomic_load_explicit(&stream->reached, memory_order_acquire) < value) {
    s = vlk_health(q->dev, err);
    if (s == HEDDLE_OK) late = pthread_cond_timedwait(&q->reached, &q->done_lock, &until);
  }
  pthread_mutex_unlock(&q->done_lock);
  if (s != HEDDLE_OK || late == 0) return s;
  return p_fail(err, HEDDLE_ETIMEOUT, 0, "vulkan:%u: work did not finish within %llu ns", q->dev->index,
                (unsigned long long)timeout_ns);
}

/* ---------------------------------------------------------------- making */

VkResult vlk_queue_init(vlk_queue *q, heddle_pdevice *dev, uint32_t family, uint32_t index, bool computes) {
  pthread_condattr_t monotonic;
  memset(q, 0, sizeof *q);
  if (pthread_mutex_init(&q->lock, NULL) != 0) return VK_ERROR_OUT_OF_HOST_MEMORY;
  if (pthread_mutex_init(&q->done_lock, NULL) != 0) goto no_done_lock;
  if (pthread_condattr_init(&monotonic) != 0) goto no_attributes;
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  if (pthread_cond_init(&q->more, &monotonic) != 0) goto no_more;
  if (pthread_cond_init(&q->reached, &monotonic) != 0) goto no_reached;
  pthread_condattr_destroy(&monotonic);
  q->dev = dev;
  q->family = family;
  q->computes = computes;
  dev->vk.GetDeviceQueue(dev->device, family, index, &q->queue);
  return VK_SUCCESS;

no_reached:
  pthread_cond_destroy(&q->more);
no_more:
  pthread_condattr_destroy(&monotonic);
no_attributes:
  pthread_mutex_destroy(&q->done_lock);
no_done_lock:
  pthread_mutex_destroy(&q->lock);
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}

void vlk_queue_destroy(vlk_queue *q) {
  heddle_pdevice *dev = q->dev;
  const heddle_host *host = dev->host;
  pthread_mutex_lock(&q->done_lock);
  q->stop = true;
  pthread_cond_signal(&q->more);
  pthread_mutex_unlock(&q->done_lock);
  if (q->runs) pthread_join(q->thread, NULL);
  for (uint32_t i = 0; i < q->n_idle_fences; i++) dev->vk.DestroyFence(dev->device, q->idle_fences[i], NULL);
  host->free(host->ctx, q->row);
  host->free(host->ctx, q->idle_fences);
  pthread_cond_destroy(&q->reached);
  pthread_cond_destroy(&q->more);
  pthread_mutex_destroy(&q->done_lock);
  pthread_mutex_destroy(&q->lock);
}
