# heddle_plugin(NAME SOURCES file... [COMMON] [QUEUE] [KERNELS] [GPU] [LIBRARIES lib...] [INCLUDES dir...] [DEFINITIONS def...]
#   [MANIFEST] [PRIORITY number] [STATIC] [NO_INSTALL])
#
# Builds libheddle_plugin_NAME.so as target heddle_plugin_NAME: a module that links nothing of Heddle, with hidden
# symbols and heddle_plugin_entry as its one export, installed in lib/heddle/plugins. Sources are C11 or C++17. MANIFEST
# writes and installs NAME.json beside it, from which a host knows its name and ABI without opening it (docs/probing.md);
# PRIORITY, an integer and 0 without it, is in the manifest: plugins with more come first. COMMON compiles the sources of
# plugins/common (reference kernels, shape helpers) into it; they are included as "plugins/common/FILE.h". QUEUE compiles
# plugins/common/queue, which makes an asynchronous device of synchronous functions (queue/queue.h). KERNELS does
# what COMMON does and adds plugins/common/kernels: the device kernels as texts, and the plans that launch them (kernels/plan.h). GPU
# does that and adds plugins/common/gpu: a plugin over a driver like CUDA's, of which gpu/gpu.h says what is left to do.
#
# STATIC builds libheddle_plugin_NAME.a too, as target heddle_plugin_NAME_static: its one symbol is the entry, under the name
# heddle_plugin_NAME_entry, for heddle_plugin_register (heddle/device.h).
#
# The same file serves Heddle's own build and an outside project's, after find_package(heddle).

