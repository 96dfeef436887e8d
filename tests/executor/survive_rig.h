/* tests/executor/survive_rig.h: a model over two devices that fail, and what its results are. */
#ifndef HEDDLE_TESTS_EXECUTOR_SURVIVE_RIG_H
#define HEDDLE_TESTS_EXECUTOR_SURVIVE_RIG_H

#include "core/context.h"
#include "executor/rig.h"

/* sum = x + w on sim:0, gate = relu(sum) on sim:1, out = gate * x on cpu, as annotated; w is an input too. */
static const int64_t shape[1] = {64};

static inline void draw(sketch *s, const char *first, const char *second) {
  int x = put_input(s, "x", "[64]", "\"float32\""), w = put_input(s, "w", "[64]", "\"float32\"");
  int sum = NODE(s, "Add", "sum", first, x, w), gate = NODE(s, "Relu", "gate", second, sum);
  put_head(s, NODE(s, "Mul", "out", "cpu", gate, x));
}

static inline void make(rig *t, const char *settings, const char *policy, uint32_t in_flight) {
  sketch s = {0};
  draw(&s, "sim:0", "sim:1");
  rig_make(t, settings, &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,sim:1,cpu",
                                   .on_failure = policy,
                                   .in_flight = in_flight});
}

static inline void set_both(rig *t, float first) {
  heddle_tensor *x = floats(shape, 1, first, 1), *w = floats(shape, 1, -40, 0.5f);
  OK(heddle_executor_set_input(t->ex, 0, x, &err));
  OK(heddle_executor_set_input(t->ex, 1, w, &err));
  heddle_tensor_release(x);
  heddle_tensor_release(w);
}

/* relu(x + w) * x, by hand. */
static inline void check_values(const float *got, float first) {
  for (int i = 0; i < 64; i++) {
    float x = first + (float)i, sum = x + (-40 + 0.5f * (float)i), gate = sum > 0 ? sum : 0;
    if (got[i] != gate * x) fail_msg("element %d is %g, expected %g", i, (double)got[i], (double)(gate * x));
  }
}

static inline void check_output(rig *t, float first) {
  heddle_tensor *y = floats(shape, 1, 0, 0);
  OK(heddle_executor_get_output(t->ex, 0, y, &err));
  check_values(data_of(y), first);
  heddle_tensor_release(y);
}

static inline heddle_executor_stats stats_of(rig *t) {
  heddle_executor_stats s = {.struct_size = sizeof s};
  OK(heddle_executor_get_stats(t->ex, &s, &err));
  return s;
}

static inline void end(rig *t) {
  rig_end(t);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* Steps are submitted one by one, so that the calls can be counted. */
static const uint32_t plain = HEDDLE_MODEL_NO_CAPTURE;

static inline void make_plain(rig *t, const char *settings, const char *policy, uint32_t in_flight) {
  sketch s = {0};
  draw(&s, "sim:0", "sim:1");
  rig_make(t, settings, &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,sim:1,cpu",
                                   .flags = plain,
                                   .on_failure = policy,
                                   .in_flight = in_flight});
}

#endif
