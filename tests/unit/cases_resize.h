/* Resize on a device: nearest and linear by hand, and all modes, coordinates and policies against the plugin cpu,
 * which ONNX's node cases judge. */
#ifndef HEDDLE_TESTS_UNIT_CASES_RESIZE_H
#define HEDDLE_TESTS_UNIT_CASES_RESIZE_H

#include "device_case.h"

static float *scales_of(op_case *c, int64_t n, const float *scales) {
  const uint32_t at = c->region.n_inputs;
  op_input_again(c, -1);
  float *x = op_input(c, F32, SHAPE(1, n));
  memcpy(x, scales, (size_t)n * sizeof *x);
  c->values[c->inputs[at]].v.data = x;
  c->values[c->inputs[at]].v.data_bytes = (uint64_t)n * sizeof *x;
  return x;
}

static void nearest_repeats_and_linear_goes_between(void **state) {
  const float twice[4] = {1, 1, 2, 3}, line[3] = {1, 1, 2};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "Resize");
  float *x = op_input(&c, F32, SHAPE(4, 2, 3, 4, 5));
  scales_of(&c, 4, twice);
  float *y = op_output(&c, F32, SHAPE(4, 2, 3, 8, 15));
  op_attr_string(&c, "coordinate_transformation_mode", "asymmetric");
  op_attr_string(&c, "nearest_mode", "floor");
  op_fill(x, 120, 1);
  run(&r, &c);
  for (int p = 0; p < 6; p++)
    for (int i = 0; i < 8; i++)
      for (int j = 0; j < 15; j++) assert_true(y[(p * 8 + i) * 15 + j] == x[(p * 4 + i / 2) * 5 + j / 3]);
  op_case_free(&c);

  op_case_init(&c, "Resize"); /* half a pixel: a quarter of the neighbour, and the edge repeated */
  x = op_input(&c, F32, SHAPE(3, 1, 2, 3));
  scales_of(&c, 3, line);
  y = op_output(&c, F32, SHAPE(3, 1, 2, 6));
  op_attr_string(&c, "mode", "linear");
  const float some[6] = {0, 4, 8, 10, 30, 20}, want[12] = {0, 1, 3, 5, 7, 8, 10, 15, 25, 27.5f, 22.5f, 20};
  memcpy(x, some, sizeof some);
  run(&r, &c);
  for (int i = 0; i < 12; i++) assert_true(fabsf(y[i] - want[i]) < 1e-5f);
  op_case_free(&c);
  rig_close(&r);
}

static void all_modes_are_those_of_cpu(void **state) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const coordinates[] = {"half_pixel", "align_corners", "pytorch_half_pixel",
                                            "half_pixel_symmetric"};
  static const float scales[][4] = {{1, 1, 2.5f, 1.7f}, {1, 1, 0.6f, 0.4f}, {1, 1.5f, 1, 0.8f}, {2, 1, 1, 1}};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int k = 0; k < 24; k++) {
    const float *scale = scales[k % 4];
    const int64_t in[4] = {2, 4, 9, 11};
    op_shape out = {4, {0}};
    for (int d = 0; d < 4; d++) out.dims[d] = (int64_t)floorf((float)in[d] * scale[d]);
    op_case_init(&c, "Resize");
    op_fill(op_input(&c, F32, SHAPE(4, 2, 4, 9, 11)), 792, 5);
    scales_of(&c, 4, scale);
    float *y = op_output(&c, F32, out);
    op_attr_string(&c, "mode", modes[k % 3]);
    op_attr_string(&c, "coordinate_transformation_mode", coordinates[k / 6]);
    c.node.opset = 18;
    op_attr_int(&c, "antialias", k % 2);
    op_attr_int(&c, "exclude_outside", k % 3 == 2 && k % 5 == 0);
    fake_device cpu;
    fake_device_open(&cpu, "cpu");
    op_case_run(&cpu, &c);
    fake_device_close(&cpu);
    const size_t n = op_count(out);
    float *want = malloc(n * sizeof *want);
    assert_non_null(want);
    memcpy(want, y, n * sizeof *want);
    run(&r, &c);
    for (size_t i = 0; i < n; i++)
      if (!(fabsf(want[i] - y[i]) <= 2e-6f)) fail_msg("case %d [%zu]: %.9g instead of %.9g", k, i, y[i], want[i]);
    free(want);
    op_case_free(&c);
  }
  rig_close(&r);
}

CASES(CASE(nearest_repeats_and_linear_goes_between), CASE(all_modes_are_those_of_cpu))

#endif
