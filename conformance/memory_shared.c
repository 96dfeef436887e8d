/* Memory that two sides share: mappings (the host and the device), views (a buffer and its part), imports (the caller's
 * memory and the plugin's buffer). Cases of the group "memory". */
#include "conformance/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- mappings ---- */

void kit_memory_pinned(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned page = kit_pinned_new(k, k->dev, 10000);
  heddle_pbuffer *device = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 10000);
  kit_pattern(page.at, page.bytes, 1);
  kit_pinned_flush(k, &page);
  for (uint32_t i = 0; i < 8; i++) { /* the device works with it, and others come and go */
    kit_pinned other = kit_pinned_new(k, k->dev, 5000 + i);
    memset(other.at, 0x11, other.bytes);
    kit_h2d(k, s, device, 0, page.buffer, 0, page.bytes);
    kit_sync(k, s);
    kit_pinned_free(k, &other);
  }
  kit_same(k, page.at, page.bytes, 1, "a mapping after copies out of it");
  kit_d2h(k, s, page.buffer, 0, device, 0, page.bytes);
  kit_sync(k, s);
  kit_pinned_invalidate(k, &page);
  kit_same(k, page.at, page.bytes, 1, "the address that map gave, after a copy into the buffer");
  kit_free(k, k->dev, device);
  kit_pinned_free(k, &page);
  k->t.stream.close(s);
}

void kit_memory_host_writes(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned page = kit_pinned_new(k, k->dev, 4096);
  heddle_pbuffer *device = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  for (uint32_t i = 1; i <= 8; i++) {
    kit_pattern(page.at, page.bytes, i);
    kit_pinned_flush(k, &page);
    kit_h2d(k, s, device, 0, page.buffer, 0, page.bytes);
    kit_sync(k, s);
    kit_holds(k, s, device, 0, page.bytes, i, "a buffer after h2d of what the host wrote to the mapping");
  }
  kit_free(k, k->dev, device);
  kit_pinned_free(k, &page);
  k->t.stream.close(s);
}

void kit_memory_host_reads(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned page = kit_pinned_new(k, k->dev, 4096);
  heddle_pbuffer *device = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  for (uint32_t i = 1; i <= 8; i++) {
    kit_put_pattern(k, s, device, 0, page.bytes, i);
    kit_d2h(k, s, page.buffer, 0, device, 0, page.bytes);
    kit_sync(k, s);
    kit_pinned_invalidate(k, &page);
    kit_same(k, page.at, page.bytes, i, "the mapping after d2h");
  }
  kit_free(k, k->dev, device);
  kit_pinned_free(k, &page);
  k->t.stream.close(s);
}

/* Half of a page is the device's latest, the other half the host's; moving one half must leave the other alone. */
enum { HALF = 192 };

static void halves(kit *k, bool flush) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *device = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 2 * HALF);
  if (k->t.memory.flush == NULL || k->t.memory.invalidate == NULL)
    kit_skip(k, "the plugin has no flush and invalidate");
  kit_pinned page = kit_pinned_new(k, k->dev, 2 * HALF);
  memset(page.at, 0, page.bytes);
  kit_pinned_flush(k, &page);
  kit_put_pattern(k, s, device, 0, HALF, 21);
  kit_d2h(k, s, page.buffer, 0, device, 0, HALF);
  kit_sync(k, s);
  kit_pattern(page.at + HALF, HALF, 22);
  if (flush) {
    kit_ok(k, k->t.memory.flush(k->dev, page.buffer, HALF, HALF, &k->err), "memory.flush of half a buffer");
    kit_h2d(k, s, device, 0, page.buffer, 0, 2 * HALF);
    kit_holds(k, s, device, 0, HALF, 21, "bytes beside a flushed range, which the device wrote");
    kit_holds(k, s, device, HALF, HALF, 22, "a flushed range");
  } else {
    kit_ok(k, k->t.memory.invalidate(k->dev, page.buffer, 0, HALF, &k->err), "memory.invalidate of half a buffer");
    kit_same(k, page.at, HALF, 21, "an invalidated range");
    kit_same(k, page.at + HALF, HALF, 22, "bytes beside an invalidated range, which the host wrote");
  }
  kit_pinned_free(k, &page);
  kit_free(k, k->dev, device);
  k->t.stream.close(s);
}

void kit_memory_flush_range(kit *k) {
  halves(k, true);
}

void kit_memory_invalidate_range(kit *k) {
  halves(k, false);
}

