/* core/context.c: a context from its settings to its devices, its references, and what the public API reports of it.
 * The search, the loading and the choice of devices have files of their own. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/registry.h"
#include "core/thread.h"

/* Contexts that cannot be freed: work on a device of theirs never ended, or they were inherited through fork. They stay
 * reachable, so that what still runs finds its memory. */
static _Atomic(heddle_context *) parked;

static void park(heddle_context *ctx) {
  atomic_store_explicit(&ctx->closed, true, memory_order_release);
  ctx->next_parked = atomic_load(&parked);
  while (!atomic_compare_exchange_weak(&parked, &ctx->next_parked, ctx)) continue;
}

static void destroy(heddle_context *ctx) {
  if (heddle__check_fork(NULL) != HEDDLE_OK) {
    park(ctx);
    return;
  }
  if (ctx->ranks != NULL) ctx->ranks->free(ctx->ranks);
  ctx->ranks = NULL;
  bool hung = atomic_load(&ctx->left_over);
  for (size_t i = 0; i < ctx->plugins.count && !hung; i++) {
    heddle__plugin *p = ctx->plugins.data[i];
    for (uint32_t k = 0; k < p->n_devices && !hung; k++) {
      heddle__device_release(p->devices[k]);
      p->devices[k] = NULL;
      hung = atomic_load(&ctx->left_over); /* closing it may have shown so */
    }
  }
  if (hung) {
    heddle__logf(&ctx->log, HEDDLE_LOG_WARN, "context", "a device has work that does not end: its memory is kept");
    park(ctx);
    return;
  }
  for (size_t i = 0; i < ctx->plugins.count; i++) heddle__plugin_close(ctx->plugins.data[i]);
  heddle__free(ctx->plugins.data);
  heddle__free(ctx->folder);
  heddle__free(ctx->allowed);
  heddle__free(ctx->devices);
  heddle__free(ctx->defaults);
  heddle__pool_release(ctx->pool);
  heddle__trace_release(ctx->trace);
  heddle__config_release(ctx->config);
  heddle__attachment *attached = atomic_load(&ctx->attached);
  if (attached != NULL) attached->free(attached);
  if (ctx->has_lock) {
    pthread_cond_destroy(&ctx->cond);
    pthread_mutex_destroy(&ctx->lock);
  }
  heddle__free(ctx);
}

heddle__attachment *heddle__context_attached(heddle_context *ctx, heddle__attachment *(*make)(void)) {
  heddle__attachment *there = atomic_load_explicit(&ctx->attached, memory_order_acquire);
  if (there != NULL) return there;
  heddle__attachment *made = make();
  if (made == NULL || atomic_compare_exchange_strong(&ctx->attached, &there, made)) return made;
  made->free(made); /* another thread was first */
  return there;
}

static bool is_plugin(void *user, const char *word, size_t n) {
  const heddle_context *ctx = user;
  for (size_t i = 0; i < ctx->plugins.count; i++)
    if (heddle__may_be(ctx->plugins.data[i], word, n)) return true;
  return false;
}

/* What is kept in folders of the user's beside what plugins keep: its word, and the setting of its folder. */
enum { N_CACHES = 4 };
static const char *const caches[N_CACHES][2] = {{"weights", "weights.cache_dir"},
                                                {"routes", "routes.cache_dir"},
                                                {"place", "place.cache_dir"},
                                                {"probe", "probe.cache_dir"}};

