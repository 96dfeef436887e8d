/* labels: together
 * timeout: 600
 * The operators on the plugin vulkan: cases_ops.h. */
#define CASE_PLUGIN_VULKAN
#include "cases_ops.h"
