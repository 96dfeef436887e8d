/* Input tiles into Winograd's domain, for both sizes of vectors. */
#include "winograd.h"

#define VECTORS_WIDE 1
#include "vectors.h"
#include "winograd_input_lanes.h"
#undef VECTORS_WIDE
#define VECTORS_WIDE 0
#include "vectors.h"
#include "winograd_input_lanes.h"

void winograd_input(const winograd_plan *plan, const float *src, int64_t from, int64_t rows, int64_t block, float *v) {
  if (plan->kind.lanes == 16) winograd_input_512(plan, src, from, rows, block, v);
  else winograd_input_256(plan, src, from, rows, block, v);
}
