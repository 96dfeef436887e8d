/* Opening CUDA's driver for HIP on CUDA. */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cuda_calls calls;
static int good;

static int find(void *library, const char *symbol, int must, void *member) {
  void *address = symbol[0] != '\0' ? dlsym(library, symbol) : NULL;
  memcpy(member, &address, sizeof address);
  if (address != NULL || !must) return 1;
  fprintf(stderr, "HIP on CUDA: the driver has no %s\n", symbol);
  return 0;
}

static void load(void) {
  const char *path = getenv("HEDDLE_CUDA_DRIVER");
  void *library = dlopen(path != NULL && path[0] == '/' ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "HIP on CUDA: %s\n", dlerror());
    return;
  }
  good = 1;
#define FIND_SHARED(member, need, cuda, hip, args) good &= find(library, cuda, (need) == GPU_MUST, &calls.d.member);
  GPU_CALLS(FIND_SHARED)
#undef FIND_SHARED
#define FIND_MORE(member, need, symbol, args) good &= find(library, symbol, (need) == GPU_MUST, &calls.member);
  CUDA_MORE(FIND_MORE)
#undef FIND_MORE
}

const cuda_calls *cuda_get(void) {
  pthread_once(&once, load);
  return good ? &calls : NULL;
}
