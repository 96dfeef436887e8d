/* Products back from Winograd's domain, for both sizes of vectors. */
#include "winograd.h"

#include <string.h>

/* The most results of a tile, along one direction. */
enum { MOST = 4 };

#define VECTORS_WIDE 1
#include "vectors.h"
#include "winograd_output_lanes.h"
#undef VECTORS_WIDE
#define VECTORS_WIDE 0
#include "vectors.h"
#include "winograd_output_lanes.h"

void winograd_output(const winograd_plan *plan, const float *m, int64_t from, int64_t rows, int64_t group,
                     const float *bias, const float *const *adds, float *dst) {
  if (plan->kind.lanes == 16) winograd_output_512(plan, m, from, rows, group, bias, adds, dst);
  else winograd_output_256(plan, m, from, rows, group, bias, adds, dst);
}
