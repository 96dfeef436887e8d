/* labels: serial
 * timeout: 120
 * Captures on the double of HIP 5.2: the cases of cuda's. */
#define GPU_PLUGIN "rocm"
#define GPU_HIP "rocm5"
#include "test_plugin_cuda_capture.c"
