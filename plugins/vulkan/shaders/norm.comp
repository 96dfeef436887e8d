// Normalisations, as in norm.cl. BATCH_PLANE: BatchNormalization where a group has a stretch of a plane; BATCH_ITEM: where
// an item has an element. NORM: InstanceNormalization and, with LAYER, LayerNormalization, whose scale and bias have a
// number for each element of a row and not for each channel; BY_GROUP: a group has a row, else an item; HAS_BIAS, HAS_MEAN
// and HAS_LESS: the operand, and results for the mean and for 1 over the deviation. LRN. Results may lie on the first
// operand, except LRN's.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "math.glsl"
#include "total.glsl"

#define STRETCH 8 // K_STRETCH of params.h

PUSHED {
  int rows, n, channels, size;
  float epsilon, alpha, beta, bias;
}
p;

OPERAND(1, float, x);
#ifdef LRN

// Over size channels, (size - 1) / 2 of them below. n: elements of a plane.
RESULT(2, float, y);

void main() {
  if (k_item() >= uint(p.rows * p.n)) return;
  const int i = int(k_item()), c = i / p.n % p.channels, below = (p.size - 1) / 2, above = p.size - 1 - below;
  const int low = max(c - below, 0), high = p.channels - 1 - c > above ? c + above : p.channels - 1;
  k_total total = k_total(0.0, 0.0);
  for (int k = low; k <= high; k++) {
    const float v = x[i + (k - c) * p.n];
    k_total_add(total, v * v);
  }
  y[i] = x[i] / k_pow(p.bias + p.alpha / float(p.size) * k_total_value(total), p.beta);
}

#elif defined(BATCH_PLANE) || defined(BATCH_ITEM)

OPERAND(2, float, scale);
OPERAND(3, float, bias);
OPERAND(4, float, mean);
OPERAND(5, float, variance);
RESULT(6, float, y);

void main() {
#ifdef BATCH_PLANE
  // size: groups for a plane.
  if (k_group() >= uint(p.rows * p.size)) return;
  const int group = int(k_group()), plane = group / p.size, c = plane % p.channels;
  const int first = group % p.size * (GROUP * STRETCH) + int(gl_LocalInvocationID.x);
  const float times = scale[c] / sqrt(variance[c] + p.epsilon), middle = mean[c], plus = bias[c];
  for (int b = 0; b < STRETCH; b++) {
    const int i = first + b * GROUP;
    if (i < p.n) y[plane * p.n + i] = (x[plane * p.n + i] - middle) * times + plus;
  }
#else
  if (k_item() >= uint(p.rows * p.n)) return;
  const int i = int(k_item()), c = i / p.n % p.channels;
  y[i] = (x[i] - mean[c]) * (scale[c] / sqrt(variance[c] + p.epsilon)) + bias[c];
#endif
}

#else

OPERAND(2, float, scale);
#ifdef HAS_BIAS
OPERAND(3, float, bias);
#define AFTER_BIAS 4
#define BIAS(i) bias[i]
#else
#define AFTER_BIAS 3
#define BIAS(i) 0.0
#endif
RESULT(AFTER_BIAS, float, y);
#ifdef HAS_MEAN
RESULT(AFTER_BIAS + 1, float, y_mean);
#define AFTER_MEAN (AFTER_BIAS + 2)
#else
#define AFTER_MEAN (AFTER_BIAS + 1)
#endif
#ifdef HAS_LESS
RESULT(AFTER_MEAN, float, y_less);
#endif

#ifdef BY_GROUP
#include "group.glsl"
#define EACH GROUP
#define WHO int(gl_LocalInvocationID.x)
#define ALL_SUM(v) k_group_sum(v)
#else
#define EACH 1
#define WHO 0
#define ALL_SUM(v) v
#endif

void main() {
#ifdef BY_GROUP
  const uint row = k_group();
#else
  const uint row = k_item();
#endif
  if (row >= uint(p.rows)) return;
  const int n = p.n, start = int(row) * n;
  k_total sum = k_total(0.0, 0.0), squares = k_total(0.0, 0.0);
  for (int i = WHO; i < n; i += BLOCK * EACH) {
    [[unroll]] for (int b = 0; b < BLOCK; b++) {
      if (i + b * EACH < n) k_total_add(sum, x[start + i + b * EACH]);
    }
  }
  const float middle = ALL_SUM(k_total_value(sum)) / float(n);
  for (int i = WHO; i < n; i += BLOCK * EACH) {
    float part = 0.0;
    [[unroll]] for (int b = 0; b < BLOCK; b++) {
      const float d = i + b * EACH < n ? x[start + i + b * EACH] - middle : 0.0;
      part += d * d;
    }
    k_total_add(squares, part);
  }
  const float less = 1.0 / sqrt(ALL_SUM(k_total_value(squares)) / float(n) + p.epsilon);
#ifndef LAYER
  const int c = int(row) % p.channels;
  const float times = less * scale[c], plus = BIAS(c);
#endif
  for (int i = WHO; i < n; i += BLOCK * EACH) {
    [[unroll]] for (int b = 0; b < BLOCK; b++) {
      const int at = i + b * EACH;
#ifdef LAYER
      if (at < n) y[start + at] = (x[start + at] - middle) * less * scale[at] + BIAS(at);
#else
      if (at < n) y[start + at] = (x[start + at] - middle) * times + plus;
#endif
    }
  }
#ifdef HAS_MEAN
  if (WHO == 0) y_mean[row] = middle;
#endif
#ifdef HAS_LESS
  if (WHO == 0) y_less[row] = less;
#endif
}

#endif
