/* labels: slow
 * timeout: 300
 * Resize on the double of CUDA: cases_resize.h. */
#define CASE_PLUGIN_CUDA
#include "cases_resize.h"
