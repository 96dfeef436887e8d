/* Memory: every allocation is known by its address, stands between guard bytes, is poisoned when it is made and when it
 * is freed, and is kept for a while then, so that writes after a free are seen. */
#include "engine_inside.h"

#include <stdio.h>
#include <unistd.h>

#define GUARD 4096 /* bytes on either side; a page, so that host memory stays aligned */
#define GUARD_CHECKED 512
#define GUARD_BYTE 0xA5
#define POISONED ((size_t)64 << 20) /* of a larger allocation only the first bytes are poisoned */
#define KEPT 64
#define KEPT_BYTES ((size_t)1 << 20)

struct eng_pool {
  int device;
  bool created, gone; /* created: by the program, not the device's default */
  uint64_t threshold;
  size_t cached;   /* bytes that are free, and kept from the device */
  uint32_t opened; /* bits: devices whose kernels reach it */
  eng_pool *next;
};

static eng_allocation **all; /* by address */
static size_t count, room;
static size_t used[ENG_DEVICES];
static eng_pool pools[ENG_DEVICES]; /* the default ones */
static eng_pool *created;
static size_t registered;

static struct {
  char *raw;
  size_t bytes;
} kept[KEPT];
static size_t next_kept;

/* ---------------------------------------------------------------- the table */

static size_t place_of(uint64_t address) {
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (all[middle]->base <= address) low = middle + 1;
    else high = middle;
  }
  return low; /* the first one above */
}

eng_allocation *eng_allocation_at(uint64_t address) {
  const size_t at = place_of(address);
  if (at == 0) return NULL;
  eng_allocation *a = all[at - 1];
  return address - a->base < a->bytes || address == a->base ? a : NULL;
}

static bool table_add(eng_allocation *a) {
  if (count == room) {
    const size_t more = room == 0 ? 256 : 2 * room;
    eng_allocation **grown = realloc(all, more * sizeof *all);
    if (grown == NULL) return false;
    all = grown;
    room = more;
  }
  const size_t at = place_of(a->base);
  memmove(all + at + 1, all + at, (count - at) * sizeof *all);
  all[at] = a;
  count++;
  return true;
}

static void table_remove(const eng_allocation *a) {
  const size_t at = place_of(a->base) - 1;
  memmove(all + at, all + at + 1, (count - at - 1) * sizeof *all);
  count--;
}

/* ---------------------------------------------------------------- guards, poison */

static bool all_are(const char *p, size_t bytes, unsigned char byte) {
  for (size_t i = 0; i < bytes; i++) {
    if ((unsigned char)p[i] != byte) return false;
  }
  return true;
}

static void check_guards(const eng_allocation *a) {
  if (a->raw == NULL) return;
  if (!all_are(a->raw + GUARD - GUARD_CHECKED, GUARD_CHECKED, GUARD_BYTE))
    eng_misuse("bytes before an allocation of %zu bytes were written", a->bytes);
  if (!all_are(a->raw + GUARD + a->bytes, GUARD_CHECKED, GUARD_BYTE))
    eng_misuse("bytes behind an allocation of %zu bytes were written", a->bytes);
}

static void evict(size_t i) {
  if (kept[i].raw == NULL) return;
  if (!all_are(kept[i].raw + GUARD, kept[i].bytes, ENG_POISON))
    eng_misuse("%zu bytes that were freed have been written since", kept[i].bytes);
  free(kept[i].raw);
  kept[i].raw = NULL;
}

static void give_back(eng_allocation *a) {
  check_guards(a);
  if (a->raw != NULL && a->bytes <= KEPT_BYTES) {
    memset(a->raw + GUARD, ENG_POISON, a->bytes);
    evict(next_kept);
    kept[next_kept].raw = a->raw;
    kept[next_kept].bytes = a->bytes;
    next_kept = (next_kept + 1) % KEPT;
  } else {
    free(a->raw);
  }
  if (a->area == ENG_AREA_DEVICE) used[a->device] -= a->charged;
  if (a->area == ENG_AREA_REGISTERED) registered -= a->bytes;
  free(a);
}

void eng_memory_check(void) {
  for (size_t i = 0; i < count; i++) check_guards(all[i]);
  for (size_t i = 0; i < KEPT; i++) evict(i);
}

/* ---------------------------------------------------------------- making */

