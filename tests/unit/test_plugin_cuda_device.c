/* timeout: 60
 * The cuda plugin's devices on the double of its driver: what is said where the driver, a symbol of it or a device is
 * missing, what a device is, contexts that are never left current, and faults that stay with their device. */
#include "cuda_host.h"

#include "gpu_double.h"

/* ---------------------------------------------------------------- what may be missing */

/* open_instance fails, in these words. */
static void refused(sim_test *t, heddle_status status, const char *words) {
  FAILS(t, status, words, t->p->open_instance(&t->fake.table, &t->self, &t->err));
  assert_int_equal(atomic_load(&t->fake.live), 0);
}

static void what_is_missing_is_said_in_words(void **state) {
  static const struct {
    const char *key, *value, *words;
    heddle_status status;
  } list[] = {
      {"driver", "off", "no CUDA device: the setting driver is off", HEDDLE_ENODEV},
      {"driver", "/nonexistent/libcuda.so.1", "the setting driver: the library cannot be opened (/nonexistent",
       HEDDLE_ENODEV},
      {"driver", "libcuda.so.1", "'libcuda.so.1' is no absolute path, and not off", HEDDLE_EINVAL},
      {"max_streams", "many", "setting max_streams: 'many' is no number", HEDDLE_EINVAL},
      {"peer", "2", "setting peer: '2' is neither 0 nor 1", HEDDLE_EINVAL},
      {"unified", "x", "setting unified", HEDDLE_EINVAL},
      {"capture", "x", "setting capture", HEDDLE_EINVAL},
      {"pools", "x", "setting pools", HEDDLE_EINVAL},
      {"fuse", "x", "fuse", HEDDLE_EINVAL},
      {"cache_dir", "here", "setting cache_dir: 'here' is no absolute path", HEDDLE_EINVAL},
      {"source_dir", "here", "setting source_dir: 'here' is no absolute path", HEDDLE_EINVAL},
      {"nvrtc", "here", "setting nvrtc: 'here' is no absolute path", HEDDLE_EINVAL},
  };
  (void)state;
  cuda_environment();
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    sim_test t;
    sim_enter(&t, list[i].key, list[i].value, NULL);
    cuda_settings(&t);
    refused(&t, list[i].status, list[i].words);
  }
}

/* A library that is no driver stands for one that is too old. */
static void an_old_driver_is_named_with_what_it_lacks(void **state) {
  sim_test t;
  char path[1024];
  (void)state;
  cuda_environment();
  snprintf(path, sizeof path, "%s/lib/heddle/plugins/libheddle_plugin_null.so", HEDDLE_TEST_BUILD);
  if (access(path, F_OK) != 0) SKIP("the plugin null is not built");
  sim_enter(&t, "driver", path, NULL);
  refused(&t, HEDDLE_ENODEV, "libheddle_plugin_null.so has no cuInit: the driver is older than CUDA 11.0");
}

static void does_not_start(const char *code, const char *name, const char *advice) {
  sim_test t;
  cuda_environment();
  if (gpu_is_real()) SKIP("the driver is no double");
  setenv("FAKE_GPU_INIT", code, 1);
  sim_enter(&t, NULL);
  cuda_settings(&t);
  refused(&t, HEDDLE_ENODEV, name);
  assert_non_null(strstr(t.err.text, advice));
  assert_int_equal(t.err.api_code, atoi(code));
}

static void a_driver_without_a_device_says_so(void **state) {
  (void)state;
  does_not_start("100", "CUDA_ERROR_NO_DEVICE (100)", "there is no device, or this user may not use it");
}

static void a_driver_of_another_version_says_so(void **state) {
  (void)state;
  does_not_start("803", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "of different versions");
}

static void a_driver_without_its_module_says_so(void **state) {
  (void)state;
  does_not_start("999", "CUDA_ERROR_UNKNOWN (999)", "the kernel's module may not be loaded");
}

