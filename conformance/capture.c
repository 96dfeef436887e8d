/* The group "capture": a row of copies and launches is recorded, not run, and replayed with the addresses of the
 * recording. */
#include "conformance/relu.h"

#include <string.h>

enum { BYTES = 8192 };

static void begin(kit *k, heddle_pstream *s) {
  if (!k->t.has_capture) kit_skip(k, "the plugin has no captures");
  heddle_status status = k->t.capture.begin(s, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device has no captures: %s", k->err.text);
  kit_ok(k, status, "capture.begin");
}

static heddle_pgraph *end(kit *k, heddle_pstream *s) {
  heddle_pgraph *graph = NULL;
  kit_ok(k, k->t.capture.end(s, &graph, &k->err), "capture.end");
  if (graph == NULL) kit_fail(k, "capture.end answered HEDDLE_OK and gave no graph");
  return graph;
}

static void replay(kit *k, heddle_pgraph *graph, heddle_pstream *s) {
  kit_ok(k, k->t.capture.replay(graph, s, &k->err), "capture.replay");
}

static heddle_pbuffer *room(kit *k) {
  return kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
}

/* Nothing of what is recorded is done, before the replay. */
static void records(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k), *y = room(k);
  kit_pinned in = kit_pinned_new(k, k->dev, BYTES), out = kit_pinned_new(k, k->dev, BYTES);
  kit_pattern(in.at, BYTES, 3);
  memset(out.at, 0x55, BYTES);
  kit_pinned_flush(k, &in);
  kit_pinned_flush(k, &out);
  kit_fill(k, s, x, 0, BYTES, 1);
  kit_fill(k, s, y, 0, BYTES, 2);
  kit_sync(k, s);
  begin(k, s);
  kit_h2d(k, s, x, 0, in.buffer, 0, BYTES / 2);
  kit_fill(k, s, x, BYTES / 2, BYTES / 2, 9);
  kit_d2d(k, s, y, 0, x, 0, BYTES);
  kit_d2h(k, s, out.buffer, 0, y, 0, BYTES);
  heddle_pgraph *graph = end(k, s);
  kit_sync(k, s);
  kit_words(k, s, x, 0, BYTES, 1, "memory that a recorded h2d and fill would write, before any replay");
  kit_words(k, s, y, 0, BYTES, 2, "memory that a recorded d2d would write, before any replay");
  kit_pinned_invalidate(k, &out);
  for (uint32_t i = 0; i < BYTES; i++)
    if (out.at[i] != 0x55) kit_fail(k, "a recorded d2h has written byte %u of its page before any replay", i);
  replay(k, graph, s);
  kit_sync(k, s);
  kit_holds(k, s, y, 0, BYTES / 2, 3, "what a replayed h2d and d2d brought");
  kit_words(k, s, y, BYTES / 2, BYTES / 2, 9, "what a replayed fill and d2d brought");
  kit_pinned_invalidate(k, &out);
  kit_same(k, out.at, BYTES / 2, 3, "what a replayed d2h brought");
  k->t.capture.free(graph);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  kit_pinned_free(k, &in);
  kit_pinned_free(k, &out);
  k->t.stream.close(s);
}

/* A recorded swap, replayed an odd and an even number of times, each replay in its place among other work. */
static void many_times(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k), *y = room(k), *z = room(k);
  kit_put_pattern(k, s, x, 0, BYTES, 1);
  kit_put_pattern(k, s, y, 0, BYTES, 2);
  begin(k, s);
  kit_d2d(k, s, z, 0, x, 0, BYTES);
  kit_d2d(k, s, x, 0, y, 0, BYTES);
  kit_d2d(k, s, y, 0, z, 0, BYTES);
  heddle_pgraph *graph = end(k, s);
  for (uint32_t i = 0; i < 61; i++) replay(k, graph, s);
  kit_sync(k, s);
  kit_holds(k, s, x, 0, BYTES, 2, "one of two buffers swapped by 61 replays");
  kit_holds(k, s, y, 0, BYTES, 1, "the other of two buffers swapped by 61 replays");
  for (uint32_t i = 0; i < 3; i++) {
    replay(k, graph, s);
    kit_sync(k, s);
  }
  kit_holds(k, s, x, 0, BYTES, 1, "one of two buffers swapped by 64 replays");
  k->t.capture.free(graph);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  kit_free(k, k->dev, z);
  k->t.stream.close(s);
}

