# Vulkan through its loader, libvulkan.so.1, which is opened at run time.
set(plugin_kernels ON)
include("${CMAKE_CURRENT_SOURCE_DIR}/plugins/vulkan/shaders.cmake")
set(plugin_missing "it is being written")
