/* timeout: 120
 * A kernel that writes where nothing is, on whatever driver is there, with and without the vendor's libraries in the process:
 * what is reported, and that the device can be used again or the error says that the process must be restarted. Each case has
 * a process of its own, which such a fault may cost. On the double the fault is ordered. */
#include "cuda_host.h"

#include "gpu_double.h"
#include "op_case.h"
#include "plugins/common/gpu/gpu.h"

enum { SIDE = 64 };

static char warned[1024];

static void keep_warning(void *ctx, int32_t level, const char *component, const char *text) {
  sim_test_log(ctx, level, component, text);
  if (level == HEDDLE_LOG_WARN) snprintf(warned, sizeof warned, "%s", text);
}

/* What the kernel is on a real device; it is never run on the double, whose compiler knows no addresses from nowhere. */
static const char wild[] = "extern \"C\" __global__ void wild(float *p) { *(float *)16 = p[0]; }";

static void lose(sim_test *t, heddle_pstream *s, heddle_pbuffer *b) {
  static const uint32_t one[3] = {1, 1, 1};
  heddle_pmodule *module = NULL;
  heddle_pkernel *kernel = NULL;
  heddle_pkernel_info info = {.struct_size = sizeof info};
  const heddle_pargument arg = {.buffer = b};
  if (gpu_is_real()) {
    OK(t, t->p->module->load(t->dev[0], "cuda", wild, sizeof wild, &module, &t->err));
    OK(t, t->p->module->kernel_get(module, "wild", &kernel, &info, &t->err));
    (void)t->p->module->launch(s, kernel, one, one, 0, &arg, 1, &t->err);
  }
  OK(t, t->p->fence->signal(s, 1, 1, &t->err));
  for (int i = 0; i < 9 && !gpu_is_real(); i++) (void)t->p->copy->fill(s, b, 0, 64, 1, NULL);
  (void)t->p->fence->signal(s, 2, 1, NULL);
  (void)sim_wait(t, 1, 1);
  assert_int_equal(sim_wait(t, 2, 1), HEDDLE_EDEVICE); /* the watch reports it, though no thread waits in the driver */
  FAILS(t, HEDDLE_EDEVICE, "cuda:0: ", t->p->stream->sync(s, 20 * SECOND, &t->err));
  t->p->module->unload(module);
}

static void multiply(sim_test *t, heddle_pstream *s) {
  op_case c;
  fake_device d = {.plugin = t->p, .self = t->self, .dev = t->dev[0], .stream = s};
  (void)d;
  op_case_init(&c, "MatMul");
  float *a = op_input(&c, F32, SHAPE(2, SIDE, SIDE)), *b = op_input(&c, F32, SHAPE(2, SIDE, SIDE));
  op_output(&c, F32, SHAPE(2, SIDE, SIDE));
  op_fill(a, SIDE * SIDE, 1);
  op_fill(b, SIDE * SIDE, 2);
  heddle_pop *op = NULL;
  OK(t, t->p->op->prepare(t->dev[0], &c.region, 0, &op, &t->err)); /* which runs it once, where a library does it */
  t->p->op->op_free(op);
  op_case_free(&c);
}

static void survive(const char *libraries) {
  sim_test t;
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 7};
  setenv("FAKE_GPU_STRICT", "0", 1);
  if (!gpu_is_real()) setenv("FAKE_GPU_FAULT", "fill:5:700", 1);
  setenv("FAKE_LIBRARY_RETAIN", "1", 1);
  cuda_environment();
  const char *lt = getenv("HEDDLE_CUDA_CUBLASLT"), *dnn = getenv("HEDDLE_CUDA_CUDNN");
  if (!gpu_is_real()) lt = HEDDLE_TEST_BUILD "/tests/fakes/cuda/libcublasLt.so.13", dnn = "off";
  sim_enter(&t, "libraries", libraries, "cublaslt", lt != NULL ? lt : "", "cudnn", dnn != NULL ? dnn : "", NULL);
  if (lt == NULL || dnn == NULL) t.n_settings = 1; /* as the loader finds them */
  t.fake.table.log = keep_warning;
  cuda_open_devices(&t, 1);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  multiply(&t, s);
  lose(&t, s, b);
  assert_int_equal(t.faults, 1);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  t.p->device->close(t.dev[0]);
  t.dev[0] = NULL;
  warned[0] = '\0';
  if (t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err) == HEDDLE_OK) {
    print_message("the device is open again%s%s\n", warned[0] != '\0' ? ": " : "", warned);
    s = sim_stream(&t, t.dev[0]);
    b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
    sim_fill(&t, s, b, 4096, 9);
    sim_expect(&t, s, b, 1024, 9);
    multiply(&t, s);
    t.p->memory->free(t.dev[0], b);
    t.p->stream->close(s);
    sim_close(&t);
  } else {
    print_message("it is not: %s\n", t.err.text);
    assert_non_null(strstr(t.err.text, "restart the process"));
    assert_true(gpu_is_real()); /* the double makes new contexts */
    t.p->close_instance(t.self);
  }
}

static void a_wild_kernel_is_survived(void **state) {
  (void)state;
  survive("0");
}

static void a_wild_kernel_is_survived_beside_libraries(void **state) {
  (void)state;
  survive("auto");
}

CASES(CASE(a_wild_kernel_is_survived), CASE(a_wild_kernel_is_survived_beside_libraries))
