/* labels: together
 * timeout: 300
 * Reductions and Softmax on the plugin vulkan: cases_reduce.h. */
#define CASE_PLUGIN_VULKAN
#include "cases_reduce.h"
