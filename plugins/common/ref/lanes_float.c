/* The lanes of float32: what the elementwise operators do with n elements. */
#include "lanes_single.h"

#define LANES_TABLE ref_lanes_f32
#include "lanes_real.h"
