/* The lanes of float64. */
#define S_REAL double
#define S_LIBM(name) name
#include "lanes_loops.h"
#include "mathd.h"
#include "plugins/common/scalar_c.h"

#define S_NUM(x) x
#define S_EXP(x) exp(x)
#define S_TANH(x) ref_tanh_double(x)
#define S_SIGMOID(x) ref_sigmoid_double(x)

#define LANES_TABLE ref_lanes_f64
#include "lanes_real.h"
