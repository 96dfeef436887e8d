/* The instance: its settings (those of compilers and libraries are read by their files), the list of devices, and what a
 * device is.
 *
 * Settings: driver (the driver's library, an absolute path; off: none is started), cache_dir (folder for compiled
 * programs; off: they are compiled in each process), source_dir (folder that their sources are written to; none: they
 * are not), unified (0: no shared memory), peer (0: no copies between devices), pools (0: blocks of our own in place of
 * the driver's pools), counters (0: completions come by the driver's calls alone), fuse (0: every node is a step of its own), capture (0: no graphs),
 * adopt_own (1: stream.adopt takes streams of ours, for the conformance kit), max_streams, devices (which of the driver's,
 * "1,0"; one that is there twice is two devices, for tests that want two). */
#include "gpu.h"
#include "library.h"

#include "plugins/common/chain.h"
#include "plugins/common/setting.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_DEVICES = 256 };

heddle_status gpu_new(const heddle_host *host, uint64_t bytes, const char *what, void **out, heddle_error *err) {
  void *p = host->alloc(host->ctx, bytes, _Alignof(max_align_t));
  if (p == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for %s (%llu bytes)", what, (unsigned long long)bytes);
  memset(p, 0, bytes);
  *out = p;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- settings */

bool gpu_setting(const heddle_host *host, const char *key, char *buf, uint64_t bytes) {
  return host->config(host->ctx, key, buf, bytes) > 0;
}

static heddle_status wrong(const heddle_pinstance *self, const char *key, const char *value, const char *wanted,
                           heddle_error *err) {
  return p_fail(err, HEDDLE_EINVAL, 0, "%s: setting %s: '%.200s' is %s", self->vendor->name, key, value, wanted);
}

static heddle_status read_number(const heddle_pinstance *self, const char *key, uint32_t absent, uint32_t *out,
                                 heddle_error *err) {
  char text[32], *end = text;
  *out = absent;
  if (!gpu_setting(self->host, key, text, sizeof text)) return HEDDLE_OK;
  const unsigned long value = strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > 65536)
    return wrong(self, key, text, "no number from 0 to 65536", err);
  *out = (uint32_t)value;
  return HEDDLE_OK;
}

static heddle_status read_switch(const heddle_pinstance *self, const char *key, bool absent, bool *out,
                                 heddle_error *err) {
  char text[16];
  *out = absent;
  if (!gpu_setting(self->host, key, text, sizeof text) || p_switch(text, out)) return HEDDLE_OK;
  return wrong(self, key, text, "neither 0 nor 1", err);
}

heddle_status gpu_setting_path(const heddle_pinstance *self, const char *key, char **out, bool *off,
                               heddle_error *err) {
  const heddle_host *host = self->host;
  const int64_t length = host->config(host->ctx, key, NULL, 0);
  void *memory = NULL;
  *out = NULL;
  if (off != NULL) *off = false;
  if (length <= 0) return HEDDLE_OK;
  heddle_status s = gpu_new(host, (uint64_t)length + 1, "a setting", &memory, err);
  if (s != HEDDLE_OK) return s;
  char *text = memory;
  host->config(host->ctx, key, text, (uint64_t)length + 1);
  if (text[0] == '/') {
    *out = text;
    return HEDDLE_OK;
  }
  if (!p_is_off(text)) s = wrong(self, key, text, "no absolute path, and not off", err);
  else if (off != NULL) *off = true;
  host->free(host->ctx, text);
  return s;
}

/* The driver: on is a word for the usual one. */
static heddle_status read_driver(heddle_pinstance *self, heddle_error *err) {
  char text[16];
  bool on = true, off = false;
  if (gpu_setting(self->host, "driver", text, sizeof text) && p_switch(text, &on) && on) return HEDDLE_OK;
  heddle_status s = gpu_setting_path(self, "driver", &self->driver_path, &off, err);
  if (s == HEDDLE_OK && off)
    s = p_fail(err, HEDDLE_ENODEV, 0, "no %s device: the setting driver is off", self->vendor->api);
  return s;
}

static heddle_status read_settings(heddle_pinstance *self, heddle_error *err) {
  heddle_status s = read_driver(self, err);
  if (s == HEDDLE_OK) s = read_number(self, "max_streams", 0, &self->max_streams, err);
  if (s == HEDDLE_OK) s = read_switch(self, "peer", true, &self->peer, err);
  if (s == HEDDLE_OK) s = read_switch(self, "unified", true, &self->unified, err);
  if (s == HEDDLE_OK) s = read_switch(self, "capture", true, &self->capture, err);
  if (s == HEDDLE_OK) s = read_switch(self, "pools", true, &self->pools, err);
  if (s == HEDDLE_OK) s = read_switch(self, "counters", true, &self->counters, err);
  if (s == HEDDLE_OK) s = read_switch(self, "adopt_own", false, &self->adopt_own, err);
  if (s == HEDDLE_OK) s = heddle_chain_wanted(self->host, &self->fuse, err);
  if (s == HEDDLE_OK) s = gpu_setting_path(self, "cache_dir", &self->cache_dir, NULL, err);
  if (s == HEDDLE_OK) s = gpu_setting_path(self, "source_dir", &self->source_dir, NULL, err);
  char why[96];
  self->cache = (filecache){.host = self->host,
                            .folder = self->cache_dir,
                            .plugin = self->vendor->name,
                            .suffix = "image",
                            .things = "compiled programs"};
  if (s == HEDDLE_OK && !filecache_limit(self->host, &self->cache.limit, why, sizeof why))
    s = p_fail(err, HEDDLE_EINVAL, 0, "%s: %s", self->vendor->name, why);
  return s;
}

/* ---------------------------------------------------------------- devices */

/* "0000:3b:00.0", hexadecimal; the function may be missing. */
static void read_pci(const char *text, uint32_t *out) {
  uint32_t part[4] = {0};
  for (int i = 0; i < 4; i++) {
    char *end = NULL;
    part[i] = (uint32_t)strtoul(text, &end, 16);
    if (end == text || (i < 2 && *end != ':')) return;
    if (i >= 2 && *end != (i == 2 ? '.' : '\0')) {
      if (i == 3 || *end != '\0') return;
      break;
    }
    text = end + 1;
  }
  memcpy(out, part, sizeof part);
}

/* The setting devices: numbers with commas between, each less than n. Without it all of them, in the driver's order. */
static heddle_status choose_devices(heddle_pinstance *self, int *chosen, heddle_error *err) {
  char text[256], *end = text;
  const uint32_t n = self->n_devices;
  for (uint32_t i = 0; i < n; i++) chosen[i] = (int)i;
  if (!gpu_setting(self->host, "devices", text, sizeof text)) return HEDDLE_OK;
  self->n_devices = 0;
  for (const char *at = text; self->n_devices < MOST_DEVICES; at = end + 1) {
    const unsigned long number = strtoul(at, &end, 10);
    if (*at < '0' || *at > '9' || (*end != '\0' && *end != ','))
      return wrong(self, "devices", text, "no list of numbers, such as 0,2", err);
    if (number >= n)
      return p_fail(err, HEDDLE_EINVAL, 0, "%s: setting devices: the driver has %u, and no number %lu",
                    self->vendor->name, n, number);
    chosen[self->n_devices++] = (int)number;
    if (*end == '\0') return HEDDLE_OK;
  }
  return wrong(self, "devices", text, "too long", err);
}

/* Of a part of a card (MIG) the older call gives the card's. */
static void find_uuid(heddle_pinstance *self, gpu_info *info) {
  const gpu_driver *d = &self->driver;
  if (d->device_uuid_of_part != NULL && d->device_uuid_of_part(info->uuid, info->device) == 0) return;
  if (d->device_uuid == NULL || d->device_uuid(info->uuid, info->device) != 0) memset(info->uuid, 0, sizeof info->uuid);
}

static heddle_status describe(heddle_pinstance *self, uint32_t index, int number, gpu_info *info, heddle_error *err) {
  const gpu_vendor *v = self->vendor;
  const gpu_driver *d = &self->driver;
  char pci[64] = "", words[300];
  size_t bytes = 0;
  info->index = index;
  memset(info->pci, 0xff, sizeof info->pci);
  int code = d->device_get(&info->device, number);
  if (code == 0) code = d->device_name(info->name, (int)sizeof info->name, info->device);
  if (code == 0) code = d->device_memory(&bytes, info->device);
  if (code != 0) {
    v->code_words(self, code, words, sizeof words);
    return p_fail(err, HEDDLE_ENODEV, code, "%s:%u: the driver does not describe the device: %s", v->name, index,
                  words);
  }
  info->name[sizeof info->name - 1] = '\0';
  p_one_line(info->name);
  if (info->name[0] == '\0') snprintf(info->name, sizeof info->name, "a device without a name");
  info->memory_bytes = bytes;
  find_uuid(self, info);
  if (d->device_pci != NULL && d->device_pci(pci, (int)sizeof pci, info->device) == 0) {
    pci[sizeof pci - 1] = '\0';
    read_pci(pci, info->pci);
  }
  heddle_status s = v->describe(self, info, err);
  if (s == HEDDLE_OK && info->driver[0] == '\0')
    snprintf(info->driver, sizeof info->driver, "%s %d.%d, %s", v->api, self->driver_version / 1000,
             self->driver_version % 1000 / 10, info->arch);
  return s;
}

/* A device that the driver does not describe: the others are used without it. */
static void leave_out(heddle_pinstance *self, gpu_info *info, const heddle_error *why) {
  char text[1100];
  snprintf(text, sizeof text, "a device is left out: %s", why->text);
  self->host->log(self->host->ctx, HEDDLE_LOG_WARN, self->vendor->name, text);
  memset(info, 0, sizeof *info);
}

static heddle_status find_devices(heddle_pinstance *self, heddle_error *err) {
  void *memory = NULL;
  int chosen[MOST_DEVICES];
  if (self->n_devices > MOST_DEVICES) self->n_devices = MOST_DEVICES;
  heddle_status s = choose_devices(self, chosen, err);
  if (s == HEDDLE_OK) s = gpu_new(self->host, self->n_devices * sizeof(gpu_info), "devices", &memory, err);
  self->devices = memory;
  const uint32_t there = self->n_devices;
  self->n_devices = 0;
  for (uint32_t i = 0; i < there && self->devices != NULL; i++) {
    heddle_error why = {0}; /* err may be NULL */
    const heddle_status one = describe(self, self->n_devices, chosen[i], &self->devices[self->n_devices], &why);
    if (one == HEDDLE_OK) self->n_devices++;
    else if (one != HEDDLE_ENOMEM) leave_out(self, &self->devices[self->n_devices], &why);
    if (one != HEDDLE_OK && err != NULL && (s == HEDDLE_OK || one == HEDDLE_ENOMEM)) *err = why;
    if (one == HEDDLE_ENOMEM) return one;
    if (one != HEDDLE_OK && s == HEDDLE_OK) s = one;
  }
  if (self->n_devices > 0) s = HEDDLE_OK;
  return s;
}

heddle_status gpu_device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  (void)err;
  *out = self->n_devices;
  return HEDDLE_OK;
}

