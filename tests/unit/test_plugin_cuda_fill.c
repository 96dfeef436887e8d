/* labels: slow
 * timeout: 300
 * Tensors made of what is known, casts, and integers of every size on the double of CUDA: cases_fill.h. */
#define CASE_PLUGIN_CUDA
#include "cases_fill.h"
