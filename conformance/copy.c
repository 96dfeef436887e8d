/* The group "copy": the copies of one device move the right bytes, at any size and offset, and no others; and what each
 * promises for the moment that it returns. Copies between devices are in copy_peer.c. */
#include "conformance/streams.h"
#include "conformance/copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 77, MOST = (1 << 20) + 5, AREA = MOST + 2 * GUARD };

/* ---- one copy between two places with guard bytes ---- */

typedef enum place { POINTER, PAGE, DEVICE } place;

/* Where the bytes come from or go to: a buffer, or memory of the kit's. */
typedef struct side {
  place where;
  kit_pinned page;
  heddle_pbuffer *device;
  uint8_t *pointer;
} side;

static side side_new(kit *k, place where) {
  side at = {.where = where};
  if (where == POINTER) at.pointer = kit_room(k, AREA);
  else if (where == PAGE) at.page = kit_pinned_new(k, k->dev, AREA);
  else at.device = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, AREA);
  return at;
}

static void side_free(kit *k, side *at) {
  free(at->pointer);
  if (at->where == PAGE) kit_pinned_free(k, &at->page);
  if (at->where == DEVICE) kit_free(k, k->dev, at->device);
}

static void side_set(kit *k, heddle_pstream *s, side *at, const void *data, uint64_t bytes) {
  if (at->where == DEVICE) {
    kit_put(k, s, at->device, 0, data, bytes);
    return;
  }
  memcpy(at->where == PAGE ? at->page.at : at->pointer, data, bytes);
  if (at->where == PAGE) kit_pinned_flush(k, &at->page);
}

static void side_get(kit *k, heddle_pstream *s, side *at, void *data, uint64_t bytes) {
  if (at->where == DEVICE) {
    kit_get(k, s, at->device, 0, data, bytes);
    return;
  }
  if (at->where == PAGE) kit_pinned_invalidate(k, &at->page);
  memcpy(data, at->where == PAGE ? at->page.at : at->pointer, bytes);
}

static void move(kit *k, heddle_pstream *s, side *dst, uint64_t to, side *src, uint64_t from, uint64_t bytes) {
  heddle_error *err = &k->err;
  heddle_status status;
  if (src->where == POINTER) status = k->t.copy.write(s, dst->device, to, src->pointer + from, bytes, err);
  else if (src->where == PAGE) status = k->t.copy.h2d(s, dst->device, to, src->page.buffer, from, bytes, err);
  else if (dst->where == POINTER) status = k->t.copy.read(s, dst->pointer + to, src->device, from, bytes, err);
  else if (dst->where == PAGE) status = k->t.copy.d2h(s, dst->page.buffer, to, src->device, from, bytes, err);
  else status = k->t.copy.d2d(s, dst->device, to, src->device, from, bytes, err);
  if (status != HEDDLE_OK) kit_refused(k, status);
  if (status != HEDDLE_OK)
    kit_fail(k, "a copy of %" PRIu64 " bytes from offset %" PRIu64 " to offset %" PRIu64 " was refused: %s", bytes,
             from, to, k->err.text);
}

/* Fails where a byte of the area is not as it was (outside the copied range) or not as copied (inside). */
static void check(kit *k, const uint8_t *got, const uint8_t *expect, uint64_t area, uint64_t to, uint64_t bytes,
                  uint64_t from, const char *whose) {
  for (uint64_t i = 0; i < area; i++) {
    if (got[i] == expect[i]) continue;
    kit_fail(k,
             "after a copy of %" PRIu64 " bytes from offset %" PRIu64 " to offset %" PRIu64 ", byte %" PRIu64
             " of the %s is 0x%02x and should be 0x%02x",
             bytes, from, to, i, whose, got[i], expect[i]);
  }
}

