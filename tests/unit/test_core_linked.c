/* Plugins that are linked in: entries that are registered before the first context (heddle_plugin_register). */
#include <dlfcn.h>

#include "cases.h"
#include "core/alloc.h"
#include "core/registry.h"

#define PROBES HEDDLE_TEST_BUILD "/tests/plugins/libheddle_plugin_"

static heddle_error err;

/* The entry of a plugin in a file, as if the program had been linked with it. */
static heddle_plugin_entry_fn entry_of(const char *path) {
  heddle_plugin_entry_fn entry = NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  assert_non_null(library);
  void *symbol = dlsym(library, "heddle_plugin_entry");
  assert_non_null(symbol);
  memcpy(&entry, &symbol, sizeof entry);
  return entry;
}

static heddle_context *open_with(const char *plugins) {
  const heddle_setting settings[] = {{"plugins", plugins}, {"log", "off"}};
  heddle_context *ctx;
  assert_int_equal(heddle_context_create(settings, 2, NULL, NULL, &ctx, &err), HEDDLE_OK);
  return ctx;
}

static heddle_plugin_info info(heddle_context *ctx, size_t i) {
  heddle_plugin_info out = {.struct_size = sizeof out};
  assert_int_equal(heddle_context_plugin(ctx, i, &out, &err), HEDDLE_OK);
  return out;
}

static void it_is_found_before_files(void **state) {
  (void)state;
  heddle_device *dev;
  assert_int_equal(heddle_plugin_register(entry_of(PROBES "probe.so"), &err), HEDDLE_OK);
  heddle_context *ctx = open_with(PROBES "probe_twin.so"); /* a plugin of the same name */
  assert_int_equal(heddle_context_find_device(ctx, "probe:1", &dev, &err), HEDDLE_OK);
  assert_int_equal(heddle_context_plugin_count(ctx), 2);
  const heddle_plugin_info first = info(ctx, 0), second = info(ctx, 1);
  assert_int_equal(first.used, 1);
  assert_string_equal(first.name, "probe");
  assert_string_equal(first.path, "linked in");
  assert_string_equal(first.found_by, "linked in");
  assert_string_equal(first.manifest, "");
  assert_int_equal(first.device_count, 2);
  assert_int_equal(second.used, 0);
  assert_non_null(strstr(second.reason, "found first: linked in"));
  heddle_context_release(ctx);
  ctx = open_with("off"); /* every context has it */
  assert_int_equal(heddle_context_find_device(ctx, "probe:0", &dev, &err), HEDDLE_OK);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void one_that_refuses_is_listed(void **state) {
  (void)state;
  assert_int_equal(heddle_plugin_register(entry_of(PROBES "probe_refuses.so"), &err), HEDDLE_OK);
  heddle_context *ctx = open_with("off");
  assert_int_equal(heddle_context_device_count(ctx), 0);
  assert_int_equal(info(ctx, 0).used, 0);
  assert_string_equal(info(ctx, 0).path, "linked in");
  assert_non_null(strstr(info(ctx, 0).reason, "its entry refused"));
  heddle_context_release(ctx);
}

static void the_same_entry_twice_is_one(void **state) {
  (void)state;
  const heddle_plugin_entry_fn entry = entry_of(PROBES "probe.so");
  for (int i = 0; i < 100; i++) assert_int_equal(heddle_plugin_register(entry, &err), HEDDLE_OK);
  heddle_context *ctx = open_with("off");
  assert_int_equal(heddle_context_plugin_count(ctx), 1);
  assert_int_equal(heddle_plugin_register(entry, &err), HEDDLE_OK); /* it is there */
  heddle_context_release(ctx);
}

static void after_the_first_context_it_is_too_late(void **state) {
  (void)state;
  heddle_context_release(open_with("off"));
  assert_int_equal(heddle_plugin_register(entry_of(PROBES "probe.so"), &err), HEDDLE_EBUSY);
  assert_non_null(strstr(err.text, "before the first context"));
  heddle_context *ctx = open_with("off");
  assert_int_equal(heddle_context_plugin_count(ctx), 0);
  heddle_context_release(ctx);
}

static void an_entry_is_needed(void **state) {
  (void)state;
  assert_int_equal(heddle_plugin_register(NULL, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle_plugin_register(NULL, NULL), HEDDLE_EINVAL);
}

CASES(CASE(it_is_found_before_files), CASE(one_that_refuses_is_listed), CASE(the_same_entry_twice_is_one),
      CASE(after_the_first_context_it_is_too_late), CASE(an_entry_is_needed))
