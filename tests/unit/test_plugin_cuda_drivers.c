/* timeout: 90
 * What drivers, libraries and machines do to the plugin cuda beside plain failures, on the double of CUDA's driver: a
 * process's context that is lost and held by other code, codes that do not say what they mean, the process's own pool,
 * registrations that take long or reach a limit, parts of cards, large pages, libraries made for another driver. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "cuda_host.h"

#include "gpu_double.h"
#include "plugins/common/gpu/gpu.h"

enum { BYTES = 4096, WORDS = BYTES / 4 };

static char warned[1024], logged[4096];

static void keep_lines(void *ctx, int32_t level, const char *component, const char *text) {
  const size_t used = strlen(logged);
  sim_test_log(ctx, level, component, text);
  if (level == HEDDLE_LOG_WARN) snprintf(warned, sizeof warned, "%s", text);
  snprintf(logged + used, sizeof logged - used, "%s\n", text);
}

/* The machine's page size, which the plugin asks for: 0 leaves the real one. ThreadSanitizer asks before anything can be
 * looked up; there the double of the driver is not run. */
static long pages_have;
#ifndef __SANITIZE_THREAD__
__attribute__((visibility("default"))) long sysconf(int name) {
  static long (*real)(int);
  if (name == _SC_PAGESIZE && pages_have > 0) return pages_have;
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "sysconf");
  return real(name);
}
#endif

