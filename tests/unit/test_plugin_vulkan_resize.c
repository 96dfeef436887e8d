/* labels: together
 * timeout: 300
 * Resize on the plugin vulkan: cases_resize.h. */
#define CASE_PLUGIN_VULKAN
#include "cases_resize.h"
