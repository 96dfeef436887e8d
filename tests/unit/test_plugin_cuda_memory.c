/* timeout: 60
 * The cuda plugin's memory and copies, on the double of its driver: pools and blocks, imports, ranges, peers, what
 * happens where memory is out, and what a device that hangs may still touch. */
#include "cuda_host.h"

#include "gpu_double.h"
#include "plugins/common/gpu/gpu.h"

#define MIB ((uint64_t)1 << 20)

static uint64_t address_of(sim_test *t, heddle_pdevice *dev, heddle_pbuffer *b) {
  uint64_t address = 0;
  OK(t, t->p->memory->native(dev, b, &address, &t->err));
  assert_true(address != 0);
  return address;
}

static void rules(const char *pools) {
  sim_test t;
  heddle_pbuffer *b = NULL, *view = NULL;
  void *at = NULL;
  cuda_open(&t, 1, "pools", pools, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));

  heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = desc.max_buffer_bytes + 1};
  FAILS(&t, HEDDLE_ELIMIT, "at most", t.p->memory->alloc(dev, &wish, &b, &t.err));
  wish.bytes = 100;
  wish.align = 48;
  FAILS(&t, HEDDLE_EINVAL, "power of two", t.p->memory->alloc(dev, &wish, &b, &t.err));
  wish.align = 64;
  wish.kind = 9;
  FAILS(&t, HEDDLE_EUNSUPPORTED, "kind 9", t.p->memory->alloc(dev, &wish, &b, &t.err));

  for (uint32_t kind = HEDDLE_MEMORY_DEVICE; kind <= HEDDLE_MEMORY_PINNED; kind++) {
    b = sim_buf(&t, dev, kind, 0); /* empty ones are legal */
    t.p->memory->free(dev, b);
    for (uint64_t align = 1; align <= 4096; align *= 16) {
      wish = (heddle_pmemory_desc){.struct_size = sizeof wish, .kind = kind, .bytes = 1000, .align = align};
      OK(&t, t.p->memory->alloc(dev, &wish, &b, &t.err));
      assert_int_equal(address_of(&t, dev, b) % align, 0);
      if (kind == HEDDLE_MEMORY_PINNED) {
        uint8_t *p = sim_map(&t, dev, b);
        assert_int_equal((uintptr_t)p % align, 0);
        memset(p, 1, 1000);
        t.p->memory->unmap(dev, b);
      }
      t.p->memory->free(dev, b);
    }
  }
  b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 4096);
  FAILS(&t, HEDDLE_EINVAL, "mapped", t.p->memory->map(dev, b, &at, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "view", t.p->memory->view(dev, b, 8, 8, &view, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "view", t.p->memory->view(dev, b, 4096, 8, &view, &t.err));
  OK(&t, t.p->memory->view(dev, b, desc.alignment, 512, &view, &t.err));
  assert_int_equal(address_of(&t, dev, view), address_of(&t, dev, b) + desc.alignment);
  assert_int_equal(sim_query(&t, dev, HEDDLE_QUERY_LIVE_BUFFERS), 2);
  assert_int_equal(sim_query(&t, dev, HEDDLE_QUERY_LIVE_BYTES), 4096);

  heddle_pstream *s = sim_stream(&t, dev);
  sim_fill(&t, s, b, 4096, 0x11111111);
  OK(&t, t.p->copy->fill(s, view, 0, 512, 0x22222222, &t.err));
  uint32_t words[1024];
  OK(&t, t.p->copy->read(s, words, b, 0, sizeof words, &t.err));
  for (uint64_t i = 0; i < 1024; i++) {
    const bool inside = i * 4 >= desc.alignment && i * 4 < desc.alignment + 512;
    assert_int_equal(words[i], inside ? 0x22222222 : 0x11111111);
  }
  t.p->stream->close(s);
  t.p->memory->free(dev, view);
  t.p->memory->free(dev, b);
  sim_close(&t);
  double_is_clean();
}

static void memory_from_a_pool_keeps_its_rules(void **state) {
  (void)state;
  rules("1");
}

static void memory_from_blocks_keeps_its_rules(void **state) {
  (void)state;
  rules("0");
}

/* Every kind of copy, at odd offsets, leaves the bytes outside its range alone. */
static void copies_keep_to_their_ranges(void **state) {
  enum { BYTES = 4096 };
  static _Alignas(4096) uint8_t own[BYTES];
  sim_test t;
  uint8_t got[16];
  (void)state;
  cuda_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *s = sim_stream(&t, dev);
  heddle_pbuffer *a = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES), *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *pinned = sim_buf(&t, dev, HEDDLE_MEMORY_PINNED, BYTES), *imported = NULL;
  uint8_t *host = sim_map(&t, dev, pinned);
  OK(&t, t.p->memory->import_host(dev, own, BYTES, &imported, &t.err));
  for (int i = 0; i < BYTES; i++) own[i] = (uint8_t)(i * 7);
  memset(host, 0x55, BYTES);
  sim_fill(&t, s, a, BYTES, 0xAAAAAAAA);
  sim_fill(&t, s, b, BYTES, 0xBBBBBBBB);
  OK(&t, t.p->copy->h2d(s, a, 3, imported, 5, 501, &t.err)); /* a[3..504) = own[5..506) */
  OK(&t, t.p->copy->d2d(s, b, 100, a, 3, 501, &t.err));      /* b[100..601) */
  OK(&t, t.p->copy->d2h(s, pinned, 7, b, 99, 503, &t.err));  /* host[7..510) = b[99..602) */
  sim_sync(&t, s);
  for (int i = 0; i < BYTES; i++) {
    int want = 0x55;
    if (i >= 7 && i < 510) want = i - 7 == 0 || i - 7 == 502 ? 0xBB : (uint8_t)((i - 8 + 5) * 7);
    assert_int_equal(host[i], want);
  }
  OK(&t, t.p->copy->write(s, b, 1, own, 10, &t.err));
  memset(own, 0, 10); /* write is finished with it */
  OK(&t, t.p->copy->read(s, got, b, 0, 12, &t.err));
  for (int i = 0; i < 12; i++) assert_int_equal(got[i], i == 0 || i == 11 ? 0xBB : (uint8_t)((i - 1) * 7));

  FAILS(&t, HEDDLE_EINVAL, "1 bytes at 4096", t.p->copy->h2d(s, a, BYTES, pinned, 0, 1, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "kind device", t.p->copy->h2d(s, a, 0, b, 0, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "imported", t.p->copy->d2d(s, imported, 0, a, 0, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "multiples of 4", t.p->copy->fill(s, a, 2, 4, 0, &t.err));
  OK(&t, t.p->copy->d2d(s, a, BYTES, b, BYTES, 0, &t.err));
  sim_sync(&t, s);
  t.p->memory->free(dev, imported);
  t.p->memory->free(dev, pinned);
  t.p->memory->free(dev, b);
  t.p->memory->free(dev, a);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

/* The driver takes a page once, and forgets it at once: devices and buffers share that registration. */
static void imports_keep_their_rules(void **state) {
  enum { BYTES = 16384 };
  static _Alignas(4096) uint8_t own[BYTES];
  sim_test t;
  heddle_pbuffer *b = NULL, *same = NULL, *part = NULL;
  uint64_t native = 0;
  (void)state;
  cuda_open(&t, 2, NULL);
  heddle_pdevice *dev = t.dev[0];
  FAILS(&t, HEDDLE_EINVAL, "multiples of 4096", t.p->memory->import_host(dev, own + 64, 4096, &b, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "multiples of 4096", t.p->memory->import_host(dev, own, 100, &b, &t.err));
  OK(&t, t.p->memory->import_host(dev, own, BYTES, &b, &t.err));
  OK(&t, t.p->memory->import_host(t.dev[1], own, BYTES, &same, &t.err));
  OK(&t, t.p->memory->import_host(dev, own + 4096, 4096, &part, &t.err));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "no address", t.p->memory->native(dev, b, &native, &t.err));
  assert_int_equal(sim_query(&t, dev, HEDDLE_QUERY_LIVE_BYTES), 0);
  if (!gpu_is_real()) assert_int_equal(double_calls("cuMemHostRegister_v2"), 1);
  t.p->memory->free(dev, b);
  t.p->memory->free(dev, part);

  heddle_pstream *s = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, BYTES);
  for (int i = 0; i < BYTES; i++) own[i] = (uint8_t)(i * 5);
  OK(&t, t.p->copy->h2d(s, a, 0, same, 0, BYTES, &t.err));
  sim_sync(&t, s);
  memset(own, 0, BYTES);
  OK(&t, t.p->copy->d2h(s, same, 0, a, 0, BYTES, &t.err));
  sim_sync(&t, s);
  for (int i = 0; i < BYTES; i++) assert_int_equal(own[i], (uint8_t)(i * 5));
  t.p->memory->free(t.dev[1], same);
  if (!gpu_is_real()) assert_int_equal(double_calls("cuMemHostUnregister"), 1);

  OK(&t, t.p->memory->import_host(dev, own, BYTES, &b, &t.err)); /* and it can be had again */
  t.p->memory->free(dev, b);
  t.p->memory->free(t.dev[1], a);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

/* A copy of which a part was imported, and an import of which a part is one already. */
static void imports_in_part(void **state) {
  enum { PAGE = 4096, BYTES = 6 * PAGE };
  static _Alignas(4096) uint8_t own[BYTES];
  sim_test t;
  heddle_pbuffer *b = NULL, *other = NULL;
  (void)state;
  cuda_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *s = sim_stream(&t, dev);
  heddle_pbuffer *a = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  for (int i = 0; i < BYTES; i++) own[i] = (uint8_t)(i * 11 + i / PAGE);
  OK(&t, t.p->memory->import_host(dev, own + PAGE, 2 * PAGE, &b, &t.err));
  OK(&t, t.p->memory->import_host(dev, own + 4 * PAGE, PAGE, &other, &t.err));
  OK(&t, t.p->copy->write(s, a, 0, own, BYTES, &t.err));
  memset(own + 5, 0, BYTES - 5);
  OK(&t, t.p->copy->read(s, own + 5, a, 5, BYTES - 5, &t.err));
  OK(&t, t.p->copy->write(s, a, 0, own, 2 * PAGE + 9, &t.err));                      /* ends in what is imported */
  OK(&t, t.p->copy->read(s, own + 2 * PAGE + 1, a, 2 * PAGE + 1, 2 * PAGE, &t.err)); /* begins in it */
  for (int i = 0; i < BYTES; i++) assert_int_equal(own[i], (uint8_t)(i * 11 + i / PAGE));
  t.p->memory->free(dev, other);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "(712)", t.p->memory->import_host(dev, own + 2 * PAGE, 2 * PAGE, &other, &t.err));
  t.p->memory->free(dev, b);
  OK(&t, t.p->memory->import_host(dev, own + 2 * PAGE, 2 * PAGE, &other, &t.err));
  t.p->memory->free(dev, other);
  t.p->memory->free(dev, a);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

/* Pages that cannot be written, or more than may be locked: the host copies them instead, which it does where an import is
 * not supported, and the device is as ever. */
static void what_cannot_be_registered_is_copied(void **state) {
  static _Alignas(4096) uint8_t own[4096];
  sim_test t;
  heddle_pbuffer *b = NULL;
  (void)state;
  setenv("FAKE_GPU_FAIL", "cuMemHostRegister:1:1,cuMemHostRegister:2:2,cuMemHostRegister:3:304", 1);
  cuda_open(&t, 1, NULL);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "(1)", t.p->memory->import_host(t.dev[0], own, 4096, &b, &t.err));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "(2)", t.p->memory->import_host(t.dev[0], own, 4096, &b, &t.err));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "(304)", t.p->memory->import_host(t.dev[0], own, 4096, &b, &t.err));
  OK(&t, t.p->memory->import_host(t.dev[0], own, 4096, &b, &t.err));
  t.p->memory->free(t.dev[0], b);
  sim_close(&t);
  double_is_clean();
}

/* What was freed is used again for what fits within an eighth, without a call of the driver's. */
static void blocks_are_used_again(void **state) {
  sim_test t;
  (void)state;
  cuda_open(&t, 1, "pools", "0", NULL);
  heddle_pdevice *dev = t.dev[0];
  const int before = double_calls("cuMemAlloc_v2");
  heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, MIB);
  const uint64_t first = address_of(&t, dev, b);
  t.p->memory->free(dev, b);
  b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, MIB - 1000);
  assert_int_equal(address_of(&t, dev, b), first);
  heddle_pbuffer *other = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, MIB); /* the kept one is taken */
  assert_true(address_of(&t, dev, other) != first);
  t.p->memory->free(dev, b);
  t.p->memory->free(dev, other);
  assert_int_equal(double_calls("cuMemAlloc_v2") - before, 2);
  b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, MIB / 2); /* half of a block would be wasted */
  assert_int_equal(double_calls("cuMemAlloc_v2") - before, 3);
  t.p->memory->free(dev, b);
  assert_int_equal(double_calls("cuMemFree_v2"), 0);
  sim_close(&t);
  assert_int_equal(double_live("allocations"), 0);
  double_is_clean();
}

