/* labels: slow together
 * timeout: 300
 * Reductions and Softmax on the plugin opencl: cases_reduce.h. */
#define CASE_PLUGIN_OPENCL
#include "cases_reduce.h"
