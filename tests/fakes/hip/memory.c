/* HIP's double: memory of devices and of the host, copies, fills. */
#include "hip.h"
#pragma GCC visibility push(default)

hipError_t hipMalloc(void **out, size_t bytes) {
  uint64_t address = 0;
  HIP_CALL("hipMalloc");
  *out = NULL;
  if (bytes == 0) return hipSuccess;
  const int code = eng_alloc(&address, bytes);
  if (code == ENG_OK) *out = (void *)(uintptr_t)address;
  return (hipError_t)code;
}

hipError_t hipFree(void *address) {
  HIP_CALL("hipFree");
  return address == NULL ? hipSuccess : (hipError_t)eng_free(hip_number(address));
}

hipError_t hipMallocAsync(void **out, size_t bytes, hipStream_t stream) {
  uint64_t address = 0;
  HIP_CALL("hipMallocAsync");
  const int code = eng_alloc_async(&address, bytes, stream);
  if (code == ENG_OK) *out = (void *)(uintptr_t)address;
  return (hipError_t)code;
}

hipError_t hipFreeAsync(void *address, hipStream_t stream) {
  HIP_CALL("hipFreeAsync");
  return (hipError_t)eng_free_async(hip_number(address), stream);
}

hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *out, int device) {
  eng_pool *pool = NULL;
  HIP_CALL_PLAIN("hipDeviceGetDefaultMemPool");
  const int code = eng_pool_default(device, &pool);
  if (code == ENG_OK) *out = (hipMemPool_t)(void *)pool;
  return (hipError_t)code;
}

hipError_t hipMemPoolCreate(hipMemPool_t *out, const hipMemPoolProps *props) {
  eng_pool *pool = NULL;
  HIP_CALL_PLAIN("hipMemPoolCreate");
  if (props->allocType != hipMemAllocationTypePinned || props->handleTypes != hipMemHandleTypeNone ||
      props->location.type != hipMemLocationTypeDevice || props->win32SecurityAttributes != NULL)
    return hipErrorInvalidValue;
  const int code = eng_pool_create(props->location.id, &pool);
  if (code == ENG_OK) *out = (hipMemPool_t)(void *)pool;
  return (hipError_t)code;
}

hipError_t hipMemPoolDestroy(hipMemPool_t pool) {
  HIP_CALL_PLAIN("hipMemPoolDestroy");
  return (hipError_t)eng_pool_destroy((eng_pool *)(void *)pool);
}

hipError_t hipMallocFromPoolAsync(void **out, size_t bytes, hipMemPool_t pool, hipStream_t stream) {
  uint64_t address = 0;
  HIP_CALL("hipMallocFromPoolAsync");
  const int code = eng_alloc_from(&address, bytes, (eng_pool *)(void *)pool, stream);
  if (code == ENG_OK) *out = (void *)(uintptr_t)address;
  return (hipError_t)code;
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
  HIP_CALL_PLAIN("hipMemPoolSetAttribute");
  return (hipError_t)eng_pool_set((eng_pool *)(void *)pool, (int)attribute, value);
}

hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
  HIP_CALL_PLAIN("hipMemPoolGetAttribute");
  return (hipError_t)eng_pool_get((eng_pool *)(void *)pool, (int)attribute, value);
}

hipError_t hipPointerGetAttribute(void *out, hipPointer_attribute attribute, hipDeviceptr_t address) {
  HIP_CALL_PLAIN("hipPointerGetAttribute");
  eng_place place;
  const int code = eng_memory_find((uint64_t)(uintptr_t)address, &place);
  if (code != ENG_OK || place.kind == 0 || attribute != HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    return hipErrorInvalidValue;
  *(int *)out = place.device;
  return hipSuccess;
}

hipError_t hipMemPoolSetAccess(hipMemPool_t pool, const hipMemAccessDesc *list, size_t count) {
  HIP_CALL_PLAIN("hipMemPoolSetAccess");
  for (size_t i = 0; i < count; i++) {
    if (list[i].location.type != hipMemLocationTypeDevice) return hipErrorInvalidValue;
    const int code =
        eng_pool_access((eng_pool *)(void *)pool, list[i].location.id, list[i].flags != hipMemAccessFlagsProtNone);
    if (code != ENG_OK) return (hipError_t)code;
  }
  return hipSuccess;
}

hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t keep_bytes) {
  HIP_CALL_PLAIN("hipMemPoolTrimTo");
  return (hipError_t)eng_pool_trim((eng_pool *)(void *)pool, keep_bytes);
}

