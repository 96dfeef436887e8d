/* Captures: between begin and end the work of a stream is recorded into a command buffer of the capture's own, and a
 * replay puts that into the stream's next submission. It is recorded for simultaneous use, because a run may be handed
 * over while the one before is under way. */
#include "stream.h"

void vlk_capture_end_drop(const heddle_pdevice *dev, vlk_capture_end *end) {
  if (end != NULL && atomic_fetch_sub(&end->holders, 1) == 1) dev->host->free(dev->host->ctx, end);
}

heddle_status vlk_capture_end_of(heddle_pstream *stream, vlk_capture_end **out, heddle_error *err) {
  heddle_pgraph *graph = stream->capture;
  void *memory = NULL;
  if (graph->end == NULL) {
    heddle_status s = vlk_new(stream->dev->host, sizeof **out, "a capture", &memory, err);
    if (s != HEDDLE_OK) return s;
    graph->end = memory;
    atomic_store(&graph->end->holders, 1); /* the capture */
  }
  *out = graph->end;
  atomic_fetch_add(&graph->end->holders, 1);
  return HEDDLE_OK;
}

static void destroy(heddle_pgraph *graph) {
  heddle_pdevice *dev = graph->dev;
  if (graph->end != NULL) atomic_store(&graph->end->came, true);
  vlk_capture_end_drop(dev, graph->end);
  if (graph->pool != VK_NULL_HANDLE) dev->vk.DestroyCommandPool(dev->device, graph->pool, NULL);
  dev->host->free(dev->host->ctx, graph);
}

/* Those that stand in no batch are taken out before the streams are asked: what was handed over until then is seen. */
void vlk_graphs_sweep(heddle_pdevice *dev) {
  heddle_pgraph *freed = NULL, **last = &freed;
  pthread_mutex_lock(&dev->lock);
  for (heddle_pgraph **link = &dev->retired; *link != NULL;) {
    heddle_pgraph *graph = *link;
    if (atomic_load_explicit(&graph->batches, memory_order_acquire) > 0) {
      link = &graph->next;
      continue;
    }
    *link = graph->next;
    graph->next = NULL;
    *last = graph;
    last = &graph->next;
  }
  pthread_mutex_unlock(&dev->lock);
  if (freed != NULL && !vlk_quiet(dev)) {
    pthread_mutex_lock(&dev->lock);
    *last = dev->retired;
    dev->retired = freed;
    pthread_mutex_unlock(&dev->lock);
    return;
  }
  while (freed != NULL) {
    heddle_pgraph *next = freed->next;
    destroy(freed);
    freed = next;
  }
}

void vlk_graph_free(heddle_pgraph *graph) {
  if (graph == NULL) return;
  heddle_pdevice *dev = graph->dev;
  vlk_count(&dev->live_objects, -1);
  pthread_mutex_lock(&dev->lock);
  graph->next = dev->retired;
  dev->retired = graph;
  pthread_mutex_unlock(&dev->lock);
  vlk_graphs_sweep(dev); /* what is in a stream, or under way, stays until the device is quiet */
}

static heddle_status make(heddle_pstream *stream, heddle_pgraph *graph, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = stream->queue->family};
  VkCommandBufferAllocateInfo how = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                     .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                     .commandBufferCount = 1};
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                          .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
  VkResult code = dev->vk.CreateCommandPool(dev->device, &pool, NULL, &graph->pool);
  if (code != VK_SUCCESS) graph->pool = VK_NULL_HANDLE;
  how.commandPool = graph->pool;
  if (code == VK_SUCCESS) code = dev->vk.AllocateCommandBuffers(dev->device, &how, &graph->commands);
  if (code == VK_SUCCESS) code = dev->vk.BeginCommandBuffer(graph->commands, &begin);
  if (code == VK_SUCCESS) vlk_stream_barrier(stream, graph->commands);
  return vlk_check(dev, code, "begin a capture", err);
}

static heddle_status capture_begin(heddle_pstream *stream, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  void *memory = NULL;
  heddle_status s = vlk_stream_enter(stream, "begin of a capture", err);
  if (s != HEDDLE_OK) return s;
  if (!stream->queue->computes)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "vulkan:%u: a queue that only copies is not recorded", dev->index);
  s = vlk_new(dev->host, sizeof *stream->capture, "a capture", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pgraph *graph = memory;
  graph->dev = dev;
  s = make(stream, graph, err);
  if (s != HEDDLE_OK) {
    destroy(graph);
    return s;
  }
  vlk_count(&dev->live_objects, 1);
  stream->capture = graph;
  return HEDDLE_OK;
}

static heddle_status capture_end(heddle_pstream *stream, heddle_pgraph **out, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  heddle_pgraph *graph = stream->capture;
  stream->capture = NULL; /* whatever comes */
  if (graph == NULL)
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: end of a capture on a stream where none was begun", dev->index);
  vlk_host_barrier(stream, graph->commands);
  heddle_status s = vlk_check(dev, dev->vk.EndCommandBuffer(graph->commands), "record a capture", err);
  if (s == HEDDLE_OK) s = vlk_health(dev, err);
  if (s != HEDDLE_OK) vlk_graph_free(graph);
  else *out = graph;
  return s;
}

static heddle_status capture_replay(heddle_pgraph *graph, heddle_pstream *stream, heddle_error *err) {
  heddle_status s = vlk_stream_enter(stream, "replay", err);
  if (s != HEDDLE_OK) return s;
  if (graph->dev != stream->dev || !stream->queue->computes)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "vulkan:%u: replay: the handle is no capture of this device, or the stream only copies",
                  stream->dev->index);
  return graph->pieces > 0 ? vlk_submit_later(stream, graph, err) : HEDDLE_OK;
}

const heddle_capture_table vlk_capture_table = {
    .struct_size = sizeof vlk_capture_table,
    .free = vlk_graph_free,
    .begin = capture_begin,
    .end = capture_end,
    .replay = capture_replay,
};
