/* Host memory of others, registered with the driver, so that copies fetch from it directly. The driver takes a page
 * once and forgets it the first time that it is asked to, so an instance keeps what it registered and shares that among
 * its devices and buffers. */
#include "gpu.h"

/* A registered range. Guarded by the instance's lock. */
struct gpu_import {
  char *base;
  uint64_t bytes;
  uint32_t users;
  bool ours; /* else other code in the process registered it, and forgets it */
  gpu_import *next;
};

/* The range that holds all of these bytes, or NULL. */
static gpu_import *find(const heddle_pinstance *self, const char *base, uint64_t bytes) {
  for (gpu_import *x = self->imports; x != NULL; x = x->next) {
    if (base >= x->base && bytes <= x->bytes && (uint64_t)(base - x->base) <= x->bytes - bytes) return x;
  }
  return NULL;
}

/* Whether some of these bytes, and not all, lie in a range: what the driver refuses is not what it has, then. */
static bool overlaps(const heddle_pinstance *self, const char *base, uint64_t bytes) {
  for (const gpu_import *x = self->imports; x != NULL; x = x->next) {
    if (base < x->base + x->bytes && x->base < base + bytes) return true;
  }
  return false;
}

uint64_t gpu_import_run(heddle_pinstance *self, const void *address, uint64_t bytes) {
  const uintptr_t at = (uintptr_t)address;
  pthread_mutex_lock(&self->lock);
  for (const gpu_import *x = self->imports; x != NULL; x = x->next) {
    const uintptr_t first = (uintptr_t)x->base, end = first + x->bytes;
    const uintptr_t edge = at < first ? first : end;
    if (edge > at && edge - at < bytes) bytes = edge - at;
  }
  pthread_mutex_unlock(&self->lock);
  return bytes;
}

/* Pages that cannot be written, those of some files and other drivers, more than the user may lock: what the driver does not
 * take can be copied, and is then. */
static heddle_status refused(heddle_error *err) {
  if (err != NULL) err->status = HEDDLE_EUNSUPPORTED;
  return HEDDLE_EUNSUPPORTED;
}

static heddle_status add(heddle_pdevice *dev, char *base, uint64_t bytes, gpu_import **out, heddle_error *err) {
  void *memory = NULL;
  gpu_scope scope;
  heddle_status s = gpu_new(dev->host, sizeof **out, "an import", &memory, err);
  if (s != HEDDLE_OK) return s;
  int code = 0;
  s = gpu_enter(dev, &scope, err);
  if (s == HEDDLE_OK) {
    code = dev->driver->host_register(base, (size_t)bytes, GPU_HOST_PORTABLE);
    gpu_leave(dev, &scope);
    if (code != GPU_CODE_REGISTERED || overlaps(dev->self, base, bytes))
      s = gpu_check(dev, code, "import host memory", err);
    if (s == HEDDLE_EFAILED || s == HEDDLE_ENOMEM) s = refused(err);
  }
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, memory);
    return s;
  }
  gpu_import *x = memory;
  *x = (gpu_import){.base = base, .bytes = bytes, .ours = code == 0, .next = dev->self->imports};
  dev->self->imports = x;
  *out = x;
  return HEDDLE_OK;
}

heddle_status gpu_import_get(heddle_pdevice *dev, void *base, uint64_t bytes, gpu_import **out, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&dev->self->lock);
  gpu_import *x = find(dev->self, base, bytes);
  if (x == NULL) s = add(dev, base, bytes, &x, err);
  if (s == HEDDLE_OK) {
    x->users++;
    *out = x;
  }
  pthread_mutex_unlock(&dev->self->lock);
  return s;
}

void gpu_import_put(heddle_pdevice *dev, gpu_import *import) {
  heddle_pinstance *self = dev->self;
  pthread_mutex_lock(&self->lock);
  if (--import->users == 0) {
    gpu_import **at = &self->imports;
    while (*at != import) at = &(*at)->next;
    *at = import->next;
    if (import->ours) dev->driver->host_unregister(import->base);
    self->host->free(self->host->ctx, import);
  }
  pthread_mutex_unlock(&self->lock);
}
