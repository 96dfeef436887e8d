/* The group "fences": signals come once, after the work before them, and never too early; and what a slow or a gone host
 * means to the plugin. Cases about fence.wait are in fences_wait.c and fences_held.c. */
#include "conformance/streams.h"
#include "conformance/fences.h"

#include <inttypes.h>
#include <string.h>

enum { BYTES = 65536 };

void kit_signal(kit *k, heddle_pstream *s, heddle_pfence fence, uint64_t value) {
  kit_ok(k, k->t.fence.signal(s, fence, value, &k->err), "fence.signal");
}

void kit_reached(kit *k, heddle_pfence fence, uint64_t value, const char *what) {
  heddle_status status = kit_fence_wait(k, fence, value, KIT_FENCE_MS);
  if (status == HEDDLE_OK) return;
  if (status == HEDDLE_ETIMEOUT)
    kit_fail(k, "%s: the fence was not signalled to %" PRIu64 " within %g s; it is at %" PRIu64, what, value,
             (double)KIT_FENCE_MS / 1000, kit_fence_value(k, fence));
  kit_fail(k, "%s: the fence has failed: %s", what, kit_fence_words(k, fence));
}

/* The bytes of the work before the signal are there when the fence is reached. */
void kit_fences_after_work(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned page = kit_pinned_new(k, k->dev, BYTES);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence fence = kit_fence(k);
  for (uint32_t i = 1; i <= 4; i++) {
    memset(page.at, 0, BYTES);
    kit_pinned_flush(k, &page);
    kit_put_pattern(k, s, x, 0, BYTES, i);
    kit_busy *work = kit_busy_put(k, k->dev, s);
    kit_d2h(k, s, page.buffer, 0, x, 0, BYTES);
    kit_signal(k, s, fence, i);
    kit_reached(k, fence, i, "fence.signal behind work");
    kit_pinned_invalidate(k, &page);
    kit_same(k, page.at, BYTES, i, "what d2h had brought when the fence behind it was reached");
    kit_sync(k, s);
    kit_busy_free(k, work);
  }
  kit_fence_free(k, fence);
  kit_free(k, k->dev, x);
  kit_pinned_free(k, &page);
  k->t.stream.close(s);
}

static void empty_stream(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence fence = kit_fence(k);
  kit_signal(k, s, fence, 5);
  kit_reached(k, fence, 5, "fence.signal in a stream without work");
  if (kit_fence_value(k, fence) != 5) kit_fail(k, "a fence signalled to 5 is at %" PRIu64, kit_fence_value(k, fence));
  kit_fence_free(k, fence);
  k->t.stream.close(s);
}

