/* The lanes of float32 with one operand that take many instructions, once more, for AVX2 with products that are added
 * unrounded. All elements take the same code, so that an element's bits do not depend on where it lies. */
#include "lanes_single.h"

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#define S_ISNAN(x) ((x) != (x))
#define S_POW(x, y) powf(x, y)
#define S_REM(x, y) fmodf(x, y)
#define S_MOD(x, y) real_mod(x, y)

#define FMA __attribute__((target("avx2,fma"))) static
#define LOOP_1(name, cost, ...) LANES_LOOP_1(FMA, name##_fma, 16, float, float, float, cost, __VA_ARGS__)
#define LOOP_2(...)
#define LOOP_3(...)
#define LOOP_MANY(...)
#define LANES_REAL(name, n, cost, ...) LOOP_##n(name, cost, __VA_ARGS__)
#define LANES_NUMBER(...)
#define LANES_TEST(...)
#define LANES_TEST_REAL(...)
#define LANES_INT(...)
#define LANES_LOGIC(...)
#define SCALAR(name, kind, n, cost, ...) LANES_##kind(name, n, cost, __VA_ARGS__)
#include "operators/all.def"

#define ROW_1(name, cost) (cost) >= LANES_LONG ? name##_fma : NULL
#define ROW_2(name, cost) NULL
#define ROW_3 ROW_2
#define ROW_MANY ROW_2
#define ROW_REAL(name, n, cost) ROW_##n(name, cost)
#else
#define ROW_REAL(...) NULL
#endif
#define ROW_NUMBER(...) NULL
#define ROW_TEST(...) NULL
#define ROW_TEST_REAL(...) NULL
#define ROW_INT(...) NULL
#define ROW_LOGIC(...) NULL

const ref_lanes ref_lanes_fma[] = {
#define SCALAR(name, kind, n, cost, ...) ROW_##kind(name, n, cost),
#include "operators/all.def"
    NULL, /* there may be none */
};
