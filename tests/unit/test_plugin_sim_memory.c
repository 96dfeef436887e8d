/* labels: threads
 * Sim's memory and copies: handles that are no addresses, limits, views, imports, shadows of mappings, peer copies. */
#include "sim_host.h"

static void handles_are_not_addresses(void **state) {
  sim_test t, other;
  (void)state;
  sim_open(&t, 2, NULL);
  sim_open(&other, 1, NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 256);
  heddle_pbuffer *far = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 256);
  heddle_pbuffer *foreign = sim_buf(&other, other.dev[0], HEDDLE_MEMORY_DEVICE, 256);
  heddle_pbuffer *empty = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 0);
  const heddle_copy_table *c = t.p->copy;
  FAILS(&t, HEDDLE_EINVAL, "sim:1", c->fill(s, far, 0, 256, 0, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "no live buffer", c->fill(s, foreign, 0, 256, 0, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "no live buffer", c->fill(s, NULL, 0, 256, 0, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "no live buffer", c->fill(s, (heddle_pbuffer *)(void *)&t, 0, 256, 0, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "do not lie in", c->fill(s, a, 4, 256, 0, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "do not lie in", c->fill(s, a, UINT64_MAX - 3, 4, 0, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "multiples of 4", c->fill(s, a, 2, 4, 0, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "overlap", c->d2d(s, a, 0, a, 100, 128, &t.err));
  OK(&t, c->d2d(s, a, 0, a, 128, 128, &t.err));
  OK(&t, c->fill(s, empty, 0, 0, 0, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "wanted is pinned", c->d2h(s, a, 0, a, 0, 4, &t.err));
  sim_expect(&t, s, a, 64, 0xcdcdcdcd); /* fresh memory is poison */
  t.p->memory->free(t.dev[0], a);
  FAILS(&t, HEDDLE_EINVAL, "no live buffer", c->fill(s, a, 0, 256, 0, &t.err));
  heddle_pbuffer *again = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 256); /* the same slot */
  FAILS(&t, HEDDLE_EINVAL, "no live buffer", c->fill(s, a, 0, 256, 0, &t.err));
  assert_int_equal(t.errors_logged, 0);
  t.p->memory->free(t.dev[0], a);   /* twice */
  t.p->memory->free(t.dev[0], far); /* of another device */
  assert_int_equal(t.errors_logged, 2);
  t.p->memory->free(t.dev[0], NULL);
  t.p->memory->free(t.dev[0], again);
  t.p->memory->free(t.dev[0], empty);
  t.p->memory->free(t.dev[1], far);
  other.p->memory->free(other.dev[0], foreign);
  t.p->stream->close(s);
  sim_close(&t);
  sim_close(&other);
}

static void copies_move_bytes_both_ways(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 2, "delay_us", "100", NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *mine = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, 1000);
  heddle_pbuffer *his = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_PINNED, 1000); /* of the same event domain */
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1000);
  uint8_t *in = sim_map(&t, t.dev[0], mine), *out = sim_map(&t, t.dev[1], his);
  for (int i = 0; i < 1000; i++) in[i] = (uint8_t)(i * 7);
  memset(out, 0, 1000);
  OK(&t, t.p->copy->h2d(s, b, 3, mine, 1, 900, &t.err));
  OK(&t, t.p->copy->d2h(s, his, 5, b, 3, 900, &t.err));
  sim_sync(&t, s);
  assert_memory_equal(out + 5, in + 1, 900);
  assert_int_equal(out[4], 0);
  assert_int_equal(out[905], 0);
  FAILS(&t, HEDDLE_EINVAL, "wanted is device", t.p->copy->h2d(s, mine, 0, his, 0, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "cannot be mapped", t.p->memory->map(t.dev[0], b, (void **)&in, &t.err));
  t.p->memory->free(t.dev[0], mine);
  t.p->memory->free(t.dev[1], his);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
}

static void limits_of_memory_hold(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, "memory_bytes", "10000", "max_buffer_bytes", "8000", NULL);
  heddle_pmemory_desc d = {.struct_size = sizeof d, .kind = HEDDLE_MEMORY_DEVICE, .bytes = 8001, .align = 1};
  heddle_pbuffer *b = NULL;
  FAILS(&t, HEDDLE_ELIMIT, "8000", t.p->memory->alloc(t.dev[0], &d, &b, &t.err));
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 8000);
  d.bytes = 2001;
  FAILS(&t, HEDDLE_ENOMEM, "memory_bytes", t.p->memory->alloc(t.dev[0], &d, &b, &t.err));
  uint64_t free_bytes, total;
  OK(&t, t.p->device->memory_now(t.dev[0], &free_bytes, &total, &t.err));
  assert_int_equal(free_bytes, 2000);
  assert_int_equal(total, 10000);
  assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_BYTES), 8000);
  t.p->memory->free(t.dev[0], a);
  OK(&t, t.p->memory->alloc(t.dev[0], &d, &b, &t.err));
  t.p->memory->free(t.dev[0], b);
  d.kind = HEDDLE_MEMORY_UNIFIED;
  FAILS(&t, HEDDLE_EUNSUPPORTED, "unified", t.p->memory->alloc(t.dev[0], &d, &b, &t.err));
  d.kind = 9;
  FAILS(&t, HEDDLE_EINVAL, "kind 9", t.p->memory->alloc(t.dev[0], &d, &b, &t.err));
  d.kind = 0;
  d.align = 48;
  FAILS(&t, HEDDLE_EINVAL, "power of two", t.p->memory->alloc(t.dev[0], &d, &b, &t.err));
  int64_t n;
  FAILS(&t, HEDDLE_EUNSUPPORTED, "77", t.p->device->query(t.dev[0], 77, &n, &t.err));
  sim_close(&t);
}

