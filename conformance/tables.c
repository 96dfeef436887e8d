/* What the cases of the tables share (tables.h): mapped memory, copies that may not be refused, held and spoilt streams. */
#include "conformance/tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/kit_side.h"

/* ---- memory that both sides see ---- */

kit_pinned kit_pinned_new(kit *k, heddle_pdevice *dev, uint64_t bytes) {
  kit_pinned page = {.dev = dev, .bytes = bytes};
  const heddle_pmemory_desc desc = {
      .struct_size = sizeof desc, .kind = HEDDLE_MEMORY_PINNED, .bytes = bytes, .align = 64};
  heddle_status status = k->t.memory.alloc(dev, &desc, &page.buffer, &k->err);
  if (status == HEDDLE_EUNSUPPORTED && kit_inline(k)) kit_skip(k, "the inline device has no PINNED memory");
  kit_ok(k, status, "memory.alloc of kind PINNED");
  page.at = kit_map(k, dev, page.buffer);
  return page;
}

void kit_pinned_free(kit *k, kit_pinned *page) {
  if (page->buffer != NULL && k->t.memory.unmap != NULL) k->t.memory.unmap(page->dev, page->buffer);
  kit_free(k, page->dev, page->buffer);
  page->buffer = NULL;
  page->at = NULL;
}

static bool coherent(const kit *k) {
  return (k->desc.caps & HEDDLE_CAP_NONCOHERENT) == 0;
}

void kit_pinned_flush(kit *k, const kit_pinned *page) {
  if (coherent(k)) return;
  if (k->t.memory.flush == NULL) kit_fail(k, "the device says NONCOHERENT, but memory.flush is NULL");
  kit_ok(k, k->t.memory.flush(page->dev, page->buffer, 0, page->bytes, &k->err), "memory.flush of a whole buffer");
}

void kit_pinned_invalidate(kit *k, const kit_pinned *page) {
  if (coherent(k)) return;
  if (k->t.memory.invalidate == NULL) kit_fail(k, "the device says NONCOHERENT, but memory.invalidate is NULL");
  kit_ok(k, k->t.memory.invalidate(page->dev, page->buffer, 0, page->bytes, &k->err),
         "memory.invalidate of a whole buffer");
}

/* ---- copies ---- */

void kit_h2d(kit *k, heddle_pstream *s, heddle_pbuffer *dst, uint64_t to, heddle_pbuffer *host, uint64_t from,
             uint64_t bytes) {
  kit_ok(k, k->t.copy.h2d(s, dst, to, host, from, bytes, &k->err), "copy.h2d");
}

void kit_d2h(kit *k, heddle_pstream *s, heddle_pbuffer *host, uint64_t to, heddle_pbuffer *src, uint64_t from,
             uint64_t bytes) {
  kit_ok(k, k->t.copy.d2h(s, host, to, src, from, bytes, &k->err), "copy.d2h");
}

void kit_d2d(kit *k, heddle_pstream *s, heddle_pbuffer *dst, uint64_t to, heddle_pbuffer *src, uint64_t from,
             uint64_t bytes) {
  kit_ok(k, k->t.copy.d2d(s, dst, to, src, from, bytes, &k->err), "copy.d2d");
}

static uint32_t repeated(uint32_t n) {
  return (n & 255) * UINT32_C(0x01010101);
}

void kit_fill(kit *k, heddle_pstream *s, heddle_pbuffer *dst, uint64_t to, uint64_t bytes, uint32_t n) {
  kit_ok(k, k->t.copy.fill(s, dst, to, bytes, repeated(n), &k->err), "copy.fill");
}

void kit_submit(kit *k, heddle_pstream *s) {
  kit_ok(k, k->t.stream.submit(s, &k->err), "stream.submit");
}

/* ---- what came of them ---- */

void kit_same(kit *k, const void *data, uint64_t bytes, uint32_t seed, const char *what) {
  uint64_t at = kit_compare(data, bytes, seed);
  if (at < bytes)
    kit_fail(k, "%s: byte %" PRIu64 " of %" PRIu64 " is 0x%02x, which is not what was put there", what, at, bytes,
             ((const uint8_t *)data)[at]);
}

