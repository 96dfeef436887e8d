/* The lanes of float32: what the elementwise operators do with n elements. In a file of its own, because these are the
 * ones that are worth vectorising. */
#define S_REAL float
#define S_LIBM(name) name##f
#include "lanes_loops.h"
#include "mathf.h"
#include "plugins/common/scalar_c.h"

#define S_NUM(x) x##f
#define S_ISNAN(x) ((x) != (x))
#undef S_ERF
#define S_ERF(x) ref_erf(x)
#define S_EXP(x) ref_exp(x)
#define S_TANH(x) ref_tanh(x)
#define S_SIGMOID(x) ref_sigmoid(x)
#define S_POW(x, y) powf(x, y)
#define S_REM(x, y) fmodf(x, y)
#define S_MOD(x, y) real_mod(x, y)

#define LANES_LEAST (-INFINITY)
#define LANES_MOST INFINITY
#define LANES_REAL(name, n, cost, ...) LANES_##n(ref_##name##_f32, float, float, float, cost, __VA_ARGS__)
#define LANES_NUMBER LANES_REAL
#define LANES_TEST(name, n, cost, ...) LANES_##n(ref_##name##_f32, float, float, uint8_t, cost, __VA_ARGS__)
#define LANES_TEST_REAL LANES_TEST
#define LANES_INT(...)
#define LANES_LOGIC(...)
#define SCALAR(name, kind, n, cost, ...) LANES_##kind(name, n, cost, __VA_ARGS__)
#include "operators/all.def"
