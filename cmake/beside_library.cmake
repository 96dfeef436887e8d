# heddle_beside_library(TARGET MAP SOURCE...): a library that lies beside libheddle, which opens it when it is needed
# (core/beside.h). It calls libheddle through a table; of core/ it holds core/error.c and core/text.c only. MAP says what it exports.
function(heddle_beside_library target map)
  add_library(${target} SHARED ${ARGN} core/error.c core/text.c)
  target_include_directories(${target} PRIVATE include ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
  target_compile_options(${target} PRIVATE ${heddle_counted})
  target_link_options(${target} PRIVATE LINKER:--as-needed LINKER:--gc-sections
    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/${map}")
  if(NOT HEDDLE_SANITIZE) # a sanitizer's run time is left for the program to bring
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION 0 INSTALL_RPATH ""
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/${map}")
  install(TARGETS ${target} LIBRARY)
endfunction()
