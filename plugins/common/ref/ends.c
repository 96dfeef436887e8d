/* Where the greatest or the least element of rows and of columns is: its value first, then its place. */
#include "folds.h"
#include "ref_op.h"
#include "types.h"

#include <string.h>

enum { COLUMNS = 256 };

/* In each of some rows, apart from each other, the place of its end; and the same of columns side by side, from the last row
 * to the first, or the other way where the last place is asked for. NaN equals NaN. */
#define FIND(name, T) \
  static void name##_rows(const void *from, const void *ends, int64_t rows, int64_t n, bool last, int64_t *out) { \
    for (int64_t k = 0; k < rows; k++) { \
      const T *x = (const T *)from + k * n, end = ((const T *)ends)[k]; \
      const int64_t step = last ? -1 : 1; \
      int64_t i = last ? n - 1 : 0, left = n - 1; \
      if (end == end) \
        for (; left > 0 && x[i] != end; left--) i += step; \
      else \
        for (; left > 0 && x[i] == x[i]; left--) i += step; \
      out[k] = i; \
    } \
  } \
  static void name##_columns(const void *from, const void *ends, int64_t columns, int64_t rows, int64_t apart, \
                             bool last, int64_t *out) { \
    const T *end = ends; \
    int32_t found[COLUMNS] = {0}; \
    for (int64_t r = 0; r < rows; r++) { \
      const int32_t i = (int32_t)(last ? r : rows - 1 - r); \
      const T *x = (const T *)from + i * apart; \
      for (int64_t j = 0; j < columns; j++) { \
        const int same = (x[j] == end[j]) | ((x[j] != x[j]) & (end[j] != end[j])); \
        const int32_t before = found[j]; \
        found[j] = same ? i : before; \
      } \
    } \
    for (int64_t j = 0; j < columns; j++) out[j] = found[j]; \
  }
FIND(f32, float)
FIND(f64, double)
FIND(i8, int8_t)
FIND(i16, int16_t)
FIND(i32, int32_t)
FIND(i64, int64_t)
FIND(u8, uint8_t)
FIND(u16, uint16_t)
FIND(u32, uint32_t)
FIND(u64, uint64_t)

#define BOTH(name) \
  { name##_rows, name##_columns }

static const struct {
  void (*rows)(const void *from, const void *ends, int64_t rows, int64_t n, bool last, int64_t *out);
  void (*columns)(const void *from, const void *ends, int64_t columns, int64_t rows, int64_t apart, bool last,
                  int64_t *out);
} finds[] = {BOTH(f32), BOTH(f64), BOTH(i8),  BOTH(i16), BOTH(i32),
             BOTH(i64), BOTH(u8),  BOTH(u16), BOTH(u32), BOTH(u64)};

void ref_ends(int type, bool largest, bool last, const void *x, int64_t n, int64_t inner, int64_t count, int64_t *out) {
  const int what = largest ? REF_FOLD_MAX : REF_FOLD_MIN;
  const ref_fold fold = ref_fold_of(type, what);
  const int64_t size = ref_type_bytes(type);
  int64_t ends[COLUMNS];
  for (int64_t at = 0, some; at < count; at += some, out += some) {
    some = count - at < COLUMNS ? count - at : COLUMNS;
    const char *from = (const char *)x + at * (inner == 1 ? n : 1) * size;
    if (inner == 1 && n > 1 && n <= REF_TURN_SHORT && some > 1) {
      int64_t block[REF_TURN_BYTES / sizeof(int64_t)];
      if (some > REF_TURN_BYTES / (n * size)) some = REF_TURN_BYTES / (n * size);
      ref_turn((uint32_t)size, from, some, n, block);
      ref_ends(type, largest, last, block, n, some, some, out);
      continue;
    }
    if (inner == 1 && n >= REF_FOLD_LANES) some = 1;
    if (some == 1 && inner == 1) {
      ref_fold_end(type, what, from, n, ends);
    } else {
      ref_take(from, inner == 1 ? n : 1, (uint32_t)size, some, ends);
      fold(ends, from + inner * size, some, inner == 1 ? n : 1, n - 1, inner);
    }
    if (inner == 1) finds[type].rows(from, ends, some, n, last, out);
    else finds[type].columns(from, ends, some, n, inner, last, out);
  }
}
