/* The device's thread and the queues that it works off: one command of one stream at a time, the streams in turn. */
#include "npu.h"

#include <errno.h>
#include <time.h>

struct timespec npu_deadline(uint64_t timeout_ns) {
  const uint64_t most = UINT64_C(4000000000) * 1000000000; /* past the year 2090 on any clock */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  const uint64_t end = timeout_ns > most - start ? most : start + timeout_ns;
  return (struct timespec){.tv_sec = (time_t)(end / 1000000000), .tv_nsec = (long)(end % 1000000000)};
}

uint64_t npu_clock(const heddle_pdevice *dev, uint64_t host_ns) {
  return dev->idle && host_ns > dev->clock_ns ? host_ns : dev->clock_ns;
}

void npu_stream_drop(heddle_pstream *stream) {
  if (stream == NULL || --stream->refs > 0) return;
  const heddle_host *host = stream->self->host;
  host->free(host->ctx, stream->ring);
  host->free(host->ctx, stream);
}

/* ---------------------------------------------------------------- putting in */

/* A larger ring, with the commands that are pending at its beginning. Called and left with the lock held, which is given
 * up meanwhile. Any thread. */
static bool grow(heddle_pstream *stream) {
  const heddle_host *host = stream->self->host;
  const uint64_t room = stream->room * 2;
  pthread_mutex_unlock(&stream->self->lock);
  npu_cmd *ring = host->alloc(host->ctx, room * sizeof *ring, 64);
  pthread_mutex_lock(&stream->self->lock);
  npu_cmd *old = ring;
  if (ring != NULL && stream->room < room) { /* else another thread was faster */
    for (uint64_t i = stream->tail; i != stream->head; i++) ring[i % room] = stream->ring[i % stream->room];
    old = stream->ring;
    stream->ring = ring;
    stream->room = room;
  }
  host->free(host->ctx, old); /* takes no lock of ours */
  return ring != NULL;
}

/* What is put in that is no launch keeps half of the ring free for launches, which make no room. The lock is held. */
static bool make_room(heddle_pstream *stream) {
  return (stream->head - stream->tail) * 2 < stream->room || grow(stream);
}

heddle_status npu_push(heddle_pstream *stream, const npu_cmd *cmd, heddle_error *err) {
  heddle_pinstance *self = stream->dev->self;
  heddle_status s = npu_check(stream->dev, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&self->lock);
  const bool has_room = cmd->kind == NPU_CMD_RUN ? stream->head - stream->tail < stream->room : make_room(stream);
  if (has_room) stream->ring[stream->head++ % stream->room] = *cmd;
  const unsigned long long room = stream->room;
  pthread_mutex_unlock(&self->lock);
  if (has_room) return HEDDLE_OK;
  if (cmd->kind == NPU_CMD_RUN)
    return p_fail(err, HEDDLE_ELIMIT, 0, "npu:0: %llu commands are pending in the stream: no place for a launch", room);
  return p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory for more than %llu pending commands", room);
}

heddle_status npu_stream_take(heddle_pstream *stream, heddle_error *err) {
  bool done = true;
  pthread_mutex_lock(&stream->self->lock);
  stream->refs++;
  stream->launches++;
  while (done && stream->room < 2 * stream->launches * NPU_PENDING) done = grow(stream);
  if (!done) stream->refs--, stream->launches--; /* the host has a reference too */
  pthread_mutex_unlock(&stream->self->lock);
  return done ? HEDDLE_OK : p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory for the commands of a launch");
}

void npu_stream_give(heddle_pstream *stream) {
  heddle_pinstance *self = stream->self;
  pthread_mutex_lock(&self->lock);
  stream->launches--;
  npu_stream_drop(stream);
  pthread_mutex_unlock(&self->lock);
}

void npu_submit(heddle_pstream *stream) {
  pthread_mutex_lock(&stream->self->lock);
  stream->submitted = stream->head;
  pthread_cond_broadcast(&stream->self->work);
  pthread_mutex_unlock(&stream->self->lock);
}

heddle_status npu_finish(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  heddle_pinstance *self = stream->self;
  const struct timespec until = npu_deadline(timeout_ns);
  int code = 0;
  npu_submit(stream);
  pthread_mutex_lock(&self->lock);
  const uint64_t position = stream->submitted;
  while (stream->tail < position && code != ETIMEDOUT) code = pthread_cond_timedwait(&self->done, &self->lock, &until);
  const bool late = stream->tail < position;
  pthread_mutex_unlock(&self->lock);
  if (late) return p_fail(err, HEDDLE_ETIMEOUT, 0, "npu:0: the work in the stream did not finish in time");
  return npu_check(stream->dev, err);
}

/* ---------------------------------------------------------------- the thread */

/* The next stream with a command that may start; waits are taken out as they are met. With the lock held. */
static heddle_pstream *pick(heddle_pdevice *dev) {
  for (heddle_pstream *s = dev->streams; s != NULL; s = s->next) {
    while (s->tail != s->submitted) {
      npu_cmd *cmd = &s->ring[s->tail % s->room];
      if (cmd->kind != NPU_CMD_WAIT) return s;
      if (cmd->stream->tail < cmd->value && !dev->stop && !atomic_load(&dev->lost)) break;
      npu_stream_drop(cmd->stream);
      s->tail++;
      pthread_cond_broadcast(&dev->self->done);
      pthread_cond_broadcast(&dev->self->work);
    }
  }
  return NULL;
}

void npu_lose(heddle_pdevice *dev, const heddle_error *why) {
  pthread_mutex_lock(&dev->self->lock);
  const bool first = !atomic_load(&dev->lost);
  if (first) dev->fault = *why;
  atomic_store(&dev->lost, true);
  pthread_cond_broadcast(&dev->self->work);
  pthread_mutex_unlock(&dev->self->lock);
  if (first) dev->host->device_fault(dev->host->ctx, dev->cookie, why->api_code, why->text);
}

