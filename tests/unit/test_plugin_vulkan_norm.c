/* labels: together
 * timeout: 300
 * Normalisations on the plugin vulkan: cases_norm.h. */
#define CASE_PLUGIN_VULKAN
#include "cases_norm.h"
