/* Products in Winograd's domain: for each position of the tile, tiles x channels times channels x result channels. Up to
 * 14 tiles by 32 channels (with AVX2 6 by 16) stay in registers while all input channels go by. docs/decisions/cpu.md compares it with
 * oneDNN's. */
#include "winograd.h"

/* step: from one block of v to the next. */
typedef struct operands {
  const float *v, *weights;
  float *out;
  int64_t step, blocks;
} operands;

#define VECTORS_WIDE 1
#include "vectors.h"
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define EACH_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "winograd_product_lanes.h"
#undef VECTORS_WIDE
#undef EACH_ROW
#undef EACH_COUNT
#define VECTORS_WIDE 0
#include "vectors.h"
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define EACH_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6)
#include "winograd_product_lanes.h"

void winograd_product(const winograd_kind *kind, const float *v, int64_t tiles, int64_t blocks, const float *weights,
                      int64_t lanes, float *out) {
  if (kind->lanes == 16) winograd_product_512(v, tiles, blocks, weights, lanes, out);
  else winograd_product_256(v, tiles, blocks, weights, lanes, out);
}
