/* The group "streams": order within a stream, and what sync, query, submit and close promise. Streams that stand still
 * until the kit lets them go are in the group "fences". */
#include "conformance/streams.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 65536, MOMENT_MS = 2000 };

static void nothing(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_ok(k, k->t.stream.query(s, &k->err), "stream.query of a new stream");
  kit_ok(k, k->t.stream.submit(s, &k->err), "stream.submit of a stream with no work");
  kit_ok(k, k->t.stream.submit(s, &k->err), "stream.submit for the second time");
  /* A driver may need a moment to say that a queue is empty; one that never says so is wrong. */
  heddle_status status = k->t.stream.sync(s, 0, &k->err);
  for (const uint64_t end = kit_now_ms() + MOMENT_MS; status == HEDDLE_ETIMEOUT && kit_now_ms() < end; kit_sleep_ms(1))
    status = k->t.stream.sync(s, 0, &k->err);
  kit_ok(k, status, "stream.sync of a stream with no work, without time");
  kit_ok(k, k->t.stream.sync(s, UINT64_MAX, &k->err), "stream.sync of a stream with no work, without limit");
  kit_ok(k, k->t.stream.query(s, &k->err), "stream.query after sync");
  k->t.stream.close(s);
  k->t.stream.close(NULL);
}

/* A row in which every command undoes or needs the one before. */
void kit_streams_order(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *a = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  for (uint32_t i = 0; i < 200; i++) {
    kit_fill(k, s, a, 0, BYTES, i);
    kit_d2d(k, s, b, 0, a, 0, BYTES);
    kit_fill(k, s, a, 0, BYTES, ~i);
    if (i % 7 == 0) kit_submit(k, s);
  }
  kit_sync(k, s);
  kit_words(k, s, b, 0, BYTES, 199, "the last copy of a long row");
  kit_words(k, s, a, 0, BYTES, ~UINT32_C(199), "the last fill of a long row");
  kit_free(k, k->dev, a);
  kit_free(k, k->dev, b);
  k->t.stream.close(s);
}

/* Queries until the stream is quiet, and fails the case where it does not become so. */
static void quiet(kit *k, heddle_pstream *s, const char *what) {
  const uint64_t end = kit_now_ms() + kit_patience_ms(k, 20000);
  heddle_status status;
  while ((status = k->t.stream.query(s, &k->err)) == HEDDLE_EBUSY) {
    if (kit_now_ms() > end) kit_fail(k, "%s: stream.query says HEDDLE_EBUSY long after submit", what);
    kit_sleep_ms(1);
  }
  kit_ok(k, status, what);
}

/* A pattern in a, work that takes a while, and a copy of a to the page behind it; not submitted. */
static kit_busy *fetch_behind_work(kit *k, heddle_pstream *s, heddle_pbuffer *a, const kit_pinned *page,
                                   uint32_t pattern) {
  kit_put_pattern(k, s, a, 0, BYTES, pattern);
  kit_busy *work = kit_busy_put(k, k->dev, s);
  kit_d2h(k, s, page->buffer, 0, a, 0, BYTES);
  return work;
}

void kit_streams_query(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned page = kit_pinned_new(k, k->dev, BYTES);
  heddle_pbuffer *a = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  for (uint32_t i = 0; i < 4; i++) {
    kit_busy *work = fetch_behind_work(k, s, a, &page, i);
    kit_submit(k, s);
    quiet(k, s, "stream.query of submitted work");
    kit_pinned_invalidate(k, &page);
    kit_same(k, page.at, BYTES, i, "what d2h had brought when stream.query said that all is done");
    kit_sync(k, s);
    kit_busy_free(k, work);
  }
  kit_free(k, k->dev, a);
  kit_pinned_free(k, &page);
  k->t.stream.close(s);
}

void kit_streams_sync_done(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_pinned page = kit_pinned_new(k, k->dev, BYTES);
  heddle_pbuffer *a = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  for (uint32_t i = 0; i < 4; i++) {
    kit_busy *work = fetch_behind_work(k, s, a, &page, i);
    kit_sync(k, s); /* which submits */
    kit_pinned_invalidate(k, &page);
    kit_same(k, page.at, BYTES, i, "what d2h had brought when stream.sync returned");
    kit_ok(k, k->t.stream.query(s, &k->err), "stream.query right after stream.sync");
    kit_busy_free(k, work);
  }
  kit_free(k, k->dev, a);
  kit_pinned_free(k, &page);
  k->t.stream.close(s);
}

/* Without a limit both wait as long as it takes. */
static void sync_endless(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *a = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_pinned page = kit_pinned_new(k, k->dev, BYTES);
  for (uint32_t i = 0; i < 4; i++) {
    kit_busy *work = fetch_behind_work(k, s, a, &page, i);
    if (i % 2 == 0) {
      kit_ok(k, k->t.stream.sync(s, UINT64_MAX, &k->err), "stream.sync without a limit, over busy work");
    } else {
      kit_submit(k, s);
      kit_ok(k, k->t.device.idle(k->dev, UINT64_MAX, &k->err), "device.idle without a limit, over busy work");
    }
    kit_pinned_invalidate(k, &page);
    kit_same(k, page.at, BYTES, i, "what d2h had brought when a wait without a limit returned");
    kit_sync(k, s);
    kit_busy_free(k, work);
  }
  kit_free(k, k->dev, a);
  kit_pinned_free(k, &page);
  k->t.stream.close(s);
}

