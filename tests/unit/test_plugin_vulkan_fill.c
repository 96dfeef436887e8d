/* labels: together
 * timeout: 300
 * Tensors made of what is known, casts, and integers of every size on the plugin vulkan: cases_fill.h. */
#define CASE_PLUGIN_VULKAN
#include "cases_fill.h"
