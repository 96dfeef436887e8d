/* labels: serial
 * timeout: 300
 * Captures of the opencl plugin: command buffers with copies of the host between them, replayed on any stream of the
 * device; what may not be inside; who decides whether there are any. */
#include "opencl_host.h"
#include "op_case.h"

/* Opens with captures asked for; a skip where the driver has no command buffers. */
static void open_capturing(sim_test *t, uint32_t n) {
  opencl_open(t, n, "capture", "1", NULL);
  heddle_pstream *s = sim_stream(t, t->dev[0]);
  heddle_pgraph *g = NULL;
  heddle_status status = t->p->capture->begin(s, &t->err);
  if (status == HEDDLE_OK) OK(t, t->p->capture->end(s, &g, &t->err));
  t->p->capture->free(g);
  t->p->stream->close(s);
  if (status == HEDDLE_OK) return;
  static char words[sizeof t->err.text];
  snprintf(words, sizeof words, "%s", t->err.text);
  sim_close(t);
  SKIP(words);
}

static void a_capture_replays_its_row(void **state) {
  sim_test t;
  (void)state;
  open_capturing(&t, 2);
  const heddle_capture_table *c = t.p->capture;
  heddle_pstream *s = sim_stream(&t, t.dev[0]), *s2 = sim_stream(&t, t.dev[0]), *far = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *in = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, 256);
  heddle_pbuffer *out = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, 256);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 256);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  heddle_pgraph *g = NULL, *none = NULL;
  uint32_t *pin = (uint32_t *)(void *)sim_map(&t, t.dev[0], in), *pout = (uint32_t *)(void *)sim_map(&t, t.dev[0], out);
  FAILS(&t, HEDDLE_EINVAL, "none was begun", c->end(s, &none, &t.err));
  OK(&t, c->begin(s, &t.err));
  OK(&t, t.p->copy->h2d(s, a, 0, in, 0, 256, &t.err));
  for (uint32_t i = 0; i < 100; i++) sim_fill(&t, s, b, 1024, i);
  OK(&t, t.p->copy->d2d(s, b, 0, a, 0, 128, &t.err));
  OK(&t, t.p->copy->d2h(s, out, 0, b, 0, 256, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->stream->submit(s, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->stream->sync(s, SECOND, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->event->record(e, s, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->event->wait(s, e, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->fence->signal(s, 1, 1, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->copy->write(s, a, 0, pin, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->copy->read(s, pout, a, 0, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", c->begin(s, &t.err));
  OK(&t, c->end(s, &g, &t.err));
  for (int i = 0; i < 64; i++) pin[i] = 1, pout[i] = 0;
  sim_sync(&t, s);
  assert_int_equal(pout[0], 0); /* recording does nothing */
  for (uint32_t round = 1; round < 5; round++) {
    heddle_pstream *on = round % 2 == 0 ? s : s2;
    for (int i = 0; i < 64; i++) pin[i] = round;
    const long calls = atomic_load(&t.fake.calls);
    OK(&t, c->replay(g, on, &t.err));
    assert_int_equal(atomic_load(&t.fake.calls), calls); /* no allocation */
    sim_sync(&t, on);
    assert_int_equal(pout[0], round);
    assert_int_equal(pout[31], round);
    assert_int_equal(pout[32], 99);
  }
  for (int i = 0; i < 20; i++) OK(&t, c->replay(g, s, &t.err)); /* again before it has ended */
  sim_sync(&t, s);
  FAILS(&t, HEDDLE_EINVAL, "no capture", c->replay(g, far, &t.err));
  OK(&t, c->begin(far, &t.err)); /* left open: close ends it */
  c->free(g);
  t.p->event->free(e);
  t.p->memory->free(t.dev[0], in);
  t.p->memory->free(t.dev[0], out);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  t.p->stream->close(s2);
  t.p->stream->close(far);
  sim_close(&t);
}

/* y = x + x, 20 times over in one row: operators are recorded with their operands. */
static void operators_are_captured(void **state) {
  sim_test t;
  op_case c;
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  heddle_pgraph *g = NULL;
  (void)state;
  open_capturing(&t, 1);
  op_case_init(&c, "Add");
  op_input(&c, F32, (op_shape){1, {64}});
  op_input_again(&c, 0);
  op_output(&c, F32, (op_shape){1, {64}});
  OK(&t, t.p->op->query(t.self, 0, &c.region, op_take_offer, &c, &t.err));
  OK(&t, t.p->op->prepare(t.dev[0], &c.region, 0, &op, &t.err));
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 256);
  heddle_pslice slices[2] = {{a, 0, 256}, {a, 0, 256}};
  heddle_pbind bind = {
      .struct_size = sizeof bind, .inputs = slices, .outputs = slices, .n_inputs = c.region.n_inputs, .n_outputs = 1};
  OK(&t, t.p->op->bind(op, s, &bind, &launch, &t.err));
  OK(&t, t.p->capture->begin(s, &t.err));
  for (int i = 0; i < 20; i++) OK(&t, t.p->op->run(launch, &t.err));
  OK(&t, t.p->capture->end(s, &g, &t.err));
  float x[64], y[64];
  for (int round = 1; round < 4; round++) {
    for (int i = 0; i < 64; i++) x[i] = (float)(i * round);
    OK(&t, t.p->copy->write(s, a, 0, x, sizeof x, &t.err));
    OK(&t, t.p->capture->replay(g, s, &t.err));
    OK(&t, t.p->copy->read(s, y, a, 0, sizeof y, &t.err));
    for (int i = 0; i < 64; i++) assert_true(y[i] == (float)(i * round) * 1048576.0f);
  }
  t.p->capture->free(g);
  t.p->op->launch_free(launch);
  t.p->op->op_free(op);
  op_case_free(&c);
  t.p->memory->free(t.dev[0], a);
  t.p->stream->close(s);
  sim_close(&t);
}

static const char code[] = "__kernel void put(__global int *to, int what) { to[get_global_id(0)] = what; }\n";

/* A recorded launch keeps its arguments, whatever the same kernel is given before and after. */
static void launches_keep_their_arguments(void **state) {
  static const uint32_t grid[3] = {1, 1, 1}, block[3] = {32, 1, 1};
  sim_test t;
  heddle_pmodule *m = NULL;
  heddle_pkernel *k = NULL;
  heddle_pgraph *g = NULL;
  int32_t got[256];
  (void)state;
  open_capturing(&t, 1);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, sizeof got);
  OK(&t, t.p->module->load(t.dev[0], "opencl-c", code, sizeof code - 1, &m, &t.err));
  OK(&t, t.p->module->kernel_get(m, "put", &k, NULL, &t.err));
  heddle_pargument args[2] = {{a, 0, 0}, {NULL, 7, 4}};
  OK(&t, t.p->capture->begin(s, &t.err));
  OK(&t, t.p->module->launch(s, k, grid, block, 0, args, 2, &t.err));
  args[0].offset = 512;
  args[1].offset = 8;
  OK(&t, t.p->module->launch(s, k, grid, block, 0, args, 2, &t.err));
  OK(&t, t.p->capture->end(s, &g, &t.err));
  args[1].offset = 9;
  OK(&t, t.p->module->launch(s, k, grid, block, 0, args, 2, &t.err));
  sim_fill(&t, s, a, sizeof got, 1);
  OK(&t, t.p->capture->replay(g, s, &t.err));
  OK(&t, t.p->copy->read(s, got, a, 0, sizeof got, &t.err));
  for (int i = 0; i < 256; i++) assert_int_equal(got[i], i < 32 ? 7 : i >= 128 && i < 160 ? 8 : 1);
  t.p->capture->free(g);
  t.p->module->unload(m);
  t.p->memory->free(t.dev[0], a);
  t.p->stream->close(s);
  sim_close(&t);
}

/* A mark in a capture gives the time of each replay, and the queue that takes times replays what another recorded. */
static void marks_are_captured(void **state) {
  sim_test t;
  heddle_ptimer *timer = NULL;
  heddle_pgraph *before = NULL, *g = NULL;
  uint64_t ns[2], last = 0;
  (void)state;
  open_capturing(&t, 1);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1 << 20);
  OK(&t, t.p->capture->begin(s, &t.err));
  for (uint32_t i = 0; i < 4; i++) sim_fill(&t, s, a, 1 << 20, i);
  OK(&t, t.p->capture->end(s, &before, &t.err));
  OK(&t, t.p->timing->create(t.dev[0], 2, &timer, &t.err));
  OK(&t, t.p->capture->begin(s, &t.err));
  OK(&t, t.p->timing->mark(s, timer, 0, &t.err));
  for (uint32_t i = 4; i < 8; i++) sim_fill(&t, s, a, 1 << 20, i);
  OK(&t, t.p->timing->mark(s, timer, 1, &t.err));
  OK(&t, t.p->capture->end(s, &g, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "never marked", t.p->timing->read(timer, 0, 1, ns, &t.err));
  for (int round = 0; round < 3; round++) {
    OK(&t, t.p->capture->replay(g, s, &t.err));
    sim_expect(&t, s, a, 1 << 18, 7);
    OK(&t, t.p->timing->read(timer, 0, 2, ns, &t.err));
    assert_true(ns[0] > last && ns[1] > ns[0]);
    last = ns[1];
    OK(&t, t.p->capture->replay(before, s, &t.err));
    sim_expect(&t, s, a, 1 << 18, 3);
  }
  t.p->capture->free(g);
  t.p->capture->free(before);
  t.p->timing->free(timer);
  t.p->memory->free(t.dev[0], a);
  t.p->stream->close(s);
  sim_close(&t);
}

/* The n-th allocation fails: a capture that is not there, never half of one. */
static void memory_runs_out_in_a_capture(void **state) {
  sim_test t;
  (void)state;
  open_capturing(&t, 1);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 256);
  int done = 0;
  for (long n = 1; n < 10 && !done; n++) {
    heddle_pgraph *g = NULL;
    t.fake.fail_at = atomic_load(&t.fake.calls) + n;
    heddle_status status = t.p->capture->begin(s, &t.err);
    const bool begun = status == HEDDLE_OK;
    for (uint32_t i = 0; i < 100 && status == HEDDLE_OK; i++) status = t.p->copy->fill(s, a, 0, 256, i, &t.err);
    if (begun) {
      heddle_status ended = t.p->capture->end(s, &g, &t.err);
      if (status == HEDDLE_OK) status = ended;
    }
    t.fake.fail_at = 0;
    if (status != HEDDLE_OK) assert_int_equal(status, HEDDLE_ENOMEM);
    done = status == HEDDLE_OK;
    t.p->capture->free(g);
  }
  assert_true(done);
  t.p->memory->free(t.dev[0], a);
  t.p->stream->close(s);
  sim_close(&t);
}

static void the_setting_decides(void **state) {
  static const struct { const char *value, *words; } tries[] = {{"0", "setting capture is 0"}, {"auto", "capture=1"}};
  (void)state;
  for (int i = 0; i < 2; i++) {
    sim_test t;
    opencl_open(&t, 1, "capture", tries[i].value, NULL);
    heddle_pdevice_desc desc = {.struct_size = sizeof desc};
    OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
    heddle_pstream *s = sim_stream(&t, t.dev[0]);
    if (i == 0 || (desc.caps & HEDDLE_CAP_HOST_CORES) != 0)
      FAILS(&t, HEDDLE_EUNSUPPORTED, tries[i].words, t.p->capture->begin(s, &t.err));
    t.p->stream->close(s);
    sim_close(&t);
  }
  sim_test t;
  sim_enter(&t, "capture", "maybe", NULL);
  FAILS(&t, HEDDLE_EINVAL, "'maybe'", t.p->open_instance(&t.fake.table, &t.self, &t.err));
}

CASES(CASE(a_capture_replays_its_row), CASE(operators_are_captured), CASE(launches_keep_their_arguments),
      CASE(marks_are_captured), CASE(memory_runs_out_in_a_capture), CASE(the_setting_decides))