/* A recording of many pieces of work, each of which shows. */
static void many_pieces(kit *k) {
  enum { PIECES = 500, EACH = 16 };
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k), *y = room(k);
  for (uint32_t i = 0; i < PIECES / 2; i++) kit_fill(k, s, x, (uint64_t)i * EACH, EACH, 1000 + i);
  kit_fill(k, s, y, 0, BYTES, 7);
  kit_sync(k, s);
  begin(k, s);
  for (uint32_t i = 0; i < PIECES / 2; i++) {
    kit_d2d(k, s, y, (uint64_t)i * EACH, x, (uint64_t)i * EACH, EACH);
    kit_fill(k, s, x, (uint64_t)i * EACH, EACH, 2000 + i);
  }
  heddle_pgraph *graph = end(k, s);
  for (uint32_t round = 1; round <= 2; round++) {
    replay(k, graph, s);
    kit_sync(k, s);
    for (uint32_t i = 0; i < PIECES / 2; i++) {
      kit_words(k, s, y, (uint64_t)i * EACH, EACH, round * 1000 + i, "what one of 250 recorded copies brought");
      kit_words(k, s, x, (uint64_t)i * EACH, EACH, 2000 + i, "what one of 250 recorded fills wrote");
    }
  }
  k->t.capture.free(graph);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  k->t.stream.close(s);
}

static void order(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k), *y = room(k), *z = room(k);
  begin(k, s);
  kit_d2d(k, s, y, 0, x, 0, BYTES);
  heddle_pgraph *graph = end(k, s);
  for (uint32_t i = 1; i <= 5; i++) {
    kit_busy *work = i == 1 ? kit_busy_put(k, k->dev, s) : NULL;
    kit_fill(k, s, x, 0, BYTES, i);
    replay(k, graph, s);
    kit_fill(k, s, x, 0, BYTES, 100 + i);
    kit_d2d(k, s, z, 0, y, 0, BYTES);
    kit_sync(k, s);
    kit_words(k, s, y, 0, BYTES, i, "what a replay copied, between two fills of its source");
    kit_words(k, s, z, 0, BYTES, i, "what was copied from a replay's result behind it");
    kit_busy_free(k, work);
  }
  k->t.capture.free(graph);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  kit_free(k, k->dev, z);
  k->t.stream.close(s);
}

static void other_stream(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev), *other = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k), *y = room(k);
  begin(k, s);
  kit_d2d(k, s, y, 0, x, 0, BYTES);
  heddle_pgraph *graph = end(k, s);
  for (uint32_t i = 1; i <= 4; i++) {
    heddle_pstream *via = i % 2 == 1 ? other : s;
    kit_fill(k, via, x, 0, BYTES, i);
    replay(k, graph, via);
    kit_sync(k, via);
    kit_words(k, via, y, 0, BYTES, i, "what a replay on another stream than the recording's copied");
  }
  k->t.stream.close(s); /* the graph outlives the stream that it was recorded on */
  kit_fill(k, other, x, 0, BYTES, 9);
  replay(k, graph, other);
  kit_sync(k, other);
  kit_words(k, other, y, 0, BYTES, 9, "what a replay copied after the recording's stream was closed");
  k->t.capture.free(graph);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  k->t.stream.close(other);
}

/* The recording is of places, not of bytes. */
static void addresses(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k);
  kit_pinned in = kit_pinned_new(k, k->dev, BYTES), out = kit_pinned_new(k, k->dev, BYTES);
  kit_pattern(in.at, BYTES, 50);
  kit_pinned_flush(k, &in);
  begin(k, s);
  kit_h2d(k, s, x, 0, in.buffer, 0, BYTES);
  kit_d2h(k, s, out.buffer, 0, x, 0, BYTES);
  heddle_pgraph *graph = end(k, s);
  for (uint32_t i = 0; i < 4; i++) {
    kit_pattern(in.at, BYTES, i);
    kit_pinned_flush(k, &in);
    replay(k, graph, s);
    kit_sync(k, s);
    kit_pinned_invalidate(k, &out);
    kit_same(k, out.at, BYTES, i, "what a replay copied through the host's memory of now");
  }
  k->t.capture.free(graph);
  kit_free(k, k->dev, x);
  kit_pinned_free(k, &in);
  kit_pinned_free(k, &out);
  k->t.stream.close(s);
}

