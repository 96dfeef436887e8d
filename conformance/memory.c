/* The group "memory": allocations of every kind and what is promised of their sizes, addresses, limits and bytes. The
 * cases about views, imports and mappings are in memory_shared.c, those about the vendor's handles in memory_adopt.c. */
#include "conformance/memory.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t sizes[] = {1, 3, 4, 255, 256, 257, 4095, 4096, 4097, 65535, 1 << 20, (1 << 20) + 5};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static heddle_status alloc(kit *k, uint32_t kind, uint64_t bytes, uint64_t align, heddle_pbuffer **out) {
  const heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = kind, .bytes = bytes, .align = align};
  *out = NULL;
  return k->t.memory.alloc(k->dev, &desc, out, &k->err);
}

static void zero(kit *k) {
  heddle_pbuffer *a, *b;
  kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, 0, 1, &a), "memory.alloc of 0 bytes");
  kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, 0, 256, &b), "memory.alloc of 0 bytes, aligned");
  if (a == NULL || b == NULL) kit_fail(k, "memory.alloc of 0 bytes gave no buffer, and it is legal");
  if (a == b) kit_fail(k, "memory.alloc of 0 bytes gave the same buffer twice");
  kit_free(k, k->dev, a);
  kit_free(k, k->dev, b);
}

static void zero_pinned(kit *k) {
  heddle_pbuffer *a;
  heddle_status status = alloc(k, HEDDLE_MEMORY_PINNED, 0, 1, &a);
  if (status == HEDDLE_EUNSUPPORTED && kit_inline(k)) kit_skip(k, "the inline device has no PINNED memory");
  kit_ok(k, status, "memory.alloc of 0 bytes of kind PINNED");
  if (a == NULL) kit_fail(k, "memory.alloc of 0 bytes of kind PINNED gave no buffer, and it is legal");
  kit_free(k, k->dev, a);
}

static void null(kit *k) {
  k->t.memory.free(k->dev, NULL);
  heddle_pbuffer *a;
  kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, 64, 1, &a), "memory.alloc after memory.free of NULL");
  kit_free(k, k->dev, a);
}

static void all_sizes(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *all[N_SIZES];
  for (uint32_t i = 0; i < N_SIZES; i++) {
    kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, sizes[i], 1, &all[i]), "memory.alloc of one of many sizes");
    kit_put_pattern(k, s, all[i], 0, sizes[i], i + 1);
  }
  for (uint32_t i = 0; i < N_SIZES; i++)
    kit_holds(k, s, all[i], 0, sizes[i], i + 1, "a buffer filled to its last byte");
  for (uint32_t i = 0; i < N_SIZES; i++) kit_free(k, k->dev, all[i]);
  k->t.stream.close(s);
}

/* Every second buffer goes, others come, and what stayed must be as it was. */
static void apart(kit *k) {
  enum { N = 24 };
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *all[N];
  uint64_t bytes[N];
  for (uint32_t round = 0; round < 2; round++) {
    for (uint32_t i = 0; i < N; i++) {
      if (round == 1 && i % 2 == 0) continue;
      bytes[i] = 100 + 997 * (uint64_t)((i + round * 7) % 11);
      kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, bytes[i], 1, &all[i]), "memory.alloc");
      kit_put_pattern(k, s, all[i], 0, bytes[i], round * N + i);
    }
    for (uint32_t i = 0; i < N; i++)
      kit_holds(k, s, all[i], 0, bytes[i], (i % 2 == 1 ? round : 0) * N + i, "a buffer beside others in use");
    for (uint32_t i = 1; round == 0 && i < N; i += 2) kit_free(k, k->dev, all[i]);
  }
  for (uint32_t i = 0; i < N; i++) kit_free(k, k->dev, all[i]);
  k->t.stream.close(s);
}

static void pinned_apart(kit *k) {
  enum { N = 16 };
  kit_pinned all[N];
  for (uint32_t i = 0; i < N; i++) {
    all[i] = kit_pinned_new(k, k->dev, 64 + 1023 * (uint64_t)i);
    kit_pattern(all[i].at, all[i].bytes, i);
  }
  for (uint32_t i = 0; i < N; i++)
    for (uint32_t j = 0; j < i; j++)
      if (all[i].at < all[j].at + all[j].bytes && all[j].at < all[i].at + all[i].bytes)
        kit_fail(k, "the mappings of two PINNED buffers overlap");
  for (uint32_t i = 0; i < N; i++) kit_same(k, all[i].at, all[i].bytes, i, "mapped memory beside other mappings");
  for (uint32_t i = 0; i < N; i++) kit_pinned_free(k, &all[i]);
}

