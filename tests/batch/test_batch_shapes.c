/* tests/batch/test_batch_shapes.c: which requests share a run, padding, models with a fixed batch dimension, inputs without
 * one, memory of the caller's, and runs that fail.
 * labels: threads
 */
#include "batch/batch_rig.h"

#define LATE (UINT64_C(3600) * 1000 * MS)

static heddle_tensor *filled(const int64_t *shape, uint32_t ndim, float value) {
  return floats(shape, ndim, value, 0);
}

static heddle_batch_request *one(heddle_batcher *b, int64_t n, int64_t m, float first) {
  return submitted(b, floats((int64_t[]){n, m}, 2, first, 1), (heddle_batch_call){0});
}

/* Waits for the first output. */
static heddle_tensor *result(heddle_batch_request *r) {
  heddle_tensor *y = NULL;
  OK(heddle_batch_request_wait(r, HEDDLE_FOREVER, &err));
  OK(heddle_batch_request_output(r, 0, &y, &err));
  heddle_batch_request_release(r);
  return y;
}

static void expect_shape(const heddle_tensor *t, uint32_t ndim, const int64_t *shape) {
  assert_int_equal(heddle_tensor_ndim(t), ndim);
  for (uint32_t d = 0; d < ndim; d++) assert_int_equal(heddle_tensor_shape(t)[d], shape[d]);
}

static void other_shapes_have_other_runs(void **state) {
  (void)state;
  batch_rig t;
  heddle_batch_request *r[6];
  doubling(&t, "", "cpu", "[\"n\",\"m\"]", OPTIONS(.max_items = 3, .max_delay_ns = LATE));
  for (int i = 0; i < 6; i++) r[i] = one(t.b, 1, i % 2 == 0 ? 3 : 5, (float)i);
  for (int i = 0; i < 6; i++) ends_doubled(r[i], (float)i);
  assert_int_equal(stats_of(t.b).runs, 2);
  r[0] = one(t.b, 2, 3, 1); /* 2 + 2 items are too many for one run */
  r[1] = one(t.b, 2, 3, 2);
  r[2] = one(t.b, 1, 3, 3);
  OK(heddle_batcher_drain(t.b, HEDDLE_FOREVER, &err));
  for (int i = 0; i < 3; i++) ends_doubled(r[i], (float)(i + 1));
  assert_int_equal(stats_of(t.b).runs, 4);
  batch_end(&t);
}

static void numbers_are_rounded_up(void **state) {
  (void)state;
  for (int exact = 0; exact < 2; exact++) {
    batch_rig t;
    heddle_batch_request *r[5];
    doubling(&t, "", "cpu", ITEMS,
             OPTIONS(.max_items = 6, .max_delay_ns = LATE, .flags = exact != 0 ? HEDDLE_BATCH_EXACT : 0));
    for (int i = 0; i < 5; i++) r[i] = one(t.b, 1, 4, (float)i);
    OK(heddle_batcher_drain(t.b, HEDDLE_FOREVER, &err));
    for (int i = 0; i < 5; i++) ends_doubled(r[i], (float)i);
    assert_int_equal(stats_of(t.b).items, 5);
    assert_int_equal(stats_of(t.b).filled, exact != 0 ? 0 : 1); /* 8 are more than max_items */
    batch_end(&t);
  }
}

/* ---- padding */

