/* labels: serial
 * timeout: 300
 * The opencl plugin below its operators: devices, memory, copies, streams, events, fences, times, modules. */
#define CL_TARGET_OPENCL_VERSION 300
#include "opencl_host.h"
#include "plugins/opencl/opencl.h"

static void no_platform_is_said_in_words(void **state) {
  sim_test t;
  (void)state;
  opencl_environment();
  setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
  sim_enter(&t, NULL);
  FAILS(&t, HEDDLE_ENODEV, "OpenCL platform", t.p->open_instance(&t.fake.table, &t.self, &t.err));
  assert_int_equal(atomic_load(&t.fake.live), 0);
}

static void devices_are_described(void **state) {
  sim_test t;
  uint32_t n = 0;
  (void)state;
  opencl_open(&t, 2, NULL);
  OK(&t, t.p->device_count(t.self, &n, &t.err));
  for (uint32_t i = 0; i < n; i++) {
    heddle_pdevice_desc desc = {.struct_size = sizeof desc};
    OK(&t, t.p->device_describe(t.self, i, &desc, &t.err));
    assert_int_equal(desc.type, HEDDLE_DEVICE_OPENCL);
    assert_true(desc.name[0] != '\0' && strstr(desc.driver, "driver ") != NULL);
    assert_true((desc.caps & HEDDLE_CAP_VIEWS) != 0 && (desc.caps & HEDDLE_CAP_INLINE) == 0);
    assert_true(desc.alignment >= 64 && (desc.alignment & (desc.alignment - 1)) == 0);
    assert_true(desc.max_buffer_bytes > 0 && desc.event_domain != 0 && desc.compute_units > 0 && desc.max_streams > 0);
  }
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  FAILS(&t, HEDDLE_ENODEV, "devices", t.p->device_describe(t.self, n, &desc, &t.err));
  sim_close(&t);
}

static void devices_are_split(void **state) {
  sim_test t;
  uint32_t n = 0;
  (void)state;
  opencl_open(&t, 2, "sub_devices", "1", NULL);
  OK(&t, t.p->device_count(t.self, &n, &t.err));
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_true(n >= 2 && desc.compute_units >= 1);
  heddle_pstream *s = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 4096);
  sim_fill(&t, s, b, 4096, 7);
  sim_expect(&t, s, b, 1024, 7);
  t.p->memory->free(t.dev[1], b);
  t.p->stream->close(s);
  sim_close(&t);
}

