/* The layers: what check refuses, what fault breaks, what log prints, and that nothing is in the way otherwise.
 * labels: threads */
#include "cases.h"
#include "core/alloc.h"
#include "core/fence.h"
#include "core/layers/call.h"
#include "core/registry.h"

#define PROBES HEDDLE_TEST_BUILD "/tests/plugins/libheddle_plugin_"

static heddle_context *ctx;
static heddle_device *dev;
static const heddle__tables *t;
static heddle_error err;
static char lines[8192];

static void sink(void *user, int32_t level, const char *component, const char *text) {
  (void)user;
  (void)level;
  if (strlen(lines) + strlen(text) + strlen(component) + 4 > sizeof lines) return;
  strcat(strcat(strcat(strcat(lines, component), ": "), text), "\n");
}

static void open_with(const char *layers, const char *plugin, const char *key, const char *value) {
  char path[512];
  snprintf(path, sizeof path, PROBES "%s.so", plugin);
  const heddle_setting settings[] = {{"plugins", path}, {"layers", layers}, {"log", "info"}, {key, value}};
  lines[0] = '\0';
  assert_int_equal(heddle_context_create(settings, key != NULL ? 4 : 3, sink, NULL, &ctx, &err), HEDDLE_OK);
  dev = heddle_context_device(ctx, 1);
  assert_non_null(dev);
  t = dev->t;
}

static void done(void) {
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static heddle_pbuffer *buffer(uint32_t kind, uint64_t bytes) {
  heddle_pbuffer *b = NULL;
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = kind, .bytes = bytes, .align = 64};
  assert_int_equal(t->memory.alloc(dev->handle, &desc, &b, &err), HEDDLE_OK);
  return b;
}

static heddle_pstream *stream(void) {
  heddle_pstream *s = NULL;
  assert_int_equal(t->stream.create(dev->handle, 0, 0, &s, &err), HEDDLE_OK);
  return s;
}

#define BROKEN(call, words) \
  do { \
    assert_int_equal(call, HEDDLE_EINTERNAL); \
    if (strstr(err.text, words) == NULL) fail_msg("'%s' lacks '%s'", err.text, words); \
  } while (0)

static void no_layer_is_in_the_way(void **state) {
  (void)state;
  open_with("off", "probe", NULL, NULL);
  assert_ptr_equal(dev->t, &dev->plugin->tables);
  assert_ptr_equal(dev->instance, dev->plugin->instance);
  done();
}

