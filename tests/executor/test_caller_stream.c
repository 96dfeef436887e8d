/* timeout: 120
 * Runs in order with a stream of the caller's, and with runs of other executors, without a wait on the host. The caller's
 * streams are made with the vendors' own calls. A gate in the stream shows that the host did not wait. */
#include "executor/vendor_stream.h"

enum { COUNT = 4096, ROUNDS = 6 };

#if defined(__GNUC__)
#define MAYBE_UNUSED __attribute__((unused)) /* without a vendor's plugin */
#else
#define MAYBE_UNUSED
#endif

static const int64_t shape[] = {COUNT};

static void rig_of_a_sum(rig *t, heddle_context *ctx, const char *settings, const char *devices, uint32_t in_flight) {
  static sketch s;
  memset(&s, 0, sizeof s);
  int x = put_input(&s, "x", "[4096]", "\"float32\"");
  int y = NODE(&s, "Add", "y", "sim:0", x, x);
  if (strstr(devices, "cpu") != NULL) y = NODE(&s, "Neg", "z", "cpu:0", y);
  put_head(&s, y);
  const heddle_model_options o = {.struct_size = sizeof o, .devices = on(devices), .in_flight = in_flight};
  *t = (rig){.ctx = ctx != NULL ? heddle_context_retain(ctx) : context(settings)};
  t->graph = graph_of(&s);
  OK(heddle_model_create(t->ctx, t->graph, NULL, &o, &t->model, &err));
  OK(heddle_executor_create(t->model, &t->ex, &err));
}

static void rig_drop(rig *t) {
  heddle_executor_release(t->ex);
  heddle_model_release(t->model);
  heddle_graph_release(t->graph);
  heddle_context_release(t->ctx);
}

static heddle_device *device_of(const rig *t, const char *name) {
  heddle_device *dev = NULL;
  OK(heddle_context_find_device(t->ctx, on(name), &dev, &err));
  return dev;
}

static heddle_tensor *on_device(heddle_device *dev) {
  heddle_tensor *t = NULL;
  OK(heddle_tensor_create(dev, HEDDLE_FLOAT32, shape, 1, &t, &err));
  return t;
}

static void ramp(float *out, float first) {
  for (int i = 0; i < COUNT; i++) out[i] = first + (float)(i % 64);
}

static void expect(const float *got, float factor, float first) {
  for (int i = 0; i < COUNT; i++)
    if (got[i] != factor * (first + (float)(i % 64)))
      fail_msg("element %d is %g, not %g", i, (double)got[i], (double)(factor * (first + (float)(i % 64))));
}

static void expect_no_copies(heddle_executor *ex) {
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  OK(heddle_executor_get_stats(ex, &stats, &err));
  assert_int_equal(stats.copies, 0);
  assert_int_equal(stats.bytes_copied, 0);
}

/* ---- the caller's stream */

MAYBE_UNUSED static void runs_are_in_order_with_the_callers_work(void **state) {
  (void)state;
  rig t;
  vendor_hold(0, true);
  rig_of_a_sum(&t, NULL, "threads=1", "sim:0", 1);
  heddle_device *dev = device_of(&t, "sim:0");
  heddle_tensor *x = on_device(dev), *y = on_device(dev);
  const uint64_t stream = stream_make(x, 0);
  OK(heddle_executor_bind_input(t.ex, 0, x, &err));
  OK(heddle_executor_bind_output(t.ex, 0, y, &err));
  OK(heddle_executor_use_stream(t.ex, dev, stream, &err));
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err)); /* planned and bound: drivers wait where memory is freed */
  float *in = host_make(COUNT * sizeof *in), *out = host_make(COUNT * sizeof *out);
  for (int round = 0; round < ROUNDS; round++) {
    gate g;
    ramp(in, (float)round);
    stream_gate(stream, &g);
    stream_copy(stream, x, in, true);
    OK(heddle_executor_start(t.ex, &err)); /* returns while the gate is closed */
    FAILS(heddle_executor_poll(t.ex), HEDDLE_EBUSY);
    stream_copy(stream, y, out, false);
    FAILS(heddle_executor_wait(t.ex, 20 * MS, &err), HEDDLE_ETIMEOUT);
    gate_open(&g);
    stream_end(stream, 0, false);
    expect(out, 2, (float)round);
    OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
  }
  expect_no_copies(t.ex);
  if (is_opencl()) FAILS(heddle_executor_use_stream(t.ex, dev, 0, &err), HEDDLE_EINVAL); /* the one of before stays */
  ramp(in, ROUNDS);
  stream_copy(stream, x, in, true);
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err)); /* comes after the copy too */
  stream_copy(stream, y, out, false);
  stream_end(stream, 0, false);
  expect(out, 2, ROUNDS);
  OK(heddle_executor_use_stream(t.ex, NULL, 0, &err));
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
  stream_end(stream, 0, true);
  host_free(in);
  host_free(out);
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  rig_end(&t);
  vendor_hold(0, false);
}