void kit_holds(kit *k, heddle_pstream *s, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, uint32_t seed,
               const char *what) {
  void *data = kit_room(k, bytes);
  kit_get(k, s, buffer, offset, data, bytes);
  kit_same(k, data, bytes, seed, what);
  free(data);
}

void kit_put_pattern(kit *k, heddle_pstream *s, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                     uint32_t seed) {
  void *data = kit_room(k, bytes);
  kit_pattern(data, bytes, seed);
  kit_put(k, s, buffer, offset, data, bytes);
  free(data);
}

void kit_words(kit *k, heddle_pstream *s, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, uint32_t n,
               const char *what) {
  const uint32_t word = repeated(n);
  uint32_t *data = kit_room(k, bytes);
  kit_get(k, s, buffer, offset, data, bytes);
  for (uint64_t i = 0; i < bytes / 4; i++)
    if (data[i] != word)
      kit_fail(k, "%s: word %" PRIu64 " of %" PRIu64 " is 0x%08" PRIx32 " and should be 0x%08" PRIx32, what, i,
               bytes / 4, data[i], word);
  free(data);
}

void *kit_room(kit *k, uint64_t bytes) {
  void *p = calloc(1, bytes != 0 ? bytes : 1);
  if (p == NULL) kit_fail(k, "the kit itself has no memory for %" PRIu64 " bytes", bytes);
  return p;
}

/* ---- streams that stand still, streams that fail ---- */

bool kit_can_hold(const kit *k) {
  return k->t.fence.wait != NULL && (k->desc.caps & HEDDLE_CAP_WAIT_BEFORE_SIGNAL) != 0;
}

/* fence.wait; skips where the function is there and answers that the device cannot. */
static void wait_or_skip(kit *k, heddle_pstream *s, heddle_pfence fence) {
  if (k->t.fence.wait == NULL) kit_skip(k, "the plugin has no fence.wait");
  kit_trial(k, "fence_wait");
  heddle_status status = k->t.fence.wait(s, fence, 1, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device does not wait for fences: %s", k->err.text);
  kit_ok(k, status, "fence.wait");
}

heddle_pfence kit_hold(kit *k, heddle_pstream *s) {
  if (!kit_can_hold(k)) kit_skip(k, "the device does not wait for fences before they are signalled");
  heddle_pfence fence = kit_fence(k);
  wait_or_skip(k, s, fence);
  kit_submit(k, s);
  return fence;
}

void kit_release(kit *k, heddle_pfence fence) {
  kit_fence_raise(k, fence, 1);
}

/* The plugin asked for fail_on_fill: a fill with its word fails when the stream comes to it. */
static void spoil_by_hook(kit *k, heddle_pstream *s) {
  if (k->side->spoilt == NULL) k->side->spoilt = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 64);
  k->side->spoilt_of = k->dev;
  kit_ok(k, k->t.copy.fill(s, k->side->spoilt, 0, 64, KIT_FAIL_WORD, &k->err),
         "copy.fill with the word of fail_on_fill");
}

void kit_spoil(kit *k, heddle_pstream *s, const char *words) {
  if (k->t.fence.wait == NULL && k->side->running != NULL && (k->side->running->flags & KIT_FAILS) != 0) {
    if (!k->side->fail_asked)
      kit_skip(k, "the plugin has neither fence.wait nor the hook fail_on_fill (docs/plugin-guide.md)");
    spoil_by_hook(k, s);
    return;
  }
  heddle_pfence fence = kit_fence(k);
  kit_fence_break(k, fence, words);
  wait_or_skip(k, s, fence);
}

/* ---- other devices, live counts ---- */

heddle_pdevice *kit_sibling(kit *k, uint32_t *index) {
  for (uint32_t step = 1; step < k->n_devices; step++) {
    heddle_pdevice_desc desc = {.struct_size = sizeof desc};
    *index = (k->index + step) % k->n_devices;
    kit_ok(k, k->root.device_describe(k->instance, *index, &desc, &k->err), "device_describe of another device");
    if (desc.event_domain == k->desc.event_domain) return kit_open(k, *index);
  }
  kit_skip(k, "no other device has this one's event domain");
}

int64_t kit_live(kit *k, uint32_t key) {
  int64_t n = -1;
  heddle_status status = k->t.device.query(k->dev, key, &n, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "device.query has no number with key %" PRIu32, key);
  kit_ok(k, status, "device.query of a number of live objects");
  return n;
}
