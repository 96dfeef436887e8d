/* The driver of a GPU as the plugins cuda and rocm share it: CUDA's driver API and HIP have the same calls under two
 * names, so each is declared once here, with the prototype that both have on this ABI (64-bit: an address is an integer
 * or a pointer of the same size, an enum an int), and looked up by the vendor's name. Nothing of the vendors' headers
 * is needed; a test compares this list with them where they are installed. Calls whose prototypes differ are the
 * vendor's own (gpu_vendor in gpu.h).
 *
 * Sources: NVIDIA's CUDA Driver API reference, AMD's HIP API reference. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_DRIVER_H
#define HEDDLE_PLUGINS_COMMON_GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/* An address in a device's memory. */
typedef uint64_t gpu_address;

/* CUmemPoolProps and hipMemPoolProps: what a pool is made of. */
typedef struct gpu_pool_props {
  int kind;    /* GPU_POOL_PINNED, the only one */
  int handles; /* for other processes; 0: none */
  int place;   /* GPU_POOL_DEVICE */
  int device;
  void *security;
  unsigned char rest[64]; /* zero */
} gpu_pool_props;

/* X(member, need, CUDA's symbol, HIP's symbol, arguments): all return int, 0 being success. need: GPU_MUST, without
 * which the driver is refused as too old, by the symbol's name; GPU_MAY, whose member is NULL where there is none.
 * Symbols are those of the versions whose prototype is written here. "" is a call that this vendor has not. */
