/* labels: slow together
 * timeout: 600
 * The operators on the plugin opencl: cases_ops.h. */
#define CASE_PLUGIN_OPENCL
#include "cases_ops.h"