static void views_share_bytes(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *parent = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024), *v = NULL, *w = NULL;
  const heddle_memory_table *m = t.p->memory;
  FAILS(&t, HEDDLE_EINVAL, "multiple of 256", m->view(t.dev[0], parent, 128, 256, &v, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "inside", m->view(t.dev[0], parent, 512, 513, &v, &t.err));
  OK(&t, m->view(t.dev[0], parent, 512, 256, &v, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "view of a view", m->view(t.dev[0], v, 0, 4, &w, &t.err));
  sim_fill(&t, s, parent, 1024, 1);
  sim_fill(&t, s, v, 256, 2);
  sim_expect(&t, s, v, 64, 2);
  sim_expect(&t, s, parent, 128, 1);
  FAILS(&t, HEDDLE_EINVAL, "do not lie in", t.p->copy->fill(s, v, 0, 260, 0, &t.err));
  uint64_t a = 0, b = 0;
  OK(&t, m->native(t.dev[0], parent, &a, &t.err));
  OK(&t, m->native(t.dev[0], v, &b, &t.err));
  assert_true(a != b);
  assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_BUFFERS), 2);
  assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_BYTES), 1024);
  m->free(t.dev[0], parent); /* against the rules: reported, and survived */
  assert_int_equal(t.errors_logged, 1);
  sim_expect(&t, s, v, 64, 2);
  m->free(t.dev[0], v);
  t.p->stream->close(s);
  sim_close(&t);
}

static void imports_are_host_sides(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, "import_alignment", "4096", NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096), *h = NULL;
  uint8_t *page = NULL;
  assert_int_equal(posix_memalign((void **)&page, 4096, 8192), 0);
  memset(page, 9, 8192);
  FAILS(&t, HEDDLE_EINVAL, "multiples of 4096", t.p->memory->import_host(t.dev[0], page + 64, 4096, &h, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "multiples of 4096", t.p->memory->import_host(t.dev[0], page, 100, &h, &t.err));
  OK(&t, t.p->memory->import_host(t.dev[0], page, 8192, &h, &t.err));
  OK(&t, t.p->copy->h2d(s, b, 0, h, 4096, 4096, &t.err));
  sim_expect(&t, s, b, 1024, 0x09090909);
  assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_BYTES), 4096);
  t.p->memory->free(t.dev[0], h);
  t.p->memory->free(t.dev[0], b);
  assert_int_equal(page[0], 9); /* the caller's, not ours to poison */
  free(page);
  t.p->stream->close(s);
  sim_close(&t);
}

