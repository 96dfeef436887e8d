# The reference kernels are plain loops that the compiler vectorises; how much code it may make of them is said here,
# file by file. No kernel looks at errno, or at traps: with those, gcc calls sqrtf for an error's sake, and takes no
# choice between two floats out of a loop's way, so that exp and its kin are not vectorised.
set(plugin_common ON)
set(plugin_libraries "-Wl,-z,noseparate-code" "-Wl,--gc-sections" ${heddle_small_link}) # noseparate: fewer pages
set(kernel_code "-ffunction-sections;-fno-math-errno")
file(GLOB kernels "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/ref/*.c" "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/*.c")
set(gcc_release "$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>>") # options that clang does not know, or need
set(hot_kernels ${kernels})
list(FILTER hot_kernels INCLUDE REGEX "/ref/contract\\.c$")
set(warm_kernels ${kernels})
list(FILTER warm_kernels INCLUDE REGEX "/ref/(conv|softmax|lanes|lanes_float|lanes_double|lanes_whole|folds|ends|types)\\.c$")
list(REMOVE_ITEM kernels ${hot_kernels} ${warm_kernels})
# Short loops lose a third of their speed where they begin at an unlucky place.
set_source_files_properties(${hot_kernels} PROPERTIES COMPILE_OPTIONS
  "$<$<CONFIG:Release>:-O2;-falign-functions=64;${kernel_code}>;$<${gcc_release}:-funswitch-loops>")
set_property(SOURCE ${warm_kernels} PROPERTY COMPILE_OPTIONS
  "$<$<CONFIG:Release>:-O2;-fno-trapping-math;${kernel_code}>"
  "$<${gcc_release}:-ftree-vectorize;-fvect-cost-model=cheap>")
list(FILTER warm_kernels INCLUDE REGEX "/ref/lanes_(float|double)\\.c$")
set_property(SOURCE ${warm_kernels} APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:Release>:-falign-loops=32>")
set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:${kernel_code}>")
set(int8_lanes ${sources})
list(FILTER int8_lanes INCLUDE REGEX "/onednn_int8_lanes\\.c$") # loops for the widest vectors that there are
set_property(SOURCE ${int8_lanes} APPEND PROPERTY COMPILE_OPTIONS
  "$<$<CONFIG:Release>:-O3>" "$<$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>>:-mprefer-vector-width=512>")
set(sgemm_lanes ${sources})
list(FILTER sgemm_lanes INCLUDE REGEX "/onednn_sgemm_lanes\\.c$") # tiles that are to stay in registers
set_property(SOURCE ${sgemm_lanes} APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>")
set(fast_kernels ${kernels})
# Loops for the widest vectors that there are.
list(FILTER fast_kernels INCLUDE REGEX "/ref/(lanes_fast|lanes_fma|lines|turn|pool_rows|norm_rows)\\.c$")
list(REMOVE_ITEM kernels ${fast_kernels})
set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:${kernel_code}>")
set_source_files_properties(${fast_kernels} PROPERTIES COMPILE_OPTIONS
  "$<$<CONFIG:Release>:-O3;-fno-trapping-math;${kernel_code}>;$<${gcc_release}:-mprefer-vector-width=512>")
list(FILTER fast_kernels INCLUDE REGEX "/ref/(lines|lanes_fma)\\.c$") # products are added unrounded where the CPU can
set_property(SOURCE ${fast_kernels} APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:Release>:-ffp-contract=fast>")

# Winograd's loops are written for registers; their speed is the compiler's full effort's.
set(winograd_sources ${sources})
list(FILTER winograd_sources INCLUDE REGEX "/(winograd_(input|product|output|weights)|onednn_patches_(sum|tile)|onednn_mean)\\.c$")
set_source_files_properties(${winograd_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2;${kernel_code}>")

# oneDNN 3.x, which scripts/setup puts into the Python environment; other versions have another API, and some
# distributions ship 2.x. The library is copied beside the plugin, in the build tree and by the install, so that the
# environment may go.
set(HEDDLE_ONEDNN AUTO CACHE STRING "Kernels of oneDNN 3.x in the plugin cpu: AUTO, ON or OFF")
set_property(CACHE HEDDLE_ONEDNN PROPERTY STRINGS AUTO ON OFF)
set(HEDDLE_ONEDNN_BUILT OFF)
if(HEDDLE_ONEDNN)
  find_package(dnnl 3 CONFIG QUIET PATHS "${PROJECT_SOURCE_DIR}/.venv" NO_DEFAULT_PATH)
  if(NOT dnnl_FOUND)
    find_package(dnnl 3 CONFIG QUIET)
  endif()
  if(dnnl_FOUND AND TARGET DNNL::dnnl AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(HEDDLE_ONEDNN_BUILT ON)
  elseif(NOT HEDDLE_ONEDNN STREQUAL "AUTO")
    message(FATAL_ERROR "HEDDLE_ONEDNN is ON, but no CMake package dnnl 3.x for x86-64 is found; scripts/setup installs "
      "one, or give -DCMAKE_PREFIX_PATH=FOLDER.")
  else()
    message(STATUS "Plugin cpu is built without oneDNN: no CMake package dnnl 3.x for x86-64 is found.")
  endif()
endif()
if(HEDDLE_ONEDNN_BUILT)
  get_target_property(onednn_includes DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
  get_target_property(onednn_library DNNL::dnnl IMPORTED_LOCATION_RELEASE)
  if(NOT onednn_library)
    get_target_property(onednn_library DNNL::dnnl LOCATION)
  endif()
  # The name that the loader looks for. Linking to the copy keeps the environment's path out of the plugin.
  set(onednn_copy "${PROJECT_BINARY_DIR}/lib/heddle/plugins/libdnnl.so.3")
  configure_file("${onednn_library}" "${onednn_copy}" COPYONLY)
  set(HEDDLE_ONEDNN_LIBRARIES "${onednn_copy}") # for the benchmark and the tests that call oneDNN themselves
  set(HEDDLE_ONEDNN_INCLUDES "${onednn_includes}")
  list(APPEND plugin_libraries "${onednn_copy}" "${CMAKE_DL_LIBS}")
  list(APPEND plugin_includes "${onednn_includes}")
  list(APPEND plugin_definitions HEDDLE_ONEDNN)
  set(plugin_rpath "$ORIGIN")
  install(FILES "${onednn_copy}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/heddle/plugins")
else()
  list(FILTER sources EXCLUDE REGEX "/(onednn|winograd)_[a-z0-9_]+\\.c$")
endif()
