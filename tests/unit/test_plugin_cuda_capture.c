/* labels: serial
 * timeout: 60
 * Captures of the GPU plugins on the double of a driver: graphs replayed on any stream of their device, freed ones updated
 * to new addresses, and what is left of a capture that breaks. */
#include "cuda_gate.h"

enum { WORDS = 64, BYTES = 4 * WORDS };

/* Records n fills of the buffer, the last with word, and a copy to the host. */
static heddle_pgraph *record(sim_test *t, heddle_pstream *s, heddle_pbuffer *a, heddle_pbuffer *host, uint32_t n,
                             uint32_t word) {
  heddle_pgraph *g = NULL;
  OK(t, t->p->capture->begin(s, &t->err));
  for (uint32_t i = 1; i <= n; i++) sim_fill(t, s, a, BYTES, word + n - i);
  OK(t, t->p->copy->d2h(s, host, 0, a, 0, BYTES, &t->err));
  OK(t, t->p->capture->end(s, &g, &t->err));
  return g;
}

static void a_capture_replays_its_row(void **state) {
  sim_test t;
  (void)state;
  cuda_open(&t, 2, NULL);
  const heddle_capture_table *c = t.p->capture;
  heddle_pstream *s = sim_stream(&t, t.dev[0]), *s2 = sim_stream(&t, t.dev[0]), *far = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *in = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, BYTES);
  heddle_pbuffer *out = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, BYTES);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  heddle_pgraph *g = NULL, *empty = NULL, *none = NULL;
  uint32_t *pin = (uint32_t *)(void *)sim_map(&t, t.dev[0], in), *pout = (uint32_t *)(void *)sim_map(&t, t.dev[0], out);
  FAILS(&t, HEDDLE_EINVAL, "none was begun", c->end(s, &none, &t.err));
  OK(&t, c->begin(s, &t.err));
  OK(&t, t.p->copy->h2d(s, a, 0, in, 0, BYTES, &t.err));
  for (uint32_t i = 0; i < 100; i++) sim_fill(&t, s, b, 1024, i);
  OK(&t, t.p->copy->d2d(s, b, 0, a, 0, BYTES / 2, &t.err));
  OK(&t, t.p->copy->d2h(s, out, 0, b, 0, BYTES, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->stream->submit(s, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->stream->sync(s, SECOND, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "capture", t.p->stream->query(s, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->event->record(e, s, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->event->wait(s, e, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->fence->signal(s, 1, 1, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->copy->write(s, a, 0, pin, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->copy->read(s, pout, a, 0, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", c->begin(s, &t.err));
  OK(&t, c->end(s, &g, &t.err));
  for (int i = 0; i < WORDS; i++) pin[i] = 1, pout[i] = 0;
  sim_sync(&t, s);
  assert_int_equal(pout[0], 0); /* recording does nothing */
  for (uint32_t round = 1; round < 5; round++) {
    heddle_pstream *on = round % 2 == 0 ? s : s2;
    for (int i = 0; i < WORDS; i++) pin[i] = round;
    const long calls = atomic_load(&t.fake.calls);
    OK(&t, c->replay(g, on, &t.err));
    assert_int_equal(atomic_load(&t.fake.calls), calls); /* no allocation */
    sim_sync(&t, on);
    assert_int_equal(pout[0], round);
    assert_int_equal(pout[WORDS / 2 - 1], round);
    assert_int_equal(pout[WORDS / 2], 99);
  }
  for (int i = 0; i < 20; i++) OK(&t, c->replay(g, s, &t.err)); /* again before it has ended */
  sim_sync(&t, s);
  FAILS(&t, HEDDLE_EINVAL, "no capture", c->replay(g, far, &t.err));
  OK(&t, c->begin(s, &t.err));
  OK(&t, c->end(s, &empty, &t.err));
  OK(&t, c->replay(empty, s, &t.err)); /* nothing, and so be it */
  sim_sync(&t, s);
  OK(&t, c->begin(far, &t.err)); /* left open: close ends it */
  t.p->stream->close(far);
  c->free(empty);
  c->free(g);
  t.p->event->free(e);
  t.p->memory->free(t.dev[0], in);
  t.p->memory->free(t.dev[0], out);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  t.p->stream->close(s2);
  sim_close(&t);
}

/* ---------------------------------------------------------------- graphs that are updated */

enum { BUFFERS = 4 };

typedef struct desk {
  sim_test t;
  heddle_pstream *s;
  heddle_pbuffer *a[BUFFERS], *host;
  uint32_t *words;
} desk;

static char last_words[256]; /* that were logged; by the thread of the test */

static void keep_words(void *ctx, int32_t level, const char *component, const char *text) {
  (void)ctx, (void)component;
  if (level == HEDDLE_LOG_DEBUG) snprintf(last_words, sizeof last_words, "%s", text);
}

static void said(const char *words) {
  if (strstr(last_words, words) == NULL) fail_msg("no '%s' in '%s'", words, last_words);
}

static void desk_open(desk *d) {
  cuda_open(&d->t, 1, NULL);
  gate_watch(&d->t);
  d->t.fake.table.log = keep_words;
  d->s = sim_stream(&d->t, d->t.dev[0]);
  for (int i = 0; i < BUFFERS; i++) d->a[i] = sim_buf(&d->t, d->t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  d->host = sim_buf(&d->t, d->t.dev[0], HEDDLE_MEMORY_PINNED, BYTES);
  d->words = (uint32_t *)(void *)sim_map(&d->t, d->t.dev[0], d->host);
}

static void desk_close(desk *d) {
  for (int i = 0; i < BUFFERS; i++) d->t.p->memory->free(d->t.dev[0], d->a[i]);
  d->t.p->memory->free(d->t.dev[0], d->host);
  d->t.p->stream->close(d->s);
  sim_close(&d->t);
}

/* Replays, and checks that the host got word, and so did the buffer that was recorded. */
static void expect(desk *d, heddle_pgraph *g, heddle_pbuffer *a, uint32_t word) {
  memset(d->words, 0, BYTES);
  sim_fill(&d->t, d->s, a, BYTES, 12345);
  OK(&d->t, d->t.p->capture->replay(g, d->s, &d->t.err));
  sim_expect(&d->t, d->s, a, WORDS, word);
  for (int i = 0; i < WORDS; i++) assert_int_equal(d->words[i], word);
}

static int made(void) {
  return gate_calls("cuGraphInstantiateWithFlags");
}

/* A freed graph is updated to new addresses and values, and nothing is instantiated. */
static void a_changed_address_is_an_update(void **state) {
  desk d;
  (void)state;
  desk_open(&d);
  heddle_pgraph *g = record(&d.t, d.s, d.a[0], d.host, 3, 70), *other = NULL;
  expect(&d, g, d.a[0], 70);
  assert_int_equal(made(), 1);
  said("a capture of 4 nodes was made anew (1 made, 0 updated, 0 refused)");
  for (uint32_t i = 1; i < 10; i++) {
    heddle_pbuffer *a = d.a[i % BUFFERS];
    d.t.p->capture->free(g);
    g = record(&d.t, d.s, a, d.host, 3, 70 + i);
    expect(&d, g, a, 70 + i);
    assert_int_equal(made(), 1);
    assert_int_equal(gate_calls("updates"), (int)i);
  }
  said("a capture of 4 nodes updated one that was freed (1 made, 9 updated, 0 refused)");
  other = record(&d.t, d.s, d.a[0], d.host, 3, 80); /* none is free */
  assert_int_equal(made(), 2);
  expect(&d, other, d.a[0], 80);
  expect(&d, g, d.a[9 % BUFFERS], 79);
  d.t.p->capture->free(g);
  g = record(&d.t, d.s, d.a[0], d.host, 4, 90); /* of another size */
  assert_int_equal(made(), 3);
  expect(&d, g, d.a[0], 90);
  assert_int_equal(gate_calls("updates"), 9);
  d.t.p->capture->free(g);
  d.t.p->capture->free(other);
  desk_close(&d);
}

/* A graph that was updated many times gives way to a new one. */
static void updates_come_to_an_end(void **state) {
  enum { RUNS = 200 };
  desk d;
  (void)state;
  desk_open(&d);
  for (uint32_t i = 0; i < RUNS; i++) {
    heddle_pgraph *g = record(&d.t, d.s, d.a[i % BUFFERS], d.host, 1, i);
    if (i % 50 == 49) expect(&d, g, d.a[i % BUFFERS], i);
    sim_sync(&d.t, d.s);
    d.t.p->capture->free(g);
  }
  assert_true(made() > 1 && made() < RUNS / 20);
  assert_int_equal(gate_calls("updates"), RUNS - made());
  desk_close(&d);
}

/* As many nodes, but others: the driver refuses, and the graph is made anew. */
static void a_refused_update_is_made_anew(void **state) {
  desk d;
  heddle_pgraph *g = NULL;
  (void)state;
  desk_open(&d);
  d.t.p->capture->free(record(&d.t, d.s, d.a[0], d.host, 1, 1)); /* a fill and a copy */
  assert_int_equal(made(), 1);
  sim_fill(&d.t, d.s, d.a[0], BYTES, 4);
  OK(&d.t, d.t.p->capture->begin(d.s, &d.t.err));
  OK(&d.t, d.t.p->copy->d2d(d.s, d.a[1], 0, d.a[0], 0, BYTES, &d.t.err));
  OK(&d.t, d.t.p->copy->d2d(d.s, d.a[2], 0, d.a[1], 0, BYTES, &d.t.err));
  OK(&d.t, d.t.p->capture->end(d.s, &g, &d.t.err));
  said("2 nodes was made anew (2 made, 0 updated, 1 refused)");
  assert_int_equal(gate_calls("cuGraphExecUpdate"), 1);
  assert_int_equal(gate_calls("updates"), 0);
  assert_int_equal(made(), 2);
  OK(&d.t, d.t.p->capture->replay(g, d.s, &d.t.err));
  sim_expect(&d.t, d.s, d.a[2], WORDS, 4);
  d.t.p->capture->free(g);
  desk_close(&d);
}

/* A graph that is freed while it is under way runs to its end as it was, and is updated only after that. */
static void a_running_graph_is_left_alone(void **state) {
  desk d;
  (void)state;
  desk_open(&d);
  heddle_pgraph *g = record(&d.t, d.s, d.a[0], d.host, 2, 30);
  heddle_pstream *held = sim_stream(&d.t, d.t.dev[0]);
  gate_shut(&d.t, held);
  OK(&d.t, d.t.p->capture->replay(g, held, &d.t.err));
  d.t.p->capture->free(g);
  d.t.p->stream->close(held); /* its work goes on */
  g = record(&d.t, d.s, d.a[1], d.host, 2, 31);
  assert_int_equal(gate_calls("updates"), 0);
  assert_int_equal(made(), 2);
  expect(&d, g, d.a[1], 31);
  gate_open(&d.t);
  OK(&d.t, d.t.p->device->idle(d.t.dev[0], 20 * SECOND, &d.t.err));
  sim_expect(&d.t, d.s, d.a[0], WORDS, 30);
  heddle_pgraph *next = record(&d.t, d.s, d.a[2], d.host, 2, 32);
  assert_int_equal(gate_calls("updates"), 1);
  assert_int_equal(made(), 2);
  expect(&d, next, d.a[2], 32);
  expect(&d, g, d.a[1], 31);
  d.t.p->capture->free(g);
  d.t.p->capture->free(next);
  desk_close(&d);
}

/* Of many freed graphs a few are kept, and all go with the device. */
static void few_graphs_are_kept(void **state) {
  enum { MANY = 40 };
  desk d;
  heddle_pgraph *g[MANY];
  (void)state;
  desk_open(&d);
  for (int i = 0; i < MANY; i++) g[i] = record(&d.t, d.s, d.a[0], d.host, 2, 1);
  const int destroyed = gate_calls("cuGraphExecDestroy");
  for (int i = 0; i < MANY; i++) d.t.p->capture->free(g[i]);
  assert_true(gate_calls("cuGraphExecDestroy") - destroyed >= MANY - 16);
  assert_int_equal(sim_query(&d.t, d.t.dev[0], HEDDLE_QUERY_LIVE_OBJECTS), 1); /* the stream */
  desk_close(&d);
}

/* ---------------------------------------------------------------- captures that fail */

/* The words are those of the call that failed; the stream and the next capture are as ever. */
static void a_broken_capture_leaves_the_stream(void **state) {
  desk d;
  heddle_pgraph *g = NULL;
  (void)state;
  setenv("FAKE_GPU_FAIL", "cuMemsetD32Async:2:900", 1);
  desk_open(&d);
  sim_fill(&d.t, d.s, d.a[0], BYTES, 9);
  OK(&d.t, d.t.p->capture->begin(d.s, &d.t.err));
  FAILS(&d.t, HEDDLE_EFAILED, "(900)", d.t.p->copy->fill(d.s, d.a[0], 0, BYTES, 1, &d.t.err));
  OK(&d.t, d.t.p->copy->d2d(d.s, d.a[1], 0, d.a[0], 0, BYTES, &d.t.err));
  FAILS(&d.t, HEDDLE_EFAILED, "(900)", d.t.p->capture->end(d.s, &g, &d.t.err));
  OK(&d.t, d.t.p->fence->signal(d.s, 1, 1, &d.t.err));
  sim_sync(&d.t, d.s);
  sim_expect(&d.t, d.s, d.a[0], WORDS, 9);
  g = record(&d.t, d.s, d.a[2], d.host, 3, 50);
  expect(&d, g, d.a[2], 50);
  d.t.p->capture->free(g);
  desk_close(&d);
}

static void what_the_driver_refuses_is_told(void **state) {
  desk d;
  heddle_pgraph *g = NULL;
  (void)state;
  setenv("FAKE_GPU_FAIL", "cuStreamBeginCapture:1:801,cuGraphInstantiateWithFlags:1:1,cuGraphLaunch:1:1", 1);
  desk_open(&d);
  FAILS(&d.t, HEDDLE_EUNSUPPORTED, "begin a capture", d.t.p->capture->begin(d.s, &d.t.err));
  OK(&d.t, d.t.p->capture->begin(d.s, &d.t.err));
  sim_fill(&d.t, d.s, d.a[0], BYTES, 1);
  FAILS(&d.t, HEDDLE_EFAILED, "instantiate a graph", d.t.p->capture->end(d.s, &g, &d.t.err));
  g = record(&d.t, d.s, d.a[0], d.host, 1, 5);
  FAILS(&d.t, HEDDLE_EFAILED, "replay", d.t.p->capture->replay(g, d.s, &d.t.err));
  FAILS(&d.t, HEDDLE_EFAILED, "replay", d.t.p->stream->sync(d.s, SECOND, &d.t.err));
  expect(&d, g, d.a[0], 5);
  d.t.p->capture->free(g);
  desk_close(&d);
}

/* The driver is out of memory: what is kept of freed graphs goes, and it is tried again. */
static void kept_graphs_give_way(void **state) {
  desk d;
  (void)state;
  setenv("FAKE_GPU_FAIL", "cuGraphInstantiateWithFlags:2:2", 1);
  desk_open(&d);
  d.t.p->capture->free(record(&d.t, d.s, d.a[0], d.host, 1, 1));
  sim_sync(&d.t, d.s);
  const int destroyed = gate_calls("cuGraphExecDestroy");
  heddle_pgraph *g = record(&d.t, d.s, d.a[0], d.host, 5, 61);
  assert_int_equal(made(), 3);
  assert_int_equal(gate_calls("cuGraphExecDestroy"), destroyed + 1);
  expect(&d, g, d.a[0], 61);
  d.t.p->capture->free(g);
  desk_close(&d);
}

/* A device that is lost in the middle of a capture. */
static void a_lost_device_ends_a_capture(void **state) {
  desk d;
  heddle_pgraph *g = NULL, *before = NULL;
  (void)state;
  setenv("FAKE_GPU_FAULT", "fill:1:700", 1);
  setenv("FAKE_GPU_STRICT", "0", 1); /* memory cannot be freed on a lost device, nor a capture ended */
  desk_open(&d);
  heddle_pstream *bad = sim_stream(&d.t, d.t.dev[0]);
  before = record(&d.t, d.s, d.a[0], d.host, 1, 1);
  OK(&d.t, d.t.p->capture->begin(d.s, &d.t.err));
  OK(&d.t, d.t.p->copy->fill(bad, d.a[0], 0, BYTES, 1, &d.t.err)); /* not recorded: another stream */
  d.t.p->fence->signal(bad, 1, 1, &d.t.err);                       /* it may know already */
  assert_int_equal(sim_wait(&d.t, 1, 1), HEDDLE_EDEVICE);
  FAILS(&d.t, HEDDLE_EDEVICE, "(700)", d.t.p->copy->fill(d.s, d.a[0], 0, BYTES, 1, &d.t.err));
  FAILS(&d.t, HEDDLE_EDEVICE, "(700)", d.t.p->capture->end(d.s, &g, &d.t.err));
  FAILS(&d.t, HEDDLE_EDEVICE, "(700)", d.t.p->capture->replay(before, d.s, &d.t.err));
  FAILS(&d.t, HEDDLE_EDEVICE, "(700)", d.t.p->capture->begin(d.s, &d.t.err));
  d.t.p->capture->free(before);
  d.t.p->stream->close(bad);
  desk_close(&d);
}

/* The n-th allocation fails: a capture that is not there, never half of one. */
static void memory_runs_out_in_a_capture(void **state) {
  desk d;
  int done = 0;
  (void)state;
  desk_open(&d);
  for (long n = 1; n < 10 && !done; n++) {
    heddle_pgraph *g = NULL;
    d.t.fake.fail_at = atomic_load(&d.t.fake.calls) + n;
    heddle_status status = d.t.p->capture->begin(d.s, &d.t.err);
    const bool begun = status == HEDDLE_OK;
    for (uint32_t i = 0; i < 50 && status == HEDDLE_OK; i++)
      status = d.t.p->copy->fill(d.s, d.a[0], 0, BYTES, i, &d.t.err);
    if (begun) {
      heddle_status ended = d.t.p->capture->end(d.s, &g, &d.t.err);
      if (status == HEDDLE_OK) status = ended;
    }
    d.t.fake.fail_at = 0;
    if (status != HEDDLE_OK) assert_int_equal(status, HEDDLE_ENOMEM);
    done = status == HEDDLE_OK;
    d.t.p->capture->free(g);
  }
  assert_true(done);
  desk_close(&d);
}

static void the_setting_decides(void **state) {
  sim_test t;
  (void)state;
  cuda_open(&t, 1, "capture", "0", NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "setting capture is 0", t.p->capture->begin(s, &t.err));
  t.p->stream->close(s);
  sim_close(&t);
}

CASES(CASE_LABELS(a_capture_replays_its_row, "threads"), CASE_LABELS(a_changed_address_is_an_update, "threads"),
      CASE(updates_come_to_an_end), CASE(a_refused_update_is_made_anew),
      CASE_LABELS(a_running_graph_is_left_alone, "threads"), CASE(few_graphs_are_kept),
      CASE(a_broken_capture_leaves_the_stream), CASE(what_the_driver_refuses_is_told), CASE(kept_graphs_give_way),
      CASE_LABELS(a_lost_device_ends_a_capture, "threads"), CASE(memory_runs_out_in_a_capture),
      CASE(the_setting_decides))