void kit_memory_unified(kit *k) {
  if ((k->desc.caps & HEDDLE_CAP_UNIFIED) == 0) kit_skip(k, "the device has no UNIFIED memory");
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *device = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  kit_pinned page = {.dev = k->dev, .bytes = 4096};
  page.buffer = kit_buffer(k, k->dev, HEDDLE_MEMORY_UNIFIED, page.bytes);
  page.at = kit_map(k, k->dev, page.buffer);
  kit_pattern(page.at, page.bytes, 5);
  kit_pinned_flush(k, &page);
  kit_d2d(k, s, device, 0, page.buffer, 0, page.bytes);
  kit_holds(k, s, device, 0, page.bytes, 5, "a copy within the device of what the host wrote to UNIFIED memory");
  kit_put_pattern(k, s, device, 0, page.bytes, 6);
  kit_d2d(k, s, page.buffer, 0, device, 0, page.bytes);
  kit_sync(k, s);
  kit_pinned_invalidate(k, &page);
  kit_same(k, page.at, page.bytes, 6, "the mapping of UNIFIED memory after a copy within the device");
  kit_h2d(k, s, device, 0, page.buffer, 0, page.bytes);
  kit_holds(k, s, device, 0, page.bytes, 6, "h2d out of UNIFIED memory");
  kit_pinned_free(k, &page);
  kit_free(k, k->dev, device);
  k->t.stream.close(s);
}

/* ---- views ---- */

static uint64_t step(const kit *k) {
  return k->desc.alignment > 256 ? k->desc.alignment : 256;
}

static heddle_pbuffer *view(kit *k, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes) {
  heddle_pbuffer *out = NULL;
  if ((k->desc.caps & HEDDLE_CAP_VIEWS) == 0) kit_skip(k, "the device has no views (HEDDLE_CAP_VIEWS)");
  if (k->t.memory.view == NULL) kit_fail(k, "the device says HEDDLE_CAP_VIEWS, and memory.view is NULL");
  kit_ok(k, k->t.memory.view(k->dev, parent, offset, bytes, &out, &k->err), "memory.view");
  if (out == NULL) kit_fail(k, "memory.view answered HEDDLE_OK and gave no buffer");
  return out;
}

void kit_memory_view(kit *k) {
  const uint64_t at = step(k), bytes = 1000, all = 4 * at + bytes;
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *parent = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, all);
  heddle_pbuffer *part = view(k, parent, at, bytes), *first = view(k, parent, 0, all);
  kit_put_pattern(k, s, parent, at, bytes, 1);
  kit_holds(k, s, part, 0, bytes, 1, "a view of bytes written to the parent");
  kit_put_pattern(k, s, part, 0, bytes, 2);
  kit_holds(k, s, parent, at, bytes, 2, "the parent's bytes after a write to the view");
  kit_holds(k, s, first, at, bytes, 2, "a second view of the same bytes");
  kit_free(k, k->dev, part);
  kit_holds(k, s, parent, at, bytes, 2, "the parent's bytes after the view was freed");
  kit_free(k, k->dev, first);
  kit_free(k, k->dev, parent);
  k->t.stream.close(s);
}

void kit_memory_view_edges(kit *k) {
  const uint64_t at = step(k), bytes = 64, all = at + bytes + 512;
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *parent = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, all);
  heddle_pbuffer *part = view(k, parent, at, bytes), *other = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, bytes);
  uint8_t *expect = kit_room(k, all), *got = kit_room(k, all);
  kit_pattern(expect, all, 3);
  kit_put(k, s, parent, 0, expect, all);
  kit_put_pattern(k, s, other, 0, bytes, 4);
  kit_fill(k, s, part, 4, 8, 0x77);
  kit_d2d(k, s, part, 16, other, 0, bytes - 16);
  memset(expect + at + 4, 0x77, 8);
  kit_pattern(expect + at + 16, bytes - 16, 4);
  kit_get(k, s, parent, 0, got, all);
  for (uint64_t i = 0; i < all; i++)
    if (got[i] != expect[i])
      kit_fail(k,
               "byte %lld of the parent, seen from the view's first, is 0x%02x after copies into the view, not 0x%02x",
               (long long)i - (long long)at, got[i], expect[i]);
  free(expect);
  free(got);
  kit_free(k, k->dev, part);
  kit_free(k, k->dev, parent);
  kit_free(k, k->dev, other);
  k->t.stream.close(s);
}

