/* The double of CUDA's driver: modules, functions, launches. */
#include "cuda_front.h"

static int load(CUmodule *out, const void *image, char *log, size_t log_bytes) {
  eng_module *module = NULL;
  const int code = eng_module_load(&module, image, log, log_bytes);
  if (code == ENG_OK) *out = (CUmodule)(void *)module;
  return code;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
  ENG_CALL("cuModuleLoadData");
  return load(out, image, NULL, 0);
}

/* Of the options only where errors are written to is used. */
CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, CUjit_option *options, void **values) {
  ENG_CALL("cuModuleLoadDataEx");
  char *log = NULL;
  size_t bytes = 0;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = values[i];
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) bytes = (size_t)(uintptr_t)values[i];
  }
  return load(out, image, log, bytes);
}

CUresult cuModuleUnload(CUmodule module) {
  ENG_CALL("cuModuleUnload");
  return eng_module_unload(module_of(module));
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
  ENG_CALL("cuModuleGetFunction");
  eng_function *function = NULL;
  const int code = eng_module_function(&function, module_of(module), name);
  if (code == ENG_OK) *out = (CUfunction)(void *)function;
  return code;
}

CUresult cuFuncLoad(CUfunction function) {
  ENG_CALL("cuFuncLoad");
  return eng_function_load(function_of(function));
}

CUresult cuFuncGetAttribute(int *out, CUfunction_attribute attribute, CUfunction function) {
  ENG_CALL("cuFuncGetAttribute");
  eng_function_info info = {0};
  const int code = eng_function_about(function_of(function), &info);
  if (code != ENG_OK) return code;
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = info.max_threads; break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = info.shared_bytes; break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = info.registers; break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *out = info.max_dynamic_shared; break;
  default: *out = 0;
  }
  return attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  ENG_CALL("cuFuncSetAttribute");
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return eng_function_set_shared(function_of(function), value);
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **args,
                        void **extra) {
  ENG_CALL("cuLaunchKernel");
  const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
  return eng_launch(function_of(function), grid, block, shared, stream, args, extra);
}
