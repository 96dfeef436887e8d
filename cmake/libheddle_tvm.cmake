# libheddle_tvm.so: the loaders of libraries that TVM compiled (modules/tvm), functions by name, TVM's C API. It calls
# libheddle's public functions, and takes memory and threads from it through a table; of core/ it holds
# core/error.c, core/failure.c, core/sheet.c, core/text.c, core/whole_file.c and plugins/common/cachefile.c only.
file(GLOB tvm_sources CONFIGURE_DEPENDS modules/tvm/*.c)
if(HEDDLE_PACK_BUILT)
  file(GLOB pack_sources CONFIGURE_DEPENDS modules/pack/*.c)
endif()
add_library(heddle_tvm SHARED ${tvm_sources} ${pack_sources} core/error.c core/failure.c core/sheet.c core/text.c
  core/whole_file.c plugins/common/cachefile.c)
target_include_directories(heddle_tvm PRIVATE include ${PROJECT_SOURCE_DIR} modules/include
  INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/modules/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
add_library(heddle::heddle_tvm ALIAS heddle_tvm)
target_compile_definitions(heddle_tvm PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}" HEDDLE_TVM_LAYOUT="${heddle_tvm_layout}"
  HEDDLE_HAS_PACK=$<BOOL:${HEDDLE_PACK_BUILT}>)
if(HEDDLE_PACK_BUILT)
  target_include_directories(heddle_tvm SYSTEM PRIVATE "${HEDDLE_LIBELF_INCLUDE}")
endif()
target_compile_options(heddle_tvm PRIVATE ${heddle_counted})
target_link_libraries(heddle_tvm PRIVATE heddle Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(heddle_tvm PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/modules/libheddle_tvm.map"
  LINKER:--as-needed LINKER:--gc-sections LINKER:-z,nodelete) # threads that used it run its code when they end
if(NOT HEDDLE_SANITIZE)
  target_link_options(heddle_tvm PRIVATE LINKER:-z,defs)
endif()
set_target_properties(heddle_tvm PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION 0 INSTALL_RPATH "$ORIGIN"
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/modules/libheddle_tvm.map")

# libheddle_tvm_ffi.so: names of tvm-ffi, apart since a tvm_ffi that is loaded later would be bound to them.
add_library(heddle_tvm_ffi SHARED modules/tvm_ffi/names.c)
target_include_directories(heddle_tvm_ffi PRIVATE include ${PROJECT_SOURCE_DIR})
target_compile_options(heddle_tvm_ffi PRIVATE ${heddle_counted})
target_link_libraries(heddle_tvm_ffi PRIVATE heddle_tvm)
target_link_options(heddle_tvm_ffi PRIVATE
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/modules/libheddle_tvm_ffi.map" LINKER:--as-needed)
set_target_properties(heddle_tvm_ffi PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION 0
  INSTALL_RPATH "$ORIGIN" LINK_DEPENDS "${PROJECT_SOURCE_DIR}/modules/libheddle_tvm_ffi.map")

# For the tests that look inside: the reader of what libraries carry, and of models and constants in that.
add_library(heddle_tvm_blob STATIC modules/tvm/blob.c modules/tvm/blob_body.c modules/tvm/model.c modules/tvm/constants.c)
target_include_directories(heddle_tvm_blob PUBLIC include ${PROJECT_SOURCE_DIR})
target_compile_options(heddle_tvm_blob PRIVATE ${heddle_counted})

# Compiled code calls functions of libm, and often does not name it: it finds ours, whatever the program itself has.
target_link_libraries(heddle_tvm PRIVATE "-Wl,--push-state,--no-as-needed,-lm,--pop-state")