static void sequences_are_padded(void **state) {
  (void)state;
  const heddle_batch_port in = {.name = "x", .pad_axes = 2, .pad_value = 7, .pad_multiple = 4, .pad_max = 6},
                          out = {.name = "y", .pad_axes = 2};
  for (int cut = 0; cut < 2; cut++) {
    batch_rig t;
    heddle_batch_request *r[3];
    heddle_batch_call c = {.struct_size = sizeof c, .n_inputs = 1};
    doubling(&t, "", "cpu", "[\"n\",\"m\"]",
             OPTIONS(.max_items = 3, .max_delay_ns = LATE, .inputs = &in, .n_inputs = 1, .outputs = &out,
                     .n_outputs = (size_t)cut));
    for (int i = 0; i < 3; i++) r[i] = one(t.b, 1, 1 + 2 * i, 10);
    for (int i = 0; i < 3; i++) {
      heddle_tensor *y = result(r[i]);
      const int own = 1 + 2 * i, wide = cut != 0 ? own : 6; /* 5 is rounded up to 8, but 6 is the most */
      expect_shape(y, 2, (int64_t[]){1, wide});
      for (int k = 0; k < wide; k++) assert_true(data_of(y)[k] == (k < own ? 2 * (10 + (float)k) : 14));
      heddle_tensor_release(y);
    }
    assert_int_equal(stats_of(t.b).runs, 1);
    heddle_tensor *x = floats((int64_t[]){1, 7}, 2, 0, 1);
    c.inputs = &x;
    FAILS(heddle_batcher_run(t.b, &c, NULL, 0, &err), HEDDLE_EINVAL);
    SAYS("the most is 6");
    heddle_tensor_release(x);
    batch_end(&t);
  }
}

/* Along the first dimension items lie together, along others they do not. */
static void any_dimension_may_be_the_batch(void **state) {
  (void)state;
  const heddle_batch_port in = {.name = "x", .axis = 1, .pad_axes = 1, .pad_value = -1}, out = {.name = "y", .axis = 1};
  batch_rig t;
  heddle_batch_request *r[2];
  doubling(
      &t, "", "cpu", "[\"m\",\"n\",2]",
      OPTIONS(.max_items = 3, .max_delay_ns = LATE, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1));
  r[0] = submitted(t.b, floats((int64_t[]){2, 1, 2}, 3, 1, 1), (heddle_batch_call){0});
  r[1] = submitted(t.b, floats((int64_t[]){3, 2, 2}, 3, 100, 1), (heddle_batch_call){0});
  heddle_tensor *y = result(r[0]);
  static const float expected[] = {2, 4, 6, 8, -2, -2};
  expect_shape(y, 3, (int64_t[]){3, 1, 2});
  for (int k = 0; k < 6; k++) assert_true(data_of(y)[k] == expected[k]);
  heddle_tensor_release(y);
  ends_doubled(r[1], 100);
  assert_int_equal(stats_of(t.b).runs, 1);
  batch_end(&t);
}

/* ---- models without an open batch dimension, inputs without a batch dimension */

static void a_fixed_batch_is_filled(void **state) {
  (void)state;
  for (int batch = 1; batch <= 4; batch += 3) {
    batch_rig t;
    heddle_batch_request *r[5];
    doubling(&t, "", "cpu", batch == 1 ? "[1,4]" : "[4,4]", OPTIONS(.max_items = 16));
    assert_int_equal(stats_of(t.b).most_items, batch);
    for (int i = 0; i < 5; i++) r[i] = one(t.b, 1, 4, (float)i);
    for (int i = 0; i < 5; i++) {
      heddle_tensor *y = result(r[i]);
      expect_shape(y, 2, (int64_t[]){1, 4});
      expect_doubled(y, (float)i);
      heddle_tensor_release(y);
    }
    heddle_batcher_stats s = stats_of(t.b);
    assert_int_equal(s.items + s.filled, s.runs * (uint64_t)batch);
    heddle_tensor *x = floats((int64_t[]){batch + 1, 4}, 2, 0, 1);
    heddle_batch_call c = call_of(&x);
    FAILS(heddle_batcher_run(t.b, &c, NULL, 0, &err), HEDDLE_EINVAL);
    heddle_tensor_release(x);
    batch_end(&t);
  }
}

/* y = x * k; k has no batch dimension. */
static void scaling(batch_rig *t, const heddle_batcher_options *options) {
  static sketch s;
  memset(&s, 0, sizeof s);
  const int x = put_input(&s, "x", ITEMS, "\"float32\""), k = put_input(&s, "k", "[4]", "\"float32\"");
  put_head(&s, NODE(&s, "Mul", "y", NULL, x, k));
  batch_make(t, "", "cpu", &s, options);
}

