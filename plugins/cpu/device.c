/* The device: what it is, how much of what is alive on it, and the answers of a device that cannot be lost. */
#include "cpu.h"

#include "plugins/common/options.h"

#include <fcntl.h>
#include <unistd.h>

/* The processor's name from the system's description; many architectures give none. */
static void product_name(char *out, size_t bytes) {
  char text[4096];
  static const char key[] = "model name";
  snprintf(out, bytes, "host processor");
  int file = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return;
  text[got] = '\0';
  const char *at = strstr(text, key);
  at = at != NULL ? strchr(at, ':') : NULL;
  if (at == NULL) return;
  at += 1 + strspn(at + 1, " \t");
  size_t length = strcspn(at, "\n");
  if (length > 0) snprintf(out, bytes, "%.*s", (int)length, at);
}

static uint64_t pages(int which) {
  long count = sysconf(which), size = sysconf(_SC_PAGESIZE);
  return count > 0 && size > 0 ? (uint64_t)count * (uint64_t)size : 0;
}

void cpu_describe(const heddle_host *host, heddle_pdevice_desc *desc) {
  desc->type = HEDDLE_DEVICE_CPU;
  product_name(desc->name, sizeof desc->name);
  snprintf(desc->driver, sizeof desc->driver, "reference kernels 1");
  desc->pci_domain = desc->pci_bus = desc->pci_device = desc->pci_function = UINT32_MAX;
  desc->caps = HEDDLE_CAP_INLINE | HEDDLE_CAP_VIEWS;
  desc->memory_bytes = pages(_SC_PHYS_PAGES);
  desc->alignment = CPU_ALIGNMENT;
  desc->import_alignment = 1;
  desc->compute_units = host->parallelism(host->ctx);
  desc->max_streams = 1;
}

static void device_close(heddle_pdevice *dev) {
  if (dev != NULL) dev->host->free(dev->host->ctx, dev);
}

static heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                                 heddle_pdevice **out, heddle_error *err) {
  void *dev = NULL;
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpu:%u: there is one cpu device, cpu:0", index);
  heddle_status s = p_no_device_settings("cpu", index, options, err);
  if (s == HEDDLE_OK) s = cpu_new(self->host, sizeof **out, "a device", &dev, err);
  if (s != HEDDLE_OK) return s;
  *out = dev;
  (*out)->host = self->host;
  (*out)->onednn = self->onednn;
  atomic_init(&(*out)->live_buffers, 0);
  atomic_init(&(*out)->live_bytes, 0);
  atomic_init(&(*out)->live_objects, 0);
  return HEDDLE_OK;
}

static heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) {
  switch (key) {
  case HEDDLE_QUERY_LIVE_BUFFERS: *out = atomic_load_explicit(&dev->live_buffers, memory_order_relaxed); break;
  case HEDDLE_QUERY_LIVE_BYTES: *out = atomic_load_explicit(&dev->live_bytes, memory_order_relaxed); break;
  case HEDDLE_QUERY_LIVE_OBJECTS: *out = atomic_load_explicit(&dev->live_objects, memory_order_relaxed); break;
  default: return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: query of key %u is not supported", key);
  }
  return HEDDLE_OK;
}

static heddle_status device_health(heddle_pdevice *dev, heddle_error *err) {
  (void)dev, (void)err;
  return HEDDLE_OK;
}

static heddle_status device_idle(heddle_pdevice *dev, uint64_t timeout_ns, heddle_error *err) {
  (void)dev, (void)timeout_ns, (void)err;
  return HEDDLE_OK;
}

static heddle_status memory_now(heddle_pdevice *dev, uint64_t *free_bytes, uint64_t *total_bytes, heddle_error *err) {
  (void)dev;
  *total_bytes = pages(_SC_PHYS_PAGES);
  *free_bytes = pages(_SC_AVPHYS_PAGES);
  if (*total_bytes == 0) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: the system does not tell its memory");
  return HEDDLE_OK;
}

const heddle_device_table cpu_device_table = {
    .struct_size = sizeof cpu_device_table,
    .close = device_close,
    .open = device_open,
    .query = device_query,
    .health = device_health,
    .idle = device_idle,
    .memory_now = memory_now,
};
