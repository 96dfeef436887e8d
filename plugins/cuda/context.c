/* The instance's own calls, and contexts: each device's primary one, which is made current for the length of a call and
 * never longer, so that other users of CUDA in the process do not notice. A primary context that is lost stays so for as
 * long as any code holds it, and the vendor's libraries never let go: the device then goes on in one of its own. */
#include "cuda.h"

#include <dlfcn.h>

enum { OLDEST = 11000 }; /* what a driver says of CUDA 11.0; one from before may have every call, and no NVRTC for it */

static heddle_status read_contexts(const heddle_pinstance *self, cuda_contexts *out, heddle_error *err) {
  static const char *const words[] = {"auto", "primary", "own"};
  char text[16] = "auto";
  const int64_t length = self->host->config(self->host->ctx, "context", text, sizeof text);
  for (int i = 0; i < 3 && length < (int64_t)sizeof text; i++) {
    if (length >= 0 && text[0] != '\0' && strcmp(text, words[i]) != 0) continue;
    *out = (cuda_contexts)i;
    return HEDDLE_OK;
  }
  return p_fail(err, HEDDLE_EINVAL, 0, "%s: setting context: '%s' is none of auto, primary and own", self->vendor->name,
                text);
}

heddle_status cuda_open(heddle_pinstance *self, heddle_error *err) {
  void *memory = NULL;
  const char *missing = NULL;
  heddle_status s = gpu_new(self->host, sizeof(cuda_own), "an instance", &memory, err);
  if (s != HEDDLE_OK) return s;
  cuda_own *own = self->own = memory;
#define FIND(member, need, symbol, args) \
  own->member = (int(*) args)(uintptr_t)dlsym(self->driver.library, symbol); \
  if ((need) == GPU_MUST && own->member == NULL && missing == NULL) missing = symbol;
  CUDA_CALLS(FIND)
#undef FIND
  if (self->driver_version < OLDEST)
    return p_fail(err, HEDDLE_ENODEV, 0, "no CUDA device: the driver is of CUDA %d.%d, older than %s",
                  self->driver_version / 1000, self->driver_version % 1000 / 10, self->vendor->needs);
  if (missing != NULL)
    return p_fail(err, HEDDLE_ENODEV, 0, "no CUDA device: the driver has no %s: it is older than %s", missing,
                  self->vendor->needs);
  s = read_contexts(self, &own->contexts, err);
  return s == HEDDLE_OK ? cuda_nvrtc_new(self, &own->nvrtc, err) : s;
}

void cuda_close(heddle_pinstance *self) {
  if (self->own == NULL) return;
  cuda_nvrtc_free(self, cuda_of(self)->nvrtc);
  self->host->free(self->host->ctx, self->own);
  self->own = NULL;
}

cuda_nvrtc *cuda_nvrtc_of(const heddle_pinstance *self) {
  return self->own != NULL ? cuda_of(self)->nvrtc : NULL;
}

/* ---------------------------------------------------------------- contexts */

enum { UNSUPPORTED = 801 };

static int get_primary(heddle_pdevice *dev) {
  const cuda_own *own = cuda_of(dev->self);
  size_t free_bytes = 0, all = 0;
  gpu_scope scope;
  int code = own->context_retain(&dev->context, dev->info->device);
  if (code != 0) return code;
  code = cuda_enter(dev, &scope);
  if (code == 0) {
    code = dev->driver->memory_now(&free_bytes, &all); /* a lost context answers every call with its fault */
    if (dev->vendor->fate(code) != GPU_LOST) code = 0;
    cuda_leave(dev, &scope);
  }
  if (code != 0) cuda_context_put(dev);
  return code;
}

static int get_own(heddle_pdevice *dev) {
  const cuda_own *own = cuda_of(dev->self);
  void *popped = NULL;
  if (own->context_create == NULL || own->context_destroy == NULL) return UNSUPPORTED;
  const int code = own->context_create(&dev->context, 0, dev->info->device);
  if (code == 0) own->context_pop(&popped); /* it was made current */
  else dev->context = NULL;
  dev->apart = code == 0;
  return code;
}

