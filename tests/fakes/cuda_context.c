/* The double of CUDA's driver: primary contexts, contexts, the thread's stack of them, peers. */
#include "cuda_front.h"

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  ENG_CALL("cuDevicePrimaryCtxRetain");
  eng_context *ctx = NULL;
  const int code = eng_primary_retain(device, &ctx);
  *out = (CUcontext)(void *)ctx;
  return code;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENG_CALL("cuDevicePrimaryCtxRelease_v2");
  return eng_primary_release(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  ENG_CALL("cuDevicePrimaryCtxReset_v2");
  return eng_primary_reset(device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  ENG_CALL("cuDevicePrimaryCtxGetState");
  if (eng_device_get(device) == NULL) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = eng_primary_active(device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  ENG_CALL("cuDevicePrimaryCtxSetFlags_v2");
  (void)flags;
  return eng_device_get(device) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static int create(CUcontext *out, CUdevice device) {
  eng_context *ctx = NULL;
  const int code = eng_context_create(device, &ctx);
  *out = (CUcontext)(void *)ctx;
  return code;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
  ENG_CALL("cuCtxCreate_v2");
  (void)flags;
  return create(out, device);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  ENG_CALL("cuCtxDestroy_v2");
  return eng_context_destroy(context_of(ctx));
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  ENG_CALL("cuCtxPushCurrent_v2");
  return eng_current_push(context_of(ctx));
}

CUresult cuCtxPopCurrent_v2(CUcontext *out) {
  ENG_CALL("cuCtxPopCurrent_v2");
  eng_context *ctx = NULL;
  const int code = eng_current_pop(&ctx);
  if (out != NULL) *out = (CUcontext)(void *)ctx;
  return code;
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  ENG_CALL("cuCtxSetCurrent");
  return eng_current_set(context_of(ctx));
}

CUresult cuCtxGetCurrent(CUcontext *out) {
  ENG_CALL("cuCtxGetCurrent");
  *out = (CUcontext)(void *)eng_current();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *out) {
  ENG_CALL("cuCtxGetDevice");
  return eng_context_device(out);
}

CUresult cuCtxSynchronize(void) {
  ENG_CALL("cuCtxSynchronize");
  return eng_context_sync();
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  ENG_CALL("cuCtxGetStreamPriorityRange");
  int unused = 0;
  eng_priorities(least != NULL ? least : &unused, greatest != NULL ? greatest : &unused);
  return eng_healthy();
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  ENG_CALL("cuCtxEnablePeerAccess");
  return flags == 0 ? eng_peer_enable(context_of(peer)) : ENG_INVALID_VALUE;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  ENG_CALL("cuCtxDisablePeerAccess");
  return eng_peer_disable(context_of(peer));
}
