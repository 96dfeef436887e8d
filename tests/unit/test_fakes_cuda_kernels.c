/* The double of CUDA's driver with that of NVRTC: kernels from source, which PoCL runs, and from PTX, which C functions
 * stand in for. */
#include "fakes_cuda.h"

#ifdef HEDDLE_TEST_FAKE_CUDA
#include <nvrtc.h>

enum { N = 1000, ROOM = 4096 };

/* In the words of plugins/common/kernels. */
static const char source[] =
    "#ifdef __OPENCL_VERSION__\n"
    "#define KERNEL __kernel\n"
    "#define GLOBAL __global\n"
    "#define ITEM ((int)get_global_id(0))\n"
    "#else\n"
    "#define KERNEL extern \"C\" __global__\n"
    "#define GLOBAL\n"
    "#define ITEM ((int)(blockIdx.x * blockDim.x + threadIdx.x))\n"
    "#endif\n"
    "typedef struct k_rows { long rows, n, inner; } k_rows;\n"
    "KERNEL void add(const k_rows p, GLOBAL const float *a, const float b, GLOBAL float *c) {\n"
    "  if (ITEM < p.n) c[ITEM] = a[ITEM] * SCALE + b;\n"
    "}\n";

static void need_pocl(void) {
#if defined(__SANITIZE_THREAD__)
  SKIP("ThreadSanitizer does not know PoCL's locks: this double runs no kernels");
#endif
  setenv("POCL_DEVICES", "pthread", 1);
  setenv("POCL_CACHE_DIR", HEDDLE_TEST_BUILD "/tests/pocl-cache", 1);
}

static nvrtcResult compile(const char *text, const char *arch, nvrtcProgram *program) {
  char option[64];
  snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
  const char *const options[] = {option, "-DSCALE=2", "--fmad=false"};
  assert_int_equal(nvrtcCreateProgram(program, text, "add.cu", 0, NULL, NULL), NVRTC_SUCCESS);
  return nvrtcCompileProgram(*program, 3, options);
}

