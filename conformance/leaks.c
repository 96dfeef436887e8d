/* The group "leaks": what was made and freed leaves nothing behind, by the plugin's own counts, the host's count of blocks
 * and what Linux and the C library say of the process. What a driver keeps after its first use is its own business, so growth counts only
 * where it goes on round after round. */
#include "conformance/relu.h"

#include <dirent.h>
#include <inttypes.h>
#if defined(__linux__)
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EACH = 32, BYTES = 16384, WARM = 4, LEAK = 64 /* bytes for each: drivers keep a few */ };

/* ---- what the process has */

typedef struct census {
  uint64_t threads, files, maps, mapped_kib, resident_kib, heap;
} census;

/* Bytes of malloc in use, in the whole process; 0 where the C library does not tell. */
static uint64_t heap_bytes(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

static uint64_t entries(const char *folder) {
  uint64_t n = 0;
  DIR *dir = opendir(folder);
  if (dir == NULL) return 0;
  while (readdir(dir) != NULL) n++;
  closedir(dir);
  return n;
}

static uint64_t lines(const char *path) {
  uint64_t n = 0;
  int c;
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  while ((c = fgetc(file)) != EOF) n += c == '\n';
  fclose(file);
  return n;
}

/* KiB of all mappings but that which the C library's memory grows in. */
static uint64_t mapped_kib(void) {
  char line[512];
  uint64_t bytes = 0;
  FILE *file = fopen("/proc/self/maps", "re");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned long long from = 0, to = 0;
    if (strstr(line, "[heap]") == NULL && sscanf(line, "%llx-%llx", &from, &to) == 2) bytes += to - from;
  }
  fclose(file);
  return bytes / 1024;
}

static uint64_t resident_kib(void) {
  unsigned long long pages = 0, whole = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL) return 0;
  if (fscanf(file, "%llu %llu", &whole, &pages) != 2) pages = 0;
  fclose(file);
  return pages * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

static census count(kit *k) {
  kit_host_settle(k);
  const bool kept = k->host.features != 0; /* a sanitizer's allocator keeps what was freed, for a while */
  return (census){entries("/proc/self/task"), entries("/proc/self/fd"),  kept ? 0 : lines("/proc/self/maps"),
                  kept ? 0 : mapped_kib(),    kept ? 0 : resident_kib(), kept ? 0 : heap_bytes()};
}

/* ---- rounds over a device or an instance */

