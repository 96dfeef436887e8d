/* executor/memory.c: takes memory from plugins and gives it back.
 * The plan decides which step may use it when; a caller that finds a device hung says what it may still touch. */
#include "executor/memory.h"

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/failure.h"

enum { HOST_ALIGN = 64 };

/* Host memory that a hung device may touch at any later time: never freed, and reachable, so that no leak checker takes
 * it for an accident. */
static _Atomic(heddle__memory *) kept;

static const char *kind_name(uint32_t kind) {
  return kind == HEDDLE_MEMORY_PINNED ? "pinned" : kind == HEDDLE_MEMORY_UNIFIED ? "unified" : "device";
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* A piece that holds its device and nothing else yet. */
static heddle_status make(heddle_device *dev, uint64_t bytes, heddle__memory **out, heddle_error *err) {
  heddle__memory *m = heddle__alloc(1, sizeof *m);
  if (m == NULL) return heddle__no_memory(err, "a buffer");
  heddle_status s = heddle__device_open(dev, err);
  if (s != HEDDLE_OK) {
    heddle__free(m);
    return s;
  }
  atomic_init(&m->references, 1);
  m->dev = dev;
  heddle_context_retain(dev->ctx);
  m->bytes = m->imported = bytes;
  m->coherent = true;
  *out = m;
  return HEDDLE_OK;
}

static heddle_status allocate(heddle__memory *m, uint32_t kind, uint64_t bytes, uint64_t align, heddle_error *err) {
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = kind, .bytes = bytes, .align = align};
  heddle_pbuffer *buffer = NULL;
  heddle_status s = m->dev->t->memory.alloc(m->dev->handle, &desc, &buffer, err);
  if (s == HEDDLE_OK) m->buffer = buffer;
  return s;
}

static heddle_status map(heddle__memory *m, heddle_error *err) {
  if (m->dev->t->memory.map == NULL)
    return heddle__fail(err, HEDDLE_EABI, "the plugin has neither memory.import_host nor memory.map");
  void *host = NULL;
  heddle_status s = m->dev->t->memory.map(m->dev->handle, m->buffer, &host, err);
  if (s != HEDDLE_OK) return s;
  m->host = host;
  m->mapped = true;
  m->coherent = (m->dev->desc.caps & HEDDLE_CAP_NONCOHERENT) == 0 || heddle__device_inline(m->dev);
  return HEDDLE_OK;
}

/* Host memory of ours, imported: so that the host has its address whatever the plugin thinks of maps. */
static heddle_status allocate_host(heddle__memory *m, uint64_t bytes, uint64_t align, heddle_error *err) {
  m->block = bytes <= SIZE_MAX / 2 ? heddle__alloc_aligned((size_t)bytes, (size_t)align) : NULL;
  if (m->block == NULL) return heddle__fail(err, HEDDLE_ENOMEM, "the host has no memory left");
  m->host = m->block;
  heddle_pbuffer *buffer = NULL;
  heddle_status s = m->dev->t->memory.import_host(m->dev->handle, m->block, bytes, &buffer, err);
  if (s == HEDDLE_OK) m->buffer = buffer;
  return s;
}

static uint64_t granule_of(const heddle_device *dev, uint64_t granule) {
  return larger(larger(granule, HOST_ALIGN), dev->desc.import_alignment);
}

uint64_t heddle__memory_size(const heddle_device *dev, uint32_t kind, uint64_t bytes, uint64_t granule) {
  if (!heddle__device_inline(dev) && kind == HEDDLE_MEMORY_DEVICE) return larger(bytes, 1);
  return heddle__round_up(larger(bytes, 1), granule_of(dev, granule));
}

heddle_status heddle__memory_create(heddle_device *dev, uint32_t kind, uint64_t bytes, uint64_t align, uint64_t granule,
                                    heddle__memory **out, heddle_error *err) {
  *out = NULL;
  heddle__memory *m = NULL;
  heddle_status s = make(dev, bytes, &m, err);
  if (s != HEDDLE_OK) return s;
  heddle_error why = {0};
  bool on_host = heddle__device_inline(dev) || kind != HEDDLE_MEMORY_DEVICE;
  align = larger(align, on_host ? granule_of(dev, granule) : 1);
  m->imported = heddle__memory_size(dev, kind, bytes, granule);
  uint64_t most = larger(4096, dev->desc.alignment);
  if (m->imported > INT64_MAX) s = heddle__fail(&why, HEDDLE_ELIMIT, "that is more than any memory");
  else if (heddle__device_inline(dev) && dev->desc.import_alignment != 0)
    s = allocate_host(m, m->imported, align, &why);
  else s = allocate(m, kind, m->imported, align < most ? align : most, &why);
  if (s == HEDDLE_OK && on_host && m->host == NULL) s = map(m, &why);
  if (s != HEDDLE_OK) {
    if (s == HEDDLE_EDEVICE) heddle__device_fault(dev, why.api_code, why.text);
    if (err != NULL) *err = why;
    heddle__memory_release(m);
    return heddle__prefix_on(
        dev->name, err, s, "%llu bytes of %s memory on %s%s: ", (unsigned long long)bytes, kind_name(kind), dev->name,
        s == HEDDLE_ENOMEM || s == HEDDLE_ELIMIT ? " (use smaller shapes, or place some nodes on another device)" : "");
  }
  *out = m;
  return HEDDLE_OK;
}

