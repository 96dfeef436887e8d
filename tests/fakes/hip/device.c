/* HIP's double: devices, what they are, the device that a thread is at, and texts of results. */
#include "hip.h"

#include "../fake_gpu.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static eng_context *contexts[FAKE_HIP_DEVICES];
static _Thread_local int at;

/* ---------------------------------------------------------------- for the other files */

int fake_gpu_live(const char *kind);

/* HIP has no call that ends a device's context. At the process's end those in which nothing is left go, so that the
 * report shows what is left in the others. */
static void at_exit(void) {
  static const char *const kinds[] = {"allocations", "host", "streams", "events", "modules", "graphs", "execs"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (fake_gpu_live(kinds[i]) != 0) return;
  }
  for (int i = 0; i < FAKE_HIP_DEVICES; i++) {
    if (contexts[i] != NULL) eng_primary_release(i);
  }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void watch_exit(void) {
  atexit(at_exit);
}

int hip_context(int device, eng_context **out) {
  int code = ENG_OK;
  if (device < 0 || device >= eng_device_count() || device >= FAKE_HIP_DEVICES) return ENG_INVALID_DEVICE;
  pthread_once(&once, watch_exit);
  pthread_mutex_lock(&lock);
  if (contexts[device] == NULL) code = eng_primary_retain(device, &contexts[device]);
  *out = contexts[device];
  pthread_mutex_unlock(&lock);
  return code;
}

int hip_here(void) {
  eng_context *ctx = NULL;
  const int code = hip_context(at, &ctx);
  return code != ENG_OK || eng_current() == ctx ? code : eng_current_set(ctx);
}

/* Code of gfx90a runs on gfx90a:sramecc+:xnack-; that of gfx90a:xnack- only where the device has that, or does not
 * say. */
static bool fits(const char *image, const char *device) {
  const size_t base = strcspn(image, ":");
  if (base != strcspn(device, ":") || strncmp(image, device, base) != 0) return false;
  for (const char *at_feature = image + base; *at_feature == ':';) {
    const size_t length = strcspn(at_feature + 1, ":");
    char wanted[32];
    snprintf(wanted, sizeof wanted, "%.*s", (int)length, at_feature + 1);
    if (length > 1 && strstr(device + base, wanted) == NULL) {
      wanted[length - 1] = '\0'; /* the same feature with the other sign */
      if (strstr(device + base, wanted) != NULL) return false;
    }
    at_feature += 1 + length;
  }
  return true;
}

const eng_flavour eng_flavour_own = {.name = "hip", .arch = FAKE_HIP_ARCH, .fits = fits};

/* ---------------------------------------------------------------- HIP */
#pragma GCC visibility push(default)

hipError_t hipInit(unsigned flags) {
  (void)flags;
  ENG_CALL_EARLY("hipInit");
  return (hipError_t)eng_init();
}

hipError_t hipDriverGetVersion(int *out) {
  ENG_CALL_EARLY("hipDriverGetVersion");
#ifdef FAKE_HIP_5
  *out = 50221153;
#else
  *out = 60342134;
#endif
  return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int *out) {
  return hipDriverGetVersion(out);
}

hipError_t hipGetDeviceCount(int *out) {
  ENG_CALL_EARLY("hipGetDeviceCount");
  const int code = eng_init();
  *out = code == ENG_OK ? eng_device_count() : 0;
  return (hipError_t)code;
}

hipError_t hipDeviceGet(hipDevice_t *out, int ordinal) {
  HIP_CALL_PLAIN("hipDeviceGet");
  if (eng_device_get(ordinal) == NULL) return hipErrorInvalidDevice;
  *out = ordinal;
  return hipSuccess;
}

hipError_t hipDeviceGetName(char *out, int bytes, hipDevice_t device) {
  HIP_CALL_PLAIN("hipDeviceGetName");
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return hipErrorInvalidDevice;
  snprintf(out, (size_t)bytes, "%s", d->name);
  return hipSuccess;
}

hipError_t hipDeviceTotalMem(size_t *out, hipDevice_t device) {
  HIP_CALL_PLAIN("hipDeviceTotalMem");
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return hipErrorInvalidDevice;
  *out = d->memory;
  return hipSuccess;
}

hipError_t hipDeviceGetUuid(hipUUID *out, hipDevice_t device) {
  HIP_CALL_PLAIN("hipDeviceGetUuid");
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return hipErrorInvalidDevice;
  memcpy(out->bytes, d->uuid, sizeof out->bytes);
  return hipSuccess;
}

hipError_t hipDeviceGetPCIBusId(char *out, int bytes, int device) {
  HIP_CALL_PLAIN("hipDeviceGetPCIBusId");
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return hipErrorInvalidDevice;
  snprintf(out, (size_t)bytes, "%s", d->pci);
  return hipSuccess;
}

/* Lanes of a wavefront: 64 up to gfx9, 32 from gfx10 on. */
static int wavefront(const eng_device *d) {
  return strncmp(d->arch, "gfx", 3) == 0 && strcspn(d->arch + 3, ":") >= 4 ? 32 : 64;
}

static int integrated(void) {
  const char *setting = getenv("FAKE_GPU_INTEGRATED");
  return setting != NULL && setting[0] == '1';
}

hipError_t hipDeviceGetAttribute(int *out, hipDeviceAttribute_t attribute, int device) {
  HIP_CALL_PLAIN("hipDeviceGetAttribute");
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return hipErrorInvalidDevice;
  switch (attribute) {
  case hipDeviceAttributeCanMapHostMemory: *out = 1; break;
  case hipDeviceAttributeIntegrated: *out = integrated(); break;
  case hipDeviceAttributeMaxThreadsPerBlock: *out = 1024; break;
  case hipDeviceAttributeMultiprocessorCount: *out = 4; break;
  case hipDeviceAttributeMaxSharedMemoryPerBlock: *out = 65536; break;
  case hipDeviceAttributeWarpSize: *out = wavefront(d); break;
  case hipDeviceAttributeMemoryPoolsSupported: *out = d->pools; break;
  case hipDeviceAttributeManagedMemory: *out = 1; break;
  case hipDeviceAttributeMaxGridDimX: *out = 2147483647; break;
  case hipDeviceAttributePciBusId: *out = device + 1; break;
  default: return hipErrorInvalidValue;
  }
  return hipSuccess;
}

hipError_t hipDeviceCanAccessPeer(int *out, int device, int peer) {
  HIP_CALL_PLAIN("hipDeviceCanAccessPeer");
  if (eng_device_get(device) == NULL || eng_device_get(peer) == NULL) return hipErrorInvalidDevice;
  *out = eng_device_peer(device, peer);
  return hipSuccess;
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  eng_context *other = NULL;
  (void)flags;
  HIP_CALL("hipDeviceEnablePeerAccess");
  const int code = hip_context(peer, &other);
  return (hipError_t)(code == ENG_OK ? eng_peer_enable(other) : code);
}

hipError_t hipDeviceDisablePeerAccess(int peer) {
  eng_context *other = NULL;
  HIP_CALL("hipDeviceDisablePeerAccess");
  const int code = hip_context(peer, &other);
  return (hipError_t)(code == ENG_OK ? eng_peer_disable(other) : code);
}

hipError_t hipGetDevice(int *out) {
  HIP_CALL_PLAIN("hipGetDevice");
  *out = at;
  return hipSuccess;
}

hipError_t hipSetDevice(int device) {
  HIP_CALL_PLAIN("hipSetDevice");
  if (eng_device_get(device) == NULL) return hipErrorInvalidDevice;
  at = device;
  return (hipError_t)hip_here();
}

hipError_t hipDeviceSynchronize(void) {
  HIP_CALL("hipDeviceSynchronize");
  return (hipError_t)eng_context_sync();
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  HIP_CALL("hipDeviceGetStreamPriorityRange");
  eng_priorities(least, greatest);
  return hipSuccess;
}

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *all_bytes) {
  HIP_CALL("hipMemGetInfo");
  return (hipError_t)eng_memory_info(free_bytes, all_bytes);
}

