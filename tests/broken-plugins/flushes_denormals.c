/* op.run makes the calling thread flush denormal numbers to zero.
 * caught by: process/calls
 * and by: numerics
 * says: op.run changed how the calling thread rounds */
#include "base.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
static void flush(void) {
  _mm_setcsr(_mm_getcsr() | 0x8040);
}
#else
static void flush(void) {
  __builtin_aarch64_set_fpcr(__builtin_aarch64_get_fpcr() | 1u << 24);
}
#endif

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  flush();
  return base_op_run(launch, err);
}

#define base_op_run run
#include "tables.h"
