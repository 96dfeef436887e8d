# Installs headers, library, the sources that plugins share, the CMake package and the pkg-config file. Everything in a
# prefix finds the rest by relative path, so the prefix can be moved.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/heddle")
set(shared_dir "${CMAKE_INSTALL_DATADIR}/heddle")

install(TARGETS heddle EXPORT heddle-targets LIBRARY)
if(TARGET heddle_static)
  install(TARGETS heddle_static EXPORT heddle-targets ARCHIVE)
endif()
if(HEDDLE_TVM)
  install(TARGETS heddle_tvm EXPORT heddle-targets LIBRARY)
  install(TARGETS heddle_tvm_ffi LIBRARY)
  if(HEDDLE_TVM_CXX_BUILT)
    install(TARGETS heddle_tvm_cxx heddle_tvm_cxx_v08 EXPORT heddle-targets LIBRARY)
    install(TARGETS heddle_tvm_runtime LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/heddle/tvm")
    install(TARGETS heddle_tvm_runtime_v08 LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/heddle/tvm-0.8")
  endif()
endif()
install(EXPORT heddle-targets NAMESPACE heddle:: DESTINATION "${package_dir}")
if(EXISTS "${PROJECT_SOURCE_DIR}/include/heddle")
  install(DIRECTORY include/heddle DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()
install(DIRECTORY include/tvm include/dmlc DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
include(cmake/tvm_sources.cmake)
option(HEDDLE_INSTALL_DLPACK "Install dlpack/dlpack.h, which tvm/runtime/c_runtime_api.h needs; not where the system has it" ON)
if(HEDDLE_INSTALL_DLPACK)
  install(DIRECTORY modules/include/dlpack DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
if(EXISTS "${PROJECT_SOURCE_DIR}/plugins/common")
  install(DIRECTORY plugins/common DESTINATION "${shared_dir}/plugins"
    FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN "*.cl" PATTERN "*.inc")
  install(DIRECTORY operators DESTINATION "${shared_dir}"
    FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN "*.def")
endif()
install(FILES plugins/null/plugin.c DESTINATION "${shared_dir}/plugins/null") # where docs/plugin-guide.md starts
install(FILES plugins/plugin.map DESTINATION "${shared_dir}/plugins")
# What the headers name: docs/NAME.md, examples/NAME, conformance/kit.h, all below share/heddle.
install(DIRECTORY docs DESTINATION "${shared_dir}" FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples DESTINATION "${shared_dir}" PATTERN "build*" EXCLUDE PATTERN "__pycache__" EXCLUDE)
install(FILES conformance/kit.h DESTINATION "${shared_dir}/conformance")

configure_package_config_file(cmake/heddle-config.cmake.in "${PROJECT_BINARY_DIR}/heddle-config.cmake"
  INSTALL_DESTINATION "${package_dir}"
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR shared_dir
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/heddle-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/heddle-config.cmake" "${PROJECT_BINARY_DIR}/heddle-config-version.cmake"
  cmake/heddle_plugin.cmake cmake/static_library.cmake cmake/embed_kernel.cmake cmake/scalars.cmake
  plugins/plugin.map
  DESTINATION "${package_dir}")

file(RELATIVE_PATH pc_to_prefix
  "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
set(heddle_pc_requires jansson)
if(HEDDLE_ONNX_BUILT)
  set(heddle_pc_requires "jansson, libprotobuf-c")
endif()
if(HEDDLE_SODIUM_BUILT)
  string(APPEND heddle_pc_requires ", libsodium")
endif()
configure_file(cmake/heddle.pc.in "${PROJECT_BINARY_DIR}/heddle.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/heddle.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(HEDDLE_TVM)
  configure_file(cmake/heddle_tvm.pc.in "${PROJECT_BINARY_DIR}/heddle_tvm.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/heddle_tvm.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
if(TARGET heddle_rpc)
  configure_file(cmake/heddle_rpc.pc.in "${PROJECT_BINARY_DIR}/heddle_rpc.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/heddle_rpc.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