/* ---------------------------------------------------------------- properties */

/* The struct of the version whose headers are not here, as far as it matters: AMD's published layout, where the name
 * of the architecture lies between what stands before and behind it. The other version's is that of the headers. */
#if HIP_VERSION_MAJOR < 6
typedef struct properties_6 {
  char name[256];
  unsigned char between[1160 - 256];
  char gcnArchName[256];
  unsigned char behind[1472 - 1160 - 256];
} properties_6;
typedef hipDeviceProp_t properties_5;
#else
typedef hipDeviceProp_t properties_6;
typedef struct properties_5 {
  char name[256];
  unsigned char between[396 - 256];
  char gcnArchName[256];
  unsigned char behind[792 - 396 - 256];
} properties_5;
#undef hipGetDeviceProperties
#endif
_Static_assert(sizeof(properties_6) == 1472 && offsetof(properties_6, gcnArchName) == 1160, "HIP 6's properties");
_Static_assert(sizeof(properties_5) == 792 && offsetof(properties_5, gcnArchName) == 396, "HIP 5's properties");

#define FILL(type, out, device) \
  do { \
    const eng_device *d = eng_device_get(device); \
    if (d == NULL) return hipErrorInvalidDevice; \
    type *p = (type *)(out); \
    memset(p, 0, sizeof *p); \
    snprintf(p->name, sizeof p->name, "%s", d->name); \
    snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s", d->arch); \
    return hipSuccess; \
  } while (0)

#if HIP_VERSION_MAJOR < 6
hipError_t hipGetDeviceProperties(hipDeviceProp_t *out, int device)
#else
hipError_t hipGetDeviceProperties(void *out, int device);
hipError_t hipGetDeviceProperties(void *out, int device)
#endif
{
  HIP_CALL_PLAIN("hipGetDeviceProperties");
  FILL(properties_5, out, device);
}

#ifndef FAKE_HIP_5
#if HIP_VERSION_MAJOR < 6
hipError_t hipGetDevicePropertiesR0600(void *out, int device);
hipError_t hipGetDevicePropertiesR0600(void *out, int device)
#else
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *out, int device)
#endif
{
  HIP_CALL_PLAIN("hipGetDevicePropertiesR0600");
  FILL(properties_6, out, device);
}
#endif

/* ---------------------------------------------------------------- results */

static const struct {
  hipError_t code;
  const char *name, *words;
} results[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorInvalidContext, "hipErrorInvalidContext", "invalid device context"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {hipErrorPeerAccessUnsupported, "hipErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
    {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {hipErrorPeerAccessNotEnabled, "hipErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {hipErrorContextIsDestroyed, "hipErrorContextIsDestroyed", "context is destroyed"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {hipErrorGraphExecUpdateFailure, "hipErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints"},
};

const char *hipGetErrorName(hipError_t code) {
  for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
    if (results[i].code == code) return results[i].name;
  }
  return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t code) {
  for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
    if (results[i].code == code) return results[i].words;
  }
  return "unknown error";
}
