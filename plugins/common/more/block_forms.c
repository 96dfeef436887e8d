/* Rows of blocks as floats, and rows of floats laid out for products with them. */
#include "block_forms.h"

#include "plugins/common/halves.h"

#include <string.h>

void block_read(int form, const uint8_t *row, int64_t count, float *out) {
  const block_form *f = block_form_of(form);
  if (f->elements == 1) {
    halves_widen(form == BLOCK_BF16, (const char *)row, out, (uint64_t)count);
    return;
  }
  for (int64_t k = 0; k < count; k += f->elements, row += f->bytes) f->read(row, out + k);
}

void block_lay(const float *a, int64_t count, float *out) {
  const int64_t padded = block_padded(count);
  float *sums = out + padded;
  memcpy(out, a, (size_t)count * sizeof *out);
  memset(out + count, 0, (size_t)(padded - count) * sizeof *out);
  for (int64_t k = 0; k < padded; k += BLOCK_SUM) {
    float sum = 0;
    for (int64_t i = 0; i < BLOCK_SUM; i++) sum += out[k + i];
    sums[k / BLOCK_SUM] = sum;
  }
}
