/* Copies between two devices of a plugin: the direct path, and host memory that one of them allocated. Cases of the
 * group "copy". */
#include "conformance/copy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void kit_copy_can_peer(kit *k) {
  if (k->t.copy.can_peer == NULL) kit_skip(k, "the plugin has no direct path between devices");
  for (uint32_t other = 0; other < k->n_devices; other++) {
    if (other == k->index) continue;
    heddle_status first = k->t.copy.can_peer(k->instance, k->index, other, &k->err);
    if (first != HEDDLE_OK)
      kit_fails(k, first, HEDDLE_EUNSUPPORTED, HEDDLE_EUNSUPPORTED, "copy.can_peer of two devices that are not open");
    for (uint32_t i = 0; i < 3; i++)
      if (k->t.copy.can_peer(k->instance, k->index, other, &k->err) != first)
        kit_fail(k, "copy.can_peer from device %" PRIu32 " to %" PRIu32 " does not answer the same each time", other,
                 k->index);
  }
}

/* The first other device with a direct path to and from the one under test, opened. */
static heddle_pdevice *partner(kit *k) {
  if (k->t.copy.can_peer == NULL || k->t.copy.peer == NULL)
    kit_skip(k, "the plugin has no direct path between devices");
  for (uint32_t step = 1; step < k->n_devices; step++) {
    uint32_t other = (k->index + step) % k->n_devices;
    if (k->t.copy.can_peer(k->instance, k->index, other, &k->err) == HEDDLE_OK &&
        k->t.copy.can_peer(k->instance, other, k->index, &k->err) == HEDDLE_OK) {
      heddle_pdevice *dev = kit_open(k, other);
      kit_trial(k, "peer");
      return dev;
    }
  }
  kit_skip(k, "no two devices have a direct path: %s", k->err.text);
}

typedef struct end {
  heddle_pdevice *dev;
  heddle_pstream *s;
  heddle_pbuffer *buffer;
} end;

static end end_new(kit *k, heddle_pdevice *dev, uint64_t bytes) {
  return (end){dev, kit_stream(k, dev), kit_buffer(k, dev, HEDDLE_MEMORY_DEVICE, bytes)};
}

static void end_free(kit *k, end *e) {
  kit_free(k, e->dev, e->buffer);
  k->t.stream.close(e->s);
}

/* One copy with guard bytes; via is the stream that does it. */
static void cross(kit *k, end *dst, end *src, heddle_pstream *via, uint64_t to, uint64_t from, uint64_t bytes,
                  uint32_t seed) {
  const uint64_t to_area = to + bytes + 64, from_area = from + bytes + 64;
  uint8_t *expect = kit_room(k, to_area), *source = kit_room(k, from_area), *got = kit_room(k, to_area + from_area);
  kit_pattern(source, from_area, seed);
  kit_put(k, src->s, src->buffer, 0, source, from_area);
  kit_pattern(expect, to_area, seed + 1000);
  kit_put(k, dst->s, dst->buffer, 0, expect, to_area);
  memcpy(expect + to, source + from, bytes);
  kit_ok(k, k->t.copy.peer(via, dst->dev, dst->buffer, to, src->dev, src->buffer, from, bytes, &k->err), "copy.peer");
  kit_sync(k, via);
  kit_get(k, dst->s, dst->buffer, 0, got, to_area);
  for (uint64_t i = 0; i < to_area; i++) {
    if (got[i] == expect[i]) continue;
    kit_ability(k, "peer", false);
    kit_fail(k,
             "after copy.peer of %" PRIu64 " bytes from offset %" PRIu64 " to offset %" PRIu64 ", byte %" PRIu64
             " of the destination is 0x%02x and should be 0x%02x",
             bytes, from, to, i, got[i], expect[i]);
  }
  kit_get(k, src->s, src->buffer, 0, got, from_area);
  if (memcmp(got, source, from_area) != 0) {
    kit_ability(k, "peer", false);
    kit_fail(k, "copy.peer of %" PRIu64 " bytes changed its source", bytes);
  }
  free(expect);
  free(source);
  free(got);
}

void kit_copy_peer(kit *k) {
  static const uint64_t sizes[] = {0, 1, 3, 4, 5, 255, 256, 257, 4095, 4096, 4097, (1 << 20) + 5};
  heddle_pdevice *other = partner(k);
  end here = end_new(k, k->dev, (1 << 20) + 200), there = end_new(k, other, (1 << 20) + 200);
  for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    cross(k, &there, &here, here.s, 1, 3, sizes[i], i);
    cross(k, &here, &there, here.s, 13, 0, sizes[i], i + 100);
    cross(k, &here, &there, here.s, 0, 0, sizes[i], i + 200);
  }
  end_free(k, &here);
  end_free(k, &there);
  kit_close(k, other);
  kit_ability(k, "peer", true);
}

void kit_copy_peer_streams(kit *k) {
  heddle_pdevice *other = partner(k);
  end here = end_new(k, k->dev, 70000), there = end_new(k, other, 70000);
  heddle_pstream *via[2] = {here.s, there.s};
  for (uint32_t i = 0; i < 8; i++) {
    cross(k, i % 2 == 0 ? &there : &here, i % 2 == 0 ? &here : &there, via[i / 2 % 2], 5, 9, 65537, i);
  }
  end_free(k, &here);
  end_free(k, &there);
  kit_close(k, other);
}

void kit_copy_host_of_other(kit *k) {
  uint32_t index;
  heddle_pdevice *other = kit_sibling(k, &index);
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned in = kit_pinned_new(k, other, 5003), out = kit_pinned_new(k, other, 5003);
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 5003);
  for (uint32_t i = 0; i < 4; i++) {
    kit_pattern(in.at, in.bytes, i);
    kit_pinned_flush(k, &in);
    kit_h2d(k, s, b, 0, in.buffer, 0, in.bytes);
    kit_d2h(k, s, out.buffer, 0, b, 0, in.bytes);
    kit_sync(k, s);
    kit_pinned_invalidate(k, &out);
    kit_same(k, out.at, out.bytes, i, "what was copied between host memory of another device");
  }
  kit_free(k, k->dev, b);
  kit_pinned_free(k, &in);
  kit_pinned_free(k, &out);
  k->t.stream.close(s);
  kit_close(k, other);
}