static void inputs_without_items_are_equal_in_a_run(void **state) {
  (void)state;
  static const char *const names[] = {"k", "x"};
  batch_rig t;
  heddle_batch_request *r[4];
  scaling(&t, OPTIONS(.max_items = 2, .max_delay_ns = LATE));
  for (int i = 0; i < 4; i++) {
    heddle_tensor *in[2] = {filled((int64_t[]){4}, 1, (float)(1 + i % 2)), items(1, (float)i)};
    heddle_batch_call c = {.struct_size = sizeof c, .names = names, .inputs = in, .n_inputs = 2};
    OK(heddle_batcher_submit(t.b, &c, &r[i], &err));
    for (int k = 0; k < 2; k++) heddle_tensor_release(in[k]);
  }
  for (int i = 0; i < 4; i++) {
    heddle_tensor *y = result(r[i]);
    for (int k = 0; k < 4; k++) assert_true(data_of(y)[k] == (float)((1 + i % 2) * (i + k)));
    heddle_tensor_release(y);
  }
  assert_int_equal(stats_of(t.b).runs, 2);
  batch_end(&t);
}

/* ---- what is refused */

static void bad_requests_are_refused(void **state) {
  (void)state;
  static const char *const names[] = {"x", "k", "z"}, *const twice[] = {"x", "x"};
  batch_rig t;
  scaling(&t, OPTIONS(.max_items = 2, .max_delay_ns = LATE));
  heddle_tensor *x = items(1, 1), *k = filled((int64_t[]){4}, 1, 2), *wide = floats((int64_t[]){1, 5}, 2, 0, 1),
                *many = items(3, 0), *none = items(0, 0), *flat = floats((int64_t[]){4}, 1, 0, 1), *whole = NULL;
  OK(heddle_tensor_create(NULL, (heddle_dtype){HEDDLE_DTYPE_INT, 32, 1}, (int64_t[]){1, 4}, 2, &whole, &err));
  heddle_batch_request *good;
  heddle_batch_call c = {.struct_size = sizeof c, .n_inputs = 2};
  c.inputs = (heddle_tensor *[]){x, k};
  OK(heddle_batcher_submit(t.b, &c, &good, &err));
  heddle_tensor *const bad[] = {wide, many, none, flat, whole, NULL};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    c.inputs = (heddle_tensor *[]){bad[i], k};
    FAILS(heddle_batcher_run(t.b, &c, NULL, 0, &err), HEDDLE_EINVAL);
    SAYS("'x'");
  }
  c.inputs = (heddle_tensor *[]){x, k, k};
  c.n_inputs = 3;
  FAILS(heddle_batcher_run(t.b, &c, NULL, 0, &err), HEDDLE_EINVAL);
  c.names = names;
  FAILS(heddle_batcher_run(t.b, &c, NULL, 0, &err), HEDDLE_ENOTFOUND);
  SAYS("'z'; a request has 'x', 'k'");
  c.n_inputs = 1;
  FAILS(heddle_batcher_run(t.b, &c, NULL, 0, &err), HEDDLE_EINVAL);
  SAYS("'k' is missing");
  c.n_inputs = 2;
  c.names = twice;
  FAILS(heddle_batcher_run(t.b, &c, NULL, 0, &err), HEDDLE_EINVAL);
  SAYS("twice");
  c.names = NULL;
  c.outputs = (heddle_tensor *[]){whole};
  c.n_outputs = 1;
  OK(heddle_batcher_submit(t.b, &c, NULL, &err)); /* an output's shape is known when the run ends: that request fails */
  heddle_tensor *y = result(good);
  for (int i = 0; i < 4; i++) assert_true(data_of(y)[i] == (float)(2 * (1 + i)));
  heddle_batcher_stats s = stats_of(t.b);
  assert_int_equal(s.refused, 10);
  assert_int_equal(s.runs, 1);
  heddle_tensor *const all[] = {x, k, wide, many, none, flat, whole, y};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) heddle_tensor_release(all[i]);
  batch_end(&t);
}

