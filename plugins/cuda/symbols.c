/* CUDA's names of the driver's calls. */
#include "cuda.h"

const char *const cuda_symbols[GPU_CALL_COUNT] = {
#define CUDA_SYMBOL(member, need, cuda, hip, args) cuda,
    GPU_CALLS(CUDA_SYMBOL)
#undef CUDA_SYMBOL
};
