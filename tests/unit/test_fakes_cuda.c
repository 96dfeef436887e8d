/* The double of CUDA's driver, as its programs see it: memory and what is wrong with its use, contexts, ordered faults,
 * counts and reports. */
#include "fakes_cuda.h"

#ifdef HEDDLE_TEST_FAKE_CUDA
#include <dlfcn.h>
#include <sys/wait.h>

enum { N = 1000 };

static void bytes_go_there_and_back(void **state) {
  (void)state;
  CUdeviceptr a, b;
  unsigned in[N], out[N];
  fake_start(0);
  CU(cuMemAlloc(&a, sizeof in));
  CU(cuMemAlloc(&b, sizeof in));
  CU(cuMemcpyDtoH(out, a, sizeof out));
  assert_int_equal(out[7], 0xFFFFFFFFu); /* poison */
  for (unsigned i = 0; i < N; i++) in[i] = i * i;
  CU(cuMemcpyHtoD(a, in, sizeof in));
  CU(cuMemcpyDtoD(b, a, sizeof in));
  CU(cuMemsetD32(b + 4, 5, 1));
  CU(cuMemcpyDtoH(out, b, sizeof out));
  in[1] = 5;
  assert_memory_equal(in, out, sizeof in);
  CU(cuMemFree(a));
  CU(cuMemFree(b));
  fake_end(0);
}

static void misuse_of_memory_is_seen(void **state) {
  (void)state;
  CUdeviceptr a;
  char room[64] = {0};
  fake_start(0);
  CU(cuMemAlloc(&a, 64));
  assert_int_equal(cuMemcpyHtoD(a + 1, room, 64), CUDA_ERROR_INVALID_VALUE); /* past its end */
  assert_int_equal(cuMemsetD8(a, 1, 65), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemFree(a + 8), CUDA_ERROR_INVALID_VALUE); /* not where it begins */
  assert_int_equal(fake_gpu_misuse(), 3);
  CU(cuMemFree(a));
  assert_int_equal(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);              /* twice */
  assert_int_equal(cuMemcpyDtoH(room, a, 64), CUDA_ERROR_INVALID_VALUE); /* after its free */
  assert_int_equal(cuMemFree(0x1234567800), CUDA_ERROR_INVALID_VALUE);   /* never allocated */
  assert_int_equal(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)room, room, 64), CUDA_ERROR_INVALID_VALUE); /* not a device's */
  assert_int_equal(fake_gpu_misuse(), 7);
}

/* Device memory is the host's here, so this program can write where a wrong kernel would. */
static void writes_past_an_end_and_after_a_free_are_seen(void **state) {
  (void)state;
  CUdeviceptr a, b;
  fake_start(0);
  CU(cuMemAlloc(&a, 100));
  CU(cuMemAlloc(&b, 100));
  ((char *)(uintptr_t)a)[100] = 1;
  assert_int_equal(fake_gpu_misuse(), 1);
  ((char *)(uintptr_t)a)[100] = (char)0xA5;
  CU(cuMemFree(b));
  ((char *)(uintptr_t)b)[50] = 1;
  assert_int_equal(fake_gpu_misuse(), 2);
}

static void memory_has_a_limit_and_pools_keep_some(void **state) {
  (void)state;
  const cuuint64_t most = UINT64_MAX;
  size_t left = 0, all = 0;
  CUdeviceptr a, b;
  CUmemoryPool pool;
  setenv("FAKE_GPU_MEMORY", "1M", 1);
  fake_start(0);
  CUstream stream = fake_stream();
  assert_int_equal(cuMemAlloc(&a, (1 << 20) + 1), CUDA_ERROR_OUT_OF_MEMORY);
  assert_int_equal(cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
  CU(cuDeviceGetDefaultMemPool(&pool, 0));
  CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (void *)&most));
  CU(cuMemAllocAsync(&a, 3 << 18, stream));
  assert_int_equal(cuMemAllocAsync(&b, 3 << 18, stream), CUDA_ERROR_OUT_OF_MEMORY);
  CU(cuMemFreeAsync(a, stream));
  CU(cuStreamSynchronize(stream));
  CU(cuMemGetInfo(&left, &all));
  assert_int_equal(all, 1 << 20);
  assert_int_equal(left, 1 << 18); /* the pool has the rest */
  CU(cuMemPoolTrimTo(pool, 0));
  CU(cuMemGetInfo(&left, &all));
  assert_int_equal(left, 1 << 20);
  CU(cuStreamDestroy(stream));
  fake_end(0);
}

