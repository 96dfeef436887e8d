/* labels: vulkan
 * timeout: 300
 * The vulkan plugin below its operators: devices, memory, copies, streams, events, fences, times, captures; with timeline
 * semaphores and without, with shared memory and without, all under the validation layer. */
#include "vulkan_host.h"

static void no_driver_is_said_in_words(void **state) {
  sim_test t;
  (void)state;
  vulkan_environment();
  setenv("VK_DRIVER_FILES", "/nonexistent", 1);
  setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
  sim_enter(&t, NULL);
  FAILS(&t, HEDDLE_ENODEV, "Vulkan", t.p->open_instance(&t.fake.table, &t.self, &t.err));
  assert_int_equal(atomic_load(&t.fake.live), 0);
  sim_enter(&t, "driver", "off", NULL);
  FAILS(&t, HEDDLE_ENODEV, "setting driver", t.p->open_instance(&t.fake.table, &t.self, &t.err));
  assert_int_equal(atomic_load(&t.fake.live), 0);
}

static void wrong_settings_are_refused(void **state) {
  static const char *const pairs[][2] = {
      {"timeline", "perhaps"}, {"unified", "2"}, {"validate", "x"}, {"max_streams", "-1"}, {"cache_dir", "here"}};
  sim_test t;
  (void)state;
  vulkan_environment();
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    sim_enter(&t, pairs[i][0], pairs[i][1], NULL);
    FAILS(&t, HEDDLE_EINVAL, pairs[i][0], t.p->open_instance(&t.fake.table, &t.self, &t.err));
    assert_int_equal(atomic_load(&t.fake.live), 0);
  }
}

static void a_missing_layer_is_said_in_words(void **state) {
  sim_test t;
  (void)state;
  vulkan_environment();
  setenv("VK_LAYER_PATH", "/nonexistent", 1);
  sim_enter(&t, "validate", "1", NULL);
  FAILS(&t, HEDDLE_ENOTFOUND, "VK_LAYER_KHRONOS_validation", t.p->open_instance(&t.fake.table, &t.self, &t.err));
  assert_int_equal(atomic_load(&t.fake.live), 0);
}

/* A copy onto itself is against the rules of Vulkan, and of the caller. It is recorded only. */
static void what_the_layer_says_is_an_error_of_the_log(void **state) {
  sim_test t;
  (void)state;
  vulkan_open(&t, 1, NULL);
  if (t.n_settings == 0) SKIP("the validation layer is not installed");
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  OK(&t, t.p->copy->d2d(s, b, 16, b, 0, 256, &t.err));
  assert_true(t.errors_logged > 0);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  (sim_close)(&t);
}

static void devices_are_described(void **state) {
  sim_test t;
  uint32_t n = 0;
  (void)state;
  vulkan_open(&t, 2, NULL);
  OK(&t, t.p->device_count(t.self, &n, &t.err));
  assert_int_equal(n, 2);
  for (uint32_t i = 0; i < n; i++) {
    heddle_pdevice_desc desc = {.struct_size = sizeof desc};
    OK(&t, t.p->device_describe(t.self, i, &desc, &t.err));
    assert_int_equal(desc.type, HEDDLE_DEVICE_VULKAN);
    assert_true(strstr(desc.name, "llvmpipe") != NULL && strstr(desc.driver, "Vulkan 1.") != NULL);
    assert_int_equal(desc.caps, HEDDLE_CAP_HOST_CORES | HEDDLE_CAP_UNIFIED | HEDDLE_CAP_VIEWS |
                                    HEDDLE_CAP_IMPORT_UNIFIED | HEDDLE_CAP_POLLED);
    assert_true(desc.alignment >= 64 && (desc.alignment & (desc.alignment - 1)) == 0);
    assert_true(desc.max_buffer_bytes >= UINT64_C(1) << 30 && desc.memory_bytes > 0 && desc.max_streams > 0);
    assert_int_equal(desc.import_alignment, 4096);
    assert_int_equal(desc.event_domain, i + 1); /* of its own */
    assert_int_equal(desc.pci_bus, UINT32_MAX);
  }
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  FAILS(&t, HEDDLE_ENODEV, "devices", t.p->device_describe(t.self, n, &desc, &t.err));
  vulkan_close(&t);
}

static void without_shared_memory_there_is_none(void **state) {
  sim_test t;
  heddle_pbuffer *b = NULL;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  const heddle_pmemory_desc wish = {.struct_size = sizeof wish, .kind = HEDDLE_MEMORY_UNIFIED, .bytes = 64, .align = 1};
  (void)state;
  vulkan_open(&t, 1, "unified", "0", NULL);
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_int_equal(desc.caps, HEDDLE_CAP_HOST_CORES | HEDDLE_CAP_VIEWS | HEDDLE_CAP_POLLED);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "kind 2", t.p->memory->alloc(t.dev[0], &wish, &b, &t.err));
  vulkan_close(&t);
}

/* ---------------------------------------------------------------- memory */

