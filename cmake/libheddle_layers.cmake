# libheddle_layers.so: what can be put between the core and a plugin (core/layers), which few processes do: beside libheddle,
# which opens it when the setting "layers" says so. It calls libheddle through a table; of core/ it holds core/error.c only.
file(GLOB layer_sources CONFIGURE_DEPENDS core/layers/*.c)
add_library(heddle_layers SHARED ${layer_sources} core/error.c)
target_include_directories(heddle_layers PRIVATE include ${PROJECT_SOURCE_DIR})
target_compile_definitions(heddle_layers PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(heddle_layers PRIVATE Threads::Threads)
target_link_options(heddle_layers PRIVATE LINKER:--as-needed LINKER:--gc-sections
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/core/layers/libheddle_layers.map")
if(NOT HEDDLE_SANITIZE)
  target_link_options(heddle_layers PRIVATE LINKER:-z,defs)
endif()
set_target_properties(heddle_layers PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION 0 INSTALL_RPATH ""
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/core/layers/libheddle_layers.map")
install(TARGETS heddle_layers LIBRARY)
