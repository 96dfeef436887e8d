/* HIP's names of the calls that both drivers have, in the order of GPU_CALLS. */
#include "rocm.h"

const char *const rocm_symbols[] = {
#define GPU_CALL_SYMBOL(member, need, cuda, hip, args) hip,
    GPU_CALLS(GPU_CALL_SYMBOL)
#undef GPU_CALL_SYMBOL
};

_Static_assert(sizeof rocm_symbols / sizeof rocm_symbols[0] == GPU_CALL_COUNT, "a name for each call");
