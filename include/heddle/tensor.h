/* heddle/tensor.h: arrays with dtype and shape, on the host or on a device, and conversion to and from DLPack.
 * A tensor is reference-counted; its memory stays valid until the last reference is released. Any thread may read a
 * tensor's properties and retain or release it; the caller orders accesses to its elements. */
#ifndef HEDDLE_TENSOR_H
#define HEDDLE_TENSOR_H

#include "heddle/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_tensor heddle_tensor;

/* DLPack's structs, declared in <dlpack/dlpack.h>. A program that passes them includes that header. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

#define HEDDLE_FLOAT32 ((heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1})

/* Called once when the last reference to wrapped memory is released. Any thread. */
typedef void (*heddle_release_fn)(void *user);

/* Creates a tensor in new memory, row-major and zeroed. The memory is on the host, aligned to 256 bytes, where dev is
 * NULL or an inline device; else it is memory of kind DEVICE on dev. shape has ndim dimensions, in elements, and is
 * copied. *out has one reference. Any thread. HEDDLE_EINVAL for a negative dimension or more than 32 dimensions,
 * HEDDLE_ELIMIT where the size overflows, HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_tensor_create(heddle_device *dev, heddle_dtype dtype, const int64_t *shape,
                                              uint32_t ndim, heddle_tensor **out, heddle_error *err);

/* Creates a tensor over the caller's host memory, without a copy. strides are in elements and may be zero or negative;
 * NULL means row-major. release(user) is called when the last reference is released; release may be NULL, and the
 * memory must then outlive the tensor. On failure release is not called. *out has one reference. HEDDLE_EINVAL where
 * data is NULL and there are elements, and for a bad shape as in heddle_tensor_create; HEDDLE_ELIMIT where the shape or
 * the strides reach past the address space; HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_tensor_wrap(void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                            const int64_t *strides, heddle_release_fn release, void *user,
                                            heddle_tensor **out, heddle_error *err);

/* Retain adds a reference and returns t; release drops one. The last release frees the memory, or calls the release
 * function of wrapped memory, on the calling thread. Any thread. */
HEDDLE_API heddle_tensor *heddle_tensor_retain(heddle_tensor *t);
HEDDLE_API void heddle_tensor_release(heddle_tensor *t); /* accepts NULL */

/* Properties of a tensor; pointers are borrowed from it. data is NULL for device memory that the host cannot read.
 * shape and strides have ndim entries, in elements; strides are never NULL. is_contiguous is 1 where the elements lie
 * in row-major order without gaps, else 0. Any thread; they do not block. */
HEDDLE_API void *heddle_tensor_data(const heddle_tensor *t);
HEDDLE_API heddle_dtype heddle_tensor_dtype(const heddle_tensor *t);
HEDDLE_API uint32_t heddle_tensor_ndim(const heddle_tensor *t);
HEDDLE_API const int64_t *heddle_tensor_shape(const heddle_tensor *t);
HEDDLE_API const int64_t *heddle_tensor_strides(const heddle_tensor *t);
HEDDLE_API uint64_t heddle_tensor_bytes(const heddle_tensor *t);        /* of its elements, without gaps */
HEDDLE_API heddle_device *heddle_tensor_device(const heddle_tensor *t); /* NULL: host */
HEDDLE_API int heddle_tensor_is_contiguous(const heddle_tensor *t);

/* Copies all elements between two tensors of equal dtype and shape, on the host or on any device. Blocks until the copy
 * is done. HEDDLE_EINVAL where dtype or shape differ; HEDDLE_EDEVICE, HEDDLE_ETIMEOUT or another status of the device
 * where the copy fails. Any thread. */
HEDDLE_API heddle_status heddle_tensor_copy(heddle_tensor *dst, const heddle_tensor *src, heddle_error *err);

