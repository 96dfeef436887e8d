/* Any fields in a DLPack struct, over memory of the host or of a device of sim's: it is refused and stays the caller's, or
 * it becomes a tensor of as many bytes as its shape says, whose last release calls the deleter once. A device's bytes are
 * read too: sim knows where its memory ends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"

#if HEDDLE_HAVE_DLPACK
#include <dlpack/dlpack.h>

/* What an input begins with; its shape and then its strides follow, as far as there are bytes. */
typedef struct head {
  uint8_t versioned, has_strides, data, device; /* data: 0 NULL, 1 memory that is there, else handle. device: 1 named */
  uint8_t dtype[4];
  int32_t type, id, ndim;
  uint32_t flags;
  uint64_t offset, handle;
} head;

enum { ROOM = 4096, MOST = 40 };

static heddle_tensor *far;
static heddle_device *sim;
static uint64_t there;
static int deleted;

static void delete_legacy(DLManagedTensor *self) {
  (void)self;
  deleted++;
}

static void delete_versioned(DLManagedTensorVersioned *self) {
  (void)self;
  deleted++;
}

static void start(void) {
  heddle_error err;
  heddle_context *ctx = NULL;
  DLManagedTensor *m = NULL;
  const int64_t shape[1] = {ROOM};
  setenv("HEDDLE_PLUGINS", HEDDLE_FUZZ_PLUGINS, 1);
  setenv("HEDDLE_PROBE", "off", 1);
  setenv("HEDDLE_CONFIG", "off", 0);
  if (heddle_context_process(&ctx, &err) != HEDDLE_OK ||
      heddle_context_find_device(ctx, "sim:0", &sim, &err) != HEDDLE_OK ||
      heddle_tensor_create(sim, (heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1}, shape, 1, &far, &err) != HEDDLE_OK ||
      heddle_tensor_to_dlpack(far, &m, &err) != HEDDLE_OK) {
    fprintf(stderr, "%s\n", err.text);
    exit(1);
  }
  there = (uint64_t)(uintptr_t)m->dl_tensor.data;
  m->deleter(m);
  heddle_context_release(ctx);
}

static void check(heddle_tensor *t) {
  heddle_error err;
  uint64_t bytes = 0;
  if (heddle__shape_bytes(heddle_tensor_dtype(t), heddle_tensor_ndim(t), heddle_tensor_shape(t), NULL, &bytes, &err) !=
          HEDDLE_OK ||
      bytes != heddle_tensor_bytes(t))
    abort();
  if (heddle_tensor_device(t) == NULL) return;
  if (bytes > ROOM || !heddle_tensor_is_contiguous(t)) abort();
  uint8_t got[ROOM];
  if (heddle__tensor_read(t, got, &err) != HEDDLE_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t near[ROOM];
  heddle_error err;
  heddle_tensor *t = NULL;
  head h;
  int64_t shape[MOST] = {0}, strides[MOST] = {0};
  if (size < sizeof h) return 0;
  if (far == NULL) start();
  memcpy(&h, data, sizeof h);
  data += sizeof h;
  size -= sizeof h;
  const size_t more = size < sizeof shape ? size : sizeof shape;
  memcpy(shape, data, more);
  memcpy(strides, data + more, size - more < sizeof strides ? size - more : sizeof strides);
  DLTensor d = {.device = {(DLDeviceType)h.type, h.id},
                .ndim = h.ndim,
                .dtype = {h.dtype[0], h.dtype[1], (uint16_t)(h.dtype[2] | h.dtype[3] << 8)},
                .shape = shape,
                .strides = h.has_strides % 2 != 0 ? strides : NULL,
                .byte_offset = h.offset};
  const bool on_host = h.type != HEDDLE_DEVICE_EXT;
  if (h.data == 1) d.data = on_host ? near : (void *)(uintptr_t)there;
  else if (h.data > 1) d.data = (void *)(uintptr_t)h.handle;
  deleted = 0;
  heddle_device *dev = h.device % 2 != 0 ? sim : NULL;
  DLManagedTensor legacy = {d, NULL, delete_legacy};
  DLManagedTensorVersioned versioned = {{h.versioned > 128 ? 2 : 1, 0}, NULL, delete_versioned, h.flags, d};
  const bool is_versioned = h.versioned % 2 != 0;
  const heddle_status s = is_versioned ? heddle_tensor_from_dlpack_versioned_on(dev, &versioned, &t, &err)
                                       : heddle_tensor_from_dlpack_on(dev, &legacy, &t, &err);
  if ((s == HEDDLE_OK) != (t != NULL)) abort();
  if (deleted != (is_versioned && versioned.version.major != 1)) abort();
  if (t == NULL) return 0;
  check(t);
  heddle_tensor_release(t);
  if (deleted != 1) abort();
  return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)data, (void)size;
  return 0;
}
#endif