static void bad_options_are_refused(void **state) {
  (void)state;
  batch_rig t;
  heddle_batcher *b;
  scaling(&t, NULL);
#define REFUSED(status, ...) FAILS(heddle_batcher_create(t.model, OPTIONS(__VA_ARGS__), &b, &err), status)
  const heddle_batch_port unknown = {.name = "q"}, axis = {.name = "x", .axis = 2}, low = {.name = "x", .axis = -2},
                          fixed = {.name = "x", .pad_axes = 2}, batch = {.name = "x", .pad_axes = 1},
                          nameless = {.axis = 0}, closed = {.name = "x", .axis = 1}, cut = {.name = "y", .pad_axes = 2};
  REFUSED(HEDDLE_EINVAL, .workers = 65);
  REFUSED(HEDDLE_EINVAL, .max_items = 8, .max_queue = 4);
  REFUSED(HEDDLE_EINVAL, .flags = 64);
  REFUSED(HEDDLE_ENOTFOUND, .inputs = &unknown, .n_inputs = 1);
  REFUSED(HEDDLE_ENOTFOUND, .outputs = &unknown, .n_outputs = 1);
  REFUSED(HEDDLE_EINVAL, .inputs = &axis, .n_inputs = 1);
  REFUSED(HEDDLE_EINVAL, .inputs = &low, .n_inputs = 1);
  REFUSED(HEDDLE_EINVAL, .inputs = &fixed, .n_inputs = 1);
  REFUSED(HEDDLE_EINVAL, .inputs = &batch, .n_inputs = 1);
  REFUSED(HEDDLE_EINVAL, .inputs = &nameless, .n_inputs = 1);
  REFUSED(HEDDLE_EINVAL, .outputs = &cut, .n_outputs = 1);
  OK(heddle_batcher_create(t.model, OPTIONS(.inputs = &closed, .n_inputs = 1), &b, &err)); /* 4 items, along axis 1 */
  assert_int_equal(stats_of(b).most_items, 4);
  heddle_batcher_release(b);
  batch_end(&t);
}

/* ---- memory */

static void memory_of_the_caller(void **state) {
  (void)state;
  batch_rig t;
  heddle_tensor *column, *on_device, *own, *turned, *host = items(1, 5);
  float data[16], out[16] = {0};
  for (int i = 0; i < 16; i++) data[i] = (float)i;
  doubling(&t, "", "sim:0", ITEMS, OPTIONS(.max_items = 2, .max_delay_ns = LATE));
  OK(heddle_tensor_wrap(data, HEDDLE_FLOAT32, (int64_t[]){1, 4}, 2, (int64_t[]){1, 4}, NULL, NULL, &column, &err));
  OK(heddle_tensor_wrap(out, HEDDLE_FLOAT32, (int64_t[]){1, 4}, 2, (int64_t[]){1, 4}, NULL, NULL, &turned, &err));
  heddle_device *dev = heddle_model_device(t.model, 0);
  OK(heddle_tensor_create(dev, HEDDLE_FLOAT32, (int64_t[]){1, 4}, 2, &on_device, &err));
  OK(heddle_tensor_create(dev, HEDDLE_FLOAT32, (int64_t[]){1, 4}, 2, &own, &err));
  OK(heddle_tensor_copy(on_device, host, &err));
  heddle_batch_request *r[2];
  heddle_batch_call c = call_of(&column);
  c.outputs = &turned;
  c.n_outputs = 1;
  OK(heddle_batcher_submit(t.b, &c, &r[0], &err));
  c.inputs = &on_device;
  c.outputs = &own;
  OK(heddle_batcher_submit(t.b, &c, &r[1], &err));
  for (int i = 0; i < 2; i++) heddle_tensor_release(result(r[i]));
  for (int i = 0; i < 4; i++) assert_true(out[4 * i] == (float)(8 * i));
  OK(heddle_tensor_copy(host, own, &err));
  expect_doubled(host, 5);
  heddle_tensor *const all[] = {column, on_device, own, turned, host};
  for (int i = 0; i < 5; i++) heddle_tensor_release(all[i]);
  batch_end(&t);
}