static void use(sim_test *t, heddle_pdevice *dev, uint32_t word) {
  heddle_pbuffer *b = sim_buf(t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(t, dev);
  sim_fill(t, s, b, BYTES, word);
  sim_expect(t, s, b, WORDS, word);
  t->p->memory->free(dev, b);
  t->p->stream->close(s);
}

/* ---------------------------------------------------------------- a lost context that is held */

static int hold(bool on) {
  int (*get)(void **, int) = (int (*)(void **, int))(uintptr_t)double_symbol("cuDevicePrimaryCtxRetain");
  int (*put)(int) = (int (*)(int))(uintptr_t)double_symbol("cuDevicePrimaryCtxRelease_v2");
  void *context = NULL;
  return on ? get(&context, 0) : put(0);
}

/* Opens a device, has other code hold its primary context, and loses it by the first fill. */
static void lose_held(sim_test *t, const char *context) {
  setenv("FAKE_GPU_FAULT", "fill:1:700", 1);
  setenv("FAKE_GPU_STRICT", "0", 1); /* memory of a lost context cannot be freed */
  cuda_environment();
  sim_enter(t, "context", context, NULL);
  t->fake.table.log = keep_lines;
  cuda_open_devices(t, 1);
  assert_int_equal(hold(true), 0);
  heddle_pbuffer *b = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(t, t->dev[0]);
  sim_fill(t, s, b, BYTES, 1);
  FAILS(t, HEDDLE_EDEVICE, "(700)", t->p->stream->sync(s, 20 * SECOND, &t->err));
  t->p->memory->free(t->dev[0], b);
  t->p->stream->close(s);
  t->p->device->close(t->dev[0]);
  t->dev[0] = NULL;
}

static void a_device_goes_on_in_its_own_context(void **state) {
  sim_test t;
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 7};
  heddle_pbuffer *adopted = NULL;
  (void)state;
  lose_held(&t, "auto");
  OK(&t, t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
  assert_non_null(strstr(warned, "goes on in a context of its own"));
  assert_non_null(strstr(warned, "(700)"));
  use(&t, t.dev[0], 8);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "context of its own",
        t.p->memory->adopt(t.dev[0], UINT64_C(0x7f0000000000), 0, 64, &adopted, &t.err));
  assert_int_equal(t.faults, 1);
  t.p->device->close(t.dev[0]);
  warned[0] = '\0';
  assert_int_equal(hold(false), 0); /* the other code lets go: the process's context is made anew */
  OK(&t, t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
  assert_false(t.dev[0]->apart);
  assert_string_equal(warned, "");
  use(&t, t.dev[0], 9);
  sim_close(&t);
}

static void without_a_context_of_its_own_the_error_says_what_to_do(void **state) {
  sim_test t;
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 7};
  (void)state;
  lose_held(&t, "primary");
  for (int i = 0; i < 2; i++) {
    FAILS(&t, HEDDLE_EDEVICE, "other code, such as a vendor's library, holds it: restart the process",
          t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
    assert_null(t.dev[0]);
  }
  assert_int_equal(t.faults, 1); /* that of the device that was open */
  assert_int_equal(hold(false), 0);
  OK(&t, t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
  use(&t, t.dev[0], 9);
  sim_close(&t);
}

static void a_context_of_its_own_goes_with_the_device(void **state) {
  sim_test t;
  (void)state;
  cuda_open(&t, 2, "context", "own", NULL);
  assert_int_equal(double_calls("cuDevicePrimaryCtxRetain"), 0);
  assert_true(t.dev[0]->apart && double_live("contexts") == 2);
  use(&t, t.dev[0], 3);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *b = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  sim_fill(&t, s, a, BYTES, 5);
  OK(&t, t.p->copy->peer(s, t.dev[1], b, 0, t.dev[0], a, 0, BYTES, &t.err));
  sim_sync(&t, s);
  heddle_pstream *far = sim_stream(&t, t.dev[1]);
  sim_expect(&t, far, b, WORDS, 5);
  t.p->stream->close(far);
  t.p->stream->close(s);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[1], b);
  sim_close(&t);
  double_is_clean();
}

static void a_wrong_context_is_refused(void **state) {
  sim_test t;
  (void)state;
  cuda_environment();
  sim_enter(&t, "context", "mine", NULL);
  cuda_settings(&t);
  FAILS(&t, HEDDLE_EINVAL, "setting context: 'mine' is none of auto, primary and own",
        t.p->open_instance(&t.fake.table, &t.self, &t.err));
}

/* ---------------------------------------------------------------- codes */

/* 999 says nothing: only a second call that fails too makes it the device's end. 809 is too many clients of MPS, 810 the end
 * of this one. */
static void a_doubtful_code_is_asked_about(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_FAIL", "cuMemsetD32Async:1:999,cuMemsetD32Async:2:809,cuMemsetD32Async:3:810", 1);
  setenv("FAKE_GPU_STRICT", "0", 1);
  cuda_open(&t, 1, NULL);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  for (int i = 0; i < 2; i++) {
    FAILS(&t, HEDDLE_EFAILED, i == 0 ? "(999)" : "(809)", t.p->copy->fill(s, b, 0, BYTES, 2, &t.err));
    FAILS(&t, HEDDLE_EFAILED, i == 0 ? "(999)" : "(809)", t.p->stream->sync(s, SECOND, &t.err));
    OK(&t, t.p->device->health(t.dev[0], &t.err));
  }
  assert_int_equal(t.faults, 0);
  FAILS(&t, HEDDLE_EDEVICE, "(810)", t.p->copy->fill(s, b, 0, BYTES, 2, &t.err));
  assert_int_equal(t.faults, 1);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
}

static void a_doubtful_code_may_be_the_end(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_FAULT", "fill:1:999", 1);
  setenv("FAKE_GPU_STRICT", "0", 1);
  cuda_open(&t, 1, NULL);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  sim_fill(&t, s, b, BYTES, 1);
  FAILS(&t, HEDDLE_EDEVICE, "(999)", t.p->stream->sync(s, 20 * SECOND, &t.err));
  assert_int_equal(t.faults, 1);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
}

/* The driver reports a fault of earlier work at whatever call comes first: a device each for kinds of calls that have nothing to do
 * with it. The fence that was under way fails too. */
static void a_fault_surfaces_at_any_call(void **state) {
  enum { KINDS = 5 };
  sim_test t;
  gpu_scope scope;
  (void)state;
  setenv("FAKE_GPU_FAULT", "fill:1+:700", 1);
  setenv("FAKE_GPU_DEVICES", "5", 1);
  setenv("FAKE_GPU_STRICT", "0", 1);
  cuda_environment();
  sim_enter(&t, NULL);
  cuda_settings(&t);
  OK(&t, t.p->open_instance(&t.fake.table, &t.self, &t.err));
  for (uint32_t i = 0; i < KINDS; i++) {
    heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = i};
    heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = 64, .kind = HEDDLE_MEMORY_PINNED};
    heddle_pdevice *dev = NULL;
    heddle_pbuffer *out = NULL;
    heddle_pstream *made = NULL;
    heddle_pevent *event = NULL;
    uint64_t free_bytes = 0, all = 0;
    OK(&t, t.p->device->open(t.self, i, &options, &dev, &t.err));
    heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
    heddle_pstream *s = sim_stream(&t, dev), *other = sim_stream(&t, dev);
    event = sim_event(&t, dev);
    sim_fill(&t, s, b, BYTES, 1);
    assert_int_equal(dev->vendor->enter(dev, &scope), 0);
    while (dev->driver->stream_query(s->handle) == 600) sched_yield(); /* the plugin has not noticed */
    gpu_leave(dev, &scope);
    assert_int_equal(t.faults, i);
    heddle_status status = HEDDLE_OK;
    if (i == 0) status = t.p->memory->alloc(dev, &wish, &out, &t.err);
    if (i == 1) status = t.p->stream->create(dev, HEDDLE_STREAM_COMPUTE, -3, &made, &t.err);
    if (i == 2) status = t.p->event->record(event, other, &t.err);
    if (i == 3) status = t.p->device->memory_now(dev, &free_bytes, &all, &t.err);
    if (i == 4) status = t.p->fence->signal(other, 1, 1, &t.err);
    if (status != HEDDLE_EDEVICE || strstr(t.err.text, "(700)") == NULL) fail_msg("%u: %d: %s", i, status, t.err.text);
    assert_int_equal(t.faults, i + 1);
    FAILS(&t, HEDDLE_EDEVICE, "(700)", t.p->device->health(dev, &t.err));
    t.p->event->free(event);
    t.p->memory->free(dev, b);
    t.p->stream->close(s);
    t.p->stream->close(other);
    t.p->device->close(dev);
  }
  t.p->close_instance(t.self);
}