/* A little of all: a stream with work, a page, an event, a fence, an operator where there is one. */
static void some_work(kit *k, heddle_pdevice *dev) {
  heddle_pstream *s = kit_stream(k, dev);
  heddle_pbuffer *x = kit_buffer(k, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_put_pattern(k, s, x, 0, BYTES, 1);
  kit_holds(k, s, x, 0, BYTES, 1, "bytes written and read");
  if (!kit_inline(k)) {
    heddle_pevent *event = NULL;
    heddle_pfence fence = kit_fence(k);
    kit_ok(k, k->t.event.create(dev, &event, &k->err), "event.create");
    kit_ok(k, k->t.event.record(event, s, &k->err), "event.record");
    kit_ok(k, k->t.fence.signal(s, fence, 1, &k->err), "fence.signal");
    if (kit_fence_wait(k, fence, 1, kit_patience_ms(k, 20000)) != HEDDLE_OK) kit_fail(k, "a fence was not signalled");
    kit_sync(k, s);
    k->t.event.free(event);
    kit_fence_free(k, fence);
  }
  kit_free(k, dev, x);
  k->t.stream.close(s);
}

static void one_device(kit *k) {
  heddle_pdevice *dev = kit_open(k, k->index);
  some_work(k, dev);
  kit_close(k, dev);
}

static void one_instance(kit *k) {
  kit_ok(k, k->root.open_instance(&k->host, &k->instance, &k->err), "open_instance after all was closed");
  one_device(k);
  k->root.close_instance(k->instance);
  k->instance = NULL;
}

/* Fails where a number grew by step and more in each of four spans: what fills a cache of a driver's slows down. */
static void flat(kit *k, const uint64_t at[5], uint64_t step, const char *what, const char *span) {
  for (uint32_t i = 0; i < 4; i++)
    if (at[i + 1] < at[i] + step) return;
  kit_fail(k,
           "%s grow on and on: %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", with %s between two "
           "numbers",
           what, at[0], at[1], at[2], at[3], at[4], span);
}

/* Whether a number of what a driver keeps too grows as a leak does: by as much in one span as in another, within twice. */
static bool is_steady(const uint64_t at[5], uint64_t step) {
  uint64_t least = UINT64_MAX, most = 0;
  for (uint32_t i = 0; i < 4; i++) {
    const uint64_t grown = at[i + 1] > at[i] ? at[i + 1] - at[i] : 0;
    if (grown < least) least = grown;
    if (grown > most) most = grown;
  }
  return most <= 2 * least && least >= step;
}

static void steady(kit *k, const uint64_t at[5], uint64_t step, const char *what, const char *span) {
  if (is_steady(at, step)) flat(k, at, step, what, span);
}

/* Ten rounds to warm up, then four times ten, counted after each ten. */
static void rounds(kit *k, void (*round)(kit *k)) {
  enum { SPAN = 10 };
  uint64_t threads[5], files[5], maps[5], mapped[5], resident[5], blocks[5], heap[5];
  for (uint32_t i = 0; i < 5; i++) {
    for (uint32_t j = 0; j < SPAN; j++) round(k);
    census now = count(k);
    threads[i] = now.threads;
    files[i] = now.files;
    maps[i] = now.maps;
    mapped[i] = now.mapped_kib;
    resident[i] = now.resident_kib;
    heap[i] = now.heap;
    blocks[i] = kit_host_blocks(k);
  }
  flat(k, blocks, SPAN / 2, "blocks of host.alloc", "10 rounds");
  steady(k, heap, SPAN * LEAK * 16, "bytes of malloc", "10 rounds");
  flat(k, threads, SPAN / 2, "threads of the process", "10 rounds");
  flat(k, files, SPAN / 2, "open files of the process", "10 rounds");
  flat(k, maps, SPAN / 2, "mappings of the process", "10 rounds");
  steady(k, mapped, SPAN * 4, "KiB of mappings of the process", "10 rounds");
  flat(k, resident, SPAN * 64, "resident KiB of the process", "10 rounds");
  if (resident[4] > resident[0])
    kit_note(k, "resident memory grew by %" PRIu64 " KiB in 40 rounds", resident[4] - resident[0]);
}

static void devices(kit *k) {
  kit_close(k, k->dev);
  rounds(k, one_device);
}

static void instances(kit *k) {
  kit_close_all(k);
  rounds(k, one_instance);
}

/* ---- what is left when all is closed */

static void host_blocks(kit *k) {
  some_work(k, k->dev);
  kit_close_all(k);
  uint64_t left = kit_host_blocks(k);
  if (left != 0) kit_fail(k, "%" PRIu64 " blocks of host.alloc are left when device and instance are closed", left);
}

/* ---- the plugin's own counts */

typedef struct numbers {
  int64_t buffers, bytes, objects;
} numbers;

static numbers live(kit *k) {
  return (numbers){kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS), kit_live(k, HEDDLE_QUERY_LIVE_BYTES),
                   kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS)};
}

static void same_counts(kit *k, numbers before, const char *what) {
  const numbers now = live(k);
  if (now.buffers != before.buffers || now.bytes != before.bytes || now.objects != before.objects)
    kit_fail(k,
             "after %s were made and freed, LIVE_BUFFERS is off by %" PRId64 ", LIVE_BYTES by %" PRId64
             ", LIVE_OBJECTS by %" PRId64,
             what, now.buffers - before.buffers, now.bytes - before.bytes, now.objects - before.objects);
}