/* A run makes a tensor for each output, however many requests it has. */
static void a_request_allocates_nothing(void **state) {
  (void)state;
  batch_rig t;
  heddle_tensor *x = items(1, 3), *y[8];
  heddle_batch_request *r[8];
  for (int k = 0; k < 8; k++) y[k] = items(1, 0);
  doubling(&t, "", "cpu", ITEMS, OPTIONS(.max_items = 8, .max_delay_ns = LATE));
  heddle_batch_request *more[32]; /* their memory is used again: a worker may not have let go of all of the last run */
  for (int k = 0; k < 32; k++) more[k] = submitted(t.b, items(1, 3), (heddle_batch_call){0});
  for (int k = 0; k < 32; k++) ends_doubled(more[k], 3);
  for (int i = 0; i < 20; i++) {
    heddle__alloc_fail_at(2);
    for (int k = 0; k < 8; k++) {
      heddle_batch_call c = call_of(&x);
      c.outputs = &y[k];
      c.n_outputs = 1;
      OK(heddle_batcher_submit(t.b, &c, &r[k], &err));
    }
    for (int k = 0; k < 8; k++) {
      OK(heddle_batch_request_wait(r[k], HEDDLE_FOREVER, &err));
      heddle_batch_request_release(r[k]);
      expect_doubled(y[k], 3);
    }
  }
  heddle__alloc_fail_at(0);
  heddle_tensor_release(x);
  for (int k = 0; k < 8; k++) heddle_tensor_release(y[k]);
  batch_end(&t);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  static sketch s;
  const int x = put_input(&s, "x", ITEMS, "\"float32\"");
  put_head(&s, NODE(&s, "Add", "y", NULL, x, x));
  heddle_context *ctx = context("");
  heddle_graph *g = graph_of(&s);
  heddle_model *m = NULL;
  OK(heddle_model_create(
      ctx, g, NULL, &(heddle_model_options){.struct_size = sizeof(heddle_model_options), .devices = "cpu"}, &m, &err));
  bool failed = true;
  for (uint64_t n = 1; failed; n++) {
    const size_t live = heddle__alloc_live();
    heddle_batcher *b = NULL;
    heddle_tensor *in = items(1, 1), *y = NULL;
    heddle_batch_call c = call_of(&in);
    heddle__alloc_fail_at(n);
    heddle_status st = heddle_batcher_create(m, OPTIONS(.max_items = 4), &b, &err);
    if (st == HEDDLE_OK) st = heddle_batcher_run(b, &c, &y, 1, &err);
    failed = st != HEDDLE_OK;
    heddle__alloc_fail_at(0);
    if (failed && st != HEDDLE_ENOMEM) fail_msg("allocation %d: %s", (int)n, err.text);
    if (failed && b != NULL) OK(heddle_batcher_run(b, &c, &y, 1, &err)); /* it stays usable */
    if (y != NULL) expect_doubled(y, 1);
    heddle_tensor_release(y);
    heddle_batcher_release(b);
    heddle_tensor_release(in);
    if (failed && b == NULL) assert_int_equal(heddle__alloc_live(), live);
    if (n > 400) fail_msg("there is no end of allocations");
  }
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* ---- runs that fail */

static void a_failed_run_is_reported_to_its_requests(void **state) {
  (void)state;
  batch_rig t;
  heddle_batch_request *r[3];
  doubling(&t, "sim.fail=run:2", "sim:0", ITEMS, OPTIONS(.max_items = 3, .max_delay_ns = LATE));
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < 3; i++) r[i] = one(t.b, 1, 4, (float)i);
    for (int i = 0; i < 3; i++) {
      if (k != 1) {
        ends_doubled(r[i], (float)i);
        continue;
      }
      FAILS(heddle_batch_request_wait(r[i], HEDDLE_FOREVER, &err), HEDDLE_EFAILED);
      SAYS("sim:0");
      heddle_failure f = {.struct_size = sizeof f};
      OK(heddle_error_failure(&err, &f));
      assert_string_equal(f.device, "sim:0");
      heddle_batch_request_release(r[i]);
    }
  }
  assert_int_equal(stats_of(t.b).failed, 3);
  assert_int_equal(stats_of(t.b).repeated, 0);
  batch_end(&t);
}