static int make(eng_context *ctx, eng_area area, size_t bytes, eng_allocation **out) {
  eng_allocation *a = calloc(1, sizeof *a);
  void *raw = NULL;
  if (a == NULL || bytes > SIZE_MAX - 3 * GUARD || posix_memalign(&raw, GUARD, bytes + 2 * GUARD) != 0) {
    free(a);
    return ENG_OUT_OF_MEMORY;
  }
  *a = (eng_allocation){.bytes = bytes, .area = area, .ctx = ctx, .device = ctx->device, .raw = raw, .ready = true};
  memset(a->raw + GUARD - GUARD_CHECKED, GUARD_BYTE, GUARD_CHECKED);
  memset(a->raw + GUARD + bytes, GUARD_BYTE, GUARD_CHECKED);
  memset(a->raw + GUARD, ENG_POISON, bytes < POISONED ? bytes : POISONED);
  a->base = (uint64_t)(uintptr_t)(a->raw + GUARD);
  if (!table_add(a)) {
    free(raw);
    free(a);
    return ENG_OUT_OF_MEMORY;
  }
  *out = a;
  return ENG_OK;
}

/* What the pools of a device keep of freed memory. */
static size_t cached_of(int device) {
  size_t bytes = pools[device].cached;
  for (const eng_pool *p = created; p != NULL; p = p->next)
    if (p->device == device) bytes += p->cached;
  return bytes;
}

static size_t uncache_one(eng_pool *pool, size_t bytes) {
  const size_t some = pool->cached < bytes ? pool->cached : bytes;
  pool->cached -= some;
  return bytes - some;
}

/* Gives so many kept bytes back to the device, as far as there are. */
static void uncache(int device, size_t bytes) {
  bytes = uncache_one(&pools[device], bytes);
  for (eng_pool *p = created; p != NULL; p = p->next)
    if (p->device == device) bytes = uncache_one(p, bytes);
}

/* Device memory is charged in pages of 512 bytes; what a pool keeps is given back first where it would not fit. With
 * FAKE_GPU_FRAGMENTS what is kept is in pieces: it serves nothing, and is in the way until the pool is trimmed. */
static int charge(int device, size_t bytes, eng_pool *pool, size_t *charged) {
  const size_t size = (bytes + 511) / 512 * 512, limit = eng_device_get(device)->memory;
  if (size < bytes || used[device] + size > limit) return ENG_OUT_OF_MEMORY;
  if (eng_setting()->fragments) {
    if (used[device] + cached_of(device) + size > limit) return ENG_OUT_OF_MEMORY;
  } else {
    if (pool != NULL) pool->cached -= pool->cached < size ? pool->cached : size;
    const size_t taken = used[device] + cached_of(device) + size;
    if (taken > limit) uncache(device, taken - limit);
  }
  used[device] += size;
  *charged = size;
  return ENG_OK;
}

static int device_alloc(eng_context *ctx, uint64_t *out, size_t bytes, eng_pool *pool, eng_allocation **made) {
  size_t charged = 0;
  if (out == NULL || bytes == 0) return ENG_INVALID_VALUE;
  int code = charge(ctx->device, bytes, pool, &charged);
  if (code != ENG_OK) return code;
  code = make(ctx, ENG_AREA_DEVICE, bytes, made);
  if (code != ENG_OK) {
    used[ctx->device] -= charged;
    return code;
  }
  (*made)->charged = charged;
  (*made)->pool = pool;
  *out = (*made)->base;
  return ENG_OK;
}

int eng_alloc(uint64_t *out, size_t bytes) {
  eng_context *ctx = NULL;
  eng_allocation *made = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_capture_unsafe("an allocation");
  if (code == ENG_OK) code = device_alloc(ctx, out, bytes, NULL, &made);
  return eng_leave_with(code);
}

/* What is to be freed: the allocation that begins at address, or a word of misuse. */
static eng_allocation *to_free(uint64_t address, eng_area area, const char *what) {
  eng_allocation *a = eng_allocation_at(address);
  if (a == NULL || a->base != address || a->area != area) {
    eng_misuse("%s: nothing that is allocated begins at %#llx", what, (unsigned long long)address);
    return NULL;
  }
  if (!a->freeing) return a;
  eng_misuse("%s: %#llx is freed a second time", what, (unsigned long long)address);
  return NULL;
}

