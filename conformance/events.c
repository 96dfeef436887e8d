/* The group "events": streams of one event domain are ordered on the device. Each order is shown with bytes, behind work
 * that takes a while, so that a wait that does nothing reads or overwrites too early. */
#include "conformance/streams.h"
#include "conformance/tables.h"

#include <string.h>

#include "conformance/kit_side.h"

enum { BYTES = 65536, ROUNDS = 3 };

/* Two streams with an event, and two buffers. */
typedef struct pair {
  heddle_pstream *a, *b;
  heddle_pevent *event;
  heddle_pbuffer *x, *y;
} pair;

static heddle_pevent *event_new(kit *k) {
  heddle_pevent *event = NULL;
  if (!k->t.has_event) kit_fault_is(k, KIT_FAULT_ABSENT, kit_call_number("event.create"), 0);
  if (!k->t.has_event) kit_fail(k, "the plugin has no event table, and the device is not inline");
  kit_ok(k, k->t.event.create(k->dev, &event, &k->err), "event.create");
  if (event == NULL) kit_fail(k, "event.create answered HEDDLE_OK and gave no event");
  return event;
}

static pair pair_new(kit *k) {
  return (pair){kit_stream(k, k->dev), kit_stream(k, k->dev), event_new(k),
                kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES), kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES)};
}

static void pair_free(kit *k, pair *p) {
  k->t.event.free(p->event);
  kit_free(k, k->dev, p->x);
  kit_free(k, k->dev, p->y);
  k->t.stream.close(p->a);
  k->t.stream.close(p->b);
}

/* record, and the submit that the host owes before anything waits. */
static void record(kit *k, heddle_pevent *event, heddle_pstream *s) {
  kit_ok(k, k->t.event.record(event, s, &k->err), "event.record");
  kit_submit(k, s);
}

static void wait(kit *k, heddle_pstream *s, heddle_pevent *event) {
  kit_ok(k, k->t.event.wait(s, event, &k->err), "event.wait");
}

/* What one stream writes is there for the other that waits. */
void kit_events_writes_first(kit *k) {
  pair p = pair_new(k);
  for (uint32_t i = 1; i <= ROUNDS; i++) {
    kit_fill(k, p.a, p.x, 0, BYTES, 0);
    kit_sync(k, p.a);
    kit_busy *work = kit_busy_put(k, k->dev, p.a);
    kit_fill(k, p.a, p.x, 0, BYTES, i);
    record(k, p.event, p.a);
    wait(k, p.b, p.event);
    kit_d2d(k, p.b, p.y, 0, p.x, 0, BYTES);
    kit_sync(k, p.b);
    kit_words(k, p.b, p.y, 0, BYTES, i, "bytes that another stream wrote before the event that was waited for");
    kit_sync(k, p.a);
    kit_busy_free(k, work);
  }
  pair_free(k, &p);
}

/* What one stream reads is not overwritten by the other that waits. */
void kit_events_reads_first(kit *k) {
  pair p = pair_new(k);
  for (uint32_t i = 1; i <= ROUNDS; i++) {
    kit_fill(k, p.a, p.x, 0, BYTES, i);
    kit_sync(k, p.a);
    kit_busy *work = kit_busy_put(k, k->dev, p.a);
    kit_d2d(k, p.a, p.y, 0, p.x, 0, BYTES);
    record(k, p.event, p.a);
    wait(k, p.b, p.event);
    kit_fill(k, p.b, p.x, 0, BYTES, 0);
    kit_sync(k, p.b);
    kit_sync(k, p.a);
    kit_words(k, p.a, p.y, 0, BYTES, i, "bytes read before an event, which another stream overwrote after it");
    kit_busy_free(k, work);
  }
  pair_free(k, &p);
}

static void never_recorded(kit *k) {
  pair p = pair_new(k);
  wait(k, p.a, p.event);
  kit_fill(k, p.a, p.x, 0, BYTES, 7);
  kit_sync(k, p.a);
  kit_words(k, p.a, p.x, 0, BYTES, 7, "work behind an event that was never recorded");
  pair_free(k, &p);
}

static void own_stream(kit *k) {
  pair p = pair_new(k);
  for (uint32_t i = 0; i < 16; i++) {
    kit_fill(k, p.a, p.x, 0, BYTES, i);
    record(k, p.event, p.a);
    wait(k, p.a, p.event);
  }
  kit_sync(k, p.a);
  kit_words(k, p.a, p.x, 0, BYTES, 15, "work of a stream that waits for events of its own");
  pair_free(k, &p);
}

/* B waits for the first record; then A waits for B and records again. Who takes B's wait for the second record has B and
 * A wait for each other forever. */