int cuda_context_get(heddle_pdevice *dev) {
  const cuda_contexts how = cuda_of(dev->self)->contexts;
  char words[200], line[400];
  if (how == CUDA_CONTEXT_OWN) return get_own(dev);
  const int code = get_primary(dev);
  if (dev->vendor->fate(code) != GPU_LOST) return code;
  if (how == CUDA_CONTEXT_PRIMARY || get_own(dev) != 0) return code;
  cuda_code_words(dev->self, code, words, sizeof words);
  snprintf(line, sizeof line,
           "cuda:%u: the process's context is lost, and other code holds it (%s): the device goes on in a context of "
           "its own, which does not reach memory of other code",
           dev->index, words);
  dev->host->log(dev->host->ctx, HEDDLE_LOG_WARN, "cuda", line);
  return 0;
}

void cuda_context_put(heddle_pdevice *dev) {
  const cuda_own *own = cuda_of(dev->self);
  if (dev->apart) own->context_destroy(dev->context);
  else own->context_release(dev->info->device);
  dev->apart = false;
  dev->context = NULL;
}

/* A program that captures in mode GLOBAL, as frameworks do, forbids allocations and questions to every thread of the process
 * whose manners are not RELAXED, and such a call breaks its capture. */
int cuda_enter(const heddle_pdevice *dev, gpu_scope *scope) {
  const gpu_driver *d = dev->driver;
  scope->device = dev->info->device;
  const int code = cuda_of(dev->self)->context_push(dev->context);
  scope->manners = GPU_CAPTURE_RELAXED;
  if (code != 0 || d->thread_capture_mode == NULL || d->thread_capture_mode(&scope->manners) != 0) scope->manners = -1;
  return code;
}

void cuda_leave(const heddle_pdevice *dev, const gpu_scope *scope) {
  void *popped = NULL; /* the driver keeps a stack for each thread */
  int manners = scope->manners;
  if (manners >= 0) dev->driver->thread_capture_mode(&manners);
  cuda_of(dev->self)->context_pop(&popped);
}

int cuda_context_device(const heddle_pdevice *dev, void *context) {
  const cuda_own *own = cuda_of(dev->self);
  void *popped = NULL;
  int device = -1;
  if (own->context_device == NULL || own->context_push(context) != 0) return -1;
  if (own->context_device(&device) != 0) device = -1;
  own->context_pop(&popped);
  return device;
}

/* ---------------------------------------------------------------- peers and graphs */

enum { ALREADY_ENABLED = 704 };

/* Memory of a pool is opened by the pool, all other by the context. */
int cuda_peer_enable(heddle_pdevice *dev, heddle_pdevice *src) {
  const cuda_own *own = cuda_of(dev->self);
  if (own->peer_enable == NULL) return UNSUPPORTED;
  int code = own->peer_enable(src->context, 0);
  if (code == ALREADY_ENABLED) code = 0;
  if (code == 0 && src->pool != NULL && own->pool_access != NULL) {
    const cuda_access access = {.place = 1, .device = dev->info->device, .how = 3};
    code = own->pool_access(src->pool, &access, 1);
  }
  return code;
}

int cuda_peer_copy(heddle_pdevice *dst_dev, gpu_address dst, heddle_pdevice *src_dev, gpu_address src, size_t bytes,
                   void *stream) {
  const cuda_own *own = cuda_of(dst_dev->self);
  if (own->peer_copy == NULL) return UNSUPPORTED;
  return own->peer_copy(dst, dst_dev->context, src, src_dev->context, bytes, stream);
}

int cuda_instantiate(heddle_pinstance *self, void *graph, void **exec) {
  const cuda_own *own = cuda_of(self);
  if (own->instantiate != NULL) return own->instantiate(exec, graph, 0);
  if (own->instantiate_old != NULL) return own->instantiate_old(exec, graph, NULL, NULL, 0);
  return UNSUPPORTED;
}
