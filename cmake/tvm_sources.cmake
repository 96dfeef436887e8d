# Files named as the sources of TVM's runtime (v0.5 to v0.18), for programs that compile these into one file of their own:
# tvm/src/runtime/NAME.cc below the include folder. With -I PREFIX/include/tvm, "src/runtime/NAME.cc" is found there; with
# -I PREFIX/include/tvm/src, "../src/runtime/NAME.cc" is. Each declares the runtime and defines nothing: the program links
# with libheddle_tvm.
set(heddle_tvm_sources
  builtin_fp16.cc c_runtime_api.cc const_loader_module.cc container.cc contrib/sort/sort.cc
  cpu_device_api.cc debug.cc device_api.cc dso_library.cc dso_module.cc file_util.cc file_utils.cc
  graph/debug/graph_runtime_debug.cc graph/graph_runtime.cc graph/graph_runtime_factory.cc
  graph_executor/debug/graph_executor_debug.cc graph_executor/graph_executor.cc
  graph_executor/graph_executor_factory.cc graph_runtime/graph_runtime.cc library_module.cc logging.cc
  metadata.cc metadata_module.cc module.cc module_util.cc name_transforms.cc ndarray.cc object.cc
  opencl/opencl_device_api.cc opencl/opencl_module.cc packed_func.cc
  profiling.cc registry.cc runtime_base.cc source_utils.cc static_library.cc system_lib_module.cc system_library.cc thread_pool.cc
  thread_storage_scope.cc threading_backend.cc vulkan/vulkan.cc vulkan/vulkan_device_api.cc vulkan/vulkan_module.cc
  workspace_pool.cc)
set(heddle_tvm_sources_dir "${PROJECT_BINARY_DIR}/tvm-sources")
foreach(name IN LISTS heddle_tvm_sources)
  set(file "${heddle_tvm_sources_dir}/src/runtime/${name}")
  set(text "// Stands for TVM's source of this name: the runtime is in libheddle_tvm.\n#include <tvm/runtime/tvm_runtime_pack.h>\n")
  if(EXISTS "${file}")
    file(READ "${file}" there)
  else()
    set(there "")
  endif()
  if(NOT there STREQUAL text)
    file(WRITE "${file}" "${text}")
  endif()
endforeach()
install(DIRECTORY "${heddle_tvm_sources_dir}/src" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tvm")
