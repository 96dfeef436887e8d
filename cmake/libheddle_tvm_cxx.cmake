# libheddle_tvm_cxx.so: the symbols of TVM's C++ runtime for code that was compiled against TVM's own headers. libheddle_tvm
# opens it for a library that imports such symbols; programs may be linked to it in the place of libtvm_runtime.
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
add_library(heddle_tvm_cxx SHARED ${tvm_cxx_sources})
add_library(heddle::heddle_tvm_cxx ALIAS heddle_tvm_cxx)
target_include_directories(heddle_tvm_cxx PRIVATE include modules/include ${PROJECT_SOURCE_DIR})
target_compile_definitions(heddle_tvm_cxx PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}"
  HEDDLE_TVM_CXX_ERAS="v0.9 to v0.18")
target_link_libraries(heddle_tvm_cxx PUBLIC heddle_tvm)
target_link_options(heddle_tvm_cxx PRIVATE
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/modules/libheddle_tvm_cxx.map" LINKER:--as-needed LINKER:--gc-sections
  LINKER:-z,nodelete) # objects of ours may end with other libraries
if(NOT HEDDLE_SANITIZE)
  target_link_options(heddle_tvm_cxx PRIVATE LINKER:-z,defs)
endif()
set_target_properties(heddle_tvm_cxx PROPERTIES LINKER_LANGUAGE CXX CXX_STANDARD 17 CXX_EXTENSIONS OFF
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON VERSION ${PROJECT_VERSION} SOVERSION 0 INSTALL_RPATH "$ORIGIN"
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/modules/libheddle_tvm_cxx.map")
target_compile_definitions(heddle_tvm PRIVATE HEDDLE_HAS_TVM_CXX=1)
set(HEDDLE_TVM_CXX_BUILT ON)

# lib/heddle/tvm/libtvm_runtime.so: for files that name TVM's runtime as a library that they need. It is empty and needs the
# libraries above; libheddle_tvm opens it for such a library, and a program finds it by LD_LIBRARY_PATH.
add_library(heddle_tvm_runtime SHARED modules/tvm_cxx/runtime.c)
target_compile_definitions(heddle_tvm_runtime PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(heddle_tvm_runtime PRIVATE "-Wl,--push-state,--no-as-needed" heddle_tvm_cxx heddle_tvm "-Wl,--pop-state")
file(RELATIVE_PATH tvm_runtime_to_lib "/lib/heddle/tvm" "/lib")
set_target_properties(heddle_tvm_runtime PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME tvm_runtime
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/heddle/tvm" BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "$ORIGIN/${tvm_runtime_to_lib}")
