/* Device code from outside: OpenCL C ("opencl-c") and the driver's own binaries ("clbin"). A launch's shared memory is
 * the last argument of its kernel, a pointer to local memory. */
#include "opencl.h"

enum { MOST_OFFSETS = 64 };

struct heddle_pmodule {
  heddle_pdevice *dev;
  cl_program program;
  pthread_mutex_t lock; /* guards kernels; a leaf, the driver is called with it held */
  heddle_pkernel *kernels;
};

struct heddle_pkernel {
  heddle_pkernel *next;
  heddle_pmodule *module;
  cl_kernel kernel;
  pthread_mutex_t lock; /* arguments are set and the kernel enqueued with it held: they belong to the kernel */
  uint32_t max_threads, reserved;
  cl_mem parts[MOST_OFFSETS];
  char name[];
};

void ocl_kernels_free(const heddle_host *host, heddle_pkernel *kernels) {
  while (kernels != NULL) {
    heddle_pkernel *next = kernels->next;
    clReleaseKernel(kernels->kernel);
    for (int i = 0; i < MOST_OFFSETS; i++) {
      if (kernels->parts[i] != NULL) clReleaseMemObject(kernels->parts[i]);
    }
    pthread_mutex_destroy(&kernels->lock);
    host->free(host->ctx, kernels);
    kernels = next;
  }
}

static void module_unload(heddle_pmodule *module) {
  if (module == NULL) return;
  heddle_pdevice *dev = module->dev;
  ocl_kernels_free(dev->host, module->kernels);
  if (module->program != NULL) clReleaseProgram(module->program);
  pthread_mutex_destroy(&module->lock);
  ocl_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, module);
}

static const char *module_formats(heddle_pinstance *self, uint32_t index) {
  (void)self, (void)index;
  return "opencl-c,clbin";
}

static heddle_status make_program(heddle_pdevice *dev, const char *format, const void *data, uint64_t bytes,
                                  cl_program *out, heddle_error *err) {
  cl_int code = CL_SUCCESS, state = CL_SUCCESS;
  const size_t size = (size_t)bytes;
  cl_program program = NULL;
  if (bytes == 0) return p_fail(err, HEDDLE_EFORMAT, 0, "opencl:%u: a module without bytes", dev->index);
  if (strcmp(format, "opencl-c") == 0) {
    const char *text = data;
    program = clCreateProgramWithSource(dev->context, 1, &text, &size, &code);
  } else if (strcmp(format, "clbin") == 0) {
    const unsigned char *binary = data;
    program = clCreateProgramWithBinary(dev->context, 1, &dev->info->id, &size, &binary, &state, &code);
    if (code == CL_SUCCESS && state != CL_SUCCESS) {
      clReleaseProgram(program);
      code = state;
    }
    if (code == CL_INVALID_BINARY || code == CL_INVALID_VALUE)
      return p_fail(err, HEDDLE_EFORMAT, code,
                    "opencl:%u: a module of %llu bytes is no binary for this device: %s (%d)", dev->index,
                    (unsigned long long)bytes, ocl_code_name(code), code);
  } else {
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "opencl:%u: modules of format '%.60s' are not supported; opencl-c and clbin are", dev->index, format);
  }
  heddle_status s = ocl_check(dev, code, "load a module", err);
  if (s != HEDDLE_OK) return s;
  s = ocl_build(dev, program, "", "build a module", err);
  if (s != HEDDLE_OK) clReleaseProgram(program);
  else *out = program;
  return s;
}