int eng_free(uint64_t address) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_capture_unsafe("a free");
  if (code != ENG_OK || address == 0) return eng_leave_with(code);
  eng_allocation *a = to_free(address, ENG_AREA_DEVICE, "a free");
  if (a == NULL) return eng_leave_with(ENG_INVALID_VALUE);
  a->freeing = true;
  eng_streams_await(a->ctx);
  table_remove(a);
  give_back(a);
  return eng_leave_with(ENG_OK);
}

static bool is_pool(const eng_pool *pool) {
  if (pool >= pools && pool < pools + ENG_DEVICES) return true;
  for (const eng_pool *p = created; p != NULL; p = p->next)
    if (p == pool) return !p->gone;
  return false;
}

static int no_pool(const eng_pool *pool) {
  eng_misuse("%p is no memory pool", (const void *)pool);
  return ENG_INVALID_VALUE;
}

int eng_alloc_async(uint64_t *out, size_t bytes, eng_stream_handle handle) {
  return eng_alloc_from(out, bytes, NULL, handle);
}

/* NULL: the default pool of the stream's device. */
int eng_alloc_from(uint64_t *out, size_t bytes, eng_pool *pool, eng_stream_handle handle) {
  eng_stream *stream = NULL;
  eng_allocation *made = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK && !eng_device_get(stream->o.ctx->device)->pools) code = ENG_NOT_SUPPORTED;
  if (code == ENG_OK && stream->capture != NULL) code = eng_capture_break(stream, "a stream-ordered allocation");
  if (code == ENG_OK && pool == NULL) {
    pool = &pools[stream->o.ctx->device];
    pool->device = stream->o.ctx->device;
  }
  if (code == ENG_OK && !is_pool(pool)) code = no_pool(pool);
  if (code == ENG_OK && pool->device != stream->o.ctx->device && pool->created) code = ENG_NOT_SUPPORTED;
  if (code == ENG_OK) code = device_alloc(stream->o.ctx, out, bytes, pool, &made);
  if (code != ENG_OK) return eng_leave_with(code);
  eng_work *work = eng_work_new(ENG_WORK_ALLOC);
  made->ready = false;
  work->address = made->base;
  return eng_leave_with(eng_stream_put(stream, work, NULL, 0, NULL));
}

int eng_free_async(uint64_t address, eng_stream_handle handle) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK && stream->capture != NULL) code = eng_capture_break(stream, "a stream-ordered free");
  if (code != ENG_OK) return eng_leave_with(code);
  eng_allocation *a = to_free(address, ENG_AREA_DEVICE, "a stream-ordered free");
  if (a == NULL) return eng_leave_with(ENG_INVALID_VALUE);
  a->freeing = true;
  eng_work *work = eng_work_new(ENG_WORK_FREE);
  work->address = address;
  return eng_leave_with(eng_stream_put(stream, work, NULL, 0, NULL));
}

void eng_memory_ready(uint64_t base) {
  eng_allocation *a = eng_allocation_at(base);
  if (a != NULL) a->ready = true;
}

void eng_memory_release(uint64_t base) {
  eng_allocation *a = eng_allocation_at(base);
  if (a == NULL) return;
  eng_pool *pool = a->pool;
  if (pool != NULL && !pool->gone) pool->cached += a->charged;
  if (pool != NULL && pool->cached > pool->threshold) pool->cached = (size_t)pool->threshold;
  table_remove(a);
  give_back(a);
}

void eng_memory_drop(eng_context *ctx) {
  for (size_t i = 0; i < count;) {
    eng_allocation *a = all[i];
    if (a->ctx != ctx) {
      i++;
      continue;
    }
    if (ctx->fault == ENG_OK) /* else nothing could be freed any more */
      eng_count_leak("a context of device %d is destroyed while %zu bytes of %s are allocated", ctx->device, a->bytes,
                     a->area == ENG_AREA_DEVICE ? "it" : "host memory");
    table_remove(a);
    give_back(a);
  }
}

int eng_memory_live(bool host) {
  int n = 0;
  for (size_t i = 0; i < count; i++) n += (all[i]->area != ENG_AREA_DEVICE) == host;
  return n;
}

