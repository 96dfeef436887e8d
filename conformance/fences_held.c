/* A completion that does not come: a stream waits for a fence that is not raised for now, or never. Cases of the group
 * "fences", for devices with fence.wait and HEDDLE_CAP_WAIT_BEFORE_SIGNAL. A call that blocks behind such a wait hangs
 * the case, which is its failure. */
#include "conformance/fences.h"

#include <inttypes.h>
#include <string.h>

enum { BYTES = 4096 };
#define SHORT_NS UINT64_C(30000000)

void kit_fences_held_query(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence fence = kit_hold(k, s);
  for (uint32_t i = 0; i < 20; i++) {
    heddle_status status = k->t.stream.query(s, &k->err);
    kit_fails(k, status, HEDDLE_EBUSY, HEDDLE_EBUSY, "stream.query of a stream that waits for a fence");
    kit_sleep_ms(1);
  }
  kit_release(k, fence);
  kit_sync(k, s);
  kit_ok(k, k->t.stream.query(s, &k->err), "stream.query after the fence was raised");
  kit_fence_free(k, fence);
  k->t.stream.close(s);
}

void kit_fences_held_sync(kit *k) {
  static const uint64_t limits[] = {0, 1, 1000000, SHORT_NS};
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence fence = kit_hold(k, s);
  for (uint32_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    heddle_status status = k->t.stream.sync(s, limits[i], &k->err);
    kit_fails(k, status, HEDDLE_ETIMEOUT, HEDDLE_ETIMEOUT, "stream.sync of a stream that waits for a fence");
  }
  kit_release(k, fence);
  kit_sync(k, s);
  kit_fence_free(k, fence);
  k->t.stream.close(s);
}

void kit_fences_held_idle(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence fence = kit_hold(k, s);
  heddle_status status = k->t.device.idle(k->dev, SHORT_NS, &k->err);
  kit_fails(k, status, HEDDLE_ETIMEOUT, HEDDLE_ETIMEOUT, "device.idle while a stream waits for a fence");
  status = k->t.device.idle(k->dev, 0, &k->err);
  kit_fails(k, status, HEDDLE_ETIMEOUT, HEDDLE_ETIMEOUT, "device.idle without time while a stream waits for a fence");
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health while a stream waits for a fence");
  kit_release(k, fence);
  kit_ok(k, k->t.device.idle(k->dev, KIT_FENCE_MS * 1000000, &k->err), "device.idle after the fence was raised");
  kit_ok(k, k->t.stream.query(s, &k->err), "stream.query after device.idle");
  kit_fence_free(k, fence);
  k->t.stream.close(s);
}

void kit_fences_held_calls(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned in = kit_pinned_new(k, k->dev, BYTES), out = kit_pinned_new(k, k->dev, BYTES);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence last = kit_fence(k);
  kit_pattern(in.at, BYTES, 1);
  kit_pinned_flush(k, &in);
  heddle_pfence fence = kit_hold(k, s), second = kit_hold(k, s);
  for (uint32_t i = 1; i <= 20; i++) {
    kit_fill(k, s, x, 0, BYTES, i);
    kit_h2d(k, s, x, 0, in.buffer, 0, BYTES);
    kit_d2d(k, s, y, 0, x, 0, BYTES);
    kit_d2h(k, s, out.buffer, 0, y, 0, BYTES);
    kit_submit(k, s);
    kit_signal(k, s, last, i);
  }
  if (kit_fence_value(k, last) != 0) kit_fail(k, "a signal came from a stream that waits for a fence");
  kit_release(k, fence);
  kit_release(k, second);
  kit_sync(k, s);
  kit_reached(k, last, 20, "the last signal of a stream that had waited");
  kit_pinned_invalidate(k, &out);
  kit_same(k, out.at, BYTES, 1, "what the copies of a stream that had waited brought");
  kit_fence_free(k, fence);
  kit_fence_free(k, second);
  kit_fence_free(k, last);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  kit_pinned_free(k, &in);
  kit_pinned_free(k, &out);
  k->t.stream.close(s);
}

