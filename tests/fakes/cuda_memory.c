/* The double of CUDA's driver: memory, pools, copies, fills. */
#include "cuda_front.h"

#include <string.h>

_Static_assert(sizeof(CUdeviceptr) == sizeof(uint64_t), "a device address is 64 bits");

static int put(CUdeviceptr *out, uint64_t address, int code) {
  if (code == ENG_OK) *out = (CUdeviceptr)address;
  return code;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *all_bytes) {
  ENG_CALL("cuMemGetInfo_v2");
  return eng_memory_info(free_bytes, all_bytes);
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
  ENG_CALL("cuMemAlloc_v2");
  uint64_t address = 0;
  const int code = eng_alloc(&address, bytes);
  return put(out, address, code);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  ENG_CALL("cuMemFree_v2");
  return eng_free(address);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream) {
  ENG_CALL("cuMemAllocAsync");
  uint64_t address = 0;
  const int code = eng_alloc_async(&address, bytes, stream);
  return put(out, address, code);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  ENG_CALL("cuMemFreeAsync");
  return eng_free_async(address, stream);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
  ENG_CALL("cuMemGetAddressRange_v2");
  eng_place place;
  const int code = eng_memory_find(address, &place);
  if (code != ENG_OK || place.kind != 2) return CUDA_ERROR_NOT_FOUND;
  if (base != NULL) *base = place.base;
  if (bytes != NULL) *bytes = place.bytes;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address) {
  ENG_CALL("cuPointerGetAttribute");
  eng_place place;
  const int code = eng_memory_find(address, &place);
  if (code != ENG_OK || place.kind == 0 || attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    return CUDA_ERROR_INVALID_VALUE;
  *(int *)out = place.device;
  return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- pools */

static eng_pool *pool_of(CUmemoryPool pool) {
  return (eng_pool *)(void *)pool;
}

static int default_pool(CUmemoryPool *out, CUdevice device) {
  eng_pool *pool = NULL;
  const int code = eng_pool_default(device, &pool);
  *out = (CUmemoryPool)(void *)pool;
  return code;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
  ENG_CALL("cuDeviceGetDefaultMemPool");
  return default_pool(out, device);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
  ENG_CALL("cuDeviceGetMemPool");
  return default_pool(out, device);
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) {
  static const unsigned char none[sizeof props->reserved];
  ENG_CALL("cuMemPoolCreate");
  eng_pool *pool = NULL;
  if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
      props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->win32SecurityAttributes != NULL ||
      memcmp(props->reserved, none, sizeof none) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const int code = eng_pool_create(props->location.id, &pool);
  if (code == ENG_OK) *out = (CUmemoryPool)(void *)pool;
  return code;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  ENG_CALL("cuMemPoolDestroy");
  return eng_pool_destroy(pool_of(pool));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  ENG_CALL("cuMemAllocFromPoolAsync");
  uint64_t address = 0;
  const int code = eng_alloc_from(&address, bytes, pool_of(pool), stream);
  return put(out, address, code);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  ENG_CALL("cuMemPoolSetAttribute");
  return eng_pool_set(pool_of(pool), (int)attribute, value);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  ENG_CALL("cuMemPoolGetAttribute");
  return eng_pool_get(pool_of(pool), (int)attribute, value);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count) {
  ENG_CALL("cuMemPoolSetAccess");
  int code = ENG_OK;
  for (size_t i = 0; i < count && code == ENG_OK; i++) {
    if (list[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    code = eng_pool_access(pool_of(pool), list[i].location.id, list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  return code;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes) {
  ENG_CALL("cuMemPoolTrimTo");
  return eng_pool_trim(pool_of(pool), keep_bytes);
}

/* ---------------------------------------------------------------- host memory */

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  ENG_CALL("cuMemHostAlloc");
  return eng_host_alloc(out, bytes, flags);
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes) {
  ENG_CALL("cuMemAllocHost_v2");
  return eng_host_alloc(out, bytes, 0);
}

CUresult cuMemFreeHost(void *address) {
  ENG_CALL("cuMemFreeHost");
  return eng_host_free(address);
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags) {
  ENG_CALL("cuMemHostRegister_v2");
  return eng_host_register(address, bytes, flags);
}

CUresult cuMemHostUnregister(void *address) {
  ENG_CALL("cuMemHostUnregister");
  return eng_host_unregister(address);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *address, unsigned flags) {
  ENG_CALL("cuMemHostGetDevicePointer_v2");
  uint64_t found = 0;
  const int code = flags == 0 ? eng_host_address(&found, address) : ENG_INVALID_VALUE;
  return put(out, found, code);
}

/* ---------------------------------------------------------------- copies */

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes) {
  ENG_CALL("cuMemcpyHtoD_v2");
  return eng_copy(ENG_H2D, host_of(dst), src, bytes, NULL, true);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes) {
  ENG_CALL("cuMemcpyDtoH_v2");
  return eng_copy(ENG_D2H, dst, host_of(src), bytes, NULL, true);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  ENG_CALL("cuMemcpyDtoD_v2");
  return eng_copy(ENG_D2D, host_of(dst), host_of(src), bytes, NULL, true);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  ENG_CALL("cuMemcpy");
  return eng_copy(ENG_COPY_ANY, host_of(dst), host_of(src), bytes, NULL, true);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes) {
  ENG_CALL("cuMemcpyPeer");
  return eng_copy_peer(context_of(dst_ctx), host_of(dst), context_of(src_ctx), host_of(src), bytes, NULL, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
  ENG_CALL("cuMemcpyHtoDAsync_v2");
  return eng_copy(ENG_H2D, host_of(dst), src, bytes, stream, false);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  ENG_CALL("cuMemcpyDtoHAsync_v2");
  return eng_copy(ENG_D2H, dst, host_of(src), bytes, stream, false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  ENG_CALL("cuMemcpyDtoDAsync_v2");
  return eng_copy(ENG_D2D, host_of(dst), host_of(src), bytes, stream, false);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  ENG_CALL("cuMemcpyAsync");
  return eng_copy(ENG_COPY_ANY, host_of(dst), host_of(src), bytes, stream, false);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes,
                           CUstream stream) {
  ENG_CALL("cuMemcpyPeerAsync");
  return eng_copy_peer(context_of(dst_ctx), host_of(dst), context_of(src_ctx), host_of(src), bytes, stream, false);
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char word, size_t count) {
  ENG_CALL("cuMemsetD8_v2");
  return eng_fill(dst, word, 1, count, NULL, true);
}

CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned word, size_t count) {
  ENG_CALL("cuMemsetD32_v2");
  return eng_fill(dst, word, 4, count, NULL, true);
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char word, size_t count, CUstream stream) {
  ENG_CALL("cuMemsetD8Async");
  return eng_fill(dst, word, 1, count, stream, false);
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short word, size_t count, CUstream stream) {
  ENG_CALL("cuMemsetD16Async");
  return eng_fill(dst, word, 2, count, stream, false);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned word, size_t count, CUstream stream) {
  ENG_CALL("cuMemsetD32Async");
  return eng_fill(dst, word, 4, count, stream, false);
}
