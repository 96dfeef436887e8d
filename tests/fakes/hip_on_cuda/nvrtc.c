/* The compiler of HIP on CUDA: NVRTC, for the first device's architecture, whatever gfx was asked for. */
#include "cuda_calls.h"

#include "../engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvrtc {
  int (*create)(void **out, const char *source, const char *name, int n, const char *const *headers,
                const char *const *names);
  int (*compile)(void *program, int n, const char *const *options);
  int (*destroy)(void **program);
  int (*log_size)(void *program, size_t *out);
  int (*log)(void *program, char *out);
  int (*cubin_size)(void *program, size_t *out);
  int (*cubin)(void *program, char *out);
} nvrtc;

static bool load(nvrtc *out) {
  const char *path = getenv("HEDDLE_CUDA_NVRTC");
  const char *const names[] = {path != NULL && path[0] == '/' ? path : "libnvrtc.so.13", "libnvrtc.so.12",
                               "libnvrtc.so.11.2", "/usr/local/cuda/lib64/libnvrtc.so"};
  const struct {
    const char *name;
    void *member;
  } calls[] = {
      {"nvrtcCreateProgram", &out->create},   {"nvrtcCompileProgram", &out->compile},
      {"nvrtcDestroyProgram", &out->destroy}, {"nvrtcGetProgramLogSize", &out->log_size},
      {"nvrtcGetProgramLog", &out->log},      {"nvrtcGetCUBINSize", &out->cubin_size},
      {"nvrtcGetCUBIN", &out->cubin},
  };
  void *library = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    void *symbol = library != NULL ? dlsym(library, calls[i].name) : NULL;
    if (symbol == NULL) return false;
    memcpy(calls[i].member, &symbol, sizeof symbol);
  }
  return true;
}

static char *copied(const char *text) {
  char *out = malloc(strlen(text) + 1);
  if (out != NULL) strcpy(out, text);
  return out;
}

bool eng_compile(const char *source, const char *options, const char *arch, char **image, size_t *bytes, char **log) {
  nvrtc rtc;
  void *program = NULL;
  char own[32];
  const char *const words[] = {own};
  (void)options, (void)arch; /* macros are lines of the source */
  *image = NULL;
  *log = NULL;
  if (eng_init() != ENG_OK || !load(&rtc)) {
    *log = copied("HIP on CUDA finds no NVRTC, or no device to compile for");
    return false;
  }
  const eng_device *device = eng_device_get(0);
  snprintf(own, sizeof own, "-arch=sm_%d%d", device->major, device->minor);
  bool good = rtc.create(&program, source, "heddle.hip", 0, NULL, NULL) == 0;
  good = good && rtc.compile(program, 1, words) == 0 && rtc.cubin_size(program, bytes) == 0;
  if (good) *image = calloc(*bytes + 1, 1);
  good = good && *image != NULL && rtc.cubin(program, *image) == 0;
  size_t log_bytes = 0;
  if (!good && program != NULL && rtc.log_size(program, &log_bytes) == 0) *log = calloc(log_bytes + 1, 1);
  if (*log != NULL) rtc.log(program, *log);
  if (program != NULL) rtc.destroy(&program);
  return good;
}
