/* The current device of a thread, which is HIP's context, and the calls on two devices. HIP makes a device's context
 * when it is first used, and keeps it for as long as the process lives. */
#include "rocm.h"

int rocm_context_get(heddle_pdevice *dev) {
  gpu_scope scope;
  const int code = rocm_enter(dev, &scope);
  if (code == ROCM_SUCCESS) rocm_leave(dev, &scope);
  return code;
}

void rocm_context_put(heddle_pdevice *dev) {
  (void)dev;
}

/* A program that captures in mode GLOBAL forbids allocations and questions to every thread of the process whose manners
 * are not RELAXED, and such a call breaks its capture. */
int rocm_enter(const heddle_pdevice *dev, gpu_scope *scope) {
  const rocm_calls *calls = &rocm_of(dev->self)->calls;
  const gpu_driver *d = &dev->self->driver;
  int code = calls->get_device(&scope->device);
  scope->manners = -1;
  if (code == ROCM_SUCCESS && scope->device != dev->info->device) code = calls->set_device(dev->info->device);
  if (code != ROCM_SUCCESS || d->thread_capture_mode == NULL) return code;
  scope->manners = GPU_CAPTURE_RELAXED;
  if (d->thread_capture_mode(&scope->manners) != ROCM_SUCCESS) scope->manners = -1;
  return code;
}

void rocm_leave(const heddle_pdevice *dev, const gpu_scope *scope) {
  int manners = scope->manners;
  if (manners >= 0) dev->self->driver.thread_capture_mode(&manners);
  if (scope->device != dev->info->device) rocm_of(dev->self)->calls.set_device(scope->device);
}

int rocm_peer_enable(heddle_pdevice *dev, heddle_pdevice *src) {
  const rocm_calls *calls = &rocm_of(dev->self)->calls;
  const int code = calls->enable_peer(src->info->device, 0);
  if (code != ROCM_SUCCESS && code != ROCM_PEER_ALREADY) return code;
  if (src->pool == NULL || calls->pool_access == NULL) return ROCM_SUCCESS;
  const rocm_access access = {.place = 1, .device = dev->info->device, .how = 3}; /* a pool is opened for itself */
  return calls->pool_access(src->pool, &access, 1);
}

int rocm_peer_copy(heddle_pdevice *dst_dev, gpu_address dst, heddle_pdevice *src_dev, gpu_address src, size_t bytes,
                   void *stream) {
  return rocm_of(dst_dev->self)->calls.copy_peer(dst, dst_dev->info->device, src, src_dev->info->device, bytes, stream);
}

int rocm_instantiate(heddle_pinstance *self, void *graph, void **exec) {
  void *node = NULL;
  char log[256] = "";
  return rocm_of(self)->calls.instantiate(exec, graph, &node, log, sizeof log);
}
