/* NVRTC, NVIDIA's compiler for CUDA C, as the plugin cuda uses it: found and opened at the first use, so that who only
 * lists devices does not pay for it. */
#ifndef HEDDLE_PLUGINS_CUDA_NVRTC_H
#define HEDDLE_PLUGINS_CUDA_NVRTC_H

#include "plugins/common/gpu/gpu.h"

typedef struct cuda_nvrtc cuda_nvrtc;

/* Reads the setting nvrtc: the path of a library, or off; not given, the library is looked for by its names and in the
 * toolkit's usual folder. Opens nothing. One each instance; free takes NULL. */
heddle_status cuda_nvrtc_new(heddle_pinstance *self, cuda_nvrtc **out, heddle_error *err);
void cuda_nvrtc_free(heddle_pinstance *self, cuda_nvrtc *nvrtc);

/* What cuda_nvrtc_new gave for this instance, which its own state keeps. Of context.c. */
cuda_nvrtc *cuda_nvrtc_of(const heddle_pinstance *self);

/* Members of gpu_vendor. An image is a cubin where NVRTC knows the device's architecture, else PTX of the newest that
 * it knows and that is older, which the driver finishes (said once in the log). Any thread. */
heddle_status cuda_compile(heddle_pinstance *self, const gpu_info *info, const char *what, const char *source,
                           void **image, uint64_t *bytes, heddle_error *err);
void cuda_compiler_words(heddle_pinstance *self, char *buf, size_t bytes);
heddle_status cuda_can_compile(heddle_pinstance *self, const gpu_info *info, heddle_error *err);

#endif
