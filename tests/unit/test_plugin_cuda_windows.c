/* labels: slow
 * timeout: 400
 * Windows and matrix products on the double of CUDA: cases_windows.h. */
#define CASE_PLUGIN_CUDA
#include "cases_windows.h"
