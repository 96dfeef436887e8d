# The reference kernels are plain loops that the compiler vectorises, which gcc does in full only from -O3 on.
set(plugin_common ON)
file(GLOB kernels "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/ref/*.c")
set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>")