/* Where mappings are not coherent, what was not flushed is not there, and what was not invalidated is old. */
static void shadows_need_flush_and_invalidate(void **state) {
  static const uint32_t kinds[] = {HEDDLE_MEMORY_PINNED, HEDDLE_MEMORY_UNIFIED};
  sim_test t;
  (void)state;
  sim_open(&t, 1, "coherent", "0", "unified", "1", NULL);
  heddle_pdevice_desc d = {.struct_size = sizeof d};
  OK(&t, t.p->device_describe(t.self, 0, &d, &t.err));
  assert_true((d.caps & HEDDLE_CAP_NONCOHERENT) != 0 && (d.caps & HEDDLE_CAP_UNIFIED) != 0);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  for (int i = 0; i < 2; i++) {
    heddle_pbuffer *h = sim_buf(&t, t.dev[0], kinds[i], 512);
    heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 512);
    uint8_t *p = sim_map(&t, t.dev[0], h);
    memset(p, 1, 512);
    OK(&t, t.p->copy->h2d(s, b, 0, h, 0, 512, &t.err));
    sim_expect(&t, s, b, 128, 0xcdcdcdcd); /* not flushed */
    OK(&t, t.p->memory->flush(t.dev[0], h, 0, 256, &t.err));
    OK(&t, t.p->copy->h2d(s, b, 0, h, 0, 512, &t.err));
    sim_expect(&t, s, b, 64, 0x01010101);
    sim_fill(&t, s, b, 512, 0x02020202);
    OK(&t, t.p->copy->d2h(s, h, 0, b, 0, 512, &t.err));
    sim_sync(&t, s);
    assert_int_equal(p[0], 1); /* not invalidated */
    OK(&t, t.p->memory->invalidate(t.dev[0], h, 4, 100, &t.err));
    assert_int_equal(p[3], 1);
    assert_int_equal(p[4], 2);
    assert_int_equal(p[103], 2);
    assert_int_equal(p[104], 1);
    FAILS(&t, HEDDLE_EINVAL, "flush", t.p->memory->flush(t.dev[0], h, 500, 13, &t.err));
    t.p->memory->unmap(t.dev[0], h);
    t.p->memory->free(t.dev[0], h);
    t.p->memory->free(t.dev[0], b);
  }
  t.p->stream->close(s);
  sim_close(&t);
}

static void peers_copy_or_refuse_or_lie(void **state) {
  static const char *const modes[] = {"on", "lie"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    sim_test t;
    sim_open(&t, 3, "peer", modes[i], NULL);
    heddle_pstream *s = sim_stream(&t, t.dev[1]), *third = sim_stream(&t, t.dev[2]);
    heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 64);
    heddle_pbuffer *b = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 64);
    uint8_t bytes[64], got[64];
    memset(bytes, 0x11, sizeof bytes);
    heddle_pstream *s0 = sim_stream(&t, t.dev[0]);
    OK(&t, t.p->copy->write(s0, a, 0, bytes, 64, &t.err));
    sim_sync(&t, s0);
    OK(&t, t.p->copy->can_peer(t.self, 1, 0, &t.err));
    OK(&t, t.p->copy->peer(s, t.dev[1], b, 0, t.dev[0], a, 0, 64, &t.err));
    OK(&t, t.p->copy->read(s, got, b, 0, 64, &t.err));
    int wrong = 0;
    for (int k = 0; k < 64; k++) wrong += got[k] != 0x11;
    assert_int_equal(wrong, i); /* a lie is one byte */
    FAILS(&t, HEDDLE_EINVAL, "neither", t.p->copy->peer(third, t.dev[1], b, 0, t.dev[0], a, 0, 64, &t.err));
    FAILS(&t, HEDDLE_ENODEV, "sim:3", t.p->copy->can_peer(t.self, 3, 0, &t.err));
    t.p->memory->free(t.dev[0], a);
    t.p->memory->free(t.dev[1], b);
    t.p->stream->close(s0);
    t.p->stream->close(s);
    t.p->stream->close(third);
    sim_close(&t);
  }
}

/* Optional things that a setting takes away are not in the table that the entry gives. */
static void what_is_switched_off_is_not_there(void **state) {
  sim_test t;
  (void)state;
  sim_enter(&t, "views", "0", "import", "off", "peer", "off", "fence_wait", "0", "layouts", "0", "capture", "0", NULL);
  assert_null(t.p->memory->view);
  assert_null(t.p->memory->import_host);
  assert_null(t.p->copy->can_peer);
  assert_null(t.p->copy->peer);
  assert_null(t.p->fence->wait);
  assert_null(t.p->layout);
  assert_null(t.p->capture);
  assert_non_null(t.p->fence->signal);
  sim_enter(&t, "peer", "lie", NULL);
  assert_non_null(t.p->memory->view);
  assert_non_null(t.p->memory->import_host);
  assert_non_null(t.p->copy->peer);
  assert_non_null(t.p->fence->wait);
  assert_non_null(t.p->layout);
  assert_non_null(t.p->capture);
}