/* alloc's promise for offset 0, seen in the address of the mapping, for all that a host may ask. */
static void aligned(kit *k, uint32_t kind) {
  const uint64_t most = k->desc.alignment > 4096 ? k->desc.alignment : 4096;
  for (uint64_t align = 1; align <= most; align *= 2)
    for (uint32_t i = 0; i < 3; i++) {
      heddle_pbuffer *buffer, *odd;
      heddle_status status = alloc(k, kind, 100 + i, align, &buffer);
      if (status == HEDDLE_EUNSUPPORTED && kit_inline(k)) kit_skip(k, "the inline device has no PINNED memory");
      if (status != HEDDLE_OK)
        kit_fail(k, "memory.alloc of 100 bytes at alignment %llu: %s", (unsigned long long)align, k->err.text);
      void *at = kit_map(k, k->dev, buffer);
      if ((uintptr_t)at % align != 0)
        kit_fail(k, "memory.alloc was asked for alignment %llu, and the buffer is mapped at %p",
                 (unsigned long long)align, at);
      kit_ok(k, alloc(k, kind, 7, 1, &odd), "memory.alloc of 7 bytes"); /* moves what comes next */
      kit_free(k, k->dev, buffer);
      kit_free(k, k->dev, odd);
    }
}

static void aligned_pinned(kit *k) {
  aligned(k, HEDDLE_MEMORY_PINNED);
}

static void aligned_device(kit *k) {
  const uint64_t most = k->desc.alignment > 4096 ? k->desc.alignment : 4096;
  heddle_pbuffer *buffer;
  for (uint64_t align = 1; align <= most; align *= 2) {
    heddle_status status = alloc(k, HEDDLE_MEMORY_DEVICE, 100, align, &buffer);
    if (status != HEDDLE_OK)
      kit_fail(k, "memory.alloc of 100 bytes at alignment %llu: %s", (unsigned long long)align, k->err.text);
    kit_free(k, k->dev, buffer);
  }
}

static void limit(kit *k) {
  const uint64_t most = k->desc.max_buffer_bytes;
  heddle_pbuffer *buffer;
  if (most == 0 || most == UINT64_MAX) kit_skip(k, "the device has no limit of one buffer (max_buffer_bytes is 0)");
  kit_fails(k, alloc(k, HEDDLE_MEMORY_DEVICE, most + 1, 1, &buffer), HEDDLE_ELIMIT, HEDDLE_ELIMIT,
            "memory.alloc of one byte more than max_buffer_bytes");
  if (buffer != NULL) kit_fail(k, "memory.alloc failed and wrote its out-argument");
}

/* Sizes that wrap when they are rounded up, and sizes that no machine has. */
static void absurd(kit *k) {
  static const uint64_t absurds[] = {UINT64_MAX,        UINT64_MAX - 1,    UINT64_MAX - 255,
                                     UINT64_MAX - 4095, UINT64_C(1) << 63, UINT64_C(1) << 60};
  for (uint32_t i = 0; i < sizeof absurds / sizeof absurds[0]; i++) {
    heddle_pbuffer *buffer;
    heddle_status status = alloc(k, HEDDLE_MEMORY_DEVICE, absurds[i], 256, &buffer);
    kit_fails(k, status, HEDDLE_ENOMEM, HEDDLE_ELIMIT, "memory.alloc of an absurd size");
    if (buffer != NULL) kit_fail(k, "memory.alloc failed and wrote its out-argument");
    status = alloc(k, HEDDLE_MEMORY_PINNED, absurds[i], 256, &buffer);
    if (status == HEDDLE_EUNSUPPORTED && kit_inline(k)) continue;
    kit_fails(k, status, HEDDLE_ENOMEM, HEDDLE_ELIMIT, "memory.alloc of an absurd size of kind PINNED");
  }
}