if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/../plugins/plugin.map")
  get_filename_component(HEDDLE_PLUGIN_ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
  set(HEDDLE_PLUGIN_INCLUDE "${HEDDLE_PLUGIN_ROOT}/include")
  set(HEDDLE_PLUGIN_MAP "${HEDDLE_PLUGIN_ROOT}/plugins/plugin.map")
else() # installed: heddle-config.cmake has set HEDDLE_PLUGIN_ROOT and HEDDLE_PLUGIN_INCLUDE
  set(HEDDLE_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")
endif()

include("${CMAKE_CURRENT_LIST_DIR}/embed_kernel.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/scalars.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/static_library.cmake")

function(heddle_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMMON;QUEUE;KERNELS;GPU;MANIFEST;STATIC;NO_INSTALL" "PRIORITY"
    "SOURCES;LIBRARIES;INCLUDES;DEFINITIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "heddle_plugin(${name}): unknown words: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "heddle_plugin(${name}): no SOURCES")
  endif()
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "heddle_plugin(${name}): a plugin's name is lower-case letters, digits and underscores")
  endif()
  if(DEFINED arg_PRIORITY AND NOT arg_MANIFEST)
    message(FATAL_ERROR "heddle_plugin(${name}): PRIORITY is a member of the manifest; add MANIFEST")
  elseif(DEFINED arg_PRIORITY AND NOT arg_PRIORITY MATCHES "^-?[0-9]+$")
    message(FATAL_ERROR "heddle_plugin(${name}): PRIORITY is an integer, not '${arg_PRIORITY}'")
  elseif(NOT DEFINED arg_PRIORITY)
    set(arg_PRIORITY 0)
  endif()
  if(arg_GPU)
    set(arg_KERNELS ON)
    list(APPEND arg_LIBRARIES ${CMAKE_DL_LIBS})
  endif()
  set(common "") # not the one of a caller
  set(compiled "")
  if((arg_COMMON OR arg_KERNELS) AND TARGET heddle_operators) # Heddle's own build has compiled them
    set(compiled $<TARGET_OBJECTS:heddle_operators>)
  elseif(arg_COMMON OR arg_KERNELS)
    file(GLOB common CONFIGURE_DEPENDS
      "${HEDDLE_PLUGIN_ROOT}/operators/*.c" "${HEDDLE_PLUGIN_ROOT}/plugins/common/*.c"
      "${HEDDLE_PLUGIN_ROOT}/plugins/common/ref/*.c" "${HEDDLE_PLUGIN_ROOT}/plugins/common/more/*.c")
  endif()
  if(arg_QUEUE)
    file(GLOB queue CONFIGURE_DEPENDS "${HEDDLE_PLUGIN_ROOT}/plugins/common/queue/*.c")
    list(APPEND common ${queue})
  endif()
  if(arg_KERNELS)
    set(kernels "${HEDDLE_PLUGIN_ROOT}/plugins/common/kernels")
    file(GLOB plans CONFIGURE_DEPENDS "${kernels}/*.c")
    file(GLOB texts CONFIGURE_DEPENDS "${kernels}/*.cl" "${kernels}/params.h")
    list(FILTER texts EXCLUDE REGEX "/portable\\.cl$") # is included by others
    set(operators "${HEDDLE_PLUGIN_ROOT}/operators")
    if(HEDDLE_OPERATORS_DIR) # cmake/parts.cmake
      set(operators "${HEDDLE_OPERATORS_DIR}")
    endif()
    heddle_scalars("${PROJECT_BINARY_DIR}/scalars.cl" "${operators}")
    heddle_embed_kernels("${PROJECT_BINARY_DIR}/${name}_kernel_texts.c" "${PROJECT_BINARY_DIR}/scalars.cl" ${texts})
    list(APPEND common ${plans} "${PROJECT_BINARY_DIR}/${name}_kernel_texts.c")
  endif()
  if(arg_GPU)
    file(GLOB gpu CONFIGURE_DEPENDS "${HEDDLE_PLUGIN_ROOT}/plugins/common/gpu/*.c")
    list(APPEND common ${gpu})
  endif()

  if(NOT CMAKE_C_STANDARD)
    set(CMAKE_C_STANDARD 11)
  endif()
  if(NOT CMAKE_CXX_STANDARD)
    set(CMAKE_CXX_STANDARD 17)
  endif()
  set(target heddle_plugin_${name})
  find_package(Threads REQUIRED)
  add_library(${target} MODULE ${arg_SOURCES} ${common} ${compiled})
  target_include_directories(${target} PRIVATE
    "${HEDDLE_PLUGIN_INCLUDE}" "${HEDDLE_PLUGIN_ROOT}" ${arg_INCLUDES})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} Threads::Threads m)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${HEDDLE_PLUGIN_MAP}" "LINKER:--as-needed"
    "LINKER:--gc-sections") # what a plugin does not use of plugins/common is left out
  if(NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS} ${HEDDLE_SANITIZE}" MATCHES "sanitize|address|undefined|thread")
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX lib
    OUTPUT_NAME heddle_plugin_${name}
    SUFFIX .so
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    INSTALL_RPATH ""
    LINK_DEPENDS "${HEDDLE_PLUGIN_MAP}"
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/heddle/plugins")
  if(arg_MANIFEST)
    file(STRINGS "${HEDDLE_PLUGIN_INCLUDE}/heddle/plugin.h" abi REGEX "^#define HEDDLE_ABI_(MAJOR|MINOR) [0-9]+")
    string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" abi "${abi}")
    file(WRITE "${PROJECT_BINARY_DIR}/lib/heddle/plugins/${name}.json"
      "{\"format\": 1, \"name\": \"${name}\", \"abi\": \"${abi}\", "
      "\"library\": \"libheddle_plugin_${name}.so\", \"priority\": ${arg_PRIORITY}}\n")
  endif()
  if(NOT CMAKE_INSTALL_LIBDIR)
    set(CMAKE_INSTALL_LIBDIR lib)
  endif()
  if(arg_STATIC)
    add_library(${target}_objects OBJECT ${arg_SOURCES} ${common})
    target_include_directories(${target}_objects PRIVATE
      "${HEDDLE_PLUGIN_INCLUDE}" "${HEDDLE_PLUGIN_ROOT}" "${HEDDLE_PLUGIN_ROOT}/plugins/common/ref" ${arg_INCLUDES})
    target_compile_definitions(${target}_objects PRIVATE ${arg_DEFINITIONS}
      heddle_plugin_entry=heddle_plugin_${name}_entry)
    target_compile_options(${target}_objects PRIVATE -ffunction-sections -fdata-sections -fvisibility=hidden)
    heddle_static_library(${target}_static heddle_plugin_${name} heddle_plugin_${name}_entry
      $<TARGET_OBJECTS:${target}_objects> ${compiled})
    target_link_libraries(${target}_static INTERFACE ${arg_LIBRARIES} Threads::Threads m)
    if(NOT arg_NO_INSTALL)
      install(TARGETS ${target}_static ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    endif()
  endif()
  if(NOT arg_NO_INSTALL)
    install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/heddle/plugins")
    if(arg_MANIFEST)
      install(FILES "${PROJECT_BINARY_DIR}/lib/heddle/plugins/${name}.json"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/heddle/plugins")
    endif()
  endif()
endfunction()