/* Freed memory counts as free, and goes where another size is wanted and there is none. */
static void memory_that_is_out(const char *pools) {
  sim_test t;
  heddle_pbuffer *b = NULL;
  uint64_t free_bytes = 0, all = 0, again = 0;
  setenv("FAKE_GPU_MEMORY", "67108864", 1);
  cuda_open(&t, 1, "pools", pools, NULL);
  heddle_pdevice *dev = t.dev[0];
  OK(&t, t.p->device->memory_now(dev, &free_bytes, &all, &t.err));
  assert_int_equal(all, 64 * MIB);
  heddle_pbuffer *a = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 40 * MIB);
  OK(&t, t.p->device->memory_now(dev, &again, &all, &t.err));
  assert_true(again <= free_bytes - 40 * MIB);

  heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = 41 * MIB};
  FAILS(&t, HEDDLE_ENOMEM, "allocate 42991616 bytes where ", t.p->memory->alloc(dev, &wish, &b, &t.err));
  assert_non_null(strstr(t.err.text, " of 67108864 are free"));
  assert_non_null(strstr(t.err.text, "(2)"));
  OK(&t, t.p->device->health(dev, &t.err));

  t.p->memory->free(dev, a);
  OK(&t, t.p->device->memory_now(dev, &again, &all, &t.err));
  assert_int_equal(again, free_bytes);
  b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 60 * MIB);
  t.p->memory->free(dev, b);
  sim_close(&t);
  double_is_clean();
}

