/* The lanes of integers, each in its own type; sums, differences and products wrap. */
#define S_REAL double
#define S_LIBM(name) name
#include "lanes_loops.h"
#include "plugins/common/scalar_c.h"

#define short_shift_right signed_shift_right
#define short_pow signed_pow
#define short_unsigned_shift_right unsigned_shift_right
#define short_unsigned_pow unsigned_pow
#define short_unsigned_mod short_unsigned_rem

#undef S_NEGATIVE
#define S_WRAP(x) ((__typeof__(a))(x))
#define S_INT(x) ((__typeof__(a))(x))
#define S_ISNAN(x) false
#define S_POW(x, y) S_WHOLE(pow)(x, y)
#define S_REM(x, y) S_WHOLE(rem)(x, y)
#define S_MOD(x, y) S_WHOLE(mod)(x, y)
#define LANES_REAL(...)
#define LANES_TEST_REAL(...)
#define LANES_LOGIC(...)

/* ---------------------------------------------------------------- with a sign */

#define S_NEGATIVE(x) ((x) < 0)
#define LANES_MOST(T) ((T)(UINT64_MAX >> (65 - 8 * sizeof(T))))
#define LANES_LEAST(T) ((T)(-LANES_MOST(T) - 1))

#define S_WHOLE(name) short_##name
#define LANES_INT(name, n, cost, ...) \
  LANES_##n(name##_i8, int8_t, int8_t, int8_t, cost, __VA_ARGS__) \
      LANES_##n(name##_i16, int16_t, int16_t, int16_t, cost, __VA_ARGS__) \
          LANES_##n(name##_i32, int32_t, int32_t, int32_t, cost, __VA_ARGS__)
#define LANES_TEST(name, n, cost, ...) \
  LANES_##n(name##_i8, int8_t, int8_t, uint8_t, cost, __VA_ARGS__) \
      LANES_##n(name##_i16, int16_t, int16_t, uint8_t, cost, __VA_ARGS__) \
          LANES_##n(name##_i32, int32_t, int32_t, uint8_t, cost, __VA_ARGS__)
#define LANES_NUMBER LANES_INT
#define SCALAR(name, kind, n, cost, ...) LANES_##kind(name, n, cost, __VA_ARGS__)
#include "operators/all.def"

#undef S_WHOLE
#undef LANES_INT
#undef LANES_TEST
#define S_WHOLE(name) signed_##name
#define LANES_INT(name, n, cost, ...) LANES_##n(name##_i64, int64_t, int64_t, int64_t, cost, __VA_ARGS__)
#define LANES_TEST(name, n, cost, ...) LANES_##n(name##_i64, int64_t, int64_t, uint8_t, cost, __VA_ARGS__)
#define SCALAR(name, kind, n, cost, ...) LANES_##kind(name, n, cost, __VA_ARGS__)
#include "operators/all.def"

/* ---------------------------------------------------------------- without */

#undef S_NEGATIVE
#undef LANES_MOST
#undef LANES_LEAST
#define S_NEGATIVE(x) false
#define LANES_MOST(T) ((T)UINT64_MAX)
#define LANES_LEAST(T) ((T)0)

#undef S_WHOLE
#undef LANES_INT
#undef LANES_TEST
#define S_WHOLE(name) short_unsigned_##name
#define LANES_INT(name, n, cost, ...) \
  LANES_##n(name##_u8, uint8_t, uint8_t, uint8_t, cost, __VA_ARGS__) \
      LANES_##n(name##_u16, uint16_t, uint16_t, uint16_t, cost, __VA_ARGS__) \
          LANES_##n(name##_u32, uint32_t, uint32_t, uint32_t, cost, __VA_ARGS__)
#define LANES_TEST(name, n, cost, ...) \
  LANES_##n(name##_u8, uint8_t, uint8_t, uint8_t, cost, __VA_ARGS__) \
      LANES_##n(name##_u16, uint16_t, uint16_t, uint8_t, cost, __VA_ARGS__) \
          LANES_##n(name##_u32, uint32_t, uint32_t, uint8_t, cost, __VA_ARGS__)
#define SCALAR(name, kind, n, cost, ...) LANES_##kind(name, n, cost, __VA_ARGS__)
#include "operators/all.def"

#undef S_WHOLE
#undef LANES_INT
#undef LANES_TEST
#define S_WHOLE(name) unsigned_##name
#define LANES_INT(name, n, cost, ...) LANES_##n(name##_u64, uint64_t, uint64_t, uint64_t, cost, __VA_ARGS__)
#define LANES_TEST(name, n, cost, ...) LANES_##n(name##_u64, uint64_t, uint64_t, uint8_t, cost, __VA_ARGS__)
#define SCALAR(name, kind, n, cost, ...) LANES_##kind(name, n, cost, __VA_ARGS__)
#include "operators/all.def"

/* ---------------------------------------------------------------- by name */

#define ROW_INT(name) \
  { \
    LANES_BOTH(name##_i8), LANES_BOTH(name##_i16), LANES_BOTH(name##_i32), LANES_BOTH(name##_i64), \
        LANES_BOTH(name##_u8), LANES_BOTH(name##_u16), LANES_BOTH(name##_u32), LANES_BOTH(name##_u64) \
  }
#define ROW_NUMBER ROW_INT
#define ROW_TEST ROW_INT
#define ROW_REAL(name) \
  { LANES_NONE }
#define ROW_TEST_REAL ROW_REAL
#define ROW_LOGIC ROW_REAL

const ref_lanes ref_lanes_whole[][8][2] = {
#define SCALAR(name, kind, ...) ROW_##kind(name),
#include "operators/all.def"
    {LANES_NONE}, /* there may be no other */
};