/* ---------------------------------------------------------------- memory */

static uint64_t default_pool(int attribute) {
  int (*get)(void **, int) = (int (*)(void **, int))(uintptr_t)double_symbol("cuDeviceGetDefaultMemPool");
  int (*about)(void *, int, void *) = (int (*)(void *, int, void *))(uintptr_t)double_symbol("cuMemPoolGetAttribute");
  void *pool = NULL;
  uint64_t value = 0;
  assert_int_equal(get(&pool, 0), 0);
  assert_int_equal(about(pool, attribute, &value), 0);
  return value;
}

/* Frameworks in the process have what they set. */
static void the_default_pool_is_left_alone(void **state) {
  sim_test t;
  (void)state;
  cuda_open(&t, 1, NULL);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1 << 20);
  assert_int_equal(default_pool(GPU_POOL_RELEASE_THRESHOLD), 0);
  assert_int_equal(default_pool(GPU_POOL_RESERVED), 0);
  assert_int_equal(double_live("pools"), 1);
  t.p->memory->free(t.dev[0], b);
  OK(&t, t.p->device->idle(t.dev[0], 20 * SECOND, &t.err));
  assert_int_equal(default_pool(GPU_POOL_RESERVED), 0);
  sim_close(&t);
  double_is_clean();
}

