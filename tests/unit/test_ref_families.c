/* The operators that the node cases judge by value: that threads do not change a bit of what they give, and that a
 * result may lie on an operand where the offer allows it. */
#include "op_case.h"

typedef struct family {
  const char *op;
  uint32_t operands; /* all of the shape but the second, which is of the last dimension where narrow */
  bool narrow;
  const char *attr;
  int64_t value;
} family;

static const family families[] = {
    {"Sub", 2, true, NULL, 0},         {"Max", 3, false, NULL, 0},          {"Sigmoid", 1, false, NULL, 0},
    {"Tanh", 1, false, NULL, 0},       {"PRelu", 2, true, NULL, 0},         {"Transpose", 1, false, NULL, 0},
    {"LogSoftmax", 1, false, NULL, 0}, {"LogSoftmax", 1, false, "axis", 1}, {"Neg", 1, false, NULL, 0},
    {"Div", 2, false, NULL, 0},        {"Identity", 1, false, NULL, 0},     {"Exp", 1, false, NULL, 0},
};

static void build(op_case *c, const family *f) {
  const bool turned = strcmp(f->op, "Transpose") == 0;
  op_case_init(c, f->op);
  for (uint32_t k = 0; k < f->operands; k++) {
    const bool last = k == 1 && f->narrow;
    float *x = op_input(c, F32, last ? SHAPE(1, 301) : SHAPE(3, 40, 50, 301));
    op_fill(x, last ? 301 : 40 * 50 * 301, k + 1);
  }
  op_output(c, F32, turned ? SHAPE(3, 301, 50, 40) : SHAPE(3, 40, 50, 301));
  if (f->attr != NULL) op_attr_int(c, f->attr, f->value);
}

static void threads_do_not_change_a_bit(void **state) {
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
    op_case c;
    build(&c, &families[i]);
    op_case_run(&d, &c);
    op_same_with_threads(&d, &c);
    op_case_free(&c);
  }
  fake_device_close(&d);
}

static void results_may_lie_on_operands(void **state) {
  const size_t count = 40 * 50 * 301;
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
    op_case c;
    build(&c, &families[i]);
    op_case_run(&d, &c);
    const int32_t out = c.outputs[0];
    float *want = malloc(count * sizeof *want);
    assert_non_null(want);
    memcpy(want, c.data[out], count * sizeof *want);
    for (uint64_t p = 0; p < c.n_pairs; p++) {
      const int32_t in = c.inputs[c.pairs[2 * p]];
      memcpy(c.data[out], c.data[in], count * sizeof *want);
      c.in_place = c.pairs[2 * p];
      op_case_run(&d, &c);
      assert_memory_equal(c.data[out], want, count * sizeof *want);
    }
    free(want);
    op_case_free(&c);
  }
  fake_device_close(&d);
}

CASES(CASE_LABELS(threads_do_not_change_a_bit, "threads"), CASE(results_may_lie_on_operands))