static void memory_is_out_with_a_pool(void **state) {
  (void)state;
  memory_that_is_out("1");
}

static void memory_is_out_with_blocks(void **state) {
  (void)state;
  memory_that_is_out("0");
}

/* A driver without pools, and one whose devices have none, do as well. */
static void devices_without_pools_use_blocks(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_POOLS", "0", 1);
  cuda_open(&t, 1, NULL);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  sim_fill(&t, s, b, 4096, 5);
  sim_expect(&t, s, b, 1024, 5);
  assert_int_equal(double_calls("cuMemAllocFromPoolAsync"), 0);
  t.p->stream->close(s);
  t.p->memory->free(t.dev[0], b);
  sim_close(&t);
  double_is_clean();
}

static void values_cross_between_devices(void **state) {
  enum { BYTES = 65536 };
  sim_test t;
  (void)state;
  cuda_open(&t, 2, NULL);
  OK(&t, t.p->copy->can_peer(t.self, 0, 1, &t.err));
  assert_int_equal(double_calls("cuCtxEnablePeerAccess"), 2);
  heddle_pbuffer *b[2];
  heddle_pstream *s[2];
  for (int i = 0; i < 2; i++) {
    b[i] = sim_buf(&t, t.dev[i], HEDDLE_MEMORY_DEVICE, BYTES);
    s[i] = sim_stream(&t, t.dev[i]);
  }
  for (int by = 0; by < 2; by++) { /* by a stream of either device */
    const uint32_t word = 0x1000u + (uint32_t)by;
    sim_fill(&t, s[0], b[0], BYTES, word);
    sim_sync(&t, s[0]);
    OK(&t, t.p->copy->peer(s[by], t.dev[1], b[1], 0, t.dev[0], b[0], 0, BYTES, &t.err));
    sim_sync(&t, s[by]);
    sim_expect(&t, s[1], b[1], BYTES / 4, word);
  }
  FAILS(&t, HEDDLE_EINVAL, "belongs to " GPU_PLUGIN ":1", t.p->copy->d2d(s[0], b[0], 0, b[1], 0, 4, &t.err));
  for (int i = 0; i < 2; i++) {
    t.p->memory->free(t.dev[i], b[i]);
    t.p->stream->close(s[i]);
  }
  sim_close(&t);
  double_is_clean();
}

