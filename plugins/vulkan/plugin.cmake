# Vulkan through the loader, libvulkan.so.1, which is opened at run time: only its headers are needed to build, and
# glslc, which compiles the shaders.
set(plugin_kernels ON)
find_path(HEDDLE_VULKAN_INCLUDE vulkan/vulkan_core.h DOC "Folder that holds vulkan/vulkan_core.h")
mark_as_advanced(HEDDLE_VULKAN_INCLUDE)
include("${CMAKE_CURRENT_SOURCE_DIR}/plugins/vulkan/shaders.cmake")
if(NOT HEDDLE_VULKAN_INCLUDE)
  set(plugin_missing "there are no headers of Vulkan (libvulkan-dev)")
endif()
set(plugin_includes "${HEDDLE_VULKAN_INCLUDE}")
set(plugin_libraries ${CMAKE_DL_LIBS})
