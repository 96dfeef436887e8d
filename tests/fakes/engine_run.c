/* Kernels on PoCL, by libOpenCL: one context on its first device, a queue for each thread of a stream, and device
 * memory handed on by address. Without OpenCL's headers, or with FAKE_GPU_NO_KERNELS, there are no kernels. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "engine_foreign.h"
#include "plugins/common/kernels/params.h"

#include <dlfcn.h>
#include <stdio.h>

#ifdef FAKE_GPU_OPENCL
#include <CL/cl.h>

#define CL_CALLS(X) \
  X(clGetPlatformIDs) \
  X(clGetPlatformInfo) \
  X(clGetDeviceIDs) \
  X(clCreateContext) \
  X(clCreateCommandQueue) \
  X(clReleaseCommandQueue) \
  X(clCreateProgramWithSource) \
  X(clBuildProgram) \
  X(clGetProgramBuildInfo) \
  X(clReleaseProgram) \
  X(clCreateKernelsInProgram) \
  X(clGetKernelInfo) \
  X(clGetKernelArgInfo) \
  X(clReleaseKernel) \
  X(clGetKernelWorkGroupInfo) \
  X(clSetKernelArg) \
  X(clSetKernelArgSVMPointer) \
  X(clEnqueueNDRangeKernel) \
  X(clFinish)

static struct {
#define CL_MEMBER(name) __typeof__(name) *name;
  CL_CALLS(CL_MEMBER)
#undef CL_MEMBER
  cl_context context;
  cl_device_id device;
  char words[160]; /* why it cannot be used; "": it can */
} cl;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---------------------------------------------------------------- opening */

static bool load_calls(void) {
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  bool whole = library != NULL;
#define CL_LOAD(name) \
  if (whole) { \
    void *symbol = dlsym(library, #name); \
    memcpy(&cl.name, &symbol, sizeof symbol); \
    whole = symbol != NULL; \
  }
  CL_CALLS(CL_LOAD)
#undef CL_LOAD
  return whole;
}

static void open_pocl(void) {
  cl_platform_id platforms[8];
  cl_uint n = 0;
  cl_int code = CL_SUCCESS;
  setenv("POCL_DEVICES", "pthread", 0);
  if (!load_calls() || cl.clGetPlatformIDs(8, platforms, &n) != CL_SUCCESS) {
    snprintf(cl.words, sizeof cl.words, "libOpenCL.so.1 with PoCL is needed to run kernels");
    return;
  }
  for (cl_uint i = 0; i < n && i < 8 && cl.device == NULL; i++) {
    char name[64] = "";
    cl.clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL);
    if (strstr(name, "Portable Computing Language") != NULL)
      cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &cl.device, NULL);
  }
  if (cl.device != NULL) cl.context = cl.clCreateContext(NULL, 1, &cl.device, NULL, NULL, &code);
  if (cl.device == NULL || code != CL_SUCCESS)
    snprintf(cl.words, sizeof cl.words, "no device of PoCL's can be had to run kernels (code %d)", code);
}

static bool is_open(char **log) {
  pthread_once(&once, open_pocl);
  if (cl.words[0] == '\0') return true;
  if (log != NULL) *log = strdup(cl.words);
  return false;
}

/* ---------------------------------------------------------------- programs */

