/* core/dlpack.c: tensors as DLPack's structs and back, both the legacy and the versioned form.
 * The structs are declared here, so that the library builds without DLPack's header; a test compares the two. */
#include <stddef.h>

#include "core/alloc.h"
#include "core/device.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/tensor.h"

#define VERSION_MAJOR 1
#define VERSION_MINOR 1
#define FLAG_READ_ONLY UINT64_C(1)
#define FLAG_PADDED UINT64_C(4) /* sub-byte elements take a byte each */

typedef struct dl_tensor {
  void *data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  heddle_dtype dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensor {
  dl_tensor tensor;
  void *manager;
  void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void *manager;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  dl_tensor tensor;
};

_Static_assert(sizeof(dl_tensor) == 48 && offsetof(dl_tensor, device_type) == 8 && offsetof(dl_tensor, ndim) == 16 &&
                   offsetof(dl_tensor, dtype) == 20 && offsetof(dl_tensor, shape) == 24 &&
                   offsetof(dl_tensor, strides) == 32 && offsetof(dl_tensor, byte_offset) == 40,
               "DLTensor");
_Static_assert(sizeof(struct DLManagedTensor) == 64 && offsetof(struct DLManagedTensor, manager) == 48 &&
                   offsetof(struct DLManagedTensor, deleter) == 56,
               "DLManagedTensor");
_Static_assert(sizeof(struct DLManagedTensorVersioned) == 80 &&
                   offsetof(struct DLManagedTensorVersioned, manager) == 8 &&
                   offsetof(struct DLManagedTensorVersioned, deleter) == 16 &&
                   offsetof(struct DLManagedTensorVersioned, flags) == 24 &&
                   offsetof(struct DLManagedTensorVersioned, tensor) == 32,
               "DLManagedTensorVersioned");

/* DLPack's types of memory that the host may read and write like its own: its own, what two vendors have pinned, and
 * what one of them moves to who touches it. */
static bool is_host(int32_t type) {
  enum { PINNED = 3, PINNED_TOO = 11, MANAGED = 13 };
  return type == HEDDLE_DEVICE_CPU || type == PINNED || type == PINNED_TOO || type == MANAGED;
}

/* ---------------------------------------------------------------- out */

static heddle_status fill(heddle_tensor *t, dl_tensor *out, heddle_error *err) {
  *out = (dl_tensor){.data = t->count > 0 ? t->data : NULL,
                     .device_type = HEDDLE_DEVICE_CPU,
                     .ndim = (int32_t)t->ndim,
                     .dtype = t->dtype,
                     .shape = t->shape,
                     .strides = t->strides};
  if (t->dev == NULL) return HEDDLE_OK;
  out->device_type = t->dev->desc.type;
  out->device_id = (int32_t)t->dev->index;
  uint64_t native = 0;
  if (t->count == 0) return HEDDLE_OK; /* the vendor may have no name for nothing */
  if (t->dev->t->memory.native == NULL)
    return heddle__fail_on(t->dev->name, err, HEDDLE_EUNSUPPORTED,
                           "%s gives no native handle of its memory, which DLPack needs; copy "
                           "the tensor to the host first",
                           t->dev->name);
  heddle_status s = t->dev->t->memory.native(t->dev->handle, t->buffer, &native, err);
  if (s != HEDDLE_OK)
    return heddle__prefix_on(t->dev->name, err, s, "%s: native handle of a tensor's memory: ", t->dev->name);
  out->data = (void *)(uintptr_t)native;
  return HEDDLE_OK;
}

static void drop_legacy(struct DLManagedTensor *self) {
  heddle_tensor_release(self->manager);
  heddle__free(self);
}

static void drop_versioned(struct DLManagedTensorVersioned *self) {
  heddle_tensor_release(self->manager);
  heddle__free(self);
}

heddle_status heddle_tensor_to_dlpack(heddle_tensor *t, struct DLManagedTensor **out, heddle_error *err) {
  *out = NULL;
  if (t->read_only || t->dtype.bits % 8 != 0)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                        "read-only memory and parts of a byte need DLPack's versioned form, which has flags for them");
  struct DLManagedTensor *m = heddle__alloc(1, sizeof *m);
  if (m == NULL) return heddle__no_memory(err, "a DLPack tensor");
  heddle_status s = fill(t, &m->tensor, err);
  if (s != HEDDLE_OK) {
    heddle__free(m);
    return s;
  }
  m->manager = heddle_tensor_retain(t);
  m->deleter = drop_legacy;
  *out = m;
  return HEDDLE_OK;
}

heddle_status heddle_tensor_to_dlpack_versioned(heddle_tensor *t, struct DLManagedTensorVersioned **out,
                                                heddle_error *err) {
  *out = NULL;
  struct DLManagedTensorVersioned *m = heddle__alloc(1, sizeof *m);
  if (m == NULL) return heddle__no_memory(err, "a DLPack tensor");
  heddle_status s = fill(t, &m->tensor, err);
  if (s != HEDDLE_OK) {
    heddle__free(m);
    return s;
  }
  m->major = VERSION_MAJOR;
  m->minor = VERSION_MINOR;
  m->flags = (t->read_only ? FLAG_READ_ONLY : 0) | (t->dtype.bits % 8 != 0 ? FLAG_PADDED : 0);
  m->manager = heddle_tensor_retain(t);
  m->deleter = drop_versioned;
  *out = m;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- in */

static void release_legacy(void *user) {
  struct DLManagedTensor *m = user;
  if (m->deleter != NULL) m->deleter(m);
}

static void release_versioned(void *user) {
  struct DLManagedTensorVersioned *m = user;
  if (m->deleter != NULL) m->deleter(m);
}

/* Sub-byte elements: a byte each only where the flag is set, or for the bool of older TVM, (1, 1, 1) in the legacy
 * form, which always took a byte. */
static heddle_status check_packing(heddle_dtype *dtype, bool padded, bool legacy, heddle_error *err) {
  char name[32];
  if (dtype->code == HEDDLE_DTYPE_UINT && dtype->bits == 1 && dtype->lanes == 1 && (legacy || padded)) {
    *dtype = (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1};
    return HEDDLE_OK;
  }
  if (dtype->bits % 8 == 0 || padded) return HEDDLE_OK;
  heddle__dtype_name(*dtype, name);
  return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                      "%s packs several elements into a byte: convert it to one of a byte or more", name);
}

