/* Device code from outside: what the driver reads (PTX, cubins and fatbins; code objects of AMD's), and source for the
 * vendor's compiler. Formats that carry their own size are measured before the driver gets them, since it is given no
 * length. */
#include "gpu.h"

#include "plugins/common/gpu/image.h"

enum { MOST_ARGUMENTS = 512 };         /* CUDA's parameters had 4 KiB in all for long */
enum { MOST_PARAMETER_BYTES = 32768 }; /* CUDA 12.1 and newer: 32,764 on compute capability 7.0 and later */
enum { MAX_DYNAMIC_SHARED = 8 };       /* an attribute of a kernel */

struct heddle_pmodule {
  heddle_pdevice *dev;
  void *module;
  pthread_mutex_t lock; /* guards kernels and their shared_set; the driver is called with it held */
  heddle_pkernel *kernels;
};

struct heddle_pkernel {
  heddle_pkernel *next;
  heddle_pmodule *module;
  void *function;
  uint32_t max_threads;
  uint32_t shared_set; /* the most dynamic shared memory that a launch may have, in bytes, until more is asked for */
  char name[];
};

static void module_unload(heddle_pmodule *module) {
  if (module == NULL) return;
  heddle_pdevice *dev = module->dev;
  gpu_scope scope;
  while (module->kernels != NULL) {
    heddle_pkernel *next = module->kernels->next;
    dev->host->free(dev->host->ctx, module->kernels);
    module->kernels = next;
  }
  if (module->module != NULL && dev->vendor->enter(dev, &scope) == 0) {
    gpu_spares_drop(dev); /* graphs may still name its kernels */
    (void)dev->driver->module_unload(module->module);
    dev->vendor->leave(dev, &scope);
  }
  pthread_mutex_destroy(&module->lock);
  gpu_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, module);
}

static const char *module_formats(heddle_pinstance *self, uint32_t index) {
  (void)index;
  return self->vendor->formats;
}

/* ---------------------------------------------------------------- load */

static heddle_status load_source(heddle_pdevice *dev, const char *format, const char *text, void **module,
                                 heddle_error *err) {
  void *image = NULL;
  uint64_t bytes = 0;
  char what[64];
  snprintf(what, sizeof what, "build a module of format %.20s", format);
  heddle_status s = gpu_image_get(dev, what, text, &image, &bytes, err);
  if (s == HEDDLE_OK) s = gpu_image_load(dev, what, image, module, err);
  dev->host->free(dev->host->ctx, image);
  return s;
}

static heddle_status load_bytes(heddle_pdevice *dev, const char *format, const void *data, uint64_t bytes,
                                void **module, heddle_error *err) {
  const heddle_host *host = dev->host;
  char why[160];
  if (!gpu_image_has_format(dev->vendor->formats, format))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s:%u: modules of format '%.60s' are not supported; these are: %s",
                  dev->vendor->name, dev->index, format, dev->vendor->formats);
  if (bytes == 0) return p_fail(err, HEDDLE_EFORMAT, 0, "%s:%u: a module without bytes", dev->vendor->name, dev->index);
  if (!gpu_image_is_whole(format, data, bytes, why, sizeof why))
    return p_fail(err, HEDDLE_EFORMAT, 0, "%s:%u: a module of %llu bytes is no %.20s: %s", dev->vendor->name,
                  dev->index, (unsigned long long)bytes, format, why);
  char *copy = bytes < UINT64_MAX - GPU_IMAGE_PAD ? host->alloc(host->ctx, bytes + GPU_IMAGE_PAD, 64) : NULL;
  if (copy == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for a module of %llu bytes", dev->vendor->name, dev->index,
                  (unsigned long long)bytes);
  memcpy(copy, data, (size_t)bytes);
  memset(copy + bytes, 0, GPU_IMAGE_PAD);
  heddle_status s = gpu_image_is_source(format) ? load_source(dev, format, copy, module, err)
                                                : gpu_image_load(dev, "load a module", copy, module, err);
  host->free(host->ctx, copy);
  return s;
}

