/* Streams that wait for fences, and failures that travel through them. Cases of the group "fences"; the first ones decide
 * whether the core may use fence.wait with the driver (the ability "fence_wait"). */
#include "conformance/fences.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { BYTES = 65536 };

/* fence.wait; skips where there is none. */
static void wait(kit *k, heddle_pstream *s, heddle_pfence fence, uint64_t value) {
  if (k->t.fence.wait == NULL) kit_skip(k, "the plugin has no fence.wait");
  kit_trial(k, "fence_wait");
  heddle_status status = k->t.fence.wait(s, fence, value, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device does not wait for fences: %s", k->err.text);
  kit_ok(k, status, "fence.wait");
}

/* Fails, and makes the core not use fence.wait with this driver, unless the buffer holds what kit_fill(n) writes. */
static void trusted(kit *k, heddle_pstream *s, heddle_pbuffer *b, uint32_t n, const char *what) {
  uint8_t ends[2] = {0};
  kit_get(k, s, b, 0, &ends[0], 1);
  kit_get(k, s, b, BYTES - 1, &ends[1], 1);
  if (ends[0] != (n & 255) || ends[1] != (n & 255)) kit_ability(k, "fence_wait", false);
  kit_words(k, s, b, 0, BYTES, n, what);
}

void kit_fences_wait_signalled(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence fence = kit_fence(k);
  kit_fence_raise(k, fence, 9);
  for (uint32_t i = 1; i <= 9; i += 4) {
    wait(k, s, fence, i);
    kit_fill(k, s, x, 0, BYTES, i);
    kit_sync(k, s);
    kit_words(k, s, x, 0, BYTES, i, "work behind a wait for a fence that was reached long ago");
  }
  kit_fence_free(k, fence);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

/* The signal is another stream's, submitted before the wait, as a host without HEDDLE_CAP_WAIT_BEFORE_SIGNAL does it. */
void kit_fences_wait_streams(kit *k) {
  heddle_pstream *a = kit_stream(k, k->dev), *b = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence fence = kit_fence(k);
  if (k->t.fence.wait == NULL) kit_skip(k, "the plugin has no fence.wait");
  for (uint32_t i = 1; i <= 40; i++) {
    kit_fill(k, b, y, 0, BYTES, 0);
    kit_fill(k, b, x, 0, BYTES, 0);
    kit_sync(k, b);
    kit_busy *work = i % 10 == 1 ? kit_busy_put(k, k->dev, a) : NULL;
    kit_fill(k, a, x, 0, BYTES, i);
    kit_signal(k, a, fence, i);
    wait(k, b, fence, i);
    kit_d2d(k, b, y, 0, x, 0, BYTES);
    kit_sync(k, b);
    trusted(k, b, y, i, "bytes that a stream copied behind a fence of another stream's");
    kit_sync(k, a);
    kit_busy_free(k, work);
  }
  kit_fence_free(k, fence);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  k->t.stream.close(a);
  k->t.stream.close(b);
}

/* ---- fences that a thread of the host raises ---- */

typedef struct raiser {
  kit *k;
  heddle_pfence fence;
  atomic_uint value; /* raise the fence to this; UINT32_MAX: end */
} raiser;

static void *raise_on_demand(void *arg) {
  raiser *r = arg;
  uint32_t done = 0;
  for (;;) {
    uint32_t value = atomic_load(&r->value);
    if (value == UINT32_MAX) return NULL;
    if (value == done) {
      kit_sleep_ms(0);
      continue;
    }
    done = value;
    kit_fence_raise(r->k, r->fence, value);
  }
}

/* The stream waits first; then the bytes that it will copy are put in place, and a thread raises the fence. A
 * stream that does not wait copies the bytes of the round before. This is how the core makes a device wait for another. */
void kit_fences_wait_ability(kit *k) {
  enum { ROUNDS = 200 };
  heddle_pstream *a = kit_stream(k, k->dev), *b = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  raiser r = {.k = k, .fence = kit_fence(k)};
  pthread_t thread;
  if (!kit_can_hold(k)) kit_skip(k, "the device does not wait for fences before they are signalled");
  kit_fill(k, a, x, 0, BYTES, 0);
  kit_sync(k, a);
  if (pthread_create(&thread, NULL, raise_on_demand, &r) != 0) kit_fail(k, "the kit itself has no thread");
  for (uint32_t i = 1; i <= ROUNDS; i++) {
    wait(k, b, r.fence, i);
    kit_d2d(k, b, y, 0, x, 0, BYTES);
    kit_submit(k, b);
    kit_fill(k, a, x, 0, BYTES, i);
    kit_sync(k, a);
    heddle_status status = k->t.stream.query(b, &k->err);
    if (status != HEDDLE_EBUSY) {
      kit_ability(k, "fence_wait", false);
      kit_fail(k, "a stream that waits for a fence at %" PRIu32 " answers %d to query while it is at %" PRIu64, i,
               (int)status, kit_fence_value(k, r.fence));
    }
    atomic_store(&r.value, i);
    kit_sync(k, b);
    trusted(k, b, y, i, "bytes that a stream copied behind a fence that the host raised after they were there");
  }
  atomic_store(&r.value, UINT32_MAX);
  pthread_join(thread, NULL);
  kit_ability(k, "fence_wait", true);
  kit_fence_free(k, r.fence);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  k->t.stream.close(a);
  k->t.stream.close(b);
}

void kit_fences_wait_value(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence fence = kit_fence(k);
  if (!kit_can_hold(k)) kit_skip(k, "the device does not wait for fences before they are signalled");
  wait(k, s, fence, 10);
  kit_submit(k, s);
  kit_fence_raise(k, fence, 9);
  heddle_status status = k->t.stream.sync(s, 30000000, &k->err);
  kit_fails(k, status, HEDDLE_ETIMEOUT, HEDDLE_ETIMEOUT, "stream.sync over a wait for 10 on a fence that is at 9");
  kit_fence_raise(k, fence, UINT64_C(0x500000000));
  kit_sync(k, s);
  wait(k, s, fence, UINT64_C(0x900000005));
  kit_submit(k, s);
  kit_fence_raise(k, fence, UINT64_C(0x600000000));
  status = k->t.stream.sync(s, 30000000, &k->err);
  kit_fails(k, status, HEDDLE_ETIMEOUT, HEDDLE_ETIMEOUT,
            "stream.sync over a wait for 0x900000005 on a fence that is at 0x600000000");
  kit_fence_raise(k, fence, UINT64_C(0x900000005));
  kit_sync(k, s);
  kit_fence_free(k, fence);
  k->t.stream.close(s);
}

/* ---- failures ---- */

/* query reports a failure each time, and changes nothing. */
static void query_fails(kit *k, heddle_pstream *s, const char *what) {
  const uint64_t end = kit_now_ms() + KIT_FENCE_MS;
  heddle_status status;
  (void)k->t.stream.submit(s, NULL); /* which may know of the failure already */
  while ((status = k->t.stream.query(s, &k->err)) == HEDDLE_EBUSY && kit_now_ms() < end) kit_sleep_ms(1);
  for (uint32_t i = 0; i < 2; i++) {
    if (status == HEDDLE_OK)
      kit_fail(k, "%s: stream.query answered HEDDLE_OK before a sync had given the failure", what);
    if (status == HEDDLE_EBUSY) kit_fail(k, "%s: stream.query answers HEDDLE_EBUSY on and on", what);
    status = k->t.stream.query(s, &k->err);
  }
}

/* sync of a stream that must have failed; gives the status. */
static heddle_status must_fail(kit *k, heddle_pstream *s, const char *what) {
  heddle_status status = k->t.stream.sync(s, KIT_FENCE_MS * 1000000, &k->err);
  if (status == HEDDLE_OK) kit_fail(k, "%s: stream.sync answered HEDDLE_OK", what);
  if (status == HEDDLE_ETIMEOUT) kit_fail(k, "%s: the stream did not end", what);
  kit_fails(k, status, status, status, what);
  return status;
}

void kit_fences_failed(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_fill(k, s, x, 0, BYTES, 1);
  kit_sync(k, s);
  kit_spoil(k, s, "the kit's own failure");
  kit_fill(k, s, x, 0, BYTES, 2);
  query_fails(k, s, "a wait for a fence that has failed");
  must_fail(k, s, "a wait for a fence that has failed");
  kit_words(k, s, x, 0, BYTES, 1, "memory that only work behind a failed wait would have written");
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

void kit_fences_fails_later(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence fence = kit_hold(k, s), after = kit_fence(k);
  kit_signal(k, s, after, 1);
  kit_fence_break(k, fence, "the kit's own failure");
  heddle_status status = kit_fence_wait(k, after, 1, KIT_FENCE_MS);
  if (status == HEDDLE_OK) kit_fail(k, "a signal behind a wait that failed was a signal");
  if (status == HEDDLE_ETIMEOUT) kit_fail(k, "a fence behind a wait that failed got neither a signal nor a failure");
  must_fail(k, s, "a wait for a fence that failed in the meantime");
  kit_fence_free(k, fence);
  kit_fence_free(k, after);
  k->t.stream.close(s);
}

/* A failure goes from a fence through a stream to another fence, through that to another stream, and so on. */
void kit_fences_failed_signal(kit *k) {
  enum { N = 4 };
  const uint32_t row = k->t.fence.wait != NULL ? N : 1; /* without waits the first stream's fence alone */
  heddle_pstream *all[N];
  heddle_pfence fences[N];
  for (uint32_t i = 0; i < row; i++) all[i] = kit_stream(k, k->dev), fences[i] = kit_fence(k);
  kit_spoil(k, all[0], "the kit's own failure");
  for (uint32_t i = 0; i < row; i++) {
    if (i != 0) wait(k, all[i], fences[i - 1], 1);
    heddle_status status = k->t.fence.signal(all[i], fences[i], 1, &k->err); /* may know of the failure already */
    if (status != HEDDLE_OK) kit_fails(k, status, status, status, "fence.signal behind failed work");
  }
  for (uint32_t i = 0; i < row; i++) {
    heddle_status status = kit_fence_wait(k, fences[i], 1, KIT_FENCE_MS);
    if (status == HEDDLE_OK) kit_fail(k, "fence %" PRIu32 " in a row behind failed work was signalled", i + 1);
    if (status == HEDDLE_ETIMEOUT) kit_fail(k, "fence %" PRIu32 " in a row behind failed work was never failed", i + 1);
    kit_text(k, kit_fence_words(k, fences[i]), 1016, "the text of host.fence_fail");
    if (kit_fence_words(k, fences[i])[0] == '\0') kit_fail(k, "host.fence_fail was called without words");
  }
  for (uint32_t i = 0; i < row; i++) {
    must_fail(k, all[i], "a stream of a row behind failed work");
    kit_fence_free(k, fences[i]);
    k->t.stream.close(all[i]);
  }
}

void kit_fences_failed_once(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence after = kit_fence(k);
  for (uint32_t i = 1; i <= 3; i++) {
    kit_spoil(k, s, "the kit's own failure");
    query_fails(k, s, "failed work");
    must_fail(k, s, "failed work");
    kit_ok(k, k->t.stream.sync(s, KIT_FENCE_MS * 1000000, &k->err), "stream.sync after the one that gave the failure");
    kit_ok(k, k->t.stream.query(s, &k->err), "stream.query after the failure was given");
    kit_fill(k, s, x, 0, BYTES, i);
    kit_signal(k, s, after, i);
    kit_reached(k, after, i, "a signal after the failure was given");
    kit_words(k, s, x, 0, BYTES, i, "work after the failure was given");
  }
  kit_fence_free(k, after);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

void kit_fences_failed_alone(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev), *other = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence fence = kit_fence(k);
  kit_spoil(k, s, "the kit's own failure");
  kit_submit(k, s);
  kit_fill(k, other, x, 0, BYTES, 4);
  kit_signal(k, other, fence, 1);
  kit_reached(k, fence, 1, "a signal of a stream beside one that failed");
  kit_words(k, other, x, 0, BYTES, 4, "work of a stream beside one that failed");
  must_fail(k, s, "a wait for a fence that has failed");
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health after a stream failed");
  kit_ok(k, k->t.device.idle(k->dev, KIT_FENCE_MS * 1000000, &k->err), "device.idle after a stream failed");
  if (kit_faults(k) != 0) kit_fail(k, "host.device_fault was called for a stream that failed");
  kit_fence_free(k, fence);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
  k->t.stream.close(other);
}