static void rerecorded(kit *k) {
  pair p = pair_new(k);
  heddle_pevent *back = event_new(k);
  kit_busy *work = kit_busy_put(k, k->dev, p.a), *more = kit_busy_put(k, k->dev, p.b);
  kit_fill(k, p.a, p.x, 0, BYTES, 1);
  record(k, p.event, p.a);
  wait(k, p.b, p.event); /* which B gets to when all the rest is submitted */
  kit_d2d(k, p.b, p.y, 0, p.x, 0, BYTES);
  record(k, back, p.b);
  wait(k, p.a, back);
  kit_fill(k, p.a, p.x, 0, BYTES, 2);
  record(k, p.event, p.a);
  kit_sync(k, p.b);
  kit_sync(k, p.a);
  kit_words(k, p.b, p.y, 0, BYTES, 1, "what a stream read after the first record of an event recorded twice");
  kit_words(k, p.a, p.x, 0, BYTES, 2, "what was written between the two records");
  kit_busy_free(k, work);
  kit_busy_free(k, more);
  k->t.event.free(back);
  pair_free(k, &p);
}

/* The later record counts for a wait that comes after it. */
static void last_record(kit *k) {
  pair p = pair_new(k);
  record(k, p.event, p.a);
  kit_sync(k, p.a);
  kit_fill(k, p.a, p.x, 0, BYTES, 0);
  kit_sync(k, p.a);
  kit_busy *work = kit_busy_put(k, k->dev, p.a);
  kit_fill(k, p.a, p.x, 0, BYTES, 9);
  record(k, p.event, p.a);
  wait(k, p.b, p.event);
  kit_d2d(k, p.b, p.y, 0, p.x, 0, BYTES);
  kit_sync(k, p.b);
  kit_words(k, p.b, p.y, 0, BYTES, 9, "bytes written before the last of two records");
  kit_sync(k, p.a);
  kit_busy_free(k, work);
  pair_free(k, &p);
}

/* A value goes round three streams, and each must see what the one before did. */
static void round_trip(kit *k) {
  enum { N = 3, TURNS = 30 };
  heddle_pstream *all[N];
  heddle_pevent *events[N];
  heddle_pbuffer *x[2];
  for (uint32_t i = 0; i < N; i++) all[i] = kit_stream(k, k->dev), events[i] = event_new(k);
  for (uint32_t i = 0; i < 2; i++) x[i] = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_put_pattern(k, all[0], x[0], 0, BYTES, 1);
  for (uint32_t turn = 0; turn < TURNS; turn++) {
    uint32_t i = turn % N;
    if (turn != 0) wait(k, all[i], events[(turn - 1) % N]);
    kit_d2d(k, all[i], x[(turn + 1) % 2], 0, x[turn % 2], 0, BYTES);
    kit_fill(k, all[i], x[turn % 2], 0, BYTES, turn);
    record(k, events[i], all[i]);
  }
  for (uint32_t i = 0; i < N; i++) kit_sync(k, all[i]);
  kit_holds(k, all[0], x[TURNS % 2], 0, BYTES, 1, "bytes that went round three streams");
  for (uint32_t i = 0; i < N; i++) k->t.event.free(events[i]), k->t.stream.close(all[i]);
  for (uint32_t i = 0; i < 2; i++) kit_free(k, k->dev, x[i]);
}

/* Eight streams wait for one event; one stream waits for eight. */
static void fan(kit *k) {
  enum { N = 8 };
  heddle_pstream *root = kit_stream(k, k->dev), *all[N];
  heddle_pevent *first = event_new(k), *events[N];
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_fill(k, root, x, 0, BYTES, 0);
  kit_sync(k, root);
  kit_busy *work = kit_busy_put(k, k->dev, root);
  kit_fill(k, root, x, 0, BYTES, 5);
  record(k, first, root);
  for (uint32_t i = 0; i < N; i++) {
    all[i] = kit_stream(k, k->dev);
    events[i] = event_new(k);
    wait(k, all[i], first);
    kit_d2d(k, all[i], y, i * (BYTES / N), x, i * (BYTES / N), BYTES / N);
    record(k, events[i], all[i]);
  }
  for (uint32_t i = 0; i < N; i++) wait(k, root, events[i]);
  kit_d2d(k, root, x, 0, y, 0, BYTES);
  kit_sync(k, root);
  kit_words(k, root, x, 0, BYTES, 5, "bytes that eight streams copied between two events");
  kit_busy_free(k, work);
  for (uint32_t i = 0; i < N; i++) k->t.event.free(events[i]), k->t.stream.close(all[i]);
  k->t.event.free(first);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  k->t.stream.close(root);
}