/* Short limits over work that takes a while: HEDDLE_ETIMEOUT until it is done, and the work is not disturbed. */
static void sync_short(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *a = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  const uint64_t end = kit_now_ms() + kit_patience_ms(k, 20000);
  uint32_t times = 0;
  heddle_status status;
  kit_put_pattern(k, s, a, 0, BYTES, 1);
  kit_busy *work = kit_busy_put(k, k->dev, s);
  kit_d2d(k, s, b, 0, a, 0, BYTES);
  while ((status = k->t.stream.sync(s, times < 3 ? 0 : 1000000, &k->err)) != HEDDLE_OK) {
    kit_fails(k, status, HEDDLE_ETIMEOUT, HEDDLE_ETIMEOUT, "stream.sync with a short limit, over busy work");
    if (kit_now_ms() > end)
      kit_fail(k, "stream.sync says HEDDLE_ETIMEOUT again and again over work that should have ended");
    times++;
  }
  kit_note(k, "%u limits passed before the work was done", times);
  kit_holds(k, s, b, 0, BYTES, 1, "a copy over which limits had passed");
  kit_busy_free(k, work);
  kit_free(k, k->dev, a);
  kit_free(k, k->dev, b);
  k->t.stream.close(s);
}

/* The stream is closed over its work, which ends behind the host's back. */
void kit_streams_close_busy(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev), *after;
  kit_pinned page = kit_pinned_new(k, k->dev, BYTES);
  heddle_pbuffer *a = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_put_pattern(k, s, a, 0, BYTES, 1);
  kit_busy *work = kit_busy_put(k, k->dev, s);
  kit_d2h(k, s, page.buffer, 0, a, 0, BYTES);
  kit_submit(k, s);
  k->t.stream.close(s);
  after = kit_stream(k, k->dev); /* may be the same handle again */
  kit_fill(k, after, a, 0, 0, 0);
  kit_sync(k, after);
  kit_ok(k, k->t.device.idle(k->dev, kit_patience_ms(k, 20000) * 1000000, &k->err),
         "device.idle after a stream was closed over work");
  kit_pinned_invalidate(k, &page);
  kit_same(k, page.at, BYTES, 1, "what d2h brought on a stream that was closed over it");
  kit_busy_free(k, work);
  kit_free(k, k->dev, a);
  kit_pinned_free(k, &page);
  k->t.stream.close(after);
}

static void many(kit *k) {
  enum { N = 48 };
  heddle_pstream *all[N];
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, N * 4096);
  for (uint32_t i = 0; i < N; i++) all[i] = kit_stream(k, k->dev);
  for (uint32_t i = 0; i < N; i++)
    for (uint32_t j = 0; j < i; j++)
      if (all[i] == all[j]) kit_fail(k, "stream.create gave the same stream twice while both are open");
  for (uint32_t round = 0; round < 3; round++)
    for (uint32_t i = 0; i < N; i++) kit_fill(k, all[i], b, i * UINT64_C(4096), 4096, round * 100 + i);
  for (uint32_t i = 0; i < N; i++) kit_sync(k, all[N - 1 - i]);
  for (uint32_t i = 0; i < N; i++) {
    kit_words(k, all[(i * 7) % N], b, i * UINT64_C(4096), 4096, 200 + i, "what one of 48 streams filled");
    kit_sync(k, all[(i * 7) % N]);
  }
  for (uint32_t i = 0; i < N; i++) k->t.stream.close(all[i]);
  kit_free(k, k->dev, b);
}

static void again(kit *k) {
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  for (uint32_t i = 0; i < 100; i++) {
    heddle_pstream *s = kit_stream(k, k->dev);
    kit_fill(k, s, b, 0, 4096, i);
    kit_sync(k, s);
    k->t.stream.close(s);
  }
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_words(k, s, b, 0, 4096, 99, "what the last of 100 streams filled");
  k->t.stream.close(s);
  kit_free(k, k->dev, b);
}

static void kinds(kit *k) {
  static const int32_t priorities[] = {0, 1, -1, 1000, -1000, INT32_MAX, INT32_MIN};
  heddle_pbuffer *b = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  for (uint32_t kind = HEDDLE_STREAM_COMPUTE; kind <= HEDDLE_STREAM_COPY; kind++)
    for (uint32_t i = 0; i < sizeof priorities / sizeof priorities[0]; i++) {
      heddle_pstream *s = NULL;
      heddle_status status = k->t.stream.create(k->dev, kind, priorities[i], &s, &k->err);
      if (status != HEDDLE_OK)
        kit_fail(k, "stream.create of kind %u with priority %ld: %s", kind, (long)priorities[i], k->err.text);
      kit_fill(k, s, b, 0, 4096, i + kind * 100);
      kit_put_pattern(k, s, b, 1024, 2048, i);
      kit_words(k, s, b, 0, 1024, i + kind * 100, "what a stream of another kind or priority filled");
      kit_holds(k, s, b, 1024, 2048, i, "what a stream of another kind or priority wrote");
      k->t.stream.close(s);
    }
  kit_free(k, k->dev, b);
}

