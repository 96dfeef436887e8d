/* The group "threads": what is for any thread is used by several at once, and what is for one thread at a time by one
 * each. The threads keep their own errors; the first that went wrong fails the case when all have ended. */
#include "conformance/relu.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, BYTES = 8192 };

typedef struct worker worker;

/* What one thread does, with its number; it returns false with words in w->words. */
struct worker {
  kit *k;
  heddle_pdevice *dev;
  heddle_pstream *stream; /* for the cases that make it before */
  bool (*work)(worker *w);
  void *data;
  uint32_t n;
  heddle_error err;
  char words[1200];
  atomic_bool *stop;
};

static bool went_wrong(worker *w, const char *what) {
  snprintf(w->words, sizeof w->words, "%s: %s", what, w->err.text);
  if (w->err.status == HEDDLE_EDEVICE) kit_refused(w->k, HEDDLE_EDEVICE);
  return false;
}

static void *run_worker(void *arg) {
  worker *w = arg;
  if (w->work(w)) w->words[0] = '\0';
  return NULL;
}

/* Runs n workers to their ends and fails with the words of the first that has some. */
static void all_of(kit *k, worker *all, uint32_t n) {
  pthread_t threads[16];
  uint32_t started = 0;
  while (started < n && pthread_create(&threads[started], NULL, run_worker, &all[started]) == 0) started++;
  for (uint32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
  if (started < n) kit_fail(k, "the kit itself has no thread");
  for (uint32_t i = 0; i < n; i++)
    if (all[i].words[0] != '\0') kit_fail(k, "in one of %" PRIu32 " threads: %s", n, all[i].words);
}

static void same_work(kit *k, bool (*work)(worker *w)) {
  worker all[THREADS];
  memset(all, 0, sizeof all);
  for (uint32_t i = 0; i < THREADS; i++) all[i] = (worker){.k = k, .dev = k->dev, .work = work, .n = i};
  all_of(k, all, THREADS);
}

static heddle_pbuffer *alloc(worker *w, uint32_t kind, uint64_t bytes) {
  const heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = kind, .bytes = bytes, .align = 64};
  heddle_pbuffer *buffer = NULL;
  return w->k->t.memory.alloc(w->dev, &desc, &buffer, &w->err) == HEDDLE_OK ? buffer : NULL;
}

/* ---- memory ---- */

static bool alloc_work(worker *w) {
  const kit *k = w->k;
  heddle_pbuffer *held[8] = {NULL};
  for (uint32_t i = 0; i < 400; i++) {
    uint32_t slot = (i * 5 + w->n) % 8;
    k->t.memory.free(w->dev, held[slot]);
    held[slot] = alloc(w, HEDDLE_MEMORY_DEVICE, 1 + (i * 977 + w->n * 31) % 20000);
    if (held[slot] == NULL) return went_wrong(w, "memory.alloc");
  }
  for (uint32_t i = 0; i < 8; i++) k->t.memory.free(w->dev, held[i]);
  return true;
}

static void allocs(kit *k) {
  same_work(k, alloc_work);
}

/* ---- streams, one a thread ---- */

/* Fills, copies and reads back in a stream, buffers and events of the thread's own. */
static bool row(worker *w, heddle_pstream *s, uint32_t turns) {
  const kit *k = w->k;
  heddle_pbuffer *x = alloc(w, HEDDLE_MEMORY_DEVICE, BYTES), *y = alloc(w, HEDDLE_MEMORY_DEVICE, BYTES);
  uint32_t words[2];
  if (x == NULL || y == NULL) return went_wrong(w, "memory.alloc");
  for (uint32_t i = 0; i < turns; i++) {
    const uint32_t word = (w->n * 50 + i + 1) % 256 * UINT32_C(0x01010101);
    if (k->t.copy.fill(s, x, 0, BYTES, word, &w->err) != HEDDLE_OK) return went_wrong(w, "copy.fill");
    if (k->t.copy.d2d(s, y, 0, x, 0, BYTES, &w->err) != HEDDLE_OK) return went_wrong(w, "copy.d2d");
    if (k->t.copy.fill(s, x, 0, BYTES, ~word, &w->err) != HEDDLE_OK) return went_wrong(w, "copy.fill");
    if (k->t.copy.read(s, words, y, BYTES - 8, 8, &w->err) != HEDDLE_OK) return went_wrong(w, "copy.read");
    if (words[0] != word || words[1] != word) {
      snprintf(w->err.text, sizeof w->err.text, "0x%08" PRIx32 " was read and 0x%08" PRIx32 " was written", words[1],
               word);
      return went_wrong(w, "bytes of a stream that is used by one thread");
    }
  }
  if (k->t.stream.sync(s, kit_patience_ms(w->k, 30000) * 1000000, &w->err) != HEDDLE_OK)
    return went_wrong(w, "stream.sync");
  k->t.memory.free(w->dev, x);
  k->t.memory.free(w->dev, y);
  return true;
}

