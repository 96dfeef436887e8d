/* Kernels as C functions, for FAKE_GPU_KERNELS: args has the place of each argument. */
#include <string.h>

void scale(const void *const *args, const unsigned grid[3], const unsigned block[3]);
void scale(const void *const *args, const unsigned grid[3], const unsigned block[3]) {
  float *x = NULL, factor = 0;
  unsigned n = 0;
  memcpy(&x, args[0], sizeof x);
  memcpy(&factor, args[1], sizeof factor);
  memcpy(&n, args[2], sizeof n);
  for (unsigned i = 0; i < n && i < grid[0] * block[0]; i++) x[i] *= factor;
}
