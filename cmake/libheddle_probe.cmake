# libheddle_probe.so: plugins are tried before they are loaded, and their manifests are read (probe/); and heddle-probe, the
# program in which they are tried.
file(GLOB probe_sources CONFIGURE_DEPENDS probe/*.c)
heddle_beside_library(heddle_probe probe/libheddle_probe.map ${probe_sources} core/cache_folder.c)
target_link_libraries(heddle_probe PRIVATE PkgConfig::JANSSON Threads::Threads)
file(RELATIVE_PATH probe_installed "${CMAKE_INSTALL_FULL_LIBDIR}" "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle/heddle-probe")
target_compile_definitions(heddle_probe PRIVATE HEDDLE_PROBE_INSTALLED="${probe_installed}")

# It opens libheddle by its path: no run path, which a privileged process would not follow.
add_executable(heddle_probe_program probe/helper/helper.c)
file(RELATIVE_PATH libexec_to_lib "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle" "${CMAKE_INSTALL_FULL_LIBDIR}")
target_include_directories(heddle_probe_program PRIVATE include)
target_compile_definitions(heddle_probe_program PRIVATE HEDDLE_PROBE_TO_LIBRARY="${libexec_to_lib}")
target_link_libraries(heddle_probe_program PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(heddle_probe_program PROPERTIES OUTPUT_NAME heddle-probe SKIP_BUILD_RPATH ON INSTALL_RPATH ""
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/libexec/heddle")
add_dependencies(heddle_probe heddle_probe_program)
install(TARGETS heddle_probe_program RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/heddle")
