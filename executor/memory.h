/* executor/memory.h: counted pieces of device or host memory: what allocations of a plan become.
 * An executor, the tensors that it hands out and other executors may hold the same piece; each keeps its device open
 * and its context alive, so that any order of release is legal. */
#ifndef HEDDLE_EXECUTOR_MEMORY_H
#define HEDDLE_EXECUTOR_MEMORY_H

#include "core/device.h"
#include "core/tensor.h"

typedef struct heddle__memory {
  atomic_uint references;
  heddle_device *dev;     /* whose handle buffer is; counted as opened */
  heddle_pbuffer *buffer; /* never NULL once made */
  void *host;             /* the host's address of it, or NULL */
  void *block;            /* of ours, under an import */
  heddle_tensor *lender;  /* the tensor whose memory this is, or NULL */
  uint64_t bytes;         /* that may be used */
  uint64_t imported;      /* bytes from host on that another device may import: bytes, rounded up where that is ours */
  bool mapped;
  bool borrowed;   /* the buffer is the lender's */
  bool coherent;   /* false: flush and invalidate are needed */
  bool keep_block; /* a hung device may still touch it: block and lender are never given back */
  struct heddle__memory *next_kept;
} heddle__memory;

/* What heddle__memory_create takes for so many bytes: host memory is rounded up, so that other devices can import it. */
uint64_t heddle__memory_size(const heddle_device *dev, uint32_t kind, uint64_t bytes, uint64_t granule);

/* New memory of a kind (HEDDLE_MEMORY_*). On an inline device it is always host memory; PINNED and UNIFIED is mapped.
 * granule is what the host range should be aligned and rounded to, so that other devices can import it. Any thread; may
 * block in the driver. */
heddle_status heddle__memory_create(heddle_device *dev, uint32_t kind, uint64_t bytes, uint64_t align, uint64_t granule,
                                    heddle__memory **out, heddle_error *err);

/* An image (HEDDLE_MEMORY_IMAGE) of width x height pixels of four elements; width 0: none, the memory is plain. */
typedef struct heddle__image {
  uint32_t width, height;
  heddle_dtype dtype;
} heddle__image;

bool heddle__image_same(const heddle__image *a, const heddle__image *b);

/* New memory of a device that is such an image. As heddle__memory_create. */
heddle_status heddle__memory_create_image(heddle_device *dev, const heddle__image *image, heddle__memory **out,
                                          heddle_error *err);

/* Makes the caller's host memory usable by a device that can import it. HEDDLE_EUNSUPPORTED, with why, where it cannot:
 * no import, or address or size are not aligned as it wants. lender, which may be NULL, is retained; without one the
 * memory outlives the piece. */
heddle_status heddle__memory_import(heddle_device *dev, void *host, uint64_t bytes, uint64_t align,
                                    heddle_tensor *lender, heddle__memory **out, heddle_error *err);
/* The memory of a tensor on a device, as it is; the piece holds the tensor. */
heddle_status heddle__memory_lend(heddle_tensor *t, heddle__memory **out, heddle_error *err);

/* Whether the device could import it, as far as address and size go. */
bool heddle__memory_importable(const heddle_device *dev, const void *host, uint64_t bytes, uint64_t align);

heddle__memory *heddle__memory_retain(heddle__memory *m);
void heddle__memory_release(heddle__memory *m); /* takes NULL; any thread */

/* A tensor that shares the memory at offset and holds a reference to it. */
heddle_status heddle__memory_tensor(heddle__memory *m, uint64_t offset, heddle_dtype dtype, uint32_t ndim,
                                    const int64_t *shape, heddle_tensor **out, heddle_error *err);

/* Makes what the host wrote visible to later work. */
heddle_status heddle__memory_flush(heddle__memory *m, uint64_t offset, uint64_t bytes, heddle_error *err);

#endif