static bool stream_work(worker *w) {
  for (uint32_t i = 0; i < 8; i++) {
    heddle_pstream *s = NULL;
    if (w->k->t.stream.create(w->dev, i % 2, 0, &s, &w->err) != HEDDLE_OK) return went_wrong(w, "stream.create");
    if (!row(w, s, 20)) return false;
    w->k->t.stream.close(s);
  }
  return true;
}

static void streams(kit *k) {
  same_work(k, stream_work);
}

/* A stream goes from thread to thread, one at a time, as the host's driver of a run may. */
static bool handed_work(worker *w) {
  return row(w, w->stream, 10);
}

static void handed(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  for (uint32_t i = 0; i < 12; i++) {
    worker one = {.k = k, .dev = k->dev, .stream = s, .work = handed_work, .n = i};
    all_of(k, &one, 1);
  }
  k->t.stream.close(s);
}

static bool device_work(worker *w) {
  heddle_pstream *s = NULL;
  if (w->k->t.stream.create(w->dev, HEDDLE_STREAM_COMPUTE, 0, &s, &w->err) != HEDDLE_OK)
    return went_wrong(w, "stream.create");
  if (!row(w, s, 60)) return false;
  w->k->t.stream.close(s);
  return true;
}

/* Several devices at once, two threads each. */
static void devices(kit *k) {
  worker all[16];
  heddle_pdevice *open[8];
  uint32_t n = k->n_devices < 8 ? k->n_devices : 8;
  memset(all, 0, sizeof all);
  for (uint32_t i = 0; i < n; i++)
    open[i] = (k->index + i) % k->n_devices == k->index ? k->dev : kit_open(k, (k->index + i) % k->n_devices);
  for (uint32_t i = 0; i < 2 * n; i++) all[i] = (worker){.k = k, .dev = open[i % n], .work = device_work, .n = i};
  all_of(k, all, 2 * n);
  for (uint32_t i = 0; i < n; i++)
    if (open[i] != k->dev) kit_close(k, open[i]);
}

static bool open_work(worker *w) {
  const kit *k = w->k;
  for (uint32_t i = 0; i < 4; i++) {
    const heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 100 + w->n};
    w->dev = NULL;
    heddle_status status = k->t.device.open(k->instance, k->index, &options, &w->dev, &w->err);
    if (status == HEDDLE_EBUSY) continue; /* legal while another has it */
    if (status != HEDDLE_OK) return went_wrong(w, "device.open");
    bool good = device_work(w);
    k->t.device.close(w->dev);
    if (!good) return false;
  }
  return true;
}

static void opens(kit *k) {
  same_work(k, open_work);
}

static bool describe_work(worker *w) {
  const kit *k = w->k;
  for (uint32_t i = 0; i < 200; i++) {
    heddle_pdevice_desc desc = {.struct_size = sizeof desc};
    uint32_t n = 0;
    if (k->root.device_count(k->instance, &n, &w->err) != HEDDLE_OK) return went_wrong(w, "device_count");
    if (k->root.device_describe(k->instance, k->index, &desc, &w->err) != HEDDLE_OK)
      return went_wrong(w, "device_describe");
    if (n != k->n_devices || desc.caps != k->desc.caps || strcmp(desc.driver, k->desc.driver) != 0)
      return went_wrong(w, "device_count or device_describe answered otherwise than before");
    if (k->t.device.health(k->dev, &w->err) != HEDDLE_OK) return went_wrong(w, "device.health");
  }
  return true;
}