void kit_fences_held_event(kit *k) {
  heddle_pstream *a = kit_stream(k, k->dev), *b = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pevent *event = NULL;
  kit_fill(k, a, x, 0, BYTES, 1);
  kit_sync(k, a);
  heddle_pfence fence = kit_hold(k, a);
  kit_ok(k, k->t.event.create(k->dev, &event, &k->err), "event.create");
  kit_ok(k, k->t.event.record(event, a, &k->err), "event.record behind a wait for a fence");
  kit_submit(k, a);
  kit_ok(k, k->t.event.wait(b, event, &k->err), "event.wait for a stream that waits for a fence");
  kit_fill(k, b, x, 0, BYTES, 2);
  heddle_status status = k->t.stream.sync(b, SHORT_NS, &k->err);
  kit_fails(k, status, HEDDLE_ETIMEOUT, HEDDLE_ETIMEOUT, "stream.sync behind another stream that waits for a fence");
  kit_release(k, fence);
  kit_sync(k, b);
  kit_sync(k, a);
  kit_words(k, b, x, 0, BYTES, 2, "work behind another stream that had waited for a fence");
  k->t.event.free(event);
  kit_fence_free(k, fence);
  kit_free(k, k->dev, x);
  k->t.stream.close(a);
  k->t.stream.close(b);
}

/* All else goes on: other streams with all they have, memory, new streams. */
void kit_fences_held_others(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev), *before = kit_stream(k, k->dev);
  heddle_pfence fence = kit_hold(k, s), own = kit_fence(k);
  heddle_pstream *after = kit_stream(k, k->dev);
  heddle_pstream *all[2] = {before, after};
  for (uint32_t i = 0; i < 2; i++) {
    heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
    kit_put_pattern(k, all[i], x, 0, BYTES, i);
    kit_holds(k, all[i], x, 0, BYTES, i, "bytes written by a stream beside one that waits");
    kit_signal(k, all[i], own, i + 1);
    kit_reached(k, own, i + 1, "a signal of a stream beside one that waits");
    kit_free(k, k->dev, x);
  }
  kit_release(k, fence);
  kit_sync(k, s);
  kit_fence_free(k, fence);
  kit_fence_free(k, own);
  k->t.stream.close(s);
  k->t.stream.close(before);
  k->t.stream.close(after);
}

void kit_fences_held_no_signal(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pfence fence = kit_hold(k, s), after = kit_fence(k);
  kit_signal(k, s, after, 1);
  if (kit_fence_wait(k, after, 1, 50) != HEDDLE_ETIMEOUT)
    kit_fail(k, "a fence was signalled while the work before it waits for another fence");
  kit_release(k, fence);
  kit_reached(k, after, 1, "a signal behind a wait that has ended");
  kit_sync(k, s);
  kit_fence_free(k, fence);
  kit_fence_free(k, after);
  k->t.stream.close(s);
}

void kit_fences_held_closed(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence fence = kit_hold(k, s), after = kit_fence(k);
  kit_fill(k, s, x, 0, BYTES, 6);
  kit_signal(k, s, after, 1);
  k->t.stream.close(s);
  heddle_pstream *next = kit_stream(k, k->dev);
  kit_put_pattern(k, next, x, 0, BYTES, 1); /* the new stream is not held by the old one */
  kit_release(k, fence);
  kit_reached(k, after, 1, "a signal of a stream that was closed while it waited");
  kit_ok(k, k->t.device.idle(k->dev, KIT_FENCE_MS * 1000000, &k->err), "device.idle after the fence was raised");
  kit_words(k, next, x, 0, BYTES, 6, "work of a stream that was closed while it waited");
  kit_fence_free(k, fence);
  kit_fence_free(k, after);
  kit_free(k, k->dev, x);
  k->t.stream.close(next);
}

/* The fence is never raised. The buffers go, the stream goes, the device is closed; the host lives on. */
void kit_fences_held_left(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pfence after = kit_fence(k);
  heddle_pfence fence = kit_hold(k, s);
  kit_fill(k, s, x, 0, BYTES, 7);
  kit_signal(k, s, after, 1);
  heddle_status status = k->t.device.idle(k->dev, SHORT_NS, &k->err);
  kit_fails(k, status, HEDDLE_ETIMEOUT, HEDDLE_ETIMEOUT, "device.idle while a stream waits for a fence");
  kit_free(k, k->dev, x); /* idle has failed: the plugin keeps the memory until it is safe */
  k->t.stream.close(s);
  kit_close(k, k->dev);
  heddle_pdevice *next = kit_open(k, k->index);
  heddle_pstream *fresh = kit_stream(k, next);
  heddle_pbuffer *y = kit_buffer(k, next, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_fill(k, fresh, y, 0, BYTES, 8);
  kit_words(k, fresh, y, 0, BYTES, 8, "work of a device opened again after one was left behind");
  kit_free(k, next, y);
  k->t.stream.close(fresh);
  kit_close(k, next);
  kit_fence_free(k, fence);
}