/* The device whose memory it is: dev where the caller named one, else that of own, else the process's. */
static heddle_status find_device(const dl_tensor *d, const heddle_tensor *own, heddle_device **dev, heddle_error *err) {
  heddle_context *ctx;
  if (*dev == NULL && own != NULL) *dev = own->dev;
  if (*dev == NULL) {
    heddle_status s = heddle_context_process(&ctx, err);
    if (s != HEDDLE_OK) return s;
    s = heddle_context_dlpack_device(ctx, d->device_type, d->device_id, dev, err);
    heddle_context_release(ctx); /* the process keeps it */
    return s;
  }
  if (heddle__is_type((*dev)->desc.type, d->device_type) && d->device_id == (int32_t)(*dev)->index) return HEDDLE_OK;
  return heddle__fail_on((*dev)->name, err, HEDDLE_EINVAL,
                         "the tensor is on device %d of DLPack's type %d, not on %s: name its own, or copy it",
                         d->device_id, d->device_type, (*dev)->name);
}

/* Is the struct what fill said of the tensor, so that the buffer serves as it is? */
static bool untouched(const dl_tensor *d, heddle_tensor *own) {
  dl_tensor again;
  return fill(own, &again, NULL) == HEDDLE_OK && again.data == d->data && d->byte_offset == 0;
}

/* own: the tensor that the struct was made of where we made it, or NULL. */
static heddle_status take(heddle_device *dev, const dl_tensor *d, heddle_tensor *own, bool read_only, bool padded,
                          bool legacy, heddle_release_fn release, void *user, heddle_tensor **out, heddle_error *err) {
  if (d->ndim < 0 || d->ndim > HEDDLE__TENSOR_MAX_NDIM)
    return heddle__fail(err, HEDDLE_EINVAL, "the tensor has %d dimensions, expected 0 to %d", d->ndim,
                        HEDDLE__TENSOR_MAX_NDIM);
  heddle_dtype dtype = d->dtype;
  heddle_status s = check_packing(&dtype, padded, legacy, err);
  if (s != HEDDLE_OK) return s;
  if (is_host(d->device_type) && (dev == NULL || heddle__device_inline(dev))) {
    void *data = d->data != NULL ? (void *)((uintptr_t)d->data + d->byte_offset) : NULL;
    s = heddle_tensor_wrap(data, dtype, d->shape, (uint32_t)d->ndim, d->strides, release, user, out, err);
    if (s == HEDDLE_OK) (*out)->read_only = read_only;
    return s;
  }
  heddle__adopted f = {dev, NULL, (uint64_t)(uintptr_t)d->data, d->byte_offset, read_only};
  s = find_device(d, own, &f.dev, err);
  if (s != HEDDLE_OK) return s;
  if (own != NULL && own->dev == f.dev && untouched(d, own)) f.shared = own;
  return heddle__tensor_adopt(&f, dtype, d->shape, (uint32_t)d->ndim, d->strides, release, user, out, err);
}

heddle_status heddle_tensor_from_dlpack_on(heddle_device *dev, struct DLManagedTensor *m, heddle_tensor **out,
                                           heddle_error *err) {
  *out = NULL;
  if (m == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the DLPack tensor is NULL");
  heddle_tensor *own = m->deleter == drop_legacy ? m->manager : NULL;
  return take(dev, &m->tensor, own, false, false, true, release_legacy, m, out, err);
}

heddle_status heddle_tensor_from_dlpack_versioned_on(heddle_device *dev, struct DLManagedTensorVersioned *m,
                                                     heddle_tensor **out, heddle_error *err) {
  *out = NULL;
  if (m == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the DLPack tensor is NULL");
  if (m->major != VERSION_MAJOR) {
    uint32_t major = m->major, minor = m->minor;
    release_versioned(m); /* DLPack: of another major nothing but the deleter may be touched */
    return heddle__fail(err, HEDDLE_EABI, "the tensor is of DLPack %u.%u, expected %d.x; it has been given back", major,
                        minor, VERSION_MAJOR);
  }
  heddle_tensor *own = m->deleter == drop_versioned ? m->manager : NULL;
  return take(dev, &m->tensor, own, (m->flags & FLAG_READ_ONLY) != 0, (m->flags & FLAG_PADDED) != 0, false,
              release_versioned, m, out, err);
}

heddle_status heddle_tensor_from_dlpack(struct DLManagedTensor *m, heddle_tensor **out, heddle_error *err) {
  return heddle_tensor_from_dlpack_on(NULL, m, out, err);
}

heddle_status heddle_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *m, heddle_tensor **out,
                                                  heddle_error *err) {
  return heddle_tensor_from_dlpack_versioned_on(NULL, m, out, err);
}
