/* labels: vulkan
 * timeout: 300
 * Copies, streams, events, fences, times and captures of the vulkan plugin; with timeline semaphores and without, with shared
 * memory and without, all under the validation layer. */
#include "vulkan_host.h"

/* Every kind of copy, at odd offsets, leaves the bytes outside its range alone. */
static void copies_keep_to_their_ranges(void **state) {
  enum { BYTES = 1024 };
  (void)state;
  for (int shares = 0; shares < 2; shares++) {
    sim_test t;
    uint8_t own[BYTES], got[BYTES];
    vulkan_open(&t, 2, "unified", shares ? "1" : "0", NULL);
    heddle_pdevice *dev = t.dev[0];
    heddle_pstream *s = sim_stream(&t, dev);
    heddle_pbuffer *a = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
    heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
    heddle_pbuffer *far = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, BYTES);
    heddle_pbuffer *pinned = sim_buf(&t, dev, HEDDLE_MEMORY_PINNED, BYTES);
    heddle_pbuffer *source = sim_buf(&t, dev, HEDDLE_MEMORY_PINNED, BYTES);
    uint8_t *host = sim_map(&t, dev, pinned), *from = sim_map(&t, dev, source);
    for (int i = 0; i < BYTES; i++) from[i] = own[i] = (uint8_t)(i * 7);
    memset(host, 0x55, BYTES);
    sim_fill(&t, s, a, BYTES, 0xAAAAAAAA);
    sim_fill(&t, s, b, BYTES, 0xBBBBBBBB);
    OK(&t, t.p->copy->h2d(s, a, 3, source, 5, 501, &t.err));  /* a[3..504) = from[5..506) */
    OK(&t, t.p->copy->d2d(s, b, 100, a, 3, 501, &t.err));     /* b[100..601) */
    OK(&t, t.p->copy->d2h(s, pinned, 7, b, 99, 503, &t.err)); /* host[7..510) = b[99..602) */
    sim_sync(&t, s);
    for (int i = 0; i < BYTES; i++) {
      int want = 0x55;
      if (i >= 7 && i < 510) want = i - 7 == 0 || i - 7 == 502 ? 0xBB : (uint8_t)((i - 8 + 5) * 7);
      assert_int_equal(host[i], want);
    }
    OK(&t, t.p->copy->write(s, b, 1, own, 10, &t.err));
    OK(&t, t.p->copy->read(s, got, b, 0, 12, &t.err));
    assert_true(got[0] == 0xBB && got[11] == 0xBB && memcmp(got + 1, own, 10) == 0);

    FAILS(&t, HEDDLE_EINVAL, "1 bytes at 1024", t.p->copy->h2d(s, a, BYTES, pinned, 0, 1, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "kind device", t.p->copy->h2d(s, a, 0, b, 0, 4, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "belongs to vulkan:1", t.p->copy->d2d(s, far, 0, a, 0, 4, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "multiples of 4", t.p->copy->fill(s, a, 2, 4, 0, &t.err));
    sim_sync(&t, s);
    t.p->memory->free(dev, source);
    t.p->memory->free(dev, pinned);
    t.p->memory->free(dev, b);
    t.p->memory->free(dev, a);
    t.p->memory->free(t.dev[1], far);
    t.p->stream->close(s);
    vulkan_close(&t);
  }
}

/* Plain pointers, of more bytes than the staging memory holds, in and out. */
static void large_writes_are_staged(void **state) {
  enum { BYTES = 5000003 };
  (void)state;
  for (int shares = 0; shares < 2; shares++) {
    sim_test t;
    uint8_t *own = malloc(BYTES), *got = malloc(BYTES);
    vulkan_open(&t, 1, "unified", shares ? "1" : "0", NULL);
    heddle_pstream *s = sim_stream(&t, t.dev[0]);
    heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES + 5);
    for (int round = 1; round < 3; round++) {
      for (int i = 0; i < BYTES; i++) own[i] = (uint8_t)(i * round >> 3);
      OK(&t, t.p->copy->write(s, a, 5, own, BYTES, &t.err));
      memset(own, 0, 100); /* the plugin is finished with it */
      OK(&t, t.p->copy->read(s, got, a, 5, BYTES, &t.err));
      for (int i = 0; i < BYTES; i++)
        if (got[i] != (uint8_t)(i * round >> 3)) fail_msg("byte %d is %d", i, got[i]);
    }
    free(own);
    free(got);
    t.p->memory->free(t.dev[0], a);
    t.p->stream->close(s);
    vulkan_close(&t);
  }
}

/* The same with timeline semaphores, and with a fence for each submission. */
static void work_of_a_stream_is_in_order(void **state) {
  (void)state;
  for (int timeline = 0; timeline < 2; timeline++) {
    sim_test t;
    vulkan_open(&t, 1, "timeline", timeline ? "1" : "0", NULL);
    heddle_pstream *s = sim_stream(&t, t.dev[0]);
    heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
    heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
    OK(&t, t.p->stream->query(s, &t.err)); /* nothing in it yet */
    for (uint32_t i = 0; i < 400; i++) {   /* longer than a command buffer is let grow */
      sim_fill(&t, s, a, 1024, i);
      OK(&t, t.p->copy->d2d(s, b, 0, a, 0, 1024, &t.err));
    }
    OK(&t, t.p->stream->submit(s, &t.err));
    for (heddle_status q = HEDDLE_EBUSY; q != HEDDLE_OK;) {
      q = t.p->stream->query(s, &t.err);
      if (q != HEDDLE_OK && q != HEDDLE_EBUSY) fail_msg("%s", t.err.text);
    }
    sim_expect(&t, s, b, 256, 399);
    OK(&t, t.p->stream->sync(s, UINT64_MAX, &t.err));
    OK(&t, t.p->device->idle(t.dev[0], 20 * SECOND, &t.err));
    OK(&t, t.p->device->health(t.dev[0], &t.err));
    t.p->memory->free(t.dev[0], a);
    t.p->memory->free(t.dev[0], b);
    t.p->stream->close(s);
    vulkan_close(&t);
  }
}

/* Submissions and fences allocate for what is under way at a time, four here, and no more however many there are. */
static void a_steady_stream_allocates_nothing(void **state) {
  (void)state;
  for (int timeline = 0; timeline < 2; timeline++) {
    sim_test t;
    vulkan_open(&t, 1, "timeline", timeline ? "1" : "0", NULL);
    heddle_pstream *s = sim_stream(&t, t.dev[0]);
    heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
    const long calls = atomic_load(&t.fake.calls);
    for (uint32_t i = 1; i <= 200; i++) {
      sim_fill(&t, s, a, 1024, i);
      OK(&t, t.p->fence->signal(s, 5, i, &t.err));
      if (i % 4 == 0) sim_sync(&t, s);
    }
    /* Command buffers, of which as many again may wait for the thread that takes them back, and the row of completions. */
    assert_true(atomic_load(&t.fake.calls) - calls <= 2 * 4 + 2);
    assert_int_equal(sim_wait(&t, 5, 200), HEDDLE_OK);
    t.p->memory->free(t.dev[0], a);
    t.p->stream->close(s);
    vulkan_close(&t);
  }
}

/* A value goes to and fro between two streams that share the one queue, ordered by events alone. */
static void events_order_streams_of_one_queue(void **state) {
  enum { BYTES = 65536, ROUNDS = 50 };
  (void)state;
  for (int timeline = 0; timeline < 2; timeline++) {
    sim_test t;
    heddle_pstream *s[2];
    heddle_pbuffer *b[2];
    heddle_pevent *e[2];
    vulkan_open(&t, 2, "timeline", timeline ? "1" : "0", NULL);
    for (int i = 0; i < 2; i++) {
      s[i] = sim_stream(&t, t.dev[0]);
      b[i] = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
      e[i] = sim_event(&t, t.dev[0]);
      OK(&t, t.p->event->wait(s[i], e[i], &t.err)); /* never recorded: reached */
    }
    for (uint32_t k = 0; k < ROUNDS; k++) {
      OK(&t, t.p->event->wait(s[0], e[1], &t.err));
      sim_fill(&t, s[0], b[0], BYTES, k);
      OK(&t, t.p->event->record(e[0], s[0], &t.err));
      OK(&t, t.p->event->wait(s[1], e[0], &t.err));
      OK(&t, t.p->copy->d2d(s[1], b[1], 0, b[0], 0, BYTES, &t.err));
      OK(&t, t.p->event->record(e[1], s[1], &t.err));
    }
    sim_expect(&t, s[1], b[1], BYTES / 4, ROUNDS - 1);
    heddle_pevent *far = sim_event(&t, t.dev[1]);
    FAILS(&t, HEDDLE_EINVAL, "another device", t.p->event->wait(s[0], far, &t.err));
    t.p->event->free(far);
    t.p->stream->close(s[1]); /* an event may name a stream that is closed */
    OK(&t, t.p->event->wait(s[0], e[1], &t.err));
    sim_sync(&t, s[0]);
    for (int i = 0; i < 2; i++) {
      t.p->event->free(e[i]);
      t.p->memory->free(t.dev[0], b[i]);
    }
    t.p->stream->close(s[0]);
    vulkan_close(&t);
  }
}

/* More streams, one behind the other, than a submission waits for at once. */
static void a_stream_waits_for_many(void **state) {
  enum { N = 20, BYTES = 4096 };
  sim_test t;
  heddle_pstream *s[N];
  heddle_pevent *e[N];
  heddle_pbuffer *b[N];
  (void)state;
  vulkan_open(&t, 1, NULL);
  heddle_pstream *last = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *all = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, N * BYTES);
  for (uint32_t i = 0; i < N; i++) {
    s[i] = sim_stream(&t, t.dev[0]);
    e[i] = sim_event(&t, t.dev[0]);
    b[i] = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
    sim_fill(&t, s[i], b[i], BYTES, i + 1);
    OK(&t, t.p->event->record(e[i], s[i], &t.err));
    OK(&t, t.p->event->wait(last, e[i], &t.err));
  }
  for (uint32_t i = 0; i < N; i++) OK(&t, t.p->copy->d2d(last, all, i * BYTES, b[i], 0, BYTES, &t.err));
  OK(&t, t.p->fence->signal(last, 9, 1, &t.err));
  assert_int_equal(sim_wait(&t, 9, 1), HEDDLE_OK);
  for (uint32_t i = 0; i < N; i++) {
    uint32_t word = 0;
    OK(&t, t.p->copy->read(last, &word, all, (i + 1) * BYTES - 4, 4, &t.err));
    assert_int_equal(word, i + 1);
    t.p->event->free(e[i]);
    t.p->memory->free(t.dev[0], b[i]);
    t.p->stream->close(s[i]);
  }
  t.p->memory->free(t.dev[0], all);
  t.p->stream->close(last);
  vulkan_close(&t);
}

