/* Images: memory of kind IMAGE, for kernels of modules that take textures. Each is a whole image of four channels a pixel;
 * its bytes are those of a compact array, whatever the driver makes of them. */
#include "opencl.h"

static cl_channel_type channel_of(heddle_dtype t) {
  if (t.lanes != 1) return 0;
  if (t.code == HEDDLE_DTYPE_FLOAT) return t.bits == 32 ? CL_FLOAT : t.bits == 16 ? CL_HALF_FLOAT : 0;
  if (t.code == HEDDLE_DTYPE_INT)
    return t.bits == 8 ? CL_SIGNED_INT8 : t.bits == 16 ? CL_SIGNED_INT16 : t.bits == 32 ? CL_SIGNED_INT32 : 0;
  if (t.code == HEDDLE_DTYPE_UINT)
    return t.bits == 8 ? CL_UNSIGNED_INT8 : t.bits == 16 ? CL_UNSIGNED_INT16 : t.bits == 32 ? CL_UNSIGNED_INT32 : 0;
  return 0;
}

heddle_status ocl_image_check(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_error *err) {
  const ocl_info *info = dev->info;
  if (!HEDDLE_HAS(heddle_pmemory_desc, desc, dtype) || info->image[0] == 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u: the device has no images", dev->index);
  if (channel_of(desc->dtype) == 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "opencl:%u: images have no elements of type (%u, %u, %u)", dev->index,
                  (unsigned)desc->dtype.code, (unsigned)desc->dtype.bits, (unsigned)desc->dtype.lanes);
  if (desc->image_width > info->image[0] || desc->image_height > info->image[1])
    return p_fail(err, HEDDLE_ELIMIT, 0, "opencl:%u: an image of %u x %u pixels; it may have %zu x %zu at most",
                  dev->index, desc->image_width, desc->image_height, info->image[0], info->image[1]);
  const uint64_t bytes = (uint64_t)desc->image_width * desc->image_height * 4 * (desc->dtype.bits / 8u);
  if (bytes == 0 || bytes != desc->bytes)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: an image of %u x %u pixels has %llu bytes, not %llu", dev->index,
                  desc->image_width, desc->image_height, (unsigned long long)bytes, (unsigned long long)desc->bytes);
  return HEDDLE_OK;
}

cl_int ocl_image_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer *b) {
  const cl_image_format format = {CL_RGBA, channel_of(desc->dtype)};
  const cl_image_desc image = {
      .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = desc->image_width, .image_height = desc->image_height};
  cl_int code = CL_SUCCESS;
  b->image[0] = desc->image_width;
  b->image[1] = desc->image_height;
  b->mem = clCreateImage(dev->context, CL_MEM_READ_WRITE, &format, &image, NULL, &code);
  return code;
}

heddle_status ocl_image_whole(heddle_pdevice *dev, const heddle_pbuffer *b, uint64_t offset, uint64_t bytes,
                              const char *what, heddle_error *err) {
  if (b == NULL || b->image[0] == 0 || (offset == 0 && bytes == b->bytes)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: %s: %llu bytes at %llu of an image of %llu: copies move it whole",
                dev->index, what, (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)b->bytes);
}

cl_int ocl_image_put(heddle_pstream *stream, const heddle_pbuffer *dst, const heddle_pbuffer *src, const void *host,
                     uint64_t at) {
  const size_t *size = dst != NULL && dst->image[0] != 0 ? dst->image : src->image;
  ocl_command c = {.kind = OCL_IMAGE, .global = {size[0], size[1], 1}, .host = (void *)(uintptr_t)host};
  if (dst != NULL) c.dst = dst->mem;
  if (src != NULL) c.src = src->mem;
  if (src == NULL) c.number = OCL_IMAGE_WRITE;
  else if (dst == NULL) c.number = OCL_IMAGE_READ;
  else if (src->image[0] == 0) c.number = OCL_IMAGE_FROM_BUFFER;
  else if (dst->image[0] == 0) c.number = OCL_IMAGE_TO_BUFFER;
  else c.number = OCL_IMAGE_TO_IMAGE;
  if (c.number == OCL_IMAGE_FROM_BUFFER) c.src_at = (size_t)(src->base + at);
  if (c.number == OCL_IMAGE_TO_BUFFER) c.dst_at = (size_t)(dst->base + at);
  return ocl_put(stream, &c);
}

cl_int ocl_image_enqueue(cl_command_queue q, const ocl_command *c, bool blocks, cl_event *e) {
  static const size_t from[3] = {0, 0, 0};
  const cl_bool waits = blocks ? CL_TRUE : CL_FALSE;
  switch (c->number) {
  case OCL_IMAGE_WRITE: return clEnqueueWriteImage(q, c->dst, waits, from, c->global, 0, 0, c->host, 0, NULL, e);
  case OCL_IMAGE_READ: return clEnqueueReadImage(q, c->src, waits, from, c->global, 0, 0, c->host, 0, NULL, e);
  case OCL_IMAGE_FROM_BUFFER:
    return clEnqueueCopyBufferToImage(q, c->src, c->dst, c->src_at, from, c->global, 0, NULL, e);
  case OCL_IMAGE_TO_BUFFER:
    return clEnqueueCopyImageToBuffer(q, c->src, c->dst, from, c->global, c->dst_at, 0, NULL, e);
  default: return clEnqueueCopyImage(q, c->src, c->dst, from, from, c->global, 0, NULL, e);
  }
}
