# Vulkan through the loader, libvulkan.so.1, which is opened at run time: only its headers are needed to build, and
# glslc, which compiles the shaders.
set(plugin_kernels ON)
find_path(HEDDLE_VULKAN_INCLUDE vulkan/vulkan_core.h DOC "Folder that holds vulkan/vulkan_core.h")
find_program(HEDDLE_GLSLC glslc DOC "Compiler from GLSL to SPIR-V")
mark_as_advanced(HEDDLE_VULKAN_INCLUDE HEDDLE_GLSLC)
if(NOT HEDDLE_VULKAN_INCLUDE)
  set(plugin_missing "there are no headers of Vulkan (libvulkan-dev)")
elseif(NOT HEDDLE_GLSLC)
  set(plugin_missing "there is no glslc (package glslc), which compiles its shaders")
endif()
set(plugin_includes "${HEDDLE_VULKAN_INCLUDE}" "${PROJECT_BINARY_DIR}") # of the build: vulkan_scalars
set(plugin_libraries ${CMAKE_DL_LIBS})
if(NOT plugin_missing)
  include("${CMAKE_CURRENT_SOURCE_DIR}/plugins/vulkan/shaders.cmake")
endif()