/* The low bits of the flags are CUDA's; HIP has more, of which the double has no use. */
hipError_t hipHostMalloc(void **out, size_t bytes, unsigned flags) {
  HIP_CALL("hipHostMalloc");
  return (hipError_t)eng_host_alloc(out, bytes, flags & 7u);
}

hipError_t hipHostFree(void *address) {
  HIP_CALL("hipHostFree");
  return (hipError_t)eng_host_free(address);
}

hipError_t hipHostRegister(void *address, size_t bytes, unsigned flags) {
  HIP_CALL("hipHostRegister");
  return (hipError_t)eng_host_register(address, bytes, flags & 7u);
}

hipError_t hipHostUnregister(void *address) {
  HIP_CALL("hipHostUnregister");
  return (hipError_t)eng_host_unregister(address);
}

hipError_t hipHostGetDevicePointer(void **out, void *address, unsigned flags) {
  uint64_t there = 0;
  (void)flags;
  HIP_CALL("hipHostGetDevicePointer");
  const int code = eng_host_address(&there, address);
  if (code == ENG_OK) *out = (void *)(uintptr_t)there;
  return (hipError_t)code;
}

/* ---------------------------------------------------------------- copies */

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, void *src, size_t bytes, hipStream_t stream) {
  HIP_CALL("hipMemcpyHtoDAsync");
  return (hipError_t)eng_copy(ENG_H2D, dst, src, bytes, stream, false);
}

hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t bytes, hipStream_t stream) {
  HIP_CALL("hipMemcpyDtoHAsync");
  return (hipError_t)eng_copy(ENG_D2H, dst, src, bytes, stream, false);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t bytes, hipStream_t stream) {
  HIP_CALL("hipMemcpyDtoDAsync");
  return (hipError_t)eng_copy(ENG_D2D, dst, src, bytes, stream, false);
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, void *src, size_t bytes) {
  HIP_CALL("hipMemcpyHtoD");
  return (hipError_t)eng_copy(ENG_H2D, dst, src, bytes, NULL, true);
}

hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t bytes) {
  HIP_CALL("hipMemcpyDtoH");
  return (hipError_t)eng_copy(ENG_D2H, dst, src, bytes, NULL, true);
}

static eng_copy_kind kind_of(hipMemcpyKind kind) {
  switch (kind) {
  case hipMemcpyHostToHost: return ENG_H2H;
  case hipMemcpyHostToDevice: return ENG_H2D;
  case hipMemcpyDeviceToHost: return ENG_D2H;
  case hipMemcpyDeviceToDevice: return ENG_D2D;
  default: return ENG_COPY_ANY;
  }
}

hipError_t hipMemcpy(void *dst, const void *src, size_t bytes, hipMemcpyKind kind) {
  HIP_CALL("hipMemcpy");
  return (hipError_t)eng_copy(kind_of(kind), dst, src, bytes, NULL, true);
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  HIP_CALL("hipMemcpyAsync");
  return (hipError_t)eng_copy(kind_of(kind), dst, src, bytes, stream, false);
}

hipError_t hipMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t bytes,
                              hipStream_t stream) {
  eng_context *to = NULL, *from = NULL;
  HIP_CALL("hipMemcpyPeerAsync");
  int code = hip_context(dst_device, &to);
  if (code == ENG_OK) code = hip_context(src_device, &from);
  return (hipError_t)(code == ENG_OK ? eng_copy_peer(to, dst, from, src, bytes, stream, false) : code);
}

hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int word, size_t words, hipStream_t stream) {
  HIP_CALL("hipMemsetD32Async");
  return (hipError_t)eng_fill(hip_number(dst), (uint32_t)word, 4, words, stream, false);
}

hipError_t hipMemsetAsync(void *dst, int value, size_t bytes, hipStream_t stream) {
  HIP_CALL("hipMemsetAsync");
  return (hipError_t)eng_fill(hip_number(dst), (uint32_t)value & 0xffu, 1, bytes, stream, false);
}
