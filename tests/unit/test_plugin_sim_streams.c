/* labels: threads
 * Sim's streams, events and fences: order, waits across streams and devices, failures that reach waiters, hangs. */
#include "sim_host.h"

static void work_of_a_stream_is_in_order(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, "delay_us", "50", NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  for (uint32_t i = 0; i < 600; i++) { /* more than the queue holds at first */
    sim_fill(&t, s, a, 1024, i);
    OK(&t, t.p->copy->d2d(s, b, 0, a, 0, 1024, &t.err));
  }
  sim_fill(&t, s, a, 1024, 0);
  OK(&t, t.p->stream->submit(s, &t.err));
  sim_sync(&t, s);
  OK(&t, t.p->stream->query(s, &t.err));
  sim_expect(&t, s, b, 256, 599);
  sim_expect(&t, s, a, 256, 0);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
}

static void nothing_starts_before_submit(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *pinned = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, 256);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 256);
  uint8_t *host = sim_map(&t, t.dev[0], pinned);
  memset(host, 1, 256);
  OK(&t, t.p->copy->h2d(s, b, 0, pinned, 0, 256, &t.err));
  OK(&t, t.p->stream->query(s, &t.err));
  memset(host, 2, 256); /* too early for the host's good: the copy has not been made */
  sim_sync(&t, s);
  sim_expect(&t, s, b, 64, 0x02020202);
  t.p->memory->free(t.dev[0], pinned);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
}

/* A chain through streams of three devices, with peer copies and random delays. */
static void events_order_streams_and_devices(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 3, "delay_us", "200", "seed", "7", NULL);
  heddle_pstream *s[3];
  heddle_pbuffer *b[3];
  heddle_pevent *e[3];
  for (int i = 0; i < 3; i++) {
    s[i] = sim_stream(&t, t.dev[i]);
    b[i] = sim_buf(&t, t.dev[i], HEDDLE_MEMORY_DEVICE, 4096);
    e[i] = sim_event(&t, t.dev[i]);
    OK(&t, t.p->event->wait(s[i], e[i], &t.err)); /* never recorded: reached */
  }
  for (uint32_t round = 1; round <= 30; round++) {
    sim_fill(&t, s[0], b[0], 4096, round);
    for (int i = 0; i < 3; i++) {
      int next = (i + 1) % 3;
      OK(&t, t.p->event->record(e[i], s[i], &t.err));
      OK(&t, t.p->event->wait(s[next], e[i], &t.err));
      OK(&t, t.p->stream->submit(s[i], &t.err));
      if (next != 0) OK(&t, t.p->copy->peer(s[next], t.dev[next], b[next], 0, t.dev[i], b[i], 0, 4096, &t.err));
    }
  }
  for (int i = 0; i < 3; i++) OK(&t, t.p->stream->submit(s[i], &t.err));
  for (int i = 0; i < 3; i++) {
    sim_sync(&t, s[i]);
    sim_expect(&t, s[i], b[i], 1024, 30);
  }
  for (int i = 0; i < 3; i++) {
    t.p->event->free(e[i]);
    t.p->memory->free(t.dev[i], b[i]);
    t.p->stream->close(s[i]);
  }
  sim_close(&t);
}

/* A wait means the record before it, though the event is recorded again on a stream that gets there first. */
static void a_wait_keeps_its_record(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, NULL);
  heddle_pstream *slow = sim_stream(&t, t.dev[0]), *fast = sim_stream(&t, t.dev[0]), *user = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1 << 20);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1 << 20);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  sim_fill(&t, slow, a, 1 << 20, 0);
  OK(&t, t.p->fence->wait(slow, 1, 1, &t.err));
  sim_fill(&t, slow, a, 1 << 20, 5);
  OK(&t, t.p->event->record(e, slow, &t.err));
  OK(&t, t.p->stream->submit(slow, &t.err));
  OK(&t, t.p->event->wait(user, e, &t.err));
  OK(&t, t.p->event->record(e, fast, &t.err));
  OK(&t, t.p->stream->submit(fast, &t.err));
  sim_sync(&t, fast);
  OK(&t, t.p->copy->d2d(user, b, 0, a, 0, 1 << 20, &t.err));
  OK(&t, t.p->stream->submit(user, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "work left", t.p->stream->query(user, &t.err));
  sim_test_signal(&t, 1, 1);
  sim_sync(&t, user);
  sim_expect(&t, user, b, 1 << 18, 5);
  t.p->event->free(e);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(slow);
  t.p->stream->close(fast);
  t.p->stream->close(user);
  sim_close(&t);
}

