/* Which libraries the cuda plugin has. */
#include "cuda.h"
#include "libraries.h"

const gpu_library_vendor cuda_libraries = {{&cuda_cublaslt, &cuda_cudnn, &gpu_tensor_cores}};
