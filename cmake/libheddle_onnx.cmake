# libheddle_onnx.so: the reader of ONNX models (frontends/onnx), on protobuf-c. Its schema is onnx.proto of Debian's
# libonnx-dev or of the Python package onnx, turned into C here.
set(HEDDLE_ONNX AUTO CACHE STRING "Build the reader of ONNX models: AUTO, ON or OFF")
set_property(CACHE HEDDLE_ONNX PROPERTY STRINGS AUTO ON OFF)
set(HEDDLE_ONNX_BUILT OFF)
if(NOT HEDDLE_ONNX)
  return()
endif()

pkg_check_modules(PROTOBUF_C IMPORTED_TARGET libprotobuf-c)
find_program(HEDDLE_PROTOC_C NAMES protoc-c DOC "protobuf-c's compiler of schemas")
file(GLOB onnx_packages "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/onnx")
find_file(HEDDLE_ONNX_PROTO NAMES onnx.proto PATH_SUFFIXES onnx PATHS ${onnx_packages} DOC "The schema of ONNX models")
set(onnx_missing "")
if(NOT PROTOBUF_C_FOUND OR NOT HEDDLE_PROTOC_C)
  set(onnx_missing "protobuf-c is not installed (libprotobuf-c-dev, protobuf-c-compiler)")
elseif(NOT HEDDLE_ONNX_PROTO)
  set(onnx_missing "onnx.proto is not found (libonnx-dev, or the Python package onnx)")
endif()
if(onnx_missing)
  if(NOT HEDDLE_ONNX STREQUAL "AUTO")
    message(FATAL_ERROR "HEDDLE_ONNX is ON, but ${onnx_missing}.")
  endif()
  message(STATUS "ONNX models are not read: ${onnx_missing}.")
  return()
endif()
set(HEDDLE_ONNX_BUILT ON)

set(onnx_made "${PROJECT_BINARY_DIR}/onnx")
get_filename_component(onnx_schema_folder "${HEDDLE_ONNX_PROTO}" DIRECTORY)
file(MAKE_DIRECTORY "${onnx_made}")
add_custom_command(OUTPUT "${onnx_made}/onnx.pb-c.c" "${onnx_made}/onnx.pb-c.h"
  COMMAND "${HEDDLE_PROTOC_C}" "--c_out=${onnx_made}" "-I${onnx_schema_folder}" "${HEDDLE_ONNX_PROTO}"
  DEPENDS "${HEDDLE_ONNX_PROTO}" COMMENT "The schema of ONNX models as C" VERBATIM)
set_source_files_properties("${onnx_made}/onnx.pb-c.c" PROPERTIES COMPILE_OPTIONS "-w") # not our code

# All but what makes it a library of its own, so that tests and fuzzing can link it to libheddle's insides.
file(GLOB onnx_sources CONFIGURE_DEPENDS frontends/onnx/*.c)
list(REMOVE_ITEM onnx_sources "${PROJECT_SOURCE_DIR}/frontends/onnx/host.c")
add_library(heddle_onnx_reader STATIC ${onnx_sources} "${onnx_made}/onnx.pb-c.c" "${onnx_made}/onnx.pb-c.h")
target_include_directories(heddle_onnx_reader PUBLIC include ${PROJECT_SOURCE_DIR})
target_include_directories(heddle_onnx_reader SYSTEM PUBLIC "${onnx_made}")
target_compile_definitions(heddle_onnx_reader PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
target_compile_options(heddle_onnx_reader PRIVATE ${heddle_counted})
target_link_libraries(heddle_onnx_reader PUBLIC PkgConfig::PROTOBUF_C PkgConfig::JANSSON)

heddle_beside_library(heddle_onnx frontends/onnx/libheddle_onnx.map frontends/onnx/host.c)
target_link_libraries(heddle_onnx PRIVATE heddle_onnx_reader)
