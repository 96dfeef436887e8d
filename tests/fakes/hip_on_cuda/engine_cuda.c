/* The engine's interface (../engine.h) over CUDA's driver: devices, contexts, memory, copies, streams, events. With the
 * front of HIP's double (../hip) it is a HIP for NVIDIA's devices, so that the plugin rocm meets a real GPU. A handle
 * of the engine's is CUDA's own; results have the same numbers. Architectures are reported as gfx1030, whose wavefronts
 * are as wide as a warp, and kernels compiled for whatever the device is (nvrtc.c). */
#include "cuda_calls.h"

#include "../engine.h"
#include "../fake_gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES = 16, MAJOR = 75, MINOR = 76, POOLS = 115 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static eng_device devices[DEVICES];
static int count, init_code = ENG_NO_DEVICE;

static void describe(void) {
  const cuda_calls *c = cuda_get();
  if (c == NULL) return;
  init_code = c->d.init(0);
  if (init_code == ENG_OK) init_code = c->d.device_count(&count);
  if (init_code == ENG_OK && count == 0) init_code = ENG_NO_DEVICE;
  if (init_code != ENG_OK) count = 0;
  if (count > DEVICES) count = DEVICES;
  for (int i = 0; i < count; i++) {
    eng_device *d = &devices[i];
    int handle = 0, pools = 0;
    init_code = c->d.device_get(&handle, i);
    if (init_code != ENG_OK) return;
    d->ordinal = handle;
    c->d.device_name(d->name, sizeof d->name, handle);
    c->d.device_memory(&d->memory, handle);
    c->d.device_attribute(&d->major, MAJOR, handle);
    c->d.device_attribute(&d->minor, MINOR, handle);
    c->d.device_attribute(&pools, POOLS, handle);
    d->pools = pools != 0;
    if (c->d.device_uuid != NULL) c->d.device_uuid(d->uuid, handle);
    if (c->d.device_pci != NULL) c->d.device_pci(d->pci, sizeof d->pci, handle);
    snprintf(d->arch, sizeof d->arch, "%s", eng_flavour_own.arch);
  }
}

static uint64_t as_number(const void *address) {
  return (uint64_t)(uintptr_t)address;
}

int eng_call_enter(eng_call *call, bool needs_init) {
  (void)call, (void)needs_init;
  return ENG_OK;
}

int fake_gpu_live(const char *kind);
int fake_gpu_live(const char *kind) {
  (void)kind;
  return -1; /* the driver counts for itself */
}

/* ---------------------------------------------------------------- devices, contexts */

int eng_init(void) {
  pthread_once(&once, describe);
  return init_code;
}

int eng_device_count(void) {
  eng_init();
  return count;
}

const eng_device *eng_device_get(int ordinal) {
  return ordinal >= 0 && ordinal < eng_device_count() ? &devices[ordinal] : NULL;
}

int eng_device_peer(int device, int peer) {
  int can = 0;
  if (eng_device_get(device) == NULL || eng_device_get(peer) == NULL || cuda_get()->d.device_can_peer == NULL) return 0;
  return CUDA(d.device_can_peer(&can, devices[device].ordinal, devices[peer].ordinal)) == ENG_OK && can != 0;
}

int eng_primary_retain(int device, eng_context **out) {
  void *ctx = NULL;
  if (eng_device_get(device) == NULL) return ENG_INVALID_DEVICE;
  const int code = CUDA(retain(&ctx, devices[device].ordinal));
  *out = ctx;
  return code;
}

int eng_primary_release(int device) {
  return eng_device_get(device) != NULL ? CUDA(release(devices[device].ordinal)) : ENG_INVALID_DEVICE;
}

eng_context *eng_current(void) {
  void *ctx = NULL;
  return CUDA(get_current(&ctx)) == ENG_OK ? ctx : NULL;
}

int eng_current_set(eng_context *ctx) {
  return CUDA(set_current(ctx));
}

int eng_context_sync(void) {
  return CUDA(sync());
}

int eng_peer_enable(eng_context *peer) {
  return CUDA(enable_peer(peer, 0));
}

int eng_peer_disable(eng_context *peer) {
  return CUDA(disable_peer(peer));
}

