/* core/host.c: the table of services that plugins call: log, memory, settings, fences, faults, clock, trace, threads.
 * Each plugin of a context gets a copy of one table, whose ctx is its heddle__plugin. */
#include <string.h>

#include "core/alloc.h"
#include "core/elf.h"
#include "core/fence.h"
#include "core/prepared.h"
#include "core/registry.h"
#include "core/watch.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "C11"
#endif
#ifndef HEDDLE_VERSION
#define HEDDLE_VERSION "0.0.0"
#endif

/* The plugin behind ctx, or NULL once its context is gone for good. */
static heddle__plugin *of(void *ctx) {
  heddle__plugin *plugin = ctx;
  return plugin != NULL && !atomic_load_explicit(&plugin->ctx->closed, memory_order_acquire) ? plugin : NULL;
}

static void host_log(void *ctx, int32_t level, const char *component, const char *text) {
  heddle__plugin *plugin = of(ctx);
  if (plugin != NULL) heddle__log_line(&plugin->ctx->log, level, component, text);
}

static void *host_alloc(void *ctx, uint64_t bytes, uint64_t align) {
  (void)ctx;
  return bytes <= SIZE_MAX / 2 && align <= SIZE_MAX / 2 ? heddle__alloc_aligned((size_t)bytes, (size_t)align) : NULL;
}

static void host_free(void *ctx, void *p) {
  (void)ctx;
  heddle__free(p);
}

static int64_t host_config(void *ctx, const char *key, char *buf, uint64_t bytes) {
  heddle__plugin *plugin = of(ctx);
  char full[256];
  const char *value;
  size_t n = key != NULL ? strlen(key) : 0;
  const size_t k = sizeof HEDDLE__PREPARED_KEY - 1;
  if (plugin != NULL && n > k && memcmp(key, HEDDLE__PREPARED_KEY, k) == 0)
    return heddle__shelf_copy(plugin->ctx, key + k, buf, bytes);
  if (plugin != NULL && n == k && memcmp(key, HEDDLE__PREPARED_KEY, k) == 0)
    return heddle__config_get(plugin->ctx->config, "prepare", &value, NULL) ? 0 : -1;
  if (plugin == NULL || key == NULL || strlen(plugin->name) + n + 2 > sizeof full) return -1;
  strcpy(full, plugin->name);
  if (n > 0) strcat(full, "."); /* "": the setting that has the plugin's name alone */
  strcat(full, key);
  if (plugin->instance == NULL && n > 0) heddle__settings_asked(plugin, key); /* it is being loaded, by one thread */
  if (!heddle__config_get(plugin->ctx->config, full, &value, NULL)) {
    /* Without an instance, the plugin is being loaded, and one is at a time. */
    if (plugin->instance != NULL || strcmp(key, "cache_dir") != 0 ||
        !heddle__config_cache_dir(plugin->ctx->config, plugin->name) ||
        !heddle__config_get(plugin->ctx->config, full, &value, NULL))
      return -1;
  }
  size_t length = strlen(value);
  if (buf != NULL && bytes > 0) {
    size_t copied = length < bytes ? length : (size_t)bytes - 1;
    memcpy(buf, value, copied);
    buf[copied] = '\0';
  }
  return (int64_t)length;
}

static void host_fence_signal(void *ctx, heddle_pfence fence, uint64_t value) {
  (void)ctx;
  heddle__fence_signal(fence, value);
}

static void host_fence_fail(void *ctx, heddle_pfence fence, heddle_status status, const char *text) {
  (void)ctx;
  heddle__fence_fail(fence, status, text);
}

static heddle_status host_fence_query(void *ctx, heddle_pfence fence, uint64_t value) {
  (void)ctx;
  return heddle__fence_query(fence, value);
}

static void host_device_fault(void *ctx, uint64_t cookie, int32_t api_code, const char *text) {
  heddle__plugin *plugin = of(ctx);
  if (plugin != NULL) heddle__device_fault_by_cookie(plugin, cookie, api_code, text);
}

static uint64_t host_now_ns(void *ctx) {
  (void)ctx;
  return heddle__now_ns();
}

static void host_trace_span(void *ctx, const char *track, const char *name, uint64_t t0_ns, uint64_t t1_ns) {
  heddle__plugin *plugin = of(ctx);
  if (plugin == NULL) return;
  heddle__span span = {.group = plugin->name, .row = track, .name = name, .t0 = t0_ns, .t1 = t1_ns};
  heddle__trace_span(plugin->ctx->trace, &span);
}

static void host_run_parallel(void *ctx, uint32_t n, uint32_t flags, heddle_task_fn task, void *arg,
                              uint32_t *granted) {
  heddle__plugin *plugin = of(ctx);
  if (plugin != NULL) {
    heddle__pool_run(plugin->ctx->pool, n, flags, task, arg, granted);
    return;
  }
  if ((flags & HEDDLE_PARALLEL_CONCURRENT) != 0 && n > 1) n = 1;
  if (granted != NULL) *granted = n;
  for (uint32_t i = 0; i < n; i++) task(arg, i, n);
}

static uint32_t host_parallelism(void *ctx) {
  heddle__plugin *plugin = of(ctx);
  return plugin != NULL ? heddle__pool_threads(plugin->ctx->pool) : 1;
}

#if HEDDLE_ABI_MINOR >= 2 /* tests/abi builds this with the header of 1.0 too */
static heddle_status host_stop_requested(void *ctx) {
  (void)ctx;
  return heddle__watch_asks();
}

static int32_t host_log_level(void *ctx) {
  heddle__plugin *plugin = of(ctx);
  return plugin != NULL ? plugin->ctx->log.level : -1;
}
#define SINCE_1_2 , .stop_requested = host_stop_requested, .log_level = host_log_level
#else
#define SINCE_1_2
#endif

#define SERVICES \
  .struct_size = sizeof(heddle_host), .abi_major = HEDDLE_ABI_MAJOR, .abi_minor = HEDDLE_ABI_MINOR, \
  .build = "heddle " HEDDLE_VERSION ", " COMPILER, .log = host_log, .alloc = host_alloc, .free = host_free, \
  .config = host_config, .fence_signal = host_fence_signal, .fence_fail = host_fence_fail, \
  .fence_query = host_fence_query, .device_fault = host_device_fault, .now_ns = host_now_ns, \
  .trace_span = host_trace_span, .run_parallel = host_run_parallel, .parallelism = host_parallelism SINCE_1_2

void heddle__host_init(heddle_host *host, heddle__plugin *plugin) {
  *host = (heddle_host){SERVICES, .features = heddle__elf_sanitizers(), .ctx = plugin};
}