/* Steps of the host between: start waits for them, and the order holds. */
MAYBE_UNUSED static void work_of_the_host_is_waited_for(void **state) {
  (void)state;
  rig t;
  vendor_hold(0, true);
  rig_of_a_sum(&t, NULL, "threads=1", "cpu,sim:0", 1);
  heddle_device *dev = device_of(&t, "sim:0");
  heddle_tensor *x = on_device(dev), *y = on_device(dev);
  const uint64_t stream = stream_make(x, 0);
  OK(heddle_executor_bind_input(t.ex, 0, x, &err));
  OK(heddle_executor_bind_output(t.ex, 0, y, &err));
  OK(heddle_executor_use_stream(t.ex, dev, stream, &err));
  float *in = host_make(COUNT * sizeof *in), *out = host_make(COUNT * sizeof *out);
  for (int round = 0; round < ROUNDS; round++) {
    ramp(in, (float)round);
    stream_copy(stream, x, in, true);
    OK(heddle_executor_start(t.ex, &err));
    stream_copy(stream, y, out, false);
    stream_end(stream, 0, false);
    expect(out, -2, (float)round);
    OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
  }
  stream_end(stream, 0, true);
  host_free(in);
  host_free(out);
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  rig_end(&t);
  vendor_hold(0, false);
}

MAYBE_UNUSED static void a_stream_of_another_device_is_refused(void **state) {
  (void)state;
  rig t;
  vendor_hold(0, true);
  rig_of_a_sum(&t, NULL, "threads=1", "sim:0", 1);
  heddle_device *dev = device_of(&t, "sim:0"), *other = device_of(&t, "sim:1");
  heddle_tensor *x = on_device(dev), *far = on_device(other);
  const uint64_t stream = stream_make(x, 1);
  FAILS(heddle_executor_use_stream(t.ex, dev, stream, &err), HEDDLE_EINVAL);
  SAYS(on("sim:0"));
  if (is_opencl()) SAYS("opencl:1");
  else SAYS("device 1");
  FAILS(heddle_executor_use_stream(t.ex, other, stream, &err), HEDDLE_EINVAL); /* the model does not run there */
  SAYS(on("sim:0"));
  SAYS(on("sim:1"));
  FAILS(heddle_tensor_after_stream(x, stream, &err), HEDDLE_EINVAL);
  FAILS(heddle_tensor_before_stream(x, stream, &err), HEDDLE_EINVAL);
  OK(heddle_tensor_after_stream(far, stream, &err));
  if (is_opencl()) FAILS(heddle_executor_use_stream(t.ex, dev, 0, &err), HEDDLE_EINVAL);
  heddle_tensor *in = floats(shape, 1, 1, 0); /* still usable */
  OK(heddle_executor_set_input(t.ex, 0, in, &err));
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
  stream_end(stream, 1, true);
  heddle_tensor_release(in);
  heddle_tensor_release(x);
  heddle_tensor_release(far);
  rig_end(&t);
  vendor_hold(0, false);
}

