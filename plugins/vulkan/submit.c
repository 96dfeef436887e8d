/* How work gets from a stream to its queue. Pieces of work are recorded into the stream's open command buffer, one of a
 * ring that is used again when its submission is reached; a submission is a batch of command buffers, captures among
 * them. Barriers order a stream's work, within a command buffer and, by one in front, behind all that the queue was given
 * before; semaphores order what other streams did. */
#include "stream.h"

/* ---------------------------------------------------------------- barriers */

static void barrier(const heddle_pdevice *dev, VkCommandBuffer commands, VkPipelineStageFlags from,
                    VkPipelineStageFlags to, VkAccessFlags writes, VkAccessFlags uses) {
  const VkMemoryBarrier what = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = writes, .dstAccessMask = uses};
  dev->vk.CmdPipelineBarrier(commands, from, to, 0, 1, &what, 0, NULL, 0, NULL);
}

static const VkPipelineStageFlags computes = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
static const VkAccessFlags computes_write = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
static const VkAccessFlags computes_use = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                          VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                                          VK_ACCESS_TRANSFER_WRITE_BIT;
static const VkAccessFlags copies_use = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

void vlk_barrier(const heddle_pdevice *dev, VkCommandBuffer commands) {
  barrier(dev, commands, computes, computes, computes_write, computes_use);
}

void vlk_stream_barrier(const heddle_pstream *stream, VkCommandBuffer commands) {
  if (stream->queue->computes) vlk_barrier(stream->dev, commands);
  else
    barrier(stream->dev, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_WRITE_BIT, copies_use);
}

void vlk_host_barrier(const heddle_pstream *stream, VkCommandBuffer commands) {
  const bool all = stream->queue->computes;
  barrier(stream->dev, commands, all ? computes : VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
          all ? computes_write : VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
}

/* ---------------------------------------------------------------- the ring */

static heddle_status new_slot(heddle_pstream *stream, vlk_slot **out, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  void *memory = NULL;
  heddle_status s = vlk_new(dev->host, sizeof **out, "a command buffer", &memory, err);
  if (s != HEDDLE_OK) return s;
  vlk_slot *slot = memory;
  const VkCommandBufferAllocateInfo how = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .commandPool = stream->pool,
                                           .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           .commandBufferCount = 1};
  s = vlk_check(dev, dev->vk.AllocateCommandBuffers(dev->device, &how, &slot->commands), "make a command buffer", err);
  if (s == HEDDLE_OK) *out = slot;
  else dev->host->free(dev->host->ctx, slot);
  return s;
}

/* A command buffer that is not under way: a spare one, the oldest where it is done, else a new one. */
static heddle_status take_slot(heddle_pstream *stream, vlk_slot **out, heddle_error *err) {
  vlk_slot *slot = stream->spare;
  if (slot != NULL) {
    stream->spare = slot->next;
  } else if (stream->flight != NULL && vlk_reached(stream, stream->flight->value, NULL) == HEDDLE_OK) {
    slot = stream->flight;
    stream->flight = slot->next;
    if (stream->flight == NULL) stream->landed = NULL;
  } else {
    heddle_status s = new_slot(stream, &slot, err);
    if (s != HEDDLE_OK) return s;
  }
  slot->next = NULL;
  *out = slot;
  return HEDDLE_OK;
}

static void give_slot(heddle_pstream *stream, vlk_slot *slot) {
  slot->next = stream->spare;
  stream->spare = slot;
}

static void forget_bound(vlk_bound *bound) {
  bound->pipeline = VK_NULL_HANDLE;
  bound->n_push = 0;
}

static heddle_status open_slot(heddle_pstream *stream, heddle_error *err) {
  static const VkCommandBufferBeginInfo once = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                                .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  vlk_slot *slot = NULL;
  heddle_status s = HEDDLE_OK;
  if (stream->n_batch == VLK_BATCH) s = vlk_submit(stream, 0, 0, err);
  if (s == HEDDLE_OK) s = take_slot(stream, &slot, err);
  if (s != HEDDLE_OK) return s;
  s = vlk_check(stream->dev, stream->dev->vk.BeginCommandBuffer(slot->commands, &once), "begin a command buffer", err);
  if (s != HEDDLE_OK) {
    give_slot(stream, slot);
    return s;
  }
  vlk_stream_barrier(stream, slot->commands);
  stream->open = slot;
  stream->pieces = 0;
  forget_bound(&stream->bound);
  return HEDDLE_OK;
}

