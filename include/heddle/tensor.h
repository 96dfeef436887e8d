/* heddle/tensor.h: arrays with dtype and shape, on the host or on a device, and DLPack in and out.
 * A tensor counts references; its bytes live until the last one is gone. */
#ifndef HEDDLE_TENSOR_H
#define HEDDLE_TENSOR_H

#include "heddle/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_tensor heddle_tensor;

/* DLPack's structs, declared in <dlpack/dlpack.h>; a program that passes them includes that header. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

#define HEDDLE_FLOAT32 ((heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1})

/* Called once when the last reference to wrapped memory is gone. Any thread. */
typedef void (*heddle_release_fn)(void *user);

/* New memory, row-major, zeroed, aligned to 256 bytes on the host (dev NULL or an inline device), else memory of kind
 * DEVICE on dev. shape is copied. Any thread. HEDDLE_EINVAL for a negative dimension or more than 32 of them,
 * HEDDLE_ELIMIT where the size overflows. */
HEDDLE_API heddle_status heddle_tensor_create(heddle_device *dev, heddle_dtype dtype, const int64_t *shape,
                                              uint32_t ndim, heddle_tensor **out, heddle_error *err);

/* The caller's host memory, not copied. strides in elements, NULL: row-major; they may be zero or negative. release
 * may be NULL: then the memory outlives the tensor. On failure release is not called. */
HEDDLE_API heddle_status heddle_tensor_wrap(void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                            const int64_t *strides, heddle_release_fn release, void *user,
                                            heddle_tensor **out, heddle_error *err);

HEDDLE_API heddle_tensor *heddle_tensor_retain(heddle_tensor *t);
HEDDLE_API void heddle_tensor_release(heddle_tensor *t); /* takes NULL */

/* Borrowed facts. data is NULL for memory of a device that the host cannot read; strides are always given. */
HEDDLE_API void *heddle_tensor_data(const heddle_tensor *t);
HEDDLE_API heddle_dtype heddle_tensor_dtype(const heddle_tensor *t);
HEDDLE_API uint32_t heddle_tensor_ndim(const heddle_tensor *t);
HEDDLE_API const int64_t *heddle_tensor_shape(const heddle_tensor *t);
HEDDLE_API const int64_t *heddle_tensor_strides(const heddle_tensor *t);
HEDDLE_API uint64_t heddle_tensor_bytes(const heddle_tensor *t);        /* of its elements, without gaps */
HEDDLE_API heddle_device *heddle_tensor_device(const heddle_tensor *t); /* NULL: host */
HEDDLE_API int heddle_tensor_is_contiguous(const heddle_tensor *t);

/* Copies all elements between two tensors of equal dtype and shape, wherever they are; blocks. */
HEDDLE_API heddle_status heddle_tensor_copy(heddle_tensor *dst, const heddle_tensor *src, heddle_error *err);

/* Gives a DLPack struct that holds one reference; its deleter drops it, from any thread. Strides are always written.
 * bool is (6, 8); read-only memory needs the versioned form. A device's memory goes out as the vendor's handle of it (a
 * cl_mem, an address; byte_offset 0), with the device's DLPack type and its number within the plugin; HEDDLE_EUNSUPPORTED
 * where the plugin has no such handles. What Heddle was asked to write there is there: its calls are done on return, and a
 * run is once it was waited for. */
HEDDLE_API heddle_status heddle_tensor_to_dlpack(heddle_tensor *t, struct DLManagedTensor **out, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_to_dlpack_versioned(heddle_tensor *t, struct DLManagedTensorVersioned **out,
                                                           heddle_error *err);

/* Takes over a DLPack struct: on success its deleter runs when the last reference is gone, on the thread that dropped it;
 * on failure it stays the caller's. A versioned struct of another major is refused (HEDDLE_EABI) after its deleter was
 * called, as DLPack asks. Any thread.
 * Host memory (cpu, cuda_host, rocm_host, and cuda_managed, which the host reads too) is used where it is, with any
 * strides. So is a device's: what heddle_tensor_to_dlpack gave of a tensor on a device shares that one's memory; any other
 * needs a plugin with memory.adopt (cuda, rocm, opencl, sim), is row-major without gaps, and begins, byte_offset
 * included, at a multiple of heddle_device_info.alignment: HEDDLE_EUNSUPPORTED otherwise, with what to do. A cl_mem is of
 * the OpenCL context that Heddle has the device open with. The bytes are there when the struct is handed over: the
 * producer has waited for its own work, for Heddle knows nothing of its streams, and nobody writes them while a call of
 * Heddle's reads them.
 * Whose device: dev, which must have the struct's type and number; with dev NULL, and without _on, the tensor's own where
 * Heddle made it, else the one of heddle_context_dlpack_device in the process's context. HEDDLE_ENODEV where there is no
 * such device, HEDDLE_EDEVICE where it is lost. Host memory is taken with dev NULL or one that computes there (cpu). */
HEDDLE_API heddle_status heddle_tensor_from_dlpack(struct DLManagedTensor *m, heddle_tensor **out, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *m, heddle_tensor **out,
                                                             heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_from_dlpack_on(heddle_device *dev, struct DLManagedTensor *m,
                                                      heddle_tensor **out, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_from_dlpack_versioned_on(heddle_device *dev, struct DLManagedTensorVersioned *m,
                                                                heddle_tensor **out, heddle_error *err);

/* Reads and writes .npy files (format 1 to 3, little-endian, C or Fortran order in, C order out), the dtypes of
 * numpy; bfloat16 is written as uint16. HEDDLE_EIO, HEDDLE_EFORMAT naming the file. */
HEDDLE_API heddle_status heddle_tensor_load_npy(const char *path, heddle_tensor **out, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_save_npy(const heddle_tensor *t, const char *path, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
