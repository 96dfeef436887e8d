/* Included by gqa_fast.c once for each kind of vectors: LANES floats in one, TARGET, NAME(x), MULADD(t, x, w): t and the vector x
 * times the number w; and a tile of TILE_ROWS rows (2 or 6) by TILE_BLOCKS vectors (2 or 4), as the registers have room for. */
typedef float NAME(lanes) __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* Columns [e, e + blocks * LANES) of weigh_rows. */
TARGET INSIDE void NAME(weigh_blocks)(const float *weights, const float *values, int64_t keys, int64_t size, float *out,
                                      const float *factor, int64_t e, const int rows, const int blocks) {
  NAME(lanes) t[TILE_ROWS][TILE_BLOCKS];
  REF_UNROLLED for (int r = 0; r < rows; r++) REF_UNROLLED for (int k = 0; k < blocks; k++) t[r][k] =
      *(const NAME(lanes) *)(const void *)(out + r * size + e + k * LANES) * factor[r];
  for (int64_t j = 0; j < keys; j++) {
    const float *v = values + j * size + e;
    NAME(lanes) x[TILE_BLOCKS];
    REF_UNROLLED for (int k = 0; k < blocks; k++) x[k] = *(const NAME(lanes) *)(const void *)(v + k * LANES);
    REF_UNROLLED for (int r = 0; r < rows; r++) REF_UNROLLED for (int k = 0; k < blocks; k++) t[r][k] =
        MULADD(t[r][k], x[k], weights[r * KEYS + j]);
  }
  REF_UNROLLED for (int r = 0; r < rows; r++) REF_UNROLLED for (int k = 0; k < blocks; k++) *
      (NAME(lanes) *)(void *)(out + r * size + e + k * LANES) = t[r][k];
}

/* out[r] = factor[r] * out[r] + the sum over j of weights[r][j] * values[j], of some rows. */
TARGET INSIDE void NAME(weigh_rows)(const float *weights, const float *values, int64_t keys, int64_t size, float *out,
                                    const float *factor, const int rows) {
  int64_t e = 0;
  for (; TILE_BLOCKS == 4 && e + 4 * LANES <= size; e += 4 * LANES)
    NAME(weigh_blocks)(weights, values, keys, size, out, factor, e, rows, TILE_BLOCKS);
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
  for (; r + TILE_ROWS <= rows; r += TILE_ROWS)
    NAME(weigh_rows)(weights + r * KEYS, values, keys, size, out + r * size, factor + r, TILE_ROWS);
  for (; TILE_ROWS == 6 && r + 3 <= rows; r += 3)
    NAME(weigh_rows)(weights + r * KEYS, values, keys, size, out + r * size, factor + r, 3);
  for (; r < rows; r++) NAME(weigh_rows)(weights + r * KEYS, values, keys, size, out + r * size, factor + r, 1);
}

#undef LANES
#undef TARGET
#undef NAME
#undef MULADD
#undef TILE_ROWS
#undef TILE_BLOCKS
