/* bench/hand_cuda_driver.c: the driver and its compiler, looked for where the plugin looks for them; one device, its
 * primary context, memory, streams and kernels, each with words when it fails. */
#define _GNU_SOURCE /* dladdr */
#include "hand_cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hand_cuda_calls cu;
static hand_nvrtc_calls nvrtc;
static int device;

/* What NVRTC opens by its name alone when it compiles: from beside it, where the loader does not find it. */
static void open_builtins(void *library) {
  int (*version)(int *major, int *minor) = NULL;
  int major = 0, minor = 0;
  char path[1200];
  Dl_info own;
  void *found = dlsym(library, "nvrtcVersion");
  memcpy(&version, &found, sizeof found);
  if (version == NULL || version(&major, &minor) != 0 || dladdr(found, &own) == 0) return;
  const char *slash = strrchr(own.dli_fname, '/');
  if (slash == NULL || slash - own.dli_fname > 1100) return;
  snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - own.dli_fname), own.dli_fname, major,
           minor);
  (void)dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Of a compiler the newest whose major version is not above most; 0: any. */
static void *open_one(const char *variable, const char *const *names, int most) {
  const char *given = getenv(variable);
  void *library = NULL;
  if (given != NULL && given[0] != '\0') library = dlopen(given, RTLD_NOW | RTLD_LOCAL);
  else
    for (; library == NULL && *names != NULL; names++) {
      int (*version)(int *major, int *minor) = NULL;
      int major = 0, minor = 0;
      library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
      void *found = library != NULL && most > 0 ? dlsym(library, "nvrtcVersion") : NULL;
      memcpy(&version, &found, sizeof found);
      if (version != NULL && version(&major, &minor) == 0 && major > most) library = NULL; /* no code for this driver */
    }
  if (library != NULL) return library;
  const char *why = dlerror();
  fprintf(stderr, "hand_cuda: %s\n", why != NULL ? why : "every NVRTC that is there is newer than the driver's CUDA");
  exit(77);
}

static void fill(void *library, void *slot, const char *symbol) {
  void *found = dlsym(library, symbol);
  if (found == NULL) {
    fprintf(stderr, "hand_cuda: there is no %s: the driver is too old\n", symbol);
    exit(77);
  }
  memcpy(slot, &found, sizeof found);
}

void hand_cu(int code, const char *what) {
  const char *name = NULL;
  if (code == 0) return;
  if (cu.error_name == NULL || cu.error_name(code, &name) != 0 || name == NULL) name = "?";
  fprintf(stderr, "hand_cuda: %s: %s (%d)\n", what, name, code);
  exit(code == 100 ? 77 : 1);
}

int hand_cu_attribute(int attribute) {
  int value = 0;
  hand_cu(cu.device_attribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

void hand_cuda_load(void) {
  static const char *const drivers[] = {"libcuda.so.1", "libcuda.so", NULL};
  static const char *const compilers[] = {
      "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so", NULL};
  void *library = open_one("HEDDLE_CUDA_DRIVER", drivers, 0), *context;
  int version = 0;
#define FILL(member, symbol, args) fill(library, &cu.member, symbol);
  HAND_CUDA_CALLS(FILL)
#undef FILL
  hand_cu(cu.init(0), "cuInit");
  hand_cu(cu.driver_version(&version), "cuDriverGetVersion");
  library = open_one("HEDDLE_CUDA_NVRTC", compilers, version / 1000);
  open_builtins(library);
#define FILL(member, symbol, args) fill(library, &nvrtc.member, symbol);
  HAND_NVRTC_CALLS(FILL)
#undef FILL
  hand_cu(cu.device_get(&device, 0), "cuDeviceGet");
  hand_cu(cu.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
  hand_cu(cu.context_set(context), "cuCtxSetCurrent");
}

static void compiled(void *program, int code, const char *what) {
  size_t bytes = 0;
  if (code == 0) return;
  fprintf(stderr, "hand_cuda: %s: %d\n", what, code);
  char *log = program != NULL && nvrtc.log_bytes(program, &bytes) == 0 ? malloc(bytes + 1) : NULL;
  if (log != NULL && nvrtc.log(program, log) == 0) fprintf(stderr, "%.*s\n", (int)bytes, log);
  exit(1);
}

void *hand_cu_kernel(const char *source, const char *name) {
  char arch[48];
  const char *const options[] = {arch};
  void *program = NULL, *module, *kernel;
  size_t bytes = 0;
  snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%d", hand_cu_attribute(HAND_CUDA_MAJOR),
           hand_cu_attribute(HAND_CUDA_MINOR));
  compiled(NULL, nvrtc.create(&program, source, name, 0, NULL, NULL), "nvrtcCreateProgram");
  compiled(program, nvrtc.compile(program, 1, options), "nvrtcCompileProgram");
  compiled(program, nvrtc.code_bytes(program, &bytes), "nvrtcGetCUBINSize");
  char *image = malloc(bytes);
  if (image == NULL) exit(1);
  compiled(program, nvrtc.code(program, image), "nvrtcGetCUBIN");
  hand_cu(cu.module_load(&module, image), "cuModuleLoadData");
  free(image);
  hand_cu(cu.module_function(&kernel, module, name), "cuModuleGetFunction");
  return kernel;
}

cuda_address hand_cu_alloc(size_t bytes) {
  cuda_address address;
  hand_cu(cu.alloc(&address, bytes), "cuMemAlloc");
  return address;
}

void *hand_cu_pinned(size_t bytes) {
  void *address;
  hand_cu(cu.host_alloc(&address, bytes, 0), "cuMemHostAlloc");
  return address;
}

void *hand_cu_stream(void) {
  void *stream;
  hand_cu(cu.stream_create(&stream, 1, 0), "cuStreamCreateWithPriority");
  return stream;
}

void *hand_cu_event(void) {
  void *event;
  hand_cu(cu.event_create(&event, 2), "cuEventCreate");
  return event;
}