static void moves(kit *k, place from_where, place to_where) {
  static const uint64_t sizes[] = {0, 1, 3, 4, 5, 255, 256, 257, 4095, 4096, 4097, 1 << 20, MOST};
  static const uint64_t offsets[][2] = {{0, 0}, {1, 3}, {4, 0}, {0, 13}, {63, 64}}; /* to, from */
  heddle_pstream *s = kit_stream(k, k->dev);
  side src = side_new(k, from_where), dst = side_new(k, to_where);
  uint8_t *before = kit_room(k, AREA), *expect = kit_room(k, AREA), *got = kit_room(k, AREA);
  for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (uint32_t j = 0; j < sizeof offsets / sizeof offsets[0]; j++) {
      const uint64_t bytes = sizes[i], to = offsets[j][0], from = offsets[j][1];
      const uint64_t to_area = to + bytes + GUARD, from_area = from + bytes + GUARD;
      if (bytes >= 1 << 20 && j > 1) continue;
      kit_pattern(before, from_area, 2 * j + 1);
      side_set(k, s, &src, before, from_area);
      kit_pattern(expect, to_area, 2 * j + 2);
      side_set(k, s, &dst, expect, to_area);
      memcpy(expect + to, before + from, bytes);
      move(k, s, &dst, to, &src, from, bytes);
      kit_sync(k, s);
      side_get(k, s, &dst, got, to_area);
      check(k, got, expect, to_area, to, bytes, from, "destination");
      side_get(k, s, &src, got, from_area);
      check(k, got, before, from_area, to, bytes, from, "source");
    }
  free(before);
  free(expect);
  free(got);
  side_free(k, &src);
  side_free(k, &dst);
  k->t.stream.close(s);
}

static void writes(kit *k) {
  moves(k, POINTER, DEVICE);
}

static void reads(kit *k) {
  moves(k, DEVICE, POINTER);
}

void kit_copy_h2d(kit *k) {
  moves(k, PAGE, DEVICE);
}

void kit_copy_d2h(kit *k) {
  moves(k, DEVICE, PAGE);
}

static void d2d(kit *k) {
  moves(k, DEVICE, DEVICE);
}

static void d2d_within(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 9000);
  uint8_t *expect = kit_room(k, 9000), *got = kit_room(k, 9000);
  kit_pattern(expect, 9000, 1);
  kit_put(k, s, b, 0, expect, 9000);
  kit_d2d(k, s, b, 4500, b, 3, 4001);
  kit_d2d(k, s, b, 8, b, 4600, 100);
  memcpy(expect + 4500, expect + 3, 4001);
  memcpy(expect + 8, expect + 4600, 100);
  kit_get(k, s, b, 0, got, 9000);
  for (uint64_t i = 0; i < 9000; i++)
    if (got[i] != expect[i])
      kit_fail(k, "byte %" PRIu64 " is wrong after copies from one part of a buffer to another", i);
  free(expect);
  free(got);
  kit_free(k, k->dev, b);
  k->t.stream.close(s);
}

static void fills(kit *k) {
  static const uint64_t sizes[] = {0, 4, 8, 12, 252, 256, 260, 4092, 4096, 4100, 1 << 20, (1 << 20) + 4};
  static const uint32_t words[] = {0, UINT32_MAX, 0x01020304, 0xDEADBEEF, 0x000000FF};
  heddle_pstream *s = kit_stream(k, k->dev);
  side dst = side_new(k, DEVICE);
  uint8_t *expect = kit_room(k, AREA), *got = kit_room(k, AREA);
  for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (uint32_t j = 0; j < sizeof words / sizeof words[0]; j++) {
      const uint64_t to = j * UINT64_C(4), area = to + sizes[i] + GUARD;
      if (sizes[i] >= 1 << 20 && j != 2) continue;
      kit_pattern(expect, area, j);
      kit_put(k, s, dst.device, 0, expect, area);
      for (uint64_t at = to; at < to + sizes[i]; at += 4) memcpy(expect + at, &words[j], 4);
      kit_ok(k, k->t.copy.fill(s, dst.device, to, sizes[i], words[j], &k->err), "copy.fill");
      kit_get(k, s, dst.device, 0, got, area);
      for (uint64_t at = 0; at < area; at++)
        if (got[at] != expect[at])
          kit_fail(k,
                   "after a fill of %" PRIu64 " bytes at offset %" PRIu64 " with 0x%08" PRIx32 ", byte %" PRIu64
                   " is 0x%02x and should be 0x%02x",
                   sizes[i], to, words[j], at, got[at], expect[at]);
    }
  free(expect);
  free(got);
  side_free(k, &dst);
  k->t.stream.close(s);
}

