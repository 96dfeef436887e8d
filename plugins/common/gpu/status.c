/* The driver's codes as statuses with the driver's own words, and the sticky fault of a device. */
#include "gpu.h"

static heddle_status status_of(gpu_fate fate) {
  switch (fate) {
  case GPU_FINE: return HEDDLE_OK;
  case GPU_NOT_READY: return HEDDLE_EBUSY;
  case GPU_NO_MEMORY: return HEDDLE_ENOMEM;
  case GPU_UNSUPPORTED: return HEDDLE_EUNSUPPORTED;
  case GPU_LOST: return HEDDLE_EDEVICE;
  case GPU_DOUBTFUL: /* asked about before */
  case GPU_FAILED: break;
  }
  return HEDDLE_EFAILED;
}

gpu_fate gpu_fate_of(heddle_pdevice *dev, int code) {
  const gpu_vendor *v = dev->vendor;
  gpu_fate fate = v->fate(code);
  gpu_scope scope;
  if (fate != GPU_DOUBTFUL) return fate;
  if (atomic_load_explicit(&dev->faulted, memory_order_acquire)) return GPU_LOST;
  if (dev->service == NULL) return GPU_FAILED;
  int second = v->enter(dev, &scope);
  if (second == 0) {
    second = dev->driver->stream_query(dev->service);
    gpu_leave(dev, &scope);
  }
  fate = v->fate(second);
  return fate == GPU_LOST || fate == GPU_DOUBTFUL ? GPU_LOST : GPU_FAILED;
}

/* Keeps the first fault. */
static void set_fault(heddle_pdevice *dev, const heddle_error *fault) {
  pthread_mutex_lock(&dev->lock);
  const bool first = !atomic_load_explicit(&dev->faulted, memory_order_relaxed);
  if (first) {
    dev->fault = *fault;
    atomic_store_explicit(&dev->faulted, true, memory_order_release);
  }
  pthread_mutex_unlock(&dev->lock);
  if (!first) return;
  dev->host->device_fault(dev->host->ctx, dev->cookie, fault->api_code, fault->text);
  gpu_watch_fault(dev, fault); /* a woken thread finds the fault reported */
}

heddle_status gpu_check(heddle_pdevice *dev, int code, const char *what, heddle_error *err) {
  heddle_error own;
  char words[400];
  if (code == 0) return HEDDLE_OK;
  if (err == NULL) err = &own;
  const heddle_status s = status_of(gpu_fate_of(dev, code));
  dev->vendor->code_words(dev->self, code, words, sizeof words);
  p_fail(err, s, code, "%s:%u: %s: %s", dev->vendor->name, dev->index, what, words);
  if (s == HEDDLE_EDEVICE) {
    set_fault(dev, err);
    return gpu_health(dev, err); /* the first one's words */
  }
  return s;
}

heddle_status gpu_health(heddle_pdevice *dev, heddle_error *err) {
  if (!atomic_load_explicit(&dev->faulted, memory_order_acquire)) return HEDDLE_OK;
  if (err != NULL) *err = dev->fault; /* written before faulted, and never again */
  return HEDDLE_EDEVICE;
}

heddle_status gpu_enter(heddle_pdevice *dev, gpu_scope *scope, heddle_error *err) {
  const int code = dev->vendor->enter(dev, scope);
  return code == 0 ? HEDDLE_OK : gpu_check(dev, code, "make the context current", err);
}
