/* labels: slow together
 * timeout: 300
 * Resize on the plugin opencl: cases_resize.h. */
#define CASE_PLUGIN_OPENCL
#include "cases_resize.h"