/* Two rounds of six requests in runs of three. How many failed. */
static int failed_of(heddle_batcher *b) {
  int failed = 0;
  for (int round = 0; round < 2; round++) {
    heddle_batch_request *r[6];
    for (int i = 0; i < 6; i++) r[i] = one(b, 1, 4, (float)i);
    for (int i = 0; i < 6; i++) {
      heddle_tensor *y = NULL;
      if (heddle_batch_request_wait(r[i], HEDDLE_FOREVER, &err) != HEDDLE_OK) {
        failed++;
        assert_true(err.text[0] != '\0');
      } else {
        OK(heddle_batch_request_output(r[i], 0, &y, &err));
        for (int k = 0; k < 4; k++) assert_true(data_of(y)[k] == (float)(2 * (i + k)));
      }
      heddle_tensor_release(y);
      heddle_batch_request_release(r[i]);
    }
  }
  return failed;
}

/* Whatever call of the device fails, each request has a result or the error, and the batcher serves others after it. */
static void any_call_may_fail(void **state) {
  (void)state;
  static const char *const calls[] = {"layers=fault;fault.fail=any:%d", "sim.fail=run:%d:async",
                                      "sim.fail=d2h:%d:async", "sim.fail=h2d:%d"};
  const char *scale = getenv("HEDDLE_TEST_SCALE");
  const int most = scale != NULL && atoi(scale) > 1 ? 400 : 60, step[] = {3, 11, 11, 11};
  static sketch s;
  memset(&s, 0, sizeof s);
  const int x = put_input(&s, "x", ITEMS, "\"float32\"");
  put_head(&s, NODE(&s, "Add", "y", NULL, x, x));
  heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0"};
  int seen = 0;
  for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
    for (int n = 1; n <= most; n += scale != NULL && atoi(scale) > 1 ? 1 : step[k]) {
      char settings[80];
      snprintf(settings, sizeof settings, calls[k], n);
      batch_rig t = {.ctx = context(settings), .graph = graph_of(&s)};
      if (heddle_model_create(t.ctx, t.graph, NULL, &o, &t.model, &err) == HEDDLE_OK &&
          heddle_batcher_create(t.model, OPTIONS(.max_items = 3, .max_delay_ns = LATE), &t.b, &err) == HEDDLE_OK) {
        const int failed = failed_of(t.b);
        if (failed > 3) fail_msg("%s: %d requests failed", settings, failed);
        seen += failed;
      }
      batch_end(&t);
    }
  assert_true(seen > 0);
}

