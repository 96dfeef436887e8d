/* Included by gemm_tiles.c once for each kind of numbers and vectors: NUMBER, BYTES of a vector, ROWS of a tile, TARGET, and
 * NAME(x), the name of a function. */
typedef NUMBER NAME(vector) __attribute__((vector_size(BYTES)));
typedef NUMBER NAME(loose) __attribute__((vector_size(BYTES), aligned(sizeof(NUMBER)), may_alias)); /* at any address */

enum { NAME(lanes) = BYTES / (int)sizeof(NUMBER), NAME(cols) = 2 * NAME(lanes) };

#define AT(p) (*(NAME(loose) *)(void *)(uintptr_t)(p))

TARGET static void NAME(tile)(const void *left, const void *right, int64_t n, void *acc, int64_t acc_row) {
  const NUMBER *a = left, *b = right;
  NUMBER *to = acc;
  NAME(vector) sum[ROWS][2];
  REF_UNROLLED for (int r = 0; r < ROWS; r++) {
    sum[r][0] = AT(to + r * acc_row);
    sum[r][1] = AT(to + r * acc_row + NAME(lanes));
  }
  for (int64_t k = 0; k < n; k++, a += ROWS, b += NAME(cols)) {
    const NAME(vector) x = AT(b), y = AT(b + NAME(lanes));
    REF_UNROLLED for (int r = 0; r < ROWS; r++) {
      sum[r][0] += a[r] * x;
      sum[r][1] += a[r] * y;
    }
  }
  REF_UNROLLED for (int r = 0; r < ROWS; r++) {
    AT(to + r * acc_row) = sum[r][0];
    AT(to + r * acc_row + NAME(lanes)) = sum[r][1];
  }
}

TARGET static void NAME(row)(const void *left, const void *right, const int64_t *at, int64_t n, void *acc,
                             int64_t cols) {
  const NUMBER *a = left, *b = right;
  NUMBER *to = acc;
  int64_t j = 0;
  for (; j + 4 * NAME(lanes) <= cols; j += 4 * NAME(lanes)) {
    NAME(vector) s0 = AT(to + j), s1 = AT(to + j + NAME(lanes));
    NAME(vector) s2 = AT(to + j + 2 * NAME(lanes)), s3 = AT(to + j + 3 * NAME(lanes));
    for (int64_t k = 0; k < n; k++) {
      const NUMBER *from = b + at[k] + j, x = a[k];
      s0 += x * AT(from);
      s1 += x * AT(from + NAME(lanes));
      s2 += x * AT(from + 2 * NAME(lanes));
      s3 += x * AT(from + 3 * NAME(lanes));
    }
    AT(to + j) = s0;
    AT(to + j + NAME(lanes)) = s1;
    AT(to + j + 2 * NAME(lanes)) = s2;
    AT(to + j + 3 * NAME(lanes)) = s3;
  }
  for (; j + NAME(lanes) <= cols; j += NAME(lanes)) {
    NAME(vector) sum = AT(to + j);
    for (int64_t k = 0; k < n; k++) sum += a[k] * AT(b + at[k] + j);
    AT(to + j) = sum;
  }
  for (; j < cols; j++) {
    NUMBER sum = to[j];
    for (int64_t k = 0; k < n; k++) sum += a[k] * b[at[k] + j];
    to[j] = sum;
  }
}

TARGET static void NAME(dot)(const void *left, const void *right, int64_t n, void *acc) {
  const NUMBER *a = left, *b = right;
  NAME(vector) s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  NUMBER all = 0;
  int64_t k = 0;
  for (; k + 4 * NAME(lanes) <= n; k += 4 * NAME(lanes)) {
    s0 += AT(a + k) * AT(b + k);
    s1 += AT(a + k + NAME(lanes)) * AT(b + k + NAME(lanes));
    s2 += AT(a + k + 2 * NAME(lanes)) * AT(b + k + 2 * NAME(lanes));
    s3 += AT(a + k + 3 * NAME(lanes)) * AT(b + k + 3 * NAME(lanes));
  }
  for (; k < n; k++) all += a[k] * b[k];
  s0 = (s0 + s1) + (s2 + s3);
  for (int l = 0; l < NAME(lanes); l++) all += s0[l];
  *(NUMBER *)acc += all;
}

#undef AT
#undef NUMBER
#undef NAME
