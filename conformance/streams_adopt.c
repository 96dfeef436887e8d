/* Streams of others: what the owner puts into a stream, and what stream.adopt of it orders. The hook adopt_own
 * (docs/plugin-guide.md) lets the kit be the owner without the vendor's API. Cases of the group "streams". */
#include "conformance/streams.h"

#include <stdint.h>

#include "conformance/kit_side.h"

enum { BYTES = 65536, ROUNDS = 3 };

typedef struct scene {
  heddle_pstream *owner; /* as the caller's */
  heddle_pstream *taken; /* of stream.adopt */
  heddle_pstream *other; /* of the host */
  heddle_pevent *event;
  heddle_pbuffer *x, *y;
} scene;

static void needs_adopt(kit *k) {
  if (k->t.stream.adopt == NULL) kit_skip(k, "the plugin has no stream.adopt");
  if (!k->side->adopt_asked)
    kit_skip(k, "the plugin has stream.adopt without the hook adopt_own (docs/plugin-guide.md)");
  if (!k->t.has_event) kit_fail(k, "the plugin has stream.adopt and no event table, without which it is of no use");
}

static heddle_pstream *adopt(kit *k, const heddle_pstream *owner) {
  heddle_pstream *out = NULL;
  kit_ok(k, k->t.stream.adopt(k->dev, (uint64_t)(uintptr_t)owner, &out, &k->err),
         "stream.adopt of a stream of the device");
  if (out == NULL) kit_fail(k, "stream.adopt answered HEDDLE_OK and gave no stream");
  return out;
}

static scene scene_new(kit *k) {
  scene s = {.owner = NULL};
  needs_adopt(k);
  s.owner = kit_stream(k, k->dev);
  s.other = kit_stream(k, k->dev);
  s.taken = adopt(k, s.owner);
  kit_ok(k, k->t.event.create(k->dev, &s.event, &k->err), "event.create");
  s.x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  s.y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  return s;
}

static void scene_free(kit *k, scene *s) {
  if (s->taken != NULL) k->t.stream.close(s->taken);
  k->t.event.free(s->event);
  kit_free(k, k->dev, s->x);
  kit_free(k, k->dev, s->y);
  k->t.stream.close(s->owner);
  k->t.stream.close(s->other);
}

/* Work of to comes after all that is in from. */
static void order(kit *k, scene *s, heddle_pstream *from, heddle_pstream *to) {
  kit_ok(k, k->t.event.record(s->event, from, &k->err), "event.record");
  kit_submit(k, from);
  kit_ok(k, k->t.event.wait(to, s->event, &k->err), "event.wait");
  kit_submit(k, to);
}

/* Slow work and a fill in one stream, then a copy of what was filled in the other. */
static void follow(kit *k, scene *s, heddle_pstream *first, heddle_pstream *from, heddle_pstream *to,
                   heddle_pstream *second, uint32_t word, const char *what) {
  kit_fill(k, first, s->x, 0, BYTES, 0);
  kit_sync(k, first);
  kit_busy *work = kit_busy_put(k, k->dev, first);
  kit_fill(k, first, s->x, 0, BYTES, word);
  order(k, s, from, to);
  kit_d2d(k, second, s->y, 0, s->x, 0, BYTES);
  kit_sync(k, second);
  kit_words(k, second, s->y, 0, BYTES, word, what);
  kit_sync(k, first);
  kit_busy_free(k, work);
}

void kit_streams_adopt_after(kit *k) {
  scene s = scene_new(k);
  for (uint32_t i = 1; i <= ROUNDS; i++)
    follow(k, &s, s.owner, s.taken, s.other, s.other, i,
           "bytes that the owner of an adopted stream wrote before the event");
  scene_free(k, &s);
}

void kit_streams_adopt_before(kit *k) {
  scene s = scene_new(k);
  for (uint32_t i = 1; i <= ROUNDS; i++)
    follow(k, &s, s.other, s.other, s.taken, s.owner, i,
           "bytes that the owner read behind the wait of an adopted stream");
  scene_free(k, &s);
}

void kit_streams_adopt_sync(kit *k) {
  scene s = scene_new(k);
  kit_pinned page = kit_pinned_new(k, k->dev, BYTES);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    kit_put_pattern(k, s.owner, s.x, 0, BYTES, i);
    kit_busy *work = kit_busy_put(k, k->dev, s.owner);
    kit_d2h(k, s.owner, page.buffer, 0, s.x, 0, BYTES);
    kit_submit(k, s.owner);
    kit_sync(k, s.taken);
    kit_pinned_invalidate(k, &page);
    kit_same(k, page.at, BYTES, i, "what the owner's d2h had brought when stream.sync of the adopted stream returned");
    kit_ok(k, k->t.stream.query(s.taken, &k->err), "stream.query of an adopted stream after sync");
    kit_sync(k, s.owner);
    kit_busy_free(k, work);
  }
  kit_pinned_free(k, &page);
  scene_free(k, &s);
}

void kit_streams_adopt_close(kit *k) {
  scene s = scene_new(k);
  const int64_t live = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS);
  for (uint32_t i = 1; i <= ROUNDS; i++) {
    heddle_pstream *second = adopt(k, s.owner);
    kit_busy *work = kit_busy_put(k, k->dev, s.owner);
    kit_fill(k, s.owner, s.x, 0, BYTES, i);
    kit_submit(k, s.owner);
    k->t.stream.close(second);
    kit_ok(k, k->t.copy.d2d(s.owner, s.y, 0, s.x, 0, BYTES, &k->err),
           "copy.d2d in the owner's stream after the adopted one was closed");
    kit_ok(k, k->t.stream.sync(s.owner, kit_patience_ms(k, 20000) * 1000000, &k->err),
           "stream.sync of the owner's stream after the adopted one was closed");
    kit_words(k, s.owner, s.y, 0, BYTES, i, "the owner's work before and after an adopted stream was closed");
    kit_busy_free(k, work);
    follow(k, &s, s.owner, s.taken, s.other, s.other, 100 + i,
           "bytes ordered by one of two adopted streams after the other was closed");
  }
  const int64_t more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - live;
  if (more != 0) kit_fail(k, "LIVE_OBJECTS is off by %lld after adopted streams were closed", (long long)more);
  k->t.stream.close(s.taken);
  s.taken = NULL;
  kit_fill(k, s.owner, s.x, 0, BYTES, 7);
  kit_ok(k, k->t.stream.sync(s.owner, kit_patience_ms(k, 20000) * 1000000, &k->err),
         "stream.sync of the owner's stream after all adopted ones were closed");
  kit_words(k, s.owner, s.x, 0, BYTES, 7, "the owner's work after all adopted streams were closed");
  scene_free(k, &s);
}

void kit_streams_adopt_other(kit *k) {
  needs_adopt(k);
  heddle_pdevice *far = kit_open(k, (k->index + 1) % k->n_devices);
  heddle_pstream *theirs = kit_stream(k, far), *out = NULL;
  const heddle_status status = k->t.stream.adopt(k->dev, (uint64_t)(uintptr_t)theirs, &out, &k->err);
  kit_fails(k, status, HEDDLE_EINVAL, HEDDLE_EINVAL, "stream.adopt of a stream of another device");
  if (out != NULL) kit_fail(k, "stream.adopt failed and gave a stream");
  heddle_pstream *own = kit_stream(k, k->dev); /* as before */
  k->t.stream.close(adopt(k, own));
  k->t.stream.close(own);
  k->t.stream.close(theirs);
}