/* What DLPack's stream argument stands on. */
MAYBE_UNUSED static void tensors_are_in_order_with_a_stream(void **state) {
  (void)state;
  rig t;
  vendor_hold(0, true);
  rig_of_a_sum(&t, NULL, "threads=1", "sim:0", 1);
  heddle_device *dev = device_of(&t, "sim:0");
  heddle_tensor *x = on_device(dev), *y = on_device(dev);
  const uint64_t stream = stream_make(x, 0), second = stream_make(x, 0);
  OK(heddle_executor_bind_input(t.ex, 0, x, &err));
  OK(heddle_executor_bind_output(t.ex, 0, y, &err));
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
  float *in = host_make(COUNT * sizeof *in), *out = host_make(COUNT * sizeof *out);
  for (int round = 0; round < ROUNDS; round++) {
    gate g;
    ramp(in, (float)round);
    stream_gate(stream, &g);
    stream_copy(stream, x, in, true);
    OK(heddle_tensor_after_stream(x, stream, &err));
    OK(heddle_executor_start(t.ex, &err));
    OK(heddle_tensor_before_stream(y, second, &err));
    stream_copy(second, y, out, false);
    FAILS(heddle_tensor_wait(y, 20 * MS, &err), HEDDLE_ETIMEOUT);
    gate_open(&g);
    stream_end(second, 0, false);
    expect(out, 2, (float)round);
    OK(heddle_tensor_wait(y, HEDDLE_FOREVER, &err));
    OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
  }
  stream_end(stream, 0, true);
  stream_end(second, 0, true);
  host_free(in);
  host_free(out);
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  rig_end(&t);
  vendor_hold(0, false);
}

/* ---- executors behind one another */

static void chained_runs_wait_on_the_device_alone(void **state) {
  (void)state;
  static const char *const modes[] = {"sim.delay_us=200;sim.seed=1", "sim.delay_us=200;sim.seed=2", "layers=check"};
  for (size_t k = 0; k < sizeof modes / sizeof modes[0]; k++) {
    if (!settings_fit(modes[k])) continue;
    rig a, b;
    rig_of_a_sum(&a, NULL, modes[k], "sim:0", 1);
    rig_of_a_sum(&b, a.ctx, NULL, "sim:0", 1);
    heddle_device *dev = device_of(&a, "sim:0");
    heddle_tensor *x = on_device(dev), *y = on_device(dev), *z = on_device(dev), *host = floats(shape, 1, 0, 0);
    OK(heddle_executor_bind_input(a.ex, 0, x, &err));
    OK(heddle_executor_bind_output(a.ex, 0, y, &err));
    OK(heddle_executor_bind_input(b.ex, 0, y, &err));
    OK(heddle_executor_bind_output(b.ex, 0, z, &err));
    for (int round = 0; round < ROUNDS; round++) {
      ramp(heddle_tensor_data(host), (float)round);
      OK(heddle_tensor_copy(x, host, &err));
      OK(heddle_executor_start(a.ex, &err));
      OK(heddle_executor_start(b.ex, &err)); /* a's run need not have ended */
      OK(heddle_executor_wait(a.ex, HEDDLE_FOREVER, &err));
      ramp(heddle_tensor_data(host), (float)round + 100);
      OK(heddle_tensor_copy(x, host, &err));
      OK(heddle_executor_start(a.ex, &err)); /* writes what b's run may still read */
      OK(heddle_tensor_copy(host, z, &err)); /* after b's run */
      expect(data_of(host), 4, (float)round);
      OK(heddle_executor_wait(b.ex, HEDDLE_FOREVER, &err));
      OK(heddle_executor_wait(a.ex, HEDDLE_FOREVER, &err));
      OK(heddle_tensor_copy(host, y, &err));
      expect(data_of(host), 2, (float)round + 100);
    }
    expect_no_copies(a.ex);
    expect_no_copies(b.ex);
    heddle_tensor_release(host);
    heddle_tensor_release(x);
    heddle_tensor_release(y);
    heddle_tensor_release(z);
    rig_drop(&b);
    rig_end(&a);
  }
}