static void unknown_layers_are_refused(void **state) {
  (void)state;
  const heddle_setting settings[] = {{"plugins", PROBES "probe.so"}, {"layers", "check,chekc"}};
  assert_int_equal(heddle_context_create(settings, 2, NULL, NULL, &ctx, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "chekc"));
  const heddle_setting rule[] = {{"plugins", PROBES "probe.so"}, {"layers", "fault"}, {"fault.fail", "alloc"}};
  assert_int_equal(heddle_context_create(rule, 3, NULL, NULL, &ctx, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void check_refuses_what_the_host_does_wrong(void **state) {
  (void)state;
  open_with("check", "probe", NULL, NULL);
  assert_int_equal(heddle__device_open(dev, &err), HEDDLE_OK);
  heddle_pstream *s = stream();
  heddle_pbuffer *d = buffer(HEDDLE_MEMORY_DEVICE, 256), *h = buffer(HEDDLE_MEMORY_PINNED, 256), *v = NULL, *w = NULL;
  heddle_pgraph *g = NULL;
  void *p = NULL;
  char bytes[64] = {1};

  assert_int_equal(t->copy.h2d(s, d, 0, h, 0, 256, &err), HEDDLE_OK);
  BROKEN(t->copy.h2d(s, d, 128, h, 0, 256, &err), "leave a buffer");
  BROKEN(t->copy.h2d(s, d, UINT64_MAX, h, 0, 2, &err), "leave a buffer");
  BROKEN(t->copy.h2d(s, d, 0, d, 0, 2, &err), "kind DEVICE");
  BROKEN(t->copy.d2d(s, d, 0, NULL, 0, 2, &err), "is NULL");
  BROKEN(t->copy.d2d((heddle_pstream *)(void *)d, d, 0, h, 0, 2, &err), "another kind");
  BROKEN(t->copy.fill(s, d, 2, 4, 0, &err), "multiples of 4");
  BROKEN(t->copy.write(s, d, 0, NULL, 4, &err), "NULL");
  BROKEN(t->copy.read((heddle_pstream *)(void *)bytes, bytes, d, 0, 4, &err), "is not open");
  BROKEN(t->memory.view(dev->handle, d, 32, 32, &v, &err), "no multiple of 64");
  assert_int_equal(t->memory.view(dev->handle, d, 64, 64, &v, &err), HEDDLE_OK);
  BROKEN(t->memory.view(dev->handle, v, 0, 64, &w, &err), "view of a view");
  BROKEN(t->memory.map(dev->handle, d, &p, &err), "neither PINNED");
  assert_int_equal(t->memory.map(dev->handle, h, &p, &err), HEDDLE_OK);
  BROKEN(t->memory.map(dev->handle, h, &p, &err), "mapped already");
  t->memory.unmap(dev->handle, h);

  assert_int_equal(t->capture.begin(s, &err), HEDDLE_OK);
  BROKEN(t->copy.write(s, d, 0, bytes, 4, &err), "being captured");
  BROKEN(t->stream.sync(s, 0, &err), "being captured");
  BROKEN(t->capture.begin(s, &err), "being captured");
  assert_int_equal(t->copy.d2d(s, d, 0, h, 0, 2, &err), HEDDLE_OK);
  assert_int_equal(t->capture.end(s, &g, &err), HEDDLE_OK);
  BROKEN(t->capture.end(s, &g, &err), "nothing is being recorded");
  assert_int_equal(t->capture.replay(g, s, &err), HEDDLE_OK);
  t->capture.free(g);

  heddle_device *first = heddle_context_device(ctx, 0);
  assert_int_equal(heddle__device_open(first, &err), HEDDLE_OK);
  heddle_pstream *other = NULL;
  assert_int_equal(t->stream.create(first->handle, 0, 0, &other, &err), HEDDLE_OK);
  BROKEN(t->copy.d2d(other, d, 0, d, 64, 2, &err), "another device");
  assert_int_equal(t->copy.h2d(s, d, 0, h, 0, 4, &err), HEDDLE_OK);
  t->stream.close(other);
  heddle__device_close(first);

  t->memory.free(dev->handle, v);
  t->memory.free(dev->handle, d);
  BROKEN(t->copy.h2d(s, d, 0, h, 0, 4, &err), "is not open");
  t->memory.free(dev->handle, h);
  t->memory.free(dev->handle, NULL);
  t->stream.close(s);
  heddle__device_close(dev);
  assert_null(strstr(lines, "check:"));
  done();
}

static void leaks_are_told(void **state) {
  (void)state;
  open_with("check", "probe", NULL, NULL);
  assert_int_equal(heddle__device_open(dev, &err), HEDDLE_OK);
  heddle_pstream *s = stream();
  heddle_pbuffer *d = buffer(HEDDLE_MEMORY_DEVICE, 256), *v = NULL;
  assert_int_equal(t->memory.view(dev->handle, d, 0, 64, &v, &err), HEDDLE_OK);
  t->memory.free(dev->handle, d);
  assert_non_null(strstr(lines, "memory.free: 1 handles that were made on the buffer are left"));
  t->memory.free(dev->handle, v);
  /* The plugin's own stream is freed behind the layer's back; the core forgets its handle. */
  dev->plugin->tables.stream.close(((heddle__wrap *)(void *)s)->real);
  heddle__device_close(dev);
  assert_non_null(strstr(lines, "device.close: 1 handles that were made on the device are left"));
  t->stream.close(s);
  assert_non_null(strstr(lines, "stream.close came after the device was closed"));
  done();
}

static heddle_status keep(void *user, const heddle_poffer *offer, heddle_error *e) {
  (void)e;
  *(uint64_t *)user += offer->struct_size;
  return HEDDLE_OK;
}

/* One node Identity on x -> y, 16 floats. */
static const int64_t shape[] = {16};
static const heddle_pvalue values[] = {
    {.struct_size = sizeof(heddle_pvalue), .dtype = {2, 32, 1}, .shape = shape, .ndim = 1},
    {.struct_size = sizeof(heddle_pvalue), .dtype = {2, 32, 1}, .shape = shape, .ndim = 1}};
static const int32_t zero = 0, one = 1, nine = 9;
static heddle_pnode node = {.struct_size = sizeof node,
                            .opset = 13,
                            .domain = "",
                            .op = "Identity",
                            .name = "n",
                            .inputs = &zero,
                            .outputs = &one,
                            .n_inputs = 1,
                            .n_outputs = 1};
static heddle_pregion region = {.struct_size = sizeof region,
                                .nodes = {&node, 1, sizeof node},
                                .values = {values, 2, sizeof values[0]},
                                .inputs = &zero,
                                .outputs = &one,
                                .n_inputs = 1,
                                .n_outputs = 1};

static void operators_pass_through(void **state) {
  (void)state;
  open_with("check,fault,log", "probe", NULL, NULL);
  assert_int_equal(heddle__device_open(dev, &err), HEDDLE_OK);
  heddle_pstream *s = stream();
  heddle_pbuffer *a = buffer(HEDDLE_MEMORY_DEVICE, 64), *b = buffer(HEDDLE_MEMORY_DEVICE, 128);
  uint64_t seen = 0;
  assert_int_equal(t->op.query(dev->instance, 1, &region, keep, &seen, &err), HEDDLE_OK);
  assert_int_equal(seen, sizeof(heddle_poffer));
  node.inputs = &nine;
  BROKEN(t->op.query(dev->instance, 1, &region, keep, &seen, &err), "a value that is not there");
  node.inputs = &zero;
  node.op = "Add";
  assert_int_equal(t->op.query(dev->instance, 1, &region, keep, &seen, &err), HEDDLE_EUNSUPPORTED);
  node.op = "Identity";
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  assert_int_equal(t->op.prepare(dev->handle, &region, 0, &op, &err), HEDDLE_OK);
  heddle_pslice in = {a, 0, 64}, out = {b, 64, 64};
  heddle_pbind bind = {.struct_size = sizeof bind, .inputs = &in, .outputs = &out, .n_inputs = 1, .n_outputs = 1};
  out.offset = 65;
  BROKEN(t->op.bind(op, s, &bind, &launch, &err), "leaves its buffer");
  out.offset = 64;
  bind.n_inputs = 0;
  BROKEN(t->op.bind(op, s, &bind, &launch, &err), "0 inputs and 1 outputs");
  bind.n_inputs = 1;
  assert_int_equal(t->op.bind(op, s, &bind, &launch, &err), HEDDLE_OK);
  float x[16] = {3, 4}, y[16] = {0};
  assert_int_equal(t->copy.write(s, a, 0, x, 64, &err), HEDDLE_OK);
  assert_int_equal(t->op.run(launch, &err), HEDDLE_OK);
  assert_int_equal(t->copy.read(s, y, b, 64, 64, &err), HEDDLE_OK);
  assert_memory_equal(x, y, sizeof x);
  t->op.launch_free(launch);
  t->op.op_free(op);
  t->memory.free(dev->handle, a);
  t->memory.free(dev->handle, b);
  t->stream.close(s);
  heddle__device_close(dev);
  assert_non_null(strstr(lines, "calls: probe:1 op.run: HEDDLE_OK"));
  assert_non_null(strstr(lines, "calls: probe:1 copy.read [64+64): HEDDLE_OK"));
  assert_non_null(strstr(lines, "calls: probe:1 memory.free"));
  done();
}

static void check_refuses_what_the_plugin_does_wrong(void **state) {
  (void)state;
  open_with("check", "probe_nothing", NULL, NULL);
  assert_int_equal(heddle__device_open(dev, &err), HEDDLE_OK);
  heddle_pstream *s = NULL;
  assert_int_equal(t->stream.create(dev->handle, 0, 0, &s, &err), HEDDLE_EABI);
  assert_non_null(strstr(err.text, "the plugin broke the contract of stream.create (plugin nothing)"));
  heddle__device_close(dev);
  done();
  open_with("check", "probe_offer", NULL, NULL);
  uint64_t seen = 0;
  assert_int_equal(t->op.query(dev->instance, 1, &region, keep, &seen, &err), HEDDLE_EABI);
  assert_non_null(strstr(err.text, "workspace_align"));
  assert_int_equal(seen, 0);
  done();
}

static void fault_fails_the_nth_call(void **state) {
  (void)state;
  open_with("fault", "probe", "fault.fail", "alloc:2@probe:1,stream.create:1");
  assert_int_equal(heddle__device_open(dev, &err), HEDDLE_OK);
  heddle_pstream *s = NULL;
  assert_int_equal(t->stream.create(dev->handle, 0, 0, &s, &err), HEDDLE_EFAILED);
  assert_non_null(strstr(err.text, "made to fail"));
  heddle_pbuffer *a = buffer(0, 16), *b = NULL;
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .bytes = 16, .align = 64};
  assert_int_equal(t->memory.alloc(dev->handle, &desc, &b, &err), HEDDLE_ENOMEM);
  assert_null(b);
  b = buffer(0, 16);
  t->memory.free(dev->handle, a);
  t->memory.free(dev->handle, b);
  heddle__device_close(dev);
  done();

  open_with("fault", "probe", "fault.fail", "any:3+");
  assert_int_equal(heddle__device_open(dev, &err), HEDDLE_OK);
  int64_t n;
  assert_int_equal(t->device.query(dev->handle, HEDDLE_QUERY_LIVE_BUFFERS, &n, &err), HEDDLE_OK);
  for (int i = 0; i < 3; i++) assert_int_equal(t->device.health(dev->handle, &err), HEDDLE_EFAILED);
  heddle__device_close(dev); /* idle fails as well, so that the device counts as hung */
  heddle_context_release(ctx);
}

static void completions_vanish_and_come_late(void **state) {
  (void)state;
  open_with("check,fault", "probe", "fault.drop_signal", "2");
  assert_int_equal(heddle__device_open(dev, &err), HEDDLE_OK);
  heddle_pstream *s = stream();
  heddle__fence *f;
  assert_int_equal(heddle__fence_create(NULL, &f, &err), HEDDLE_OK);
  for (uint64_t k = 1; k <= 3; k++) {
    assert_int_equal(t->fence.signal(s, heddle__fence_handle(f), k, &err), HEDDLE_OK);
    assert_int_equal(heddle__fence_reached(f, k), k != 2);
  }
  heddle__fence_free(f);
  t->stream.close(s);
  heddle__device_close(dev);
  done();

  open_with("check,fault", "probe", "fault.delay_us", "30000");
  heddle__waker w;
  assert_int_equal(heddle__waker_init(&w, &err), HEDDLE_OK);
  assert_int_equal(heddle__device_open(dev, &err), HEDDLE_OK);
  s = stream();
  assert_int_equal(heddle__fence_create(&w, &f, &err), HEDDLE_OK);
  uint64_t t0 = heddle__now_ns();
  assert_int_equal(t->fence.signal(s, heddle__fence_handle(f), 7, &err), HEDDLE_OK);
  assert_false(heddle__fence_reached(f, 7));
  while (!heddle__fence_reached(f, 7)) {
    unsigned seen = atomic_load(&w.epoch);
    if (!heddle__fence_reached(f, 7)) assert_true(heddle__waker_wait(&w, seen, t0 + 10000000000u));
  }
  assert_true(heddle__now_ns() - t0 >= 30000000);
  heddle__fence_free(f);
  heddle__waker_finish(&w);
  t->stream.close(s);
  heddle__device_close(dev);
  done();
}

CASES(CASE(no_layer_is_in_the_way), CASE(unknown_layers_are_refused), CASE(check_refuses_what_the_host_does_wrong),
      CASE(leaks_are_told), CASE(operators_pass_through), CASE(check_refuses_what_the_plugin_does_wrong),
      CASE(fault_fails_the_nth_call), CASE(completions_vanish_and_come_late))