/* The last signals come when the stream is closed already. */
static void fences_are_signalled(void **state) {
  (void)state;
  for (int timeline = 0; timeline < 2; timeline++) {
    sim_test t;
    vulkan_open(&t, 1, "timeline", timeline ? "1" : "0", NULL);
    heddle_pstream *s = sim_stream(&t, t.dev[0]), *other = sim_stream(&t, t.dev[0]);
    heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1 << 20);
    OK(&t, t.p->fence->signal(s, 7, 3, &t.err)); /* behind nothing */
    assert_int_equal(sim_wait(&t, 7, 3), HEDDLE_OK);
    for (uint32_t i = 1; i <= 200; i++) {
      sim_fill(&t, i % 2 == 0 ? s : other, b, 1 << 20, i);
      OK(&t, t.p->fence->signal(i % 2 == 0 ? s : other, 1 + i % 3, i, &t.err));
    }
    t.p->stream->close(s);
    for (uint64_t f = 1; f <= 3; f++) assert_int_equal(sim_wait(&t, f, 198), HEDDLE_OK);
    OK(&t, t.p->device->idle(t.dev[0], 20 * SECOND, &t.err));
    t.p->memory->free(t.dev[0], b);
    t.p->stream->close(other);
    vulkan_close(&t);
  }
}