/* A part of mapped memory, where there is one: copies through it are the parent's, and so is its address. */
void kit_memory_view_page(kit *k) {
  const uint64_t at = step(k), bytes = 1000, all = 3 * at + bytes;
  heddle_pbuffer *part = NULL;
  void *mapped = NULL;
  if ((k->desc.caps & HEDDLE_CAP_VIEWS) == 0 || k->t.memory.view == NULL)
    kit_skip(k, "the device has no views (HEDDLE_CAP_VIEWS)");
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned page = kit_pinned_new(k, k->dev, all);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, bytes);
  heddle_status status = k->t.memory.view(k->dev, page.buffer, at, bytes, &part, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "mapped memory has no views: %.500s", k->err.text);
  kit_ok(k, status, "memory.view of a buffer of kind PINNED");
  memset(page.at, 0, all);
  kit_pattern(page.at + at, bytes, 1);
  kit_pinned_flush(k, &page);
  kit_h2d(k, s, x, 0, part, 0, bytes);
  kit_holds(k, s, x, 0, bytes, 1, "h2d from a view of mapped memory");
  kit_put_pattern(k, s, x, 0, bytes, 2);
  kit_d2h(k, s, part, 0, x, 0, bytes);
  kit_sync(k, s);
  kit_pinned_invalidate(k, &page);
  kit_same(k, page.at + at, bytes, 2, "d2h to a view of mapped memory");
  if (k->t.memory.map(k->dev, part, &mapped, &k->err) == HEDDLE_OK) {
    if (mapped != page.at + at)
      kit_fail(k, "memory.map of a view at %" PRIu64 " gave another address than the parent's and %" PRIu64, at, at);
    k->t.memory.unmap(k->dev, part);
  }
  kit_free(k, k->dev, part);
  kit_free(k, k->dev, x);
  kit_pinned_free(k, &page);
  k->t.stream.close(s);
}

void kit_memory_view_many(kit *k) {
  enum { N = 32 };
  const uint64_t at = step(k);
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *parent = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, N * at), *all[N];
  for (uint32_t i = 0; i < N; i++) all[i] = view(k, parent, i * at, at);
  for (uint32_t i = 0; i < N; i++) kit_put_pattern(k, s, all[i], 0, at, i);
  for (uint32_t i = 0; i < N; i++) kit_holds(k, s, parent, i * at, at, i, "the bytes of one of many views");
  for (uint32_t i = 0; i < N; i++) kit_free(k, k->dev, all[(i * 5 + 3) % N]);
  for (uint32_t i = 0; i < N; i++) kit_holds(k, s, parent, i * at, at, i, "the parent after its views were freed");
  kit_free(k, k->dev, parent);
  k->t.stream.close(s);
}

void kit_memory_view_of_view(kit *k) {
  const uint64_t at = step(k);
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *parent = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4 * at), *part = view(k, parent, at, 2 * at);
  heddle_pbuffer *second = NULL;
  heddle_status status = k->t.memory.view(k->dev, part, at, at, &second, &k->err);
  if (status != HEDDLE_OK) kit_fails(k, status, HEDDLE_EINVAL, HEDDLE_EUNSUPPORTED, "memory.view of a view");
  kit_put_pattern(k, s, parent, 2 * at, at, 9);
  if (status == HEDDLE_OK) kit_holds(k, s, second, 0, at, 9, "a view of a view, which the plugin gave");
  kit_free(k, k->dev, second);
  kit_free(k, k->dev, part);
  kit_free(k, k->dev, parent);
  k->t.stream.close(s);
}

/* ---- imports ---- */

typedef struct import {
  void *block; /* as malloc gave it */
  uint8_t *at; /* the imported bytes, with guard bytes on both sides */
  uint64_t bytes, guard;
  heddle_pbuffer *buffer;
} import;