/* The double without pools, graphs by mode and what else came with CUDA 11. */
static void an_older_driver_will_do(void **state) {
  sim_test t;
  (void)state;
  cuda_environment();
  if (gpu_is_real()) SKIP("the driver is no double");
  setenv("HEDDLE_CUDA_DRIVER", HEDDLE_TEST_BUILD "/tests/fakes/cuda-old/libcuda.so.1", 1);
  cuda_open(&t, 1, NULL);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  sim_fill(&t, s, b, 4096, 9);
  sim_expect(&t, s, b, 1024, 9);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "", t.p->capture->begin(s, &t.err));
  t.p->stream->close(s);
  t.p->memory->free(t.dev[0], b);
  sim_close(&t);
  double_is_clean();
}

static void an_ancient_driver_is_refused(void **state) {
  sim_test t;
  (void)state;
  cuda_environment();
  if (gpu_is_real()) SKIP("the driver is no double");
  setenv("HEDDLE_CUDA_DRIVER", HEDDLE_TEST_BUILD "/tests/fakes/cuda-ancient/libcuda.so.1", 1);
  sim_enter(&t, NULL);
  cuda_settings(&t);
  refused(&t, HEDDLE_ENODEV,
          "no CUDA device: libcuda.so.1 has no cuStreamCreateWithPriority: the driver is older than CUDA 11.0");
}

/* ---------------------------------------------------------------- what a device is */

static void devices_are_described(void **state) {
  sim_test t;
  uint32_t n = 0;
  uint8_t first[16] = {0};
  static const uint8_t none[16];
  (void)state;
  cuda_open(&t, 1, "max_streams", "3", NULL);
  OK(&t, t.p->device_count(t.self, &n, &t.err));
  for (uint32_t i = 0; i < n; i++) {
    heddle_pdevice_desc desc = {.struct_size = sizeof desc};
    OK(&t, t.p->device_describe(t.self, i, &desc, &t.err));
    assert_int_equal(desc.type, HEDDLE_DEVICE_CUDA);
    assert_true(desc.name[0] != '\0');
    assert_non_null(strstr(desc.driver, "CUDA "));
    assert_non_null(strstr(desc.driver, "sm_"));
    assert_true((desc.caps & HEDDLE_CAP_VIEWS) != 0 && (desc.caps & HEDDLE_CAP_INLINE) == 0);
    assert_true((desc.caps & HEDDLE_CAP_HOST_CORES) == 0);
    assert_true(desc.memory_bytes > 0 && desc.compute_units > 0);
    assert_true(desc.alignment == 256 && desc.event_domain == 1 && desc.max_streams == 3);
    assert_true(memcmp(desc.uuid, none, sizeof none) != 0 && memcmp(desc.uuid, first, sizeof first) != 0);
    assert_true(desc.pci_domain != UINT32_MAX && desc.pci_bus < 256 && desc.pci_device < 32 && desc.pci_function < 8);
    memcpy(first, desc.uuid, sizeof first);
  }
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  FAILS(&t, HEDDLE_ENODEV, "devices", t.p->device_describe(t.self, n, &desc, &t.err));
  sim_close(&t);
}

static void the_compiler_is_part_of_the_description(void **state) {
  sim_test t;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  (void)state;
  cuda_open(&t, 1, "nvrtc", "off", NULL);
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_non_null(strstr(desc.driver, "no compiler"));
  sim_close(&t);
  cuda_open(&t, 1, NULL);
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_non_null(strstr(desc.driver, "NVRTC "));
  sim_close(&t);
}

/* ---------------------------------------------------------------- contexts */

