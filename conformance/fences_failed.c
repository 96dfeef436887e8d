/* What a stream says and does between failed work and the sync that returns the failure, and afterwards. Cases of the group
 * "fences". */
#include "conformance/fences.h"

#include <string.h>

#include "conformance/kit_side.h"

enum { BYTES = 4096, SIGNALS = 3 };

/* Waits until query knows of the failure; gives its status. */
static heddle_status failure_of(kit *k, heddle_pstream *s) {
  const uint64_t end = kit_now_ms() + KIT_FENCE_MS;
  heddle_status status;
  (void)k->t.stream.submit(s, NULL); /* which may know of it already */
  while ((status = k->t.stream.query(s, &k->err)) == HEDDLE_EBUSY && kit_now_ms() < end) kit_sleep_ms(1);
  if (status == HEDDLE_OK || status == HEDDLE_EBUSY)
    kit_fail(k, "failed work: stream.query answers %s", kit_status_name(status));
  return status;
}

static void still_fails(kit *k, heddle_pstream *s, const char *after) {
  const heddle_status status = k->t.stream.query(s, &k->err);
  if (status == HEDDLE_OK)
    kit_fail(k, "%s ended a failure of the stream's work: stream.query answers HEDDLE_OK; only sync clears it", after);
}

static void sync_fails(kit *k, heddle_pstream *s, heddle_status expected) {
  const heddle_status status = k->t.stream.sync(s, KIT_FENCE_MS * 1000000, &k->err);
  kit_fails(k, status, expected, expected, "stream.sync after failed work, of which query gave this status,");
}

/* One status for one failure, and one that is not that of another answer. */
void kit_fences_failed_status(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence fence = kit_fence(k);
  kit_spoil(k, s, "the kit's own failure");
  const heddle_status status = failure_of(k, s);
  if (status == HEDDLE_ETIMEOUT || status == HEDDLE_EDEVICE || status == HEDDLE_ENEEDSOPEN ||
      status == HEDDLE_EUNSUPPORTED)
    kit_fail(k, "failed work: stream.query answers %s, which has another meaning", kit_status_name(status));
  if (k->t.stream.query(s, &k->err) != status)
    kit_fail(k, "failed work: stream.query gives two statuses for one failure");
  const heddle_status asked = k->t.fence.signal(s, fence, 1, &k->err);
  const heddle_status failed = kit_fence_wait(k, fence, 1, KIT_FENCE_MS);
  if (asked != HEDDLE_OK && asked != status)
    kit_fail(k, "failed work: stream.query gives %s, and fence.signal %s", kit_status_name(status),
             kit_status_name(asked));
  if (failed != status)
    kit_fail(k, "failed work: stream.query gives %s, and the fence of a signal behind it failed with %s",
             kit_status_name(status), kit_status_name(failed));
  sync_fails(k, s, status);
  kit_fence_free(k, fence);
  k->t.stream.close(s);
}

/* Every other call leaves the failure where it is. */
void kit_fences_failed_kept(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pevent *event = NULL;
  char bytes[64] = {0};
  kit_ok(k, k->t.event.create(k->dev, &event, &k->err), "event.create");
  kit_spoil(k, s, "the kit's own failure");
  const heddle_status status = failure_of(k, s);
  (void)k->t.stream.submit(s, &k->err);
  still_fails(k, s, "stream.submit");
  (void)k->t.copy.fill(s, x, 0, 64, 1, &k->err);
  (void)k->t.stream.submit(s, &k->err);
  kit_sleep_ms(5);
  if (k->t.stream.query(s, &k->err) == HEDDLE_OK)
    kit_fail(k, "later work ended a failure of the stream's work: stream.query answers HEDDLE_OK; only sync clears it");
  (void)k->t.copy.write(s, x, 0, bytes, sizeof bytes, &k->err);
  still_fails(k, s, "copy.write");
  (void)k->t.copy.read(s, bytes, x, 0, sizeof bytes, &k->err);
  still_fails(k, s, "copy.read");
  (void)k->t.event.record(event, s, &k->err);
  (void)k->t.stream.submit(s, &k->err);
  still_fails(k, s, "event.record");
  kit_ok(k, k->t.device.idle(k->dev, KIT_FENCE_MS * 1000000, &k->err), "device.idle after a stream failed");
  still_fails(k, s, "device.idle");
  sync_fails(k, s, status);
  k->t.event.free(event);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

void kit_fences_failed_signals(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence fences[SIGNALS];
  kit_spoil(k, s, "the kit's own failure");
  (void)failure_of(k, s);
  for (uint32_t i = 0; i < SIGNALS; i++) {
    fences[i] = kit_fence(k);
    (void)k->t.fence.signal(s, fences[i], 1, &k->err);
    const heddle_status status = kit_fence_wait(k, fences[i], 1, KIT_FENCE_MS);
    if (status == HEDDLE_OK || status == HEDDLE_ETIMEOUT)
      kit_fail(k, "of the signals between failed work and sync, number %u %s", (unsigned)i + 1,
               status == HEDDLE_OK ? "was a signal: each fails its fence" : "neither signalled nor failed its fence");
    if (kit_fence_words(k, fences[i])[0] == '\0') kit_fail(k, "host.fence_fail was called without words");
  }
  (void)k->t.stream.sync(s, KIT_FENCE_MS * 1000000, &k->err);
  heddle_pfence good = kit_fence(k);
  kit_signal(k, s, good, 1);
  kit_reached(k, good, 1, "a signal after the failure was given");
  for (uint32_t i = 0; i < SIGNALS; i++) kit_fence_free(k, fences[i]);
  kit_fence_free(k, good);
  k->t.stream.close(s);
}

/* After the sync the stream does all kinds of work as before. */
void kit_fences_failed_work(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev), *other = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES),
                 *y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_pinned in = kit_pinned_new(k, k->dev, BYTES), out = kit_pinned_new(k, k->dev, BYTES);
  heddle_pevent *event = NULL;
  kit_ok(k, k->t.event.create(k->dev, &event, &k->err), "event.create");
  for (uint32_t i = 1; i <= 3; i++) {
    kit_spoil(k, s, "the kit's own failure");
    sync_fails(k, s, failure_of(k, s));
    kit_pattern(in.at, BYTES, i);
    kit_pinned_flush(k, &in);
    kit_h2d(k, s, x, 0, in.buffer, 0, BYTES);
    kit_d2d(k, s, y, 0, x, 0, BYTES);
    kit_ok(k, k->t.event.record(event, s, &k->err), "event.record after the failure was given");
    kit_submit(k, s);
    kit_ok(k, k->t.event.wait(other, event, &k->err), "event.wait for a record after the failure was given");
    kit_d2h(k, other, out.buffer, 0, y, 0, BYTES);
    kit_sync(k, other);
    kit_pinned_invalidate(k, &out);
    kit_same(k, out.at, BYTES, i, "what a stream copied after the sync that gave its failure");
    kit_put_pattern(k, s, x, 0, BYTES, i + 100);
    kit_holds(k, s, x, 0, BYTES, i + 100, "what a stream wrote after the sync that gave its failure");
  }
  k->t.event.free(event);
  kit_pinned_free(k, &in);
  kit_pinned_free(k, &out);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  k->t.stream.close(s);
  k->t.stream.close(other);
}