static void event_domains_can_be_apart(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 2, "event_domains", "1", NULL);
  heddle_pdevice_desc d[2] = {{.struct_size = sizeof d[0]}, {.struct_size = sizeof d[0]}};
  OK(&t, t.p->device_describe(t.self, 0, &d[0], &t.err));
  OK(&t, t.p->device_describe(t.self, 1, &d[1], &t.err));
  assert_true(d[0].event_domain != d[1].event_domain);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pevent *e = sim_event(&t, t.dev[1]);
  heddle_pbuffer *host = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_PINNED, 256);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 256);
  FAILS(&t, HEDDLE_EINVAL, "event domain", t.p->event->wait(s, e, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "event domain", t.p->copy->h2d(s, b, 0, host, 0, 256, &t.err));
  t.p->memory->free(t.dev[1], host);
  t.p->memory->free(t.dev[0], b);
  t.p->event->free(e);
  t.p->stream->close(s);
  sim_close(&t);
}

static void fences_are_signalled_and_waited_for(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 2, "delay_us", "100", NULL);
  heddle_pstream *a = sim_stream(&t, t.dev[0]), *b = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *x = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pbuffer *y = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 4096);
  for (uint32_t i = 1; i <= 20; i++) {
    OK(&t, t.p->fence->wait(b, 1, i, &t.err)); /* before its signal */
    OK(&t, t.p->copy->peer(b, t.dev[1], y, 0, t.dev[0], x, 0, 4096, &t.err));
    OK(&t, t.p->fence->signal(b, 2, i, &t.err));
    sim_fill(&t, a, x, 4096, i);
    OK(&t, t.p->fence->signal(a, 1, i, &t.err));
    assert_int_equal(sim_wait(&t, 2, i), HEDDLE_OK);
    sim_expect(&t, b, y, 1024, i);
  }
  t.p->memory->free(t.dev[0], x);
  t.p->memory->free(t.dev[1], y);
  t.p->stream->close(a);
  t.p->stream->close(b);
  sim_close(&t);
}