/* Ends the open command buffer and puts it into the batch, which has room: open_slot saw to that. */
static heddle_status end_slot(heddle_pstream *stream, heddle_error *err) {
  vlk_slot *slot = stream->open;
  if (slot == NULL) return HEDDLE_OK;
  stream->open = NULL;
  vlk_host_barrier(stream, slot->commands);
  heddle_status s =
      vlk_check(stream->dev, stream->dev->vk.EndCommandBuffer(slot->commands), "end a command buffer", err);
  if (s != HEDDLE_OK) {
    give_slot(stream, slot);
    return s;
  }
  slot->next = stream->batched;
  stream->batched = slot;
  stream->batch[stream->n_batch++] = (vlk_batch_entry){slot->commands, NULL};
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- pieces of work */

heddle_status vlk_stream_work_bound(heddle_pstream *stream, VkCommandBuffer *out, vlk_bound **bound,
                                    heddle_error *err) {
  heddle_status s = vlk_health(stream->dev, err);
  if (s != HEDDLE_OK) return s;
  *bound = &stream->bound;
  if (stream->capture != NULL) {
    *bound = &stream->capture->bound;
    *out = stream->capture->commands;
    if (stream->capture->pieces > 0) vlk_stream_barrier(stream, *out);
    return HEDDLE_OK;
  }
  if (stream->pieces >= VLK_LONG) s = vlk_submit(stream, 0, 0, err);
  if (s == HEDDLE_OK && stream->open == NULL) s = open_slot(stream, err);
  if (s != HEDDLE_OK) return s;
  *out = stream->open->commands;
  if (stream->pieces > 0) vlk_stream_barrier(stream, *out);
  return HEDDLE_OK;
}

heddle_status vlk_stream_work(heddle_pstream *stream, VkCommandBuffer *out, heddle_error *err) {
  vlk_bound *bound = NULL;
  heddle_status s = vlk_stream_work_bound(stream, out, &bound, err);
  if (s == HEDDLE_OK) forget_bound(bound);
  return s;
}

void vlk_stream_worked(heddle_pstream *stream) {
  if (stream->capture != NULL) stream->capture->pieces++;
  else stream->pieces++;
}

heddle_status vlk_submit_later(heddle_pstream *stream, heddle_pgraph *graph, heddle_error *err) {
  heddle_status s = end_slot(stream, err);
  if (s == HEDDLE_OK && stream->n_batch == VLK_BATCH) s = vlk_submit(stream, 0, 0, err);
  if (s != HEDDLE_OK) return s;
  atomic_fetch_add_explicit(&graph->batches, 1, memory_order_relaxed);
  stream->batch[stream->n_batch++] = (vlk_batch_entry){graph->commands, graph};
  return HEDDLE_OK;
}

heddle_status vlk_stream_wait_for(heddle_pstream *stream, heddle_pstream *other, uint64_t value, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (!stream->dev->timeline) return s; /* one queue, in the order of submission */
  /* What is in the stream already does not wait; and no list grows without end. */
  if (stream->open != NULL || stream->n_batch > 0) s = vlk_submit(stream, 0, 0, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < stream->n_waits; i++) {
    if (stream->waits[i] != other->timeline) continue;
    if (stream->wait_values[i] < value) stream->wait_values[i] = value;
    return HEDDLE_OK;
  }
  if (stream->n_waits == VLK_WAITS) s = vlk_submit(stream, 0, 0, err);
  if (s != HEDDLE_OK) return s;
  stream->waits[stream->n_waits] = other->timeline;
  stream->wait_values[stream->n_waits++] = value;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- submissions */

/* The batch was handed over with value, or is dropped where value is 0. */
static void clear_batch(heddle_pstream *stream, uint64_t value) {
  for (uint32_t i = 0; i < stream->n_batch; i++) {
    if (stream->batch[i].graph != NULL)
      atomic_fetch_sub_explicit(&stream->batch[i].graph->batches, 1, memory_order_release);
  }
  while (stream->batched != NULL) {
    vlk_slot *slot = stream->batched;
    stream->batched = slot->next;
    slot->next = NULL;
    slot->value = value;
    if (value == 0) {
      give_slot(stream, slot);
    } else { /* one value for all of the batch, so their order does not matter */
      if (stream->landed != NULL) stream->landed->next = slot;
      else stream->flight = slot;
      stream->landed = slot;
    }
  }
  stream->n_batch = stream->n_waits = stream->pieces = 0;
}

heddle_status vlk_submit(heddle_pstream *stream, heddle_pfence fence, uint64_t fence_value, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  VkCommandBuffer commands[VLK_BATCH];
  VkPipelineStageFlags stages[VLK_WAITS];
  heddle_status s = end_slot(stream, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t before = atomic_load_explicit(&stream->submitted, memory_order_relaxed);
  const bool nothing = stream->n_batch == 0 && stream->n_waits == 0;
  const uint64_t value = nothing ? before : before + 1;
  const vlk_completion completion = {.stream = stream, .value = value, .fence = fence, .fence_value = fence_value};
  if (nothing) {
    if (fence == 0) return HEDDLE_OK;
    s = vlk_reached(stream, value, err);
    if (s == HEDDLE_OK) dev->host->fence_signal(dev->host->ctx, fence, fence_value);
    if (s != HEDDLE_EBUSY) return s;
    return vlk_queue_submit(stream->queue, NULL, &completion, err);
  }
  for (uint32_t i = 0; i < stream->n_batch; i++) commands[i] = stream->batch[i].commands;
  for (uint32_t i = 0; i < stream->n_waits; i++) stages[i] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                .waitSemaphoreValueCount = stream->n_waits,
                                                .pWaitSemaphoreValues = stream->wait_values,
                                                .signalSemaphoreValueCount = 1,
                                                .pSignalSemaphoreValues = &value};
  const VkSubmitInfo how = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .pNext = dev->timeline ? &values : NULL,
                            .waitSemaphoreCount = stream->n_waits,
                            .pWaitSemaphores = stream->waits,
                            .pWaitDstStageMask = stages,
                            .commandBufferCount = stream->n_batch,
                            .pCommandBuffers = commands,
                            .signalSemaphoreCount = dev->timeline ? 1 : 0,
                            .pSignalSemaphores = &stream->timeline};
  s = vlk_queue_submit(stream->queue, &how, fence != 0 || !dev->timeline ? &completion : NULL, err);
  if (s != HEDDLE_OK) return s; /* the batch stays, for the next try */
  atomic_store_explicit(&stream->submitted, value, memory_order_release);
  clear_batch(stream, value);
  return HEDDLE_OK;
}

void vlk_stream_drop_work(heddle_pstream *stream) {
  if (stream->open != NULL) {
    stream->dev->vk.EndCommandBuffer(stream->open->commands);
    give_slot(stream, stream->open);
    stream->open = NULL;
  }
  clear_batch(stream, 0);
}

/* ---------------------------------------------------------------- what is done */

heddle_status vlk_reached(heddle_pstream *stream, uint64_t value, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  uint64_t now = atomic_load_explicit(&stream->reached, memory_order_acquire);
  heddle_status s = vlk_health(dev, err);
  if (s == HEDDLE_OK && now < value && dev->timeline) {
    s = vlk_check(dev, dev->vk.GetSemaphoreCounterValue(dev->device, stream->timeline, &now), "ask a stream", err);
    if (s == HEDDLE_OK) { /* others ask too: it only rises */
      uint64_t known = atomic_load_explicit(&stream->reached, memory_order_relaxed);
      while (known < now && !atomic_compare_exchange_weak(&stream->reached, &known, now)) {}
    }
  }
  if (s != HEDDLE_OK || now >= value) return s;
  return p_fail(err, HEDDLE_EBUSY, 0, "vulkan:%u: the stream has work left", dev->index);
}

heddle_status vlk_wait(heddle_pstream *stream, uint64_t value, uint64_t timeout_ns, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  const uint64_t slice = UINT64_C(1000000000);
  if (atomic_load_explicit(&stream->reached, memory_order_acquire) >= value) return vlk_health(dev, err);
  if (!dev->timeline) return vlk_queue_wait(stream->queue, stream, value, timeout_ns, err);
  const VkSemaphoreWaitInfo how = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                   .semaphoreCount = 1,
                                   .pSemaphores = &stream->timeline,
                                   .pValues = &value};
  for (uint64_t left = timeout_ns;;) {
    heddle_status s = vlk_health(dev, err);
    if (s != HEDDLE_OK) return s;
    const uint64_t now = left < slice ? left : slice;
    const VkResult code = dev->vk.WaitSemaphores(dev->device, &how, now);
    if (code != VK_TIMEOUT) {
      s = vlk_check(dev, code, "wait for a stream", err);
      return s == HEDDLE_OK ? vlk_reached(stream, value, err) : s;
    }
    if (left != UINT64_MAX) left -= now;
    if (left == 0) break;
  }
  return p_fail(err, HEDDLE_ETIMEOUT, 0, "vulkan:%u: work did not finish within %llu ns", dev->index,
                (unsigned long long)timeout_ns);
}