/* Order between a tensor on a device and a stream of the caller's there, given by the vendor's handle as to
 * heddle_executor_use_stream. after: whatever Heddle does with the tensor from now on, in any executor, comes after the
 * work that is in the stream now. before: work that is enqueued in the stream from now on comes after the runs with the
 * tensor that were started. Neither blocks. wait blocks at most timeout_ns until those runs have finished. Of a tensor in
 * host memory all three do nothing. HEDDLE_EINVAL where the stream is of another device, which the message names,
 * HEDDLE_EUNSUPPORTED where the plugin takes no streams of others, HEDDLE_ETIMEOUT, or the failure of the work. Any
 * thread. */
HEDDLE_API heddle_status heddle_tensor_after_stream(heddle_tensor *t, uint64_t stream, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_before_stream(heddle_tensor *t, uint64_t stream, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_wait(heddle_tensor *t, uint64_t timeout_ns, heddle_error *err);

/* Returns a DLPack struct that holds one reference to the tensor; its deleter releases that reference and may run on
 * any thread. Strides are always written. bool is (6, 8). Read-only memory needs the versioned form (else
 * HEDDLE_EUNSUPPORTED). Device memory is exported as the vendor's handle (a cl_mem, an address; byte_offset 0), with
 * the device's DLPack type and its number within the plugin; HEDDLE_EUNSUPPORTED where the plugin has no such handles.
 * Earlier writes are in the memory: those of a call are done on return, those of a run once the run
 * was waited for. */
HEDDLE_API heddle_status heddle_tensor_to_dlpack(heddle_tensor *t, struct DLManagedTensor **out, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_to_dlpack_versioned(heddle_tensor *t, struct DLManagedTensorVersioned **out,
                                                           heddle_error *err);

/* Takes ownership of a DLPack struct and creates a tensor over its memory. On success the struct's deleter runs when
 * the last reference is released, on the thread that released it. On failure the caller keeps ownership. A versioned
 * struct of another major is refused (HEDDLE_EABI) after its deleter was called, as DLPack requires. Any thread.
 * Host memory (cpu, cuda_host, rocm_host, and cuda_managed, which the host can read too) is used in place, with any
 * strides. Device memory is used in place too. A struct that heddle_tensor_to_dlpack made from a tensor on a device
 * shares that tensor's memory. Any other device memory needs a plugin with memory.adopt (cuda, rocm, opencl, sim). It
 * must be row-major without gaps and begin, byte_offset included, at a multiple of heddle_device_info.alignment.
 * Otherwise the call returns HEDDLE_EUNSUPPORTED, and the message says what to do. A cl_mem must belong to the OpenCL
 * context in which Heddle has the device open. The data must be complete when the struct is passed: the producer waits
 * for its own work first, because Heddle does not know its streams. The memory must not be written while a
 * Heddle call reads it.
 * The device is dev, which must have the struct's type and number. With dev NULL, and without _on, it is the tensor's
 * own device where Heddle made the tensor, else the device that heddle_context_dlpack_device finds in the process's
 * context. HEDDLE_EINVAL where dev has another type or number, HEDDLE_ENODEV where there is no such device,
 * HEDDLE_EDEVICE where it is lost. For host memory, dev is NULL or a device that computes in host memory (cpu). */
HEDDLE_API heddle_status heddle_tensor_from_dlpack(struct DLManagedTensor *m, heddle_tensor **out, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *m, heddle_tensor **out,
                                                             heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_from_dlpack_on(heddle_device *dev, struct DLManagedTensor *m,
                                                      heddle_tensor **out, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_from_dlpack_versioned_on(heddle_device *dev, struct DLManagedTensorVersioned *m,
                                                                heddle_tensor **out, heddle_error *err);

/* Read and write .npy files: format 1 to 3, little-endian, C or Fortran order for reading, C order for writing, and the
 * dtypes of numpy. bfloat16 is written as uint16. Both block for file access. *out has one reference. HEDDLE_EIO and
 * HEDDLE_EFORMAT, with the file name in the message; HEDDLE_EUNSUPPORTED for a dtype that numpy lacks. */
HEDDLE_API heddle_status heddle_tensor_load_npy(const char *path, heddle_tensor **out, heddle_error *err);
HEDDLE_API heddle_status heddle_tensor_save_npy(const heddle_tensor *t, const char *path, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
