/* Kernels as C functions, for FAKE_GPU_KERNELS: args has the place of each argument. */
#include <string.h>

/* How many of its second parameter's 4,000 bytes are not zero. */
void count_set(const void *const *args, const unsigned grid[3], const unsigned block[3]);
void count_set(const void *const *args, const unsigned grid[3], const unsigned block[3]) {
  const unsigned char *bytes = args[1];
  unsigned *out = NULL, set = 0;
  (void)grid, (void)block;
  memcpy(&out, args[0], sizeof out);
  for (int i = 0; i < 4000; i++) set += bytes[i] != 0;
  *out = set;
}

void scale(const void *const *args, const unsigned grid[3], const unsigned block[3]);
void scale(const void *const *args, const unsigned grid[3], const unsigned block[3]) {
  float *x = NULL, factor = 0;
  unsigned n = 0;
  memcpy(&x, args[0], sizeof x);
  memcpy(&factor, args[1], sizeof factor);
  memcpy(&n, args[2], sizeof n);
  for (unsigned i = 0; i < n && i < grid[0] * block[0]; i++) x[i] *= factor;
}