heddle_status gpu_device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                  heddle_error *err) {
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "%s:%u: there are %u devices", self->vendor->name, index, self->n_devices);
  const gpu_info *info = &self->devices[index];
  char compiler[64] = "", libraries[64];
  self->vendor->compiler_words(self, compiler, sizeof compiler);
  gpu_library_words(self, libraries, sizeof libraries);
  desc->type = self->vendor->device_type;
  memcpy(desc->name, info->name, sizeof desc->name);
  snprintf(desc->driver, sizeof desc->driver, "%.50s, %.35s%.40s", info->driver,
           compiler[0] != '\0' ? compiler : "no compiler for operators", libraries);
  p_one_line(desc->driver); /* a character may have been cut */
  memcpy(desc->uuid, info->uuid, sizeof desc->uuid);
  desc->pci_domain = info->pci[0];
  desc->pci_bus = info->pci[1];
  desc->pci_device = info->pci[2];
  desc->pci_function = info->pci[3];
  desc->caps = HEDDLE_CAP_VIEWS;
  if (self->counters && info->maps_host && self->driver.stream_write != NULL && self->driver.host_address != NULL)
    desc->caps |= HEDDLE_CAP_POLLED;
  if (gpu_unified(self, info)) desc->caps |= HEDDLE_CAP_UNIFIED;
  desc->memory_bytes = info->memory_bytes;
  desc->max_buffer_bytes = info->memory_bytes;
  desc->alignment = info->alignment;
  desc->import_alignment = gpu_takes_imports(self, info) ? self->page : 0;
  desc->event_domain = 1; /* events cross all devices of a driver */
  desc->compute_units = info->compute_units;
  desc->max_streams = self->max_streams > 0 ? self->max_streams : 4;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- opening and closing */

