/* Host memory of others, registered with the driver, so that copies fetch from it directly. The driver takes a page
 * once and forgets it the first time that it is asked to, so an instance keeps what it registered and shares that among
 * its devices and buffers. Registering pins pages, which takes long for large ranges: an entry is in the list before the
 * driver is called, without the lock, and a thread that needs its pages waits for that entry alone. */
#include "gpu.h"

/* BEGINS and ENDS: the driver is being called for it. */
typedef enum gpu_import_state { IMPORT_BEGINS, IMPORT_STANDS, IMPORT_ENDS } gpu_import_state;

/* A range. Its members belong to the lock of gpu_imports. */
struct gpu_import {
  char *base;
  uint64_t bytes;
  uint32_t users;
  gpu_import_state state;
  bool ours; /* else other code in the process registered it, and forgets it */
  gpu_import *next;
};

bool gpu_imports_open(heddle_pinstance *self) {
  gpu_imports *all = &self->imports;
  if (pthread_mutex_init(&all->lock, NULL) != 0) return false;
  if (pthread_cond_init(&all->settled, NULL) == 0) return true;
  pthread_mutex_destroy(&all->lock);
  return false;
}

void gpu_imports_close(heddle_pinstance *self) {
  pthread_cond_destroy(&self->imports.settled);
  pthread_mutex_destroy(&self->imports.lock);
}

static bool holds(const gpu_import *x, const char *base, uint64_t bytes) {
  return base >= x->base && bytes <= x->bytes && (uint64_t)(base - x->base) <= x->bytes - bytes;
}

static bool meets(const gpu_import *x, const char *base, uint64_t bytes) {
  return base < x->base + x->bytes && x->base < base + bytes;
}

uint64_t gpu_import_run(heddle_pinstance *self, const void *address, uint64_t bytes) {
  const uintptr_t at = (uintptr_t)address;
  pthread_mutex_lock(&self->imports.lock);
  for (const gpu_import *x = self->imports.first; x != NULL; x = x->next) {
    const uintptr_t first = (uintptr_t)x->base, end = first + x->bytes;
    const uintptr_t edge = at < first ? first : end;
    if (edge > at && edge - at < bytes) bytes = edge - at;
  }
  pthread_mutex_unlock(&self->imports.lock);
  return bytes;
}

/* The entry that has all of these bytes and stands; NULL: none. *part: one that stands has some of them, and not all: what
 * the driver refuses is not what it has, then. Waits for those that the driver is being called for. Locked. */
static gpu_import *find_import(gpu_imports *all, const char *base, uint64_t bytes, bool *part) {
  for (;;) {
    gpu_import *found = NULL;
    bool wait = false;
    *part = false;
    for (gpu_import *x = all->first; x != NULL; x = x->next) {
      if (!meets(x, base, bytes)) continue;
      if (x->state != IMPORT_STANDS) wait = true;
      else if (holds(x, base, bytes)) found = x;
      else *part = true;
    }
    if (found != NULL || !wait) return found;
    pthread_cond_wait(&all->settled, &all->lock);
  }
}

static void take_out(gpu_imports *all, const gpu_import *x) {
  gpu_import **at = &all->first;
  while (*at != x) at = &(*at)->next;
  *at = x->next;
  pthread_cond_broadcast(&all->settled);
}

/* Pages that cannot be written, those of some files and other drivers, more than the user may lock: what the driver does not
 * take can be copied, and is then. */
static heddle_status refused(heddle_error *err) {
  if (err != NULL) err->status = HEDDLE_EUNSUPPORTED;
  return HEDDLE_EUNSUPPORTED;
}

static heddle_status enroll(heddle_pdevice *dev, char *base, uint64_t bytes, bool part, bool *ours, heddle_error *err) {
  gpu_scope scope;
  heddle_status s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = dev->driver->host_register(base, (size_t)bytes, GPU_HOST_PORTABLE);
  gpu_leave(dev, &scope);
  *ours = code == 0;
  if (code == GPU_CODE_REGISTERED && !part) return HEDDLE_OK; /* by other code, as a whole */
  s = gpu_check(dev, code, "import host memory", err);
  return s == HEDDLE_EFAILED || s == HEDDLE_ENOMEM ? refused(err) : s;
}

heddle_status gpu_import_get(heddle_pdevice *dev, void *base, uint64_t bytes, gpu_import **out, heddle_error *err) {
  gpu_imports *all = &dev->self->imports;
  void *memory = NULL;
  bool part = false, ours = false;
  heddle_status s = gpu_new(dev->host, sizeof **out, "an import", &memory, err);
  if (s != HEDDLE_OK) return s;
  gpu_import *mine = memory;
  *mine = (gpu_import){.base = base, .bytes = bytes, .users = 1};
  pthread_mutex_lock(&all->lock);
  gpu_import *x = find_import(all, base, bytes, &part);
  if (x != NULL) {
    x->users++;
  } else {
    mine->next = all->first;
    all->first = mine;
  }
  pthread_mutex_unlock(&all->lock);
  if (x != NULL) {
    dev->host->free(dev->host->ctx, mine);
    *out = x;
    return HEDDLE_OK;
  }
  s = enroll(dev, base, bytes, part, &ours, err);
  pthread_mutex_lock(&all->lock);
  mine->ours = ours;
  mine->state = IMPORT_STANDS;
  if (s != HEDDLE_OK) take_out(all, mine);
  else pthread_cond_broadcast(&all->settled);
  pthread_mutex_unlock(&all->lock);
  if (s != HEDDLE_OK) dev->host->free(dev->host->ctx, mine);
  else *out = mine;
  return s;
}

void gpu_import_put(heddle_pdevice *dev, gpu_import *import) {
  gpu_imports *all = &dev->self->imports;
  pthread_mutex_lock(&all->lock);
  const bool last = --import->users == 0;
  if (last) import->state = IMPORT_ENDS;
  pthread_mutex_unlock(&all->lock);
  if (!last) return;
  if (import->ours) dev->driver->host_unregister(import->base);
  pthread_mutex_lock(&all->lock);
  take_out(all, import);
  pthread_mutex_unlock(&all->lock);
  dev->host->free(dev->host->ctx, import);
}
