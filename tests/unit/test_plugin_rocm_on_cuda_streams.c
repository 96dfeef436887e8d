/* labels: serial
 * timeout: 120
 * Streams, events and fences of the rocm plugin over HIP on CUDA, which here goes to the double of CUDA's driver: the cases of cuda's. */
#define GPU_PLUGIN "rocm"
#define GPU_ON_CUDA
#include "test_plugin_cuda_streams.c"
