/* CUDA's codes: what each means for us, and the driver's own words for it. */
#include "cuda.h"

#include <dlfcn.h>

/* The numbers of CUresult that mean more than that a call failed. After those of GPU_LOST every call on the context
 * gives the same again. */
gpu_fate cuda_fate(int code) {
  switch (code) {
  case 0: return GPU_FINE;
  case 2: return GPU_NO_MEMORY;
  case 600: return GPU_NOT_READY;
  case 36:  /* the library is newer than the driver in the kernel */
  case 217: /* peer access */
  case 801: return GPU_UNSUPPORTED;
  case 4:   /* the driver is shutting down */
  case 214: /* memory errors that cannot be corrected */
  case 220: /* likewise of NVLink */
  case 226: /* likewise, of this context's work */
  case 700: /* an illegal address */
  case 702: /* a kernel ran for too long */
  case 709: /* the context is destroyed */
  case 710: /* an assertion in a kernel */
  case 714: /* a stack error */
  case 715: /* an illegal instruction */
  case 716: /* a misaligned address */
  case 717: /* an address of the wrong space */
  case 718: /* an invalid program counter */
  case 719: /* a launch failed */
  case 721: /* tensor memory was not given back */
  case 810: /* a client of MPS was ended; 809, that it has too many connections, is a failure like others */
  case 911: /* an external device failed */ return GPU_LOST;
  case 999: return GPU_DOUBTFUL;
  default: return GPU_FAILED;
  }
}

/* The calls that word a code are looked up when they are needed: failures may come before anything else. */
static const char *words_of(const heddle_pinstance *self, const char *call, int code) {
  const char *text = NULL;
  if (self->driver.library == NULL) return NULL;
  int (*get)(int, const char **) = (int (*)(int, const char **))(uintptr_t)dlsym(self->driver.library, call);
  return get != NULL && get(code, &text) == 0 ? text : NULL;
}

void cuda_code_words(const heddle_pinstance *self, int code, char *buf, size_t bytes) {
  const char *name = words_of(self, "cuGetErrorName", code), *words = words_of(self, "cuGetErrorString", code);
  snprintf(buf, bytes, "%s (%d)%s%s", name != NULL ? name : "CUDA error", code, words != NULL ? ": " : "",
           words != NULL ? words : "");
}
