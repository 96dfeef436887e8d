/* HIP's double: modules, their kernels and launches. */
#include "hip.h"

#include <string.h>

#pragma GCC visibility push(default)

hipError_t hipModuleLoadDataEx(hipModule_t *out, const void *image, unsigned n, hipJitOption *options, void **values) {
  eng_module *module = NULL;
  char log[512] = "", *room = log;
  size_t bytes = sizeof log;
  HIP_CALL("hipModuleLoadDataEx");
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == hipJitOptionErrorLogBuffer) room = values[i];
    if (options[i] == hipJitOptionErrorLogBufferSizeBytes) bytes = (size_t)(uintptr_t)values[i];
  }
  const int code = eng_module_load(&module, image, room, bytes);
  if (code == ENG_OK) *out = (hipModule_t)(void *)module;
  return (hipError_t)code;
}

hipError_t hipModuleLoadData(hipModule_t *out, const void *image) {
  eng_module *module = NULL;
  HIP_CALL("hipModuleLoadData");
  const int code = eng_module_load(&module, image, NULL, 0);
  if (code == ENG_OK) *out = (hipModule_t)(void *)module;
  return (hipError_t)code;
}

hipError_t hipModuleUnload(hipModule_t module) {
  HIP_CALL("hipModuleUnload");
  return (hipError_t)eng_module_unload((eng_module *)(void *)module);
}

hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t module, const char *name) {
  eng_function *function = NULL;
  HIP_CALL("hipModuleGetFunction");
  const int code = eng_module_function(&function, (eng_module *)(void *)module, name);
  if (code == ENG_OK) *out = (hipFunction_t)(void *)function;
  return (hipError_t)code;
}

hipError_t hipFuncGetAttribute(int *out, hipFunction_attribute attribute, hipFunction_t function) {
  eng_function_info info;
  HIP_CALL("hipFuncGetAttribute");
  const int code = eng_function_about((eng_function *)(void *)function, &info);
  if (code != ENG_OK) return (hipError_t)code;
  switch (attribute) {
  case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = info.max_threads; break;
  case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = info.shared_bytes; break;
  case HIP_FUNC_ATTRIBUTE_NUM_REGS: *out = info.registers; break;
  default: return hipErrorInvalidValue;
  }
  return hipSuccess;
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                 hipStream_t stream, void **args, void **extra) {
  HIP_CALL("hipModuleLaunchKernel");
  const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
  void *restated[16] = {NULL}; /* the engine's list ends with 0, HIP's with 3 */
  if (grid_x * (uint64_t)block_x > UINT32_MAX) return hipErrorInvalidConfiguration; /* items are counted, not groups */
  if (extra != NULL) {
    size_t i = 0;
    for (; extra[i] != HIP_LAUNCH_PARAM_END && i < 14; i += 2) {
      restated[i] = extra[i];
      restated[i + 1] = extra[i + 1];
    }
  }
  return (hipError_t)eng_launch((eng_function *)(void *)function, grid, block, shared_bytes, stream, args,
                                extra != NULL ? restated : NULL);
}
