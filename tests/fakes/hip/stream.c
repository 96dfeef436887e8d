/* HIP's double: streams, what is called from them, and events. */
#include "hip.h"

#include <stdlib.h>

static eng_event *event_of(hipEvent_t event) {
  return (eng_event *)(void *)event;
}

#pragma GCC visibility push(default)

hipError_t hipStreamCreateWithPriority(hipStream_t *out, unsigned flags, int priority) {
  eng_stream_handle stream = NULL;
  HIP_CALL("hipStreamCreateWithPriority");
  const int code = eng_stream_create(&stream, flags, priority);
  if (code == ENG_OK) *out = stream;
  return (hipError_t)code;
}

hipError_t hipStreamCreateWithFlags(hipStream_t *out, unsigned flags) {
  return hipStreamCreateWithPriority(out, flags, 0);
}

hipError_t hipStreamCreate(hipStream_t *out) {
  return hipStreamCreateWithPriority(out, 0, 0);
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  HIP_CALL("hipStreamDestroy");
  return (hipError_t)eng_stream_destroy(stream);
}

hipError_t hipStreamQuery(hipStream_t stream) {
  HIP_CALL("hipStreamQuery");
  return (hipError_t)eng_stream_query(stream);
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  HIP_CALL("hipStreamSynchronize");
  return (hipError_t)eng_stream_sync(stream);
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  (void)flags;
  HIP_CALL("hipStreamWaitEvent");
  return (hipError_t)eng_stream_wait(stream, event_of(event));
}

#ifndef FAKE_HIP_5
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *out); /* of later headers than the oldest */
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *out) {
  int device = 0;
  HIP_CALL("hipStreamGetDevice");
  const int code = eng_stream_device(stream, &device);
  if (code == ENG_OK) *out = device;
  return (hipError_t)code;
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void *arg) {
  HIP_CALL("hipLaunchHostFunc");
  return (hipError_t)eng_host_func(stream, fn, arg);
}
#endif

/* A callback as the caller gave it: its result is an enum of HIP's. */
typedef struct called {
  hipStreamCallback_t fn;
  void *arg;
} called;

static void call(void *stream, int code, void *arg) {
  called *c = arg;
  c->fn(stream, (hipError_t)code, c->arg);
  free(c);
}

hipError_t hipStreamWriteValue64(hipStream_t stream, void *address, uint64_t value, unsigned flags) {
  HIP_CALL("hipStreamWriteValue64");
  return flags == 0 ? (hipError_t)eng_stream_write(stream, (uint64_t)(uintptr_t)address, value) : hipErrorInvalidValue;
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t fn, void *arg, unsigned flags) {
  (void)flags;
  HIP_CALL("hipStreamAddCallback");
  called *c = malloc(sizeof *c);
  if (c == NULL) return hipErrorOutOfMemory;
  *c = (called){fn, arg};
  const int code = eng_callback(stream, call, c);
  if (code != ENG_OK) free(c);
  return (hipError_t)code;
}

/* ---------------------------------------------------------------- events */

hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) {
  eng_event *event = NULL;
  HIP_CALL("hipEventCreateWithFlags");
  const int code = eng_event_create(&event, flags);
  if (code == ENG_OK) *out = (hipEvent_t)(void *)event;
  return (hipError_t)code;
}

hipError_t hipEventCreate(hipEvent_t *out) {
  return hipEventCreateWithFlags(out, 0);
}

hipError_t hipEventDestroy(hipEvent_t event) {
  HIP_CALL("hipEventDestroy");
  return (hipError_t)eng_event_destroy(event_of(event));
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  HIP_CALL("hipEventRecord");
  return (hipError_t)eng_event_record(event_of(event), stream);
}

hipError_t hipEventQuery(hipEvent_t event) {
  HIP_CALL("hipEventQuery");
  return (hipError_t)eng_event_query(event_of(event));
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  HIP_CALL("hipEventSynchronize");
  return (hipError_t)eng_event_sync(event_of(event));
}

hipError_t hipEventElapsedTime(float *ms, hipEvent_t from, hipEvent_t to) {
  HIP_CALL("hipEventElapsedTime");
  return (hipError_t)eng_event_elapsed(ms, event_of(from), event_of(to));
}
