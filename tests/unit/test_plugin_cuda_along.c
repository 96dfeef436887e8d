/* labels: slow
 * timeout: 300
 * ArgMax, ArgMin, TopK and MaxPool with Indices on the double of CUDA: cases_along.h. */
#define CASE_PLUGIN_CUDA
#include "cases_along.h"
