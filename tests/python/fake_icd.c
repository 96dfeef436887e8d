/* tests/python/fake_icd.c: an OpenCL driver with one GPU that does nothing but answer wrongly, for
 * test_opencl_drivers.py. The variable FAKE_ICD says how:
 *   platforms  the driver cannot list its platforms        devices   the platform cannot list its devices
 *   answers    every question to the device fails          crash     listing platforms is a wild access
 *   context    no context can be made                      build     programs do not compile, with a log
 *   memory     no buffer can be made                       small     a buffer has 4,096 bytes at most
 *   many       the platform says that it has a million devices
 * Otherwise all of that works, and nothing can be enqueued. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What every object of a driver begins with. */
struct object {
  cl_icd_dispatch *dispatch;
};
static cl_icd_dispatch table;
static struct object platform = {&table}, device = {&table}, context = {&table}, queue = {&table}, program = {&table},
                     memory = {&table}, event = {&table};

static int is(const char *how) {
  const char *mode = getenv("FAKE_ICD");
  return mode != NULL && strcmp(mode, how) == 0;
}

static cl_int answer(const void *data, size_t bytes, size_t room, void *out, size_t *got) {
  if (got != NULL) *got = bytes;
  if (out == NULL) return CL_SUCCESS;
  if (room < bytes) return CL_INVALID_VALUE;
  memcpy(out, data, bytes);
  return CL_SUCCESS;
}

static cl_int words(const char *text, size_t room, void *out, size_t *got) {
  return answer(text, strlen(text) + 1, room, out, got);
}

static cl_int CL_API_CALL platform_ids(cl_uint room, cl_platform_id *out, cl_uint *n) {
  if (is("platforms")) return CL_OUT_OF_HOST_MEMORY;
  if (is("crash")) raise(SIGSEGV);
  if (out != NULL && room > 0) out[0] = (cl_platform_id)&platform;
  if (n != NULL) *n = 1;
  return CL_SUCCESS;
}

static cl_int CL_API_CALL platform_info(cl_platform_id p, cl_platform_info what, size_t room, void *out, size_t *got) {
  (void)p;
  switch (what) {
  case CL_PLATFORM_NAME: return words("Fake", room, out, got);
  case CL_PLATFORM_VERSION: return words("OpenCL 3.0 fake", room, out, got);
  case CL_PLATFORM_VENDOR: return words("a test", room, out, got);
  case CL_PLATFORM_PROFILE: return words("FULL_PROFILE", room, out, got);
  case CL_PLATFORM_ICD_SUFFIX_KHR: return words("FAKE", room, out, got);
  case CL_PLATFORM_EXTENSIONS: return words("cl_khr_icd", room, out, got);
  default: return CL_INVALID_VALUE;
  }
}

static cl_int CL_API_CALL device_ids(cl_platform_id p, cl_device_type type, cl_uint room, cl_device_id *out,
                                     cl_uint *n) {
  (void)p, (void)type;
  if (is("devices")) return CL_OUT_OF_RESOURCES;
  const cl_uint count = is("many") ? 1000000 : 1;
  for (cl_uint i = 0; out != NULL && i < room && i < count; i++) out[i] = (cl_device_id)&device;
  if (n != NULL) *n = count;
  return CL_SUCCESS;
}

#define NUMBER(type, value) \
  do { \
    const type number = (value); \
    return answer(&number, sizeof number, room, out, got); \
  } while (0)

static cl_int CL_API_CALL device_info(cl_device_id d, cl_device_info what, size_t room, void *out, size_t *got) {
  static const unsigned char uuid[16] = "a physical thing";
  static const cl_uint pci[4] = {0, 7, 1, 0};
  (void)d;
  if (is("answers")) return CL_OUT_OF_RESOURCES;
  switch (what) {
  case CL_DEVICE_TYPE: NUMBER(cl_device_type, CL_DEVICE_TYPE_GPU);
  case CL_DEVICE_NAME: return words("  Fake\nGPU ", room, out, got);
  case CL_DRIVER_VERSION: return words("7", room, out, got);
  case CL_DEVICE_EXTENSIONS: return words("cl_khr_device_uuid cl_khr_pci_bus_info", room, out, got);
  case CL_DEVICE_UUID_KHR: return answer(uuid, sizeof uuid, room, out, got);
  case 0x410F: return answer(pci, sizeof pci, room, out, got); /* CL_DEVICE_PCI_BUS_INFO_KHR */
  case CL_DEVICE_GLOBAL_MEM_SIZE: NUMBER(cl_ulong, 1 << 30);
  case CL_DEVICE_MAX_MEM_ALLOC_SIZE: NUMBER(cl_ulong, is("small") ? 4096 : 1 << 29);
  case CL_DEVICE_MAX_COMPUTE_UNITS: NUMBER(cl_uint, 4);
  case CL_DEVICE_MEM_BASE_ADDR_ALIGN: NUMBER(cl_uint, 1024);
  case CL_DEVICE_MAX_WORK_GROUP_SIZE: NUMBER(size_t, 256);
  default: return CL_INVALID_VALUE;
  }
}