/* ---------------------------------------------------------------- memory */

int eng_alloc(uint64_t *out, size_t bytes) {
  return CUDA(d.alloc(out, bytes));
}

int eng_free(uint64_t address) {
  return CUDA(d.free(address));
}

int eng_alloc_async(uint64_t *out, size_t bytes, eng_stream_handle stream) {
  return cuda_get() == NULL || cuda_get()->alloc_async == NULL ? ENG_NOT_SUPPORTED
                                                               : cuda_get()->alloc_async(out, bytes, stream);
}

int eng_alloc_from(uint64_t *out, size_t bytes, eng_pool *pool, eng_stream_handle stream) {
  return CUDA_MAY(alloc_from, (out, bytes, pool, stream));
}

int eng_free_async(uint64_t address, eng_stream_handle stream) {
  return CUDA_MAY(free_async, (address, stream));
}

int eng_memory_info(size_t *free_bytes, size_t *all_bytes) {
  return CUDA(d.memory_now(free_bytes, all_bytes));
}

int eng_pool_default(int device, eng_pool **out) {
  void *pool = NULL;
  if (eng_device_get(device) == NULL) return ENG_INVALID_DEVICE;
  if (cuda_get() == NULL || cuda_get()->pool_default == NULL) return ENG_NOT_SUPPORTED;
  const int code = cuda_get()->pool_default(&pool, devices[device].ordinal);
  *out = pool;
  return code;
}

int eng_pool_create(int device, eng_pool **out) {
  void *pool = NULL;
  if (eng_device_get(device) == NULL) return ENG_INVALID_DEVICE;
  const gpu_pool_props props = {.kind = GPU_POOL_PINNED, .place = GPU_POOL_DEVICE, .device = devices[device].ordinal};
  const int code = CUDA_MAY(pool_create, (&pool, &props));
  *out = pool;
  return code;
}

int eng_pool_destroy(eng_pool *pool) {
  return CUDA_MAY(pool_destroy, (pool));
}

int eng_pool_set(eng_pool *pool, int attribute, const void *value) {
  uint64_t copy = 0;
  memcpy(&copy, value, sizeof copy);
  return CUDA_MAY(pool_set, (pool, attribute, &copy));
}

/* The driver reports the owner of the address, and nothing of what lies around it. */
int eng_memory_find(uint64_t address, eng_place *out) {
  int ordinal = 0;
  *out = (eng_place){0};
  const int code = CUDA_MAY(pointer_attribute, (&ordinal, GPU_POINTER_DEVICE, address));
  for (int i = 0; code == ENG_OK && i < eng_device_count(); i++)
    if (devices[i].ordinal == ordinal) *out = (eng_place){.kind = 2, .device = i};
  return code;
}

int eng_pool_get(eng_pool *pool, int attribute, void *value) {
  return CUDA_MAY(pool_get, (pool, attribute, value));
}

int eng_pool_access(eng_pool *pool, int device, bool open) {
  if (eng_device_get(device) == NULL) return ENG_INVALID_DEVICE;
  const cuda_access access = {.place = 1, .device = devices[device].ordinal, .how = open ? 3 : 0};
  if (cuda_get() == NULL || cuda_get()->pool_access == NULL) return ENG_NOT_SUPPORTED;
  return cuda_get()->pool_access(pool, &access, 1);
}

int eng_pool_trim(eng_pool *pool, size_t keep_bytes) {
  return CUDA_MAY(pool_trim, (pool, keep_bytes));
}

int eng_host_alloc(void **out, size_t bytes, unsigned flags) {
  return CUDA(d.host_alloc(out, bytes, flags));
}

int eng_host_free(void *address) {
  return CUDA(d.host_free(address));
}

int eng_host_register(void *address, size_t bytes, unsigned flags) {
  return CUDA_MAY(host_register, (address, bytes, flags));
}

int eng_host_unregister(void *address) {
  return CUDA_MAY(host_unregister, (address));
}

int eng_host_address(uint64_t *out, void *address) {
  return CUDA_MAY(host_address, (out, address, 0));
}

/* ---------------------------------------------------------------- copies */

static int finish(int code, eng_stream_handle stream, bool wait) {
  return code == ENG_OK && wait ? CUDA(d.stream_sync(stream)) : code;
}

