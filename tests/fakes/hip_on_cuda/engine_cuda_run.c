/* The engine's interface (../engine.h) over CUDA's driver: captures and graphs, modules and launches. */
#include "cuda_calls.h"

#include "../engine.h"

/* Of CUjit_option and CUfunction_attribute. */
enum { JIT_LOG = 5, JIT_LOG_BYTES = 6, MAX_THREADS = 0, SHARED_BYTES = 1, REGISTERS = 4 };

/* ---------------------------------------------------------------- graphs */

int eng_capture_begin(eng_stream_handle stream, int mode) {
  return CUDA_MAY(capture_begin, (stream, mode));
}

int eng_capture_exchange(int *mode) {
  return CUDA_MAY(thread_capture_mode, (mode));
}

int eng_capture_end(eng_stream_handle stream, eng_graph **out) {
  void *graph = NULL;
  const int code = CUDA_MAY(capture_end, (stream, &graph));
  *out = graph;
  return code;
}

int eng_graph_nodes(eng_graph *graph, eng_node **nodes, size_t *count) {
  return CUDA_MAY(graph_nodes, (graph, (void **)nodes, count));
}

int eng_graph_destroy(eng_graph *graph) {
  return CUDA_MAY(graph_destroy, (graph));
}

int eng_instantiate(eng_exec **out, eng_graph *graph) {
  void *exec = NULL;
  const int code = CUDA(instantiate(&exec, graph, 0));
  *out = exec;
  return code;
}

int eng_exec_update(eng_exec *exec, eng_graph *graph, eng_node **error_node, int *result) {
  void *node = NULL;
  const int code = CUDA_MAY(graph_update, (exec, graph, &node, result));
  *error_node = node;
  return code;
}

int eng_exec_upload(eng_exec *exec, eng_stream_handle stream) {
  return CUDA_MAY(graph_upload, (exec, stream));
}

int eng_exec_launch(eng_exec *exec, eng_stream_handle stream) {
  return CUDA_MAY(graph_launch, (exec, stream));
}

int eng_exec_destroy(eng_exec *exec) {
  return CUDA_MAY(exec_destroy, (exec));
}

/* ---------------------------------------------------------------- modules */

int eng_module_load(eng_module **out, const void *image, char *log, size_t log_bytes) {
  void *module = NULL;
  int code;
  if (log != NULL && cuda_get() != NULL && cuda_get()->d.module_load_log != NULL) {
    int options[2] = {JIT_LOG, JIT_LOG_BYTES};
    void *values[2] = {log, (void *)(uintptr_t)log_bytes};
    code = CUDA(d.module_load_log(&module, image, 2, options, values));
  } else {
    code = CUDA(d.module_load(&module, image));
  }
  *out = module;
  return code;
}

int eng_module_unload(eng_module *module) {
  return CUDA(d.module_unload(module));
}

int eng_module_function(eng_function **out, eng_module *module, const char *name) {
  void *function = NULL;
  const int code = CUDA(d.module_function(&function, module, name));
  *out = function;
  return code;
}

int eng_function_about(eng_function *function, eng_function_info *out) {
  *out = (eng_function_info){0};
  int code = CUDA_MAY(function_attribute, (&out->max_threads, MAX_THREADS, function));
  if (code == ENG_OK) code = CUDA_MAY(function_attribute, (&out->shared_bytes, SHARED_BYTES, function));
  if (code == ENG_OK) code = CUDA_MAY(function_attribute, (&out->registers, REGISTERS, function));
  return code;
}

int eng_launch(eng_function *function, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes,
               eng_stream_handle stream, void **args, void **extra) {
  return CUDA(
      d.launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes, stream, args, extra));
}
