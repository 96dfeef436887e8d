/* labels: vulkan
 * timeout: 300
 * The vulkan plugin's modules: SPIR-V from outside, launched again and again, beside itself and in captures, with scalars
 * as push constants and in a uniform buffer, all under the validation layer. */
#include "vulkan_host.h"

enum { N = 64, FLOATS = N * sizeof(float) };

/* Two buffers x and y, scalars by (float) and n (int): y[i] = x[i] * by for i < n, in groups of 32. */
static uint64_t read_kernel(const char *name, unsigned char *words, size_t room) {
  char path[512];
  snprintf(path, sizeof path, HEDDLE_TEST_SOURCE "/tests/fuzz/data/spirv/%s", name);
  FILE *f = fopen(path, "rb");
  if (f == NULL || fgetc(f) != 0) fail_msg("%s cannot be read", path);
  const size_t n = fread(words, 1, room, f);
  fclose(f);
  return n;
}

typedef struct kernel {
  heddle_pmodule *module;
  heddle_pkernel *kernel;
} kernel;

static kernel load(sim_test *t, const char *name) {
  unsigned char words[4096];
  kernel k = {NULL, NULL};
  heddle_pkernel_info info = {.struct_size = sizeof info};
  const uint64_t bytes = read_kernel(name, words, sizeof words);
  OK(t, t->p->module->load(t->dev[0], "spirv", words, bytes, &k.module, &t->err));
  OK(t, t->p->module->kernel_get(k.module, "k", &k.kernel, &info, &t->err));
  assert_true(info.max_threads >= 128);
  return k;
}

static heddle_pargument inline_bytes(const void *value) {
  heddle_pargument a = {NULL, 0, 4};
  memcpy(&a.offset, value, 4);
  return a;
}

static heddle_status launch(sim_test *t, heddle_pstream *s, heddle_pkernel *k, heddle_pbuffer *x, heddle_pbuffer *y,
                            uint64_t at, float by, int32_t n) {
  static const uint32_t grid[3] = {2, 1, 1}, block[3] = {32, 1, 1};
  const heddle_pargument args[] = {{x, 0, 0}, {y, at, 0}, inline_bytes(&by), inline_bytes(&n)};
  return t->p->module->launch(s, k, grid, block, 0, args, 4, &t->err);
}

static void expect(const float *got, float by, int n) {
  for (int i = 0; i < N; i++) {
    const float want = i < n ? (float)i * by : 0;
    if (got[i] < want || got[i] > want) fail_msg("element %d is %g, expected %g", i, (double)got[i], (double)want);
  }
}

static void launches_and_captures(sim_test *t, const char *name) {
  enum { ROWS = 70 }; /* more than the sets of a pool, and than are looked at */
  kernel k = load(t, name);
  heddle_pstream *s = sim_stream(t, t->dev[0]);
  heddle_pbuffer *pin = sim_buf(t, t->dev[0], HEDDLE_MEMORY_PINNED, (uint64_t)ROWS * FLOATS);
  heddle_pbuffer *x = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, FLOATS);
  heddle_pbuffer *y = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, (uint64_t)ROWS * FLOATS);
  float *host = (float *)(void *)sim_map(t, t->dev[0], pin);
  heddle_pgraph *g = NULL;
  for (int i = 0; i < N; i++) host[i] = (float)i;
  OK(t, t->p->copy->h2d(s, x, 0, pin, 0, FLOATS, &t->err));
  for (int round = 0; round < 3; round++) { /* each launch has scalars and a place of its own */
    const long calls = atomic_load(&t->fake.calls);
    sim_fill(t, s, y, (uint64_t)ROWS * FLOATS, 0);
    for (int r = 0; r < ROWS; r++)
      OK(t, launch(t, s, k.kernel, x, y, (uint64_t)r * FLOATS, (float)(r + round), N - r % 9));
    OK(t, t->p->copy->d2h(s, pin, 0, y, 0, (uint64_t)ROWS * FLOATS, &t->err));
    sim_sync(t, s);
    for (int r = 0; r < ROWS; r++) expect(host + r * N, (float)(r + round), N - r % 9);
    if (round == 2) assert_int_equal(atomic_load(&t->fake.calls), calls); /* what the first rounds took serves this */
  }
  OK(t, t->p->capture->begin(s, &t->err));
  sim_fill(t, s, y, FLOATS, 0);
  OK(t, launch(t, s, k.kernel, x, y, 0, 3.0F, N));
  OK(t, launch(t, s, k.kernel, x, y, 0, 5.0F, N / 2));
  OK(t, t->p->capture->end(s, &g, &t->err));
  for (int round = 0; round < 3; round++) {
    OK(t, launch(t, s, k.kernel, x, y, FLOATS, (float)round, N)); /* does not touch what the capture has */
    OK(t, t->p->capture->replay(g, s, &t->err));
    OK(t, t->p->copy->d2h(s, pin, 0, y, 0, FLOATS, &t->err));
    sim_sync(t, s);
    for (int i = 0; i < N; i++) assert_true(host[i] == (float)i * (i < N / 2 ? 5.0F : 3.0F));
  }
  t->p->capture->free(g);
  t->p->module->unload(k.module);
  t->p->memory->free(t->dev[0], x);
  t->p->memory->free(t->dev[0], y);
  t->p->memory->free(t->dev[0], pin);
  t->p->stream->close(s);
}