#define GPU_CALLS(X) \
  X(init, GPU_MUST, "cuInit", "hipInit", (unsigned flags)) \
  X(driver_version, GPU_MUST, "cuDriverGetVersion", "hipDriverGetVersion", (int *out)) \
  X(device_count, GPU_MUST, "cuDeviceGetCount", "hipGetDeviceCount", (int *out)) \
  X(device_get, GPU_MUST, "cuDeviceGet", "hipDeviceGet", (int *out, int ordinal)) \
  X(device_name, GPU_MUST, "cuDeviceGetName", "hipDeviceGetName", (char *out, int bytes, int device)) \
  X(device_memory, GPU_MUST, "cuDeviceTotalMem_v2", "hipDeviceTotalMem", (size_t * out, int device)) \
  X(device_attribute, GPU_MUST, "cuDeviceGetAttribute", "hipDeviceGetAttribute", \
    (int *out, int attribute, int device)) \
  X(device_uuid, GPU_MAY, "cuDeviceGetUuid", "hipDeviceGetUuid", (void *out16, int device)) \
  X(device_uuid_of_part, GPU_MAY, "cuDeviceGetUuid_v2", "", (void *out16, int device)) \
  X(device_pci, GPU_MAY, "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId", (char *out, int bytes, int device)) \
  X(device_can_peer, GPU_MAY, "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer", (int *out, int device, int peer)) \
  X(memory_now, GPU_MUST, "cuMemGetInfo_v2", "hipMemGetInfo", (size_t * free_bytes, size_t * all_bytes)) \
  X(alloc, GPU_MUST, "cuMemAlloc_v2", "hipMalloc", (gpu_address * out, size_t bytes)) \
  X(free, GPU_MUST, "cuMemFree_v2", "hipFree", (gpu_address address)) \
  X(alloc_from, GPU_MAY, "cuMemAllocFromPoolAsync", "hipMallocFromPoolAsync", \
    (gpu_address * out, size_t bytes, void *pool, void *stream)) \
  X(free_async, GPU_MAY, "cuMemFreeAsync", "hipFreeAsync", (gpu_address address, void *stream)) \
  X(pool_create, GPU_MAY, "cuMemPoolCreate", "hipMemPoolCreate", (void **out, const gpu_pool_props *props)) \
  X(pool_destroy, GPU_MAY, "cuMemPoolDestroy", "hipMemPoolDestroy", (void *pool)) \
  X(pool_set, GPU_MAY, "cuMemPoolSetAttribute", "hipMemPoolSetAttribute", (void *pool, int attribute, void *value)) \
  X(pool_trim, GPU_MAY, "cuMemPoolTrimTo", "hipMemPoolTrimTo", (void *pool, size_t keep_bytes)) \
  X(host_alloc, GPU_MUST, "cuMemHostAlloc", "hipHostMalloc", (void **out, size_t bytes, unsigned flags)) \
  X(host_free, GPU_MUST, "cuMemFreeHost", "hipHostFree", (void *address)) \
  X(host_register, GPU_MAY, "cuMemHostRegister_v2", "hipHostRegister", (void *address, size_t bytes, unsigned flags)) \
  X(host_unregister, GPU_MAY, "cuMemHostUnregister", "hipHostUnregister", (void *address)) \
  X(host_address, GPU_MAY, "cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer", \
    (gpu_address * out, void *address, unsigned flags)) \
  X(copy_h2d, GPU_MUST, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", \
    (gpu_address dst, const void *src, size_t bytes, void *stream)) \
  X(copy_d2h, GPU_MUST, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", \
    (void *dst, gpu_address src, size_t bytes, void *stream)) \
  X(copy_d2d, GPU_MUST, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", \
    (gpu_address dst, gpu_address src, size_t bytes, void *stream)) \
  X(fill32, GPU_MUST, "cuMemsetD32Async", "hipMemsetD32Async", \
    (gpu_address dst, unsigned word, size_t words, void *stream)) \
  X(stream_create, GPU_MUST, "cuStreamCreateWithPriority", "hipStreamCreateWithPriority", \
    (void **out, unsigned flags, int priority)) \
  X(stream_priorities, GPU_MAY, "cuCtxGetStreamPriorityRange", "hipDeviceGetStreamPriorityRange", \
    (int *least, int *greatest)) \
  X(stream_destroy, GPU_MUST, "cuStreamDestroy_v2", "hipStreamDestroy", (void *stream)) \
  X(stream_query, GPU_MUST, "cuStreamQuery", "hipStreamQuery", (void *stream)) \
  X(stream_sync, GPU_MUST, "cuStreamSynchronize", "hipStreamSynchronize", (void *stream)) \
  X(stream_wait, GPU_MUST, "cuStreamWaitEvent", "hipStreamWaitEvent", (void *stream, void *event, unsigned flags)) \
  X(stream_context, GPU_MAY, "cuStreamGetCtx", "", (void *stream, void **out)) \
  X(stream_device, GPU_MAY, "", "hipStreamGetDevice", (void *stream, int *out)) \
  X(host_func, GPU_MAY, "cuLaunchHostFunc", "hipLaunchHostFunc", (void *stream, void (*fn)(void *arg), void *arg)) \
  X(stream_callback, GPU_MAY, "cuStreamAddCallback", "hipStreamAddCallback", \
    (void *stream, void (*fn)(void *stream, int code, void *arg), void *arg, unsigned flags)) \
  X(stream_write, GPU_MAY, "cuStreamWriteValue64_v2", "hipStreamWriteValue64", \
    (void *stream, gpu_address address, uint64_t value, unsigned flags)) \
  X(event_create, GPU_MUST, "cuEventCreate", "hipEventCreateWithFlags", (void **out, unsigned flags)) \
  X(event_destroy, GPU_MUST, "cuEventDestroy_v2", "hipEventDestroy", (void *event)) \
  X(event_record, GPU_MUST, "cuEventRecord", "hipEventRecord", (void *event, void *stream)) \
  X(event_record_flags, GPU_MAY, "cuEventRecordWithFlags", "", (void *event, void *stream, unsigned flags)) \
  X(event_query, GPU_MUST, "cuEventQuery", "hipEventQuery", (void *event)) \
  X(event_sync, GPU_MUST, "cuEventSynchronize", "hipEventSynchronize", (void *event)) \
  X(event_elapsed, GPU_MUST, "cuEventElapsedTime", "hipEventElapsedTime", (float *ms, void *from, void *to)) \
  X(module_load, GPU_MUST, "cuModuleLoadData", "hipModuleLoadData", (void **out, const void *image)) \
  X(module_load_log, GPU_MAY, "cuModuleLoadDataEx", "hipModuleLoadDataEx", \
    (void **out, const void *image, unsigned n, int *options, void **values)) \
  X(module_unload, GPU_MUST, "cuModuleUnload", "hipModuleUnload", (void *module)) \
  X(module_function, GPU_MUST, "cuModuleGetFunction", "hipModuleGetFunction", \
    (void **out, void *module, const char *name)) \
  X(function_attribute, GPU_MAY, "cuFuncGetAttribute", "hipFuncGetAttribute", \
    (int *out, int attribute, void *function)) \
  X(function_set, GPU_MAY, "cuFuncSetAttribute", "", (void *function, int attribute, int value)) \
  X(function_load, GPU_MAY, "cuFuncLoad", "", (void *function)) \
  X(launch, GPU_MUST, "cuLaunchKernel", "hipModuleLaunchKernel", \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, void *stream, void **args, void **extra)) \
  X(capture_begin, GPU_MAY, "cuStreamBeginCapture_v2", "hipStreamBeginCapture", (void *stream, int mode)) \
  X(capture_end, GPU_MAY, "cuStreamEndCapture", "hipStreamEndCapture", (void *stream, void **graph)) \
  X(graph_nodes, GPU_MAY, "cuGraphGetNodes", "hipGraphGetNodes", (void *graph, void **nodes, size_t *count)) \
  X(graph_destroy, GPU_MAY, "cuGraphDestroy", "hipGraphDestroy", (void *graph)) \
  X(graph_update, GPU_MAY, "cuGraphExecUpdate", "hipGraphExecUpdate", \
    (void *exec, void *graph, void **error_node, int *result)) \
  X(graph_upload, GPU_MAY, "cuGraphUpload", "hipGraphUpload", (void *exec, void *stream)) \
  X(graph_launch, GPU_MAY, "cuGraphLaunch", "hipGraphLaunch", (void *exec, void *stream)) \
  X(exec_destroy, GPU_MAY, "cuGraphExecDestroy", "hipGraphExecDestroy", (void *exec)) \
  X(thread_capture_mode, GPU_MAY, "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode", \
    (int *mode)) \
  X(pool_get, GPU_MAY, "cuMemPoolGetAttribute", "hipMemPoolGetAttribute", (void *pool, int attribute, void *value)) \
  X(pointer_attribute, GPU_MAY, "cuPointerGetAttribute", "hipPointerGetAttribute", \
    (void *out, int attribute, gpu_address address))

enum { GPU_MUST, GPU_MAY };

enum {
#define GPU_CALL_NUMBER(member, need, cuda, hip, args) GPU_CALL_##member,
  GPU_CALLS(GPU_CALL_NUMBER)
#undef GPU_CALL_NUMBER
      GPU_CALL_COUNT
};

typedef struct gpu_driver {
  void *library; /* of dlopen; never closed, since drivers leave threads behind */
#define GPU_CALL_MEMBER(member, need, cuda, hip, args) int(*member) args;
  GPU_CALLS(GPU_CALL_MEMBER)
#undef GPU_CALL_MEMBER
} gpu_driver;

/* Values that both drivers share. */
enum {
  GPU_CODE_WRONG = 1, /* an argument that is none, such as an address that the driver does not know */
  GPU_CODE_NO_MEMORY = 2,
  GPU_CODE_REGISTERED = 712, /* of host_register: the driver has the page already */
  GPU_STREAM_NON_BLOCKING = 1,
  GPU_EVENT_NO_TIMES = 2,
  GPU_EVENT_EXTERNAL = 1, /* of event_record_flags: a node of a capture */
  GPU_HOST_PORTABLE = 1,
  GPU_HOST_MAPPED = 2,
  GPU_CAPTURE_THREAD_LOCAL = 1,
  GPU_CAPTURE_RELAXED = 2,
  GPU_POOL_PINNED = 1,
  GPU_POOL_DEVICE = 1,
  GPU_POOL_RELEASE_THRESHOLD = 4, /* these three of 64 bits */
  GPU_POOL_RESERVED = 5,
  GPU_POOL_USED = 7,
  GPU_POINTER_DEVICE = 9 /* of pointer_attribute: the device's number */
};

#endif
