/* The default list and lists of names, on devices made up here. */
#include "cases.h"
#include "core/alloc.h"
#include "core/registry.h"

static heddle__plugin *plugin(heddle_context *ctx, const char *name, const char *reason) {
  heddle__plugin *p = heddle__alloc(1, sizeof *p);
  p->ctx = ctx;
  snprintf(p->name, sizeof p->name, "%s", name);
  p->path = heddle__format("/p/libheddle_plugin_%s.so", name);
  p->reason = reason != NULL ? heddle__strdup(reason) : NULL;
  ctx->plugins.data = heddle__grow(ctx->plugins.data, ctx->plugins.count, ctx->plugins.count + 1, sizeof(void *));
  ctx->plugins.data[ctx->plugins.count++] = p;
  atomic_store(&p->seen, true);
  return p;
}

static int32_t type_of(const char *name) {
  if (strcmp(name, "cuda") == 0) return HEDDLE_DEVICE_CUDA;
  if (strcmp(name, "vulkan") == 0) return HEDDLE_DEVICE_VULKAN;
  if (strcmp(name, "opencl") == 0) return HEDDLE_DEVICE_OPENCL;
  return strcmp(name, "cpu") == 0 ? HEDDLE_DEVICE_CPU : HEDDLE_DEVICE_EXT;
}

static heddle_device *device(heddle__plugin *p, uint64_t caps, uint8_t uuid, uint32_t bus) {
  heddle_context *ctx = p->ctx;
  heddle_device *d = heddle__alloc(1, sizeof *d);
  d->ctx = ctx;
  d->plugin = p;
  d->desc.type = type_of(p->name);
  d->index = p->n_devices;
  d->desc.caps = caps;
  d->desc.uuid[3] = uuid;
  d->desc.pci_domain = d->desc.pci_device = d->desc.pci_function = bus == UINT32_MAX ? UINT32_MAX : 0;
  d->desc.pci_bus = bus;
  snprintf(d->name, sizeof d->name, "%s:%u", p->name, (unsigned)d->index);
  p->devices = heddle__grow(p->devices, p->n_devices, p->n_devices + 1, sizeof(void *));
  return p->devices[p->n_devices++] = d;
}

static heddle_context *context(void) {
  heddle_context *ctx;
  heddle_error err;
  const heddle_setting none[] = {{"plugins", "off"}};
  assert_int_equal(heddle_context_create(none, 1, NULL, NULL, &ctx, &err), HEDDLE_OK);
  heddle__free(ctx->defaults);
  heddle__free(ctx->devices);
  ctx->defaults = ctx->devices = NULL;
  return ctx;
}

