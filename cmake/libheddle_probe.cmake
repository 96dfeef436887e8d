# libheddle_probe.so: plugins are tried before they are loaded, and their manifests are read (probe/); and heddle-probe, the
# program in which they are tried.
file(GLOB probe_sources CONFIGURE_DEPENDS probe/*.c)
heddle_beside_library(heddle_probe probe/libheddle_probe.map ${probe_sources} core/cache_folder.c
  plugins/common/cachefile.c)
target_link_libraries(heddle_probe PRIVATE PkgConfig::JANSSON Threads::Threads)
file(RELATIVE_PATH probe_installed "${CMAKE_INSTALL_FULL_LIBDIR}" "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle/heddle-probe")
target_compile_definitions(heddle_probe PRIVATE HEDDLE_PROBE_INSTALLED="${probe_installed}")

add_executable(heddle_probe_program probe/helper/helper.c)
target_link_libraries(heddle_probe_program PRIVATE heddle)
file(RELATIVE_PATH libexec_to_lib "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle" "${CMAKE_INSTALL_FULL_LIBDIR}")
set_target_properties(heddle_probe_program PROPERTIES OUTPUT_NAME heddle-probe INSTALL_RPATH "$ORIGIN/${libexec_to_lib}"
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/libexec/heddle")
if(libexec_to_lib STREQUAL "../../lib") # the same in both trees; CMake would pad it with an empty entry
  set_property(TARGET heddle_probe_program PROPERTY BUILD_WITH_INSTALL_RPATH ON)
endif()
add_dependencies(heddle_probe heddle_probe_program)
install(TARGETS heddle_probe_program RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/heddle")