static void describes(kit *k) {
  same_work(k, describe_work);
}

/* ---- questions while another thread works ---- */

static bool asking_work(worker *w) {
  const kit *k = w->k;
  while (!atomic_load(w->stop)) {
    heddle_status status = k->t.stream.query(w->stream, &w->err);
    if (status != HEDDLE_OK && status != HEDDLE_EBUSY) return went_wrong(w, "stream.query from another thread");
    if (k->t.device.health(w->dev, &w->err) != HEDDLE_OK) return went_wrong(w, "device.health from another thread");
    int64_t n;
    (void)k->t.device.query(w->dev, HEDDLE_QUERY_LIVE_BUFFERS, &n, &w->err);
    heddle_pbuffer *b = alloc(w, HEDDLE_MEMORY_DEVICE, 512);
    if (b == NULL) return went_wrong(w, "memory.alloc beside another thread's work");
    k->t.memory.free(w->dev, b);
    if (!kit_inline(k) && k->t.has_event) {
      heddle_pevent *event = NULL;
      if (k->t.event.create(w->dev, &event, &w->err) != HEDDLE_OK) return went_wrong(w, "event.create");
      k->t.event.free(event);
    }
  }
  return true;
}

static bool asked_work(worker *w) {
  bool good = row(w, w->stream, 150);
  atomic_store(w->stop, true);
  return good;
}

static void asks(kit *k) {
  atomic_bool stop = false;
  heddle_pstream *s = kit_stream(k, k->dev);
  worker all[3];
  memset(all, 0, sizeof all);
  for (uint32_t i = 0; i < 3; i++)
    all[i] = (worker){.k = k, .dev = k->dev, .stream = s, .work = i == 0 ? asked_work : asking_work, .stop = &stop};
  all_of(k, all, 3);
  k->t.stream.close(s);
}

/* One thread signals, another waits for the fences, a third asks for streams: as a host does it. */
static bool signal_work(worker *w) {
  const kit *k = w->k;
  heddle_pfence fence = *(heddle_pfence *)w->data;
  heddle_pbuffer *x = alloc(w, HEDDLE_MEMORY_DEVICE, BYTES);
  if (x == NULL) return went_wrong(w, "memory.alloc");
  for (uint32_t i = 1; i <= 100; i++) {
    if (k->t.copy.fill(w->stream, x, 0, BYTES, i, &w->err) != HEDDLE_OK) return went_wrong(w, "copy.fill");
    if (k->t.fence.signal(w->stream, fence, i, &w->err) != HEDDLE_OK) return went_wrong(w, "fence.signal");
    heddle_status status = kit_fence_wait(w->k, fence, i, kit_patience_ms(w->k, 30000));
    if (status != HEDDLE_OK) {
      snprintf(w->err.text, sizeof w->err.text, "status %d for value %" PRIu32, (int)status, i);
      return went_wrong(w, "a fence waited for by its own thread");
    }
  }
  if (k->t.stream.sync(w->stream, kit_patience_ms(w->k, 30000) * 1000000, &w->err) != HEDDLE_OK)
    return went_wrong(w, "stream.sync");
  k->t.memory.free(w->dev, x);
  return true;
}

static void signals(kit *k) {
  worker all[THREADS];
  heddle_pfence fences[THREADS];
  memset(all, 0, sizeof all);
  for (uint32_t i = 0; i < THREADS; i++) {
    fences[i] = kit_fence(k);
    all[i] = (worker){.k = k, .dev = k->dev, .stream = kit_stream(k, k->dev), .work = signal_work, .data = &fences[i]};
  }
  all_of(k, all, THREADS);
  for (uint32_t i = 0; i < THREADS; i++) {
    kit_fence_free(k, fences[i]);
    k->t.stream.close(all[i].stream);
  }
}

/* ---- operators ---- */

