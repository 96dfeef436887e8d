/* modules/tvm/launch.h: kernels of the modules inside of a library: the handles that its code asks for, the code loaded
 * on a device, and launches. A handle belongs to the library and knows no device; what it means on one is looked up in
 * the lane of the thread that calls. */
#ifndef HEDDLE_MODULES_TVM_LAUNCH_H
#define HEDDLE_MODULES_TVM_LAUNCH_H

#include "modules/tvm/library.h"
#include "modules/tvm/registry.h"

/* A kernel as compiled code holds it. One per kernel of a library, for the library's life. */
typedef struct heddle__kernel_handle {
  heddle_function head; /* its name, no call */
  const heddle__tvm_library *library;
  const heddle__submodule *module;
  const heddle__kernel *kernel;
  uint32_t number;     /* in the library */
  uint32_t unit;       /* what is compiled together: the number of its first kernel */
  uint32_t n_extents;  /* of grid and block: one argument each */
  bool shared;         /* one more: bytes of shared memory */
  const char *wrong;   /* why it cannot be launched, or NULL */
  unsigned char *axes; /* per extent: 0 to 2 the grid's, 3 to 5 the block's */
  heddle__span code;   /* of the unit */
} heddle__kernel_handle;

/* Makes the handles of a library whose modules are read; finish takes what it made in part, too. */
heddle_status heddle__kernels_init(heddle__tvm_library *library, heddle_error *err);
void heddle__kernels_finish(heddle__tvm_library *library);

/* Whether a kernel is of a function by its name: NAME_kernel, with anything behind; some wrote NAME__kernel0. */
bool heddle__kernel_is_of(const heddle__kernel_handle *kernel, const char *function);

/* False: there is no such kernel. *out NULL: there is, it cannot be launched, and the thread has the words. */
bool heddle__tvm_kernel_find(const heddle__tvm_library *library, const char *name, void **out);

/* A launch on the thread's lane, as compiled code calls it: arguments, extents, bytes. 0: done. */
int heddle__tvm_launch(const heddle__kernel_handle *kernel, const heddle__word *args, const int32_t *codes, int32_t n);

/* The type of DLPack's of devices that run modules of a kind, and the name of the plugin that has such devices. */
int32_t heddle__kind_type(const char *kind);
const char *heddle__kind_plugin(const char *kind);

/* ---- a library on a device that is not inline */

/* What a caller keeps on its device; in caller->device. Every function: any thread. */
heddle_status heddle__device_attach(heddle__tvm_caller *caller, heddle_error *err);
void heddle__device_detach(heddle__tvm_caller *caller); /* no lane is left; the device is still open */

/* Loads the kernels whose names begin with FUNCTION_kernel; others are loaded when they are first launched. Blocks. */
heddle_status heddle__device_prepare(heddle__tvm_caller *caller, const char *function, heddle_error *err);

/* The lane of a stream of the device: where launches and scratch memory go. Taken by each launch of a stream, and ends
 * when all have given it back; its stream is then idle. */
struct heddle__lane *heddle__lane_take(heddle__tvm_caller *caller, heddle_pstream *stream);
void heddle__lane_give(struct heddle__lane *lane);  /* takes NULL */
void heddle__lane_reset(struct heddle__lane *lane); /* after a function that failed and gave no scratch memory back */

/* The device of the thread's lane; NULL: what runs is on cpu. */
const heddle_device *heddle__lane_device(void);

/* Scratch memory of the thread's lane: a buffer as compiled code holds one; NULL with words. */
void *heddle__lane_alloc(int device_type, int device_id, uint64_t bytes);
int heddle__lane_free(void *p);

/* The same for an image, as kernels that take textures have it. */
void *heddle__lane_image(int device_type, int device_id, uint32_t width, uint32_t height, heddle_dtype dtype);

/* Waits for what was launched on the thread's lane so far. */
heddle_status heddle__lane_wait(heddle_error *err);

#endif