/* Where the hardware has no way, the driver's copy goes through the host. */
static void devices_without_a_path_copy_through_the_host(void **state) {
  sim_test t;
  heddle_pbuffer *b[2];
  (void)state;
  setenv("FAKE_GPU_PEERS", "0", 1);
  cuda_open(&t, 2, NULL);
  for (int i = 0; i < 2; i++) b[i] = sim_buf(&t, t.dev[i], HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  sim_fill(&t, s, b[0], 4096, 21);
  OK(&t, t.p->copy->peer(s, t.dev[1], b[1], 0, t.dev[0], b[0], 0, 4096, &t.err));
  sim_fill(&t, s, b[0], 4096, 22);
  OK(&t, t.p->copy->peer(s, t.dev[0], b[0], 0, t.dev[1], b[1], 0, 2048, &t.err));
  sim_expect(&t, s, b[0], 512, 21);
  if (!gpu_is_real()) assert_int_equal(double_calls("cuCtxEnablePeerAccess"), 0);
  t.p->stream->close(s);
  for (int i = 0; i < 2; i++) t.p->memory->free(t.dev[i], b[i]);
  sim_close(&t);
  double_is_clean();
}

/* A device that has the host's memory shares it, unless a setting turns that off. */
static void integrated_devices_share_memory(void **state) {
  sim_test t;
  heddle_pbuffer *b = NULL;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  heddle_pmemory_desc wish = {.struct_size = sizeof wish, .kind = HEDDLE_MEMORY_UNIFIED, .bytes = 4096};
  (void)state;
  setenv("FAKE_GPU_INTEGRATED", "1", 1);
  cuda_open(&t, 1, "unified", "0", NULL);
  if (gpu_is_real()) {
    sim_close(&t);
    SKIP("the driver is no double");
  }
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_true((desc.caps & HEDDLE_CAP_UNIFIED) == 0);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "kind 2", t.p->memory->alloc(t.dev[0], &wish, &b, &t.err));
  sim_close(&t);

  cuda_open(&t, 1, NULL);
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_true((desc.caps & HEDDLE_CAP_UNIFIED) != 0);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_UNIFIED, 4096);
  const uint32_t *words = (const uint32_t *)(void *)sim_map(&t, t.dev[0], b);
  sim_fill(&t, s, b, 4096, 77);
  sim_sync(&t, s);
  for (int i = 0; i < 1024; i++) assert_int_equal(words[i], 77);
  t.p->memory->unmap(t.dev[0], b);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

