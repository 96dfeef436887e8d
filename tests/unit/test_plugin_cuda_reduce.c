/* labels: slow
 * timeout: 300
 * Reductions and Softmax on the double of CUDA: cases_reduce.h. */
#define CASE_PLUGIN_CUDA
#include "cases_reduce.h"