static void memory_keeps_its_rules(void **state) {
  sim_test t;
  heddle_pbuffer *b = NULL, *view = NULL;
  void *at = NULL;
  uint64_t native = 0;
  (void)state;
  opencl_open(&t, 1, NULL);
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

  b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 0); /* empty ones are legal */
  t.p->memory->free(dev, b);
  for (uint32_t kind = HEDDLE_MEMORY_PINNED; kind <= HEDDLE_MEMORY_UNIFIED; kind++) {
    if (kind == HEDDLE_MEMORY_UNIFIED && (desc.caps & HEDDLE_CAP_UNIFIED) == 0) continue;
    for (uint64_t align = 1; align <= 4096; align *= 16) {
      wish = (heddle_pmemory_desc){.struct_size = sizeof wish, .kind = kind, .bytes = 1000, .align = align};
      OK(&t, t.p->memory->alloc(dev, &wish, &b, &t.err));
      uint8_t *p = sim_map(&t, dev, b);
      assert_int_equal((uintptr_t)p % align, 0);
      memset(p, 1, 1000);
      t.p->memory->unmap(dev, b);
      t.p->memory->free(dev, b);
    }
  }
  b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 4096);
  FAILS(&t, HEDDLE_EINVAL, "mapped", t.p->memory->map(dev, b, &at, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "view", t.p->memory->view(dev, b, 8, 8, &view, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "view", t.p->memory->view(dev, b, 4096, 8, &view, &t.err));
  OK(&t, t.p->memory->view(dev, b, desc.alignment, 512, &view, &t.err));
  OK(&t, t.p->memory->native(dev, view, &native, &t.err));
  assert_true(native != 0);
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
}

/* Every kind of copy, at odd offsets, leaves the bytes outside its range alone. */
static void copies_keep_to_their_ranges(void **state) {
  enum { BYTES = 1024 };
  sim_test t;
  uint8_t own[BYTES], got[BYTES];
  (void)state;
  opencl_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *s = sim_stream(&t, dev);
  heddle_pbuffer *a = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES), *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *pinned = sim_buf(&t, dev, HEDDLE_MEMORY_PINNED, BYTES), *imported = NULL;
  uint8_t *host = sim_map(&t, dev, pinned);
  OK(&t, t.p->memory->import_host(dev, own + 1, BYTES - 1, &imported, &t.err));
  for (int i = 0; i < BYTES; i++) own[i] = (uint8_t)(i * 7);
  memset(host, 0x55, BYTES);
  sim_fill(&t, s, a, BYTES, 0xAAAAAAAA);
  sim_fill(&t, s, b, BYTES, 0xBBBBBBBB);
  OK(&t, t.p->copy->h2d(s, a, 3, imported, 4, 501, &t.err)); /* a[3..504) = own[5..506) */
  OK(&t, t.p->copy->d2d(s, b, 100, a, 3, 501, &t.err));      /* b[100..601) */
  OK(&t, t.p->copy->d2h(s, pinned, 7, b, 99, 503, &t.err));  /* host[7..510) = b[99..602) */
  sim_sync(&t, s);
  for (int i = 0; i < BYTES; i++) {
    int want = 0x55;
    if (i >= 7 && i < 510) want = i - 7 == 0 || i - 7 == 502 ? 0xBB : (uint8_t)((i - 8 + 5) * 7);
    assert_int_equal(host[i], want);
  }
  OK(&t, t.p->copy->write(s, b, 1, own, 10, &t.err));
  OK(&t, t.p->copy->read(s, got, b, 0, 12, &t.err));
  assert_true(got[0] == 0xBB && got[11] == 0xBB && memcmp(got + 1, own, 10) == 0);

  FAILS(&t, HEDDLE_EINVAL, "1 bytes at 1024", t.p->copy->h2d(s, a, BYTES, pinned, 0, 1, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "kind device", t.p->copy->h2d(s, a, 0, b, 0, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "imported", t.p->copy->d2d(s, imported, 0, a, 0, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "multiples of 4", t.p->copy->fill(s, a, 2, 4, 0, &t.err));
  sim_sync(&t, s);
  t.p->memory->free(dev, imported);
  t.p->memory->free(dev, pinned);
  t.p->memory->free(dev, b);
  t.p->memory->free(dev, a);
  t.p->stream->close(s);
  sim_close(&t);
}

static void images_are_copied_whole(void **state) {
  enum { WIDTH = 5, HEIGHT = 3, BYTES = WIDTH * HEIGHT * 16 };
  sim_test t;
  float own[BYTES / 4], got[BYTES / 4];
  (void)state;
  opencl_open(&t, 1, "capture", "1", NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_true(desc.max_image_width >= WIDTH && desc.max_image_height >= HEIGHT);
  heddle_pmemory_desc wish = {.struct_size = sizeof wish,
                              .kind = HEDDLE_MEMORY_IMAGE,
                              .bytes = BYTES,
                              .image_width = WIDTH,
                              .image_height = HEIGHT,
                              .dtype = HEDDLE_FLOAT32};
  heddle_pbuffer *a = NULL, *b = NULL, *none = NULL, *pinned = sim_buf(&t, dev, HEDDLE_MEMORY_PINNED, BYTES);
  heddle_pbuffer *plain = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES + 64);
  OK(&t, t.p->memory->alloc(dev, &wish, &a, &t.err));
  OK(&t, t.p->memory->alloc(dev, &wish, &b, &t.err));
  wish.bytes--;
  FAILS(&t, HEDDLE_EINVAL, "has 240 bytes", t.p->memory->alloc(dev, &wish, &none, &t.err));
  wish.image_width = desc.max_image_width + 1;
  FAILS(&t, HEDDLE_ELIMIT, "at most", t.p->memory->alloc(dev, &wish, &none, &t.err));
  wish.dtype = (heddle_dtype){HEDDLE_DTYPE_FLOAT, 64, 1};
  FAILS(&t, HEDDLE_EUNSUPPORTED, "no elements", t.p->memory->alloc(dev, &wish, &none, &t.err));
  wish.struct_size = (uint32_t)offsetof(heddle_pmemory_desc, image_width); /* of a host that knows no images */
  FAILS(&t, HEDDLE_EUNSUPPORTED, "no images", t.p->memory->alloc(dev, &wish, &none, &t.err));

  heddle_pstream *s = sim_stream(&t, dev);
  for (int i = 0; i < BYTES / 4; i++) own[i] = (float)i - 7.5f;
  memcpy(sim_map(&t, dev, pinned), own, BYTES);
  heddle_pgraph *graph = NULL;
  for (int recorded = 0; recorded < 2; recorded++) { /* to the image, to another, to bytes, back, to the host */
    if (recorded) OK(&t, t.p->capture->begin(s, &t.err));
    OK(&t, t.p->copy->h2d(s, a, 0, pinned, 0, BYTES, &t.err));
    OK(&t, t.p->copy->d2d(s, b, 0, a, 0, BYTES, &t.err));
    OK(&t, t.p->copy->d2d(s, plain, 64, b, 0, BYTES, &t.err));
    OK(&t, t.p->copy->d2d(s, a, 0, plain, 64, BYTES, &t.err));
    OK(&t, t.p->copy->d2h(s, pinned, 0, a, 0, BYTES, &t.err));
    if (recorded) OK(&t, t.p->capture->end(s, &graph, &t.err));
    for (int i = 0; recorded && i < BYTES / 4; i++) ((float *)sim_map(&t, dev, pinned))[i] = own[i] = -own[i];
    if (recorded) OK(&t, t.p->capture->replay(graph, s, &t.err));
    sim_sync(&t, s);
    assert_memory_equal(sim_map(&t, dev, pinned), own, BYTES);
    OK(&t, t.p->copy->read(s, got, plain, 64, BYTES, &t.err));
    assert_memory_equal(got, own, BYTES);
  }
  OK(&t, t.p->copy->write(s, b, 0, got, BYTES, &t.err));
  memset(got, 0, BYTES);
  OK(&t, t.p->copy->read(s, got, b, 0, BYTES, &t.err));
  assert_memory_equal(got, own, BYTES);
  FAILS(&t, HEDDLE_EINVAL, "whole", t.p->copy->read(s, got, b, 0, BYTES - 16, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "whole", t.p->copy->d2d(s, plain, 0, b, 16, BYTES - 16, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "no image", t.p->memory->view(dev, b, 0, 16, &none, &t.err));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "fill of an image", t.p->copy->fill(s, b, 0, BYTES, 0, &t.err));
  t.p->capture->free(graph);
  heddle_pbuffer *all[] = {a, b, plain, pinned};
  for (int i = 0; i < 4; i++) t.p->memory->free(dev, all[i]);
  t.p->stream->close(s);
  sim_close(&t);
}

static void work_of_a_stream_is_in_order(void **state) {
  sim_test t;
  (void)state;
  opencl_open(&t, 1, NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  for (uint32_t i = 0; i < 300; i++) {
    sim_fill(&t, s, a, 1024, i);
    OK(&t, t.p->copy->d2d(s, b, 0, a, 0, 1024, &t.err));
  }
  OK(&t, t.p->stream->submit(s, &t.err));
  for (heddle_status q = HEDDLE_EBUSY; q != HEDDLE_OK;) {
    q = t.p->stream->query(s, &t.err);
    if (q != HEDDLE_OK && q != HEDDLE_EBUSY) fail_msg("%s", t.err.text);
  }
  sim_expect(&t, s, b, 256, 299);
  OK(&t, t.p->stream->sync(s, UINT64_MAX, &t.err));
  OK(&t, t.p->device->idle(t.dev[0], 20 * SECOND, &t.err));
  OK(&t, t.p->device->health(t.dev[0], &t.err));
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
}

/* A value goes round through streams of two devices by peer copies, ordered by events alone. */
static void events_order_streams_and_devices(void **state) {
  enum { BYTES = 65536, ROUNDS = 50 };
  sim_test t;
  (void)state;
  opencl_open(&t, 2, NULL);
  heddle_pstream *s[2];
  heddle_pbuffer *b[2];
  heddle_pevent *e[2];
  OK(&t, t.p->copy->can_peer(t.self, 0, 1, &t.err));
  for (int i = 0; i < 2; i++) {
    s[i] = sim_stream(&t, t.dev[i]);
    b[i] = sim_buf(&t, t.dev[i], HEDDLE_MEMORY_DEVICE, BYTES);
    e[i] = sim_event(&t, t.dev[i]);
    OK(&t, t.p->event->wait(s[i], e[i], &t.err)); /* never recorded: reached */
  }
  for (uint32_t k = 0; k < ROUNDS; k++) {
    OK(&t, t.p->event->wait(s[0], e[1], &t.err));
    sim_fill(&t, s[0], b[0], BYTES, k);
    OK(&t, t.p->event->record(e[0], s[0], &t.err));
    OK(&t, t.p->event->wait(s[1], e[0], &t.err));
    OK(&t, t.p->copy->peer(s[1], t.dev[1], b[1], 0, t.dev[0], b[0], 0, BYTES, &t.err));
    OK(&t, t.p->event->record(e[1], s[1], &t.err));
  }
  sim_expect(&t, s[1], b[1], BYTES / 4, ROUNDS - 1);
  for (int i = 0; i < 2; i++) {
    sim_sync(&t, s[i]);
    t.p->event->free(e[i]);
    t.p->memory->free(t.dev[i], b[i]);
    t.p->stream->close(s[i]);
  }
  sim_close(&t);
}

/* More signals than a stream has of its own, the last ones when the stream is closed already. */
static void fences_are_signalled(void **state) {
  sim_test t;
  (void)state;
  opencl_open(&t, 1, NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1 << 20);
  for (uint32_t i = 1; i <= 200; i++) {
    sim_fill(&t, s, b, 1 << 20, i);
    OK(&t, t.p->fence->signal(s, 1 + i % 3, i, &t.err));
  }
  t.p->stream->close(s);
  for (uint64_t f = 1; f <= 3; f++) assert_int_equal(sim_wait(&t, f, 198), HEDDLE_OK);
  OK(&t, t.p->device->idle(t.dev[0], 20 * SECOND, &t.err));
  t.p->memory->free(t.dev[0], b);
  sim_close(&t);
}

static void times_are_the_devices(void **state) {
  sim_test t;
  uint64_t ns[8], device[2] = {0}, host[2] = {0};
  heddle_ptimer *timer = NULL;
  (void)state;
  opencl_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *s = sim_stream(&t, dev); /* made before the timer: its queue is changed under way */
  heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 1 << 22);
  sim_fill(&t, s, b, 1 << 22, 1);
  OK(&t, t.p->timing->create(dev, 8, &timer, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "slot 0", t.p->timing->read(timer, 0, 1, ns, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "slot 8", t.p->timing->mark(s, timer, 8, &t.err));
  OK(&t, t.p->timing->calibrate(dev, &device[0], &host[0], &t.err));
  for (uint32_t i = 0; i < 8; i++) {
    OK(&t, t.p->timing->mark(s, timer, i, &t.err));
    sim_fill(&t, s, b, 1 << 22, 2 + i);
  }
  sim_expect(&t, s, b, 1 << 20, 9);
  OK(&t, t.p->timing->calibrate(dev, &device[1], &host[1], &t.err));
  OK(&t, t.p->timing->read(timer, 0, 8, ns, &t.err));
  for (int i = 1; i < 8; i++) assert_true(ns[i] > ns[i - 1]);
  assert_true(ns[0] >= device[0] && ns[7] <= device[1]);
  const double rate = (double)(device[1] - device[0]) / (double)(host[1] - host[0]);
  if (!(rate > 0.5 && rate < 2)) fail_msg("the device's clock runs %g times as fast as the host's", rate);
  t.p->timing->free(timer);
  t.p->memory->free(dev, b);
  t.p->stream->close(s);
  sim_close(&t);
}

/* A mark behind work is its end, one in front of it its beginning, however late that comes. */
static void marks_are_of_the_work(void **state) {
  enum { LATE_NS = 30000000 };
  sim_test t;
  uint64_t ns[4] = {0};
  heddle_ptimer *timer = NULL, *other = NULL;
  (void)state;
  opencl_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 1 << 16);
  OK(&t, t.p->timing->create(dev, 4, &timer, &t.err));
  OK(&t, t.p->timing->create(dev, 1, &other, &t.err));
  heddle_pstream *s = sim_stream(&t, dev);
  for (uint32_t i = 0; i < 4; i += 2) {
    OK(&t, t.p->timing->mark(s, timer, i, &t.err));
    OK(&t, t.p->stream->sync(s, 20 * SECOND, &t.err)); /* a marker would have its time by now */
    nanosleep(&(struct timespec){0, LATE_NS}, NULL);
    sim_fill(&t, s, b, 1 << 16, i);
    OK(&t, t.p->timing->mark(s, timer, i + 1, &t.err));
  }
  OK(&t, t.p->timing->mark(s, other, 0, &t.err)); /* waits for work of another's, and goes first */
  t.p->timing->free(other);
  sim_fill(&t, s, b, 1 << 16, 7);
  sim_expect(&t, s, b, 1 << 14, 7);
  OK(&t, t.p->timing->read(timer, 0, 4, ns, &t.err));
  assert_true(ns[0] < ns[1] && ns[1] < ns[2] && ns[2] < ns[3]);
  assert_true(ns[2] - ns[1] >= LATE_NS);
  t.p->timing->free(timer);
  t.p->memory->free(dev, b);
  t.p->stream->close(s);
  sim_close(&t);
}

static const char code[] = "__kernel void scale(__global const float *x, __global float *y, float by, int n,\n"
                           "                    __local float *room) {\n"
                           "  int i = get_global_id(0), k = get_local_id(0);\n"
                           "  room[k] = x[i] * by;\n"
                           "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                           "  if (i < n) y[i] = room[k];\n"
                           "}\n";

static const char wrong[] = "#error made by a test\n";

static void modules_are_loaded_and_launched(void **state) {
  enum { N = 256 };
  sim_test t;
  heddle_pmodule *m = NULL;
  heddle_pkernel *k = NULL, *again = NULL;
  heddle_pkernel_info info = {.struct_size = sizeof info};
  float x[N], y[N];
  const float by = 3;
  const int32_t n = 60;
  (void)state;
  opencl_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  assert_string_equal(t.p->module->formats(t.self, 0), "opencl-c,clbin");
  FAILS(&t, HEDDLE_ECOMPILE, "made by a test", t.p->module->load(dev, "opencl-c", wrong, sizeof wrong - 1, &m, &t.err));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "ptx", t.p->module->load(dev, "ptx", code, sizeof code - 1, &m, &t.err));
  heddle_status s = t.p->module->load(dev, "clbin", code, sizeof code - 1, &m, &t.err);
  if (s != HEDDLE_EFORMAT && s != HEDDLE_ECOMPILE) fail_msg("%d: %s", s, t.err.text);
  OK(&t, t.p->module->load(dev, "opencl-c", code, sizeof code - 1, &m, &t.err));
  FAILS(&t, HEDDLE_ENOTFOUND, "'missing'", t.p->module->kernel_get(m, "missing", &k, &info, &t.err));
  OK(&t, t.p->module->kernel_get(m, "scale", &k, &info, &t.err));
  OK(&t, t.p->module->kernel_get(m, "scale", &again, NULL, &t.err));
  assert_ptr_equal(k, again);
  assert_true(info.max_threads >= 64);

  heddle_pstream *stream = sim_stream(&t, dev);
  heddle_pbuffer *a = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, sizeof x),
                 *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, sizeof y);
  for (int i = 0; i < N; i++) x[i] = (float)i;
  OK(&t, t.p->copy->write(stream, a, 0, x, sizeof x, &t.err));
  sim_fill(&t, stream, b, sizeof y, 0);
  heddle_pargument args[4] = {{a, 512, 0}, {b, 0, 0}, {NULL, 0, 4}, {NULL, 0, 4}};
  memcpy(&args[2].offset, &by, 4);
  memcpy(&args[3].offset, &n, 4);
  const uint32_t grid[3] = {2, 1, 1}, block[3] = {32, 1, 1}, none[3] = {0, 1, 1};
  FAILS(&t, HEDDLE_EINVAL, "empty", t.p->module->launch(stream, k, none, block, 0, args, 4, &t.err));
  OK(&t, t.p->module->launch(stream, k, grid, block, 32 * sizeof(float), args, 4, &t.err));
  OK(&t, t.p->copy->read(stream, y, b, 0, sizeof y, &t.err));
  for (int i = 0; i < N; i++) assert_true(y[i] == (i < 60 ? 3.0f * (float)(i + 128) : 0.0f));
  args[2].size = 3;
  FAILS(&t, HEDDLE_EINVAL, "inline", t.p->module->launch(stream, k, grid, block, 0, args, 4, &t.err));
  sim_sync(&t, stream);
  t.p->module->unload(m);
  t.p->memory->free(dev, a);
  t.p->memory->free(dev, b);
  t.p->stream->close(stream);
  sim_close(&t);
}

/* The n-th allocation of bookkeeping fails, for each n: a status, nothing lost, the next try works. */
static void memory_that_is_out_is_a_status(void **state) {
  sim_test t;
  (void)state;
  opencl_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  for (long n = 1; n < 6; n++) {
    heddle_pstream *s = NULL;
    heddle_pbuffer *b = NULL;
    heddle_pevent *e = NULL;
    heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = 64, .align = 1};
    t.fake.fail_at = atomic_load(&t.fake.calls) + n;
    const heddle_status made[3] = {t.p->stream->create(dev, 0, 0, &s, &t.err),
                                   t.p->memory->alloc(dev, &wish, &b, &t.err), t.p->event->create(dev, &e, &t.err)};
    t.fake.fail_at = 0;
    for (int i = 0; i < 3; i++) assert_int_equal(made[i], n == i + 1 ? HEDDLE_ENOMEM : HEDDLE_OK);
    t.p->event->free(e);
    t.p->memory->free(dev, b);
    t.p->stream->close(s);
  }
  sim_close(&t);
}

/* A stream is closed while work is left in it: its last use ends in a callback of the driver's, which may release no queue, so
 * the next call of the host's does. */
static void queues_are_released_outside_of_callbacks(void **state) {
  enum { BYTES = 16 << 20 };
  sim_test t;
  bool late = false;
  (void)state;
  opencl_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  for (uint32_t i = 1; i < 50 && !late; i++) {
    heddle_pstream *s = sim_stream(&t, dev);
    for (uint32_t k = 0; k < i; k++) sim_fill(&t, s, b, BYTES, k);
    OK(&t, t.p->fence->signal(s, 1, i, &t.err));
    t.p->stream->close(s);
    while (atomic_load(&dev->callbacks) > 0) sched_yield();
    late = dev->gone != NULL;
  }
  assert_true(late);
  t.p->stream->close(sim_stream(&t, dev));
  assert_null(dev->gone);
  t.p->memory->free(dev, b);
  sim_close(&t);
}

CASES(CASE(queues_are_released_outside_of_callbacks), CASE(no_platform_is_said_in_words), CASE(devices_are_described),
      CASE(devices_are_split), CASE(memory_keeps_its_rules), CASE(copies_keep_to_their_ranges),
      CASE(images_are_copied_whole), CASE(work_of_a_stream_is_in_order), CASE(events_order_streams_and_devices),
      CASE(fences_are_signalled), CASE(times_are_the_devices), CASE(marks_are_of_the_work),
      CASE(modules_are_loaded_and_launched), CASE(memory_that_is_out_is_a_status))