/* What a pool keeps in pieces is given back before memory is said to be out. */
static void kept_pieces_are_given_back(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_FRAGMENTS", "1", 1);
  setenv("FAKE_GPU_MEMORY", "8M", 1);
  cuda_open(&t, 1, NULL);
  for (int i = 0; i < 3; i++) {
    heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 3 << 20);
    heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 3 << 20);
    t.p->memory->free(t.dev[0], a);
    t.p->memory->free(t.dev[0], b);
    t.p->memory->free(t.dev[0], sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 6 << 20));
  }
  sim_close(&t);
  double_is_clean();
}

/* ---------------------------------------------------------------- imports */

typedef struct importer {
  sim_test *t;
  char *base;
  heddle_pbuffer *out;
  heddle_error err;
  heddle_status status;
  atomic_bool done;
} importer;

static void *import(void *arg) {
  importer *x = arg;
  x->status = x->t->p->memory->import_host(x->t->dev[0], x->base, 4 * BYTES, &x->out, &x->err);
  atomic_store(&x->done, true);
  return NULL;
}

/* Pinning pages takes its time: others write and import meanwhile, and who wants the same pages waits for them. */
static void a_registration_holds_up_nobody(void **state) {
  static _Alignas(4096) char own[8 * BYTES];
  char small[64] = {1};
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_REGISTER_DELAY", "1500000", 1);
  cuda_open(&t, 1, NULL);
  importer a = {.t = &t, .base = own}, b = {.t = &t, .base = own};
  pthread_t first, second;
  heddle_pbuffer *m = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  assert_int_equal(pthread_create(&first, NULL, import, &a), 0);
  while (double_calls("cuMemHostRegister_v2") == 0) sched_yield();
  assert_int_equal(pthread_create(&second, NULL, import, &b), 0);
  OK(&t, t.p->copy->write(s, m, 0, small, sizeof small, &t.err));
  assert_false(atomic_load(&a.done));
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  assert_int_equal(a.status, HEDDLE_OK);
  assert_int_equal(b.status, HEDDLE_OK);
  assert_int_equal(double_calls("cuMemHostRegister_v2"), 1);
  t.p->memory->free(t.dev[0], a.out);
  assert_int_equal(double_calls("cuMemHostUnregister"), 0);
  t.p->memory->free(t.dev[0], b.out);
  assert_int_equal(double_calls("cuMemHostUnregister"), 1);
  t.p->memory->free(t.dev[0], m);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

static void more_than_may_be_registered_is_copied(void **state) {
  static _Alignas(4096) char own[3 * BYTES];
  sim_test t;
  heddle_pbuffer *a = NULL, *b = NULL;
  (void)state;
  setenv("FAKE_GPU_REGISTER", "8K", 1);
  cuda_open(&t, 1, NULL);
  OK(&t, t.p->memory->import_host(t.dev[0], own, 2 * BYTES, &a, &t.err));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "(2)", t.p->memory->import_host(t.dev[0], own + 2 * BYTES, BYTES, &b, &t.err));
  t.p->memory->free(t.dev[0], a);
  OK(&t, t.p->memory->import_host(t.dev[0], own + 2 * BYTES, BYTES, &b, &t.err));
  t.p->memory->free(t.dev[0], b);
  sim_close(&t);
  double_is_clean();
}

static void pages_are_the_machines(void **state) {
  static _Alignas(65536) char own[65536 + BYTES];
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  sim_test t;
  heddle_pbuffer *b = NULL;
  (void)state;
  pages_have = 65536;
  cuda_open(&t, 1, NULL);
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_int_equal(desc.import_alignment, 65536);
  FAILS(&t, HEDDLE_EINVAL, "multiples of 65536", t.p->memory->import_host(t.dev[0], own, BYTES, &b, &t.err));
  OK(&t, t.p->memory->import_host(t.dev[0], own, 65536, &b, &t.err));
  t.p->memory->free(t.dev[0], b);
  sim_close(&t);
}

/* ---------------------------------------------------------------- devices and modules */