/* signal submits what is before it, so no other call has to. */
static void submits(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence fence = kit_fence(k);
  for (uint32_t i = 1; i <= 8; i++) {
    kit_fill(k, s, x, 0, BYTES, i);
    kit_signal(k, s, fence, i);
    kit_reached(k, fence, i, "fence.signal, which submits");
  }
  kit_words(k, s, x, 0, BYTES, 8, "work before a signal");
  kit_fence_free(k, fence);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

static void once(kit *k) {
  enum { N = 16 };
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence fences[N];
  for (uint32_t i = 0; i < N; i++) {
    fences[i] = kit_fence(k);
    kit_fill(k, s, x, 0, BYTES, i);
    kit_signal(k, s, fences[i], 1);
  }
  for (uint32_t i = 0; i < N; i++) kit_reached(k, fences[i], 1, "one of many fences");
  kit_sync(k, s);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
  kit_close_all(k); /* whatever comes has come after this */
  for (uint32_t i = 0; i < N; i++)
    if (kit_fence_signals(k, fences[i]) != 1)
      kit_fail(k, "the plugin called for a fence %" PRIu32 " times, for one fence.signal",
               kit_fence_signals(k, fences[i]));
}

/* Each signal brings its own value and its own fence. */
static void values(kit *k) {
  enum { N = 64 };
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence a = kit_fence(k), b = kit_fence(k);
  for (uint64_t i = 1; i <= N; i++) {
    kit_signal(k, s, a, i);
    if (i % 8 == 0) kit_signal(k, s, b, i * UINT64_C(0x100000001));
  }
  kit_reached(k, a, N, "the last of a row of signals");
  kit_reached(k, b, N * UINT64_C(0x100000001), "a fence signalled to a value of more than 32 bits");
  if (kit_fence_value(k, a) != N) kit_fail(k, "a fence signalled to 64 at most is at %" PRIu64, kit_fence_value(k, a));
  if (kit_fence_value(k, b) != N * UINT64_C(0x100000001))
    kit_fail(k, "a fence signalled to 0x4000000040 at most is at 0x%" PRIx64, kit_fence_value(k, b));
  kit_fence_free(k, a);
  kit_fence_free(k, b);
  k->t.stream.close(s);
}

/* A fence is not raised by the signal of another stream, which may be long done. */
static void own_stream(kit *k) {
  heddle_pstream *a = kit_stream(k, k->dev), *b = kit_stream(k, k->dev);
  kit_pinned page = kit_pinned_new(k, k->dev, BYTES);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence first = kit_fence(k), second = kit_fence(k);
  memset(page.at, 0, BYTES);
  kit_pinned_flush(k, &page);
  kit_put_pattern(k, a, x, 0, BYTES, 2);
  kit_busy *work = kit_busy_put(k, k->dev, a);
  kit_d2h(k, a, page.buffer, 0, x, 0, BYTES);
  kit_signal(k, a, first, 1);
  kit_signal(k, b, second, 1);
  kit_reached(k, second, 1, "a signal beside a busy stream");
  kit_reached(k, first, 1, "a signal behind busy work");
  kit_pinned_invalidate(k, &page);
  kit_same(k, page.at, BYTES, 2, "what d2h had brought when the fence of its own stream was reached");
  kit_sync(k, a);
  kit_busy_free(k, work);
  kit_fence_free(k, first);
  kit_fence_free(k, second);
  kit_free(k, k->dev, x);
  kit_pinned_free(k, &page);
  k->t.stream.close(a);
  k->t.stream.close(b);
}

static void many_streams(kit *k) {
  enum { N = 12, TURNS = 20 };
  heddle_pstream *all[N];
  heddle_pfence fences[N];
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, N * 4096);
  for (uint32_t i = 0; i < N; i++) all[i] = kit_stream(k, k->dev), fences[i] = kit_fence(k);
  for (uint32_t turn = 1; turn <= TURNS; turn++)
    for (uint32_t i = 0; i < N; i++) {
      kit_fill(k, all[i], x, i * UINT64_C(4096), 4096, turn * 100 + i);
      kit_signal(k, all[i], fences[i], turn);
    }
  for (uint32_t i = 0; i < N; i++) kit_reached(k, fences[N - 1 - i], TURNS, "a fence of one of 12 streams");
  for (uint32_t i = 0; i < N; i++) {
    kit_words(k, all[i], x, i * UINT64_C(4096), 4096, TURNS * 100 + i, "what one of 12 streams filled");
    kit_fence_free(k, fences[i]);
    k->t.stream.close(all[i]);
  }
  kit_free(k, k->dev, x);
}

