/* bench/hand_cuda.h: programs written by hand on CUDA's driver API, which Heddle is compared with: a chain of small nodes
 * as one graph, copies from and to pinned memory, copies beside kernels, and a host and a GPU that take turns. All use
 * the first device and end the program with words when something fails: with status 77 where there is no device.
 * One thread. */
#ifndef BENCH_HAND_CUDA_H
#define BENCH_HAND_CUDA_H

#include <stddef.h>

/* Opens driver, compiler and device; the other calls come after it. HEDDLE_CUDA_DRIVER and HEDDLE_CUDA_NVRTC name other
 * libraries than the usual ones, as they do for the plugin. */
void hand_cuda_open(void);

/* What the device can do at its highest clock, in operations a second: of float32, and of float16 with float32 sums on
 * tensor cores. 0 where the architecture is not known here. */
double hand_cuda_peak(int is_tensor);

/* nodes Adds of width floats, each the previous result plus x, as one graph with the copies of both inputs to the device
 * and of the result back; every element of both inputs is value. */
void hand_cuda_chain_prepare(int nodes, int width, float value);
void hand_cuda_chain_run(void);
const float *hand_cuda_chain_result(void);

/* Copies of so many bytes between pinned memory and the device, count of them one after another, then one wait. */
void hand_cuda_copy_prepare(size_t bytes);
void hand_cuda_copy(int is_to_device, int count);

/* The copy to the device of hand_cuda_copy_prepare in one stream, kernels that keep the device busy in another, or both:
 * what is 'c', 'k' or 'b'. turns is how long the kernels are. */
void hand_cuda_overlap(char what, int turns);

/* One turn of the host and one of the device, an Add of width floats each, through pinned memory. */
typedef enum hand_cuda_way {
  HAND_CUDA_SPIN,       /* one stream; the driver's own wait */
  HAND_CUDA_CALLBACK,   /* one stream; a callback that records and wakes */
  HAND_CUDA_TWO_STREAMS /* copies in a stream of their own, ordered by events; the driver's own wait */
} hand_cuda_way;
void hand_cuda_mixed_prepare(int width, float value);
void hand_cuda_mixed(hand_cuda_way way);

#endif