int eng_memory_info(size_t *free_bytes, size_t *all_bytes) {
  eng_context *ctx = NULL;
  eng_enter();
  const int code = eng_context_need(&ctx);
  if (code == ENG_OK) {
    *all_bytes = eng_device_get(ctx->device)->memory;
    *free_bytes = *all_bytes - used[ctx->device] - cached_of(ctx->device);
  }
  return eng_leave_with(code);
}

/* ---------------------------------------------------------------- pools */

int eng_pool_default(int device, eng_pool **out) {
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return ENG_INVALID_DEVICE;
  if (!d->pools) return ENG_NOT_SUPPORTED;
  pools[device].device = device;
  *out = &pools[device];
  return ENG_OK;
}

int eng_pool_create(int device, eng_pool **out) {
  const eng_device *d = eng_device_get(device);
  if (d == NULL) return ENG_INVALID_DEVICE;
  if (!d->pools) return ENG_NOT_SUPPORTED;
  eng_pool *pool = calloc(1, sizeof *pool);
  if (pool == NULL) return ENG_OUT_OF_MEMORY;
  *pool = (eng_pool){.device = device, .created = true};
  eng_enter();
  pool->next = created; /* stays in the list, as handles do */
  created = pool;
  *out = pool;
  return eng_leave_with(ENG_OK);
}

int eng_pool_destroy(eng_pool *pool) {
  eng_enter();
  if (!is_pool(pool) || !pool->created) return eng_leave_with(no_pool(pool));
  pool->gone = true;
  pool->cached = 0;
  return eng_leave_with(ENG_OK);
}

int eng_pools_live(void) {
  int n = 0;
  for (const eng_pool *p = created; p != NULL; p = p->next) n += !p->gone;
  return n;
}

static int pool_check(const eng_pool *pool, int attribute) {
  if (!is_pool(pool)) return no_pool(pool);
  return attribute >= 1 && attribute <= 4 ? ENG_OK : ENG_INVALID_VALUE;
}

int eng_pool_set(eng_pool *pool, int attribute, const void *value) {
  eng_enter();
  const int code = pool_check(pool, attribute);
  if (code == ENG_OK && attribute == 4) memcpy(&pool->threshold, value, sizeof pool->threshold);
  return eng_leave_with(code);
}

/* Bytes of a pool that are allocated. */
static uint64_t pool_used(const eng_pool *pool) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    if (all[i]->pool == pool) bytes += all[i]->charged;
  }
  return bytes;
}

int eng_pool_get(eng_pool *pool, int attribute, void *value) {
  enum { RESERVED = 5, USED = 7 };
  const int on = 1; /* what may be reused in which order: all of it */
  const bool bytes = attribute == RESERVED || attribute == USED;
  eng_enter();
  const int code = pool_check(pool, bytes ? 4 : attribute);
  if (code == ENG_OK && bytes) {
    const uint64_t now = pool_used(pool) + (attribute == RESERVED ? pool->cached : 0);
    memcpy(value, &now, sizeof now);
    return eng_leave_with(code);
  }
  if (code == ENG_OK && attribute == 4) memcpy(value, &pool->threshold, sizeof pool->threshold);
  if (code == ENG_OK && attribute != 4) memcpy(value, &on, sizeof on);
  return eng_leave_with(code);
}

int eng_pool_access(eng_pool *pool, int device, bool open) {
  eng_enter();
  int code = pool_check(pool, 4);
  if (code == ENG_OK && eng_device_get(device) == NULL) code = ENG_INVALID_DEVICE;
  if (code == ENG_OK && pool->device != device && !eng_device_peer(device, pool->device)) code = ENG_NO_PEER;
  if (code == ENG_OK) pool->opened = open ? pool->opened | 1u << device : pool->opened & ~(1u << device);
  return eng_leave_with(code);
}

bool eng_pool_opened(const eng_pool *pool, int device) {
  return (pool->opened >> device & 1u) != 0;
}

int eng_pool_trim(eng_pool *pool, size_t keep_bytes) {
  eng_enter();
  const int code = pool_check(pool, 4);
  if (code == ENG_OK && pool->cached > keep_bytes) pool->cached = keep_bytes;
  return eng_leave_with(code);
}

/* ---------------------------------------------------------------- host memory */

