/* What the files of the double of CUDA's driver share: the real header, whose functions are what the library exports,
 * and the engine. A call under an old symbol is declared by the header only for __CUDA_API_VERSION_INTERNAL. */
#ifndef HEDDLE_TESTS_FAKES_CUDA_FRONT_H
#define HEDDLE_TESTS_FAKES_CUDA_FRONT_H

#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "engine.h"

/* The engine's view of a handle. */
static inline eng_event *event_of(CUevent event) {
  return (eng_event *)(void *)event;
}
static inline eng_context *context_of(CUcontext ctx) {
  return (eng_context *)(void *)ctx;
}
static inline eng_module *module_of(CUmodule module) {
  return (eng_module *)(void *)module;
}
static inline eng_function *function_of(CUfunction function) {
  return (eng_function *)(void *)function;
}
static inline eng_graph *graph_of(CUgraph graph) {
  return (eng_graph *)(void *)graph;
}
static inline eng_exec *exec_of(CUgraphExec exec) {
  return (eng_exec *)(void *)exec;
}
static inline void *host_of(CUdeviceptr address) {
  return (void *)(uintptr_t)address;
}

#endif