static void memory_keeps_its_rules(void **state) {
  sim_test t;
  heddle_pbuffer *b = NULL, *view = NULL;
  void *at = NULL;
  (void)state;
  vulkan_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));

  heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = desc.max_buffer_bytes + 1};
  FAILS(&t, HEDDLE_ELIMIT, "at most", t.p->memory->alloc(dev, &wish, &b, &t.err));
  wish.bytes = 100;
  wish.align = 48;
  FAILS(&t, HEDDLE_EINVAL, "power of two", t.p->memory->alloc(dev, &wish, &b, &t.err));
  wish.align = 64;
  wish.kind = 9;
  FAILS(&t, HEDDLE_EUNSUPPORTED, "kind 9", t.p->memory->alloc(dev, &wish, &b, &t.err));

  b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 0); /* empty ones are legal */
  OK(&t, t.p->memory->view(dev, b, 0, 0, &view, &t.err));
  t.p->memory->free(dev, view);
  t.p->memory->free(dev, b);
  for (uint32_t kind = HEDDLE_MEMORY_PINNED; kind <= HEDDLE_MEMORY_UNIFIED; kind++) {
    for (uint64_t bytes = 1000; bytes <= UINT64_C(10000000); bytes *= 10000) {
      for (uint64_t align = 1; align <= 4096; align *= 16) {
        wish = (heddle_pmemory_desc){.struct_size = sizeof wish, .kind = kind, .bytes = bytes, .align = align};
        OK(&t, t.p->memory->alloc(dev, &wish, &b, &t.err));
        uint8_t *p = sim_map(&t, dev, b);
        assert_int_equal((uintptr_t)p % align, 0);
        memset(p, 1, bytes);
        OK(&t, t.p->memory->flush(dev, b, 1, 9, &t.err));
        OK(&t, t.p->memory->invalidate(dev, b, 1, 9, &t.err));
        FAILS(&t, HEDDLE_EINVAL, "flush", t.p->memory->flush(dev, b, bytes, 1, &t.err));
        t.p->memory->unmap(dev, b);
        t.p->memory->free(dev, b);
      }
    }
  }
  b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 4096);
  FAILS(&t, HEDDLE_EINVAL, "mapped", t.p->memory->map(dev, b, &at, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "view", t.p->memory->view(dev, b, 8, 8, &view, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "view", t.p->memory->view(dev, b, 4096, 8, &view, &t.err));
  OK(&t, t.p->memory->view(dev, b, desc.alignment, 512, &view, &t.err));
  assert_int_equal(sim_query(&t, dev, HEDDLE_QUERY_LIVE_BUFFERS), 2);
  assert_int_equal(sim_query(&t, dev, HEDDLE_QUERY_LIVE_BYTES), 4096);

  heddle_pstream *s = sim_stream(&t, dev);
  sim_fill(&t, s, b, 4096, 0x11111111);
  OK(&t, t.p->copy->fill(s, view, 0, 512, 0x22222222, &t.err));
  uint32_t words[1024];
  OK(&t, t.p->copy->read(s, words, b, 0, sizeof words, &t.err));
  for (uint64_t i = 0; i < 1024; i++) {
    const bool inside = i * 4 >= desc.alignment && i * 4 < desc.alignment + 512;
    assert_int_equal(words[i], inside ? 0x22222222 : 0x11111111);
  }
  t.p->stream->close(s);
  t.p->memory->free(dev, view);
  t.p->memory->free(dev, b);
  vulkan_close(&t);
}

/* Buffers of all sizes come and go in another order than they came, and each keeps its own bytes: parts of blocks do not
 * overlap, and gaps are used again. 5,000 of them are more than a driver must allow allocations. */
static void small_buffers_share_allocations(void **state) {
  enum { N = 5000 };
  static heddle_pbuffer *b[N];
  static uint32_t *at[N];
  static uint64_t words[N];
  sim_test t;
  uint64_t total = 0, seed = 7;
  (void)state;
  vulkan_open(&t, 1, NULL);
  for (uint32_t round = 0; round < 3; round++) {
    for (uint32_t i = 0; i < N; i++) {
      seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
      if (b[i] != NULL && seed >> 62 != 0) { /* three of four go */
        t.p->memory->free(t.dev[0], b[i]);
        total -= words[i] * 4;
        b[i] = NULL;
      }
    }
    for (uint32_t i = 0; i < N; i++) {
      seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
      if (b[i] != NULL) continue;
      words[i] = 1 + (seed >> 40) % (i % 100 == 0 ? 100000 : 1000);
      b[i] = sim_buf(&t, t.dev[0], i % 2 == 0 ? HEDDLE_MEMORY_PINNED : HEDDLE_MEMORY_UNIFIED, words[i] * 4);
      at[i] = (uint32_t *)(void *)sim_map(&t, t.dev[0], b[i]);
      for (uint64_t k = 0; k < words[i]; k++) at[i][k] = i + 1;
      total += words[i] * 4;
    }
    assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_BYTES), total);
    assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_BUFFERS), N);
    for (uint32_t i = 0; i < N; i++) {
      for (uint64_t k = 0; k < words[i]; k++)
        if (at[i][k] != i + 1) fail_msg("word %u of buffer %u is %u", (unsigned)k, i, at[i][k]);
    }
  }
  for (uint32_t i = 0; i < N; i++) t.p->memory->free(t.dev[0], b[i]);
  vulkan_close(&t);
}

