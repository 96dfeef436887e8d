/* modules/tvm/launch.c: launches of kernels by compiled code, on the stream that its caller runs on: the device that it
 * asks for is checked, code is loaded once per caller and device, arguments become what plugins take, and scratch
 * memory is kept per stream. */
#include "modules/tvm/launch.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"

/* What one caller has loaded on its device. */
typedef struct heddle__on_device {
  pthread_mutex_t lock;   /* guards units, lanes, and what is added to kernels; held while code compiles */
  heddle_pmodule **units; /* by the library's numbers */
  _Atomic(heddle_pkernel *) *kernels;
  struct heddle__lane *lanes;
} heddle__on_device;

typedef struct block {
  heddle_pbuffer *buffer;
  uint64_t bytes;
  uint32_t width, height; /* of an image, else 0 */
  heddle_dtype dtype;
  bool busy;
} block;

struct heddle__lane {
  struct heddle__lane *next;
  const heddle__tvm_caller *caller;
  heddle_pstream *stream;
  uint32_t users, n_blocks;
  block *blocks; /* of one thread at a time, as the stream is */
};

/* ---- devices */

heddle_status heddle__device_attach(heddle__tvm_caller *caller, heddle_error *err) {
  uint32_t n = caller->library->n_kernels;
  heddle__on_device *d = heddle__alloc(1, sizeof *d);
  if (d != NULL) {
    d->units = heddle__alloc(n, sizeof *d->units);
    d->kernels = heddle__alloc(n, sizeof *d->kernels);
    if (d->units != NULL && d->kernels != NULL && pthread_mutex_init(&d->lock, NULL) == 0) {
      caller->device = d;
      return HEDDLE_OK;
    }
    heddle__free(d->units);
    heddle__free(d->kernels);
    heddle__free(d);
  }
  return heddle__no_memory(err, "a library's kernels on a device");
}

void heddle__device_detach(heddle__tvm_caller *caller) {
  heddle__on_device *d = caller->device;
  if (d == NULL) return;
  for (uint32_t i = 0; i < caller->library->n_kernels; i++)
    if (d->units[i] != NULL) caller->dev->t->module.unload(d->units[i]);
  pthread_mutex_destroy(&d->lock);
  heddle__free(d->units);
  heddle__free((void *)d->kernels);
  heddle__free(d);
  caller->device = NULL;
}

/* The names that plugins have for formats. */
static const char *format_of(const heddle__submodule *m) {
  if (strcmp(m->kind, "vulkan") == 0) return "spirv";
  if (strcmp(m->kind, "cuda") == 0 && strcmp(m->format, "cu") == 0) return "cuda"; /* source: no nvcc was there */
  return strcmp(m->kind, "opencl") == 0 && strcmp(m->format, "cl") == 0 ? "opencl-c" : m->format;
}

static heddle_status load(const heddle__tvm_caller *caller, const heddle__kernel_handle *h, heddle_pkernel **out,
                          heddle_error *err) {
  const heddle_device *dev = caller->dev;
  heddle__on_device *d = caller->device;
  heddle_pkernel_info info = {.struct_size = sizeof info};
  heddle_status s = HEDDLE_OK;
  *out = NULL;
  pthread_mutex_lock(&d->lock);
  if (d->units[h->unit] == NULL)
    s = dev->t->module.load(dev->handle, format_of(h->module), h->code.data, h->code.bytes, &d->units[h->unit], err);
  if (s == HEDDLE_OK) s = dev->t->module.kernel_get(d->units[h->unit], h->head.name, out, &info, err);
  if (s == HEDDLE_OK) atomic_store_explicit(&d->kernels[h->number], *out, memory_order_release);
  pthread_mutex_unlock(&d->lock);
  return s == HEDDLE_OK ? s : heddle__prefix_on(dev->name, err, s, "kernel '%.200s' on %s: ", h->head.name, dev->name);
}

heddle_status heddle__device_prepare(heddle__tvm_caller *caller, const char *function, heddle_error *err) {
  const heddle__tvm_library *l = caller->library;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < l->n_kernels && s == HEDDLE_OK; i++) {
    const heddle__kernel_handle *h = &l->kernels[i];
    heddle_pkernel *kernel;
    if (h->wrong != NULL || heddle__kind_type(h->module->kind) != caller->dev->desc.type) continue;
    if (heddle__kernel_is_of(h, function)) s = load(caller, h, &kernel, err);
  }
  return s;
}