/* ---- when a copy reads and when it is done ---- */

/* The source is overwritten as soon as each of n writes has returned. */
static void reused(kit *k, bool busy, uint32_t n, uint64_t bytes) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, n * bytes);
  uint8_t *data = kit_room(k, bytes);
  kit_busy *work = busy ? kit_busy_put(k, k->dev, s) : NULL;
  for (uint32_t i = 0; i < n; i++) {
    kit_pattern(data, bytes, i);
    kit_ok(k, k->t.copy.write(s, b, i * bytes, data, bytes, &k->err), "copy.write");
    memset(data, 0xA5, bytes);
  }
  kit_sync(k, s);
  for (uint32_t i = 0; i < n; i++)
    kit_holds(k, s, b, i * bytes, bytes, i, "what was written from memory that the host then used again");
  if (work != NULL) kit_busy_free(k, work);
  free(data);
  kit_free(k, k->dev, b);
  k->t.stream.close(s);
}

enum { FEW = 3, MANY = 48, SMALL = 3001 };

/* Several times: a device's thread may be so quick that nothing shows. */
static void write_reused(kit *k) {
  for (int round = 0; round < 8; round++) {
    reused(k, false, MANY, SMALL);
    reused(k, false, FEW, MOST);
  }
}

static void write_behind(kit *k) {
  reused(k, true, MANY, SMALL);
  reused(k, true, FEW, MOST);
}

static void write_large(kit *k) {
  const uint64_t bytes = (UINT64_C(8) << 20) + 3;
  heddle_pstream *s = kit_stream(k, k->dev);
  if (k->desc.max_buffer_bytes != 0 && k->desc.max_buffer_bytes < bytes) kit_skip(k, "a buffer is at most smaller");
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, bytes);
  uint8_t *data = kit_room(k, bytes);
  kit_pattern(data, bytes, 1);
  kit_ok(k, k->t.copy.write(s, b, 0, data, bytes, &k->err), "copy.write of 8 MiB and 3 bytes");
  memset(data, 0, bytes);
  kit_ok(k, k->t.copy.read(s, data, b, 0, bytes, &k->err), "copy.read of 8 MiB and 3 bytes");
  kit_same(k, data, bytes, 1, "8 MiB and 3 bytes, written and read");
  free(data);
  kit_free(k, k->dev, b);
  k->t.stream.close(s);
}

/* Every copy, on both sides of each power of two from 2^12 on, far into a large buffer: offsets that are cut meet bytes of
 * another place. */
