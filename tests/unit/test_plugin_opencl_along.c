/* labels: slow together
 * timeout: 300
 * ArgMax, ArgMin, TopK and MaxPool with Indices on the plugin opencl: cases_along.h. */
#define CASE_PLUGIN_OPENCL
#include "cases_along.h"