static void end_badly(heddle_pdevice *dev, npu_end end, uint64_t where) {
  static const char *const why[] = {"done", "an address outside the memory", "an unknown instruction",
                                    "every module waits for a token"};
  heddle_error fault;
  p_fail(&fault, HEDDLE_EDEVICE, (int32_t)end, "npu:0: device lost: instruction %llu of a program: %s",
         (unsigned long long)where, why[end]);
  npu_lose(dev, &fault);
}

/* A program that does not end, as the setting hang_at asks for it: until the device is reset or closed. */
static void hang(heddle_pdevice *dev) {
  const struct timespec moment = {.tv_nsec = 1000000};
  for (bool stop = false; !stop && !atomic_load(&dev->lost); nanosleep(&moment, NULL)) {
    pthread_mutex_lock(&dev->self->lock);
    stop = dev->stop;
    pthread_mutex_unlock(&dev->self->lock);
  }
}

/* Executes a command without the lock; gives the cycles that it took. Nothing runs on a lost device, but fences hear. */
static uint64_t execute(heddle_pdevice *dev, const npu_cmd *cmd, uint64_t now) {
  const heddle_host *host = dev->host;
  const bool lost = atomic_load(&dev->lost);
  if (cmd->kind == NPU_CMD_SIGNAL) {
    if (lost) host->fence_fail(host->ctx, cmd->fence, HEDDLE_EDEVICE, dev->fault.text);
    else host->fence_signal(host->ctx, cmd->fence, cmd->value);
  }
  if (lost) return 0;
  switch (cmd->kind) {
  case NPU_CMD_COPY:
    if (cmd->bytes > 0) memcpy(cmd->dst, cmd->src, cmd->bytes);
    return npu_copy_cycles(cmd->bytes);
  case NPU_CMD_FILL:
    if (cmd->value == dev->self->lose_at) { /* as the conformance kit asks for it */
      heddle_error fault;
      p_fail(&fault, HEDDLE_EDEVICE, 0, "npu:0: device lost: a fill with the word of the setting lose_on_fill");
      npu_lose(dev, &fault);
      return 0;
    }
    for (uint64_t i = 0; i < cmd->bytes; i += 4) {
      const uint32_t word = (uint32_t)cmd->value;
      memcpy(cmd->dst + i, &word, 4);
    }
    return npu_copy_cycles(cmd->bytes);
  case NPU_CMD_RUN: {
    uint64_t address, n, where = 0, before = dev->machine->cycles;
    npu_launch_program(cmd->launch, &address, &n);
    npu_end end = npu_machine_run(dev->machine, address, n, &where);
    if (++dev->programs == dev->self->fault_at) end = NPU_BAD_ADDRESS;
    if (dev->programs == dev->self->hang_at) hang(dev);
    if (end != NPU_DONE) end_badly(dev, end, where);
    return dev->machine->cycles - before;
  }
  case NPU_CMD_MARK: atomic_store(&cmd->timer->ns[cmd->slot], now); return 0;
  default: return 0;
  }
}

void npu_drop_closed(heddle_pdevice *dev) {
  for (heddle_pstream **link = &dev->streams; *link != NULL;) {
    heddle_pstream *s = *link;
    if (s->closed && s->tail == s->submitted) {
      *link = s->next;
      npu_stream_drop(s);
    } else {
      link = &s->next;
    }
  }
}

/* The machine takes as long as its cycles say: where the simulation was faster, the thread waits. */
static void wait_for_clock(const heddle_pdevice *dev, uint64_t clock_ns) {
  const uint64_t now = dev->host->now_ns(dev->host->ctx);
  if (now >= clock_ns) return;
  const uint64_t rest = clock_ns - now;
  const struct timespec time = {.tv_sec = (time_t)(rest / 1000000000), .tv_nsec = (long)(rest % 1000000000)};
  nanosleep(&time, NULL); /* the thread takes no signals */
}

void *npu_thread(void *device) {
  heddle_pdevice *dev = device;
  heddle_pinstance *self = dev->self;
  pthread_mutex_lock(&self->lock);
  for (;;) {
    npu_drop_closed(dev);
    heddle_pstream *s = pick(dev);
    if (s == NULL && dev->stop) break;
    if (s == NULL) {
      dev->idle = true;
      pthread_cond_wait(&self->work, &self->lock);
      continue;
    }
    const npu_cmd cmd = s->ring[s->tail % s->room];
    const uint64_t now = npu_clock(dev, dev->host->now_ns(dev->host->ctx));
    dev->clock_ns = now;
    dev->idle = false;
    dev->running = true;
    pthread_mutex_unlock(&self->lock);
    const uint64_t end = now + execute(dev, &cmd, now) * 1000 / NPU_MHZ;
    wait_for_clock(dev, end);
    pthread_mutex_lock(&self->lock);
    dev->running = false;
    dev->clock_ns = end;
    s->tail++;
    if (dev->streams == s && s->next != NULL) { /* the next stream's turn: this one goes behind the others */
      heddle_pstream **end = &dev->streams;
      dev->streams = s->next;
      s->next = NULL;
      while (*end != NULL) end = &(*end)->next;
      *end = s;
    }
    pthread_cond_broadcast(&self->done);
    pthread_cond_broadcast(&self->work);
  }
  while (dev->streams != NULL) { /* what the host forgot to close */
    heddle_pstream *s = dev->streams;
    dev->streams = s->next;
    npu_stream_drop(s);
  }
  pthread_mutex_unlock(&self->lock);
  return NULL;
}