static void finish(heddle_context *ctx) {
  for (size_t i = 0; i < ctx->plugins.count; i++) {
    heddle__plugin *p = ctx->plugins.data[i];
    while (p->n_devices > 0) heddle__free(p->devices[--p->n_devices]);
  }
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static const char *names(heddle_device **list, size_t n) {
  static char text[256];
  text[0] = '\0';
  for (size_t i = 0; i < n; i++) strcat(strcat(text, i > 0 ? " " : ""), list[i]->name);
  return text;
}

static void defaults_take_one_api_for_each_device(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_device *out[16];
  size_t n;
  const char *origin;
  heddle__plugin *cpu = plugin(ctx, "cpu", NULL), *npu = plugin(ctx, "npu", NULL),
                 *opencl = plugin(ctx, "opencl", NULL);
  heddle__plugin *sim = plugin(ctx, "sim", NULL), *vulkan = plugin(ctx, "vulkan", NULL),
                 *cuda = plugin(ctx, "cuda", NULL);
  device(cpu, HEDDLE_CAP_INLINE | HEDDLE_CAP_HOST_CORES, 0, UINT32_MAX);
  device(npu, 0, 0, UINT32_MAX);
  heddle_device *by_bus = device(opencl, 0, 0, 3), *by_uuid = device(opencl, 0, 9, 7);
  heddle_device *pocl = device(opencl, HEDDLE_CAP_HOST_CORES, 0, UINT32_MAX);
  device(opencl, 0, 0, UINT32_MAX);
  device(sim, HEDDLE_CAP_HOST_CORES, 0, UINT32_MAX);
  device(vulkan, 0, 9, 8); /* the bus may be reported in another form; the UUID counts */
  device(cuda, 0, 0, 3);
  device(cuda, 0, 5, 4);
  assert_int_equal(heddle__defaults_init(ctx, NULL), HEDDLE_OK);
  assert_int_equal(heddle_context_select(ctx, NULL, out, 16, &n, &origin, NULL), HEDDLE_OK);
  assert_string_equal(names(out, n), "cuda:0 cuda:1 vulkan:0 opencl:3 npu:0 cpu:0");
  assert_string_equal(origin, "default");
  assert_non_null(strstr(by_bus->reason, "cuda:0"));
  assert_non_null(strstr(by_uuid->reason, "vulkan:0"));
  assert_non_null(strstr(pocl->reason, "only when named"));
  assert_int_equal(heddle_context_select(ctx, NULL, out, 2, &n, NULL, NULL), HEDDLE_OK);
  assert_int_equal(n, 6); /* how many there are, though two were written */
  finish(ctx);
}

/* Two drivers of one plugin show one device, which is used once; parts of a device are used all. */
static void defaults_take_one_driver_for_each_device(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_device *out[16];
  size_t n;
  heddle__plugin *opencl = plugin(ctx, "opencl", NULL);
  heddle_device *first = device(opencl, 0, 9, 3), *part = device(opencl, 0, 9, 3), *again = device(opencl, 0, 9, 3);
  first->desc.event_domain = part->desc.event_domain = 1;
  again->desc.event_domain = 2;
  assert_int_equal(heddle__defaults_init(ctx, NULL), HEDDLE_OK);
  assert_int_equal(heddle_context_select(ctx, NULL, out, 16, &n, NULL, NULL), HEDDLE_OK);
  assert_string_equal(names(out, n), "opencl:0 opencl:1");
  assert_non_null(strstr(again->reason, "opencl:0"));
  finish(ctx);
}

static void lists_keep_their_order(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_device *out[16];
  size_t n;
  heddle__plugin *cpu = plugin(ctx, "cpu", NULL), *sim = plugin(ctx, "sim", NULL);
  device(cpu, HEDDLE_CAP_INLINE, 0, UINT32_MAX);
  device(sim, HEDDLE_CAP_HOST_CORES, 0, UINT32_MAX);
  device(sim, HEDDLE_CAP_HOST_CORES, 0, UINT32_MAX);
  assert_int_equal(heddle__defaults_init(ctx, NULL), HEDDLE_OK);
  assert_int_equal(heddle_context_select(ctx, "sim:1, cuda:0?,cpu,sim,cpu:0 ,npu?", out, 16, &n, NULL, NULL),
                   HEDDLE_OK);
  assert_string_equal(names(out, n), "sim:1 cpu:0 sim:0");
  heddle_device *one;
  assert_int_equal(heddle_context_find_device(ctx, "sim:1", &one, NULL), HEDDLE_OK);
  assert_string_equal(one->name, "sim:1");
  finish(ctx);
}

static void what_is_missing_is_told(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_device *out[16], *one;
  heddle_error err;
  size_t n;
  heddle__plugin *cpu = plugin(ctx, "cpu", NULL);
  plugin(ctx, "opencl", "libOpenCL.so.1 is not installed");
  device(cpu, HEDDLE_CAP_INLINE, 0, UINT32_MAX);
  assert_int_equal(heddle__defaults_init(ctx, NULL), HEDDLE_OK);
  assert_int_equal(heddle_context_select(ctx, "opencl:1,cpu", out, 16, &n, NULL, &err), HEDDLE_ENODEV);
  assert_non_null(strstr(err.text, "'opencl:1' (call)"));
  assert_non_null(strstr(err.text, "there is cpu:0"));
  assert_non_null(strstr(err.text, "libOpenCL.so.1 is not installed"));
  assert_int_equal(heddle_context_find_device(ctx, "cpu:7", &one, &err), HEDDLE_ENODEV);
  assert_int_equal(heddle_context_select(ctx, "a?,b?", out, 16, &n, NULL, &err), HEDDLE_ENODEV);
  assert_int_equal(heddle_context_select(ctx, "off", out, 16, &n, NULL, &err), HEDDLE_ENODEV);
  static const char *const wrong[] = {"",   ",",   "cpu,",         "?",     "cpu:",  "cpu:x",
                                      ":0", "CPU", "cpu:12345678", "cpu 0", "cpu:-1"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    if (heddle_context_select(ctx, wrong[i], out, 16, &n, NULL, &err) != HEDDLE_EINVAL) fail_msg("'%s'", wrong[i]);
  finish(ctx);
}

/* "gpu" is what is used by default and has a GPU's type; "all" is everything, what is used by default first. */
static void groups_are_several_devices(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_device *out[16], *one;
  heddle_error err;
  size_t n;
  heddle__plugin *cpu = plugin(ctx, "cpu", NULL), *opencl = plugin(ctx, "opencl", NULL),
                 *sim = plugin(ctx, "sim", NULL);
  heddle__plugin *vulkan = plugin(ctx, "vulkan", NULL), *cuda = plugin(ctx, "cuda", NULL);
  device(cpu, HEDDLE_CAP_INLINE | HEDDLE_CAP_HOST_CORES, 0, UINT32_MAX);
  device(opencl, HEDDLE_CAP_HOST_CORES, 0, UINT32_MAX);
  device(opencl, 0, 0, 9);
  device(sim, HEDDLE_CAP_HOST_CORES, 0, UINT32_MAX);
  device(vulkan, 0, 0, 3); /* cuda:0 by another API */
  device(cuda, 0, 0, 3);
  device(cuda, 0, 0, 4);
  assert_int_equal(heddle__defaults_init(ctx, NULL), HEDDLE_OK);
  atomic_store(&ctx->complete, true);
  static const struct {
    const char *list, *devices;
  } good[] = {{"gpu", "cuda:0 cuda:1 opencl:1"},
              {"gpu:1,cpu", "cuda:1 cpu:0"},
              {"cpu,gpu:2,gpu", "cpu:0 opencl:1 cuda:0 cuda:1"},
              {"gpu:3?,cpu", "cpu:0"},
              {"all", "cuda:0 cuda:1 opencl:1 cpu:0 opencl:0 sim:0 vulkan:0"},
              {"*", "cuda:0 cuda:1 opencl:1 cpu:0 opencl:0 sim:0 vulkan:0"},
              {"opencl:*", "opencl:0 opencl:1"},
              {"c*", "cuda:0 cuda:1 cpu:0"},
              {"*:1", "cuda:1 opencl:1"},
              {"npu:*?, sim", "sim:0"},
              {"cuda:1,cuda:*", "cuda:1 cuda:0"}};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_int_equal(heddle_context_select(ctx, good[i].list, out, 16, &n, NULL, &err), HEDDLE_OK);
    assert_string_equal(names(out, n), good[i].devices);
  }
  static const char *const missing[] = {"gpu:3", "npu:*", "cpu,cuda:*2"}, *const wrong[] = {"gpu:", "gpu:x", "GPU:*",
                                                                                            "c[u]*"};
  for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
    assert_int_equal(heddle_context_select(ctx, missing[i], out, 16, &n, NULL, &err), HEDDLE_ENODEV);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    if (heddle_context_select(ctx, wrong[i], out, 16, &n, NULL, &err) != HEDDLE_EINVAL) fail_msg("'%s'", wrong[i]);
  assert_int_equal(heddle_context_find_device(ctx, "gpu", &one, &err), HEDDLE_OK);
  assert_string_equal(one->name, "cuda:0");
  assert_int_equal(heddle_context_find_device(ctx, "gpu:9", &one, &err), HEDDLE_ENODEV);
  assert_int_equal(heddle_context_find_device(ctx, "cuda:*", &one, &err), HEDDLE_EINVAL);
  finish(ctx);
}

CASES(CASE(groups_are_several_devices), CASE(defaults_take_one_api_for_each_device),
      CASE(defaults_take_one_driver_for_each_device), CASE(lists_keep_their_order), CASE(what_is_missing_is_told))