static heddle_status start(heddle_context *ctx, const heddle_setting *settings, size_t n, heddle_error *err) {
  const char *value = "warn", *origin = "default";
  int64_t threads = 1, spin_us = 0;
  heddle_status s = heddle__config_create(settings, n, &ctx->config, err);
  if (s != HEDDLE_OK) return s;
  heddle__config_get(ctx->config, "log", &value, &origin);
  if (!heddle__log_level(value, &ctx->log.level))
    return heddle__fail(err, HEDDLE_EINVAL,
                        "setting 'log' is '%.100s' (%s); it can be off, error, warn, info, debug or "
                        "trace",
                        value, origin);
  s = heddle__context_number(ctx, "threads", 1, 0, 4096, &threads, err);
  if (s == HEDDLE_OK) s = heddle__context_number(ctx, "spin_us", 0, 0, 1000, &spin_us, err);
  if (threads > heddle__cores()) spin_us = 0; /* one that waits would hold up one that works */
  if (s == HEDDLE_OK)
    s = heddle__pool_create(threads > 0 ? (uint32_t)threads : 1, (uint64_t)spin_us * 1000, &ctx->pool, err);
  if (s == HEDDLE_OK) s = heddle__trace_create(&ctx->trace, err);
  if (s == HEDDLE_OK) s = heddle__cond_init(&ctx->lock, &ctx->cond, err);
  ctx->has_lock = s == HEDDLE_OK;
  if (HEDDLE_HAS_DLOPEN && s == HEDDLE_OK) s = heddle__privileged_start(ctx, err);
  if (s == HEDDLE_OK) s = heddle__discover(ctx, err);
  if (s == HEDDLE_OK) s = heddle__config_reserve(ctx->config, ctx->plugins.count + N_CACHES, err);
  for (int i = 0; s == HEDDLE_OK && i < N_CACHES; i++)
    if (!heddle__config_get(ctx->config, caches[i][1], &value, NULL))
      (void)heddle__config_cache_dir(ctx->config, caches[i][0]); /* without a home there is none */
  if (s == HEDDLE_OK) s = heddle__want_first(ctx, err);
  if (s == HEDDLE_OK) s = heddle__config_list(ctx->config, is_plugin, ctx, err);
  if (s == HEDDLE_OK) heddle__settings_warn(ctx);
  return s;
}

heddle_status heddle_context_create(const heddle_setting *settings, size_t n_settings, heddle_log_fn log,
                                    void *log_user, heddle_context **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "out is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  heddle_context *ctx = heddle__alloc(1, sizeof *ctx);
  if (ctx == NULL) return heddle__no_memory(err, "a context");
  atomic_init(&ctx->references, 1);
  ctx->log = (heddle__log){HEDDLE_LOG_WARN, log, log_user};
  s = start(ctx, settings, n_settings, err);
  if (s != HEDDLE_OK) {
    destroy(ctx);
    return s;
  }
  *out = ctx;
  return HEDDLE_OK;
}

heddle_context *heddle_context_retain(heddle_context *ctx) {
  if (ctx != NULL) atomic_fetch_add_explicit(&ctx->references, 1, memory_order_relaxed);
  return ctx;
}

void heddle_context_release(heddle_context *ctx) {
  if (ctx != NULL && atomic_fetch_sub(&ctx->references, 1) == 1) destroy(ctx);
}

/* ---- for the rooms above */

heddle__pool *heddle__context_pool(heddle_context *ctx) {
  return ctx->pool;
}

heddle__log *heddle__context_log(heddle_context *ctx) {
  return &ctx->log;
}

struct heddle__trace *heddle__context_trace(heddle_context *ctx) {
  return ctx->trace;
}

heddle_status heddle__context_number(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                                     int64_t *out, heddle_error *err) {
  const char *value, *origin;
  if (!heddle__config_get(ctx->config, key, &value, &origin)) {
    *out = fallback;
    return HEDDLE_OK;
  }
  bool negative = value[0] == '-', good = value[negative] != '\0';
  uint64_t n = 0;
  if (strcmp(value, "off") == 0 || strcmp(value, "none") == 0) value = "0";
  for (const char *p = value + negative; *p != '\0' && good; p++) {
    good = *p >= '0' && *p <= '9' && n <= (uint64_t)INT64_MAX / 10 - 1;
    n = n * 10 + (uint64_t)(*p - '0');
  }
  int64_t number = negative ? -(int64_t)n : (int64_t)n;
  if (!good || number < min || number > max)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "setting '%s' is '%.100s' (%s); it must be a whole number from %lld to %lld", key, value,
                        origin, (long long)min, (long long)max);
  *out = number;
  return HEDDLE_OK;
}

/* ---- what the API reports */

/* For those that list everything and give no error: what memory's lack keeps from being loaded is tried again later. */
static void all(heddle_context *ctx) {
  heddle_error why;
  if (heddle__want(ctx, NULL, 0, &why) != HEDDLE_OK)
    heddle__logf(&ctx->log, HEDDLE_LOG_ERROR, "context", "not all plugins could be loaded: %s", why.text);
}