/* The host forgets the fence before the stream gets to it. */
static void gone(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  for (uint32_t i = 1; i <= 4; i++) {
    heddle_pfence lost = kit_fence(k), kept = kit_fence(k);
    kit_busy *work = kit_busy_put(k, k->dev, s);
    kit_signal(k, s, lost, 1);
    kit_fence_free(k, lost);
    kit_fill(k, s, x, 0, BYTES, i);
    kit_signal(k, s, kept, 1);
    kit_reached(k, kept, 1, "a signal behind one whose fence is gone");
    kit_sync(k, s);
    kit_busy_free(k, work);
    kit_fence_free(k, kept);
  }
  kit_words(k, s, x, 0, BYTES, 4, "work behind a signal whose fence is gone");
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

/* A stream is closed as soon as its signal has been called for. */
static void closed(kit *k) {
  heddle_pfence fence = kit_fence(k);
  for (uint32_t i = 1; i <= 8; i++) {
    heddle_pstream *s = kit_stream(k, k->dev);
    kit_busy *work = i == 4 ? kit_busy_put(k, k->dev, s) : NULL;
    kit_signal(k, s, fence, i);
    k->t.stream.close(s);
    kit_reached(k, fence, i, "a signal of a stream that was closed over it");
    kit_ok(k, k->t.device.idle(k->dev, UINT64_C(20000000000), &k->err), "device.idle");
    kit_busy_free(k, work);
  }
  kit_fence_free(k, fence);
}

/* ---- a host that takes its time in fence_signal ---- */

static void slow_signal(void *ctx, heddle_pfence fence, uint64_t value) {
  const kit *k = ctx;
  kit_sleep_ms(50);
  k->host.fence_signal(ctx, fence, value);
}

/* An instance of its own, over a host whose signals take 50 ms: all that was begun comes to an end. */
static void slow_host(kit *k) {
  enum { N = 3, TURNS = 3 };
  heddle_host host = k->host;
  heddle_pstream *all[N], *beside;
  heddle_pfence fences[N];
  host.fence_signal = slow_signal;
  kit_close_all(k);
  kit_ok(k, k->root.open_instance(&host, &k->instance, &k->err), "open_instance after all was closed");
  k->dev = kit_open(k, k->index);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096), *y;
  for (uint32_t i = 0; i < N; i++) all[i] = kit_stream(k, k->dev), fences[i] = kit_fence(k);
  beside = kit_stream(k, k->dev);
  for (uint32_t turn = 1; turn <= TURNS; turn++) {
    for (uint32_t i = 0; i < N; i++) kit_signal(k, all[i], fences[i], turn);
    y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096); /* the other calls go on meanwhile */
    kit_fill(k, beside, x, 0, 4096, turn);
    kit_d2d(k, beside, y, 0, x, 0, 4096);
    kit_words(k, beside, y, 0, 4096, turn, "work of another stream while the host is slow to take signals");
    kit_free(k, k->dev, y);
  }
  for (uint32_t i = 0; i < N; i++) kit_reached(k, fences[i], TURNS, "a signal that the host is slow to take");
  for (uint32_t i = 0; i < N; i++) kit_sync(k, all[i]), k->t.stream.close(all[i]);
  k->t.stream.close(beside);
  kit_free(k, k->dev, x);
  kit_close_all(k);
}

static void required(kit *k) {
  if (kit_inline(k)) kit_skip(k, "an inline device needs no fences");
  if (k->t.fence.signal == NULL) kit_fail(k, "fence.signal is required of a device that is not inline");
  if ((k->desc.caps & HEDDLE_CAP_WAIT_BEFORE_SIGNAL) != 0 && k->t.fence.wait == NULL)
    kit_fail(k, "the device says HEDDLE_CAP_WAIT_BEFORE_SIGNAL, and fence.wait is NULL");
}

#define ON_DEVICE(name, promise, flags, run) \
  { "fences/" name, promise, KIT_STAGE_DEVICE, KIT_NOT_INLINE | (flags), 60, run, NULL }