void *eng_program_build(const char *source, const char *options, char **log) {
  char words[1024];
  cl_int code = CL_SUCCESS;
  if (!is_open(log)) return NULL;
  cl_program program = cl.clCreateProgramWithSource(cl.context, 1, &source, NULL, &code);
  if (code != CL_SUCCESS) return NULL;
  snprintf(words, sizeof words, "-cl-std=CL1.2 -cl-kernel-arg-info %s", options);
  code = cl.clBuildProgram(program, 1, &cl.device, words, NULL, NULL);
  if (code == CL_SUCCESS) return program;
  size_t bytes = 0;
  cl.clGetProgramBuildInfo(program, cl.device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
  *log = calloc(1, bytes + 1);
  if (*log != NULL) cl.clGetProgramBuildInfo(program, cl.device, CL_PROGRAM_BUILD_LOG, bytes, *log, NULL);
  cl.clReleaseProgram(program);
  return NULL;
}

void eng_program_free(void *program) {
  cl.clReleaseProgram(program);
}

/* ---------------------------------------------------------------- parameters */

/* Bytes of a type that is passed by value; 0: unknown. */
static unsigned type_bytes(const char *type) {
  static const struct {
    const char *name;
    unsigned bytes;
  } types[] = {{"char", 1},    {"uchar", 1},  {"schar", 1},  {"short", 2},  {"ushort", 2}, {"half", 2},
               {"int", 4},     {"uint", 4},   {"float", 4},  {"long", 8},   {"ulong", 8},  {"double", 8},
               {"size_t", 8},  {"IDX", 0},
#define OWN(name) {#name, sizeof(name)}
               OWN(k_flat),    OWN(k_walk),   OWN(k_gather), OWN(k_pad),    OWN(k_along),  OWN(k_resize),
               OWN(k_matmul),  OWN(k_conv),   OWN(k_pool),   OWN(k_rows),   OWN(k_reduce), OWN(k_norm),
               OWN(k_fused),   OWN(k_select), OWN(k_lines),  OWN(k_scaled), OWN(k_loss),   OWN(k_quantize),
               OWN(k_general), OWN(k_signal), OWN(k_narrow), OWN(k_random), OWN(k_batch)};
#undef OWN
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(types[i].name, type) == 0) return types[i].bytes;
  }
  return 0;
}

static int read_param(eng_code *code, cl_uint i, char *log, size_t log_bytes) {
  cl_kernel_arg_address_qualifier where = CL_KERNEL_ARG_ADDRESS_PRIVATE;
  char type[128] = "";
  cl.clGetKernelArgInfo(code->kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where, NULL);
  cl.clGetKernelArgInfo(code->kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, NULL);
  const bool pointer = where == CL_KERNEL_ARG_ADDRESS_GLOBAL || where == CL_KERNEL_ARG_ADDRESS_CONSTANT;
  const unsigned bytes = pointer ? 8 : type_bytes(type);
  if (bytes > 0) return eng_code_param(code, bytes, pointer) ? ENG_OK : ENG_OUT_OF_MEMORY;
  if (log != NULL && log_bytes > 0)
    snprintf(log, log_bytes, "parameter %u of %s has the type %s, whose size this double does not know", i, code->name,
             type);
  return ENG_INVALID_IMAGE;
}

static int read_kernel(cl_kernel kernel, eng_code ***out, size_t *count, char *log, size_t log_bytes) {
  char name[256] = "";
  cl_uint n = 0;
  size_t group = 1024;
  cl_ulong local = 0;
  cl.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
  cl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof n, &n, NULL);
  cl.clGetKernelWorkGroupInfo(kernel, cl.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof group, &group, NULL);
  cl.clGetKernelWorkGroupInfo(kernel, cl.device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
  eng_code *code = eng_code_new(name, strlen(name));
  if (code == NULL) {
    cl.clReleaseKernel(kernel);
    return ENG_OUT_OF_MEMORY;
  }
  code->kernel = kernel;
  code->shared_bytes = (int)local;
  if (group < 1024) code->max_threads = (int)group;
  int failed = ENG_OK;
  for (cl_uint i = 0; i < n && failed == ENG_OK; i++) failed = read_param(code, i, log, log_bytes);
  if (failed == ENG_OK) return eng_code_list(out, count, code) ? ENG_OK : ENG_OUT_OF_MEMORY;
  eng_code_drop(code);
  return failed;
}

int eng_program_codes(void *program, eng_code ***out, size_t *count, char *log, size_t log_bytes) {
  cl_kernel kernels[256];
  cl_uint n = 0;
  int failed = ENG_OK;
  if (cl.clCreateKernelsInProgram(program, 256, kernels, &n) != CL_SUCCESS) return ENG_INVALID_IMAGE;
  for (cl_uint i = 0; i < n; i++) {
    if (failed == ENG_OK) failed = read_kernel(kernels[i], out, count, log, log_bytes);
    else cl.clReleaseKernel(kernels[i]);
  }
  return failed;
}

