/* Streams: making, closing, waiting. A stream that is closed stays with its device and is used again, so that events may
 * name it as long as they like, and work that it left behind keeps what it needs. */
#include "stream.h"

/* ---------------------------------------------------------------- making and closing */

static void destroy(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  const heddle_host *host = dev->host;
  vlk_slot *const lists[] = {stream->spare, stream->flight, stream->batched, stream->open};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    for (vlk_slot *slot = lists[i]; slot != NULL;) {
      vlk_slot *next = slot->next;
      host->free(host->ctx, slot);
      slot = next;
    }
  }
  vlk_buffer_free(stream->stage);
  if (stream->pool != VK_NULL_HANDLE) dev->vk.DestroyCommandPool(dev->device, stream->pool, NULL);
  if (stream->timeline != VK_NULL_HANDLE) dev->vk.DestroySemaphore(dev->device, stream->timeline, NULL);
  host->free(host->ctx, stream);
}

void vlk_streams_destroy(heddle_pdevice *dev) {
  while (dev->streams != NULL) {
    heddle_pstream *stream = dev->streams;
    dev->streams = stream->next;
    destroy(stream);
  }
}

/* Compute streams go round the queues that compute; a stream that copies has the queue for that, where there is one. */
static vlk_queue *queue_for(heddle_pdevice *dev, uint32_t kind) {
  if (kind == HEDDLE_STREAM_COPY && dev->n_all_queues > dev->n_queues) return &dev->queues[dev->n_queues];
  const uint32_t turn = atomic_fetch_add_explicit(&dev->next_queue, 1, memory_order_relaxed);
  return &dev->queues[turn % dev->n_queues];
}

/* A closed stream of the queue, whose work is done; NULL: none. */
static heddle_pstream *take_closed(heddle_pdevice *dev, const vlk_queue *queue) {
  pthread_mutex_lock(&dev->lock);
  heddle_pstream *x = dev->streams;
  for (; x != NULL; x = x->next) {
    if (!x->closed || x->queue != queue) continue;
    x->closed = false;
    break;
  }
  pthread_mutex_unlock(&dev->lock);
  if (x == NULL || vlk_reached(x, atomic_load(&x->submitted), NULL) == HEDDLE_OK) return x;
  pthread_mutex_lock(&dev->lock);
  x->closed = true;
  pthread_mutex_unlock(&dev->lock);
  return NULL;
}

static heddle_status make_new(heddle_pdevice *dev, vlk_queue *queue, heddle_pstream **out, heddle_error *err) {
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = queue->family};
  void *memory = NULL;
  heddle_status s = vlk_new(dev->host, sizeof **out, "a stream", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pstream *stream = memory;
  stream->dev = dev;
  stream->queue = queue;
  s = vlk_check(dev, dev->vk.CreateCommandPool(dev->device, &pool, NULL, &stream->pool), "make a command pool", err);
  if (s != HEDDLE_OK) stream->pool = VK_NULL_HANDLE;
  if (s == HEDDLE_OK && dev->timeline) {
    s = vlk_check(dev, dev->vk.CreateSemaphore(dev->device, &semaphore, NULL, &stream->timeline), "make a semaphore",
                  err);
    if (s != HEDDLE_OK) stream->timeline = VK_NULL_HANDLE;
  }
  if (s != HEDDLE_OK) {
    destroy(stream);
    return s;
  }
  pthread_mutex_lock(&dev->lock);
  stream->next = dev->streams;
  dev->streams = stream;
  pthread_mutex_unlock(&dev->lock);
  *out = stream;
  return HEDDLE_OK;
}

heddle_status vlk_stream_make(heddle_pdevice *dev, uint32_t kind, heddle_pstream **out, heddle_error *err) {
  vlk_queue *queue = queue_for(dev, kind);
  heddle_status s = vlk_health(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pstream *stream = take_closed(dev, queue);
  if (stream == NULL) return make_new(dev, queue, out, err);
  *out = stream;
  return HEDDLE_OK;
}

void vlk_stream_close(heddle_pstream *stream) {
  heddle_pdevice *dev = stream->dev;
  vlk_graph_free(stream->capture);
  stream->capture = NULL;
  vlk_stream_drop_work(stream);
  pthread_mutex_lock(&dev->lock);
  stream->closed = true;
  pthread_mutex_unlock(&dev->lock);
}

heddle_pdevice *vlk_stream_device(const heddle_pstream *stream) {
  return stream->dev;
}

bool vlk_quiet(heddle_pdevice *dev) {
  pthread_mutex_lock(&dev->lock);
  heddle_pstream *x = dev->streams; /* what comes before it is newer */
  pthread_mutex_unlock(&dev->lock);
  for (; x != NULL; x = x->next) {
    if (vlk_reached(x, atomic_load(&x->submitted), NULL) != HEDDLE_OK) return false;
  }
  return true;
}

/* ---------------------------------------------------------------- the table */

heddle_status vlk_stream_enter(heddle_pstream *stream, const char *what, heddle_error *err) {
  if (stream->capture != NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: %s inside a capture", stream->dev->index, what);
  return vlk_health(stream->dev, err);
}

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  (void)priority; /* queues have theirs from the making of the device on */
  heddle_status s = vlk_stream_make(dev, kind, out, err);
  if (s == HEDDLE_OK) vlk_count(&dev->live_objects, 1);
  return s;
}

static void stream_close(heddle_pstream *stream) {
  if (stream == NULL) return;
  vlk_count(&stream->dev->live_objects, -1);
  vlk_stream_close(stream);
}

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  heddle_status s = vlk_stream_enter(stream, "submit", err);
  return s == HEDDLE_OK ? vlk_submit(stream, 0, 0, err) : s;
}

static heddle_status stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  heddle_status s = vlk_stream_enter(stream, "sync", err);
  if (s == HEDDLE_OK) s = vlk_submit(stream, 0, 0, err);
  if (s != HEDDLE_OK) return s;
  return vlk_wait(stream, atomic_load_explicit(&stream->submitted, memory_order_relaxed), timeout_ns, err);
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  uint64_t reached = 0;
  if (dev->timeline && vlk_health(dev, NULL) == HEDDLE_OK &&
      dev->vk.GetSemaphoreCounterValue(dev->device, stream->timeline, &reached) == VK_SUCCESS)
    vlk_queue_poll(stream, reached);
  return vlk_reached(stream, atomic_load_explicit(&stream->submitted, memory_order_acquire), err);
}

const heddle_stream_table vlk_stream_table = {
    .struct_size = sizeof vlk_stream_table,
    .close = stream_close,
    .create = stream_create,
    .submit = stream_submit,
    .sync = stream_sync,
    .query = stream_query,
};
