/* The double of CUDA's driver: start, versions, words of errors, devices. */
#include "cuda_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A cubin runs on the architecture's own family, from its minor version on; PTX on all that is not older. */
static bool fits(const char *image, const char *device) {
  int made = 0, have = 0;
  if (sscanf(device, "sm_%d", &have) != 1) return false;
  if (sscanf(image, "compute_%d", &made) == 1) return made <= have;
  return sscanf(image, "sm_%d", &made) == 1 && made / 10 == have / 10 && made <= have;
}

const eng_flavour eng_flavour_own = {"cuda", "sm_90", fits};

CUresult cuInit(unsigned flags) {
  ENG_CALL_EARLY("cuInit");
  return flags == 0 ? eng_init() : ENG_INVALID_VALUE;
}

CUresult cuDriverGetVersion(int *version) {
  ENG_CALL_EARLY("cuDriverGetVersion");
  const char *setting = getenv("FAKE_GPU_VERSION");
  *version = setting != NULL ? atoi(setting) : CUDA_VERSION;
  return CUDA_SUCCESS;
}

/* NVIDIA's own libraries ask for tables that are described nowhere: NVRTC goes without, and crashes without this call. */
CUresult cuGetExportTable(const void **out, const CUuuid *id) {
  ENG_CALL_EARLY("cuGetExportTable");
  (void)id;
  if (out != NULL) *out = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}

/* ---------------------------------------------------------------- errors */

static const struct {
  CUresult code;
  const char *name, *words;
} errors[] = {
#define ERROR(name, words) \
  { name, #name, words }
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
    ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
    ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing stream"),
    ERROR(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "attempt to terminate a capture sequence from another thread"),
    ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph update was not performed"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

static size_t error_at(CUresult code) {
  size_t i = 0;
  while (i < sizeof errors / sizeof *errors && errors[i].code != code) i++;
  return i;
}

CUresult cuGetErrorName(CUresult code, const char **out) {
  ENG_CALL_EARLY("cuGetErrorName");
  const size_t i = error_at(code);
  *out = i < sizeof errors / sizeof *errors ? errors[i].name : NULL;
  return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **out) {
  ENG_CALL_EARLY("cuGetErrorString");
  const size_t i = error_at(code);
  *out = i < sizeof errors / sizeof *errors ? errors[i].words : NULL;
  return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---------------------------------------------------------------- devices */

CUresult cuDeviceGetCount(int *count) {
  ENG_CALL("cuDeviceGetCount");
  *count = eng_device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENG_CALL("cuDeviceGet");
  *device = ordinal;
  return eng_device_get(ordinal) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
  ENG_CALL("cuDeviceGetName");
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return CUDA_ERROR_INVALID_DEVICE;
  if (bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)bytes, "%s", d->name);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  ENG_CALL("cuDeviceTotalMem_v2");
  const eng_device *d = eng_device_get(device);
  if (d != NULL) *bytes = d->memory;
  return d != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* With FAKE_GPU_MIG devices are parts of one card: the older call gives the card's for each. */
static CUresult uuid_of(CUuuid *uuid, CUdevice device, bool parts) {
  const eng_device *d = eng_device_get(device);
  if (d != NULL) memcpy(uuid, parts || !eng_device_mig() ? d->uuid : eng_device_get(0)->uuid, sizeof d->uuid);
  return d != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  ENG_CALL("cuDeviceGetUuid");
  return uuid_of(uuid, device, false);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  ENG_CALL("cuDeviceGetUuid_v2");
  return uuid_of(uuid, device, true);
}

CUresult cuDeviceGetPCIBusId(char *text, int bytes, CUdevice device) {
  ENG_CALL("cuDeviceGetPCIBusId");
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return CUDA_ERROR_INVALID_DEVICE;
  if (bytes < 13) return CUDA_ERROR_INVALID_VALUE;
  snprintf(text, (size_t)bytes, "%s", d->pci);
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  ENG_CALL("cuDeviceCanAccessPeer");
  if (eng_device_get(device) == NULL || eng_device_get(peer) == NULL) return CUDA_ERROR_INVALID_DEVICE;
  *can = eng_device_peer(device, peer);
  return CUDA_SUCCESS;
}

static int integrated(void) {
  const char *setting = getenv("FAKE_GPU_INTEGRATED");
  return setting != NULL && setting[0] == '1';
}

static int attribute_of(const eng_device *d, CUdevice_attribute attribute) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 49152;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return 166912;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return 167936;
  case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return 65536;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 8;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return 1000000;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 1000000;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 256;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return 4 << 20;
  case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT: return 512;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return d->major;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return d->minor;
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return d->ordinal + 1;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
  case CU_DEVICE_ATTRIBUTE_INTEGRATED: return integrated();
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return d->pools;
  case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
  case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: return 1;
  default: return 0;
  }
}

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device) {
  ENG_CALL("cuDeviceGetAttribute");
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return CUDA_ERROR_INVALID_DEVICE;
  if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  *out = attribute_of(d, attribute);
  return CUDA_SUCCESS;
}