static void counted(kit *k) {
  int64_t before = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS);
  heddle_pstream *a = kit_stream(k, k->dev), *b = kit_stream(k, k->dev);
  int64_t more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 2) kit_fail(k, "LIVE_OBJECTS grew by %lld with two streams", (long long)more);
  k->t.stream.close(a);
  k->t.stream.close(b);
  more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 0) kit_fail(k, "LIVE_OBJECTS is off by %lld after two streams were closed", (long long)more);
}

static void required(kit *k) {
  const heddle_stream_table *t = &k->t.stream;
  if (t->close == NULL || t->create == NULL || t->submit == NULL || t->sync == NULL || t->query == NULL)
    kit_fail(k, "stream.close, create, submit, sync and query are required, and one is NULL");
}

#define ON_DEVICE(name, promise, flags, seconds, run) \
  { "streams/" name, promise, KIT_STAGE_DEVICE, flags, seconds, run, NULL }

#define ON_ADOPTED(name, promise, flags, run) ON_DEVICE(name, promise, KIT_NOT_INLINE | KIT_ADOPTS | (flags), 60, run)

#define OF_COPY(name, flags, word) \
  ON_DEVICE("of-copy-" name, "the kind of a stream is a hint: one of kind COPY does as any other", flags, 60, \
            kit_streams_of_copy_##word)

KIT_GROUP(
    kit_streams, "streams",
    {"streams/required", "all functions of the table are there", KIT_STAGE_ENTRY, 0, 0, required, NULL},
    ON_DEVICE("empty", "a stream without work is done, and close takes NULL", 0, 0, nothing),
    ON_DEVICE("order", "work in a stream runs in order", 0, 30, kit_streams_order),
    ON_DEVICE("order-runs", "launches run in order with the copies of their stream", 0, 60, kit_streams_order_runs),
    ON_DEVICE("query", "query is HEDDLE_OK when submitted work has finished, not before", 0, 60, kit_streams_query),
    ON_DEVICE("sync", "sync submits and waits for all work in the stream", 0, 60, kit_streams_sync_done),
    ON_DEVICE("sync-endless", "sync and idle without a limit wait until the work has ended", 0, 60, sync_endless),
    ON_DEVICE("sync-short", "sync is HEDDLE_ETIMEOUT when its time is over, and harms no work", 0, 60, sync_short),
    ON_DEVICE("close-busy", "a stream closed over its work lets it finish", 0, 60, kit_streams_close_busy),
    ON_DEVICE("many", "48 streams at once", 0, 30, many),
    ON_DEVICE("again", "100 streams one after the other", 0, 30, again),
    ON_DEVICE("kinds", "each kind does all work, and priorities out of range are clamped", 0, 30, kinds),
    ON_DEVICE("counts", "LIVE_OBJECTS follows create and close", 0, 0, counted),
    ON_DEVICE("full", "a full queue refuses with HEDDLE_ELIMIT, at once, and loses nothing", KIT_NOT_INLINE, 60,
              kit_streams_full),
    OF_COPY("order", 0, order), OF_COPY("sync", 0, sync), OF_COPY("query", 0, query), OF_COPY("close-busy", 0, closed),
    OF_COPY("h2d", 0, h2d), OF_COPY("d2h", 0, d2h), OF_COPY("behind", 0, behind), OF_COPY("run", 0, run),
    OF_COPY("write-before-read", KIT_NOT_INLINE, write_read), OF_COPY("read-before-write", KIT_NOT_INLINE, read_write),
    OF_COPY("signal", KIT_NOT_INLINE, signal), OF_COPY("wait", KIT_NOT_INLINE, wait),
    OF_COPY("failed-signal", KIT_NOT_INLINE | KIT_FAILS, failed_signal),
    OF_COPY("failed-once", KIT_NOT_INLINE | KIT_FAILS, failed_once),
    ON_ADOPTED("adopt-after", "an event in an adopted stream comes after its owner's work", 0, kit_streams_adopt_after),
    ON_ADOPTED("adopt-before", "a wait in an adopted stream holds back its owner's later work", 0,
               kit_streams_adopt_before),
    ON_ADOPTED("adopt-sync", "sync of an adopted stream waits for its owner's work", 0, kit_streams_adopt_sync),
    ON_ADOPTED("adopt-close", "close of an adopted stream ends nothing of its owner's", 0, kit_streams_adopt_close),
    ON_ADOPTED("adopt-other", "adopt of a stream of another device is HEDDLE_EINVAL", KIT_SECOND,
               kit_streams_adopt_other));
