# OpenCL through the ICD loader, libOpenCL, whatever platforms are behind it.
set(plugin_kernels ON)
pkg_check_modules(OPENCL QUIET IMPORTED_TARGET OpenCL)
if(OPENCL_FOUND)
  set(plugin_libraries PkgConfig::OPENCL)
else()
  find_path(HEDDLE_OPENCL_INCLUDE CL/cl.h DOC "Folder that holds CL/cl.h")
  find_library(HEDDLE_OPENCL_LIBRARY OpenCL DOC "The OpenCL ICD loader")
  mark_as_advanced(HEDDLE_OPENCL_INCLUDE HEDDLE_OPENCL_LIBRARY)
  if(HEDDLE_OPENCL_INCLUDE AND HEDDLE_OPENCL_LIBRARY)
    set(plugin_libraries "${HEDDLE_OPENCL_LIBRARY}")
    set(plugin_includes "${HEDDLE_OPENCL_INCLUDE}")
  else()
    set(plugin_missing "there is no OpenCL loader with headers (ocl-icd-opencl-dev, opencl-headers)")
  endif()
endif()
list(APPEND plugin_libraries ${CMAKE_DL_LIBS}) # CLBlast is opened at run time
set(plugin_definitions CL_TARGET_OPENCL_VERSION=300 CL_USE_DEPRECATED_OPENCL_1_2_APIS)

if(NOT plugin_missing)
  set(HEDDLE_OPENCL_LIBRARIES "${plugin_libraries}") # for the benchmark that calls OpenCL itself
  set(HEDDLE_OPENCL_INCLUDES "${plugin_includes}")
endif()
