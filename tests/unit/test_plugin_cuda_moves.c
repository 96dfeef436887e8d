/* labels: slow
 * timeout: 300
 * Operators that move data on the double of CUDA: cases_moves.h. */
#define CASE_PLUGIN_CUDA
#include "cases_moves.h"
