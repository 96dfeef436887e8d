/* The lanes of float32: what the elementwise operators do with n elements. */
#define S_REAL float
#define S_LIBM(name) name##f
#include "lanes_loops.h"
#include "mathf.h"
#include "plugins/common/scalar_c.h"

#define S_NUM(x) x##f
#undef S_ERF
#define S_ERF(x) ref_erf(x)
#define S_EXP(x) ref_exp(x)
#define S_TANH(x) ref_tanh(x)
#define S_SIGMOID(x) ref_sigmoid(x)

#define LANES_TABLE ref_lanes_f32
#include "lanes_real.h"