static void far_offsets(kit *k) {
  enum { FIRST = 12, LAST = 26, PIECE = 64 };
  const uint64_t most = k->desc.max_buffer_bytes != 0 ? k->desc.max_buffer_bytes : UINT64_MAX;
  uint32_t last = LAST;
  while (last > FIRST && ((UINT64_C(1) << last) + PIECE > most ||
                          (k->desc.memory_bytes != 0 && (UINT64_C(1) << last) > k->desc.memory_bytes / 8)))
    last--;
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, (UINT64_C(1) << last) + PIECE);
  heddle_pbuffer *c = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, (UINT64_C(1) << last) + PIECE);
  uint8_t data[PIECE];
  for (uint32_t i = FIRST; i <= last; i++) {
    const uint64_t at = UINT64_C(1) << i;
    kit_pattern(data, PIECE, i);
    kit_ok(k, k->t.copy.write(s, b, at, data, PIECE, &k->err), "copy.write");
    kit_fill(k, s, b, at - PIECE, PIECE, i);
    kit_d2d(k, s, c, at - PIECE, b, at - PIECE, 2 * PIECE);
  }
  for (uint32_t i = FIRST; i <= last; i++) {
    const uint64_t at = UINT64_C(1) << i;
    char what[2][96];
    snprintf(what[0], sizeof what[0], "bytes written at offset %" PRIu64 " and copied there", at);
    snprintf(what[1], sizeof what[1], "bytes filled in front of offset %" PRIu64 " and copied there", at);
    kit_holds(k, s, c, at, PIECE, i, what[0]);
    kit_words(k, s, c, at - PIECE, PIECE, i, what[1]);
  }
  kit_free(k, k->dev, b);
  kit_free(k, k->dev, c);
  k->t.stream.close(s);
}

/* read has the bytes on return, whatever was in front of it. */
static void read_there(kit *k) {
  enum { BYTES = 5003 };
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *a = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  uint8_t *data = kit_room(k, BYTES);
  for (uint32_t i = 0; i < 4; i++) {
    kit_put_pattern(k, s, a, 0, BYTES, i);
    kit_busy *work = kit_busy_put(k, k->dev, s);
    kit_d2d(k, s, b, 0, a, 0, BYTES);
    memset(data, 0xA5, BYTES);
    kit_ok(k, k->t.copy.read(s, data, b, 0, BYTES, &k->err), "copy.read");
    kit_same(k, data, BYTES, i, "what copy.read had brought when it returned");
    kit_sync(k, s);
    kit_busy_free(k, work);
  }
  free(data);
  kit_free(k, k->dev, a);
  kit_free(k, k->dev, b);
  k->t.stream.close(s);
}

/* A row in which each copy needs what those before it did, and must not see what those behind it do. */
void kit_copy_order(kit *k) {
  enum { BYTES = 70000 };
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned in = kit_pinned_new(k, k->dev, BYTES), hop = kit_pinned_new(k, k->dev, BYTES);
  heddle_pbuffer *a = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *c = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  for (uint32_t i = 0; i < 6; i++) {
    kit_pattern(in.at, BYTES, i);
    kit_pinned_flush(k, &in);
    kit_busy *work = i % 3 == 0 ? kit_busy_put(k, k->dev, s) : NULL;
    kit_fill(k, s, a, 0, BYTES, 0x11111111);
    kit_h2d(k, s, a, 0, in.buffer, 0, BYTES);  /* over the fill */
    kit_d2h(k, s, hop.buffer, 0, a, 0, BYTES); /* what h2d brought */
    kit_d2d(k, s, c, 0, a, 0, BYTES);          /* likewise */
    kit_fill(k, s, a, 0, BYTES, 0x22222222);   /* not before both have read */
    kit_h2d(k, s, b, 0, hop.buffer, 0, BYTES); /* what d2h brought */
    kit_sync(k, s);
    kit_holds(k, s, b, 0, BYTES, i, "what went to the host and back in one row");
    kit_holds(k, s, c, 0, BYTES, i, "a copy put between a write to its source and the next");
    kit_words(k, s, a, 0, BYTES, 0x22222222, "the last fill of a row");
    if (work != NULL) kit_busy_free(k, work);
  }
  kit_free(k, k->dev, a);
  kit_free(k, k->dev, b);
  kit_free(k, k->dev, c);
  kit_pinned_free(k, &in);
  kit_pinned_free(k, &hop);
  k->t.stream.close(s);
}

