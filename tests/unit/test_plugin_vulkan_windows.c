/* labels: together
 * timeout: 400
 * Windows and matrix products on the plugin vulkan: cases_windows.h. */
#define CASE_PLUGIN_VULKAN
#include "cases_windows.h"