/* y = table[x]: an index out of range fails its own request alone. */
static void a_bad_value_fails_alone(void **state) {
  (void)state;
  for (int together = 0; together < 2; together++) {
    static sketch s;
    batch_rig t;
    memset(&s, 0, sizeof s);
    const int table = put_input(&s, "table", "[3]", "\"float32\""), x = put_input(&s, "x", "[\"n\"]", "\"int64\"");
    put_head(&s, NODE(&s, "Gather", "y", NULL, table, x));
    const heddle_batch_port none = {.name = "table", .axis = -1};
    batch_make(&t, "", "cpu", &s,
               OPTIONS(.max_items = 4, .max_delay_ns = LATE, .inputs = &none, .n_inputs = 1,
                       .flags = together != 0 ? HEDDLE_BATCH_TOGETHER : 0));
    heddle_batch_request *r[4];
    heddle_tensor *rows = floats((int64_t[]){3}, 1, 10, 1);
    for (int i = 0; i < 4; i++) {
      heddle_tensor *index = NULL;
      OK(heddle_tensor_create(NULL, (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1}, (int64_t[]){1}, 1, &index, &err));
      *(int64_t *)heddle_tensor_data(index) = i == 1 ? 99 : i % 3;
      heddle_batch_call c = {.struct_size = sizeof c, .inputs = (heddle_tensor *[]){rows, index}, .n_inputs = 2};
      OK(heddle_batcher_submit(t.b, &c, &r[i], &err));
      heddle_tensor_release(index);
    }
    for (int i = 0; i < 4; i++) {
      if (i == 1 || together != 0) {
        FAILS(heddle_batch_request_wait(r[i], HEDDLE_FOREVER, &err), HEDDLE_EINVAL);
        heddle_batch_request_release(r[i]);
        continue;
      }
      heddle_tensor *y = result(r[i]);
      assert_true(data_of(y)[0] == (float)(10 + i % 3));
      heddle_tensor_release(y);
    }
    assert_int_equal(stats_of(t.b).repeated, together != 0 ? 0 : 1);
    heddle_tensor_release(rows);
    batch_end(&t);
  }
}

static void a_run_has_a_time_limit(void **state) {
  (void)state;
  batch_rig t;
  doubling(&t, "sim.hang=4", "sim:0", ITEMS, OPTIONS(.max_items = 1, .run_timeout_ns = 100 * MS));
  heddle_status s = HEDDLE_OK;
  for (int i = 0; i < 6 && s == HEDDLE_OK; i++) {
    heddle_batch_request *r = one(t.b, 1, 4, (float)i);
    s = heddle_batch_request_wait(r, HEDDLE_FOREVER, &err);
    heddle_batch_request_release(r);
  }
  assert_true(s == HEDDLE_ETIMEOUT || s == HEDDLE_EDEVICE);
  heddle_batcher_release(t.b);
  heddle_model_release(t.model);
  heddle_graph_release(t.graph);
  heddle_context_release(t.ctx);
}

static void outputs_have_the_items(void **state) {
  (void)state;
  static sketch s;
  const heddle_batch_port whole = {.name = "y", .axis = -1};
  for (int asked = 0; asked < 2; asked++) {
    batch_rig t;
    memset(&s, 0, sizeof s);
    const int x = put_input(&s, "x", ITEMS, "\"float32\"");
    put_head(&s, NODE(&s, "ReduceSum", "y", NULL, x));
    batch_make(&t, "", "cpu", &s, OPTIONS(.max_items = 2, .outputs = &whole, .n_outputs = (size_t)asked));
    heddle_tensor *in = items(2, 1), *y = NULL;
    heddle_batch_call c = call_of(&in);
    if (asked == 0) {
      FAILS(heddle_batcher_run(t.b, &c, &y, 1, &err), HEDDLE_EINVAL);
      SAYS("'y'");
    } else {
      OK(heddle_batcher_run(t.b, &c, &y, 1, &err));
      assert_true(data_of(y)[0] == 36);
    }
    heddle_tensor_release(in);
    heddle_tensor_release(y);
    batch_end(&t);
  }
}

CASES(CASE(other_shapes_have_other_runs), CASE(numbers_are_rounded_up), CASE(sequences_are_padded),
      CASE(any_dimension_may_be_the_batch), CASE(a_fixed_batch_is_filled),
      CASE(inputs_without_items_are_equal_in_a_run), CASE(bad_requests_are_refused), CASE(bad_options_are_refused),
      CASE(memory_of_the_caller), CASE(a_request_allocates_nothing), CASE(every_allocation_may_fail),
      CASE(a_failed_run_is_reported_to_its_requests), CASE(any_call_may_fail), CASE(a_bad_value_fails_alone),
      CASE(a_run_has_a_time_limit), CASE(outputs_have_the_items))
