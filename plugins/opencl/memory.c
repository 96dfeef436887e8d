/* Memory. DEVICE is a plain buffer object. PINNED is one of the driver's host memory, mapped for its whole life: copies
 * use the address, which is what drivers recognise as memory that they can fetch from directly. UNIFIED is fine-grained
 * shared memory with a buffer object over it, which both sides see without mapping. An import is an address and
 * nothing else: only copies use it, so that no object of OpenCL ever owns the caller's pages. */
#include "opencl.h"

#define MOST_ALIGNMENT UINT64_C(4096)

heddle_status ocl_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                        const char *what, heddle_error *err) {
  const uint64_t have = buffer != NULL ? buffer->bytes : 0;
  if (offset <= have && bytes <= have - offset) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s: %llu bytes at %llu do not lie in a buffer of %llu", dev->index,
                what, (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)have);
}

static heddle_status make(heddle_pdevice *dev, uint32_t kind, uint64_t bytes, heddle_pbuffer **out, heddle_error *err) {
  void *buffer = NULL;
  heddle_status s = ocl_new(dev->host, sizeof **out, "a buffer's handle", &buffer, err);
  if (s != HEDDLE_OK) return s;
  *out = buffer;
  **out = (heddle_pbuffer){.dev = dev, .bytes = bytes, .kind = kind};
  ocl_count(&dev->live_buffers, 1);
  return HEDDLE_OK;
}

/* The bytes of the allocation itself, without the view or handle. */
static void release_memory(heddle_pbuffer *b) {
  heddle_pdevice *dev = b->dev;
  cl_int code = CL_SUCCESS;
  if (b->mapped != NULL) {
    /* Unmapping is work of a queue; without one the object just goes, as it does on a device that is lost. */
    cl_command_queue queue = clCreateCommandQueue(dev->context, dev->info->id, 0, &code);
    if (code == CL_SUCCESS) {
      if (clEnqueueUnmapMemObject(queue, b->mem, b->mapped, 0, NULL, NULL) == CL_SUCCESS) clFinish(queue);
      clReleaseCommandQueue(queue);
    }
  }
  if (b->mem != NULL) clReleaseMemObject(b->mem);
  if (b->svm != NULL) clSVMFree(dev->context, b->svm);
}

static void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev;
  if (buffer == NULL) return;
  heddle_pdevice *owner = buffer->dev;
  ocl_count(&owner->live_buffers, -1);
  if (buffer->view) {
    if (buffer->own != NULL) clReleaseMemObject(buffer->own);
  } else if (buffer->adopted) {
    clReleaseMemObject(buffer->own);
    clReleaseMemObject(buffer->mem);
  } else if (buffer->kind != OCL_KIND_IMPORT) {
    ocl_count(&owner->live_bytes, -(int64_t)buffer->bytes);
    release_memory(buffer);
  }
  owner->host->free(owner->host->ctx, buffer);
}

/* ---------------------------------------------------------------- allocation */

static cl_int alloc_pinned(heddle_pdevice *dev, uint64_t align, heddle_pbuffer *b) {
  cl_int code = CL_SUCCESS;
  const size_t bytes = (size_t)(b->bytes + align - 1);
  b->mem = clCreateBuffer(dev->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
  if (code != CL_SUCCESS) return code;
  cl_command_queue queue = clCreateCommandQueue(dev->context, dev->info->id, 0, &code);
  if (code != CL_SUCCESS) return code;
  void *at = clEnqueueMapBuffer(queue, b->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &code);
  clReleaseCommandQueue(queue);
  if (code != CL_SUCCESS) return code;
  b->mapped = at;
  b->base = (align - (uintptr_t)at % align) % align;
  b->host = (char *)at + b->base;
  return CL_SUCCESS;
}

static cl_int alloc_unified(heddle_pdevice *dev, uint64_t align, heddle_pbuffer *b) {
  cl_int code = CL_SUCCESS;
  const size_t bytes = (size_t)(b->bytes + align - 1);
  b->svm = clSVMAlloc(dev->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, bytes, 0);
  if (b->svm == NULL) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  b->host = (char *)b->svm + (align - (uintptr_t)b->svm % align) % align;
  b->mem = clCreateBuffer(dev->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, (size_t)b->bytes, b->host, &code);
  return code;
}

static heddle_status check_desc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_error *err) {
  const uint64_t most = dev->info->max_buffer_bytes;
  if (desc->kind == HEDDLE_MEMORY_IMAGE) return ocl_image_check(dev, desc, err);
  if (desc->kind > HEDDLE_MEMORY_UNIFIED || (desc->kind == HEDDLE_MEMORY_UNIFIED && !dev->info->unified))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u: memory of kind %u is not supported on this device",
                  dev->index, desc->kind);
  if ((desc->align & (desc->align - 1)) != 0 || (desc->align > MOST_ALIGNMENT && desc->align > dev->info->alignment))
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: an alignment is a power of two up to %llu, not %llu", dev->index,
                  (unsigned long long)MOST_ALIGNMENT, (unsigned long long)desc->align);
  if (most != 0 && desc->bytes > most)
    return p_fail(err, HEDDLE_ELIMIT, 0, "opencl:%u: %llu bytes asked for one buffer, which may have %llu at most",
                  dev->index, (unsigned long long)desc->bytes, (unsigned long long)most);
  if (desc->bytes > (uint64_t)INT64_MAX)
    return p_fail(err, HEDDLE_ENOMEM, 0, "opencl:%u: no memory for %llu bytes", dev->index,
                  (unsigned long long)desc->bytes);
  return HEDDLE_OK;
}

static heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                  heddle_error *err) {
  const uint64_t align = desc->align > dev->info->alignment ? desc->align : dev->info->alignment;
  heddle_pbuffer *b = NULL;
  cl_int code = CL_SUCCESS;
  char what[64];
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = check_desc(dev, desc, err);
  if (s == HEDDLE_OK) s = make(dev, desc->kind, desc->bytes, &b, err);
  if (s != HEDDLE_OK) return s;
  if (desc->bytes == 0) { /* OpenCL has no empty buffers */
  } else if (desc->kind == HEDDLE_MEMORY_IMAGE) {
    code = ocl_image_alloc(dev, desc, b);
  } else if (desc->kind == HEDDLE_MEMORY_PINNED) {
    code = alloc_pinned(dev, align, b);
  } else if (desc->kind == HEDDLE_MEMORY_UNIFIED) {
    code = alloc_unified(dev, align, b);
  } else {
    b->mem = clCreateBuffer(dev->context, CL_MEM_READ_WRITE, (size_t)desc->bytes, NULL, &code);
  }
  if (code != CL_SUCCESS) {
    release_memory(b);
    ocl_count(&dev->live_buffers, -1);
    dev->host->free(dev->host->ctx, b);
    snprintf(what, sizeof what, "allocate %llu bytes", (unsigned long long)desc->bytes);
    return ocl_check(dev, code, what, err);
  }
  b->own = b->mem;
  ocl_count(&dev->live_bytes, (int64_t)desc->bytes);
  *out = b;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- views and imports */

static heddle_status memory_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                                 heddle_pbuffer **out, heddle_error *err) {
  heddle_status s = ocl_range(dev, parent, offset, bytes, "view", err);
  if (s != HEDDLE_OK) return s;
  if (parent == NULL || parent->view || parent->image[0] != 0 || offset % dev->info->alignment != 0) {
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "opencl:%u: a view is of a buffer that is no view and no image, at a multiple of %llu, not %llu",
                  dev->index, (unsigned long long)dev->info->alignment, (unsigned long long)offset);
  }
  heddle_pbuffer *b = NULL;
  s = make(dev, parent->kind, bytes, &b, err);
  if (s != HEDDLE_OK) return s;
  b->view = true;
  b->mem = parent->mem;
  b->base = parent->base + offset;
  b->host = parent->host != NULL ? parent->host + offset : NULL;
  if (bytes > 0 && parent->kind != HEDDLE_MEMORY_PINNED && parent->kind != OCL_KIND_IMPORT) {
    const cl_buffer_region region = {(size_t)b->base, (size_t)bytes};
    cl_int code = CL_SUCCESS;
    b->own = clCreateSubBuffer(b->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    s = ocl_check(dev, code, "make a view", err);
    if (s != HEDDLE_OK) {
      b->own = NULL;
      memory_free(dev, b);
      return s;
    }
  }
  *out = b;
  return HEDDLE_OK;
}

static heddle_status import_host(heddle_pdevice *dev, void *pointer, uint64_t bytes, heddle_pbuffer **out,
                                 heddle_error *err) {
  if (pointer == NULL && bytes > 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: import of %llu bytes without an address", dev->index,
                  (unsigned long long)bytes);
  heddle_status s = make(dev, OCL_KIND_IMPORT, bytes, out, err);
  if (s == HEDDLE_OK) (*out)->host = pointer;
  return s;
}

/* ---------------------------------------------------------------- mappings */

