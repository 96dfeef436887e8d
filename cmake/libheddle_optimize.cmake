# libheddle_optimize.so: rewrites graphs before they are placed (optimize/). It takes all it needs from libheddle through
# a table, so of core/ it holds core/error.c only.
file(GLOB optimize_sources CONFIGURE_DEPENDS optimize/*.c)
add_library(heddle_optimize SHARED ${optimize_sources} core/error.c)
target_include_directories(heddle_optimize PRIVATE include ${PROJECT_SOURCE_DIR})
target_compile_definitions(heddle_optimize PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(heddle_optimize PRIVATE PkgConfig::JANSSON m)
target_link_options(heddle_optimize PRIVATE
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/optimize/libheddle_optimize.map" LINKER:--as-needed LINKER:--gc-sections)
if(NOT HEDDLE_SANITIZE)
  target_link_options(heddle_optimize PRIVATE LINKER:-z,defs)
endif()
set_target_properties(heddle_optimize PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION 0
  INSTALL_RPATH "" LINK_DEPENDS "${PROJECT_SOURCE_DIR}/optimize/libheddle_optimize.map")