/* ---- lanes */

struct heddle__lane *heddle__lane_take(heddle__tvm_caller *caller, heddle_pstream *stream) {
  heddle__on_device *d = caller->device;
  pthread_mutex_lock(&d->lock);
  struct heddle__lane *lane = d->lanes;
  while (lane != NULL && lane->stream != stream) lane = lane->next;
  if (lane == NULL && (lane = heddle__alloc(1, sizeof *lane)) != NULL) {
    lane->caller = caller;
    lane->stream = stream;
    lane->next = d->lanes;
    d->lanes = lane;
  }
  if (lane != NULL) lane->users++;
  pthread_mutex_unlock(&d->lock);
  return lane;
}

void heddle__lane_give(struct heddle__lane *lane) {
  if (lane == NULL) return;
  const heddle_device *dev = lane->caller->dev;
  heddle__on_device *d = lane->caller->device;
  pthread_mutex_lock(&d->lock);
  bool last = --lane->users == 0;
  struct heddle__lane **link = &d->lanes;
  while (last && *link != lane) link = &(*link)->next;
  if (last) *link = lane->next;
  pthread_mutex_unlock(&d->lock);
  if (!last) return;
  for (uint32_t i = 0; i < lane->n_blocks; i++) dev->t->memory.free(dev->handle, lane->blocks[i].buffer);
  heddle__free(lane->blocks);
  heddle__free(lane);
}

void heddle__lane_reset(struct heddle__lane *lane) {
  for (uint32_t i = 0; i < lane->n_blocks; i++) lane->blocks[i].busy = false;
}

const heddle_device *heddle__lane_device(void) {
  const struct heddle__lane *lane = heddle__tvm_self()->lane;
  return lane != NULL ? lane->caller->dev : NULL;
}

/* False: the thread's lane is of another device, or there is none; with words. */
static bool is_here(const struct heddle__lane *lane, int type, int id) {
  char words[300];
  if (lane != NULL && heddle__is_type(lane->caller->dev->desc.type, type) && lane->caller->dev->index == (uint32_t)id)
    return true;
  snprintf(words, sizeof words, "it asks for device %d of DLPack's type %d, and it runs on %s", id, type,
           lane != NULL ? lane->caller->dev->name : "cpu");
  heddle__tvm_say(NULL, words);
  return false;
}

int heddle__tvm_set_device(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                           int32_t *ret_code) {
  (void)self, (void)ret, (void)ret_code;
  if (n != 2 || codes[0] != PACKED_INT || codes[1] != PACKED_INT) {
    heddle__tvm_say(NULL, "__tvm_set_device takes a device type and a number");
    return -1;
  }
  if (args[0].i == HEDDLE_DEVICE_CPU) return 0;
  return is_here(heddle__tvm_self()->lane, (int)args[0].i, (int)args[1].i) ? 0 : -1;
}

heddle_status heddle__lane_wait(heddle_error *err) {
  const struct heddle__lane *lane = heddle__tvm_self()->lane;
  return lane != NULL ? lane->caller->dev->t->stream.sync(lane->stream, UINT64_MAX, err) : HEDDLE_OK;
}

/* ---- scratch memory */

static block *add_block(struct heddle__lane *lane, const heddle_pmemory_desc *desc) {
  const heddle_device *dev = lane->caller->dev;
  heddle_error why = {0};
  block *more = heddle__grow(lane->blocks, lane->n_blocks, (size_t)lane->n_blocks + 1, sizeof *more);
  heddle_status s = more != NULL ? HEDDLE_OK : heddle__no_memory(&why, "scratch memory of a compiled function");
  if (s == HEDDLE_OK) {
    lane->blocks = more;
    more[lane->n_blocks] =
        (block){.bytes = desc->bytes, .width = desc->image_width, .height = desc->image_height, .dtype = desc->dtype};
    s = dev->t->memory.alloc(dev->handle, desc, &more[lane->n_blocks].buffer, &why);
  }
  if (s == HEDDLE_OK) return &more[lane->n_blocks++];
  heddle__tvm_say_error("scratch memory", &why);
  return NULL;
}

