/* Products with weights in blocks (plugins/common/blocks.h), which are used as they lie in the file. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_BLOCK_FORMS_H
#define HEDDLE_PLUGINS_COMMON_MORE_BLOCK_FORMS_H

#include "plugins/common/blocks.h"

/* Numbers of a block at most; and of those whose sum a product wants. */
enum { BLOCK_MOST = 256, BLOCK_SUM = 32 };

/* How many floats a row of count numbers takes, laid out for products: filled up with zeros to whole blocks of the longest form,
 * and the sums of each BLOCK_SUM of them. */
static inline int64_t block_padded(int64_t count) {
  return (count + BLOCK_MOST - 1) / BLOCK_MOST * BLOCK_MOST;
}
static inline int64_t block_laid_floats(int64_t count) {
  return block_padded(count) + block_padded(count) / BLOCK_SUM;
}
void block_lay(const float *a, int64_t count, float *out);

/* A row of count weights times a row that is laid out; and as floats. */
typedef float (*block_product)(const uint8_t *row, int64_t count, const float *laid);
block_product block_product_of(int form);
void block_read(int form, const uint8_t *row, int64_t count, float *out);

#endif
