# libheddle_tvm_cxx.so and libheddle_tvm_cxx_v08.so: the symbols of TVM's C++ runtime for code that was compiled against TVM's own
# headers, of v0.9 to v0.18 and of v0.8, where functions have the same names and another layout. libheddle_tvm
# opens one of them for a library that imports such symbols; programs may be linked to one in the place of libtvm_runtime.
option(HEDDLE_TVM_CXX "Build libheddle_tvm_cxx, for libraries and programs compiled against TVM's own C++ headers" ON)
set(HEDDLE_TVM_CXX_BUILT OFF)
if(NOT HEDDLE_TVM_CXX OR NOT HEDDLE_TVM)
  return()
endif()
if(NOT DEFINED HEDDLE_HAS_CXX)
  include(cmake/cxx.cmake)
endif()
if(NOT HEDDLE_HAS_CXX)
  message(STATUS "no C++ compiler: libheddle_tvm_cxx is left out")
  return()
endif()
file(GLOB tvm_cxx_sources CONFIGURE_DEPENDS modules/tvm_cxx/*.cpp)
file(RELATIVE_PATH tvm_runtime_to_lib "/lib/heddle/tvm" "/lib")

# lib/heddle/FOLDER/libtvm_runtime.so: for files that name TVM's runtime as a library that they need. It is empty and needs the
# libraries of the era; libheddle_tvm opens it for such a library, and a program finds it by LD_LIBRARY_PATH.
function(heddle_tvm_cxx_library name runtime folder)
  add_library(${name} SHARED ${tvm_cxx_sources})
  add_library(heddle::${name} ALIAS ${name})
  target_include_directories(${name} PRIVATE include modules/include ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}" ${ARGN})
  target_link_libraries(${name} PUBLIC heddle_tvm)
  target_link_options(${name} PRIVATE
    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/modules/libheddle_tvm_cxx.map" LINKER:--as-needed LINKER:--gc-sections
    LINKER:-z,nodelete) # objects of ours may end with other libraries
  if(NOT HEDDLE_SANITIZE)
    target_link_options(${name} PRIVATE LINKER:-z,defs)
  endif()
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX CXX_STANDARD 17 CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON VERSION ${PROJECT_VERSION} SOVERSION 0 INSTALL_RPATH "$ORIGIN"
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/modules/libheddle_tvm_cxx.map")
  add_library(${runtime} SHARED modules/tvm_cxx/runtime.c)
  target_compile_definitions(${runtime} PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${runtime} PRIVATE "-Wl,--push-state,--no-as-needed" ${name} heddle_tvm "-Wl,--pop-state")
  set_target_properties(${runtime} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME tvm_runtime
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/heddle/${folder}" BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "$ORIGIN/${tvm_runtime_to_lib}")
endfunction()

heddle_tvm_cxx_library(heddle_tvm_cxx heddle_tvm_runtime tvm)
heddle_tvm_cxx_library(heddle_tvm_cxx_v08 heddle_tvm_runtime_v08 tvm-0.8 HEDDLE_TVM_CXX_V08=1)
target_compile_definitions(heddle_tvm PRIVATE HEDDLE_HAS_TVM_CXX=1)
set(HEDDLE_TVM_CXX_BUILT ON)
