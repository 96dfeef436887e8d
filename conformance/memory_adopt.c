/* Memory taken by the vendor's handle: what native gives of one buffer, adopt makes another buffer of, with the same
 * bytes, for which the first must stay. Cases of the group "memory". */
#include "conformance/memory.h"

/* The vendor's handle of a buffer. */
static uint64_t native(kit *k, heddle_pbuffer *buffer) {
  uint64_t handle = 0;
  heddle_status status = k->t.memory.native(k->dev, buffer, &handle, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device gives no handles of the vendor's: %s", k->err.text);
  kit_ok(k, status, "memory.native");
  return handle;
}

static heddle_pbuffer *adopt(kit *k, uint64_t handle, uint64_t offset, uint64_t bytes) {
  heddle_pbuffer *out = NULL;
  if (k->t.memory.adopt == NULL) kit_skip(k, "the plugin has no memory.adopt");
  heddle_status status = k->t.memory.adopt(k->dev, handle, offset, bytes, &out, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device takes no memory of others: %s", k->err.text);
  kit_ok(k, status, "memory.adopt of what memory.native gave");
  if (out == NULL) kit_fail(k, "memory.adopt answered HEDDLE_OK and gave no buffer");
  return out;
}

static void needs_adopt(kit *k) {
  if (k->t.memory.adopt == NULL) kit_skip(k, "the plugin has no memory.adopt");
  if (k->t.memory.native == NULL)
    kit_fail(k, "the plugin has memory.adopt and no memory.native, whose handles it takes");
}

void kit_memory_adopt(kit *k) {
  enum { BYTES = 5001 };
  needs_adopt(k);
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *owner = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *one = adopt(k, native(k, owner), 0, BYTES), *two = adopt(k, native(k, owner), 0, BYTES);
  for (uint32_t i = 0; i < 4; i++) { /* each side sees what the other wrote */
    kit_put_pattern(k, s, owner, 0, BYTES, 3 * i);
    kit_holds(k, s, one, 0, BYTES, 3 * i, "an adopted buffer after a write to its owner's");
    kit_put_pattern(k, s, one, 0, BYTES, 3 * i + 1);
    kit_holds(k, s, owner, 0, BYTES, 3 * i + 1, "the owner's buffer after a write to the adopted one");
    kit_put_pattern(k, s, two, 0, BYTES, 3 * i + 2);
    kit_holds(k, s, one, 0, BYTES, 3 * i + 2, "the first of two adopted buffers after a write to the second");
  }
  kit_free(k, k->dev, one);
  heddle_pbuffer *again = adopt(k, native(k, two), 0, BYTES); /* its own handle is one too */
  kit_put_pattern(k, s, owner, 0, BYTES, 50);
  kit_holds(k, s, again, 0, BYTES, 50, "a buffer adopted by the handle of an adopted one");
  kit_free(k, k->dev, again);
  kit_free(k, k->dev, two);
  kit_free(k, k->dev, owner);
  k->t.stream.close(s);
}

void kit_memory_adopt_part(kit *k) {
  const uint64_t at = k->desc.alignment > 256 ? k->desc.alignment : 256, bytes = 3 * at, all = 6 * at;
  needs_adopt(k);
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *owner = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, all), *view = NULL;
  heddle_pbuffer *part = adopt(k, native(k, owner), 2 * at, bytes);
  kit_put_pattern(k, s, owner, 0, all, 1);
  kit_put_pattern(k, s, part, 0, bytes, 2);
  kit_holds(k, s, owner, 2 * at, bytes, 2, "the owner's bytes after a write to an adopted part");
  kit_put_pattern(k, s, owner, 2 * at, bytes, 3);
  kit_holds(k, s, part, 0, bytes, 3, "an adopted part after a write to the owner's bytes");
  if ((k->desc.caps & HEDDLE_CAP_VIEWS) != 0 && k->t.memory.view != NULL) { /* it is no view itself */
    kit_ok(k, k->t.memory.view(k->dev, part, at, at, &view, &k->err), "memory.view of an adopted buffer");
    kit_put_pattern(k, s, view, 0, at, 4);
    kit_holds(k, s, owner, 3 * at, at, 4, "the owner's bytes after a write to a view of an adopted part");
    kit_free(k, k->dev, view);
  }
  kit_free(k, k->dev, part);
  kit_free(k, k->dev, owner);
  k->t.stream.close(s);
}

void kit_memory_adopt_freed(kit *k) {
  enum { BYTES = 4096, N = 8 };
  needs_adopt(k);
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *owner = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES), *all[N];
  const uint64_t handle = native(k, owner);
  const int64_t buffers = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS), bytes = kit_live(k, HEDDLE_QUERY_LIVE_BYTES);
  kit_put_pattern(k, s, owner, 0, BYTES, 9);
  for (uint32_t i = 0; i < N; i++) all[i] = adopt(k, handle, 0, BYTES);
  int64_t more = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS) - buffers;
  if (more != N) kit_fail(k, "LIVE_BUFFERS grew by %lld with %d adopted buffers", (long long)more, (int)N);
  more = kit_live(k, HEDDLE_QUERY_LIVE_BYTES) - bytes;
  if (more != 0) kit_fail(k, "LIVE_BYTES grew by %lld with adopted buffers, whose bytes are others'", (long long)more);
  for (uint32_t i = 0; i < N; i++) {
    kit_free(k, k->dev, all[(i * 5 + 3) % N]);
    kit_holds(k, s, owner, 0, BYTES, 9, "the owner's buffer after an adopted one was freed");
  }
  more = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS) - buffers;
  if (more != 0) kit_fail(k, "LIVE_BUFFERS is off by %lld after adopted buffers were freed", (long long)more);
  more = kit_live(k, HEDDLE_QUERY_LIVE_BYTES) - bytes;
  if (more != 0) kit_fail(k, "LIVE_BYTES is off by %lld after adopted buffers were freed", (long long)more);
  heddle_pbuffer *again = adopt(k, handle, 0, BYTES);
  kit_holds(k, s, again, 0, BYTES, 9, "a buffer that was adopted once more");
  kit_free(k, k->dev, again);
  kit_free(k, k->dev, owner);
  k->t.stream.close(s);
}
