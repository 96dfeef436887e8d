/* The cuda plugin's own types and calls: what NVIDIA's driver has that AMD's has under another prototype, and the
 * compiler. Everything else is in plugins/common/gpu. */
#ifndef HEDDLE_PLUGINS_CUDA_CUDA_H
#define HEDDLE_PLUGINS_CUDA_CUDA_H

#include "nvrtc.h"

/* Where memory of a pool may be reached from (CUmemAccessDesc). */
typedef struct cuda_access {
  int place, device; /* place 1: a device */
  int how;           /* 3: to read and write */
} cuda_access;

/* X(member, need, symbol, arguments), as GPU_CALLS. */
#define CUDA_CALLS(X) \
  X(context_retain, GPU_MUST, "cuDevicePrimaryCtxRetain", (void **out, int device)) \
  X(context_release, GPU_MUST, "cuDevicePrimaryCtxRelease_v2", (int device)) \
  X(context_create, GPU_MAY, "cuCtxCreate_v2", (void **out, unsigned flags, int device)) \
  X(context_destroy, GPU_MAY, "cuCtxDestroy_v2", (void *context)) \
  X(context_push, GPU_MUST, "cuCtxPushCurrent_v2", (void *context)) \
  X(context_pop, GPU_MUST, "cuCtxPopCurrent_v2", (void **out)) \
  X(context_device, GPU_MAY, "cuCtxGetDevice", (int *out)) \
  X(peer_enable, GPU_MAY, "cuCtxEnablePeerAccess", (void *context, unsigned flags)) \
  X(peer_copy, GPU_MAY, "cuMemcpyPeerAsync", \
    (gpu_address dst, void *dst_context, gpu_address src, void *src_context, size_t bytes, void *stream)) \
  X(pool_access, GPU_MAY, "cuMemPoolSetAccess", (void *pool, const cuda_access *list, size_t count)) \
  X(instantiate, GPU_MAY, "cuGraphInstantiateWithFlags", (void **exec, void *graph, unsigned long long flags)) \
  X(instantiate_old, GPU_MAY, "cuGraphInstantiate_v2", \
    (void **exec, void *graph, void **error_node, char *log, size_t bytes))

/* Which context a device has: the process's, one of its own, or its own only after the process's was lost while other code
 * holds it. */
typedef enum cuda_contexts { CUDA_CONTEXT_AUTO, CUDA_CONTEXT_PRIMARY, CUDA_CONTEXT_OWN } cuda_contexts;

/* What instance->own is. */
typedef struct cuda_own {
#define CUDA_CALL_MEMBER(member, need, symbol, args) int(*member) args;
  CUDA_CALLS(CUDA_CALL_MEMBER)
#undef CUDA_CALL_MEMBER
  cuda_nvrtc *nvrtc;
  cuda_contexts contexts; /* the setting context */
} cuda_own;

static inline const cuda_own *cuda_of(const heddle_pinstance *self) {
  return self->own;
}

extern const char *const cuda_symbols[GPU_CALL_COUNT]; /* symbols.c */

/* context.c */
heddle_status cuda_open(heddle_pinstance *self, heddle_error *err);
void cuda_close(heddle_pinstance *self);
int cuda_context_get(heddle_pdevice *dev);
void cuda_context_put(heddle_pdevice *dev);
int cuda_enter(const heddle_pdevice *dev, gpu_scope *scope);
void cuda_leave(const heddle_pdevice *dev, const gpu_scope *scope);
int cuda_context_device(const heddle_pdevice *dev, void *context);
int cuda_peer_enable(heddle_pdevice *dev, heddle_pdevice *src);
int cuda_peer_copy(heddle_pdevice *dst_dev, gpu_address dst, heddle_pdevice *src_dev, gpu_address src, size_t bytes,
                   void *stream);
int cuda_instantiate(heddle_pinstance *self, void *graph, void **exec);

heddle_status cuda_describe(heddle_pinstance *self, gpu_info *info, heddle_error *err); /* describe.c */

void cuda_code_words(const heddle_pinstance *self, int code, char *buf, size_t bytes); /* status.c */
gpu_fate cuda_fate(int code);

extern const struct gpu_library_vendor cuda_libraries; /* cublaslt.c, cudnn.c */

#endif