static void settings_are_checked(void **state) {
  static const char *const wrong[][2] = {
      {"devices", "0"},      {"devices", "17"},
      {"devices", "two"},    {"seed", "-1"},
      {"delay_us", "1s"},    {"peer", "maybe"},
      {"coherent", "2"},     {"import_alignment", "48"},
      {"fail", "alloc"},     {"fail", "alloc:0"},
      {"fail", "nothing:1"}, {"fail", "run:1@7"},
      {"fail", "run:1:oh"},  {"hang", "99999999999999999999"},
      {"fail", "run:1,"},
  };
  sim_test t;
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    sim_enter(&t, wrong[i][0], wrong[i][1], NULL);
    FAILS(&t, HEDDLE_EINVAL, wrong[i][0], t.p->open_instance(&t.fake.table, &t.self, &t.err));
    assert_int_equal(atomic_load(&t.fake.live), 0);
  }
  sim_open(&t, 0, "devices", "16", NULL);
  uint32_t n = 0;
  OK(&t, t.p->device_count(t.self, &n, &t.err));
  assert_int_equal(n, 16);
  heddle_pkeyvalue pairs[] = {{"devices", "2"}, {"colour", "blue"}};
  heddle_pdevice_options options = {.struct_size = sizeof options, .settings = {&pairs[0], 1, sizeof pairs[0]}};
  FAILS(&t, HEDDLE_EINVAL, "belongs to all", t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
  options.settings.data = &pairs[1];
  FAILS(&t, HEDDLE_EINVAL, "colour", t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
  FAILS(&t, HEDDLE_ENODEV, "sim:16", t.p->device->open(t.self, 16, &options, &t.dev[0], &t.err));
  sim_close(&t);
}

/* Every allocation of the host's fails once, in everything that allocates. */
static void out_of_memory_is_a_status(void **state) {
  (void)state;
  for (long n = 1; n < 40; n++) {
    sim_test t;
    sim_enter(&t, "coherent", "0", NULL);
    t.fake.fail_at = n;
    heddle_pdevice_options options = {.struct_size = sizeof options};
    heddle_pmemory_desc d = {.struct_size = sizeof d, .kind = HEDDLE_MEMORY_PINNED, .bytes = 64, .align = 1};
    heddle_pbuffer *b = NULL;
    heddle_pstream *s = NULL;
    heddle_pevent *e = NULL;
    heddle_ptimer *timer = NULL;
    heddle_pmodule *module = NULL;
    heddle_pgraph *graph = NULL;
    heddle_status status = t.p->open_instance(&t.fake.table, &t.self, &t.err);
    if (status == HEDDLE_OK) status = t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err);
    if (status == HEDDLE_OK) status = t.p->memory->alloc(t.dev[0], &d, &b, &t.err);
    if (status == HEDDLE_OK) status = t.p->stream->create(t.dev[0], 0, 0, &s, &t.err);
    if (status == HEDDLE_OK) status = t.p->event->create(t.dev[0], &e, &t.err);
    if (status == HEDDLE_OK) status = t.p->timing->create(t.dev[0], 4, &timer, &t.err);
    if (status == HEDDLE_OK) status = t.p->module->load(t.dev[0], "sim", "k = copy_u8", 11, &module, &t.err);
    if (status == HEDDLE_OK) status = t.p->capture->begin(s, &t.err);
    if (status == HEDDLE_OK) status = t.p->capture->end(s, &graph, &t.err);
    assert_true(status == HEDDLE_OK || status == HEDDLE_ENOMEM);
    assert_true((status == HEDDLE_OK) == (atomic_load(&t.fake.calls) < n));
    if (status != HEDDLE_OK) assert_int_equal(t.err.status, HEDDLE_ENOMEM);
    if (t.self == NULL) {
      assert_int_equal(atomic_load(&t.fake.live), 0);
      continue;
    }
    t.p->capture->free(graph);
    t.p->module->unload(module);
    t.p->timing->free(timer);
    t.p->event->free(e);
    t.p->stream->close(s);
    if (t.dev[0] != NULL) t.p->memory->free(t.dev[0], b);
    sim_close(&t);
  }
}

CASES(CASE(handles_are_not_addresses), CASE(copies_move_bytes_both_ways), CASE(limits_of_memory_hold),
      CASE(views_share_bytes), CASE(imports_are_host_sides), CASE(shadows_need_flush_and_invalidate),
      CASE(peers_copy_or_refuse_or_lie), CASE(what_is_switched_off_is_not_there), CASE(settings_are_checked),
      CASE(out_of_memory_is_a_status))
