/* labels: vulkan
 * timeout: 300
 * The vulkan plugin below its operators: devices and memory; test_plugin_vulkan_streams.c has the rest. With timeline
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
      CASE(imported_pages_are_memory), CASE(memory_that_is_out_is_a_status))