static void two(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k);
  heddle_pgraph *all[2];
  for (uint32_t i = 0; i < 2; i++) {
    begin(k, s);
    kit_fill(k, s, x, i * (BYTES / 4), BYTES / 2, i + 1); /* the second covers half of the first */
    all[i] = end(k, s);
  }
  for (uint32_t i = 0; i < 6; i++) {
    kit_fill(k, s, x, 0, BYTES, 0);
    replay(k, all[i % 2], s);
    replay(k, all[(i + 1) % 2], s);
    kit_words(k, s, x, BYTES / 4, BYTES / 4, (i + 1) % 2 + 1, "bytes that two replays wrote, the second last");
  }
  k->t.capture.free(all[0]);
  kit_fill(k, s, x, 0, BYTES, 0);
  replay(k, all[1], s);
  kit_words(k, s, x, BYTES / 4, BYTES / 2, 2, "what one graph wrote after another was freed");
  k->t.capture.free(all[1]);
  k->t.capture.free(NULL);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

/* A refused call may spoil the recording, but end ends it, and the stream is as before. */
static void refused(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k);
  uint32_t word = 77;
  kit_fill(k, s, x, 0, BYTES, 5);
  kit_sync(k, s);
  for (uint32_t i = 0; i < 4; i++) {
    heddle_pgraph *graph = NULL;
    heddle_status status;
    begin(k, s);
    kit_fill(k, s, x, 0, BYTES, 6);
    if (i == 0) status = k->t.copy.write(s, x, 0, &word, 4, &k->err);
    else if (i == 1) status = k->t.copy.read(s, &word, x, 0, 4, &k->err);
    else if (i == 2) status = k->t.stream.sync(s, 1000000, &k->err);
    else status = k->t.stream.submit(s, &k->err);
    if (status != HEDDLE_OK) kit_fails(k, status, status, status, "a call that is not for captures");
    status = k->t.capture.end(s, &graph, &k->err);
    if (status != HEDDLE_OK) kit_fails(k, status, status, status, "capture.end after a refused call");
    k->t.capture.free(status == HEDDLE_OK ? graph : NULL);
    kit_fill(k, s, x, 0, BYTES, 10 + i);
    kit_sync(k, s);
    kit_words(k, s, x, 0, BYTES, 10 + i, "work after a capture with a refused call in it");
    begin(k, s);
    kit_fill(k, s, x, 0, BYTES, 20 + i);
    graph = end(k, s);
    replay(k, graph, s);
    kit_words(k, s, x, 0, BYTES, 20 + i, "a replay of the capture after one with a refused call");
    k->t.capture.free(graph);
  }
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

static void empty(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k);
  heddle_pgraph *graph = NULL;
  begin(k, s);
  heddle_status status = k->t.capture.end(s, &graph, &k->err);
  if (status == HEDDLE_OK) {
    replay(k, graph, s);
    kit_sync(k, s);
    k->t.capture.free(graph);
  } else {
    kit_fails(k, status, status, status, "capture.end of a row without work");
  }
  kit_fill(k, s, x, 0, BYTES, 3);
  kit_sync(k, s);
  kit_words(k, s, x, 0, BYTES, 3, "work after an empty capture");
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

/* Another stream works while one records; its work is done and not recorded. */
static void beside(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev), *other = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k), *y = room(k);
  begin(k, s);
  kit_fill(k, s, x, 0, BYTES, 1);
  heddle_pbuffer *z = room(k);
  kit_fill(k, other, y, 0, BYTES, 2);
  kit_d2d(k, other, z, 0, y, 0, BYTES);
  kit_sync(k, other);
  kit_words(k, other, z, 0, BYTES, 2, "work of a stream beside one that records");
  kit_fill(k, s, x, BYTES / 2, BYTES / 2, 3);
  heddle_pgraph *graph = end(k, s);
  kit_fill(k, other, y, 0, BYTES, 4);
  kit_sync(k, other);
  replay(k, graph, s);
  kit_sync(k, s);
  kit_words(k, s, x, BYTES / 2, BYTES / 2, 3, "a replay of what one stream recorded");
  kit_words(k, s, y, 0, BYTES, 4, "memory of a stream beside the one that recorded, after a replay");
  k->t.capture.free(graph);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  kit_free(k, k->dev, z);
  k->t.stream.close(s);
  k->t.stream.close(other);
}

