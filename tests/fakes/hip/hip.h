/* The front of HIP's double: HIP's calls, with the prototypes of AMD's own headers, over an engine: that of the
 * doubles (../engine_*.c), or CUDA's driver (../hip_on_cuda). What HIP has and the engine has not is here: a device
 * that a thread is at in place of a context.
 *
 * Two libraries are built of it: HIP 6, and with FAKE_HIP_5 HIP 5.2, which has no hipLaunchHostFunc and no
 * properties of HIP 6, and whose hiprtc ends the process that asks for an architecture that it does not know. */
#ifndef HEDDLE_TESTS_FAKES_HIP_HIP_H
#define HEDDLE_TESTS_FAKES_HIP_HIP_H

#define __HIP_DISABLE_CPP_FUNCTIONS__
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include "../engine.h"

#include <stdint.h>

/* Of devices, where FAKE_GPU_ARCH is not given. */
#ifndef FAKE_HIP_ARCH
#define FAKE_HIP_ARCH "gfx90a"
#endif

enum { FAKE_HIP_DEVICES = 16 };

/* Makes the primary context of the thread's device current: first in every call that works on one. */
int hip_here(void);

/* A device's context, made at its first use and kept. */
int hip_context(int device, eng_context **out);

/* First in each call. */
#define HIP_CALL(name) \
  ENG_CALL(name); \
  do { \
    const int hip_code_here = hip_here(); \
    if (hip_code_here != ENG_OK) return (hipError_t)hip_code_here; \
  } while (0)
#define HIP_CALL_PLAIN(name) ENG_CALL(name)

static inline uint64_t hip_number(const void *address) {
  return (uint64_t)(uintptr_t)address;
}

#endif