void eng_kernel_free(void *kernel) {
  cl.clReleaseKernel(kernel);
}

/* ---------------------------------------------------------------- running */

static cl_int set_args(const eng_code *code, const char *args) {
  cl_int failed = CL_SUCCESS;
  for (size_t i = 0; i < code->n_params && failed == CL_SUCCESS; i++) {
    const char *at = args + code->at[i];
    void *pointer = NULL;
    if (code->params[i].pointer) memcpy(&pointer, at, sizeof pointer);
    failed = code->params[i].pointer ? cl.clSetKernelArgSVMPointer(code->kernel, (cl_uint)i, pointer)
                                     : cl.clSetKernelArg(code->kernel, (cl_uint)i, code->params[i].bytes, at);
  }
  return failed;
}

static cl_int run_kernel(eng_code *code, const eng_work *work, eng_queue *queue) {
  size_t global[3], local[3];
  cl_int failed = CL_SUCCESS;
  if (queue->handle == NULL) queue->handle = cl.clCreateCommandQueue(cl.context, cl.device, 0, &failed);
  if (failed != CL_SUCCESS) return failed;
  for (int d = 0; d < 3; d++) {
    local[d] = work->kernel.block[d];
    global[d] = local[d] * work->kernel.grid[d];
  }
  const cl_uint dims = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
  pthread_mutex_lock(&code->lock);
  failed = set_args(code, work->kernel.args);
  if (failed == CL_SUCCESS)
    failed = cl.clEnqueueNDRangeKernel(queue->handle, code->kernel, dims, NULL, global, local, 0, NULL, NULL);
  pthread_mutex_unlock(&code->lock);
  queue->pending = queue->pending || failed == CL_SUCCESS;
  return failed;
}

int eng_queue_finish(eng_queue *queue) {
  if (!queue->pending) return ENG_OK;
  queue->pending = false;
  return cl.clFinish(queue->handle) == CL_SUCCESS ? ENG_OK : ENG_LAUNCH_FAILED;
}

void eng_queue_close(eng_queue *queue) {
  if (queue->handle != NULL) cl.clReleaseCommandQueue(queue->handle);
}

#else

void *eng_program_build(const char *source, const char *options, char **log) {
  (void)source, (void)options;
  *log = strdup("this double was built without OpenCL's headers, and runs no kernels");
  return NULL;
}

void eng_program_free(void *program) {
  (void)program;
}

int eng_program_codes(void *program, eng_code ***out, size_t *count, char *log, size_t log_bytes) {
  (void)program, (void)out, (void)count, (void)log, (void)log_bytes;
  return ENG_NOT_SUPPORTED;
}

void eng_kernel_free(void *kernel) {
  (void)kernel;
}

int eng_queue_finish(eng_queue *queue) {
  (void)queue;
  return ENG_OK;
}

void eng_queue_close(eng_queue *queue) {
  (void)queue;
}

static int run_kernel(eng_code *code, const eng_work *work, eng_queue *queue) {
  (void)code, (void)work, (void)queue;
  return -1;
}
#endif

/* A C function in place of the kernel, given the place of each argument. */
static int run_native(const eng_code *code, const eng_work *work) {
  const void **args = malloc((code->n_params + 1) * sizeof *args);
  if (args == NULL) return ENG_LAUNCH_FAILED;
  for (size_t i = 0; i < code->n_params; i++) args[i] = work->kernel.args + code->at[i];
  code->native(args, work->kernel.grid, work->kernel.block);
  free(args);
  return ENG_OK;
}

int eng_kernel_run(eng_code *code, const eng_work *work, eng_queue *queue) {
  if (code->native != NULL) {
    const int before = eng_queue_finish(queue);
    return before == ENG_OK ? run_native(code, work) : before;
  }
  const int failed = run_kernel(code, work, queue);
  if (failed == 0) return ENG_OK;
  eng_misuse("PoCL does not run %s: code %d", code->name, failed);
  return ENG_LAUNCH_FAILED;
}