static heddle_status memory_map(heddle_pdevice *dev, heddle_pbuffer *buffer, void **out, heddle_error *err) {
  if (buffer->kind == HEDDLE_MEMORY_DEVICE || buffer->kind == HEDDLE_MEMORY_IMAGE)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: memory of kind device cannot be mapped", dev->index);
  *out = buffer->host;
  return HEDDLE_OK;
}

static void memory_unmap(heddle_pdevice *dev, heddle_pbuffer *buffer) {
  (void)dev, (void)buffer; /* mapped for its whole life */
}

static heddle_status memory_native(heddle_pdevice *dev, heddle_pbuffer *buffer, uint64_t *out, heddle_error *err) {
  if (buffer->own == NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u: this buffer is no memory object of OpenCL", dev->index);
  *out = (uint64_t)(uintptr_t)buffer->own;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- memory of others */

/* What a memory object is: its whole object (itself where it is no sub-buffer) and where it begins in that. */
static heddle_status look_at(heddle_pdevice *dev, cl_mem object, cl_mem *whole, uint64_t *at, uint64_t *size,
                             heddle_error *err) {
  cl_context context = NULL;
  cl_mem_object_type type = 0;
  cl_mem parent = NULL;
  size_t bytes = 0, start = 0;
  cl_int code = clGetMemObjectInfo(object, CL_MEM_CONTEXT, sizeof context, &context, NULL);
  if (code == CL_SUCCESS) code = clGetMemObjectInfo(object, CL_MEM_TYPE, sizeof type, &type, NULL);
  if (code == CL_SUCCESS) code = clGetMemObjectInfo(object, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
  if (code == CL_SUCCESS) code = clGetMemObjectInfo(object, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
  if (code == CL_SUCCESS && parent != NULL)
    code = clGetMemObjectInfo(object, CL_MEM_OFFSET, sizeof start, &start, NULL);
  if (code != CL_SUCCESS) return ocl_check(dev, code, "ask what a memory object of others is", err);
  if (context != dev->context)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "opencl:%u: the memory object is of another OpenCL context, which this device cannot use: make it in "
                  "the context of a tensor that Heddle made there (CL_MEM_CONTEXT), or copy it through the host",
                  dev->index);
  if (type != CL_MEM_OBJECT_BUFFER)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: the memory object is an image, no buffer", dev->index);
  *whole = parent != NULL ? parent : object;
  *at = start;
  *size = bytes;
  return HEDDLE_OK;
}

static heddle_status memory_adopt(heddle_pdevice *dev, uint64_t handle, uint64_t offset, uint64_t bytes,
                                  heddle_pbuffer **out, heddle_error *err) {
  const cl_mem object = (cl_mem)(uintptr_t)handle;
  cl_mem whole = NULL;
  uint64_t at = 0, size = 0;
  heddle_pbuffer *b = NULL;
  cl_int code = CL_SUCCESS;
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = look_at(dev, object, &whole, &at, &size, err);
  if (s != HEDDLE_OK) return s;
  if (offset > size || bytes > size - offset)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %llu bytes at %llu do not lie in a memory object of %llu",
                  dev->index, (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)size);
  if ((at + offset) % dev->info->alignment != 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "opencl:%u: memory that begins %llu bytes into a memory object, and not at a multiple of %llu: copy "
                  "it into one of its own",
                  dev->index, (unsigned long long)(at + offset), (unsigned long long)dev->info->alignment);
  s = make(dev, HEDDLE_MEMORY_DEVICE, bytes, &b, err);
  if (s != HEDDLE_OK) return s;
  if (offset == 0) {
    code = clRetainMemObject(object);
    b->own = object;
  } else {
    const cl_buffer_region region = {(size_t)(at + offset), (size_t)bytes};
    b->own = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  }
  if (code == CL_SUCCESS && (code = clRetainMemObject(whole)) != CL_SUCCESS) clReleaseMemObject(b->own);
  if (code != CL_SUCCESS) {
    ocl_count(&dev->live_buffers, -1);
    dev->host->free(dev->host->ctx, b);
    return ocl_check(dev, code, "take a memory object of others", err);
  }
  b->adopted = true;
  b->mem = whole;
  b->base = at + offset;
  *out = b;
  return HEDDLE_OK;
}

const heddle_memory_table ocl_memory_table = {
    .struct_size = sizeof ocl_memory_table,
    .free = memory_free,
    .alloc = memory_alloc,
    .view = memory_view,
    .import_host = import_host,
    .map = memory_map,
    .unmap = memory_unmap,
    .native = memory_native,
    .adopt = memory_adopt,
};