void gpu_close_instance(heddle_pinstance *self) {
  if (self == NULL || atomic_load(&self->left_behind)) return;
  const heddle_host *host = self->host;
  gpu_library_close(self);
  self->vendor->close(self);
  gpu_imports_close(self);
  pthread_mutex_destroy(&self->lock);
  host->free(host->ctx, self->devices);
  host->free(host->ctx, self->cache_dir);
  host->free(host->ctx, self->source_dir);
  host->free(host->ctx, self->driver_path);
  host->free(host->ctx, self);
}

heddle_status gpu_open_instance(const gpu_vendor *vendor, const heddle_host *host, heddle_pinstance **out,
                                heddle_error *err) {
  void *memory = NULL;
  char words[160];
  heddle_status s = gpu_new(host, sizeof **out, "an instance", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pinstance *self = memory;
  self->host = host;
  self->vendor = vendor;
  const long page = sysconf(_SC_PAGESIZE);
  self->page = page > 0 ? (uint64_t)page : 4096;
  const bool locked = pthread_mutex_init(&self->lock, NULL) == 0;
  if (!locked || !gpu_imports_open(self)) {
    if (locked) pthread_mutex_destroy(&self->lock);
    host->free(host->ctx, self);
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s: no lock for an instance", vendor->name);
  }
  s = read_settings(self, err);
  if (s == HEDDLE_OK) {
    snprintf(words, sizeof words,
             "starts the driver; if the process ends here, it crashes: the setting %s.driver=off goes without",
             vendor->name);
    host->log(host->ctx, HEDDLE_LOG_INFO, vendor->name, words);
    s = gpu_driver_load(self, err);
  }
  if (s == HEDDLE_OK) s = vendor->open(self, err);
  if (s == HEDDLE_OK) s = find_devices(self, err);
  if (s == HEDDLE_OK) s = gpu_library_open(self, err);
  if (s != HEDDLE_OK) gpu_close_instance(self);
  else *out = self;
  return s;
}