static void peers_can_be_switched_off(void **state) {
  sim_test t;
  (void)state;
  cuda_open(&t, 2, "peer", "0", NULL);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "setting peer", t.p->copy->can_peer(t.self, 0, 1, &t.err));
  assert_int_equal(double_calls("cuCtxEnablePeerAccess"), 0);
  sim_close(&t);
}

/* ---------------------------------------------------------------- threads */

enum { THREADS = 4, ROUNDS = 60, SHARED_BYTES = 16384 };
static _Alignas(4096) uint8_t shared_page[SHARED_BYTES];

typedef struct worker {
  sim_test *t;
  uint32_t seed;
  heddle_error err;
  bool right;
} worker;

/* What one thread has belongs to it alone: what it writes there, it reads there. */
static bool work(worker *w, heddle_pstream *s, uint32_t round) {
  const heddle_plugin *p = w->t->p;
  heddle_pdevice *dev = w->t->dev[0];
  heddle_pbuffer *b[3] = {NULL}, *import = NULL;
  uint32_t words[64];
  uint64_t free_bytes = 0, all = 0;
  bool right = true;
  for (uint32_t i = 0; i < 3; i++) {
    w->seed = w->seed * 1664525u + 1013904223u;
    heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = 256 + (w->seed >> 16)};
    if (p->memory->alloc(dev, &wish, &b[i], &w->err) != HEDDLE_OK) return false;
    if (p->copy->fill(s, b[i], 0, 256, w->seed ^ round ^ i, &w->err) != HEDDLE_OK) return false;
  }
  if (p->memory->import_host(dev, shared_page, SHARED_BYTES, &import, &w->err) != HEDDLE_OK) return false;
  if (p->device->memory_now(dev, &free_bytes, &all, &w->err) != HEDDLE_OK) return false;
  for (uint32_t i = 0, seed = w->seed; i < 3; i++) {
    if (p->copy->read(s, words, b[i], 0, 256, &w->err) != HEDDLE_OK) return false;
    for (uint32_t k = 1; k < 64; k++) right = right && words[k] == words[0];
    if (i == 2) right = right && words[0] == (seed ^ round ^ i);
    p->memory->free(dev, b[i]);
  }
  p->memory->free(dev, import);
  return right;
}

static void *worker_main(void *arg) {
  worker *w = arg;
  heddle_pstream *s = NULL;
  w->right = w->t->p->stream->create(w->t->dev[0], HEDDLE_STREAM_COMPUTE, 0, &s, &w->err) == HEDDLE_OK;
  for (uint32_t i = 0; i < ROUNDS && w->right; i++) w->right = work(w, s, i);
  w->t->p->stream->close(s);
  return NULL;
}

