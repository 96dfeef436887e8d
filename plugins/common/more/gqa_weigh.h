/* Included by gqa_fast.c once for each kind of vectors: LANES floats in one, TARGET, and NAME(x). */
typedef float NAME(lanes) __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* Columns [e, e + blocks * LANES) of weigh_rows. */
TARGET INSIDE void NAME(weigh_blocks)(const float *weights, const float *values, int64_t keys, int64_t size, float *out,
                                      const float *factor, int64_t e, const int rows, const int blocks) {
  NAME(lanes) t[2][4];
  REF_UNROLLED for (int r = 0; r < rows; r++) REF_UNROLLED for (int k = 0; k < blocks; k++) t[r][k] =
      *(const NAME(lanes) *)(const void *)(out + r * size + e + k * LANES) * factor[r];
  for (int64_t j = 0; j < keys; j++) {
    const float *v = values + j * size + e;
    REF_UNROLLED for (int k = 0; k < blocks; k++) {
      const NAME(lanes) x = *(const NAME(lanes) *)(const void *)(v + k * LANES);
      REF_UNROLLED for (int r = 0; r < rows; r++) t[r][k] += x * weights[r * KEYS + j];
    }
  }
  REF_UNROLLED for (int r = 0; r < rows; r++) REF_UNROLLED for (int k = 0; k < blocks; k++) *
      (NAME(lanes) *)(void *)(out + r * size + e + k * LANES) = t[r][k];
}

/* out[r] = factor[r] * out[r] + the sum over j of weights[r][j] * values[j], of two rows or one. */
TARGET INSIDE void NAME(weigh_rows)(const float *weights, const float *values, int64_t keys, int64_t size, float *out,
                                    const float *factor, const int rows) {
  int64_t e = 0;
  for (; e + 4 * LANES <= size; e += 4 * LANES)
    NAME(weigh_blocks)(weights, values, keys, size, out, factor, e, rows, 4);
  for (; e + 2 * LANES <= size; e += 2 * LANES)
    NAME(weigh_blocks)(weights, values, keys, size, out, factor, e, rows, 2);
  for (; e + LANES <= size; e += LANES) NAME(weigh_blocks)(weights, values, keys, size, out, factor, e, rows, 1);
  for (; e < size; e++) {
    for (int r = 0; r < rows; r++) {
      float t = out[r * size + e] * factor[r];
      for (int64_t j = 0; j < keys; j++) t += values[j * size + e] * weights[r * KEYS + j];
      out[r * size + e] = t;
    }
  }
}

TARGET static void NAME(weigh)(const float *weights, const float *values, int64_t rows, int64_t keys, int64_t size,
                               float *out, const float *factor) {
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2) NAME(weigh_rows)(weights + r * KEYS, values, keys, size, out + r * size, factor + r, 2);
  if (r < rows) NAME(weigh_rows)(weights + r * KEYS, values, keys, size, out + r * size, factor + r, 1);
}

#undef LANES
#undef TARGET
#undef NAME