static void after_failure(kit *k) {
  heddle_pbuffer *buffer = NULL;
  const heddle_pmemory_desc desc = {
      .struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = BYTES, .align = 1};
  const numbers before = live(k);
  uint32_t failed = 0;
  for (uint64_t n = 1; n <= 6; n++) { /* an allocation of the plugin's own fails, wherever it is */
    heddle_pstream *s = NULL;
    kit_host_fail_alloc(k, n);
    if (k->t.memory.alloc(k->dev, &desc, &buffer, &k->err) != HEDDLE_OK) failed++, buffer = NULL;
    kit_host_fail_alloc(k, 0);
    k->t.memory.free(k->dev, buffer);
    kit_host_fail_alloc(k, n);
    if (k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, &s, &k->err) != HEDDLE_OK) failed++, s = NULL;
    kit_host_fail_alloc(k, 0);
    k->t.stream.close(s);
  }
  some_work(k, k->dev);
  same_counts(k, before, "buffers and streams, some of which failed for want of memory,");
  kit_close_all(k);
  uint64_t left = kit_host_blocks(k);
  kit_note(k, "%" PRIu32 " calls failed for want of memory", failed);
  if (left != 0)
    kit_fail(k, "%" PRIu64 " blocks of host.alloc are left after calls that failed for want of memory", left);
}

/* ---- objects of one device */

/* What the process had after each of five spans of batches. */
typedef struct growth {
  uint64_t blocks[5], resident[5], heap[5], threads[5], files[5], maps[5], mapped[5];
} growth;

typedef void (*batch_fn)(kit *k, heddle_pstream *s);

static void grow(kit *k, heddle_pstream *s, batch_fn batch, uint32_t span, const char *what, growth *out) {
  const numbers before = live(k);
  for (uint32_t i = 0; i < 5; i++) {
    for (uint32_t j = 0; j < span; j++) batch(k, s);
    kit_sync(k, s);
    same_counts(k, before, what);
    out->blocks[i] = kit_host_blocks(k);
    const census now_has = count(k);
    out->resident[i] = now_has.resident_kib;
    out->heap[i] = now_has.heap;
    out->threads[i] = now_has.threads;
    out->files[i] = now_has.files;
    out->maps[i] = now_has.maps;
    out->mapped[i] = now_has.mapped_kib;
  }
}

/* How many batches a span has in which what a driver keeps for a while fills up: as many as some seconds have room for. */
static uint32_t long_span(kit *k, uint64_t spent_ms) {
  const uint64_t each = spent_ms / (WARM + 5) + 1, n = kit_patience_ms(k, 4000) / 5 / each;
  return n < 1 ? 1 : n > 64 ? 64 : (uint32_t)n;
}

/* Makes and frees EACH of something, nine times over: the plugin's counts come back, and the host's blocks do not grow
 * by one and more for each. Bytes of malloc that do may be a driver's that keeps the last of what was freed: it is tried
 * again for longer, and a leak goes on. */
static void objects(kit *k, batch_fn batch, const char *what) {
  heddle_pstream *s = kit_stream(k, k->dev);
  const uint64_t start = kit_now_ms();
  growth g;
  char text[64];
  uint32_t span = 1;
  const numbers before = live(k);
  for (uint32_t i = 0; i < WARM; i++) batch(k, s);
  kit_sync(k, s);
  same_counts(k, before, what);
  grow(k, s, batch, span, what, &g);
  if (is_steady(g.heap, EACH * LEAK)) {
    span = long_span(k, kit_now_ms() - start);
    grow(k, s, batch, span, what, &g);
  }
  if (span == 1) snprintf(text, sizeof text, "%s", what);
  else snprintf(text, sizeof text, "%u times %s", (unsigned)span, what);
  flat(k, g.blocks, EACH / 2, "blocks of host.alloc", text);
  flat(k, g.threads, EACH / 2, "threads of the process", text);
  flat(k, g.files, EACH / 2, "open files of the process", text);
  flat(k, g.maps, EACH / 2, "mappings of the process", text);
  steady(k, g.mapped, EACH * 4, "KiB of mappings of the process", text);
  steady(k, g.heap, EACH * LEAK * span, "bytes of malloc", text);
  flat(k, g.resident, EACH * (BYTES / 1024) * 3 / 4, "resident KiB of the process", text);
  k->t.stream.close(s);
}

static void buffer_batch(kit *k, heddle_pstream *s) {
  heddle_pbuffer *all[EACH];
  for (uint32_t i = 0; i < EACH; i++) {
    all[i] = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
    kit_fill(k, s, all[i], 0, BYTES, i);
  }
  kit_sync(k, s);
  for (uint32_t i = 0; i < EACH; i++) kit_free(k, k->dev, all[i]);
}

