/* timeout: 300
 * Weights that the vulkan plugin keeps as float16 (half.h): with precision fast only, where they fit, and in half their
 * bytes. tests/python/test_precision_vulkan.py has the numbers. */
#define CASE_PLUGIN_VULKAN
#include "device_case.h"

enum { ROWS = 5, DEPTH = 301, WIDTH = 77, WEIGHTS = DEPTH * WIDTH };

static void make_case(op_case *c, float first, uint32_t flags) {
  op_case_init(c, "MatMul");
  float *x = op_input(c, F32, SHAPE(2, ROWS, DEPTH)), *w = op_input(c, F32, SHAPE(2, DEPTH, WIDTH));
  op_output(c, F32, SHAPE(2, ROWS, WIDTH));
  for (int i = 0; i < ROWS * DEPTH; i++) x[i] = 1;
  for (int i = 0; i < WEIGHTS; i++) w[i] = 0.25F;
  w[0] = first;
  op_constant(c, 1);
  c->values[1].v.data_bytes = sizeof(float) * WEIGHTS;
  c->region.flags = flags;
}

static void weights_that_fit_are_absorbed(void **state) {
  /* The first weight, and whether all are float16. */
  static const struct {
    float first;
    bool half;
  } cases[] = {{0.5F, true},      {65504.0F, true}, {-65504.0F, true}, {1e-8F, true},
               {65505.0F, false}, {-1e30F, false},  {INFINITY, false}, {NAN, false}};
  rig r;
  (void)state;
  rig_open(&r);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (uint32_t flags = 0; flags <= HEDDLE_REGION_FAST; flags++) {
      op_case c;
      make_case(&c, cases[i].first, flags);
      run(&r, &c);
      assert_int_equal(c.flags[0], 0);
      assert_int_equal(c.flags[1], flags != 0 && cases[i].half ? HEDDLE_INPUT_ABSORBED : 0);
      assert_true(((float *)c.data[2])[1] == DEPTH * 0.25F);
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

/* 160 MiB in float32, which a shader of lavapipe's does not reach, and 80 in float16, which it does. */
static void half_the_bytes_are_in_reach(void **state) {
  enum { LONG = 40 << 10, WIDE = 1 << 10 };
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "MatMul");
  float *x = op_input(&c, F32, SHAPE(2, 1, LONG)), *w = op_input(&c, F32, SHAPE(2, LONG, WIDE));
  float *y = op_output(&c, F32, SHAPE(2, 1, WIDE));
  for (int i = 0; i < LONG; i++) x[i] = i == LONG - 1 ? 1.0F : 0.0F;
  for (int i = 0; i < LONG * WIDE; i++) w[i] = (float)(i % WIDE);
  op_constant(&c, 1);
  c.values[1].v.data_bytes = sizeof(float) * LONG * WIDE;
  if (r.t.p->op->query(r.t.self, 0, &c.region, op_take_offer, &c, &r.t.err) != HEDDLE_OK) {
    assert_non_null(strstr(r.t.err.text, "a shader of this device reaches"));
    c.region.flags = HEDDLE_REGION_FAST;
    run(&r, &c);
    for (int i = 0; i < WIDE; i++) assert_true(y[i] == (float)i);
  }
  op_case_free(&c);
  rig_close(&r);
}

/* Weights that come with the run are the host's. */
static void only_constants(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  make_case(&c, 1, HEDDLE_REGION_FAST);
  c.values[1].v.data = NULL;
  c.values[1].v.data_bytes = 0;
  run(&r, &c);
  assert_int_equal(c.flags[1], 0);
  assert_true(((float *)c.data[2])[1] == DEPTH * 0.25F);
  op_case_free(&c);
  rig_close(&r);
}

CASES(CASE(weights_that_fit_are_absorbed), CASE(half_the_bytes_are_in_reach), CASE(only_constants))
