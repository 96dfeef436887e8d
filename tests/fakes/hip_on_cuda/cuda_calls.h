/* CUDA's driver and NVRTC under HIP on CUDA: their calls, opened at run time. The driver is libcuda.so.1, or what
 * HEDDLE_CUDA_DRIVER names; NVRTC the newest that is found, or HEDDLE_CUDA_NVRTC. */
#ifndef HEDDLE_TESTS_FAKES_HIP_ON_CUDA_CUDA_CALLS_H
#define HEDDLE_TESTS_FAKES_HIP_ON_CUDA_CUDA_CALLS_H

#include "plugins/common/gpu/driver.h"

/* CUmemAccessDesc. */
typedef struct cuda_access {
  int place, device, how;
} cuda_access;

/* X(member, need, symbol, arguments): what both plugins' table has not. */
#define CUDA_MORE(X) \
  X(retain, GPU_MUST, "cuDevicePrimaryCtxRetain", (void **out, int device)) \
  X(release, GPU_MUST, "cuDevicePrimaryCtxRelease_v2", (int device)) \
  X(get_current, GPU_MUST, "cuCtxGetCurrent", (void **out)) \
  X(set_current, GPU_MUST, "cuCtxSetCurrent", (void *ctx)) \
  X(sync, GPU_MUST, "cuCtxSynchronize", (void)) \
  X(enable_peer, GPU_MUST, "cuCtxEnablePeerAccess", (void *peer, unsigned flags)) \
  X(disable_peer, GPU_MUST, "cuCtxDisablePeerAccess", (void *peer)) \
  X(copy_any, GPU_MUST, "cuMemcpyAsync", (gpu_address dst, gpu_address src, size_t bytes, void *stream)) \
  X(context_device, GPU_MUST, "cuCtxGetDevice", (int *out)) \
  X(copy_peer, GPU_MUST, "cuMemcpyPeerAsync", \
    (gpu_address dst, void *dst_ctx, gpu_address src, void *src_ctx, size_t bytes, void *stream)) \
  X(fill8, GPU_MUST, "cuMemsetD8Async", (gpu_address dst, unsigned char word, size_t words, void *stream)) \
  X(fill16, GPU_MUST, "cuMemsetD16Async", (gpu_address dst, unsigned short word, size_t words, void *stream)) \
  X(alloc_async, GPU_MAY, "cuMemAllocAsync", (gpu_address * out, size_t bytes, void *stream)) \
  X(pool_default, GPU_MAY, "cuDeviceGetDefaultMemPool", (void **out, int device)) \
  X(pool_access, GPU_MAY, "cuMemPoolSetAccess", (void *pool, const cuda_access *list, size_t count)) \
  X(instantiate, GPU_MUST, "cuGraphInstantiateWithFlags", (void **out, void *graph, unsigned long long flags))

typedef struct cuda_calls {
  gpu_driver d;
#define CUDA_MEMBER(member, need, symbol, args) int(*member) args;
  CUDA_MORE(CUDA_MEMBER)
#undef CUDA_MEMBER
} cuda_calls;

/* A call of the driver's; without a driver there is no device. CUDA_MAY: one that older drivers lack. */
#define CUDA(call) (cuda_get() != NULL ? cuda_get()->call : ENG_NO_DEVICE)
#define CUDA_MAY(member, args) \
  (cuda_get() != NULL && cuda_get()->d.member != NULL ? cuda_get()->d.member args : ENG_NOT_SUPPORTED)

/* NULL where there is no driver with all of them: the reason is on stderr, once. Any thread. */
const cuda_calls *cuda_get(void);

#endif
