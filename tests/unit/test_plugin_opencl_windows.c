/* labels: slow together
 * timeout: 400
 * Windows and matrix products on the plugin opencl: cases_windows.h. */
#define CASE_PLUGIN_OPENCL
#include "cases_windows.h"