static heddle_status module_load(heddle_pdevice *dev, const char *format, const void *data, uint64_t bytes,
                                 heddle_pmodule **out, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = gpu_health(dev, err);
  if (s == HEDDLE_OK) s = gpu_new(dev->host, sizeof **out, "a module", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pmodule *module = memory;
  module->dev = dev;
  if (pthread_mutex_init(&module->lock, NULL) != 0) {
    dev->host->free(dev->host->ctx, module);
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no lock for a module", dev->vendor->name, dev->index);
  }
  gpu_count(&dev->live_objects, 1);
  s = load_bytes(dev, format, data, bytes, &module->module, err);
  if (s != HEDDLE_OK) module_unload(module);
  else *out = module;
  return s;
}

/* ---------------------------------------------------------------- kernels */

int gpu_function_get(heddle_pdevice *dev, void *module, const char *name, void **out) {
  const gpu_driver *d = dev->driver;
  const int code = d->module_function(out, module, name);
  if (code != 0 || d->function_load == NULL) return code;
  const int loaded = d->function_load(*out);
  return dev->vendor->fate(loaded) == GPU_UNSUPPORTED ? 0 : loaded;
}

static heddle_status make_kernel(heddle_pmodule *module, const char *name, heddle_pkernel **out, heddle_error *err) {
  enum { MAX_THREADS = 0, NOT_FOUND = 500 }; /* an attribute and a code that both vendors number alike */
  enum { FREELY = 48 * 1024 };
  heddle_pdevice *dev = module->dev;
  const size_t length = strlen(name);
  void *memory = NULL, *function = NULL;
  char what[128];
  int most = 0, shared = FREELY;
  gpu_scope scope;
  heddle_status s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) return s;
  const int code = gpu_function_get(dev, module->module, name, &function);
  if (code == 0 &&
      (dev->driver->function_attribute == NULL || dev->driver->function_attribute(&most, MAX_THREADS, function) != 0))
    most = 0;
  if (code == 0 && (dev->driver->function_attribute == NULL ||
                    dev->driver->function_attribute(&shared, MAX_DYNAMIC_SHARED, function) != 0 || shared < 0))
    shared = FREELY;
  gpu_leave(dev, &scope);
  snprintf(what, sizeof what, "kernel '%.80s' of a module", name);
  s = gpu_check(dev, code, what, err);
  if (s != HEDDLE_OK) {
    if (code == NOT_FOUND) s = HEDDLE_ENOTFOUND;
    if (err != NULL) err->status = s;
    return s;
  }
  s = gpu_new(dev->host, sizeof **out + length + 1, "a kernel", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pkernel *kernel = memory;
  kernel->module = module;
  kernel->function = function;
  kernel->max_threads = most > 0 ? (uint32_t)most : 0;
  kernel->shared_set = (uint32_t)shared;
  memcpy(kernel->name, name, length + 1);
  *out = kernel;
  return HEDDLE_OK;
}

static heddle_status kernel_get(heddle_pmodule *module, const char *name, heddle_pkernel **out,
                                heddle_pkernel_info *info, heddle_error *err) {
  heddle_status s = gpu_health(module->dev, err);
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

/* ---------------------------------------------------------------- launch */

static heddle_status read_argument(heddle_pdevice *dev, const heddle_pkernel *kernel, uint32_t i,
                                   const heddle_pargument *arg, uint64_t *out, heddle_error *err) {
  const char *name = dev->vendor->name;
  if (arg->size != 0) {
    if (arg->size != 1 && arg->size != 2 && arg->size != 4 && arg->size != 8)
      return p_fail(err, HEDDLE_EINVAL, 0,
                    "%s:%u: argument %u of '%.100s' has %llu inline bytes; 1, 2, 4 or 8 are possible", name, dev->index,
                    i, kernel->name, (unsigned long long)arg->size);
    *out = arg->offset; /* lowest byte first, as the host has it */
    return HEDDLE_OK;
  }
  *out = 0;
  if (arg->buffer == NULL) return HEDDLE_OK;
  if (arg->buffer->dev != dev || (arg->buffer->address == 0 && arg->buffer->bytes > 0))
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: argument %u of '%.100s' is no memory that kernels of the device reach",
                  name, dev->index, i, kernel->name);
  *out = arg->buffer->address + arg->offset;
  return gpu_range(dev, arg->buffer, arg->offset, 0, "argument of a kernel", err);
}

static heddle_status check_sizes(heddle_pdevice *dev, const heddle_pkernel *kernel, const uint32_t *grid,
                                 const uint32_t *block, uint32_t shared_bytes, heddle_error *err) {
  const char *name = dev->vendor->name;
  uint64_t threads = 1;
  if (kernel->module->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: the kernel '%.100s' is of %s:%u", name, dev->index, kernel->name, name,
                  kernel->module->dev->index);
  for (int d = 0; d < 3; d++) {
    if (grid[d] == 0 || block[d] == 0)
      return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: a grid or block of '%.100s' is empty", name, dev->index,
                    kernel->name);
    threads = block[d] <= UINT32_MAX / threads ? threads * block[d] : UINT32_MAX;
  }
  if (kernel->max_threads > 0 && threads > kernel->max_threads)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: a block of '%.100s' has %llu threads, and it takes %u", name,
                  dev->index, kernel->name, (unsigned long long)threads, kernel->max_threads);
  if (grid[0] > dev->vendor->launch_limit_x)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: a grid of '%.100s' has %u blocks along x, and %u are possible", name,
                  dev->index, kernel->name, grid[0], dev->vendor->launch_limit_x);
  if (dev->info->max_shared > 0 && shared_bytes > dev->info->max_shared)
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "%s:%u: '%.100s' is launched with %u bytes of shared memory, and a block has %u", name, dev->index,
                  kernel->name, shared_bytes, dev->info->max_shared);
  return HEDDLE_OK;
}