static void a_kernel_is_launched_and_captured(void **state) {
  static const char *const names[] = {"push", "old", "uniform", "uniform_new"};
  (void)state;
  for (int timeline = 0; timeline < 2; timeline++) {
    sim_test t;
    vulkan_open(&t, 1, "timeline", timeline ? "1" : "0", NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) launches_and_captures(&t, names[i]);
    vulkan_close(&t);
  }
}

/* As when inputs are bound anew again and again: what captures took is free when they are, and those that stay do not hide
 * what is free. */
static void captures_give_back_what_they_took(void **state) {
  enum { ROUNDS = 60, LAUNCHES = 6 };
  static const char *const names[] = {"push", "uniform"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    sim_test t;
    long live = 0;
    vulkan_open(&t, 1, NULL);
    kernel k = load(&t, names[i]);
    heddle_pstream *s = sim_stream(&t, t.dev[0]);
    heddle_pbuffer *x = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, FLOATS);
    heddle_pbuffer *y = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, FLOATS);
    heddle_pgraph *kept = NULL, *g = NULL;
    sim_fill(&t, s, x, FLOATS, 0x3F800000);
    for (int round = 0; round < ROUNDS; round++) {
      heddle_pgraph **graph = round == 0 ? &kept : &g;
      OK(&t, t.p->capture->begin(s, &t.err));
      for (int n = 0; n < LAUNCHES; n++) OK(&t, launch(&t, s, k.kernel, x, y, 0, (float)(round + n), N));
      OK(&t, t.p->capture->end(s, graph, &t.err));
      OK(&t, t.p->capture->replay(*graph, s, &t.err));
      OK(&t, t.p->capture->replay(kept, s, &t.err));
      sim_sync(&t, s);
      sim_expect(&t, s, y, N, 0x40A00000); /* 5: the last launch of the one that is kept */
      for (int n = 0; n < LAUNCHES; n++) OK(&t, launch(&t, s, k.kernel, x, y, 0, (float)n, N));
      sim_sync(&t, s);
      if (round > 0) t.p->capture->free(g);
      if (round == ROUNDS / 2) live = atomic_load(&t.fake.live);
    }
    assert_int_equal(atomic_load(&t.fake.live), live);
    t.p->module->unload(k.module);
    t.p->capture->free(kept);
    t.p->memory->free(t.dev[0], x);
    t.p->memory->free(t.dev[0], y);
    t.p->stream->close(s);
    vulkan_close(&t);
  }
}