static import import_new(kit *k, uint64_t least) {
  const uint64_t align = k->desc.import_alignment;
import m = {0 };
  if (k->t.memory.import_host == NULL || align == 0) kit_skip(k, "the device imports no host memory");
  m.guard = align > 64 ? align : (64 + align - 1) / align * align;
  m.bytes = (least + align - 1) / align * align;
  m.block = kit_room(k, m.bytes + 2 * m.guard + align);
  m.at = m.block;
  m.at += (align - (uintptr_t)m.block % align) % align + m.guard;
  kit_pattern(m.at - m.guard, m.guard, 70);
  kit_pattern(m.at + m.bytes, m.guard, 71);
  kit_trial(k, "import_host");
  heddle_status status = k->t.memory.import_host(k->dev, m.at, m.bytes, &m.buffer, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device imports no host memory: %s", k->err.text);
  kit_ok(k, status, "memory.import_host at import_alignment");
  return m;
}

/* Fails, and makes the core not import with this driver, unless the bytes are the pattern. */
static void trusted(kit *k, const void *data, uint64_t bytes, uint32_t seed, const char *what) {
  if (kit_compare(data, bytes, seed) < bytes) kit_ability(k, "import_host", false);
  kit_same(k, data, bytes, seed, what);
}

void kit_memory_import(kit *k) {
  static const uint64_t least[] = {1, 4097, 1 << 20};
  heddle_pstream *s = kit_stream(k, k->dev);
  for (uint32_t i = 0; i < sizeof least / sizeof least[0]; i++) {
import m = import_new(k, least[i]);
    heddle_pbuffer *device = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, m.bytes);
    uint8_t *got = kit_room(k, m.bytes);
    for (uint32_t round = 0; round < 4; round++) { /* the host's writes are seen each time, and the device's too */
      kit_pattern(m.at, m.bytes, 2 * round);
      kit_h2d(k, s, device, 0, m.buffer, 0, m.bytes);
      kit_get(k, s, device, 0, got, m.bytes);
      trusted(k, got, m.bytes, 2 * round, "h2d out of imported memory");
      trusted(k, m.at, m.bytes, 2 * round, "imported memory after h2d out of it");
      kit_put_pattern(k, s, device, 0, m.bytes, 2 * round + 1);
      kit_d2h(k, s, m.buffer, 0, device, 0, m.bytes);
      kit_sync(k, s);
      trusted(k, m.at, m.bytes, 2 * round + 1, "imported memory after d2h into it");
    }
    kit_free(k, k->dev, m.buffer);
    kit_free(k, k->dev, device);
    free(got);
    free(m.block);
  }
  kit_ability(k, "import_host", true);
  k->t.stream.close(s);
}

void kit_memory_import_guards(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
import m = import_new(k, 5000);
  heddle_pbuffer *device = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, m.bytes);
  kit_put_pattern(k, s, device, 0, m.bytes, 8);
  kit_pattern(m.at, m.bytes, 7);
  kit_d2h(k, s, m.buffer, 0, device, 0, m.bytes);
  kit_sync(k, s);
  trusted(k, m.at - m.guard, m.guard, 70, "bytes before imported memory");
  trusted(k, m.at + m.bytes, m.guard, 71, "bytes behind imported memory");
  kit_pattern(m.at, m.bytes, 7);
  kit_d2h(k, s, m.buffer, m.bytes - 3, device, m.bytes - 3, 3); /* odd bytes at the end only */
  kit_sync(k, s);
  trusted(k, m.at, m.bytes - 3, 7, "imported memory before the part that was copied to");
  trusted(k, m.at + m.bytes, m.guard, 71, "bytes behind imported memory");
  kit_free(k, k->dev, m.buffer);
  trusted(k, m.at - m.guard, m.guard, 70, "bytes before imported memory after its buffer was freed");
  trusted(k, m.at + m.bytes, m.guard, 71, "bytes behind imported memory after its buffer was freed");
  kit_free(k, k->dev, device);
  free(m.block);
  k->t.stream.close(s);
}

void kit_memory_import_freed(kit *k) {
import m = import_new(k, 5000);
  kit_pattern(m.at, m.bytes, 9);
  for (uint32_t i = 0; i < 4; i++) { /* and again, as the same memory may be imported twice in a life */
    kit_free(k, k->dev, m.buffer);
    kit_same(k, m.at, m.bytes, 9, "imported memory after its buffer was freed");
    kit_pattern(m.at, m.bytes, 9);
    kit_ok(k, k->t.memory.import_host(k->dev, m.at, m.bytes, &m.buffer, &k->err), "memory.import_host once more");
  }
  kit_free(k, k->dev, m.buffer);
  kit_same(k, m.at, m.bytes, 9, "imported memory after its buffer was freed");
  free(m.block);
}

void kit_memory_view_counts(kit *k) {
  if ((k->desc.caps & HEDDLE_CAP_VIEWS) == 0 || k->t.memory.view == NULL) kit_skip(k, "the device has no views");
  heddle_pbuffer *parent = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 8192), *view = NULL;
  const int64_t buffers = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS), bytes = kit_live(k, HEDDLE_QUERY_LIVE_BYTES);
  kit_ok(k, k->t.memory.view(k->dev, parent, 0, 4096, &view, &k->err), "memory.view");
  int64_t more = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS) - buffers;
  if (more != 1) kit_fail(k, "LIVE_BUFFERS grew by %lld with a view; it counts buffers and views", (long long)more);
  more = kit_live(k, HEDDLE_QUERY_LIVE_BYTES) - bytes;
  if (more != 0) kit_fail(k, "LIVE_BYTES grew by %lld with a view, whose bytes are its parent's", (long long)more);
  kit_free(k, k->dev, view);
  more = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS) - buffers;
  if (more != 0) kit_fail(k, "LIVE_BUFFERS is off by %lld after a view was freed", (long long)more);
  kit_free(k, k->dev, parent);
}