KIT_GROUP(
    kit_fences, "fences",
    {"fences/required", "signal is there, except of an inline device; wait where the device says so",
     KIT_STAGE_INSTANCE, 0, 0, required, NULL},
    ON_DEVICE("signal-after-work", "a fence is reached when the work before it is done, and its bytes are there", 0,
              kit_fences_after_work),
    ON_DEVICE("signal-empty", "a stream without work signals too, to the value that was asked", 0, empty_stream),
    ON_DEVICE("signal-submits", "signal submits", 0, submits),
    ON_DEVICE("signal-once", "one fence.signal is one call of the host's", 0, once),
    ON_DEVICE("signal-values", "each signal brings its own value to its own fence", 0, values),
    ON_DEVICE("signal-own-stream", "a fence is not raised by another stream's end", 0, own_stream),
    ON_DEVICE("signal-streams", "many streams signal at once", 0, many_streams),
    ON_DEVICE("fence-gone", "a fence that the host has freed harms nothing", 0, gone),
    ON_DEVICE("stream-gone", "the signal of a stream that is closed over it still comes", 0, closed),
    ON_DEVICE("slow-host", "a host that is slow in fence_signal does not stop what else the device does", 0, slow_host),
    ON_DEVICE("host-inside", "calls that do not block go on while a plugin is inside the host's fence_signal", 0,
              kit_fences_inside),
    ON_DEVICE("wait-signalled", "a wait for a fence that is reached holds nothing back", 0, kit_fences_wait_signalled),
    ON_DEVICE("wait-streams", "later work starts when the fence of another stream's is reached", 0,
              kit_fences_wait_streams),
    ON_DEVICE("wait-host", "later work starts when the host raises the fence, and not before, time after time", 0,
              kit_fences_wait_ability),
    ON_DEVICE("wait-value", "a wait is for its value, not for a smaller one", 0, kit_fences_wait_value),
    ON_DEVICE("failed", "a wait for a failed fence fails the stream", 0, kit_fences_failed),
    ON_DEVICE("fails-later", "a fence that fails while a stream waits for it fails the stream", 0,
              kit_fences_fails_later),
    ON_DEVICE("failed-signal", "behind failed work a signal becomes fence_fail, so that a failure reaches waiters",
              KIT_FAILS, kit_fences_failed_signal),
    ON_DEVICE("failed-once", "sync gives a failure once, and the stream is usable again", KIT_FAILS,
              kit_fences_failed_once),
    ON_DEVICE("failed-alone", "a failed stream leaves other streams and the device alone", KIT_FAILS,
              kit_fences_failed_alone),
    ON_DEVICE("failed-status", "query, signal and sync give one status for one failure", KIT_FAILS,
              kit_fences_failed_status),
    ON_DEVICE("failed-kept", "only sync clears a failure", KIT_FAILS, kit_fences_failed_kept),
    ON_DEVICE("failed-signals", "every signal between failed work and that sync fails its fence", KIT_FAILS,
              kit_fences_failed_signals),
    ON_DEVICE("failed-work", "after the sync that gave a failure the stream works as before", KIT_FAILS,
              kit_fences_failed_work),
    ON_DEVICE("held-query", "query is HEDDLE_EBUSY over a wait that has no end", 0, kit_fences_held_query),
    ON_DEVICE("held-sync", "sync is HEDDLE_ETIMEOUT over a wait that has no end", 0, kit_fences_held_sync),
    ON_DEVICE("held-idle", "device.idle is HEDDLE_ETIMEOUT over a wait that has no end", 0, kit_fences_held_idle),
    ON_DEVICE("held-calls", "copies, submit, signal and wait do not block behind a wait that has no end", 0,
              kit_fences_held_calls),
    ON_DEVICE("held-event", "events behind a wait hold other streams until it ends", 0, kit_fences_held_event),
    ON_DEVICE("held-others", "streams beside one that waits go on", 0, kit_fences_held_others),
    ON_DEVICE("held-early", "no signal comes while the work before it waits", 0, kit_fences_held_no_signal),
    ON_DEVICE("held-closed", "a stream may be closed while it waits, and ends when the fence comes", 0,
              kit_fences_held_closed),
    {"fences/held-left", "close of a device whose work never ends returns", KIT_STAGE_DEVICE,
     KIT_NOT_INLINE | KIT_LEAVES, 60, kit_fences_held_left, NULL});