bool heddle__image_same(const heddle__image *a, const heddle__image *b) {
  return a->width == b->width && a->height == b->height &&
         (a->width == 0 || (a->dtype.code == b->dtype.code && a->dtype.bits == b->dtype.bits));
}

heddle_status heddle__memory_create_image(heddle_device *dev, const heddle__image *image, heddle__memory **out,
                                          heddle_error *err) {
  *out = NULL;
  heddle__memory *m = NULL;
  const heddle_pmemory_desc desc = {.struct_size = sizeof desc,
                                    .kind = HEDDLE_MEMORY_IMAGE,
                                    .bytes = (uint64_t)image->width * image->height * 4 * (image->dtype.bits / 8),
                                    .image_width = image->width,
                                    .image_height = image->height,
                                    .dtype = image->dtype};
  heddle_status s = make(dev, desc.bytes, &m, err);
  if (s != HEDDLE_OK) return s;
  heddle_error why = {0};
  heddle_pbuffer *buffer = NULL;
  s = dev->t->memory.alloc(dev->handle, &desc, &buffer, &why);
  if (s == HEDDLE_OK) {
    m->buffer = buffer;
    *out = m;
    return s;
  }
  if (s == HEDDLE_EDEVICE) heddle__device_fault(dev, why.api_code, why.text);
  if (err != NULL) *err = why;
  heddle__memory_release(m);
  return heddle__prefix_on(dev->name, err, s, "an image of %u x %u pixels on %s: ", (unsigned)image->width,
                           (unsigned)image->height, dev->name);
}

bool heddle__memory_importable(const heddle_device *dev, const void *host, uint64_t bytes, uint64_t align) {
  uint64_t granule = dev->desc.import_alignment;
  return granule != 0 && (uintptr_t)host % larger(align, granule) == 0 && bytes % granule == 0 && bytes != 0;
}

heddle_status heddle__memory_import(heddle_device *dev, void *host, uint64_t bytes, uint64_t align,
                                    heddle_tensor *lender, heddle__memory **out, heddle_error *err) {
  *out = NULL;
  uint64_t granule = dev->desc.import_alignment;
  if (granule == 0)
    return heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED, "%s cannot import host memory", dev->name);
  align = larger(align, granule);
  if ((uintptr_t)host % align != 0)
    return heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED,
                           "%s imports host memory at multiples of %llu bytes, not at %p", dev->name,
                           (unsigned long long)align, host);
  if (bytes % granule != 0 || bytes == 0)
    return heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED,
                           "%s imports host memory in multiples of %llu bytes, not %llu", dev->name,
                           (unsigned long long)granule, (unsigned long long)bytes);
  heddle__memory *m = NULL;
  heddle_status s = make(dev, bytes, &m, err);
  if (s != HEDDLE_OK) return s;
  heddle_pbuffer *buffer = NULL;
  s = dev->t->memory.import_host(dev->handle, host, bytes, &buffer, err);
  if (s != HEDDLE_OK) {
    heddle__memory_release(m);
    return heddle__prefix_on(dev->name, err, s, "%s: import of %llu bytes of host memory: ", dev->name,
                             (unsigned long long)bytes);
  }
  m->buffer = buffer;
  m->host = host;
  if (lender != NULL) m->lender = heddle_tensor_retain(lender);
  *out = m;
  return HEDDLE_OK;
}

heddle_status heddle__memory_lend(heddle_tensor *t, heddle__memory **out, heddle_error *err) {
  *out = NULL;
  heddle__memory *m = NULL;
  heddle_status s = make(t->dev, t->bytes, &m, err);
  if (s != HEDDLE_OK) return s;
  m->buffer = t->buffer;
  m->borrowed = true;
  m->lender = heddle_tensor_retain(t);
  *out = m;
  return HEDDLE_OK;
}

heddle__memory *heddle__memory_retain(heddle__memory *m) {
  atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
  return m;
}

void heddle__memory_release(heddle__memory *m) {
  if (m == NULL || atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) != 1) return;
  heddle_context *ctx = m->dev->ctx;
  if (heddle__check_fork(NULL) != HEDDLE_OK) return; /* it is the parent's */
  if (m->mapped) m->dev->t->memory.unmap(m->dev->handle, m->buffer);
  if (m->buffer != NULL && !m->borrowed) m->dev->t->memory.free(m->dev->handle, m->buffer);
  heddle__device_close(m->dev);
  if (m->keep_block && (m->block != NULL || m->lender != NULL)) {
    m->next_kept = atomic_load(&kept);
    while (!atomic_compare_exchange_weak(&kept, &m->next_kept, m)) continue;
  } else {
    heddle__free(m->block);
    heddle_tensor_release(m->lender);
    heddle__free(m);
  }
  heddle_context_release(ctx);
}

static void drop(void *user) {
  heddle__memory_release(user);
}

heddle_status heddle__memory_tensor(heddle__memory *m, uint64_t offset, heddle_dtype dtype, uint32_t ndim,
                                    const int64_t *shape, heddle_tensor **out, heddle_error *err) {
  heddle_status s = heddle_tensor_wrap((char *)m->host + offset, dtype, shape, ndim, NULL, drop, m, out, err);
  if (s == HEDDLE_OK) heddle__memory_retain(m);
  return s;
}

heddle_status heddle__memory_flush(heddle__memory *m, uint64_t offset, uint64_t bytes, heddle_error *err) {
  if (m->coherent || bytes == 0) return HEDDLE_OK;
  return m->dev->t->memory.flush(m->dev->handle, m->buffer, offset, bytes, err);
}
