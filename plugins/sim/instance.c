/* The instance: one opening of sim by one context, with its settings, its counters of calls and its table of buffers;
 * and what is known of a device without opening it. */
#include "stream.h"

bool sim_instance_ok(const heddle_pinstance *self) {
  return self != NULL && self->magic == SIM_MAGIC_INSTANCE;
}

heddle_status sim_index_check(const heddle_pinstance *self, uint32_t index, heddle_error *err) {
  if (!sim_instance_ok(self)) return p_fail(err, HEDDLE_EINVAL, 0, "the handle is no open instance of sim");
  if (index < self->settings.devices) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ENODEV, 0, "there is no sim:%u: there are %llu (setting devices)", index,
                (unsigned long long)self->settings.devices);
}

heddle_status sim_pure_check(heddle_pinstance *self, uint32_t index, heddle_error *err) {
  heddle_status status = sim_index_check(self, index, err);
  if (status != HEDDLE_OK) return status;
  if (self->settings.needs_open && atomic_load(&self->open_devices[index]) == 0)
    return p_fail(err, HEDDLE_ENEEDSOPEN, 0, "sim:%u answers only once it is open (setting needs_open)", index);
  return HEDDLE_OK;
}

heddle_status sim_switched_off(const char *what, const char *key, heddle_error *err) {
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "sim has no %s here: its setting '%s' took it away", what, key);
}

heddle_status sim_instance_open(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  heddle_pinstance *self = sim_alloc(host, sizeof *self);
  if (self == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for an instance of sim");
  heddle_status status = sim_settings_read(host, &self->settings, err);
  if (status == HEDDLE_OK && pthread_mutex_init(&self->lock, NULL) != 0)
    status = p_fail(err, HEDDLE_ENOMEM, 0, "no lock for an instance of sim");
  if (status != HEDDLE_OK) {
    host->free(host->ctx, self);
    return status;
  }
  self->host = host;
  /* Two instances count from different numbers, so that a handle of one is stale in the other. */
  self->generation = (uint32_t)sim_mix((uint64_t)(uintptr_t)self ^ host->now_ns(host->ctx)) & 0x00ffffffu;
  self->magic = SIM_MAGIC_INSTANCE;
  *out = self;
  return HEDDLE_OK;
}

void sim_instance_close(heddle_pinstance *self) {
  if (!sim_instance_ok(self) || self->left_behind) return;
  const heddle_host *host = self->host;
  self->magic = SIM_MAGIC_DEAD;
  sim_stream_destroy(host, self->idle_streams);
  for (uint32_t i = 0; i < SIM_TABLE_CHUNKS; i++) host->free(host->ctx, atomic_load(&self->chunks[i]));
  pthread_mutex_destroy(&self->lock);
  host->free(host->ctx, self);
}

heddle_status sim_instance_count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  if (!sim_instance_ok(self)) return p_fail(err, HEDDLE_EINVAL, 0, "the handle is no open instance of sim");
  *out = (uint32_t)self->settings.devices;
  return HEDDLE_OK;
}

heddle_status sim_instance_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                    heddle_error *err) {
  heddle_status status = sim_index_check(self, index, err);
  if (status != HEDDLE_OK) return status;
  const sim_settings *s = &self->settings;
  uint32_t size = desc->struct_size;
  heddle_pdevice_desc d;
  memset(&d, 0, sizeof d);
  d.type = HEDDLE_DEVICE_EXT;
  snprintf(d.name, sizeof d.name, "sim");
  snprintf(d.driver, sizeof d.driver, "sim 1.0");
  memcpy(d.uuid, "heddle-sim-dev-", 15);
  d.uuid[15] = (uint8_t)('a' + index);
  d.pci_domain = d.pci_bus = d.pci_device = d.pci_function = UINT32_MAX;
  d.caps = HEDDLE_CAP_HOST_CORES;
  if (s->views) d.caps |= HEDDLE_CAP_VIEWS;
  if (s->unified) d.caps |= HEDDLE_CAP_UNIFIED;
  if (s->import && s->import_unified != SIM_OFF) d.caps |= HEDDLE_CAP_IMPORT_UNIFIED;
  if (!s->coherent) d.caps |= HEDDLE_CAP_NONCOHERENT;
  if (s->fence_wait && s->wait_before_signal) d.caps |= HEDDLE_CAP_WAIT_BEFORE_SIGNAL;
  d.memory_bytes = s->memory_bytes;
  d.max_buffer_bytes = s->max_buffer_bytes;
  d.alignment = SIM_ALIGNMENT;
  d.import_alignment = s->import ? s->import_alignment : 0;
  d.event_domain = s->event_domains ? index + 1 : 1;
  d.compute_units = 1;
  d.max_streams = 4;
  if (size < sizeof d.struct_size) return p_fail(err, HEDDLE_EINVAL, 0, "sim: a description without struct_size");
  if (size > sizeof d) size = sizeof d; /* a younger host knows members that we do not fill */
  memcpy((char *)desc + sizeof desc->struct_size, (const char *)&d + sizeof d.struct_size, size - sizeof d.struct_size);
  return HEDDLE_OK;
}
