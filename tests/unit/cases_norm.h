/* Normalisations on a device against loops in double: planes and rows short and long, optional operands and results. */
#ifndef HEDDLE_TESTS_UNIT_CASES_NORM_H
#define HEDDLE_TESTS_UNIT_CASES_NORM_H

#include "device_case.h"

static void fill_positive(float *x, size_t n, uint32_t seed) {
  op_fill(x, n, seed);
  for (size_t i = 0; i < n; i++) x[i] = fabsf(x[i]) + 0.1f;
}

static const int64_t planes[] = {1, 6, 63, 64, 200, 1300};
enum { IMAGES = 2, CHANNELS = 3 };

static void batch_normalization(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (size_t k = 0; k < sizeof planes / sizeof planes[0]; k++) {
    const size_t n = (size_t)planes[k];
    float *per[4];
    op_case_init(&c, "BatchNormalization");
    float *x = op_input(&c, F32, SHAPE(3, IMAGES, CHANNELS, planes[k]));
    for (int i = 0; i < 4; i++)
      fill_positive(per[i] = op_input(&c, F32, SHAPE(1, CHANNELS)), CHANNELS, 30 + (uint32_t)i);
    float *y = op_output(&c, F32, SHAPE(3, IMAGES, CHANNELS, planes[k]));
    op_attr_float(&c, "epsilon", 0.01);
    op_fill(x, IMAGES * CHANNELS * n, 2);
    run(&r, &c);
    for (size_t i = 0; i < IMAGES * CHANNELS * n; i++) {
      const size_t ch = i / n % CHANNELS;
      const double d = (double)x[i] - (double)per[2][ch];
      const double v = d / sqrt((double)per[3][ch] + (double)0.01f) * (double)per[0][ch];
      op_close(v + (double)per[1][ch], (double)y[i], fabs(v) + (double)per[1][ch], 8, "BatchNormalization", i);
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

/* Mean and 1 over the deviation of n numbers. */
static void measure(const float *x, size_t n, double epsilon, double *mean, double *less) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) sum += (double)x[i];
  *mean = sum / (double)n;
  for (size_t i = 0; i < n; i++) squares += ((double)x[i] - *mean) * ((double)x[i] - *mean);
  *less = 1 / sqrt(squares / (double)n + epsilon);
}

static void instance_normalization(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (size_t k = 0; k < sizeof planes / sizeof planes[0]; k++) {
    const size_t n = (size_t)planes[k];
    op_case_init(&c, "InstanceNormalization");
    float *x = op_input(&c, F32, SHAPE(3, IMAGES, CHANNELS, planes[k])), *scale = op_input(&c, F32, SHAPE(1, CHANNELS));
    float *bias = op_input(&c, F32, SHAPE(1, CHANNELS)), *y = op_output(&c, F32, SHAPE(3, IMAGES, CHANNELS, planes[k]));
    op_fill(x, IMAGES * CHANNELS * n, 3);
    for (size_t i = 0; i < IMAGES * CHANNELS * n; i++) x[i] += 5; /* a mean that is larger than the deviation */
    op_fill(scale, CHANNELS, 4);
    op_fill(bias, CHANNELS, 5);
    run(&r, &c);
    for (size_t p = 0; p < IMAGES * CHANNELS; p++) {
      double mean, less;
      measure(x + p * n, n, 1e-5, &mean, &less);
      for (size_t i = 0; i < n; i++) {
        const double v = ((double)x[p * n + i] - mean) * less * (double)scale[p % CHANNELS];
        const double large = (fabs((double)x[p * n + i]) + fabs(mean)) * less * fabs((double)scale[p % CHANNELS]);
        op_close(v + (double)bias[p % CHANNELS], (double)y[p * n + i], large + fabs((double)bias[p % CHANNELS]), 12,
                 "InstanceNormalization", p * n + i);
      }
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

static void layer_normalization(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int what = 0; what < 8; what++) { /* bit 0: bias, bit 1: the mean, bit 2: 1 over the deviation */
    const int64_t d = what % 3 == 0 ? 100 : what % 3 == 1 ? 7 : 31;
    const size_t rows = 6, n = (size_t)(4 * d);
    op_case_init(&c, "LayerNormalization");
    c.node.opset = 17;
    float *x = op_input(&c, F32, SHAPE(4, 2, 3, 4, d)), *scale = op_input(&c, F32, SHAPE(2, 4, d));
    float *bias = (what & 1) != 0 ? op_input(&c, F32, SHAPE(2, 4, d)) : NULL;
    float *y = op_output(&c, F32, SHAPE(4, 2, 3, 4, d)), *means = NULL, *lesses = NULL;
    if ((what & 2) != 0) means = op_output(&c, F32, SHAPE(4, 2, 3, 1, 1));
    else if ((what & 4) != 0) c.node_outputs[c.node.n_outputs++] = -1;
    if ((what & 4) != 0) lesses = op_output(&c, F32, SHAPE(4, 2, 3, 1, 1));
    op_attr_int(&c, "axis", 2);
    op_fill(x, rows * n, 6);
    op_fill(scale, n, 7);
    op_fill(bias, n, 8);
    run(&r, &c);
    for (size_t p = 0; p < rows; p++) {
      double mean, less;
      measure(x + p * n, n, 1e-5, &mean, &less);
      for (size_t i = 0; i < n; i++) {
        const double plus = bias != NULL ? (double)bias[i] : 0,
                     v = ((double)x[p * n + i] - mean) * less * (double)scale[i];
        op_close(v + plus, (double)y[p * n + i], 4 * fabs((double)scale[i]) + fabs(plus), 16, "LayerNormalization", i);
      }
      if (means != NULL) op_close(mean, (double)means[p], 2, 4, "the mean", p);
      if (lesses != NULL) op_close(less, (double)lesses[p], less, 8, "1 over the deviation", p);
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

static void local_response(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int64_t size = 1; size < 9; size++) {
    enum { C = 5, PLANE = 70 };
    op_case_init(&c, "LRN");
    float *x = op_input(&c, F32, SHAPE(4, 2, C, 7, 10)), *y = op_output(&c, F32, SHAPE(4, 2, C, 7, 10));
    op_attr_int(&c, "size", size);
    op_attr_float(&c, "alpha", 0.5);
    op_attr_float(&c, "beta", 0.6);
    op_attr_float(&c, "bias", 2);
    op_fill(x, 2 * C * PLANE, 9);
    run(&r, &c);
    for (int64_t i = 0; i < 2 * C * PLANE; i++) {
      const int64_t ch = i / PLANE % C;
      double sum = 0;
      for (int64_t k = ch - (size - 1) / 2; k <= ch + size / 2; k++)
        if (k >= 0 && k < C) sum += (double)x[i + (k - ch) * PLANE] * (double)x[i + (k - ch) * PLANE];
      const double want = (double)x[i] / pow(2 + 0.5 / (double)size * sum, (double)0.6f);
      op_close(want, (double)y[i], fabs(want), 24, "LRN", (size_t)i);
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

CASES(CASE(batch_normalization), CASE(instance_normalization), CASE(layer_normalization), CASE(local_response))

#endif
