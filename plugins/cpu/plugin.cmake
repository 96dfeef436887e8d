# The reference kernels are plain loops that the compiler vectorises, which gcc does in full only from -O3 on. What has
# nothing to vectorise, or is rarely hot, is compiled for size. C needs no unwind tables; debug builds have them.
set(plugin_common ON)
set(plugin_libraries "-Wl,-z,noseparate-code" ${heddle_small_link}) # some pages less, which the file does not fill
file(GLOB kernels "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/ref/*.c" "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/*.c")
set(hot_kernels ${kernels})
list(FILTER hot_kernels INCLUDE REGEX "/ref/contract\\.c$")
set(warm_kernels ${kernels})
list(FILTER warm_kernels INCLUDE REGEX "/ref/(conv|softmax|lanes_float)\\.c$")
list(REMOVE_ITEM kernels ${hot_kernels} ${warm_kernels})
set(no_tables "-fno-asynchronous-unwind-tables;-fno-unwind-tables")
set_source_files_properties(${hot_kernels} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3;${no_tables}>")
set_source_files_properties(${warm_kernels} PROPERTIES COMPILE_OPTIONS
  "$<$<CONFIG:Release>:-O2;-ftree-vectorize;-fvect-cost-model=cheap;${no_tables}>")
# With traps, gcc takes no choice between two floats out of a loop's way, and exp and its kin are not vectorised.
list(FILTER warm_kernels INCLUDE REGEX "/ref/lanes_float\\.c$")
set_property(SOURCE ${warm_kernels} APPEND PROPERTY COMPILE_OPTIONS
  "$<$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>>:-fno-trapping-math>")
set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:${no_tables}>")
set(cold_sources ${sources})
list(FILTER cold_sources EXCLUDE REGEX "/(copy|ops|stream)\\.c$") # what a run goes through
set_source_files_properties(${kernels} ${cold_sources} PROPERTIES COMPILE_OPTIONS
  "$<$<CONFIG:Release>:${heddle_small_code};${no_tables}>")