/* Pages of the host's, as the source and the target of what the device does itself. */
static void imported_pages_are_memory(void **state) {
  enum { BYTES = 8192 };
  sim_test t;
  heddle_pbuffer *in = NULL, *view = NULL;
  (void)state;
  vulkan_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  void *memory = NULL;
  assert_int_equal(posix_memalign(&memory, 4096, BYTES), 0);
  uint32_t *pages = memory;
  for (uint32_t i = 0; i < BYTES / 4; i++) pages[i] = i;
  FAILS(&t, HEDDLE_EINVAL, "4096", t.p->memory->import_host(dev, pages + 1, 4096, &in, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "4096", t.p->memory->import_host(dev, pages, 4000, &in, &t.err));
  OK(&t, t.p->memory->import_host(dev, pages, BYTES, &in, &t.err));
  OK(&t, t.p->memory->view(dev, in, 4096, 4096, &view, &t.err));
  assert_int_equal(sim_query(&t, dev, HEDDLE_QUERY_LIVE_BYTES), 0);
  heddle_pstream *s = sim_stream(&t, dev);
  heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  OK(&t, t.p->copy->h2d(s, b, 0, in, 0, BYTES, &t.err));
  OK(&t, t.p->copy->fill(s, view, 0, 4096, 77, &t.err)); /* an operand, on a device that shares the memory */
  OK(&t, t.p->copy->d2h(s, in, 0, b, 4, 400, &t.err));
  sim_sync(&t, s);
  for (uint32_t i = 0; i < BYTES / 4; i++) assert_int_equal(pages[i], i < 100 ? i + 1 : i < 1024 ? i : 77);
  t.p->stream->close(s);
  t.p->memory->free(dev, b);
  t.p->memory->free(dev, view);
  t.p->memory->free(dev, in);
  free(memory);
  vulkan_close(&t);
}

/* ---------------------------------------------------------------- copies and streams */

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

/* ---------------------------------------------------------------- memory that is out */

/* The n-th allocation of bookkeeping fails, for each n: a status, nothing lost, the next try works. */
static void memory_that_is_out_is_a_status(void **state) {
  sim_test t;
  (void)state;
  vulkan_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  for (long n = 1; n < 12; n++) {
    heddle_pstream *s = NULL;
    heddle_pbuffer *b = NULL;
    heddle_pevent *e = NULL;
    heddle_pgraph *g = NULL;
    heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = 64, .align = 1};
    t.fake.fail_at = atomic_load(&t.fake.calls) + n;
    heddle_status made[5] = {t.p->stream->create(dev, 0, 0, &s, &t.err), t.p->memory->alloc(dev, &wish, &b, &t.err),
                             t.p->event->create(dev, &e, &t.err)};
    if (s != NULL && b != NULL) {
      made[3] = t.p->copy->fill(s, b, 0, 64, 1, &t.err);
      if (made[3] == HEDDLE_OK) made[3] = t.p->fence->signal(s, 1, 1, &t.err);
      made[4] = t.p->capture->begin(s, &t.err);
      if (made[4] == HEDDLE_OK) made[4] = t.p->capture->end(s, &g, &t.err);
    }
    t.fake.fail_at = 0;
    int failed = 0;
    for (int i = 0; i < 5; i++) {
      failed += made[i] != HEDDLE_OK;
      assert_true(made[i] == HEDDLE_OK || made[i] == HEDDLE_ENOMEM);
    }
    assert_true(failed <= 1);
    if (s != NULL) sim_sync(&t, s);
    t.p->capture->free(g);
    t.p->event->free(e);
    t.p->memory->free(dev, b);
    t.p->stream->close(s);
  }
  vulkan_close(&t);
}

CASES(CASE(no_driver_is_said_in_words), CASE(wrong_settings_are_refused), CASE(a_missing_layer_is_said_in_words),
      CASE(what_the_layer_says_is_an_error_of_the_log), CASE(devices_are_described),
      CASE(without_shared_memory_there_is_none), CASE(memory_keeps_its_rules), CASE(small_buffers_share_allocations),
      CASE(imported_pages_are_memory), CASE(copies_keep_to_their_ranges), CASE(large_writes_are_staged),
      CASE(work_of_a_stream_is_in_order), CASE(a_steady_stream_allocates_nothing),
      CASE(events_order_streams_of_one_queue), CASE(a_stream_waits_for_many), CASE(fences_are_signalled),
      CASE(a_wait_ends_in_time), CASE(times_are_the_devices), CASE(a_capture_replays_its_row),
      CASE(memory_that_is_out_is_a_status))