static void what_does_not_fit_is_refused(void **state) {
  static const uint32_t one[3] = {1, 1, 1}, none[3] = {1, 0, 1}, wide[3] = {32, 1, 1};
  static const uint32_t many[3] = {UINT32_MAX, 1, 1};
  (void)state;
  sim_test t;
  vulkan_open(&t, 2, NULL);
  kernel k = load(&t, "push");
  const heddle_module_table *m = t.p->module;
  heddle_pmodule *module = NULL;
  heddle_pkernel *kernel = NULL;
  heddle_pstream *s = sim_stream(&t, t.dev[0]), *far = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *x = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, FLOATS);
  heddle_pbuffer *pin = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, FLOATS);
  heddle_pkernel_info info = {.struct_size = sizeof info};
  const heddle_pargument args[] = {{x, 0, 0}, {x, 0, 0}, {NULL, 0, 4}, {NULL, 0, 4}, {NULL, 0, 4}};
  assert_string_equal(m->formats(t.self, 0), "spirv");
  FAILS(&t, HEDDLE_EUNSUPPORTED, "spirv is", m->load(t.dev[0], "clbin", "abcd", 4, &module, &t.err));
  FAILS(&t, HEDDLE_EFORMAT, "whole words", m->load(t.dev[0], "spirv", "abcde", 5, &module, &t.err));
  FAILS(&t, HEDDLE_EFORMAT, "does not begin", m->load(t.dev[0], "spirv", "abcdabcdabcdabcdabcd", 20, &module, &t.err));
  FAILS(&t, HEDDLE_ENOTFOUND, "'nobody'", m->kernel_get(k.module, "nobody", &kernel, &info, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "of vulkan:0", m->launch(far, k.kernel, one, wide, 0, args, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "empty grid", m->launch(s, k.kernel, none, wide, 0, args, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "blocks of 1 x 1 x 1", m->launch(s, k.kernel, one, one, 0, args, 4, &t.err));
  FAILS(&t, HEDDLE_ELIMIT, "groups", m->launch(s, k.kernel, many, wide, 0, args, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "shared memory", m->launch(s, k.kernel, one, wide, 4, args, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "fewer scalars", m->launch(s, k.kernel, one, wide, 0, args, 3, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "more scalars", m->launch(s, k.kernel, one, wide, 0, args, 5, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "fewer buffers", m->launch(s, k.kernel, one, wide, 0, args + 1, 3, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "not aligned", launch(&t, s, k.kernel, x, x, 4, 1, 1));
  FAILS(&t, HEDDLE_EINVAL, "kind device or unified", launch(&t, s, k.kernel, x, pin, 0, 1, 1));
  FAILS(&t, HEDDLE_EINVAL, "argument of a kernel", launch(&t, s, k.kernel, x, x, 2 * FLOATS, 1, 1));
  /* A uniform buffer of no bytes: entry point, two decorations, struct, pointer, variable. */
  static const uint32_t empty[] = {0x07230203, 0x10000,
                                   0,          8,
                                   0,          4 << 16 | 15,
                                   5,          1,
                                   'k',        4 << 16 | 71,
                                   4,          34,
                                   0,          4 << 16 | 71,
                                   4,          33,
                                   0,          2 << 16 | 30,
                                   2,          4 << 16 | 32,
                                   3,          2,
                                   2,          4 << 16 | 59,
                                   3,          4,
                                   2};
  OK(&t, m->load(t.dev[0], "spirv", empty, sizeof empty, &module, &t.err));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "holds nothing", m->kernel_get(module, "k", &kernel, &info, &t.err));
  m->unload(module);
  OK(&t, launch(&t, s, k.kernel, x, x, 0, 1, 1));
  sim_sync(&t, s);
  m->unload(k.module);
  t.p->memory->free(t.dev[0], x);
  t.p->memory->free(t.dev[0], pin);
  t.p->stream->close(s);
  t.p->stream->close(far);
  vulkan_close(&t);
}

CASES(CASE(a_kernel_is_launched_and_captured), CASE(captures_give_back_what_they_took),
      CASE(what_does_not_fit_is_refused))