/* Two runs of each are pending at a time: the host waits for one that lies two runs back. */
static void chained_runs_in_flight(void **state) {
  (void)state;
  rig a, b;
  rig_of_a_sum(&a, NULL, "sim.delay_us=100;sim.seed=3", "sim:0", 2);
  rig_of_a_sum(&b, a.ctx, NULL, "sim:0", 2);
  heddle_device *dev = device_of(&a, "sim:0");
  heddle_tensor *x = on_device(dev), *y = on_device(dev), *z[2] = {on_device(dev), on_device(dev)};
  heddle_tensor *host = floats(shape, 1, 0, 0), *w[2] = {y, on_device(dev)};
  ramp(heddle_tensor_data(host), 1);
  OK(heddle_tensor_copy(x, host, &err));
  OK(heddle_executor_bind_input(a.ex, 0, x, &err));
  for (int round = 0; round < 2 * ROUNDS; round++) {
    if (round >= 2) OK(heddle_executor_wait(a.ex, HEDDLE_FOREVER, &err));
    OK(heddle_executor_bind_output(a.ex, 0, w[round % 2], &err));
    OK(heddle_executor_start(a.ex, &err));
    if (round >= 2) {
      OK(heddle_executor_wait(b.ex, HEDDLE_FOREVER, &err));
      OK(heddle_tensor_copy(host, z[round % 2], &err));
      expect(data_of(host), 4, 1);
    }
    OK(heddle_executor_bind_input(b.ex, 0, w[round % 2], &err));
    OK(heddle_executor_bind_output(b.ex, 0, z[round % 2], &err));
    OK(heddle_executor_start(b.ex, &err));
  }
  for (int i = 0; i < 2; i++) {
    OK(heddle_executor_wait(a.ex, HEDDLE_FOREVER, &err));
    OK(heddle_executor_wait(b.ex, HEDDLE_FOREVER, &err));
  }
  expect_no_copies(a.ex);
  expect_no_copies(b.ex);
  heddle_tensor_release(host);
  heddle_tensor_release(x);
  for (int i = 0; i < 2; i++) {
    heddle_tensor_release(z[i]);
    heddle_tensor_release(w[i]);
  }
  rig_drop(&b);
  rig_end(&a);
}

/* A run that reads what another failed to write reports that, until the memory is written. */
static void a_failed_run_is_not_built_upon(void **state) {
  (void)state;
  rig a, b;
  rig_of_a_sum(&a, NULL, "log=off;sim.fail=run:2:async;sim.capture=0", "sim:0", 1);
  rig_of_a_sum(&b, a.ctx, NULL, "sim:0", 1);
  heddle_device *dev = device_of(&a, "sim:0");
  heddle_tensor *x = on_device(dev), *y = on_device(dev), *host = floats(shape, 1, 0, 0);
  OK(heddle_executor_bind_input(a.ex, 0, x, &err));
  OK(heddle_executor_bind_output(a.ex, 0, y, &err));
  OK(heddle_executor_bind_input(b.ex, 0, y, &err));
  OK(heddle_executor_run(a.ex, HEDDLE_FOREVER, &err));
  heddle_status s = heddle_executor_run(a.ex, HEDDLE_FOREVER, &err);
  if (s == HEDDLE_OK) fail_msg("the launch did not fail");
  FAILS(heddle_executor_start(b.ex, &err), HEDDLE_EFAILED);
  SAYS("input 'x'");
  FAILS(heddle_tensor_wait(y, HEDDLE_FOREVER, &err), HEDDLE_EFAILED);
  OK(heddle_tensor_copy(y, host, &err));
  OK(heddle_executor_run(b.ex, HEDDLE_FOREVER, &err));
  heddle_tensor_release(host);
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  rig_drop(&b);
  rig_end(&a);
}

#ifdef HEDDLE_TEST_OPENCL
#define OPENCL_CASES \
  CASE_OPENCL(runs_are_in_order_with_the_callers_work), CASE_OPENCL(work_of_the_host_is_waited_for), \
      CASE_OPENCL(a_stream_of_another_device_is_refused), CASE_OPENCL(tensors_are_in_order_with_a_stream),
#else
#define OPENCL_CASES
#endif
#ifdef HEDDLE_TEST_CUDA
#define CUDA_CASES \
  CASE_CUDA(runs_are_in_order_with_the_callers_work), CASE_CUDA(work_of_the_host_is_waited_for), \
      CASE_CUDA(a_stream_of_another_device_is_refused), CASE_CUDA(tensors_are_in_order_with_a_stream),
#else
#define CUDA_CASES
#endif
#ifdef HEDDLE_TEST_ROCM
#define ROCM_CASES \
  CASE_ROCM(runs_are_in_order_with_the_callers_work), CASE_ROCM(work_of_the_host_is_waited_for), \
      CASE_ROCM(a_stream_of_another_device_is_refused), CASE_ROCM(tensors_are_in_order_with_a_stream),
#else
#define ROCM_CASES
#endif

CASES(OPENCL_CASES CUDA_CASES ROCM_CASES CASE_ALL(chained_runs_wait_on_the_device_alone),
      CASE_GPUS(chained_runs_in_flight), CASE(a_failed_run_is_not_built_upon))
