/* Steps that a library of the vendor's does in place of a kernel of ours: matrix products (cuBLASLt, rocBLAS) and
 * convolutions (cuDNN). The libraries are opened where they are installed; what none takes the kernels do. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_LIBRARY_H
#define HEDDLE_PLUGINS_COMMON_GPU_LIBRARY_H

#include "plugins/common/gpu/gpu.h"

/* One step made ready. Immutable; the vendor's. */
typedef struct gpu_library_step gpu_library_step;

typedef struct gpu_library_vendor {
  /* Opens what is installed into self->libraries (NULL where nothing is); the setting "libraries" = 0 goes without, 1
   * insists (HEDDLE_ENODEV in words), auto takes what is there. */
  heddle_status (*open)(heddle_pinstance *self, heddle_error *err);
  void (*close)(heddle_pinstance *self);
  void (*device_close)(heddle_pdevice *dev); /* frees dev->library_state; inside gpu_enter */

  /* Makes a step of a plan ready, or sets *out to NULL where the kernels do it. fast: the region allows reduced
   * precision. Chooses the algorithm and gets its workspace. Inside gpu_enter. Any thread. */
  heddle_status (*prepare)(heddle_pdevice *dev, const k_step *step, bool fast, gpu_library_step **out,
                           heddle_error *err);
  void (*free)(heddle_pdevice *dev, gpu_library_step *step); /* inside gpu_enter */

  /* Puts it into a stream, operands in the order of step->args: 0, or a code of the driver's (a library's own failure is
   * worded through err, with its status returned in *s). Inside gpu_enter; may be recorded by a capture. */
  heddle_status (*run)(gpu_library_step *step, heddle_pstream *stream, const gpu_address *operands, heddle_error *err);
} gpu_library_vendor;

#endif
