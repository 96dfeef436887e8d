/* core/device.c: a device of a plugin: its checked description, counted opening, and the fault that sticks to it.
 * The plugin is never called with a lock held; who else wants to open or close meanwhile waits on the condition. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/layers/layers.h"
#include "core/registry.h"
#include "core/thread.h"

enum { FAULT_NONE = 0, FAULT_KEPT = 1, FAULT_FILLING = 2 };
#define CLOSE_WAIT_NS UINT64_C(3000000000)
#define RESET_WAIT_NS UINT64_C(200000000)
#define WATCHDOG "watchdog_ms"

typedef struct gate {
  pthread_mutex_t lock;
  pthread_cond_t cond; /* busy ended */
  bool busy;           /* a thread opens, closes or resets */
  bool tried_reset;    /* since it was opened */
  bool was_reset;      /* and that ended its work */
  atomic_uint opening; /* counts openings; part of the cookie */
} gate;

/* ---- forks: a child of a process that has opened a device must touch none, of whatever context: the vendor's driver
 * in it has lost its threads. The hook is set with the first opening, so that forks before it are not counted. */

static atomic_uint forks;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void count_fork(void) {
  atomic_fetch_add(&forks, 1);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, count_fork);
}

heddle_status heddle__check_fork(heddle_error *err) {
  if (atomic_load_explicit(&forks, memory_order_relaxed) == 0) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EFORK,
                      "this process was forked from one that had opened devices; use Heddle in a process started by "
                      "exec (in Python: the spawn method)");
}

/* ---- description */

static heddle_status describe(heddle_device *dev, heddle_error *err) {
  heddle_pdevice_desc *d = &dev->desc;
  heddle__plugin *p = dev->plugin;
  *d = (heddle_pdevice_desc){.struct_size = sizeof *d};
  d->pci_domain = d->pci_bus = d->pci_device = d->pci_function = UINT32_MAX;
  heddle_error why = {0, 0, ""};
  char text[CONTRACT_TEXT];
  heddle_status s = p->root.device_describe(p->instance, dev->index, d, &why);
  if (s != HEDDLE_OK) return heddle__fail(err, s, "device %u: %.900s", (unsigned)dev->index, why.text);
  if (!contract_device_texts(dev->index, d, text) || !contract_device_numbers(dev->index, d, text) ||
      !contract_device_type(dev->index, d, p->name, text) || !contract_device_caps(dev->index, d, &p->tables, text))
    return heddle__fail(err, HEDDLE_EABI, "%s", text);
  if (heddle__is_own_type(d->type))
    return heddle__fail(err, HEDDLE_EABI, "device %u: type %d is no type of DLPack's", (unsigned)dev->index,
                        (int)d->type);
  d->type = heddle__device_type(d->type, p->name);
  return HEDDLE_OK;
}

/* PLUGIN.N.watchdog_ms, else PLUGIN.watchdog_ms; both are the core's and never reach the plugin. */
static heddle_status read_watchdog(heddle_device *dev, heddle_error *err) {
  enum { MOST_MS = 24 * 3600 * 1000 };
  char key[128];
  int64_t ms = 0;
  snprintf(key, sizeof key, "%s." WATCHDOG, dev->plugin->name);
  heddle_status s = heddle__context_number(dev->ctx, key, 0, 0, MOST_MS, &ms, err);
  snprintf(key, sizeof key, "%s.%u." WATCHDOG, dev->plugin->name, (unsigned)dev->index);
  if (s == HEDDLE_OK) s = heddle__context_number(dev->ctx, key, ms, 0, MOST_MS, &ms, err);
  dev->watchdog_ns = (uint64_t)ms * UINT64_C(1000000);
  return s;
}

heddle_status heddle__device_create(heddle__plugin *plugin, uint32_t index, heddle_device **out, heddle_error *err) {
  heddle_device *dev = heddle__alloc(1, sizeof *dev);
  gate *g = heddle__alloc(1, sizeof *g);
  if (dev == NULL || g == NULL || heddle__cond_init(&g->lock, &g->cond, NULL) != HEDDLE_OK) {
    heddle__free(g);
    heddle__free(dev);
    return heddle__no_memory(err, "a device");
  }
  dev->ctx = plugin->ctx;
  dev->plugin = plugin;
  dev->t = plugin->use;
  dev->instance = heddle__layers_instance(plugin->layers, plugin->instance);
  dev->index = index;
  dev->lock = g;
  snprintf(dev->name, sizeof dev->name, "%s:%u", plugin->name, (unsigned)index % 10000u);
  heddle_status s = describe(dev, err);
  if (s == HEDDLE_OK) s = read_watchdog(dev, err);
  if (s != HEDDLE_OK) {
    heddle__device_release(dev);
    return s;
  }
  *out = dev;
  return HEDDLE_OK;
}

