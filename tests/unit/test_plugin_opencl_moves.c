/* labels: slow together
 * timeout: 300
 * Operators that move data on the plugin opencl: cases_moves.h. */
#define CASE_PLUGIN_OPENCL
#include "cases_moves.h"
