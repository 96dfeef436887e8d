/* bench/hand_opencl.h: cpu and an OpenCL device alternating, written by hand on OpenCL itself. */
#ifndef BENCH_HAND_OPENCL_H
#define BENCH_HAND_OPENCL_H

#include <stdint.h>

/* Makes queue, kernel, buffers and the cpu plugin's Add. Ends the program with status 77 where there is no OpenCL. */
void hand_cl_prepare(const char *plugin_folder, int64_t elements);

/* One alternation: an Add on the cpu, its result to the device, an Add there, its result back. It waits by a blocking
 * read, or sleeps until a callback of the read's event has recorded and woken. */
void hand_cl_pair(int blocking);

#endif