int eng_copy(eng_copy_kind kind, void *dst, const void *src, size_t bytes, eng_stream_handle stream, bool wait) {
  int code = ENG_INVALID_VALUE;
  switch (kind) {
  case ENG_H2D: code = CUDA(d.copy_h2d(as_number(dst), src, bytes, stream)); break;
  case ENG_D2H: code = CUDA(d.copy_d2h(dst, as_number(src), bytes, stream)); break;
  case ENG_D2D: code = CUDA(d.copy_d2d(as_number(dst), as_number(src), bytes, stream)); break;
  case ENG_H2H:
  case ENG_COPY_ANY: code = CUDA(copy_any(as_number(dst), as_number(src), bytes, stream)); break;
  }
  return finish(code, stream, wait);
}

int eng_copy_peer(eng_context *dst_ctx, void *dst, eng_context *src_ctx, const void *src, size_t bytes,
                  eng_stream_handle stream, bool wait) {
  return finish(CUDA(copy_peer(as_number(dst), dst_ctx, as_number(src), src_ctx, bytes, stream)), stream, wait);
}

int eng_fill(uint64_t dst, uint32_t word, unsigned width, size_t words, eng_stream_handle stream, bool wait) {
  int code = ENG_INVALID_VALUE;
  if (width == 1) code = CUDA(fill8(dst, (unsigned char)word, words, stream));
  if (width == 2) code = CUDA(fill16(dst, (unsigned short)word, words, stream));
  if (width == 4) code = CUDA(d.fill32(dst, word, words, stream));
  return finish(code, stream, wait);
}

/* ---------------------------------------------------------------- streams, events */

int eng_stream_create(eng_stream_handle *out, unsigned flags, int priority) {
  return CUDA(d.stream_create(out, flags, priority));
}

int eng_stream_destroy(eng_stream_handle stream) {
  return CUDA(d.stream_destroy(stream));
}

int eng_stream_query(eng_stream_handle stream) {
  return CUDA(d.stream_query(stream));
}

int eng_stream_sync(eng_stream_handle stream) {
  return CUDA(d.stream_sync(stream));
}

int eng_stream_wait(eng_stream_handle stream, eng_event *event) {
  return CUDA(d.stream_wait(stream, event, 0));
}

/* The device of its context; where the driver does not tell that, the current one. */
int eng_stream_device(eng_stream_handle stream, int *out) {
  eng_context *before = eng_current();
  void *context = NULL;
  int code = CUDA_MAY(stream_context, (stream, &context));
  if (code == ENG_OK) code = eng_current_set(context);
  if (code == ENG_OK || code == ENG_NOT_SUPPORTED) code = CUDA(context_device(out));
  (void)eng_current_set(before);
  return code;
}

void eng_priorities(int *least, int *greatest) {
  *least = *greatest = 0;
  (void)CUDA_MAY(stream_priorities, (least, greatest));
}

int eng_stream_write(eng_stream_handle stream, uint64_t address, uint64_t value) {
  return CUDA_MAY(stream_write, (stream, address, value, 0));
}

int eng_host_func(eng_stream_handle stream, void (*fn)(void *arg), void *arg) {
  return CUDA_MAY(host_func, (stream, fn, arg));
}

int eng_callback(eng_stream_handle stream, void (*fn)(void *stream, int code, void *arg), void *arg) {
  return CUDA_MAY(stream_callback, (stream, fn, arg, 0));
}

int eng_event_create(eng_event **out, unsigned flags) {
  void *event = NULL;
  const int code = CUDA(d.event_create(&event, flags));
  *out = event;
  return code;
}

int eng_event_destroy(eng_event *event) {
  return CUDA(d.event_destroy(event));
}

int eng_event_record(eng_event *event, eng_stream_handle stream) {
  return CUDA(d.event_record(event, stream));
}

int eng_event_query(eng_event *event) {
  return CUDA(d.event_query(event));
}

int eng_event_sync(eng_event *event) {
  return CUDA(d.event_sync(event));
}

int eng_event_elapsed(float *ms, eng_event *from, eng_event *to) {
  return CUDA(d.event_elapsed(ms, from, to));
}