/* Work that was put into the stream before may still use a block that was given back: what follows comes behind it. */
void *heddle__lane_alloc(int type, int id, uint64_t bytes) {
  struct heddle__lane *lane = heddle__tvm_self()->lane;
  if (!is_here(lane, type, id)) return NULL;
  block *best = NULL;
  for (uint32_t i = 0; i < lane->n_blocks; i++) {
    block *b = &lane->blocks[i];
    if (!b->busy && b->width == 0 && b->bytes >= bytes && (best == NULL || b->bytes < best->bytes)) best = b;
  }
  if (best == NULL) {
    const heddle_pmemory_desc desc = {.struct_size = sizeof desc,
                                      .kind = HEDDLE_MEMORY_DEVICE,
                                      .bytes = bytes > 0 ? bytes : 1,
                                      .align = lane->caller->dev->desc.alignment};
    best = add_block(lane, &desc);
  }
  if (best == NULL) return NULL;
  best->busy = true;
  return best->buffer;
}

/* Kernels that read no further than they were compiled for find their pixels in a larger image too. */
void *heddle__lane_image(int type, int id, uint32_t width, uint32_t height, heddle_dtype dtype) {
  struct heddle__lane *lane = heddle__tvm_self()->lane;
  if (!is_here(lane, type, id)) return NULL;
  block *best = NULL;
  for (uint32_t i = 0; i < lane->n_blocks; i++) {
    block *b = &lane->blocks[i];
    if (!b->busy && b->width >= width && b->height >= height && b->dtype.code == dtype.code &&
        b->dtype.bits == dtype.bits && (best == NULL || b->bytes < best->bytes))
      best = b;
  }
  if (best == NULL) {
    const heddle_pmemory_desc desc = {.struct_size = sizeof desc,
                                      .kind = HEDDLE_MEMORY_IMAGE,
                                      .bytes = (uint64_t)width * height * 4 * (dtype.bits / 8u),
                                      .image_width = width,
                                      .image_height = height,
                                      .dtype = dtype};
    best = add_block(lane, &desc);
  }
  if (best == NULL) return NULL;
  best->busy = true;
  return best->buffer;
}

/* Type, number, code and bits of an element, scope, 2, {width, height}. */
int heddle__tvm_alloc_image(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code) {
  (void)self;
  bool good = n == 7 && codes[4] == PACKED_STRING && codes[5] == PACKED_INT && args[5].i == 2 &&
              codes[6] == PACKED_HANDLE && args[6].p != NULL;
  for (int32_t i = 0; good && i < 4; i++) good = codes[i] == PACKED_INT;
  const int64_t *size = good ? args[6].p : NULL;
  good = good && strstr(args[4].s, "texture") != NULL && size[0] > 0 && size[0] <= UINT32_MAX && size[1] > 0 &&
         size[1] <= UINT32_MAX && args[2].i >= 0 && args[2].i <= UINT8_MAX && args[3].i > 0 && args[3].i <= UINT8_MAX;
  if (!good) {
    heddle__tvm_say(NULL,
                    "device_api.opencl.alloc_nd takes a device, an element's type, the scope of a texture and two "
                    "sizes");
    return -1;
  }
  const heddle_dtype dtype = {(uint8_t)args[2].i, (uint8_t)args[3].i, 1};
  ret->p = heddle__lane_image((int)args[0].i, (int)args[1].i, (uint32_t)size[0], (uint32_t)size[1], dtype);
  *ret_code = PACKED_HANDLE;
  return ret->p != NULL ? 0 : -1;
}

/* Type, number, scope, the image. */
int heddle__tvm_free_image(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                           int32_t *ret_code) {
  (void)self;
  ret->i = 0;
  *ret_code = PACKED_INT;
  return n >= 1 && (codes[n - 1] == PACKED_HANDLE || codes[n - 1] == PACKED_NULL) ? heddle__lane_free(args[n - 1].p)
                                                                                  : -1;
}

int heddle__lane_free(void *p) {
  struct heddle__lane *lane = heddle__tvm_self()->lane;
  for (uint32_t i = 0; lane != NULL && i < lane->n_blocks; i++)
    if (lane->blocks[i].buffer == p) lane->blocks[i].busy = false;
  return 0;
}

