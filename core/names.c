/* core/names.c: the names of dtypes and shapes, as errors have them. */
#include <string.h>

#include "core/tensor.h"

void heddle__dtype_name(heddle_dtype dtype, char out[32]) {
  static const char *const names[] = {"int", "uint", "float", "handle", "bfloat", "complex"};
  static const char *const float8[] = {"e4m3", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0"}; /* DLPack's types 10 to 14 */
  char lanes[8] = "";
  if (dtype.bits == 0) {
    snprintf(out, 32, "unknown");
    return;
  }
  if (dtype.lanes != 1) snprintf(lanes, sizeof lanes, "x%u", (unsigned)dtype.lanes);
  if (dtype.code == HEDDLE_DTYPE_BOOL && dtype.bits == 8) {
    snprintf(out, 32, "bool%s", lanes);
  } else if (dtype.code < sizeof names / sizeof names[0] && dtype.bits != 0) {
    snprintf(out, 32, "%s%u%s", names[dtype.code], (unsigned)dtype.bits, lanes);
  } else if (dtype.code == 17 && dtype.bits == 4) {
    snprintf(out, 32, "e2m1_float4%s", lanes);
  } else if (dtype.code >= 10 && dtype.code <= 14 && dtype.bits == 8) {
    snprintf(out, 32, "%s_float8%s", float8[dtype.code - 10], lanes);
  } else {
    snprintf(out, 32, "dtype(%u,%u,%u)", (unsigned)dtype.code, (unsigned)dtype.bits, (unsigned)dtype.lanes);
  }
}

void heddle__shape_name(const int64_t *shape, uint32_t ndim, char *out, size_t size) {
  size_t used = 0;
  out[used++] = '[';
  for (uint32_t i = 0; i < ndim; i++) {
    char one[32];
    int n = snprintf(one, sizeof one, "%s%lld", i > 0 ? ", " : "", (long long)shape[i]);
    if (used + (size_t)n + 5 >= size) { /* room for this one, "...", "]" and the end */
      memcpy(out + used, "...", 3);
      used += 3;
      break;
    }
    memcpy(out + used, one, (size_t)n);
    used += (size_t)n;
  }
  out[used++] = ']';
  out[used] = '\0';
}