static void a_failure_reaches_fences_and_waiting_streams(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 2, "fail", "fill:2:async", NULL);
  heddle_pstream *a = sim_stream(&t, t.dev[0]), *b = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *x = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 256);
  heddle_pbuffer *y = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 256);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  sim_fill(&t, a, x, 256, 1);
  OK(&t, t.p->fence->signal(a, 1, 1, &t.err));
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_OK);
  sim_fill(&t, a, x, 256, 2); /* fails when it is executed */
  sim_fill(&t, a, x, 256, 3); /* and so is passed over */
  OK(&t, t.p->event->record(e, a, &t.err));
  OK(&t, t.p->event->wait(b, e, &t.err));
  sim_fill(&t, b, y, 256, 4);
  OK(&t, t.p->fence->signal(a, 2, 1, &t.err));
  OK(&t, t.p->fence->signal(b, 3, 1, &t.err));
  assert_int_equal(sim_wait(&t, 2, 1), HEDDLE_EFAILED);
  assert_non_null(strstr(t.fences[2].text, "'fill'"));
  assert_int_equal(sim_wait(&t, 3, 1), HEDDLE_EFAILED);
  assert_non_null(strstr(t.fences[3].text, "event whose work failed"));
  FAILS(&t, HEDDLE_EFAILED, "fill", t.p->stream->sync(a, SECOND, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "event", t.p->stream->sync(b, SECOND, &t.err));
  sim_sync(&t, a); /* reported once */
  sim_sync(&t, b);
  sim_expect(&t, a, x, 64, 1);
  OK(&t, t.p->fence->signal(a, 4, 1, &t.err));
  assert_int_equal(sim_wait(&t, 4, 1), HEDDLE_OK);
  /* A wait for the record that failed fails still, though that was reported. */
  OK(&t, t.p->event->wait(b, e, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "event", t.p->stream->sync(b, SECOND, &t.err));
  /* And a stream that waits for a fence that failed. */
  OK(&t, t.p->fence->wait(b, 2, 1, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "fence", t.p->stream->sync(b, SECOND, &t.err));
  OK(&t, t.p->device->health(t.dev[0], &t.err));
  t.p->event->free(e);
  t.p->memory->free(t.dev[0], x);
  t.p->memory->free(t.dev[1], y);
  t.p->stream->close(a);
  t.p->stream->close(b);
  sim_close(&t);
}

static void a_hang_times_out_and_close_ends_it(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 0, NULL);
  sim_open_with(&t, 0, "hang", "2");
  sim_open_with(&t, 1, "hang", "0");
  heddle_pstream *s = sim_stream(&t, t.dev[0]), *other = sim_stream(&t, t.dev[0]), *far = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *x = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  uint8_t bytes[16];
  sim_fill(&t, s, x, 4096, 1);
  sim_fill(&t, s, x, 4096, 2); /* never completes */
  OK(&t, t.p->event->record(e, s, &t.err));
  OK(&t, t.p->event->wait(far, e, &t.err)); /* waits on another device forever */
  OK(&t, t.p->fence->signal(s, 1, 1, &t.err));
  OK(&t, t.p->fence->signal(far, 2, 1, &t.err));
  FAILS(&t, HEDDLE_ETIMEOUT, "did not finish", t.p->stream->sync(s, SECOND / 20, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "", t.p->stream->query(s, &t.err));
  FAILS(&t, HEDDLE_ETIMEOUT, "work is left", t.p->device->idle(t.dev[0], SECOND / 20, &t.err));
  FAILS(&t, HEDDLE_ETIMEOUT, "never completes", t.p->copy->read(s, bytes, x, 0, sizeof bytes, &t.err));
  OK(&t, t.p->copy->write(s, x, 0, bytes, sizeof bytes, &t.err)); /* kept, and freed in the end */
  OK(&t, t.p->device->health(t.dev[0], &t.err));
  sim_sync(&t, other);            /* other streams go on */
  t.p->memory->free(t.dev[0], x); /* kept until nothing touches it */
  t.p->event->free(e);
  t.p->stream->close(s);
  t.p->stream->close(other);
  uint64_t start = fake_now_ns(NULL);
  t.p->device->close(t.dev[0]);
  assert_true(fake_now_ns(NULL) - start < 2 * SECOND);
  t.dev[0] = NULL;
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_ECANCELED);
  assert_int_equal(sim_wait(&t, 2, 1), HEDDLE_EFAILED); /* what waited for it hears of it */
  FAILS(&t, HEDDLE_EFAILED, "closed", t.p->stream->sync(far, SECOND, &t.err));
  t.p->stream->close(far);
  sim_close(&t);
}

static void streams_open_and_close_in_storms(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, NULL);
  heddle_pbuffer *b[200];
  for (uint32_t i = 0; i < 200; i++) {
    heddle_pstream *s = sim_stream(&t, t.dev[0]);
    b[i] = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1 << 14);
    sim_fill(&t, s, b[i], 1 << 14, i);
    if (i % 2 == 0) sim_sync(&t, s);
    t.p->stream->close(s); /* may finish behind our back */
    FAILS(&t, HEDDLE_EINVAL, "no open stream", t.p->stream->sync(s, 0, &t.err));
    if (i % 50 == 49) {
      OK(&t, t.p->device->idle(t.dev[0], SECOND, &t.err));
      heddle_pdevice *again = NULL;
      heddle_pdevice_options options = {.struct_size = sizeof options};
      OK(&t, t.p->device->open(t.self, 0, &options, &again, &t.err));
      heddle_pstream *s2 = sim_stream(&t, again);
      sim_sync(&t, s2);
      t.p->stream->close(s2);
      t.p->device->close(again);
    }
  }
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  for (uint32_t i = 0; i < 200; i++) {
    sim_expect(&t, s, b[i], 1 << 12, i);
    t.p->memory->free(t.dev[0], b[i]);
  }
  t.p->stream->close(s);
  sim_close(&t);
}

typedef struct user {
  sim_test *t;
  uint32_t number;
  bool good;
} user;

/* Its own stream on one device and on the next, buffers that come and go, events between the two. */
static void *use(void *arg) {
  user *u = arg;
  const heddle_plugin *p = u->t->p;
  heddle_pdevice *d0 = u->t->dev[u->number % 3], *d1 = u->t->dev[(u->number + 1) % 3];
  heddle_error err;
  heddle_pstream *a = NULL, *b = NULL;
  heddle_pevent *e = NULL;
  bool good = p->stream->create(d0, 0, 0, &a, &err) == HEDDLE_OK &&
              p->stream->create(d1, 1, 0, &b, &err) == HEDDLE_OK && p->event->create(d0, &e, &err) == HEDDLE_OK;
  for (uint32_t i = 1; i < 60 && good; i++) {
    heddle_pmemory_desc d = {.struct_size = sizeof d, .kind = HEDDLE_MEMORY_DEVICE, .bytes = 4096, .align = 256};
    heddle_pbuffer *x = NULL, *y = NULL;
    uint32_t got[1024], word = u->number << 16 | i;
    good = p->memory->alloc(d0, &d, &x, &err) == HEDDLE_OK && p->memory->alloc(d1, &d, &y, &err) == HEDDLE_OK &&
           p->copy->fill(a, x, 0, 4096, word, &err) == HEDDLE_OK && p->event->record(e, a, &err) == HEDDLE_OK &&
           p->stream->submit(a, &err) == HEDDLE_OK && p->event->wait(b, e, &err) == HEDDLE_OK &&
           p->copy->peer(b, d1, y, 0, d0, x, 0, 4096, &err) == HEDDLE_OK &&
           p->fence->signal(b, u->number, i, &err) == HEDDLE_OK && sim_wait(u->t, u->number, i) == HEDDLE_OK &&
           p->copy->read(b, got, y, 0, 4096, &err) == HEDDLE_OK;
    for (int k = 0; k < 1024 && good; k++) good = got[k] == word;
    if (i % 20 == 0) good = good && p->device->idle(d0, 20 * SECOND, &err) == HEDDLE_OK;
    p->memory->free(d0, x);
    p->memory->free(d1, y);
  }
  p->event->free(e);
  p->stream->close(a);
  p->stream->close(b);
  u->good = good;
  return NULL;
}