/* ---- opening */

typedef struct option_list {
  heddle_pkeyvalue *data;
  size_t count;
} option_list;

static heddle_status add_option(void *user, const char *rest, const char *value, heddle_error *err) {
  option_list *list = user;
  if (strcmp(rest, WATCHDOG) == 0) return HEDDLE_OK; /* the core's */
  heddle_pkeyvalue *grown = heddle__grow(list->data, list->count, list->count + 1, sizeof *grown);
  if (grown == NULL) return heddle__no_memory(err, "a device's settings");
  list->data = grown;
  char *key = heddle__strdup(rest);
  if (key == NULL) return heddle__no_memory(err, "a device's settings");
  list->data[list->count++] = (heddle_pkeyvalue){key, value};
  return HEDDLE_OK;
}

/* The settings of one device are those under "plugin.index." */
static heddle_status open_plugin_device(heddle_device *dev, uint64_t cookie, heddle_pdevice **out, heddle_error *err) {
  option_list list = {NULL, 0};
  char prefix[96];
  snprintf(prefix, sizeof prefix, "%s.%u.", dev->plugin->name, (unsigned)dev->index);
  heddle_status s = heddle__config_each(dev->ctx->config, prefix, add_option, &list, err);
  if (s == HEDDLE_OK) {
    heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = cookie};
    options.settings = (heddle_parray){list.data, list.count, sizeof *list.data};
    *out = NULL;
    s = dev->t->device.open(dev->instance, dev->index, &options, out, err);
    if (s == HEDDLE_OK && *out == NULL)
      s = heddle__fail(err, HEDDLE_EABI, "plugin %s: device.open said yes and gave nothing", dev->plugin->name);
    if (s != HEDDLE_OK) heddle__prefix_on(dev->name, err, s, "%s could not be opened: ", dev->name);
  }
  for (size_t i = 0; i < list.count; i++) heddle__free((char *)list.data[i].key);
  heddle__free(list.data);
  return s;
}

/* Leaves the lock held, with no thread opening or closing. */
static gate *enter(heddle_device *dev) {
  gate *g = dev->lock;
  pthread_mutex_lock(&g->lock);
  while (g->busy) pthread_cond_wait(&g->cond, &g->lock);
  return g;
}

heddle_status heddle__device_open(heddle_device *dev, heddle_error *err) {
  heddle_status s = heddle__check_fork(err);
  if (s == HEDDLE_OK) s = heddle__device_check(dev, err);
  if (s != HEDDLE_OK) return s;
  pthread_once(&forks_once, watch_forks);

  gate *g = enter(dev);
  if (dev->opened > 0) {
    dev->opened++;
    pthread_mutex_unlock(&g->lock);
    return HEDDLE_OK;
  }
  g->busy = true;
  pthread_mutex_unlock(&g->lock);
  uint64_t cookie = (uint64_t)(atomic_fetch_add(&g->opening, 1) + 1) << 32 | dev->index;
  heddle_pdevice *handle = NULL;
  s = open_plugin_device(dev, cookie, &handle, err);
  pthread_mutex_lock(&g->lock);
  if (s == HEDDLE_OK) {
    dev->handle = handle;
    dev->opened = 1;
    g->tried_reset = g->was_reset = false;
  }
  g->busy = false;
  pthread_cond_broadcast(&g->cond);
  pthread_mutex_unlock(&g->lock);
  return s;
}

/* ---- reset */

