/* What a double reports to the tests of its own process: symbols that no real driver has, to be looked up by dlsym. */
#ifndef HEDDLE_TESTS_FAKES_FAKE_GPU_H
#define HEDDLE_TESTS_FAKES_FAKE_GPU_H

/* "fake_gpu_live": how many things are alive: "allocations", "host", "streams", "events", "modules", "graphs", "execs",
 * "contexts". -1: no such name. */
typedef int (*fake_gpu_live_fn)(const char *kind);
/* "fake_gpu_calls": how often a call was made, by its symbol ("cuMemAlloc_v2"); also "updates" (of graph execs that
 * were taken over) and "kernels" (that ran). */
typedef int (*fake_gpu_calls_fn)(const char *name);
/* "fake_gpu_misuse": how much misuse was seen so far. */
typedef int (*fake_gpu_misuse_fn)(void);
/* "fake_gpu_report": writes the report as FAKE_GPU_REPORT does at exit; 0, or -1 where the file cannot be written. */
typedef int (*fake_gpu_report_fn)(const char *path);

#endif