/* ---- launches */

static int refuse(const heddle__kernel_handle *h, const char *why) {
  char words[700];
  snprintf(words, sizeof words, "kernel '%.200s': %.400s", h->head.name, why);
  heddle__tvm_say(NULL, words);
  return -1;
}

static int elsewhere(const heddle__kernel_handle *h, const struct heddle__lane *lane) {
  char words[400];
  snprintf(words, sizeof words, "it is code of kind '%s', which runs on devices of plugin '%s'; the call is on %s",
           h->module->kind, heddle__kind_plugin(h->module->kind), lane != NULL ? lane->caller->dev->name : "cpu");
  return refuse(h, words);
}

/* One argument of the kernel's own; false: a kind that it cannot be made of. */
static bool argument(const unsigned char *type, heddle__word v, int32_t code, heddle_pargument *out) {
  *out = (heddle_pargument){.size = type[1] / 8};
  if (type[0] == HEDDLE_DTYPE_HANDLE) {
    out->buffer = code == PACKED_NULL ? NULL : v.p;
    out->size = 0;
    return code == PACKED_HANDLE || code == PACKED_NULL;
  }
  if (type[0] == HEDDLE_DTYPE_FLOAT) {
    double wide = code == PACKED_INT ? (double)v.i : v.f;
    float narrow = (float)wide;
    if (out->size == 8) memcpy(&out->offset, &wide, 8);
    else memcpy(&out->offset, &narrow, 4);
    return code == PACKED_FLOAT || code == PACKED_INT;
  }
  if (out->size == 8) memcpy(&out->offset, &v.i, 8);
  else out->offset = (uint32_t)v.i;
  return code == PACKED_INT;
}

/* A later extent of an axis wins, and one of 0 leaves it as it was. */
static bool extents(const heddle__kernel_handle *h, const heddle__word *args, const int32_t *codes, uint32_t *sizes) {
  for (uint32_t i = 0; i < h->n_extents; i++) {
    if (codes[i] != PACKED_INT || args[i].i < 0 || args[i].i > UINT32_MAX) return false;
    if (args[i].i != 0) sizes[h->axes[i]] = (uint32_t)args[i].i;
  }
  if (!h->shared) return true;
  int64_t bytes = args[h->n_extents].i;
  sizes[6] = (uint32_t)bytes;
  return codes[h->n_extents] == PACKED_INT && bytes >= 0 && bytes <= UINT32_MAX;
}

int heddle__tvm_launch(const heddle__kernel_handle *h, const heddle__word *args, const int32_t *codes, int32_t n) {
  const struct heddle__lane *lane = heddle__tvm_self()->lane;
  uint32_t n_args = h->kernel->n_args, sizes[7] = {1, 1, 1, 1, 1, 1, 0};
  heddle_pargument own[64];
  if (lane == NULL || lane->caller->library != h->library ||
      lane->caller->dev->desc.type != heddle__kind_type(h->module->kind))
    return elsewhere(h, lane);
  if (n < 0 || (uint32_t)n != n_args + h->n_extents + h->shared)
    return refuse(h, "it is called with another number of arguments and launch parameters than its module lists");
  for (uint32_t i = 0; i < n_args; i++)
    if (!argument(h->kernel->types + 4 * (size_t)i, args[i], codes[i], &own[i]))
      return refuse(h, "an argument is of another kind than its module lists");
  if (!extents(h, args + n_args, codes + n_args, sizes)) return refuse(h, "a launch parameter is out of range");
  heddle_error why = {0};
  heddle_status s = HEDDLE_OK;
  heddle_pkernel *kernel =
      atomic_load_explicit(&((heddle__on_device *)lane->caller->device)->kernels[h->number], memory_order_acquire);
  if (kernel == NULL) s = load(lane->caller, h, &kernel, &why);
  if (s == HEDDLE_OK)
    s = lane->caller->dev->t->module.launch(lane->stream, kernel, sizes, sizes + 3, sizes[6], own, n_args, &why);
  if (s == HEDDLE_OK) return 0;
  heddle__tvm_say_error(h->head.name, &why);
  return -1;
}