static void host_memory_is_registered_once(void **state) {
  (void)state;
  static char room[8192];
  void *pinned;
  CUdeviceptr seen;
  fake_start(0);
  CU(cuMemHostAlloc(&pinned, 100, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  CU(cuMemHostGetDevicePointer(&seen, pinned, 0));
  assert_int_equal(seen, (CUdeviceptr)(uintptr_t)pinned);
  CU(cuMemHostRegister(room, 4096, 0));
  assert_int_equal(cuMemHostRegister(room + 4000, 200, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CU(cuMemHostRegister(room + 4096, 4096, 0));
  CU(cuMemHostUnregister(room));
  CU(cuMemHostUnregister(room + 4096));
  CU(cuMemFreeHost(pinned));
  assert_int_equal(fake_gpu_misuse(), 0);
  assert_int_equal(cuMemHostUnregister(room), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  assert_int_equal(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(fake_gpu_misuse(), 2);
}

/* ---------------------------------------------------------------- contexts */

static void a_call_needs_a_context(void **state) {
  (void)state;
  CUcontext mine, popped;
  CUdeviceptr a;
  int n = 0;
  assert_int_equal(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
  CU(cuInit(0));
  assert_int_equal(cuMemAlloc(&a, 8), CUDA_ERROR_INVALID_CONTEXT);
  CU(cuDevicePrimaryCtxRetain(&mine, 0));
  CU(cuCtxPushCurrent(mine));
  CU(cuCtxPopCurrent(&popped));
  assert_ptr_equal(popped, mine);
  assert_int_equal(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
  CU(cuCtxPushCurrent(mine));
  CU(cuDevicePrimaryCtxRelease(0));
  assert_int_equal(cuMemAlloc(&a, 8), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  assert_int_equal(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  assert_int_equal(fake_gpu_misuse(), 5);
}

static void handles_belong_to_a_device(void **state) {
  (void)state;
  CUcontext second;
  CUevent event;
  CUstream stream;
  fake_start(0);
  CU(cuStreamCreate(&stream, 0));
  CU(cuDevicePrimaryCtxRetain(&second, 1));
  CU(cuCtxSetCurrent(second));
  CU(cuEventCreate(&event, 0));
  assert_int_equal(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
  CU(cuStreamSynchronize(stream)); /* a foreign stream may be waited for */
  CU(cuStreamDestroy(stream));
  assert_int_equal(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  CU(cuEventDestroy(event));
  assert_int_equal(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(fake_gpu_misuse(), 3);
}

static void what_a_context_leaves_is_a_leak(void **state) {
  (void)state;
  CUdeviceptr a;
  CUstream stream;
  fake_start(1);
  CU(cuMemAlloc(&a, 8));
  CU(cuStreamCreate(&stream, 0));
  assert_int_equal(fake_gpu_live("allocations"), 1);
  assert_int_equal(fake_gpu_live("streams"), 1);
  CU(cuDevicePrimaryCtxRelease(1));
  assert_int_equal(fake_gpu_misuse(), 2);
  assert_int_equal(fake_gpu_live("allocations"), 0);
}

static void peers_are_let_in(void **state) {
  (void)state;
  CUcontext first = fake_start(0), second;
  CUdeviceptr a, b;
  int can = 0;
  unsigned word = 77;
  CU(cuDeviceCanAccessPeer(&can, 0, 1));
  assert_int_equal(can, 1);
  CU(cuMemAlloc(&a, 4));
  CU(cuMemcpyHtoD(a, &word, 4));
  CU(cuDevicePrimaryCtxRetain(&second, 1));
  CU(cuCtxSetCurrent(second));
  CU(cuMemAlloc(&b, 4));
  CU(cuCtxEnablePeerAccess(first, 0));
  assert_int_equal(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  CUstream stream = fake_stream();
  CU(cuMemcpyPeerAsync(b, second, a, first, 4, stream));
  word = 0;
  CU(cuMemcpyDtoHAsync(&word, b, 4, stream));
  assert_int_equal(word, 77);
  assert_int_equal(fake_gpu_misuse(), 0);
  assert_int_equal(cuMemcpyPeerAsync(b, first, a, second, 4, stream), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(fake_gpu_misuse(), 1);
}

/* ---------------------------------------------------------------- faults */

static void the_nth_call_fails(void **state) {
  (void)state;
  CUdeviceptr a;
  setenv("FAKE_GPU_FAIL", "cuMemAlloc:2:2,cuMemFree_v2:1:999,cuCtxSynchronize:2+:46", 1);
  fake_start(0);
  CU(cuMemAlloc(&a, 8));
  assert_int_equal(cuMemAlloc(&a, 8), CUDA_ERROR_OUT_OF_MEMORY);
  assert_int_equal(cuMemFree(a), CUDA_ERROR_UNKNOWN);
  CU(cuMemFree(a));
  CU(cuCtxSynchronize());
  assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
  assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
  assert_int_equal(fake_gpu_calls("cuMemAlloc_v2"), 2);
  assert_int_equal(fake_gpu_misuse(), 0);
}

static void set_true(void *arg) {
  *(bool *)arg = true;
}

static void a_fault_stays_with_its_context(void **state) {
  (void)state;
  CUcontext second;
  CUdeviceptr a, b;
  bool ran = false;
  setenv("FAKE_GPU_FAULT", "fill:2", 1);
  fake_start(0);
  CUstream stream = fake_stream();
  CU(cuMemAlloc(&a, 8));
  CU(cuMemsetD32Async(a, 1, 2, stream));
  CU(cuStreamSynchronize(stream));
  CU(cuMemsetD32Async(a, 2, 2, stream));
  cuLaunchHostFunc(stream, set_true, &ran); /* 0 or the fault, as it comes */
  assert_int_equal(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(cuMemAlloc(&b, 8), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_false(ran);
  CU(cuDevicePrimaryCtxRetain(&second, 1));
  CU(cuCtxSetCurrent(second));
  CU(cuMemAlloc(&b, 8));
  CU(cuMemsetD32(b, 1, 2));
  CU(cuMemFree(b));
  assert_int_equal(fake_gpu_misuse(), 0);
}

static void a_hung_stream_hangs_alone(void **state) {
  (void)state;
  CUdeviceptr a;
  setenv("FAKE_GPU_HANG", "fill:1", 1);
  fake_start(0);
  CUstream stream = fake_stream(), other = fake_stream();
  CU(cuMemAlloc(&a, 8));
  CU(cuMemsetD32Async(a, 1, 2, stream));
  for (int i = 0; i < 20; i++) {
    fake_nap(1000);
    assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  }
  CU(cuMemsetD32Async(a, 1, 2, other));
  CU(cuStreamSynchronize(other));
}

static void there_may_be_no_device(void **state) {
  (void)state;
  setenv("FAKE_GPU_DEVICES", "0", 1);
  assert_int_equal(cuInit(0), CUDA_ERROR_NO_DEVICE);
  const char *words = NULL;
  CU(cuGetErrorName(CUDA_ERROR_NO_DEVICE, &words));
  assert_string_equal(words, "CUDA_ERROR_NO_DEVICE");
}

/* In a child, before this process has opened anything: what it is left with at its end. */
static void a_strict_process_ends_with_90_and_leaves_a_report(void **state) {
  (void)state;
  char path[] = "/tmp/heddle-fake-XXXXXX", text[8192] = "";
  int status = 0;
  const int file = mkstemp(path);
  assert_true(file >= 0);
  const pid_t child = fork();
  if (child == 0) {
    CUcontext ctx;
    CUdeviceptr a;
    setenv("FAKE_GPU_STRICT", "1", 1);
    setenv("FAKE_GPU_REPORT", path, 1);
    cuInit(0);
    cuDevicePrimaryCtxRetain(&ctx, 0);
    cuCtxSetCurrent(ctx);
    cuMemAlloc(&a, 8);
    cuMemFree(a + 1);
    exit(0);
  }
  waitpid(child, &status, 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 90);
  assert_true(read(file, text, sizeof text - 1) > 0);
  close(file);
  unlink(path);
  assert_non_null(strstr(text, "\"misuse\": 1,"));
  assert_non_null(strstr(text, "\"allocations\": 1"));
  assert_non_null(strstr(text, "\"cuMemFree_v2\": 1"));
}

static void old_drivers_lack_symbols(void **state) {
  (void)state;
  void *old = dlopen(HEDDLE_TEST_BUILD "/tests/fakes/cuda-old/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *ancient = dlopen(HEDDLE_TEST_BUILD "/tests/fakes/cuda-ancient/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  assert_non_null(old);
  assert_non_null(ancient);
  assert_non_null(dlsym(old, "cuStreamCreateWithPriority"));
  assert_null(dlsym(old, "cuMemAllocAsync"));
  assert_null(dlsym(ancient, "cuStreamCreateWithPriority"));
}

#else
static void it_is_not_built(void **state) {
  (void)state;
  FAKE_ONLY
}
#endif

#ifdef HEDDLE_TEST_FAKE_CUDA
CASES(CASE(bytes_go_there_and_back), CASE(misuse_of_memory_is_seen), CASE(writes_past_an_end_and_after_a_free_are_seen),
      CASE(memory_has_a_limit_and_pools_keep_some), CASE(host_memory_is_registered_once), CASE(a_call_needs_a_context),
      CASE(handles_belong_to_a_device), CASE(what_a_context_leaves_is_a_leak), CASE(peers_are_let_in),
      CASE(the_nth_call_fails), CASE(a_fault_stays_with_its_context), CASE(a_hung_stream_hangs_alone),
      CASE(there_may_be_no_device), CASE(a_strict_process_ends_with_90_and_leaves_a_report),
      CASE(old_drivers_lack_symbols))
#else
CASES(CASE(it_is_not_built))
#endif