/* The host side of a copy on another device, after an event of this one's. */
static void across(kit *k) {
  uint32_t index;
  heddle_pdevice *other = kit_sibling(k, &index);
  pair p = pair_new(k);
  heddle_pstream *far = kit_stream(k, other);
  heddle_pbuffer *z = kit_buffer(k, other, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_pinned page = kit_pinned_new(k, k->dev, BYTES);
  for (uint32_t i = 1; i <= ROUNDS; i++) {
    memset(page.at, 0, BYTES);
    kit_pinned_flush(k, &page);
    kit_put_pattern(k, p.a, p.x, 0, BYTES, i);
    kit_busy *work = kit_busy_put(k, k->dev, p.a);
    kit_d2h(k, p.a, page.buffer, 0, p.x, 0, BYTES);
    record(k, p.event, p.a);
    wait(k, far, p.event);
    kit_h2d(k, far, z, 0, page.buffer, 0, BYTES);
    kit_sync(k, far);
    kit_holds(k, far, z, 0, BYTES, i, "bytes that a device read after another device's event");
    kit_sync(k, p.a);
    kit_busy_free(k, work);
  }
  kit_free(k, other, z);
  k->t.stream.close(far);
  kit_pinned_free(k, &page);
  pair_free(k, &p);
  kit_close(k, other);
}

/* Work that fails (kit_spoil) fails the streams that wait for it by an event, and no others. */
static void failing(kit *k) {
  pair p = pair_new(k);
  heddle_pstream *third = kit_stream(k, k->dev);
  kit_spoil(k, p.a, "the kit's own failure");
  heddle_status status = k->t.event.record(p.event, p.a, &k->err);
  if (status == HEDDLE_OK) {
    kit_submit(k, p.a);
    status = k->t.event.wait(p.b, p.event, &k->err);
  }
  if (status == HEDDLE_OK) status = k->t.stream.sync(p.b, kit_patience_ms(k, 20000) * 1000000, &k->err);
  if (status == HEDDLE_OK) kit_fail(k, "a stream that waited for an event behind failed work did not fail");
  kit_fails(k, status, status, status, "a stream that waited for an event behind failed work");
  if (status == HEDDLE_ETIMEOUT) kit_fail(k, "a stream that waited for an event behind failed work never ended");
  kit_fill(k, third, p.x, 0, BYTES, 3);
  kit_sync(k, third);
  kit_words(k, third, p.x, 0, BYTES, 3, "work of a stream that has nothing to do with the one that failed");
  (void)k->t.stream.sync(p.a, kit_patience_ms(k, 20000) * 1000000, &k->err);
  k->t.stream.close(third);
  pair_free(k, &p);
}

static void none(kit *k) {
  int64_t before = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS);
  heddle_pevent *event = event_new(k);
  int64_t more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 1) kit_fail(k, "LIVE_OBJECTS grew by %lld with one event", (long long)more);
  k->t.event.free(event);
  k->t.event.free(NULL);
  more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 0) kit_fail(k, "LIVE_OBJECTS is off by %lld after an event was freed", (long long)more);
}

static void required(kit *k) {
  if (kit_inline(k) && !k->t.has_event) kit_skip(k, "an inline device needs no events");
  const heddle_event_table *t = &k->t.event;
  if (!k->t.has_event || t->free == NULL || t->create == NULL || t->record == NULL || t->wait == NULL)
    kit_fail(k, "event.free, create, record and wait are required of a device that is not inline");
}

#define ON_DEVICE(name, promise, flags, run) \
  { "events/" name, promise, KIT_STAGE_DEVICE, KIT_NOT_INLINE | (flags), 60, run, NULL }

KIT_GROUP(kit_events, "events",
          {"events/required", "the table is there and whole, except of an inline device", KIT_STAGE_INSTANCE, 0, 0,
           required, NULL},
          ON_DEVICE("write-before-read", "wait holds back later work until the record: what was written is read", 0,
                    kit_events_writes_first),
          ON_DEVICE("read-before-write", "wait holds back later work until the record: what is read is not overwritten",
                    0, kit_events_reads_first),
          ON_DEVICE("never-recorded", "an event that was never recorded is already reached", 0, never_recorded),
          ON_DEVICE("own-stream", "a stream may wait for an event of its own", 0, own_stream),
          ON_DEVICE("recorded-again", "a wait is for the last record before it, whatever is recorded later", 0,
                    rerecorded),
          ON_DEVICE("last-record", "of two records before a wait the last counts", 0, last_record),
          ON_DEVICE("round", "a row of events orders three streams", 0, round_trip),
          ON_DEVICE("fan", "many wait for one, and one for many", 0, fan),
          ON_DEVICE("across-devices", "events order streams of all devices of the event domain", KIT_SECOND, across),
          ON_DEVICE("failure", "a wait on work that fails fails the waiting stream", KIT_FAILS, failing),
          ON_DEVICE("counts", "LIVE_OBJECTS follows create and free, and free takes NULL", 0, none));
