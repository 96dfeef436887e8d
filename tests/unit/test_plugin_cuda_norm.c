/* labels: slow
 * timeout: 300
 * Normalisations on the double of CUDA: cases_norm.h. */
#define CASE_PLUGIN_CUDA
#include "cases_norm.h"
