/* labels: together
 * timeout: 300
 * Operators that move data on the plugin vulkan: cases_moves.h. */
#define CASE_PLUGIN_VULKAN
#include "cases_moves.h"
