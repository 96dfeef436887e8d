/* The lanes of S_REAL, and their table. For lanes_float.c and lanes_double.c, which define the words before. */
#define S_ISNAN(x) ((x) != (x))
#define S_POW(x, y) S_LIBM(pow)(x, y)
#define S_REM(x, y) S_LIBM(fmod)(x, y)
#define S_MOD(x, y) real_mod(x, y)

static inline S_REAL real_sigmoid(S_REAL x) {
  const S_REAL e = S_LIBM(exp)(-S_LIBM(fabs)(x)), r = 1 / (1 + e);
  return x < 0 ? e * r : r;
}

#define LANES_LEAST(T) (-(T)INFINITY)
#define LANES_MOST(T) ((T)INFINITY)
#define LANES_REAL(name, n, cost, ...) LANES_##n(name##_real, S_REAL, S_REAL, S_REAL, cost, __VA_ARGS__)
#define LANES_NUMBER LANES_REAL
#define LANES_TEST(name, n, cost, ...) LANES_##n(name##_real, S_REAL, S_REAL, uint8_t, cost, __VA_ARGS__)
#define LANES_TEST_REAL LANES_TEST
#define LANES_INT(...)
#define LANES_LOGIC(...)
#define SCALAR(name, kind, n, cost, ...) LANES_##kind(name, n, cost, __VA_ARGS__)
#include "operators/all.def"

#define ROW_REAL(name) LANES_BOTH(name##_real)
#define ROW_NUMBER ROW_REAL
#define ROW_TEST ROW_REAL
#define ROW_TEST_REAL ROW_REAL
#define ROW_INT(name) LANES_NONE
#define ROW_LOGIC ROW_INT

const ref_lanes LANES_TABLE[][2] = {
#define SCALAR(name, kind, ...) ROW_##kind(name),
#include "operators/all.def"
    LANES_NONE, /* there may be no other */
};