int eng_host_alloc(void **out, size_t bytes, unsigned flags) {
  eng_context *ctx = NULL;
  eng_allocation *a = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_capture_unsafe("an allocation of host memory");
  if (code == ENG_OK && (bytes == 0 || (flags & ~7u) != 0)) code = ENG_INVALID_VALUE;
  if (code == ENG_OK) code = make(ctx, ENG_AREA_HOST, bytes, &a);
  if (code == ENG_OK) *out = a->raw + GUARD;
  return eng_leave_with(code);
}

int eng_host_free(void *address) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_capture_unsafe("a free of host memory");
  if (code != ENG_OK) return eng_leave_with(code);
  eng_allocation *a = to_free((uint64_t)(uintptr_t)address, ENG_AREA_HOST, "a free of host memory");
  if (a == NULL) return eng_leave_with(ENG_INVALID_VALUE);
  a->freeing = true;
  eng_streams_await(a->ctx);
  table_remove(a);
  give_back(a);
  return eng_leave_with(ENG_OK);
}

int eng_host_register(void *address, size_t bytes, unsigned flags) {
  eng_context *ctx = NULL;
  const uint64_t base = (uint64_t)(uintptr_t)address;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_capture_unsafe("a registration of host memory");
  if (code == ENG_OK && (address == NULL || bytes == 0 || (flags & ~15u) != 0)) code = ENG_INVALID_VALUE;
  if (code == ENG_OK && bytes > eng_setting()->register_most - registered) code = ENG_OUT_OF_MEMORY;
  if (code == ENG_OK && eng_setting()->register_us > 0) { /* pages are pinned one by one, while others call */
    eng_leave();
    eng_nap(eng_setting()->register_us);
    eng_enter();
  }
  if (code == ENG_OK) {
    const size_t at = place_of(base + bytes - 1); /* the first one behind it */
    if (at > 0 && all[at - 1]->base + all[at - 1]->bytes > base) code = ENG_HOST_ALREADY;
  }
  if (code != ENG_OK) return eng_leave_with(code);
  eng_allocation *a = calloc(1, sizeof *a);
  if (a == NULL) return eng_leave_with(ENG_OUT_OF_MEMORY);
  *a = (eng_allocation){
      .base = base, .bytes = bytes, .area = ENG_AREA_REGISTERED, .ctx = ctx, .device = ctx->device, .ready = true};
  if (table_add(a)) {
    registered += bytes;
    return eng_leave_with(ENG_OK);
  }
  free(a);
  return eng_leave_with(ENG_OUT_OF_MEMORY);
}

int eng_host_unregister(void *address) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_capture_unsafe("an end of a registration");
  if (code != ENG_OK) return eng_leave_with(code);
  eng_allocation *a = to_free((uint64_t)(uintptr_t)address, ENG_AREA_REGISTERED, "an end of a registration");
  if (a == NULL) return eng_leave_with(ENG_HOST_NOT_REGISTERED);
  a->freeing = true;
  eng_streams_await(a->ctx);
  table_remove(a);
  give_back(a);
  return eng_leave_with(ENG_OK);
}

int eng_host_address(uint64_t *out, void *address) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  const eng_allocation *a = eng_allocation_at((uint64_t)(uintptr_t)address);
  if (code == ENG_OK && (a == NULL || a->area == ENG_AREA_DEVICE)) code = ENG_INVALID_VALUE;
  if (code == ENG_OK) *out = (uint64_t)(uintptr_t)address;
  return eng_leave_with(code);
}

/* ---------------------------------------------------------------- looking */

int eng_memory_find(uint64_t address, eng_place *out) {
  *out = (eng_place){0};
  eng_enter();
  const eng_allocation *a = eng_allocation_at(address);
  if (a != NULL) *out = (eng_place){a->area == ENG_AREA_DEVICE ? 2 : 1, a->device, a->base, a->bytes};
  return eng_leave_with(a != NULL ? ENG_OK : ENG_INVALID_VALUE);
}

const char *eng_memory_wrong(const eng_context *ctx, uint64_t address, size_t bytes, bool running) {
  const eng_allocation *a = eng_allocation_at(address);
  (void)ctx;
  if (a == NULL) return "is not allocated";
  if (bytes > a->bytes - (address - a->base)) return "does not reach that far";
  if (running && !a->ready) return "is allocated in the order of another stream, which has not come to it";
  if (!running && a->freeing) return "is freed";
  return NULL;
}