static void buffers(kit *k) {
  objects(k, buffer_batch, "32 buffers");
}

static void page_batch(kit *k, heddle_pstream *s) {
  kit_pinned all[EACH];
  (void)s;
  for (uint32_t i = 0; i < EACH; i++) {
    all[i] = kit_pinned_new(k, k->dev, BYTES);
    memset(all[i].at, 1, BYTES);
  }
  for (uint32_t i = 0; i < EACH; i++) kit_pinned_free(k, &all[i]);
}

static void pages(kit *k) {
  objects(k, page_batch, "32 mapped buffers");
}

static void view_batch(kit *k, heddle_pstream *s) {
  const uint64_t step = k->desc.alignment > 256 ? k->desc.alignment : 256;
  heddle_pbuffer *parent = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, EACH * step), *all[EACH] = {NULL};
  (void)s;
  for (uint32_t i = 0; i < EACH; i++)
    kit_ok(k, k->t.memory.view(k->dev, parent, i * step, step, &all[i], &k->err), "memory.view");
  for (uint32_t i = 0; i < EACH; i++) kit_free(k, k->dev, all[i]);
  kit_free(k, k->dev, parent);
}

static void views(kit *k) {
  if ((k->desc.caps & HEDDLE_CAP_VIEWS) == 0 || k->t.memory.view == NULL) kit_skip(k, "the device has no views");
  objects(k, view_batch, "32 views");
}

static void stream_batch(kit *k, heddle_pstream *s) {
  heddle_pstream *all[EACH];
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  (void)s;
  for (uint32_t i = 0; i < EACH; i++) {
    all[i] = kit_stream(k, k->dev);
    kit_fill(k, all[i], x, i * 16, 16, i);
    kit_sync(k, all[i]);
  }
  for (uint32_t i = 0; i < EACH; i++) k->t.stream.close(all[i]);
  kit_free(k, k->dev, x);
}

static void streams(kit *k) {
  objects(k, stream_batch, "32 streams");
}

static void event_batch(kit *k, heddle_pstream *s) {
  heddle_pevent *all[EACH] = {NULL};
  for (uint32_t i = 0; i < EACH; i++) {
    kit_ok(k, k->t.event.create(k->dev, &all[i], &k->err), "event.create");
    kit_ok(k, k->t.event.record(all[i], s, &k->err), "event.record");
    kit_ok(k, k->t.event.wait(s, all[i], &k->err), "event.wait");
    kit_ok(k, k->t.event.record(all[i], s, &k->err), "event.record");
  }
  kit_sync(k, s);
  for (uint32_t i = 0; i < EACH; i++) k->t.event.free(all[i]);
}

static void events(kit *k) {
  objects(k, event_batch, "32 events");
}

static void signal_batch(kit *k, heddle_pstream *s) {
  heddle_pfence fence = kit_fence(k);
  for (uint32_t i = 1; i <= EACH; i++) kit_ok(k, k->t.fence.signal(s, fence, i, &k->err), "fence.signal");
  if (kit_fence_wait(k, fence, EACH, kit_patience_ms(k, 20000)) != HEDDLE_OK) kit_fail(k, "a fence was not signalled");
  kit_fence_free(k, fence);
}

static void signals(kit *k) {
  objects(k, signal_batch, "32 signals");
}

static void copy_batch(kit *k, heddle_pstream *s) {
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  uint8_t *data = kit_room(k, BYTES);
  for (uint32_t i = 0; i < EACH; i++) {
    kit_ok(k, k->t.copy.write(s, x, 0, data, BYTES, &k->err), "copy.write");
    kit_ok(k, k->t.copy.read(s, data, x, 0, BYTES, &k->err), "copy.read");
  }
  kit_sync(k, s);
  free(data);
  kit_free(k, k->dev, x);
}

static void copies(kit *k) {
  objects(k, copy_batch, "32 writes and reads");
}

