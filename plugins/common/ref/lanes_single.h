/* The words of scalar expressions in float32, of mathf.h where that has them: for lanes_float.c and lanes_fma.c. */
#define S_REAL float
#define S_LIBM(name) name##f
#include "lanes_loops.h"
#include "mathf.h"
#include "plugins/common/scalar_c.h"

#define S_NUM(x) x##f
#undef S_ERF
#undef S_EXPM1
#undef S_LOG
#undef S_LOG1P
#undef S_ATAN
#undef S_ASIN
#undef S_ACOS
#define S_LOG(x) ref_log(x)
#define S_LOG1P(x) ref_log1p(x)
#define S_ERF(x) ref_erf(x)
#define S_EXP(x) ref_exp(x)
#define S_EXPM1(x) ref_expm1(x)
#define S_TANH(x) ref_tanh(x)
#define S_SIGMOID(x) ref_sigmoid(x)
#define S_ATAN(x) ref_atan(x)
#define S_ASIN(x) ref_asin(x)
#define S_ACOS(x) ref_acos(x)
