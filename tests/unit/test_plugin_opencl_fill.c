/* labels: slow together
 * timeout: 300
 * Tensors made of what is known, casts, and integers of every size on the plugin opencl: cases_fill.h. */
#define CASE_PLUGIN_OPENCL
#include "cases_fill.h"