static heddle_status module_load(heddle_pdevice *dev, const char *format, const void *data, uint64_t bytes,
                                 heddle_pmodule **out, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = ocl_health(dev, err);
  if (s == HEDDLE_OK) s = ocl_new(dev->host, sizeof **out, "a module", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pmodule *module = memory;
  module->dev = dev;
  if (pthread_mutex_init(&module->lock, NULL) != 0) {
    dev->host->free(dev->host->ctx, module);
    return p_fail(err, HEDDLE_ENOMEM, 0, "opencl:%u: no lock for a module", dev->index);
  }
  ocl_count(&dev->live_objects, 1);
  s = make_program(dev, format, data, bytes, &module->program, err);
  if (s != HEDDLE_OK) module_unload(module);
  else *out = module;
  return s;
}

/* A kernel that is in no list yet. */
static heddle_status make_kernel(heddle_pmodule *module, const char *name, heddle_pkernel **out, heddle_error *err) {
  heddle_pdevice *dev = module->dev;
  const size_t length = strlen(name);
  void *memory = NULL;
  cl_int code = CL_SUCCESS;
  size_t most = 0;
  cl_kernel made = clCreateKernel(module->program, name, &code);
  if (code != CL_SUCCESS) {
    char what[128];
    snprintf(what, sizeof what, "kernel '%.80s' of a module", name);
    return ocl_check(dev, code, what, err);
  }
  heddle_status s = ocl_new(dev->host, sizeof **out + length + 1, "a kernel", &memory, err);
  heddle_pkernel *kernel = memory;
  if (s == HEDDLE_OK && pthread_mutex_init(&kernel->lock, NULL) != 0) {
    dev->host->free(dev->host->ctx, kernel);
    s = p_fail(err, HEDDLE_ENOMEM, 0, "opencl:%u: no lock for a kernel", dev->index);
  }
  if (s != HEDDLE_OK) {
    clReleaseKernel(made);
    return s;
  }
  if (clGetKernelWorkGroupInfo(made, dev->info->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL) == CL_SUCCESS)
    kernel->max_threads = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
  kernel->module = module;
  kernel->kernel = made;
  memcpy(kernel->name, name, length + 1);
  *out = kernel;
  return HEDDLE_OK;
}

static heddle_status kernel_get(heddle_pmodule *module, const char *name, heddle_pkernel **out,
                                heddle_pkernel_info *info, heddle_error *err) {
  heddle_status s = ocl_health(module->dev, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&module->lock);
  heddle_pkernel *kernel = module->kernels;
  while (kernel != NULL && strcmp(kernel->name, name) != 0) kernel = kernel->next;
  if (kernel == NULL) {
    s = make_kernel(module, name, &kernel, err);
    if (s == HEDDLE_OK) {
      kernel->next = module->kernels;
      module->kernels = kernel;
    }
  }
  pthread_mutex_unlock(&module->lock);
  if (s != HEDDLE_OK) return s;
  if (HEDDLE_HAS(heddle_pkernel_info, info, max_threads)) info->max_threads = kernel->max_threads;
  *out = kernel;
  return HEDDLE_OK;
}

/* An argument. One that begins inside a buffer is a sub-buffer, which is kept until the kernel gets another, since
 * drivers need not hold what is set. */
static heddle_status set_argument(heddle_pkernel *k, cl_uint i, const heddle_pargument *arg, heddle_error *err) {
  heddle_pdevice *dev = k->module->dev;
  cl_kernel kernel = k->kernel;
  if (arg->size != 0) {
    if (arg->size != 1 && arg->size != 2 && arg->size != 4 && arg->size != 8)
      return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: argument %u has %llu inline bytes; 1, 2, 4 or 8 are possible",
                    dev->index, i, (unsigned long long)arg->size);
    return ocl_check(dev, clSetKernelArg(kernel, i, (size_t)arg->size, &arg->offset), "set an argument", err);
  }
  cl_mem object = arg->buffer != NULL ? arg->buffer->own : NULL;
  cl_int code = CL_SUCCESS;
  bool made = false;
  if (arg->buffer != NULL) {
    heddle_status s = ocl_range(dev, arg->buffer, arg->offset, 0, "argument of a kernel", err);
    if (s != HEDDLE_OK) return s;
    if (object == NULL && arg->buffer->bytes > 0)
      return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: argument %u is no memory that kernels reach", dev->index, i);
    if (arg->offset > 0 && arg->buffer->image[0] != 0)
      return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: argument %u begins inside an image", dev->index, i);
    made = arg->offset > 0 && arg->offset < arg->buffer->bytes;
    if (made && i >= MOST_OFFSETS)
      return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: argument %u begins inside a buffer; the first %d may",
                    dev->index, i, MOST_OFFSETS);
  }
  if (made) {
    const cl_buffer_region region = {(size_t)(arg->buffer->base + arg->offset),
                                     (size_t)(arg->buffer->bytes - arg->offset)};
    object = clCreateSubBuffer(arg->buffer->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  }
  if (code == CL_SUCCESS) code = clSetKernelArg(kernel, i, sizeof object, &object);
  if (made && object != NULL) {
    if (k->parts[i] != NULL) clReleaseMemObject(k->parts[i]);
    k->parts[i] = object;
  }
  return ocl_check(dev, code, "set an argument", err);
}

static heddle_status module_launch(heddle_pstream *stream, heddle_pkernel *kernel, const uint32_t *grid,
                                   const uint32_t *block, uint32_t shared_bytes, const heddle_pargument *args,
                                   uint32_t n_args, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  size_t global[3], local[3];
  heddle_status s = ocl_stream_enter(stream, err);
  if (s != HEDDLE_OK) return s;
  if (kernel->module->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: the kernel '%.100s' is of opencl:%u", dev->index, kernel->name,
                  kernel->module->dev->index);
  for (int d = 0; d < 3; d++) {
    if (grid[d] == 0 || block[d] == 0)
      return p_fail(err, HEDDLE_EINVAL, 0, "opencl:%u: a grid or block of '%.100s' is empty", dev->index, kernel->name);
    local[d] = block[d];
    global[d] = (size_t)grid[d] * block[d];
  }
  heddle_pkernel *own = NULL; /* a capture keeps the arguments, whatever the kernel is given later */
  if (stream->capture != NULL) {
    s = make_kernel(kernel->module, kernel->name, &own, err);
    if (s != HEDDLE_OK) return s;
    heddle_pkernel **list = ocl_capture_kernels(stream->capture);
    own->next = *list;
    *list = kernel = own;
  }
  pthread_mutex_lock(&kernel->lock);
  for (uint32_t i = 0; i < n_args && s == HEDDLE_OK; i++) s = set_argument(kernel, i, &args[i], err);
  if (s == HEDDLE_OK && shared_bytes > 0)
    s = ocl_check(dev, clSetKernelArg(kernel->kernel, n_args, shared_bytes, NULL), "set the shared memory", err);
  if (s == HEDDLE_OK)
    s = ocl_stream_done(stream, ocl_put_kernel(stream, kernel->kernel, 3, global, local), "launch a kernel", err);
  pthread_mutex_unlock(&kernel->lock);
  return s;
}

const heddle_module_table ocl_module_table = {
    .struct_size = sizeof ocl_module_table,
    .unload = module_unload,
    .formats = module_formats,
    .load = module_load,
    .kernel_get = kernel_get,
    .launch = module_launch,
};