static void a_wait_ends_in_time(void **state) {
  enum { BYTES = 1 << 27 };
  (void)state;
  for (int timeline = 0; timeline < 2; timeline++) {
    sim_test t;
    vulkan_open(&t, 1, "timeline", timeline ? "1" : "0", NULL);
    heddle_pstream *s = sim_stream(&t, t.dev[0]);
    heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
    for (uint32_t i = 0; i < 10; i++) sim_fill(&t, s, b, BYTES, i);
    OK(&t, t.p->stream->submit(s, &t.err));
    FAILS(&t, HEDDLE_EBUSY, "work left", t.p->stream->query(s, &t.err));
    FAILS(&t, HEDDLE_ETIMEOUT, "within 1000 ns", t.p->stream->sync(s, 1000, &t.err));
    FAILS(&t, HEDDLE_ETIMEOUT, "within", t.p->device->idle(t.dev[0], 1000, &t.err));
    OK(&t, t.p->device->idle(t.dev[0], 20 * SECOND, &t.err));
    OK(&t, t.p->stream->query(s, &t.err));
    t.p->memory->free(t.dev[0], b);
    t.p->stream->close(s);
    vulkan_close(&t);
  }
}

/* ---------------------------------------------------------------- times and captures */

static void times_are_the_devices(void **state) {
  sim_test t;
  uint64_t ns[8], device[2] = {0}, host[2] = {0};
  heddle_ptimer *timer = NULL;
  (void)state;
  vulkan_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *s = sim_stream(&t, dev);
  heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 1 << 22);
  sim_fill(&t, s, b, 1 << 22, 1);
  OK(&t, t.p->timing->create(dev, 8, &timer, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "slot 0", t.p->timing->read(timer, 0, 1, ns, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "slot 8", t.p->timing->mark(s, timer, 8, &t.err));
  OK(&t, t.p->timing->calibrate(dev, &device[0], &host[0], &t.err));
  for (uint32_t i = 0; i < 8; i++) {
    OK(&t, t.p->timing->mark(s, timer, i, &t.err));
    sim_fill(&t, s, b, 1 << 22, 2 + i);
  }
  FAILS(&t, HEDDLE_EBUSY, "slot 0", t.p->timing->read(timer, 0, 1, ns, &t.err)); /* not handed over */
  sim_expect(&t, s, b, 1 << 20, 9);
  OK(&t, t.p->timing->calibrate(dev, &device[1], &host[1], &t.err));
  OK(&t, t.p->timing->read(timer, 0, 8, ns, &t.err));
  for (int i = 1; i < 8; i++) assert_true(ns[i] > ns[i - 1]);
  assert_true(ns[0] >= device[0] && ns[7] <= device[1]);
  const double rate = (double)(device[1] - device[0]) / (double)(host[1] - host[0]);
  if (!(rate > 0.5 && rate < 2)) fail_msg("the device's clock runs %g times as fast as the host's", rate);
  t.p->timing->free(timer);
  t.p->memory->free(dev, b);
  t.p->stream->close(s);
  vulkan_close(&t);
}

static void a_capture_replays_its_row(void **state) {
  (void)state;
  for (int timeline = 0; timeline < 2; timeline++) {
    sim_test t;
    uint64_t ns[2] = {0};
    heddle_ptimer *timer = NULL;
    vulkan_open(&t, 2, "timeline", timeline ? "1" : "0", NULL);
    const heddle_capture_table *c = t.p->capture;
    heddle_pstream *s = sim_stream(&t, t.dev[0]), *s2 = sim_stream(&t, t.dev[0]), *far = sim_stream(&t, t.dev[1]);
    heddle_pbuffer *in = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, 256);
    heddle_pbuffer *out = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_UNIFIED, 256);
    heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 256);
    heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
    heddle_pevent *e = sim_event(&t, t.dev[0]);
    heddle_pgraph *g = NULL, *none = NULL;
    uint32_t *pin = (uint32_t *)(void *)sim_map(&t, t.dev[0], in);
    uint32_t *pout = (uint32_t *)(void *)sim_map(&t, t.dev[0], out);
    OK(&t, t.p->timing->create(t.dev[0], 2, &timer, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "none was begun", c->end(s, &none, &t.err));
    OK(&t, c->begin(s, &t.err));
    OK(&t, t.p->timing->mark(s, timer, 0, &t.err));
    OK(&t, t.p->copy->h2d(s, a, 0, in, 0, 256, &t.err));
    for (uint32_t i = 0; i < 100; i++) sim_fill(&t, s, b, 1024, i);
    OK(&t, t.p->copy->d2d(s, b, 0, a, 0, 128, &t.err));
    OK(&t, t.p->copy->d2h(s, out, 0, b, 0, 256, &t.err));
    OK(&t, t.p->timing->mark(s, timer, 1, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "capture", t.p->stream->submit(s, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "capture", t.p->stream->sync(s, SECOND, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "capture", t.p->event->record(e, s, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "capture", t.p->event->wait(s, e, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "capture", t.p->fence->signal(s, 1, 1, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "capture", t.p->copy->write(s, a, 0, pin, 4, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "capture", t.p->copy->read(s, pout, a, 0, 4, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "capture", c->begin(s, &t.err));
    OK(&t, c->end(s, &g, &t.err));
    for (int i = 0; i < 64; i++) pin[i] = 1, pout[i] = 0;
    sim_sync(&t, s);
    assert_int_equal(pout[0], 0); /* recording does nothing */
    FAILS(&t, HEDDLE_EBUSY, "slot 0", t.p->timing->read(timer, 0, 2, ns, &t.err));
    for (uint32_t round = 1; round < 5; round++) {
      heddle_pstream *on = round % 2 == 0 ? s : s2;
      for (int i = 0; i < 64; i++) pin[i] = round;
      const long calls = atomic_load(&t.fake.calls);
      OK(&t, c->replay(g, on, &t.err));
      assert_int_equal(atomic_load(&t.fake.calls), calls); /* no allocation */
      sim_sync(&t, on);
      assert_int_equal(pout[0], round);
      assert_int_equal(pout[31], round);
      assert_int_equal(pout[32], 99);
      OK(&t, t.p->timing->read(timer, 0, 2, ns, &t.err));
      assert_true(ns[1] > ns[0]);
    }
    for (uint32_t i = 0; i < 30;
         i++) { /* again before it has ended, between other work, and more than one submission's */
      if (i % 3 == 0) sim_fill(&t, s, b, 1024, i);
      OK(&t, c->replay(g, s, &t.err));
    }
    sim_sync(&t, s);
    FAILS(&t, HEDDLE_EINVAL, "no capture", c->replay(g, far, &t.err));
    OK(&t, c->replay(g, s, &t.err)); /* and freed before it is handed over */
    c->free(g);
    OK(&t, t.p->stream->submit(s, &t.err));
    OK(&t, c->begin(far, &t.err)); /* left open: close ends it */
    sim_sync(&t, s);
    t.p->timing->free(timer);
    t.p->event->free(e);
    t.p->memory->free(t.dev[0], in);
    t.p->memory->free(t.dev[0], out);
    t.p->memory->free(t.dev[0], a);
    t.p->memory->free(t.dev[0], b);
    t.p->stream->close(s);
    t.p->stream->close(s2);
    t.p->stream->close(far);
    vulkan_close(&t);
  }
}

CASES(CASE(copies_keep_to_their_ranges), CASE(large_writes_are_staged), CASE(work_of_a_stream_is_in_order),
      CASE(a_steady_stream_allocates_nothing), CASE(events_order_streams_of_one_queue), CASE(a_stream_waits_for_many),
      CASE(fences_are_signalled), CASE(a_wait_ends_in_time), CASE(times_are_the_devices),
      CASE(a_capture_replays_its_row))