/* Launches between copies; the graph goes before the launches that it recorded. */
static void launches(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k), *y = room(k);
  if (!k->t.has_capture) kit_skip(k, "the plugin has no captures");
  kit_relu relu = kit_relu_new(k, k->dev, k->index);
  heddle_plaunch *launch = kit_relu_bind(k, &relu, s, x, y);
  kit_relu_put(k, s, x, 1);
  kit_relu_run(k, launch); /* outside, before */
  kit_relu_check(k, s, y, 1, "a launch before a capture");
  kit_fill(k, s, y, 0, BYTES, 0x40404040);
  kit_sync(k, s);
  begin(k, s);
  kit_relu_run(k, launch);
  heddle_pgraph *graph = end(k, s);
  kit_sync(k, s);
  kit_words(k, s, y, 0, BYTES, 0x40404040, "the result of a recorded launch before any replay");
  for (uint32_t i = 2; i < 6; i++) {
    kit_relu_put(k, s, x, i);
    replay(k, graph, s);
    kit_relu_check(k, s, y, i, "a replayed launch");
  }
  kit_relu_put(k, s, x, 7);
  kit_relu_run(k, launch);
  kit_relu_check(k, s, y, 7, "a launch that was recorded, run by itself");
  k->t.capture.free(graph);
  k->t.op.launch_free(launch);
  kit_relu_free(k, &relu);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  k->t.stream.close(s);
}

static void counted(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = room(k);
  int64_t before = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS);
  begin(k, s);
  kit_fill(k, s, x, 0, BYTES, 1);
  heddle_pgraph *graph = end(k, s);
  int64_t more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 1) kit_fail(k, "LIVE_OBJECTS grew by %lld with one graph", (long long)more);
  k->t.capture.free(graph);
  more = kit_live(k, HEDDLE_QUERY_LIVE_OBJECTS) - before;
  if (more != 0) kit_fail(k, "LIVE_OBJECTS is off by %lld after a graph was freed", (long long)more);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

static void required(kit *k) {
  const heddle_capture_table *t = &k->t.capture;
  if (!k->t.has_capture) kit_skip(k, "the plugin has no captures");
  if (t->free == NULL || t->begin == NULL || t->end == NULL || t->replay == NULL)
    kit_fail(k, "the plugin has captures, and one of capture.free, begin, end and replay is NULL");
}

#define ON_DEVICE(name, promise, run) \
  { "capture/" name, promise, KIT_STAGE_DEVICE, 0, 60, run, NULL }

KIT_GROUP(kit_capture, "capture",
          {"capture/required", "a plugin that has captures has the whole table", KIT_STAGE_ENTRY, 0, 0, required, NULL},
          ON_DEVICE("records", "between begin and end work is recorded instead of run", records),
          ON_DEVICE("many-pieces", "all that is recorded is replayed, however much it is", many_pieces),
          ON_DEVICE("many-times", "one recording is replayed any number of times", many_times),
          ON_DEVICE("order", "a replay is work of its stream, in order with the rest", order),
          ON_DEVICE("other-stream", "a replay may be on another stream of the device", other_stream),
          ON_DEVICE("addresses", "addresses are those of the recording, and bytes those of the replay", addresses),
          ON_DEVICE("two", "two recordings do not disturb each other", two),
          ON_DEVICE("refused", "end ends the recording whatever it returns, and the stream is usable", refused),
          ON_DEVICE("empty", "a recording without work is one, or is refused", empty),
          ON_DEVICE("beside", "other streams run while one records", beside),
          ON_DEVICE("launches", "launches are recorded and replayed, and freed after the graph", launches),
          ON_DEVICE("counts", "LIVE_OBJECTS follows end and free", counted));