static void threads_share_devices(void **state) {
  sim_test t;
  pthread_t threads[4];
  user users[4];
  (void)state;
  sim_open(&t, 3, "delay_us", "20", NULL);
  for (uint32_t i = 0; i < 4; i++) {
    users[i] = (user){&t, i, false};
    assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    assert_true(users[i].good);
  }
  sim_close(&t);
}

/* An adopted stream is the owner's: marks and waits in it order the owner's work, and its close ends nothing. */
static void streams_of_others_are_adopted(void **state) {
  sim_test t;
  heddle_pstream *taken = NULL, *twice = NULL, *none = NULL;
  (void)state;
  sim_open(&t, 2, "delay_us", "300", "seed", "3", NULL);
  heddle_pstream *owner = sim_stream(&t, t.dev[0]), *other = sim_stream(&t, t.dev[0]), *far = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  const int64_t live = sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_OBJECTS);
  OK(&t, t.p->stream->adopt(t.dev[0], (uintptr_t)owner, &taken, &t.err));
  OK(&t, t.p->stream->adopt(t.dev[0], (uintptr_t)owner, &twice, &t.err));
  assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_OBJECTS), live + 2);
  for (uint32_t i = 1; i <= 20; i++) {
    sim_fill(&t, owner, a, 1024, i);
    OK(&t, t.p->event->record(e, taken, &t.err));
    OK(&t, t.p->stream->submit(taken, &t.err));
    OK(&t, t.p->event->wait(other, e, &t.err));
    OK(&t, t.p->copy->d2d(other, b, 0, a, 0, 1024, &t.err));
    OK(&t, t.p->event->record(e, other, &t.err));
    OK(&t, t.p->stream->submit(other, &t.err));
    OK(&t, t.p->event->wait(twice, e, &t.err));
    sim_fill(&t, owner, a, 1024, 0);
    OK(&t, t.p->stream->submit(owner, &t.err));
    sim_sync(&t, twice);
    sim_expect(&t, owner, b, 256, i);
    sim_expect(&t, owner, a, 256, 0);
  }
  sim_fill(&t, owner, a, 1024, 77);
  t.p->stream->close(twice);
  t.p->stream->close(taken);
  assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_OBJECTS), live);
  sim_expect(&t, owner, a, 256, 77);
  assert_int_equal(t.p->stream->adopt(t.dev[0], (uintptr_t)far, &none, &t.err), HEDDLE_EINVAL);
  assert_non_null(strstr(t.err.text, "sim:1"));
  assert_non_null(strstr(t.err.text, "sim:0"));
  assert_int_equal(t.p->stream->adopt(t.dev[0], 0, &none, &t.err), HEDDLE_EINVAL);
  assert_int_equal(t.p->stream->adopt(t.dev[0], (uintptr_t)&t, &none, &t.err), HEDDLE_EINVAL);
  assert_null(none);
  t.p->stream->close(owner);
  assert_int_equal(t.p->stream->adopt(t.dev[0], (uintptr_t)owner, &none, &t.err), HEDDLE_EINVAL);
  t.p->event->free(e);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(other);
  t.p->stream->close(far);
  sim_close(&t);
}

CASES(CASE(threads_share_devices), CASE(streams_of_others_are_adopted), CASE(work_of_a_stream_is_in_order),
      CASE(nothing_starts_before_submit), CASE(events_order_streams_and_devices), CASE(a_wait_keeps_its_record),
      CASE(event_domains_can_be_apart), CASE(fences_are_signalled_and_waited_for),
      CASE(a_failure_reaches_fences_and_waiting_streams), CASE(a_hang_times_out_and_close_ends_it),
      CASE(streams_open_and_close_in_storms))