/* CUDA gives a kernel more than its attribute says, 48 KiB less what it has of its own, only where it was asked before. */
static int allow_shared(heddle_pdevice *dev, heddle_pkernel *kernel, uint32_t bytes) {
  int code = 0;
  if (bytes == 0 || dev->driver->function_set == NULL) return 0;
  pthread_mutex_lock(&kernel->module->lock); /* two launches at a time: the larger number stays */
  if (kernel->shared_set < bytes) {
    code = dev->driver->function_set(kernel->function, MAX_DYNAMIC_SHARED, (int)bytes);
    if (code == 0) kernel->shared_set = bytes;
  }
  pthread_mutex_unlock(&kernel->module->lock);
  return code;
}

static heddle_status module_launch(heddle_pstream *stream, heddle_pkernel *kernel, const uint32_t *grid,
                                   const uint32_t *block, uint32_t shared_bytes, const heddle_pargument *args,
                                   uint32_t n_args, heddle_error *err) {
  /* A kernel with more parameters than it is given reads zeros in their place, and not what lies behind. All parameters
   * together have at most MOST_PARAMETER_BYTES. */
  static const uint64_t nothing[MOST_PARAMETER_BYTES / sizeof(uint64_t)] = {0};
  heddle_pdevice *dev = stream->dev;
  uint64_t values[MOST_ARGUMENTS];
  void *pointers[MOST_ARGUMENTS];
  gpu_scope scope;
  heddle_status s = check_sizes(dev, kernel, grid, block, shared_bytes, err);
  if (s == HEDDLE_OK && n_args > MOST_ARGUMENTS)
    s = p_fail(err, HEDDLE_ELIMIT, 0, "%s:%u: '%.100s' is launched with %u arguments; %d are possible",
               dev->vendor->name, dev->index, kernel->name, n_args, MOST_ARGUMENTS);
  for (uint32_t i = 0; i < n_args && s == HEDDLE_OK; i++) {
    s = read_argument(dev, kernel, i, &args[i], &values[i], err);
    pointers[i] = &values[i];
  }
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = n_args; i < MOST_ARGUMENTS; i++) pointers[i] = (void *)(uintptr_t)nothing;
  s = gpu_stream_enter(stream, &scope, err);
  if (s != HEDDLE_OK) return s;
  int code = allow_shared(dev, kernel, shared_bytes);
  if (code == 0)
    code = dev->driver->launch(kernel->function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes,
                               stream->handle, pointers, NULL);
  return gpu_stream_done(stream, &scope, code, "launch a kernel", err);
}

const heddle_module_table gpu_module_table = {
    .struct_size = sizeof gpu_module_table,
    .unload = module_unload,
    .formats = module_formats,
    .load = module_load,
    .kernel_get = kernel_get,
    .launch = module_launch,
};