#if HEDDLE_ABI_MINOR >= 2 /* tests/abi builds this with the header of 1.0 too */
static bool ask_for_reset(heddle_device *dev, heddle_pdevice *handle) {
  heddle_error why = {0, 0, ""};
  if (dev->t->device.reset == NULL) return false;
  const heddle_status s = dev->t->device.reset(handle, RESET_WAIT_NS, &why);
  if (s != HEDDLE_OK) {
    heddle__logf(&dev->ctx->log, HEDDLE_LOG_WARN, "device", "%s could not be reset: %s", dev->name, why.text);
    return false;
  }
  heddle__logf(&dev->ctx->log, HEDDLE_LOG_INFO, "device", "%s was reset: its work did not end", dev->name);
  heddle__device_fault(dev, 0, "it was reset, because work in it did not end");
  return true;
}
#else
static bool ask_for_reset(heddle_device *dev, heddle_pdevice *handle) {
  (void)dev, (void)handle;
  return false;
}
#endif

bool heddle__device_reset(heddle_device *dev) {
  gate *g = enter(dev);
  const bool tries = dev->handle != NULL && !g->tried_reset;
  heddle_pdevice *handle = dev->handle;
  bool was_reset = g->was_reset;
  if (tries) g->busy = g->tried_reset = true;
  pthread_mutex_unlock(&g->lock);
  if (!tries) return was_reset;
  was_reset = ask_for_reset(dev, handle);
  pthread_mutex_lock(&g->lock);
  g->was_reset = was_reset;
  g->busy = false;
  pthread_cond_broadcast(&g->cond);
  pthread_mutex_unlock(&g->lock);
  return was_reset;
}

/* Waits a while for the device's work. What still runs then may touch memory of this context's at any later time. */
static void close_plugin_device(heddle_device *dev, heddle_pdevice *handle) {
  heddle_error err = {0, 0, ""};
  heddle_status s = HEDDLE_EFAILED;
  for (int i = 0; i < 2 && s != HEDDLE_OK && s != HEDDLE_EDEVICE && s != HEDDLE_ETIMEOUT; i++)
    s = dev->t->device.idle(handle, heddle__device_patience(dev, CLOSE_WAIT_NS), &err);
  gate *g = dev->lock; /* nobody else opens, closes or resets meanwhile */
  if (s != HEDDLE_OK && s != HEDDLE_EDEVICE && !g->was_reset && (g->tried_reset || !ask_for_reset(dev, handle))) {
    atomic_store(&dev->ctx->left_over, true);
    heddle__logf(&dev->ctx->log, HEDDLE_LOG_WARN, "device",
                 "%s is closed with work in it that does not end (%s); "
                 "memory that it may touch is kept",
                 dev->name, err.text);
  }
  dev->t->device.close(handle);
}

void heddle__device_close(heddle_device *dev) {
  if (dev == NULL || heddle__check_fork(NULL) != HEDDLE_OK) return;
  gate *g = enter(dev);
  if (dev->opened == 0 || --dev->opened > 0) {
    pthread_mutex_unlock(&g->lock);
    return;
  }
  heddle_pdevice *handle = dev->handle;
  dev->handle = NULL;
  g->busy = true;
  pthread_mutex_unlock(&g->lock);
  close_plugin_device(dev, handle);
  pthread_mutex_lock(&g->lock);
  g->busy = false;
  pthread_cond_broadcast(&g->cond);
  pthread_mutex_unlock(&g->lock);
}

void heddle__device_release(heddle_device *dev) {
  if (dev == NULL) return;
  gate *g = dev->lock;
  if (dev->handle != NULL) close_plugin_device(dev, dev->handle);
  pthread_cond_destroy(&g->cond);
  pthread_mutex_destroy(&g->lock);
  heddle__free(g);
  heddle__free(dev);
}

/* ---- faults */

heddle_status heddle__device_check(heddle_device *dev, heddle_error *err) {
  if (atomic_load_explicit(&dev->faulted, memory_order_acquire) != FAULT_KEPT) return HEDDLE_OK;
  if (err != NULL) *err = dev->fault;
  return HEDDLE_EDEVICE;
}