static void after_refusal(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *buffer = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096), *huge, *next;
  const int64_t buffers = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS), bytes = kit_live(k, HEDDLE_QUERY_LIVE_BYTES);
  kit_put_pattern(k, s, buffer, 0, 4096, 3);
  if (alloc(k, HEDDLE_MEMORY_DEVICE, UINT64_C(1) << 62, 1, &huge) == HEDDLE_OK)
    kit_skip(k, "the device allocates 2^62 bytes");
  if (kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS) != buffers || kit_live(k, HEDDLE_QUERY_LIVE_BYTES) != bytes)
    kit_fail(k, "LIVE_BUFFERS and LIVE_BYTES are off by %lld and %lld after an allocation that was refused",
             (long long)(kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS) - buffers),
             (long long)(kit_live(k, HEDDLE_QUERY_LIVE_BYTES) - bytes));
  kit_holds(k, s, buffer, 0, 4096, 3, "a buffer after another allocation was refused");
  kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, 4096, 1, &next), "memory.alloc after one that was refused");
  kit_put_pattern(k, s, next, 0, 4096, 4);
  kit_holds(k, s, next, 0, 4096, 4, "a buffer allocated after a refusal");
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health after an allocation was refused");
  kit_free(k, k->dev, next);
  kit_free(k, k->dev, buffer);
  k->t.stream.close(s);
}

static void counted(kit *k) {
  int64_t buffers = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS), bytes = kit_live(k, HEDDLE_QUERY_LIVE_BYTES);
  heddle_pbuffer *a, *b;
  kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, 1000, 1, &a), "memory.alloc");
  kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, 5000, 1, &b), "memory.alloc");
  int64_t more = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS) - buffers;
  if (more != 2) kit_fail(k, "LIVE_BUFFERS grew by %lld with two buffers", (long long)more);
  more = kit_live(k, HEDDLE_QUERY_LIVE_BYTES) - bytes;
  if (more < 6000) kit_fail(k, "LIVE_BYTES grew by %lld with 6000 bytes", (long long)more);
  kit_free(k, k->dev, a);
  kit_free(k, k->dev, b);
  more = kit_live(k, HEDDLE_QUERY_LIVE_BUFFERS) - buffers;
  if (more != 0) kit_fail(k, "LIVE_BUFFERS is off by %lld after all was freed", (long long)more);
  more = kit_live(k, HEDDLE_QUERY_LIVE_BYTES) - bytes;
  if (more != 0) kit_fail(k, "LIVE_BYTES is off by %lld after all was freed", (long long)more);
}

static void natives(kit *k) {
  heddle_pbuffer *a, *b;
  uint64_t first = 0, second = 0;
  if (k->t.memory.native == NULL) kit_skip(k, "the plugin has no memory.native");
  kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, 1000, 1, &a), "memory.alloc");
  kit_ok(k, alloc(k, HEDDLE_MEMORY_DEVICE, 1000, 1, &b), "memory.alloc");
  heddle_status status = k->t.memory.native(k->dev, a, &first, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device gives no handles of the vendor's: %s", k->err.text);
  kit_ok(k, status, "memory.native");
  kit_ok(k, k->t.memory.native(k->dev, b, &second, &k->err), "memory.native of another buffer");
  if (first == second) kit_fail(k, "memory.native gave the same handle for two buffers");
  uint64_t again = 0;
  kit_ok(k, k->t.memory.native(k->dev, a, &again, &k->err), "memory.native for the second time");
  if (again != first) kit_fail(k, "memory.native gave two handles for one buffer");
  kit_free(k, k->dev, a);
  kit_free(k, k->dev, b);
}

static void unknown_kind(kit *k) {
  heddle_pbuffer *buffer;
  kit_fails(k, alloc(k, 77, 64, 1, &buffer), HEDDLE_EINVAL, HEDDLE_EUNSUPPORTED, "memory.alloc of an unknown kind");
}

static void required(kit *k) {
  if (k->t.memory.alloc == NULL || k->t.memory.free == NULL) kit_fail(k, "memory.alloc and memory.free are required");
  const bool mapped = !kit_inline(k) || (k->desc.caps & HEDDLE_CAP_UNIFIED) != 0;
  if (mapped && (k->t.memory.map == NULL || k->t.memory.unmap == NULL))
    kit_fail(k, "memory.map and memory.unmap are required of a device that has PINNED or UNIFIED memory");
  if ((k->desc.caps & HEDDLE_CAP_NONCOHERENT) != 0 && (k->t.memory.flush == NULL || k->t.memory.invalidate == NULL))
    kit_fail(k, "memory.flush and memory.invalidate are required where HEDDLE_CAP_NONCOHERENT is set");
  if ((k->desc.caps & HEDDLE_CAP_VIEWS) != 0 && k->t.memory.view == NULL)
    kit_fail(k, "the device says HEDDLE_CAP_VIEWS, and memory.view is NULL");
  if (k->desc.import_alignment != 0 && k->t.memory.import_host == NULL)
    kit_fail(k, "the device gives an import_alignment, and memory.import_host is NULL");
}