static cl_context CL_API_CALL make_context(const cl_context_properties *how, cl_uint n, const cl_device_id *devices,
                                           void(CL_CALLBACK *tell)(const char *, const void *, size_t, void *),
                                           void *user, cl_int *code) {
  (void)how, (void)n, (void)devices, (void)tell, (void)user;
  *code = is("context") ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
  return is("context") ? NULL : (cl_context)&context;
}

static cl_command_queue CL_API_CALL make_queue(cl_context c, cl_device_id d, cl_command_queue_properties how,
                                               cl_int *code) {
  (void)c, (void)d, (void)how;
  *code = CL_SUCCESS;
  return (cl_command_queue)&queue;
}

static cl_mem CL_API_CALL make_buffer(cl_context c, cl_mem_flags flags, size_t bytes, void *host, cl_int *code) {
  (void)c, (void)flags, (void)bytes, (void)host;
  *code = is("memory") ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS;
  return is("memory") ? NULL : (cl_mem)&memory;
}

static cl_program CL_API_CALL make_program(cl_context c, cl_uint n, const char **texts, const size_t *lengths,
                                           cl_int *code) {
  (void)c, (void)n, (void)texts, (void)lengths;
  *code = CL_SUCCESS;
  return (cl_program)&program;
}

static cl_int CL_API_CALL build(cl_program p, cl_uint n, const cl_device_id *devices, const char *options,
                                void(CL_CALLBACK *done)(cl_program, void *), void *user) {
  (void)p, (void)n, (void)devices, (void)options, (void)done, (void)user;
  return is("build") ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

static cl_int CL_API_CALL build_info(cl_program p, cl_device_id d, cl_program_build_info what, size_t room, void *out,
                                     size_t *got) {
  (void)p, (void)d;
  if (what != CL_PROGRAM_BUILD_LOG) return CL_INVALID_VALUE;
  return words("kernel.cl:3:\nthe fake compiler\thas had enough", room, out, got);
}

static cl_int CL_API_CALL program_info(cl_program p, cl_program_info what, size_t room, void *out, size_t *got) {
  (void)p, (void)what, (void)room, (void)out, (void)got;
  return CL_INVALID_VALUE;
}

static cl_int CL_API_CALL marker(cl_command_queue q, cl_uint n, const cl_event *list, cl_event *out) {
  (void)q, (void)n, (void)list;
  if (out != NULL) *out = (cl_event)&event;
  return CL_SUCCESS;
}

static cl_int CL_API_CALL event_info(cl_event e, cl_event_info what, size_t room, void *out, size_t *got) {
  (void)e, (void)what;
  NUMBER(cl_int, CL_COMPLETE);
}

static cl_int CL_API_CALL flush(cl_command_queue q) {
  (void)q;
  return CL_SUCCESS;
}

static cl_int CL_API_CALL drop_context(cl_context x) {
  (void)x;
  return CL_SUCCESS;
}
static cl_int CL_API_CALL drop_memory(cl_mem x) {
  (void)x;
  return CL_SUCCESS;
}
static cl_int CL_API_CALL drop_program(cl_program x) {
  (void)x;
  return CL_SUCCESS;
}
static cl_int CL_API_CALL drop_event(cl_event x) {
  (void)x;
  return CL_SUCCESS;
}

static cl_int CL_API_CALL split(cl_device_id d, const cl_device_partition_property *how, cl_uint room,
                                cl_device_id *out, cl_uint *n) {
  (void)d, (void)how, (void)room, (void)out, (void)n;
  return CL_DEVICE_PARTITION_FAILED;
}

static void *CL_API_CALL address_on(cl_platform_id p, const char *name) {
  (void)p, (void)name;
  return NULL;
}

/* The loader's way in. */
__attribute__((visibility("default"))) void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
  table.clGetPlatformIDs = platform_ids;
  table.clGetPlatformInfo = platform_info;
  table.clGetDeviceIDs = device_ids;
  table.clGetDeviceInfo = device_info;
  table.clCreateSubDevices = split;
  table.clCreateContext = make_context;
  table.clReleaseContext = drop_context;
  table.clCreateCommandQueue = make_queue;
  table.clReleaseCommandQueue = flush;
  table.clCreateBuffer = make_buffer;
  table.clReleaseMemObject = drop_memory;
  table.clCreateProgramWithSource = make_program;
  table.clBuildProgram = build;
  table.clGetProgramBuildInfo = build_info;
  table.clGetProgramInfo = program_info;
  table.clReleaseProgram = drop_program;
  table.clEnqueueMarkerWithWaitList = marker;
  table.clGetEventInfo = event_info;
  table.clReleaseEvent = drop_event;
  table.clFlush = flush;
  table.clFinish = flush;
  table.clGetExtensionFunctionAddressForPlatform = address_on;
  if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return (void *)(size_t)platform_ids;
  if (strcmp(name, "clGetPlatformInfo") == 0) return (void *)(size_t)platform_info;
  return NULL;
}