static void threads_share(const char *pools) {
  sim_test t;
  pthread_t threads[THREADS];
  worker workers[THREADS] = {0};
  cuda_open(&t, 1, "pools", pools, NULL);
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i] = (worker){.t = &t, .seed = 77 + i};
    assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &workers[i]), 0);
  }
  for (uint32_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (uint32_t i = 0; i < THREADS; i++)
    if (!workers[i].right) fail_msg("thread %u: %s", i, workers[i].err.text);
  sim_close(&t);
  double_is_clean();
}

static void threads_share_a_pool(void **state) {
  (void)state;
  threads_share("1");
}

static void threads_share_blocks(void **state) {
  (void)state;
  threads_share("0");
}

/* ---------------------------------------------------------------- a stream that hangs */

static void hold(void *arg) {
  while (!atomic_load((atomic_bool *)arg)) nanosleep(&(struct timespec){0, 100000}, NULL);
}

static void memory_stays_while_a_device_hangs(void **state) {
  sim_test t;
  atomic_bool go = false;
  gpu_scope scope;
  (void)state;
  cuda_open(&t, 1, "pools", "0", NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *s = sim_stream(&t, dev);
  heddle_pbuffer *pinned = sim_buf(&t, dev, HEDDLE_MEMORY_PINNED, 4096);
  const int live = double_live("host");
  assert_int_equal(dev->vendor->enter(dev, &scope), 0);
  assert_int_equal(dev->driver->host_func(s->handle, hold, &go), 0);
  gpu_leave(dev, &scope);
  sim_fill(&t, s, pinned, 4096, 7);
  FAILS(&t, HEDDLE_ETIMEOUT, "", t.p->device->idle(dev, SECOND / 50, &t.err));
  t.p->memory->free(dev, pinned);
  assert_int_equal(double_live("host"), live);
  assert_int_equal(sim_query(&t, dev, HEDDLE_QUERY_LIVE_BUFFERS), 0);
  atomic_store(&go, true);
  OK(&t, t.p->device->idle(dev, 20 * SECOND, &t.err));
  assert_int_equal(double_live("host"), live - 1);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

/* Closing does not wait forever, the instance stays for what may still come, and the other device goes on. */
static void a_device_that_hangs_is_left_behind(void **state) {
  static atomic_bool go;
  static heddle_pdevice *dev; /* not lost to the leak checker */
  sim_test t;
  gpu_scope scope;
  (void)state;
  cuda_open(&t, 2, NULL);
  dev = t.dev[0];
  heddle_pstream *s = sim_stream(&t, dev), *other = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 4096);
  assert_int_equal(dev->vendor->enter(dev, &scope), 0);
  assert_int_equal(dev->driver->host_func(s->handle, hold, &go), 0);
  gpu_leave(dev, &scope);
  t.p->stream->close(s);
  const uint64_t before = t.fake.table.now_ns(&t);
  t.p->device->close(dev);
  assert_true(t.fake.table.now_ns(&t) - before < 10 * SECOND);
  t.dev[0] = NULL;
  sim_fill(&t, other, b, 4096, 3);
  sim_expect(&t, other, b, 1024, 3);
  t.p->stream->close(other);
  t.p->memory->free(t.dev[1], b);
  t.p->device->close(t.dev[1]);
  t.p->close_instance(t.self);
  assert_true(atomic_load(&t.fake.live) > 0);
  atomic_store(&go, true);
}

CASES(CASE(memory_from_a_pool_keeps_its_rules), CASE(memory_from_blocks_keeps_its_rules),
      CASE(copies_keep_to_their_ranges), CASE(imports_keep_their_rules), CASE(imports_in_part),
      CASE(what_cannot_be_registered_is_copied), CASE(blocks_are_used_again), CASE(memory_is_out_with_a_pool),
      CASE(memory_is_out_with_blocks), CASE(devices_without_pools_use_blocks), CASE(values_cross_between_devices),
      CASE(peers_can_be_switched_off), CASE(devices_without_a_path_copy_through_the_host),
      CASE(integrated_devices_share_memory), CASE(memory_stays_while_a_device_hangs),
      CASE_LABELS(a_device_that_hangs_is_left_behind, "slow"), CASE_LABELS(threads_share_a_pool, "threads"),
      CASE_LABELS(threads_share_blocks, "threads"))