/* One op, which any thread may use; launches and streams of the thread's own. */
static bool launch_work(worker *w) {
  kit *k = w->k;
  const kit_relu *relu = w->data;
  heddle_pstream *s = NULL;
  heddle_plaunch *launch = NULL;
  heddle_pbuffer *x = alloc(w, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES),
                 *y = alloc(w, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
  float data[KIT_RELU_BYTES / sizeof(float)];
  const uint32_t count = sizeof data / sizeof data[0];
  if (x == NULL || y == NULL) return went_wrong(w, "memory.alloc");
  if (k->t.stream.create(w->dev, HEDDLE_STREAM_COMPUTE, 0, &s, &w->err) != HEDDLE_OK)
    return went_wrong(w, "stream.create");
  for (uint32_t turn = 0; turn < 30; turn++) {
    const heddle_pslice in = {x, 0, KIT_RELU_BYTES}, out = {y, 0, KIT_RELU_BYTES};
    const heddle_pbind operands = {.struct_size = sizeof operands,
                                   .inputs = &in,
                                   .outputs = &out,
                                   .n_inputs = 1,
                                   .n_outputs = 1,
                                   .workspace = relu->workspace};
    if (turn % 10 == 0) {
      k->t.op.launch_free(launch);
      launch = NULL;
      if (k->t.op.bind(relu->op, s, &operands, &launch, &w->err) != HEDDLE_OK) return went_wrong(w, "op.bind");
    }
    for (uint32_t i = 0; i < count; i++) data[i] = kit_relu_x(turn * 7 + w->n, i);
    if (k->t.copy.write(s, x, 0, data, sizeof data, &w->err) != HEDDLE_OK) return went_wrong(w, "copy.write");
    if (k->t.op.run(launch, &w->err) != HEDDLE_OK) return went_wrong(w, "op.run");
    if (k->t.copy.read(s, data, y, 0, sizeof data, &w->err) != HEDDLE_OK) return went_wrong(w, "copy.read");
    for (uint32_t i = 0; i < count; i++) {
      float v = kit_relu_x(turn * 7 + w->n, i);
      if (data[i] < (v > 0 ? v : 0) || data[i] > (v > 0 ? v : 0)) {
        snprintf(w->err.text, sizeof w->err.text, "element %" PRIu32 " of Relu of %g is %g", i, (double)v,
                 (double)data[i]);
        return went_wrong(w, "an op that several threads use");
      }
    }
  }
  if (k->t.stream.sync(s, kit_patience_ms(w->k, 30000) * 1000000, &w->err) != HEDDLE_OK)
    return went_wrong(w, "stream.sync");
  k->t.op.launch_free(launch);
  k->t.stream.close(s);
  k->t.memory.free(w->dev, x);
  k->t.memory.free(w->dev, y);
  return true;
}

static void launches(kit *k) {
  worker all[THREADS];
  kit_relu relu = kit_relu_new(k, k->dev, k->index);
  if (relu.workspace.bytes != 0) kit_skip(k, "the device's Relu needs a workspace, which launches cannot share");
  memset(all, 0, sizeof all);
  for (uint32_t i = 0; i < THREADS; i++)
    all[i] = (worker){.k = k, .dev = k->dev, .work = launch_work, .data = &relu, .n = i};
  all_of(k, all, THREADS);
  kit_relu_free(k, &relu);
}

#define ON_DEVICE(name, promise, flags, run) \
  { "threads/" name, promise, KIT_STAGE_DEVICE, flags, 60, run, NULL }

KIT_GROUP(kit_threads, "threads", ON_DEVICE("alloc", "memory is allocated and freed by any thread", 0, allocs),
          ON_DEVICE("streams", "streams are used at once, each by a thread of its own", 0, streams),
          ON_DEVICE("handed-on", "a stream may be used by one thread after another", 0, handed),
          ON_DEVICE("devices", "devices are used at once", KIT_SECOND, devices),
          ON_DEVICE("open", "devices are opened and closed by several threads", 0, opens),
          ON_DEVICE("describe", "devices are counted, described and asked for their health by any thread", 0,
                    describes),
          ON_DEVICE("questions", "query, health, alloc and event.create are for any thread while another works", 0,
                    asks),
          ON_DEVICE("signals", "streams of several threads signal fences at once", KIT_NOT_INLINE, signals),
          ON_DEVICE("launches", "an op is used by any thread, each with launches of its own", 0, launches));
