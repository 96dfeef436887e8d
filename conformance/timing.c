/* The group "timing": marks of the device's clock, and how that goes with the host's. No bound here is about how fast
 * anything is: only about order, and about two clocks that count the same time. */
#include "conformance/tables.h"

#include <inttypes.h>

enum { BYTES = 65536 };

static heddle_ptimer *timer_new(kit *k, uint32_t slots) {
  heddle_ptimer *timer = NULL;
  if (!k->t.has_timing) kit_skip(k, "the plugin has no timing");
  heddle_status status = k->t.timing.create(k->dev, slots, &timer, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device has no timing: %s", k->err.text);
  kit_ok(k, status, "timing.create");
  if (timer == NULL) kit_fail(k, "timing.create answered HEDDLE_OK and gave no timer");
  return timer;
}

static void mark(kit *k, heddle_pstream *s, heddle_ptimer *timer, uint32_t slot) {
  kit_ok(k, k->t.timing.mark(s, timer, slot, &k->err), "timing.mark");
}

static void slots(kit *k) {
  enum { N = 8 };
  heddle_ptimer *timer = timer_new(k, N);
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  uint64_t ns[N] = {0}, part[2] = {0};
  for (uint32_t i = 0; i < N; i++) {
    kit_fill(k, s, x, 0, BYTES, i);
    mark(k, s, timer, i);
  }
  kit_sync(k, s);
  kit_ok(k, k->t.timing.read(timer, 0, N, ns, &k->err), "timing.read of all slots after sync");
  for (uint32_t i = 1; i < N; i++)
    if (ns[i] < ns[i - 1])
      kit_fail(k, "slot %" PRIu32 " was marked after slot %" PRIu32 " in one stream, and is %" PRIu64 " ns earlier", i,
               i - 1, ns[i - 1] - ns[i]);
  kit_ok(k, k->t.timing.read(timer, 3, 2, part, &k->err), "timing.read of slots in the middle");
  if (part[0] != ns[3] || part[1] != ns[4]) kit_fail(k, "timing.read of slots 3 and 4 gives other times than of all");
  k->t.timing.free(timer);
  k->t.timing.free(NULL);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

static void marked_again(kit *k) {
  heddle_ptimer *timer = timer_new(k, 2);
  heddle_pstream *s = kit_stream(k, k->dev);
  uint64_t last = 0;
  for (uint32_t i = 0; i < 6; i++) {
    uint64_t ns[2] = {0};
    mark(k, s, timer, 0);
    mark(k, s, timer, 1);
    kit_sync(k, s);
    kit_ok(k, k->t.timing.read(timer, 0, 2, ns, &k->err), "timing.read");
    if (ns[0] < last || ns[1] < ns[0]) kit_fail(k, "a slot that was marked again has a time before its last one");
    last = ns[1];
  }
  k->t.timing.free(timer);
  k->t.stream.close(s);
}

/* Work that takes a while lies between two marks. */
static void spans(kit *k) {
  heddle_ptimer *timer = timer_new(k, 2);
  heddle_pstream *s = kit_stream(k, k->dev);
  uint64_t ns[2] = {0}, before = k->host.now_ns(k->host.ctx);
  mark(k, s, timer, 0);
  kit_busy *work = kit_busy_put(k, k->dev, s);
  mark(k, s, timer, 1);
  kit_sync(k, s);
  uint64_t host = k->host.now_ns(k->host.ctx) - before;
  kit_ok(k, k->t.timing.read(timer, 0, 2, ns, &k->err), "timing.read");
  if (ns[1] <= ns[0]) kit_fail(k, "two marks round rows of large copies have the same time");
  if (ns[1] - ns[0] > 2 * host + 10000000)
    kit_fail(k, "two marks are %" PRIu64 " ns of the device apart, and all of it took %" PRIu64 " ns of the host",
             ns[1] - ns[0], host);
  kit_busy_free(k, work);
  k->t.timing.free(timer);
  k->t.stream.close(s);
}

static void unfinished(kit *k) {
  heddle_ptimer *timer = timer_new(k, 1);
  heddle_pstream *s = kit_stream(k, k->dev);
  uint64_t ns = 0;
  heddle_pfence fence = kit_can_hold(k) ? kit_hold(k, s) : 0;
  kit_busy *work = fence == 0 ? kit_busy_put(k, k->dev, s) : NULL;
  mark(k, s, timer, 0);
  kit_submit(k, s);
  heddle_status status = k->t.timing.read(timer, 0, 1, &ns, &k->err);
  if (status != HEDDLE_OK) kit_fails(k, status, status, status, "timing.read of a slot that is not reached yet");
  else if (fence != 0) kit_fail(k, "timing.read gave a time for a slot behind work that has not begun");
  if (fence != 0) kit_release(k, fence);
  kit_sync(k, s);
  kit_ok(k, k->t.timing.read(timer, 0, 1, &ns, &k->err), "timing.read after sync, of a slot read too early before");
  if (fence != 0) kit_fence_free(k, fence);
  kit_busy_free(k, work);
  k->t.timing.free(timer);
  k->t.stream.close(s);
}

/* One clock for all streams: marks that were made one after the other, the host waiting between, are in order. */
static void one_clock(kit *k) {
  heddle_ptimer *timer = timer_new(k, 12), *other = timer_new(k, 12);
  heddle_pstream *all[3] = {kit_stream(k, k->dev), kit_stream(k, k->dev), kit_stream(k, k->dev)};
  uint64_t last = 0;
  for (uint32_t i = 0; i < 12; i++) {
    heddle_ptimer *t = i % 2 == 0 ? timer : other;
    uint64_t ns = 0;
    mark(k, all[i % 3], t, i);
    kit_sync(k, all[i % 3]);
    kit_ok(k, k->t.timing.read(t, i, 1, &ns, &k->err), "timing.read");
    if (ns < last)
      kit_fail(k, "a mark on another stream is %" PRIu64 " ns before one that was reached before it began", last - ns);
    last = ns;
  }
  k->t.timing.free(timer);
  k->t.timing.free(other);
  for (uint32_t i = 0; i < 3; i++) k->t.stream.close(all[i]);
}

typedef struct moment {
  uint64_t device, host;
} moment;

static moment calibrate(kit *k) {
  moment m = {0};
  if (!k->t.has_timing) kit_skip(k, "the plugin has no timing");
  heddle_status status = k->t.timing.calibrate(k->dev, &m.device, &m.host, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device's clock cannot be compared: %s", k->err.text);
  kit_ok(k, status, "timing.calibrate");
  return m;
}

/* The two clocks of calibrate count the same time. A reading may be interrupted for long between the two, so the case
 * tries with ever longer spans before it fails. */
static void rate(kit *k) {
  uint64_t device = 0, host = 0;
  for (uint64_t ms = 50; ms <= 1600; ms *= 2) {
    moment a = calibrate(k);
    kit_sleep_ms(ms);
    moment b = calibrate(k);
    if (b.host <= a.host || b.device <= a.device) kit_fail(k, "a clock of timing.calibrate went back or stood still");
    device = b.device - a.device;
    host = b.host - a.host;
    if (device / 2 <= host && host / 2 <= device) return;
  }
  kit_fail(
      k, "by timing.calibrate, the device's clock went on by %" PRIu64 " ns while the host's went on by %" PRIu64 " ns",
      device, host);
}

/* The host's side is host.now_ns, taken during the call. */
static void host_clock(kit *k) {
  const uint64_t slack = 1000000;
  uint64_t before = k->host.now_ns(k->host.ctx);
  moment m = calibrate(k);
  uint64_t after = k->host.now_ns(k->host.ctx);
  if (m.host + slack < before || m.host > after + slack)
    kit_fail(k,
             "timing.calibrate gives a host time of %" PRIu64 ", and was called from %" PRIu64 " to %" PRIu64
             " of host.now_ns",
             m.host, before, after);
}

/* The marks of streams are of the clock that calibrate reads. */
static void marks_between(kit *k) {
  const uint64_t slack = 10000000;
  heddle_ptimer *timer = timer_new(k, 1);
  heddle_pstream *s = kit_stream(k, k->dev);
  for (uint32_t i = 0; i < 3; i++) {
    uint64_t ns = 0;
    moment before = calibrate(k);
    mark(k, s, timer, 0);
    kit_sync(k, s);
    moment after = calibrate(k);
    kit_ok(k, k->t.timing.read(timer, 0, 1, &ns, &k->err), "timing.read");
    if (ns + slack < before.device || ns > after.device + slack)
      kit_fail(k,
               "a mark is at %" PRIu64 " ns of the device, and was made between %" PRIu64 " and %" PRIu64
               " by timing.calibrate",
               ns, before.device, after.device);
  }
  k->t.timing.free(timer);
  k->t.stream.close(s);
}

static void recorded(kit *k) {
  heddle_ptimer *timer = timer_new(k, 2);
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pgraph *graph = NULL;
  uint64_t ns[2] = {0}, last = 0;
  if (!k->t.has_capture) kit_skip(k, "the plugin has no captures");
  heddle_status status = k->t.capture.begin(s, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device has no captures: %s", k->err.text);
  kit_ok(k, status, "capture.begin");
  status = k->t.timing.mark(s, timer, 0, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device makes no marks in captures: %s", k->err.text);
  kit_ok(k, status, "timing.mark in a capture");
  kit_fill(k, s, x, 0, BYTES, 1);
  mark(k, s, timer, 1);
  kit_ok(k, k->t.capture.end(s, &graph, &k->err), "capture.end");
  for (uint32_t i = 0; i < 3; i++) {
    kit_ok(k, k->t.capture.replay(graph, s, &k->err), "capture.replay");
    kit_sync(k, s);
    kit_ok(k, k->t.timing.read(timer, 0, 2, ns, &k->err), "timing.read of marks in a capture");
    if (ns[1] < ns[0] || ns[0] < last) kit_fail(k, "the marks of a replay are not after those of the one before");
    last = ns[1];
  }
  k->t.capture.free(graph);
  k->t.timing.free(timer);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

static void counted(kit *k) {
  int64_t before = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS);
  heddle_ptimer *timer = timer_new(k, 4);
  int64_t more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 1) kit_fail(k, "LIVE_OBJECTS grew by %lld with one timer", (long long)more);
  k->t.timing.free(timer);
  more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 0) kit_fail(k, "LIVE_OBJECTS is off by %lld after a timer was freed", (long long)more);
}

static void required(kit *k) {
  const heddle_timing_table *t = &k->t.timing;
  if (!k->t.has_timing) kit_skip(k, "the plugin has no timing");
  if (t->free == NULL || t->create == NULL || t->mark == NULL || t->read == NULL || t->calibrate == NULL)
    kit_fail(k, "the plugin has timing, and one of timing.free, create, mark, read and calibrate is NULL");
}

#define ON_DEVICE(name, promise, run) \
  { "timing/" name, promise, KIT_STAGE_DEVICE, 0, 60, run, NULL }

KIT_GROUP(kit_timing, "timing",
          {"timing/required", "a plugin that has timing has the whole table", KIT_STAGE_ENTRY, 0, 0, required, NULL},
          ON_DEVICE("slots", "marks of a stream are in the order of the stream, each in its slot", slots),
          ON_DEVICE("marked-again", "a slot that is marked again has its last time", marked_again),
          ON_DEVICE("spans", "work between two marks takes time, and no more than all of it did", spans),
          ON_DEVICE("unfinished", "read gives slots whose work has finished, and no others", unfinished),
          ON_DEVICE("one-clock", "a device has one clock for all its streams", one_clock),
          ON_DEVICE("rate", "the device's clock counts nanoseconds, as the host's does", rate),
          ON_DEVICE("host-clock", "calibrate reads the host's clock, host.now_ns", host_clock),
          ON_DEVICE("marks-between", "marks are of the clock that calibrate reads", marks_between),
          ON_DEVICE("recorded", "a mark in a capture is made with each replay", recorded),
          ON_DEVICE("counts", "LIVE_OBJECTS follows create and free", counted));
