# The libraries of operators that are rare, or of rare types, both from plugins/common: libheddle_ops.so beside libheddle,
# which has what a graph must know of them, and libheddle_ref_more.so beside the plugins, which has their kernels. Each is
# opened when a graph has such an operator, and nothing of a process pays for it before.
file(GLOB operator_sources CONFIGURE_DEPENDS plugins/common/*.c plugins/common/ref/*.c plugins/common/more/*.c)
add_library(heddle_operators OBJECT ${operator_sources})
target_include_directories(heddle_operators PRIVATE include ${PROJECT_SOURCE_DIR})
target_compile_definitions(heddle_operators PRIVATE HEDDLE_REF_MORE_HERE) # ref/more.c: in this very library
target_compile_options(heddle_operators PRIVATE -fno-math-errno)
set_property(SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/quantize.c" APPEND PROPERTY COMPILE_OPTIONS
  "$<$<CONFIG:Release>:-O3;-fno-trapping-math>") # loops that are to become vectors

add_library(heddle_ref_more MODULE $<TARGET_OBJECTS:heddle_operators>)
set_target_properties(heddle_ref_more PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/heddle/plugins")
install(TARGETS heddle_ref_more LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/heddle/plugins")

file(GLOB ops_sources CONFIGURE_DEPENDS operators/*.c)
add_library(heddle_ops SHARED ${ops_sources} graph/words.c core/names.c core/error.c core/text.c $<TARGET_OBJECTS:heddle_operators>)
target_include_directories(heddle_ops PRIVATE include ${PROJECT_SOURCE_DIR})
target_compile_definitions(heddle_ops PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(heddle_ops PRIVATE PkgConfig::JANSSON)
set_target_properties(heddle_ops PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)

foreach(target IN ITEMS heddle_ref_more heddle_ops)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
  target_link_options(${target} PRIVATE LINKER:--as-needed)
  if(NOT HEDDLE_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C INSTALL_RPATH "")
endforeach()
