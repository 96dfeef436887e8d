# The variants of shaders that the plugin holds. Included by plugin.cmake, which has found HEDDLE_GLSLC; adds to sources.
#
# Each family has a file shaders/variants_NAME.cmake, in which a variant is a line: vlk_shader with its name, which
# vlk_pick_code finds, its file in shaders/, and definitions.
include("${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_spirv.cmake")
set(shader_folder "${CMAKE_CURRENT_SOURCE_DIR}/plugins/vulkan/shaders")
set(shader_variants "")
include("${CMAKE_CURRENT_SOURCE_DIR}/plugins/vulkan/scalars.cmake")

# vlk_shader(NAME SOURCE [-DKEY=VALUE...])
macro(vlk_shader name source)
  string(JOIN " " shader_options --target-env=vulkan1.1 -O ${ARGN})
  list(APPEND shader_variants "${name} ${source} ${shader_options}")
endmacro()

# The same of a shader that includes scalar.glsl.
macro(vlk_scalar_shader name source)
  vlk_shader(${name} ${source} -Ivulkan_scalars ${ARGN})
endmacro()

# vlk_template(NAME SOURCE): not optimised, so that all functions and their names stay.
macro(vlk_template name source)
  list(APPEND shader_variants "${name} ${source} --target-env=vulkan1.1 -O0 -Ivulkan_scalars")
endmacro()

file(GLOB shader_lists CONFIGURE_DEPENDS "${shader_folder}/variants_*.cmake")
foreach(shader_list IN LISTS shader_lists)
  include("${shader_list}")
endforeach()
set(shader_codes "${PROJECT_BINARY_DIR}/vulkan_shaders.c")
heddle_embed_spirv("${shader_codes}" "${HEDDLE_GLSLC}" "${shader_folder}" ${shader_variants})
file(GLOB shader_sources CONFIGURE_DEPENDS "${shader_folder}/*.c")
list(APPEND sources ${shader_sources} "${shader_codes}")