/* On an inline device nothing is left to be done when the call returns. */
static void complete(kit *k) {
  if (!kit_inline(k)) kit_skip(k, "the device is not inline");
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned in = kit_pinned_new(k, k->dev, 100000), out = kit_pinned_new(k, k->dev, 100000);
  heddle_pbuffer *a = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 100000);
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 100000);
  for (uint32_t i = 0; i < 8; i++) {
    kit_pattern(in.at, in.bytes, i);
    kit_h2d(k, s, a, 0, in.buffer, 0, in.bytes);
    memset(in.at, 0, in.bytes);
    kit_d2d(k, s, b, 0, a, 0, in.bytes);
    kit_d2h(k, s, out.buffer, 0, b, 0, in.bytes);
    kit_same(k, out.at, out.bytes, i, "mapped memory when d2h on an inline device had returned");
  }
  kit_pinned_free(k, &in);
  kit_pinned_free(k, &out);
  kit_free(k, k->dev, a);
  kit_free(k, k->dev, b);
  k->t.stream.close(s);
}

static void required(kit *k) {
  const heddle_copy_table *c = &k->t.copy;
  if (c->h2d == NULL || c->d2h == NULL || c->write == NULL || c->read == NULL || c->d2d == NULL || c->fill == NULL)
    kit_fail(k, "copy.h2d, d2h, write, read, d2d and fill are required, and one is NULL");
  if ((c->can_peer == NULL) != (c->peer == NULL)) kit_fail(k, "copy.can_peer and copy.peer: both or neither");
}

#define ON_DEVICE(name, promise, flags, seconds, run) \
  { "copy/" name, promise, KIT_STAGE_DEVICE, flags, seconds, run, NULL }

KIT_GROUP(kit_copy, "copy",
          {"copy/required", "the six copies are there; can_peer and peer both or neither", KIT_STAGE_ENTRY, 0, 0,
           required, NULL},
          ON_DEVICE("write", "write moves its bytes, at any size and offset, and no others", 0, 30, writes),
          ON_DEVICE("read", "read moves its bytes, at any size and offset, and no others", 0, 30, reads),
          ON_DEVICE("h2d", "h2d moves its bytes, at any size and offset, and no others", 0, 30, kit_copy_h2d),
          ON_DEVICE("d2h", "d2h moves its bytes, at any size and offset, and no others", 0, 30, kit_copy_d2h),
          ON_DEVICE("d2d", "d2d moves its bytes, at any size and offset, and no others", 0, 30, d2d),
          ON_DEVICE("d2d-within", "d2d copies from one part of a buffer to another", 0, 0, d2d_within),
          ON_DEVICE("fill", "fill sets the words of its range to the pattern, and no others", 0, 30, fills),
          ON_DEVICE("write-reused", "write is finished with its pointer on return", 0, 30, write_reused),
          ON_DEVICE("write-behind", "write is finished with its pointer on return behind other work", 0, 30,
                    write_behind),
          ON_DEVICE("far-offsets", "offsets may be large", 0, 30, far_offsets),
          ON_DEVICE("large", "one write and one read may be of many megabytes", 0, 30, write_large),
          ON_DEVICE("read-there", "read has the bytes on return, behind other work", 0, 30, read_there),
          ON_DEVICE("order", "copies of a stream start after what was put into it before", 0, 30, kit_copy_order),
          ON_DEVICE("complete", "on an inline device copies are complete on return", 0, 0, complete),
          ON_DEVICE("host-of-other", "the host side may be memory of another device of the event domain", KIT_SECOND, 0,
                    kit_copy_host_of_other),
          ON_DEVICE("peer", "peer moves its bytes between two devices, both ways, and no others", KIT_SECOND, 30,
                    kit_copy_peer),
          ON_DEVICE("peer-streams", "peer is work of a stream of either device", KIT_SECOND, 30, kit_copy_peer_streams),
          {"copy/can-peer-pure", "can_peer is pure: it needs no open device and answers the same each time",
           KIT_STAGE_INSTANCE, KIT_SECOND, 0, kit_copy_can_peer, NULL});
