/* labels: slow together
 * timeout: 300
 * Normalisations on the plugin opencl: cases_norm.h. */
#define CASE_PLUGIN_OPENCL
#include "cases_norm.h"
