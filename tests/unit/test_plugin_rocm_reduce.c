/* labels: slow
 * timeout: 600
 * Operators of the rocm plugin on the double of HIP 6: cases_reduce.h. */
#define CASE_PLUGIN_ROCM
#include "cases_reduce.h"