heddle_status heddle_context_setting(heddle_context *ctx, const char *key, const char **value, const char **origin,
                                     heddle_error *err) {
  if (ctx == NULL || key == NULL || value == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "setting: context, key or value is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  if (heddle__config_get(ctx->config, key, value, origin)) return HEDDLE_OK;
  const char *dot = strchr(key, '.'); /* the one default that a plugin's loading makes */
  if (dot != NULL && strcmp(dot, ".cache_dir") == 0) s = heddle__want(ctx, key, (size_t)(dot - key), err);
  if (s != HEDDLE_OK || heddle__config_get(ctx->config, key, value, origin)) return s;
  return heddle__fail(err, HEDDLE_ENOTFOUND, "setting '%.200s' is not set and has no default", key);
}

const char *heddle_context_setting_key(heddle_context *ctx, size_t i) {
  if (ctx == NULL) return NULL;
  all(ctx);
  return heddle__config_key(ctx->config, i);
}

heddle_status heddle__info_give(void *out, const void *answer, size_t bytes, heddle_error *err) {
  size_t theirs;
  memcpy(&theirs, out, sizeof theirs);
  if (theirs < sizeof theirs || theirs > 1 << 16)
    return heddle__fail(err, HEDDLE_EINVAL, "struct_size is %zu; set it to sizeof the struct", theirs);
  size_t n = theirs < bytes ? theirs : bytes;
  memcpy((char *)out + sizeof theirs, (const char *)answer + sizeof theirs, n - sizeof theirs);
  if (theirs > bytes) memset((char *)out + bytes, 0, theirs - bytes);
  return HEDDLE_OK;
}

size_t heddle_context_plugin_count(heddle_context *ctx) {
  return ctx != NULL ? ctx->plugins.count : 0;
}

heddle_status heddle_context_plugin(heddle_context *ctx, size_t i, heddle_plugin_info *out, heddle_error *err) {
  if (ctx == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "plugin: context or out is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  if (i >= ctx->plugins.count) return heddle__fail(err, HEDDLE_EINVAL, "plugin %zu of %zu", i, ctx->plugins.count);
  s = heddle__want(ctx, NULL, 0, err);
  if (s != HEDDLE_OK) return s;
  const heddle__plugin *p = ctx->plugins.data[i];
  heddle_plugin_info info = {.name = p->name, .path = p->path, .found_by = p->found_by};
  info.reason = p->reason != NULL ? p->reason : "";
  info.build = p->root.build != NULL ? p->root.build : "";
  info.abi_major = p->root.abi_major;
  info.abi_minor = p->root.abi_minor;
  info.device_count = p->n_devices;
  info.used = p->reason == NULL;
  info.manifest = p->manifest != NULL ? p->manifest : "";
  return heddle__info_give(out, &info, sizeof info, err);
}

size_t heddle_context_device_count(heddle_context *ctx) {
  if (ctx == NULL) return 0;
  all(ctx);
  return ctx->n_devices;
}

heddle_device *heddle_context_device(heddle_context *ctx, size_t i) {
  return i < heddle_context_device_count(ctx) ? ctx->devices[i] : NULL;
}

const char *heddle_device_name(heddle_device *dev) {
  return dev != NULL ? dev->name : "";
}

heddle_status heddle_device_get_info(heddle_device *dev, heddle_device_info *out, heddle_error *err) {
  if (dev == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "device info: device or out is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  const heddle_pdevice_desc *d = &dev->desc;
  heddle_device_info info = {.name = dev->name, .plugin = dev->plugin->name, .product = d->name, .driver = d->driver};
  all(dev->ctx);
  info.reason = dev->reason;
  info.caps = d->caps;
  info.memory_bytes = d->memory_bytes;
  info.max_buffer_bytes = d->max_buffer_bytes;
  info.alignment = d->alignment;
  memcpy(info.uuid, d->uuid, sizeof info.uuid);
  memcpy(info.pci, (const uint32_t[]){d->pci_domain, d->pci_bus, d->pci_device, d->pci_function}, sizeof info.pci);
  info.type = d->type;
  info.index = dev->index;
  info.compute_units = d->compute_units;
  info.is_default = dev->is_default;
  memcpy(info.abilities, dev->abilities, sizeof info.abilities);
  info.abilities_from = dev->plugin->abilities != NULL ? dev->plugin->abilities : "";
  return heddle__info_give(out, &info, sizeof info, err);
}
