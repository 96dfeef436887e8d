# heddle_plugin(NAME SOURCES file... [COMMON] [KERNELS] [GPU] [LIBRARIES lib...] [INCLUDES dir...] [DEFINITIONS def...]
#   [NO_INSTALL])
#
# Builds libheddle_plugin_NAME.so as target heddle_plugin_NAME: a module that links nothing of Heddle, with hidden
# symbols and heddle_plugin_entry as its one export, installed in lib/heddle/plugins. COMMON compiles the sources of
# plugins/common (reference kernels, shape helpers) into it; they are included as "plugins/common/FILE.h". KERNELS does
# that and adds plugins/common/kernels: the device kernels as texts, and the plans that launch them (kernels/plan.h). GPU
# does that and adds plugins/common/gpu: a plugin over a driver like CUDA's, of which gpu/gpu.h says what is left to do.
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

function(heddle_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMMON;KERNELS;GPU;NO_INSTALL" "" "SOURCES;LIBRARIES;INCLUDES;DEFINITIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "heddle_plugin(${name}): unknown words: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "heddle_plugin(${name}): no SOURCES")
  endif()
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "heddle_plugin(${name}): a plugin's name is lower-case letters, digits and underscores")
  endif()
  if(arg_GPU)
    set(arg_KERNELS ON)
    list(APPEND arg_LIBRARIES ${CMAKE_DL_LIBS})
  endif()
  set(common "") # not the one of a caller
  if(arg_COMMON OR arg_KERNELS)
    file(GLOB common CONFIGURE_DEPENDS
      "${HEDDLE_PLUGIN_ROOT}/plugins/common/*.c" "${HEDDLE_PLUGIN_ROOT}/plugins/common/ref/*.c")
  endif()
  if(arg_KERNELS)
    set(kernels "${HEDDLE_PLUGIN_ROOT}/plugins/common/kernels")
    file(GLOB plans CONFIGURE_DEPENDS "${kernels}/*.c")
    file(GLOB texts CONFIGURE_DEPENDS "${kernels}/*.cl" "${kernels}/params.h")
    heddle_embed_kernels("${PROJECT_BINARY_DIR}/${name}_kernel_texts.c" ${texts})
    list(APPEND common ${plans} "${PROJECT_BINARY_DIR}/${name}_kernel_texts.c")
  endif()
  if(arg_GPU)
    file(GLOB gpu CONFIGURE_DEPENDS "${HEDDLE_PLUGIN_ROOT}/plugins/common/gpu/*.c")
    list(APPEND common ${gpu})
  endif()

  set(target heddle_plugin_${name})
  find_package(Threads REQUIRED)
  add_library(${target} MODULE ${arg_SOURCES} ${common})
  target_include_directories(${target} PRIVATE
    "${HEDDLE_PLUGIN_INCLUDE}" "${HEDDLE_PLUGIN_ROOT}" ${arg_INCLUDES})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} Threads::Threads m)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${HEDDLE_PLUGIN_MAP}" "LINKER:--as-needed")
  if(NOT "${CMAKE_C_FLAGS} ${HEDDLE_SANITIZE}" MATCHES "sanitize|address|undefined|thread")
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX lib
    OUTPUT_NAME heddle_plugin_${name}
    SUFFIX .so
    C_VISIBILITY_PRESET hidden
    POSITION_INDEPENDENT_CODE ON
    INSTALL_RPATH ""
    LINK_DEPENDS "${HEDDLE_PLUGIN_MAP}"
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/heddle/plugins")
  if(NOT arg_NO_INSTALL)
    if(NOT CMAKE_INSTALL_LIBDIR)
      set(CMAKE_INSTALL_LIBDIR lib)
    endif()
    install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/heddle/plugins")
  endif()
endfunction()