static void graph_batch(kit *k, heddle_pstream *s) {
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  for (uint32_t i = 0; i < EACH; i++) {
    heddle_pgraph *graph = NULL;
    heddle_status status = k->t.capture.begin(s, &k->err);
    if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device has no captures: %s", k->err.text);
    kit_ok(k, status, "capture.begin");
    kit_fill(k, s, x, 0, BYTES, i);
    kit_ok(k, k->t.capture.end(s, &graph, &k->err), "capture.end");
    kit_ok(k, k->t.capture.replay(graph, s, &k->err), "capture.replay");
    kit_sync(k, s);
    k->t.capture.free(graph);
  }
  kit_free(k, k->dev, x);
}

static void graphs(kit *k) {
  if (!k->t.has_capture) kit_skip(k, "the plugin has no captures");
  objects(k, graph_batch, "32 captures");
}

static void timer_batch(kit *k, heddle_pstream *s) {
  heddle_ptimer *all[EACH] = {NULL};
  for (uint32_t i = 0; i < EACH; i++) {
    heddle_status status = k->t.timing.create(k->dev, 4, &all[i], &k->err);
    if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device has no timing: %s", k->err.text);
    kit_ok(k, status, "timing.create");
    kit_ok(k, k->t.timing.mark(s, all[i], 1, &k->err), "timing.mark");
  }
  kit_sync(k, s);
  for (uint32_t i = 0; i < EACH; i++) k->t.timing.free(all[i]);
}

static void timers(kit *k) {
  if (!k->t.has_timing) kit_skip(k, "the plugin has no timing");
  objects(k, timer_batch, "32 timers");
}

/* So many launches, each run so often. */
static void relu_batch(kit *k, heddle_pstream *s, uint32_t launches, uint32_t runs) {
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
  heddle_pbuffer *y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
  kit_relu_put(k, s, x, 1);
  for (uint32_t i = 0; i < launches; i++) {
    kit_relu relu = kit_relu_new(k, k->dev, k->index);
    heddle_plaunch *launch = kit_relu_bind(k, &relu, s, x, y);
    for (uint32_t j = 0; j < runs; j++) {
      kit_relu_run(k, launch);
      kit_sync(k, s);
    }
    k->t.op.launch_free(launch);
    kit_relu_free(k, &relu);
  }
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
}

static void launch_batch(kit *k, heddle_pstream *s) {
  relu_batch(k, s, EACH, 1);
}

static void run_batch(kit *k, heddle_pstream *s) {
  relu_batch(k, s, 1, EACH);
}

static void runs(kit *k) {
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  objects(k, run_batch, "32 runs of a launch");
}

static void launches(kit *k) {
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  objects(k, launch_batch, "32 ops and launches");
}

#define ON_DEVICE(name, promise, flags, run) \
  { "leaks/" name, promise, KIT_STAGE_DEVICE, flags, 60, run, NULL }

KIT_GROUP(kit_leaks, "leaks",
          ON_DEVICE("host-blocks", "no block of host.alloc is left when all is closed", 0, host_blocks),
          ON_DEVICE("after-failure", "no block is left after calls that failed for want of memory", 0, after_failure),
          ON_DEVICE("buffers", "buffers leave nothing behind", 0, buffers),
          ON_DEVICE("pages", "mapped buffers leave nothing behind", 0, pages),
          ON_DEVICE("views", "views leave nothing behind", 0, views),
          ON_DEVICE("streams", "streams leave nothing behind", 0, streams),
          ON_DEVICE("events", "events leave nothing behind", KIT_NOT_INLINE, events),
          ON_DEVICE("signals", "signals leave nothing behind", KIT_NOT_INLINE, signals),
          ON_DEVICE("copies", "writes and reads leave nothing behind", 0, copies),
          ON_DEVICE("graphs", "captures leave nothing behind", 0, graphs),
          ON_DEVICE("timers", "timers leave nothing behind", 0, timers),
          ON_DEVICE("launches", "ops and launches leave nothing behind", 0, launches),
          ON_DEVICE("runs", "runs leave nothing behind", 0, runs),
          {"leaks/devices", "opening and closing a device leaves no thread, file, mapping or memory behind",
           KIT_STAGE_DEVICE, KIT_LONG, 120, devices, NULL},
          {"leaks/instances", "opening and closing an instance leaves no thread, file, mapping or memory behind",
           KIT_STAGE_DEVICE, KIT_LONG, 120, instances, NULL});