void heddle__device_fault(heddle_device *dev, int32_t api_code, const char *text) {
  int none = FAULT_NONE;
  if (!atomic_compare_exchange_strong(&dev->faulted, &none, FAULT_FILLING)) return;
  if (text == NULL || text[0] == '\0') text = heddle_status_text(HEDDLE_EDEVICE);
  if (strncmp(text, dev->name, strlen(dev->name)) == 0) heddle__fail(&dev->fault, HEDDLE_EDEVICE, "%s", text);
  else heddle__fail(&dev->fault, HEDDLE_EDEVICE, "%s was lost: %s", dev->name, text);
  heddle__at_device(HEDDLE_EDEVICE, &dev->fault, dev->name);
  dev->fault.api_code = api_code;
  atomic_store_explicit(&dev->faulted, FAULT_KEPT, memory_order_release);
  heddle__logf(&dev->ctx->log, HEDDLE_LOG_INFO, "device", "%s (code %d)", dev->fault.text, (int)api_code);
}

void heddle__device_fault_by_cookie(heddle__plugin *plugin, uint64_t cookie, int32_t api_code, const char *text) {
  uint32_t index = (uint32_t)cookie;
  if (index >= plugin->n_devices) return;
  heddle_device *dev = plugin->devices[index];
  gate *g = dev->lock;
  if (atomic_load(&g->opening) == (unsigned)(cookie >> 32)) heddle__device_fault(dev, api_code, text);
}

heddle_status heddle__device_settle(heddle_device *dev, heddle_pstream *stream, uint64_t timeout_ns, bool *quiet,
                                    heddle_error *err) {
  heddle_error words = {0, 0, ""}, ignored;
  timeout_ns = heddle__device_patience(dev, timeout_ns);
  heddle_status first = dev->t->stream.sync(stream, timeout_ns, &words), s = first;
  for (int turn = 0; turn < 2 && s != HEDDLE_OK && s != HEDDLE_ETIMEOUT && s != HEDDLE_EDEVICE; turn++)
    s = dev->t->stream.sync(stream, timeout_ns, &ignored);
  if (first == HEDDLE_EDEVICE) heddle__device_fault(dev, words.api_code, words.text);
  if (s != HEDDLE_OK && s != HEDDLE_ETIMEOUT) s = dev->t->device.idle(dev->handle, timeout_ns, &ignored);
  *quiet = s == HEDDLE_OK || s == HEDDLE_EDEVICE;
  if (!*quiet && heddle__device_check(dev, NULL) != HEDDLE_OK) *quiet = heddle__device_reset(dev);
  if (!*quiet) atomic_store(&dev->hung, true);
  if (first != HEDDLE_OK && err != NULL) *err = words;
  return first;
}

heddle_status heddle_device_health(heddle_device *dev, heddle_error *err) {
  if (dev == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the device is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s == HEDDLE_OK) s = heddle__device_check(dev, err);
  if (s != HEDDLE_OK) return s;
  gate *g = enter(dev);
  heddle_pdevice *handle = dev->handle;
  if (handle != NULL) dev->opened++; /* it stays open while it is asked */
  pthread_mutex_unlock(&g->lock);
  if (handle == NULL) return HEDDLE_OK;
  heddle_error why = {0, 0, ""};
  s = dev->t->device.health(handle, &why);
  if (s == HEDDLE_EDEVICE) heddle__device_fault(dev, why.api_code, why.text);
  heddle__device_close(dev);
  if (s != HEDDLE_EDEVICE && s != HEDDLE_OK && err != NULL) *err = why;
  return s == HEDDLE_EDEVICE ? heddle__device_check(dev, err) : s;
}

heddle_status heddle_device_reopen(heddle_device *dev, heddle_error *err) {
  if (dev == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the device is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  gate *g = enter(dev);
  unsigned opened = dev->opened;
  if (opened == 0) {
    atomic_fetch_add(&g->opening, 1); /* what the lost opening still reports is not this one's */
    if (atomic_load(&dev->faulted) == FAULT_KEPT) atomic_store(&dev->faulted, FAULT_NONE);
    atomic_store(&dev->hung, false);
  }
  pthread_mutex_unlock(&g->lock);
  if (opened > 0)
    return heddle__fail_on(dev->name, err, HEDDLE_EBUSY,
                           "%s is in use %u times; release its executors and models first", dev->name, opened);
  s = heddle__device_open(dev, err);
  if (s == HEDDLE_OK) heddle__device_close(dev);
  else if (s == HEDDLE_EDEVICE)
    heddle__device_fault(dev, err != NULL ? err->api_code : 0, err != NULL ? err->text : "");
  return s;
}
