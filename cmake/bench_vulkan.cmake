# bench/bench_vulkan: a program on Vulkan itself, which unlike the plugin is linked to the loader.
find_library(HEDDLE_VULKAN_LIBRARY vulkan DOC "The Vulkan loader, for the benchmark that calls Vulkan itself")
mark_as_advanced(HEDDLE_VULKAN_LIBRARY)
if(HEDDLE_VULKAN_LIBRARY)
  set(made "${PROJECT_BINARY_DIR}/bench/shaders/hand_vulkan.spv.h")
  set(shader "${PROJECT_SOURCE_DIR}/bench/hand_vulkan.comp")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/bench/shaders")
  add_custom_command(OUTPUT "${made}"
    COMMAND "${HEDDLE_GLSLC}" -O --target-env=vulkan1.1 -mfmt=c -o "${made}" "${shader}"
    DEPENDS "${shader}" VERBATIM)
  target_sources(bench_vulkan PRIVATE bench/hand_vulkan.c bench/hand_chain.c "${made}")
  target_include_directories(bench_vulkan PRIVATE "${HEDDLE_VULKAN_INCLUDE}" "${PROJECT_BINARY_DIR}/bench/shaders")
  target_link_libraries(bench_vulkan PRIVATE "${HEDDLE_VULKAN_LIBRARY}")
  target_compile_definitions(bench_vulkan PRIVATE HEDDLE_BENCH_VULKAN)
endif()
