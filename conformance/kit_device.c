/* conformance/kit_device.c: what most cases need of a device: opening, streams, buffers, bytes there and back, and work
 * that takes a while. What fails here fails the case with the call's words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/kit_side.h"

enum { SYNC_MS = 10000 };

heddle_pdevice *kit_open(kit *k, uint32_t index) {
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = index + 1};
  heddle_pdevice *dev = NULL;
  kit_ok(k, k->t.device.open(k->instance, index, &options, &dev, &k->err), "device.open");
  if (dev == NULL) kit_fail(k, "device.open said yes and gave nothing");
  return dev;
}

void kit_close(kit *k, heddle_pdevice *dev) {
  if (k->side->spoilt != NULL && k->side->spoilt_of == dev) kit_free(k, dev, k->side->spoilt);
  if (k->side->spoilt_of == dev) k->side->spoilt = NULL;
  k->t.device.close(dev);
  if (dev == k->dev) k->dev = NULL;
}

void kit_close_all(kit *k) {
  if (k->dev != NULL) kit_close(k, k->dev);
  if (k->instance != NULL) k->root.close_instance(k->instance);
  k->instance = NULL;
}

heddle_pstream *kit_stream(kit *k, heddle_pdevice *dev) {
  static const int32_t priorities[] = {0, 1, -1, INT32_MAX};
  const uint32_t n = k->side->n_streams++, kinds = k->side->kinds;
  const bool copy = kinds == KIT_KINDS_COPY || (kinds != KIT_KINDS_COMPUTE && n % 2 == kinds - KIT_KINDS_COPY_FIRST);
  heddle_pstream *stream = NULL;
  kit_ok(k,
         k->t.stream.create(dev, copy ? HEDDLE_STREAM_COPY : HEDDLE_STREAM_COMPUTE, copy ? priorities[n % 4] : 0,
                            &stream, &k->err),
         "stream.create");
  if (stream == NULL) kit_fail(k, "stream.create said yes and gave nothing");
  return stream;
}

void kit_sync(kit *k, heddle_pstream *stream) {
  const uint64_t ms = kit_patience_ms(k, SYNC_MS);
  heddle_status status = k->t.stream.sync(stream, ms * 1000000, &k->err);
  char what[64] = "stream.sync";
  if (status != HEDDLE_OK) snprintf(what, sizeof what, "stream.sync with a limit of %g s", (double)ms / 1000);
  kit_ok(k, status, what);
}

heddle_pbuffer *kit_buffer(kit *k, heddle_pdevice *dev, uint32_t kind, uint64_t bytes) {
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = kind, .bytes = bytes, .align = 1};
  heddle_pbuffer *buffer = NULL;
  kit_ok(k, k->t.memory.alloc(dev, &desc, &buffer, &k->err),
         kind == HEDDLE_MEMORY_DEVICE   ? "memory.alloc of kind DEVICE"
         : kind == HEDDLE_MEMORY_PINNED ? "memory.alloc of kind PINNED"
                                        : "memory.alloc of kind UNIFIED");
  if (buffer == NULL) kit_fail(k, "memory.alloc said yes and gave nothing");
  return buffer;
}

void *kit_map(kit *k, heddle_pdevice *dev, heddle_pbuffer *buffer) {
  void *at = NULL;
  if (k->t.memory.map == NULL) kit_fault_is(k, KIT_FAULT_ABSENT, kit_call_number("memory.map"), 0);
  if (k->t.memory.map == NULL) kit_fail(k, "memory.map is missing, and the device has memory to map");
  kit_ok(k, k->t.memory.map(dev, buffer, &at, &k->err), "memory.map");
  if (at == NULL) kit_fail(k, "memory.map said yes and gave NULL");
  return at;
}

void kit_free(kit *k, heddle_pdevice *dev, heddle_pbuffer *buffer) {
  k->t.memory.free(dev, buffer);
}

void kit_put(kit *k, heddle_pstream *stream, heddle_pbuffer *buffer, uint64_t offset, const void *data,
             uint64_t bytes) {
  kit_ok(k, k->t.copy.write(stream, buffer, offset, data, bytes, &k->err), "copy.write");
  kit_sync(k, stream);
}

void kit_get(kit *k, heddle_pstream *stream, heddle_pbuffer *buffer, uint64_t offset, void *data, uint64_t bytes) {
  kit_ok(k, k->t.copy.read(stream, data, buffer, offset, bytes, &k->err), "copy.read");
  kit_sync(k, stream);
}

/* ---- bytes to tell apart */

/* A mix of position and seed (the finaliser of MurmurHash3 by Austin Appleby, in the public domain). */
static unsigned char byte_at(uint64_t i, uint32_t seed) {
  uint32_t x = (uint32_t)i ^ (uint32_t)(i >> 32) ^ seed * 0x9e3779b9u;
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return (unsigned char)(x ^ x >> 16);
}

void kit_pattern(void *out, uint64_t bytes, uint32_t seed) {
  unsigned char *p = out;
  for (uint64_t i = 0; i < bytes; i++) p[i] = byte_at(i, seed);
}

uint64_t kit_compare(const void *data, uint64_t bytes, uint32_t seed) {
  const unsigned char *p = data;
  uint64_t i = 0;
  while (i < bytes && p[i] == byte_at(i, seed)) i++;
  return i;
}

/* ---- work that takes a while */

enum { BUSY_COPIES = 32 };
#define BUSY_BYTES (UINT64_C(8) << 20)

struct kit_busy {
  heddle_pdevice *dev;
  heddle_pbuffer *buffers[2];
};

kit_busy *kit_busy_put(kit *k, heddle_pdevice *dev, heddle_pstream *stream) {
  uint64_t bytes = BUSY_BYTES;
  if (k->desc.max_buffer_bytes != 0 && k->desc.max_buffer_bytes < bytes) bytes = k->desc.max_buffer_bytes;
  if (k->desc.memory_bytes != 0 && k->desc.memory_bytes / 8 < bytes) bytes = k->desc.memory_bytes / 8;
  bytes &= ~UINT64_C(3);
  kit_busy *work = malloc(sizeof *work);
  if (work == NULL) kit_skip(k, "the kit is out of memory");
  work->dev = dev;
  for (int i = 0; i < 2; i++) work->buffers[i] = kit_buffer(k, dev, HEDDLE_MEMORY_DEVICE, bytes);
  kit_ok(k, k->t.copy.fill(stream, work->buffers[0], 0, bytes, 0x5eed5eedu, &k->err), "copy.fill");
  for (int i = 0; i < BUSY_COPIES; i++)
    kit_ok(k, k->t.copy.d2d(stream, work->buffers[(i + 1) % 2], 0, work->buffers[i % 2], 0, bytes, &k->err),
           "copy.d2d");
  return work;
}

void kit_busy_free(kit *k, kit_busy *work) {
  if (work == NULL) return;
  for (int i = 0; i < 2; i++) kit_free(k, work->dev, work->buffers[i]);
  free(work);
}