/* Other users of the driver in the process find the context that they left. */
static void contexts_are_left_as_they_were(void **state) {
  sim_test t;
  void *mine = NULL, *now = NULL;
  (void)state;
  cuda_open(&t, 2, NULL);
  int (*get)(void **) = (int (*)(void **))(uintptr_t)double_symbol("cuCtxGetCurrent");
  int (*set)(void *) = (int (*)(void *))(uintptr_t)double_symbol("cuCtxSetCurrent");
  int (*retain)(void **, int) = (int (*)(void **, int))(uintptr_t)double_symbol("cuDevicePrimaryCtxRetain");
  int (*release)(int) = (int (*)(int))(uintptr_t)double_symbol("cuDevicePrimaryCtxRelease_v2");
  assert_int_equal(get(&now), 0);
  assert_null(now);
  assert_int_equal(retain(&mine, 1), 0);
  assert_int_equal(set(mine), 0);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  sim_fill(&t, s, b, 4096, 3);
  sim_expect(&t, s, b, 1024, 3);
  OK(&t, t.p->device->idle(t.dev[0], 20 * SECOND, &t.err));
  t.p->stream->close(s);
  t.p->memory->free(t.dev[0], b);
  assert_int_equal(get(&now), 0);
  assert_ptr_equal(now, mine);
  sim_close(&t);
  assert_int_equal(get(&now), 0);
  assert_ptr_equal(now, mine);
  assert_int_equal(set(NULL), 0);
  assert_int_equal(release(1), 0);
  double_is_clean();
}

static void a_device_may_be_open_twice(void **state) {
  sim_test t;
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 9};
  (void)state;
  cuda_open(&t, 1, NULL);
  OK(&t, t.p->device->open(t.self, 0, &options, &t.dev[1], &t.err));
  heddle_pstream *s = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pbuffer *b = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 4096);
  sim_fill(&t, s, a, 4096, 3);
  OK(&t, t.p->copy->peer(s, t.dev[1], b, 0, t.dev[0], a, 0, 4096, &t.err));
  sim_expect(&t, s, b, 1024, 3);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[1], b);
  t.p->stream->close(s);
  t.p->device->close(t.dev[0]);
  t.dev[0] = NULL;
  b = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 4096); /* the other one goes on */
  t.p->memory->free(t.dev[1], b);
  sim_close(&t);
  double_is_clean();
}

/* ---------------------------------------------------------------- faults */

