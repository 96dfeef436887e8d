/* labels: serial
 * timeout: 120
 * Streams, events and fences on the double of HIP 5.2, which has no hipLaunchHostFunc: the cases of cuda's. */
#define GPU_PLUGIN "rocm"
#define GPU_HIP "rocm5"
#define GPU_HIP_HOST_FUNC "hipStreamAddCallback"
#include "test_plugin_cuda_streams.c"