static char *image_of(const char *arch) {
  nvrtcProgram program;
  size_t bytes = 0;
  assert_int_equal(compile(source, arch, &program), NVRTC_SUCCESS);
  assert_int_equal(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
  char *image = malloc(bytes);
  assert_int_equal(nvrtcGetCUBIN(program, image), NVRTC_SUCCESS);
  assert_int_equal(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  return image;
}

static void a_kernel_runs(void **state) {
  (void)state;
  need_pocl();
  CUdeviceptr a, c;
  CUmodule module;
  CUfunction f;
  CUgraph graph;
  CUgraphExec exec;
  float in[N], out[N], b = 0.5f;
  const int64_t rows[3] = {1, N, 1};
  int most = 0;
  fake_start(1);
  CUstream stream = fake_stream();
  char *image = image_of("sm_90");
  CU(cuModuleLoadData(&module, image));
  free(image);
  CU(cuModuleGetFunction(&f, module, "add"));
  CU(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
  assert_true(most >= 64);
  CU(cuMemAlloc(&a, sizeof in));
  CU(cuMemAlloc(&c, sizeof in));
  for (int i = 0; i < N; i++) in[i] = (float)i;
  CU(cuMemcpyHtoDAsync(a, in, sizeof in, stream));
  void *args[] = {(void *)rows, &a, &b, &c};
  CU(cuLaunchKernel(f, 16, 1, 1, 64, 1, 1, 0, stream, args, NULL));
  b = 100; /* was read by the call */
  CU(cuMemcpyDtoHAsync(out, c, sizeof out, stream));
  for (int i = 0; i < N; i++) assert_true(out[i] == 2.0f * (float)i + 0.5f);

  CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (int i = 0; i < 5; i++) CU(cuLaunchKernel(f, 16, 1, 1, 64, 1, 1, 0, stream, args, NULL));
  CU(cuMemcpyDtoDAsync(a, c, sizeof out, stream));
  CU(cuStreamEndCapture(stream, &graph));
  CU(cuGraphInstantiate(&exec, graph, 0));
  CU(cuGraphLaunch(exec, stream));
  CU(cuMemcpyDtoHAsync(out, a, sizeof out, stream));
  for (int i = 0; i < N; i++) assert_true(out[i] == 2.0f * (float)i + 100.0f);
  assert_int_equal(fake_gpu_calls("kernels"), 6);
  CU(cuGraphDestroy(graph));
  CU(cuGraphExecDestroy(exec));
  CU(cuModuleUnload(module));
  CU(cuMemFree(a));
  CU(cuMemFree(c));
  CU(cuStreamDestroy(stream));
  fake_end(1);
}

static void a_kernel_is_not_given_foreign_memory(void **state) {
  (void)state;
  need_pocl();
  static float own[N];
  CUdeviceptr a = (CUdeviceptr)(uintptr_t)own;
  CUmodule module;
  CUfunction f;
  float b = 0;
  const int64_t rows[3] = {1, N, 1};
  fake_start(0);
  char *image = image_of("sm_80"); /* does not run on sm_90 */
  assert_int_equal(cuModuleLoadData(&module, image), CUDA_ERROR_NO_BINARY_FOR_GPU);
  free(image);
  image = image_of("sm_90");
  CU(cuModuleLoadData(&module, image));
  free(image);
  assert_int_equal(cuModuleGetFunction(&f, module, "sub"), CUDA_ERROR_NOT_FOUND);
  CU(cuModuleGetFunction(&f, module, "add"));
  void *args[] = {(void *)rows, &a, &b, &a};
  assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, args, NULL), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 50000, NULL, args, NULL), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(fake_gpu_misuse(), 0);
  CU(cuLaunchKernel(f, 16, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
  assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(fake_gpu_misuse(), 1);
}

/* A kernel of device 1 reads memory of device 0, first from its pool, which is opened, then from elsewhere. */
static void a_kernel_reaches_another_device_where_it_is_let_in(void **state) {
  (void)state;
  need_pocl();
  CUcontext first = fake_start(0), second;
  CUdeviceptr pooled, plain, out;
  CUmemoryPool pool;
  CUmodule module;
  CUfunction f;
  CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  float b = 0, word = 21;
  const int64_t rows[3] = {1, 1, 1};
  CU(cuMemAllocAsync(&pooled, 4, NULL));
  CU(cuMemAlloc(&plain, 4));
  CU(cuMemcpyHtoD(pooled, &word, 4));
  CU(cuMemcpyHtoD(plain, &word, 4));
  CU(cuDeviceGetDefaultMemPool(&pool, 0));
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = 1;
  CU(cuMemPoolSetAccess(pool, &access, 1));
  CU(cuDevicePrimaryCtxRetain(&second, 1));
  CU(cuCtxSetCurrent(second));
  CU(cuMemAlloc(&out, 4));
  char *image = image_of("sm_90");
  CU(cuModuleLoadData(&module, image));
  free(image);
  CU(cuModuleGetFunction(&f, module, "add"));
  void *args[] = {(void *)rows, &pooled, &b, &out};
  CU(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
  CU(cuMemcpyDtoH(&word, out, 4));
  assert_true(word == 42);
  CU(cuCtxEnablePeerAccess(first, 0));
  args[1] = &plain;
  CU(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
  CU(cuCtxSynchronize());
  assert_int_equal(fake_gpu_misuse(), 0);
  CU(cuCtxDisablePeerAccess(first));
  CU(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
  assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(fake_gpu_misuse(), 1);
}

static void a_compiler_says_what_is_wrong(void **state) {
  (void)state;
  need_pocl();
  nvrtcProgram program;
  char log[ROOM];
  size_t bytes = 0;
  int archs[64], n = 0;
  assert_int_equal(compile("__kernel void f(__global int *x) { x[0] = nothing; }", "sm_90", &program),
                   NVRTC_ERROR_COMPILATION);
  assert_int_equal(nvrtcGetProgramLogSize(program, &bytes), NVRTC_SUCCESS);
  assert_true(bytes > 1 && bytes < ROOM);
  assert_int_equal(nvrtcGetProgramLog(program, log), NVRTC_SUCCESS);
  assert_non_null(strstr(log, "nothing"));
  nvrtcDestroyProgram(&program);
  assert_int_equal(compile(source, "sm_60", &program), NVRTC_ERROR_INVALID_OPTION);
  assert_int_equal(nvrtcGetProgramLog(program, log), NVRTC_SUCCESS);
  assert_non_null(strstr(log, "sm_60"));
  nvrtcDestroyProgram(&program);
  setenv("FAKE_GPU_NVRTC_ARCHS", "75,80", 1);
  assert_int_equal(nvrtcGetNumSupportedArchs(&n), NVRTC_SUCCESS);
  assert_int_equal(nvrtcGetSupportedArchs(archs), NVRTC_SUCCESS);
  assert_int_equal(n, 2);
  assert_int_equal(archs[1], 80);
  assert_int_equal(compile(source, "sm_90", &program), NVRTC_ERROR_INVALID_OPTION);
  nvrtcDestroyProgram(&program);
}

/* ---------------------------------------------------------------- PTX */

#define PTX(target, params) \
  ".version 8.0\n.target " target "\n.address_size 64\n.visible .entry scale(\n" params ")\n{ ret; }\n"
#define PARAMS ".param .u64 scale_param_0,\n.param .f32 scale_param_1,\n.param .align 4 .b8 scale_param_2[4]\n"

static void kernels_of_ptx_are_c_functions(void **state) {
  (void)state;
  CUdeviceptr a;
  CUmodule module;
  CUfunction f;
  float in[4] = {1, 2, 3, 4}, factor = 10;
  unsigned n = 3;
  setenv("FAKE_GPU_KERNELS", HEDDLE_TEST_BUILD "/tests/fakes/cuda/fake_kernels.so", 1);
  fake_start(0);
  CUstream stream = fake_stream();
  CU(cuModuleLoadData(&module, PTX("sm_52", PARAMS)));
  CU(cuModuleGetFunction(&f, module, "scale"));
  CU(cuMemAlloc(&a, sizeof in));
  CU(cuMemcpyHtoD(a, in, sizeof in));
  void *args[] = {&a, &factor, &n};
  CU(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, stream, args, NULL));
  CU(cuMemcpyDtoHAsync(in, a, sizeof in, stream));
  assert_true(in[0] == 10 && in[2] == 30 && in[3] == 4);
  struct {
    CUdeviceptr a;
    float factor;
    unsigned n;
  } packed = {a, 2, 4};
  size_t bytes = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  CU(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, stream, NULL, extra));
  CU(cuMemcpyDtoHAsync(in, a, sizeof in, stream));
  assert_true(in[0] == 20 && in[3] == 8);
  assert_int_equal(fake_gpu_misuse(), 0);
  bytes = 12;
  assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, stream, NULL, extra), CUDA_ERROR_INVALID_VALUE);
  args[1] = NULL;
  assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, stream, args, NULL), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(fake_gpu_misuse(), 2);
}

static void an_image_that_does_not_fit_is_refused(void **state) {
  (void)state;
  CUmodule module;
  char log[256] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)sizeof log};
  fake_start(0);
  assert_int_equal(cuModuleLoadData(&module, "this is no image"), CUDA_ERROR_INVALID_IMAGE);
  assert_int_equal(cuModuleLoadDataEx(&module, PTX("sm_100", PARAMS), 2, options, values),
                   CUDA_ERROR_NO_BINARY_FOR_GPU);
  assert_non_null(strstr(log, "sm_100"));
  assert_int_equal(cuModuleLoadDataEx(&module, PTX("sm_80", ".param .texref x\n"), 2, options, values),
                   CUDA_ERROR_INVALID_PTX);
  assert_non_null(strstr(log, "scale"));
  fake_end(0);
}

CASES(CASE(a_kernel_runs), CASE(a_kernel_is_not_given_foreign_memory),
      CASE(a_kernel_reaches_another_device_where_it_is_let_in), CASE(a_compiler_says_what_is_wrong),
      CASE(kernels_of_ptx_are_c_functions), CASE(an_image_that_does_not_fit_is_refused))
#else
static void it_is_not_built(void **state) {
  (void)state;
  FAKE_ONLY
}
CASES(CASE(it_is_not_built))
#endif