static void parts_of_a_card_have_their_own_names(void **state) {
  heddle_pdevice_desc a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_MIG", "1", 1);
  cuda_open(&t, 2, NULL);
  OK(&t, t.p->device_describe(t.self, 0, &a, &t.err));
  OK(&t, t.p->device_describe(t.self, 1, &b, &t.err));
  assert_memory_not_equal(a.uuid, b.uuid, sizeof a.uuid);
  sim_close(&t);
}

static const char ptx[] = ".version 8.0\n.target sm_52\n.address_size 64\n.visible .entry count_set(\n"
                          ".param .u64 count_set_0,\n.param .align 8 .b8 count_set_1[4000]\n)\n{ ret; }\n";

/* A kernel has a parameter of 4,000 bytes that its caller does not give: it reads zeros. */
static void parameters_that_are_not_given_are_zero(void **state) {
  static const uint32_t one[3] = {1, 1, 1};
  sim_test t;
  heddle_pmodule *module = NULL;
  heddle_pkernel *kernel = NULL;
  heddle_pkernel_info info = {.struct_size = sizeof info};
  (void)state;
  setenv("FAKE_GPU_KERNELS", HEDDLE_TEST_BUILD "/tests/fakes/cuda/fake_kernels.so", 1);
  cuda_environment();
  if (gpu_is_real()) SKIP("the kernel is a function of C");
  cuda_open(&t, 1, NULL);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  const heddle_pargument arg = {.buffer = b};
  sim_fill(&t, s, b, BYTES, 77);
  OK(&t, t.p->module->load(t.dev[0], "ptx", ptx, sizeof ptx, &module, &t.err));
  OK(&t, t.p->module->kernel_get(module, "count_set", &kernel, &info, &t.err));
  OK(&t, t.p->module->launch(s, kernel, one, one, 0, &arg, 1, &t.err));
  sim_expect(&t, s, b, 1, 0);
  t.p->module->unload(module);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

/* A driver may load a kernel's code at its first launch, which waits for the device: not in a capture. */
static void a_capture_may_be_a_kernels_first_launch(void **state) {
  static const uint32_t one[3] = {1, 1, 1};
  sim_test t;
  heddle_pmodule *module = NULL;
  heddle_pkernel *kernel = NULL;
  heddle_pkernel_info info = {.struct_size = sizeof info};
  heddle_pgraph *graph = NULL;
  (void)state;
  setenv("FAKE_GPU_KERNELS", HEDDLE_TEST_BUILD "/tests/fakes/cuda/fake_kernels.so", 1);
  cuda_environment();
  if (gpu_is_real()) SKIP("the kernel is a function of C");
  cuda_open(&t, 1, NULL);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  const heddle_pargument arg = {.buffer = b};
  sim_fill(&t, s, b, BYTES, 77);
  OK(&t, t.p->module->load(t.dev[0], "ptx", ptx, sizeof ptx, &module, &t.err));
  OK(&t, t.p->module->kernel_get(module, "count_set", &kernel, &info, &t.err));
  OK(&t, t.p->capture->begin(s, &t.err));
  OK(&t, t.p->module->launch(s, kernel, one, one, 0, &arg, 1, &t.err));
  OK(&t, t.p->capture->end(s, &graph, &t.err));
  OK(&t, t.p->capture->replay(graph, s, &t.err));
  sim_expect(&t, s, b, 1, 0);
  t.p->capture->free(graph);
  t.p->module->unload(module);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

/* ---------------------------------------------------------------- libraries */

static void preload(const char *file) {
  char path[1024];
  snprintf(path, sizeof path, HEDDLE_TEST_BUILD "/tests/fakes/cuda/%s", file);
  if (dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL) fail_msg("%s", dlerror());
}

/* Both majors are there, and the driver is of the older one. */
static void the_library_is_of_the_drivers_major(void **state) {
  static const struct {
    const char *driver, *taken;
  } list[] = {{"12080", "cuBLASLt 12.8.4 (libcublasLt.so.12)"}, {"13000", "cuBLASLt 13.0.2 (libcublasLt.so.13)"}};
  sim_test t;
  const int i = (int)(intptr_t)*state;
  cuda_environment();
  if (gpu_is_real()) SKIP("the libraries are doubles");
  setenv("FAKE_GPU_VERSION", list[i].driver, 1);
  preload("libcublasLt.so.13");
  preload("libcublasLt.so.12");
  sim_enter(&t, "libraries", "1", "cudnn", "off", NULL);
  t.fake.table.log = keep_lines;
  cuda_open_devices(&t, 1);
  if (strstr(logged, list[i].taken) == NULL) fail_msg("no '%s' in: %s", list[i].taken, logged);
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_non_null(strstr(desc.driver, ", cuBLASLt"));
  assert_null(strstr(desc.driver, "cuDNN"));
  sim_close(&t);
}

static void an_older_driver_has_the_older_library(void **state) {
  void *first = (void *)(intptr_t)0;
  (void)state;
  the_library_is_of_the_drivers_major(&first);
}

static void a_newer_driver_has_the_newer_library(void **state) {
  void *second = (void *)(intptr_t)1;
  (void)state;
  the_library_is_of_the_drivers_major(&second);
}

static void a_library_for_a_newer_driver_is_named(void **state) {
  sim_test t;
  (void)state;
  cuda_environment();
  if (gpu_is_real()) SKIP("the libraries are doubles");
  setenv("FAKE_GPU_VERSION", "12080", 1);
  sim_enter(&t, "libraries", "1", "cublaslt", HEDDLE_TEST_BUILD "/tests/fakes/cuda/libcublasLt.so.13", NULL);
  cuda_settings(&t);
  FAILS(&t, HEDDLE_ENODEV, "made for CUDA 13, and the driver is of CUDA 12.8",
        t.p->open_instance(&t.fake.table, &t.self, &t.err));
}

/* Found by its name, as an installed driver is: then libraries are looked for too. */
static void missing_libraries_are_a_warning(void **state) {
  sim_test t;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  (void)state;
  cuda_environment();
  if (gpu_is_real()) SKIP("the driver is no double");
  preload("libcuda.so.1");
  preload("libcublasLt.so.13");
  sim_enter(&t, "driver", "1", "libraries", "auto", NULL);
  t.fake.table.log = keep_lines;
  cuda_open_devices(&t, 1);
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  if (strstr(desc.driver, ", cuBLASLt") == NULL) fail_msg("%s", desc.driver);
  if (strstr(desc.driver, ", no cuDNN") == NULL) SKIP("cuDNN is installed here");
  assert_non_null(strstr(warned, "there is no cuDNN"));
  assert_non_null(strstr(warned, "convolutions are by kernels, which are slower"));
  sim_close(&t);
}

CASES(CASE(a_device_goes_on_in_its_own_context), CASE(without_a_context_of_its_own_the_error_says_what_to_do),
      CASE(a_context_of_its_own_goes_with_the_device), CASE(a_wrong_context_is_refused),
      CASE(a_doubtful_code_is_asked_about), CASE(a_doubtful_code_may_be_the_end), CASE(a_fault_surfaces_at_any_call),
      CASE(the_default_pool_is_left_alone), CASE(kept_pieces_are_given_back), CASE(a_registration_holds_up_nobody),
      CASE(more_than_may_be_registered_is_copied), CASE(pages_are_the_machines),
      CASE(parts_of_a_card_have_their_own_names), CASE(parameters_that_are_not_given_are_zero),
      CASE(a_capture_may_be_a_kernels_first_launch), CASE(an_older_driver_has_the_older_library),
      CASE(a_newer_driver_has_the_newer_library), CASE(a_library_for_a_newer_driver_is_named),
      CASE(missing_libraries_are_a_warning))