/* The first fault's words come back from every later call; the other device goes on; the device can be opened again. */
static void a_lost_device_stays_lost_and_alone(void **state) {
  sim_test t;
  heddle_pbuffer *b = NULL;
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 100};
  heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = 100};
  (void)state;
  cuda_environment();
  if (gpu_is_real()) SKIP("a real device is not lost on demand");
  setenv("FAKE_GPU_FAIL", "cuMemsetD32Async:2:700", 1);
  cuda_open(&t, 2, NULL);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pbuffer *other = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pstream *s = sim_stream(&t, t.dev[0]), *s1 = sim_stream(&t, t.dev[1]);
  sim_fill(&t, s, a, 4096, 1);
  sim_sync(&t, s); /* the double only says that the device is lost, and goes on */
  FAILS(&t, HEDDLE_EDEVICE, "cuda:0: fill: CUDA_ERROR_ILLEGAL_ADDRESS (700)",
        t.p->copy->fill(s, a, 0, 4096, 2, &t.err));
  assert_int_equal(t.err.api_code, 700);
  FAILS(&t, HEDDLE_EDEVICE, "cuda:0: fill: CUDA_ERROR_ILLEGAL_ADDRESS (700)",
        t.p->memory->alloc(t.dev[0], &wish, &b, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "cuda:0: fill", t.p->device->health(t.dev[0], &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "cuda:0: fill", t.p->stream->sync(s, SECOND, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "cuda:0: fill", t.p->device->idle(t.dev[0], SECOND, &t.err));
  assert_int_equal(t.faults, 1);
  assert_int_equal(t.fault_cookie, 100);
  assert_non_null(strstr(t.fault_text, "cuda:0: fill"));

  sim_fill(&t, s1, other, 4096, 7);
  sim_expect(&t, s1, other, 1024, 7);
  OK(&t, t.p->device->health(t.dev[1], &t.err));

  t.p->memory->free(t.dev[0], a);
  t.p->stream->close(s);
  t.p->device->close(t.dev[0]);
  OK(&t, t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
  s = sim_stream(&t, t.dev[0]);
  a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  sim_fill(&t, s, a, 4096, 8);
  sim_expect(&t, s, a, 1024, 8);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[1], other);
  t.p->stream->close(s);
  t.p->stream->close(s1);
  sim_close(&t);
  double_is_clean();
}

/* Each call of the driver's that opening makes fails once: a reported error, and nothing left over. */
static void opening_that_fails_leaves_nothing(void **state) {
  enum { CALLS = 5 };
  sim_test t;
  heddle_pdevice_options options = {.struct_size = sizeof options};
  (void)state;
  cuda_environment();
  if (gpu_is_real()) SKIP("the driver is no double");
  /* Each opening comes one call further. */
  setenv("FAKE_GPU_FAIL",
         "cuDevicePrimaryCtxRetain:1:2,cuCtxPushCurrent_v2:1:2,cuStreamCreateWithPriority:1:2,"
         "cuMemPoolCreate:1:2,cuMemPoolSetAttribute:1:2",
         1);
  sim_enter(&t, NULL);
  cuda_settings(&t);
  OK(&t, t.p->open_instance(&t.fake.table, &t.self, &t.err));
  for (int i = 0; i < CALLS; i++) {
    FAILS(&t, HEDDLE_ENOMEM, "CUDA_ERROR_OUT_OF_MEMORY", t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
    assert_null(t.dev[0]);
  }
  OK(&t, t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
  sim_close(&t);
  double_is_clean();
}

/* A whole life: instance, device, each kind of memory. HEDDLE_ENOMEM at the first allocation that fails. */
static heddle_status live(sim_test *t) {
  static _Alignas(4096) uint8_t page[4096];
  heddle_pbuffer *b[4] = {NULL};
  heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = 4096};
  heddle_pdevice_options options = {.struct_size = sizeof options};
  heddle_status s = t->p->open_instance(&t->fake.table, &t->self, &t->err);
  if (s != HEDDLE_OK) return s;
  s = t->p->device->open(t->self, 0, &options, &t->dev[0], &t->err);
  if (s == HEDDLE_OK) {
    s = t->p->memory->alloc(t->dev[0], &wish, &b[0], &t->err);
    if (s == HEDDLE_OK) s = t->p->memory->view(t->dev[0], b[0], 256, 256, &b[1], &t->err);
    wish.kind = HEDDLE_MEMORY_PINNED;
    if (s == HEDDLE_OK) s = t->p->memory->alloc(t->dev[0], &wish, &b[2], &t->err);
    if (s == HEDDLE_OK) s = t->p->memory->import_host(t->dev[0], page, sizeof page, &b[3], &t->err);
    for (int i = 3; i >= 0; i--) t->p->memory->free(t->dev[0], b[i]);
    t->p->device->close(t->dev[0]);
  }
  t->p->close_instance(t->self);
  return s;
}

static void every_allocation_may_fail(void **state) {
  static const char *const pools[] = {"1", "0"};
  (void)state;
  cuda_environment();
  for (int i = 0; i < 2; i++) {
    bool done = false;
    int failures = 0;
    for (long n = 1; n < 60 && !done; n++) {
      sim_test t;
      sim_enter(&t, "pools", pools[i], NULL);
      cuda_settings(&t);
      t.fake.fail_at = n;
      const heddle_status s = live(&t);
      done = atomic_load(&t.fake.calls) < n;
      /* Memory of the device is asked for twice, so there the first failure may pass. */
      if (s != HEDDLE_OK && (s != HEDDLE_ENOMEM || done))
        fail_msg("allocation %ld, pools=%s: status %d: %s", n, pools[i], s, t.err.text);
      failures += s == HEDDLE_ENOMEM;
      assert_int_equal(atomic_load(&t.fake.live), 0);
    }
    assert_true(done && failures >= 6);
  }
  double_is_clean();
}

CASES(CASE(what_is_missing_is_said_in_words), CASE(an_old_driver_is_named_with_what_it_lacks),
      CASE(a_driver_without_a_device_says_so), CASE(a_driver_of_another_version_says_so),
      CASE(a_driver_without_its_module_says_so), CASE(an_older_driver_will_do), CASE(an_ancient_driver_is_refused),
      CASE(devices_are_described), CASE(the_compiler_is_part_of_the_description), CASE(contexts_are_left_as_they_were),
      CASE(a_device_may_be_open_twice), CASE(a_lost_device_stays_lost_and_alone),
      CASE(opening_that_fails_leaves_nothing), CASE(every_allocation_may_fail))