/* name, promise, function, flags */
#define ON_DEVICE(name, promise, flags, run) \
  { "memory/" name, promise, KIT_STAGE_DEVICE, flags, 0, run, NULL }

KIT_GROUP(
    kit_memory, "memory",
    {"memory/required", "alloc and free are there; map, flush, view and import where the device says so",
     KIT_STAGE_INSTANCE, 0, 0, required, NULL},
    ON_DEVICE("zero", "bytes 0 is legal and gives a buffer", 0, zero),
    ON_DEVICE("zero-pinned", "bytes 0 is legal for PINNED memory too", 0, zero_pinned),
    ON_DEVICE("free-null", "free takes NULL", 0, null),
    ON_DEVICE("sizes", "a buffer of any size holds all its bytes", 0, all_sizes),
    ON_DEVICE("apart", "buffers do not overlap, whatever was freed between", 0, apart),
    ON_DEVICE("pinned-apart", "mappings do not overlap", 0, pinned_apart),
    ON_DEVICE("align", "align is kept by the mapped address of offset 0, up to 4096", 0, aligned_pinned),
    ON_DEVICE("align-device", "every alignment up to 4096 can be asked of DEVICE memory", 0, aligned_device),
    ON_DEVICE("limit", "over max_buffer_bytes is HEDDLE_ELIMIT", 0, limit),
    ON_DEVICE("absurd", "sizes that no memory has are refused, not wrapped", 0, absurd),
    ON_DEVICE("after-refusal", "a refused allocation leaves the device usable", 0, after_refusal),
    ON_DEVICE("unknown-kind", "an unknown kind is refused with a message", 0, unknown_kind),
    ON_DEVICE("counts", "LIVE_BUFFERS and LIVE_BYTES follow alloc and free", 0, counted),
    ON_DEVICE("native", "native gives a buffer's own handle", 0, natives),
    ON_DEVICE("pinned", "PINNED memory is there and mapped once, for its whole life", KIT_NOT_INLINE,
              kit_memory_pinned),
    ON_DEVICE("host-writes", "what the host writes to a mapping is what h2d copies", 0, kit_memory_host_writes),
    ON_DEVICE("host-reads", "what d2h copies is what the host sees in a mapping", 0, kit_memory_host_reads),
    ON_DEVICE("flush-range", "flush changes no bytes outside its range", 0, kit_memory_flush_range),
    ON_DEVICE("invalidate-range", "invalidate changes no bytes outside its range", 0, kit_memory_invalidate_range),
    ON_DEVICE("unified", "UNIFIED memory is mapped and worked on without copies", 0, kit_memory_unified),
    ON_DEVICE("view", "a view shares its range of the parent's bytes, both ways", 0, kit_memory_view),
    ON_DEVICE("view-counts", "LIVE_BUFFERS counts views, and LIVE_BYTES does not", 0, kit_memory_view_counts),
    ON_DEVICE("view-edges", "what is done to a view stays within it", 0, kit_memory_view_edges),
    ON_DEVICE("view-page", "a view of mapped memory is that part of it", KIT_NOT_INLINE, kit_memory_view_page),
    ON_DEVICE("view-many", "a buffer has many views, freed in any order before it", 0, kit_memory_view_many),
    ON_DEVICE("view-of-view", "a view of a view is refused, or is one", 0, kit_memory_view_of_view),
    ON_DEVICE("adopt", "adopt gives a buffer over the bytes that native names, both ways", 0, kit_memory_adopt),
    ON_DEVICE("adopt-part", "adopt keeps to its offset and size, and its buffer is no view", 0, kit_memory_adopt_part),
    ON_DEVICE("adopt-freed", "adopted memory stays its owner's when the buffer is freed", 0, kit_memory_adopt_freed),
    ON_DEVICE("import", "imported memory is the host side of copies", 0, kit_memory_import),
    ON_DEVICE("import-guards", "copies to imported memory stay within it", 0, kit_memory_import_guards),
    ON_DEVICE("import-freed", "imported memory stays its owner's when the buffer is freed", 0,
              kit_memory_import_freed));
