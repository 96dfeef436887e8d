/* labels: slow
 * timeout: 600
 * The operators on the double of CUDA: cases_ops.h. */
#define CASE_PLUGIN_CUDA
#include "cases_ops.h"
