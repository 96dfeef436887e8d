/* labels: serial
 * timeout: 120
 * Captures of the rocm plugin on the double of HIP 6: the cases of cuda's. */
#define GPU_PLUGIN "rocm"
#include "test_plugin_cuda_capture.c"
