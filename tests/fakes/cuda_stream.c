/* The double of CUDA's driver: streams, host functions, events. */
#include "cuda_front.h"

static int create(CUstream *out, unsigned flags, int priority) {
  eng_stream_handle stream = NULL;
  const int code = eng_stream_create(&stream, flags, priority);
  *out = stream;
  return code;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
  ENG_CALL("cuStreamCreate");
  return create(out, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
  ENG_CALL("cuStreamCreateWithPriority");
  return create(out, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  ENG_CALL("cuStreamDestroy_v2");
  return eng_stream_destroy(stream);
}

CUresult cuStreamQuery(CUstream stream) {
  ENG_CALL("cuStreamQuery");
  return eng_stream_query(stream);
}

CUresult cuStreamSynchronize(CUstream stream) {
  ENG_CALL("cuStreamSynchronize");
  return eng_stream_sync(stream);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  ENG_CALL("cuStreamWaitEvent");
  return flags <= 1 ? eng_stream_wait(stream, event_of(event)) : ENG_INVALID_VALUE;
}

CUresult cuStreamGetPriority(CUstream stream, int *out) {
  ENG_CALL("cuStreamGetPriority");
  return eng_stream_priority(stream, out);
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *out) {
  ENG_CALL("cuStreamGetFlags");
  return eng_stream_flags(stream, out);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *out) {
  ENG_CALL("cuStreamGetCtx");
  eng_context *ctx = NULL;
  const int code = eng_stream_context(stream, &ctx);
  *out = (CUcontext)(void *)ctx;
  return code;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg) {
  ENG_CALL("cuLaunchHostFunc");
  return eng_host_func(stream, fn, arg);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  ENG_CALL("cuStreamWriteValue64_v2");
  return flags == 0 ? eng_stream_write(stream, address, value) : ENG_INVALID_VALUE;
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback fn, void *arg, unsigned flags) {
  ENG_CALL("cuStreamAddCallback");
  void (*call)(void *, int, void *) = NULL;
  _Static_assert(sizeof call == sizeof fn, "a function's address is one size");
  __builtin_memcpy(&call, &fn, sizeof call);
  return flags == 0 ? eng_callback(stream, call, arg) : ENG_INVALID_VALUE;
}

/* ---------------------------------------------------------------- events */

CUresult cuEventCreate(CUevent *out, unsigned flags) {
  ENG_CALL("cuEventCreate");
  eng_event *event = NULL;
  const int code = eng_event_create(&event, flags);
  *out = (CUevent)(void *)event;
  return code;
}

CUresult cuEventDestroy_v2(CUevent event) {
  ENG_CALL("cuEventDestroy_v2");
  return eng_event_destroy(event_of(event));
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENG_CALL("cuEventRecord");
  return eng_event_record(event_of(event), stream);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  ENG_CALL("cuEventRecordWithFlags");
  if ((flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags == 0) return eng_event_record(event_of(event), stream);
  return eng_event_record_external(event_of(event), stream);
}

CUresult cuEventQuery(CUevent event) {
  ENG_CALL("cuEventQuery");
  return eng_event_query(event_of(event));
}

CUresult cuEventSynchronize(CUevent event) {
  ENG_CALL("cuEventSynchronize");
  return eng_event_sync(event_of(event));
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
  ENG_CALL("cuEventElapsedTime");
  return eng_event_elapsed(ms, event_of(from), event_of(to));
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to) {
  ENG_CALL("cuEventElapsedTime_v2");
  return eng_event_elapsed(ms, event_of(from), event_of(to));
}
