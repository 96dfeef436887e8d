# heddle-probe, the program in which plugins are tried before they are loaded (core/probe/). It opens libheddle by its path: no
# run path, which a privileged process would not follow.
if(NOT HEDDLE_PROBE)
  return()
endif()
add_executable(heddle_probe_program core/probe/helper/helper.c)
file(RELATIVE_PATH libexec_to_lib "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle" "${CMAKE_INSTALL_FULL_LIBDIR}")
target_include_directories(heddle_probe_program PRIVATE include)
target_compile_definitions(heddle_probe_program PRIVATE HEDDLE_PROBE_TO_LIBRARY="${libexec_to_lib}")
target_link_libraries(heddle_probe_program PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(heddle_probe_program PROPERTIES OUTPUT_NAME heddle-probe SKIP_BUILD_RPATH ON INSTALL_RPATH ""
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/libexec/heddle")
install(TARGETS heddle_probe_program RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/heddle")
