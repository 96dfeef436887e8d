/* labels: together
 * timeout: 300
 * ArgMax, ArgMin, TopK and MaxPool with Indices on the plugin vulkan: cases_along.h. */
#define CASE_PLUGIN_VULKAN
#include "cases_along.h"
