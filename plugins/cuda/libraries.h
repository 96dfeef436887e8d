/* The libraries of NVIDIA's that the cuda plugin drives; plugins/common/gpu/library.h says how. */
#ifndef HEDDLE_PLUGINS_CUDA_LIBRARIES_H
#define HEDDLE_PLUGINS_CUDA_LIBRARIES_H

#include "plugins/common/gpu/library.h"

extern const gpu_library cuda_cublaslt, cuda_cudnn;

/* Compute capability from which tensor cores take bfloat16 and TF32, which have float32's range; float16 alone, which older
 * ones take, has not. */
enum { CUDA_WIDE_TENSOR_CORES = 8 };

#endif
