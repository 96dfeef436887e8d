# libheddle_tvm.so: the loaders of libraries that TVM compiled (modules/tvm). It takes memory and threads from libheddle
# through a table, so of core/ it holds core/error.c only.
file(GLOB tvm_sources CONFIGURE_DEPENDS modules/tvm/*.c)
add_library(heddle_tvm SHARED ${tvm_sources} core/error.c)
target_include_directories(heddle_tvm PRIVATE include ${PROJECT_SOURCE_DIR})
target_compile_definitions(heddle_tvm PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(heddle_tvm PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(heddle_tvm PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/modules/libheddle_tvm.map"
  LINKER:--as-needed LINKER:--gc-sections)
if(NOT HEDDLE_SANITIZE)
  target_link_options(heddle_tvm PRIVATE LINKER:-z,defs)
endif()
set_target_properties(heddle_tvm PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION 0 INSTALL_RPATH ""
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/modules/libheddle_tvm.map")

# For the tests that look inside: the parser of what libraries carry, models among it.
add_library(heddle_tvm_blob STATIC modules/tvm/blob.c modules/tvm/blob_body.c modules/tvm/model.c)
target_include_directories(heddle_tvm_blob PUBLIC include ${PROJECT_SOURCE_DIR})

# Compiled code calls functions of libm, and often does not name it: it finds ours, whatever the program itself has.
target_link_libraries(heddle_tvm PRIVATE "-Wl,--push-state,--no-as-needed,-lm,--pop-state")
