# heddle-probe, the program in which plugins are tried before they are loaded (probe/).
if(NOT HEDDLE_PROBE)
  return()
endif()
add_executable(heddle_probe_program probe/helper/helper.c)
target_link_libraries(heddle_probe_program PRIVATE heddle)
file(RELATIVE_PATH libexec_to_lib "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle" "${CMAKE_INSTALL_FULL_LIBDIR}")
set_target_properties(heddle_probe_program PROPERTIES OUTPUT_NAME heddle-probe INSTALL_RPATH "$ORIGIN/${libexec_to_lib}"
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/libexec/heddle")
if(libexec_to_lib STREQUAL "../../lib") # the same in both trees; CMake would pad it with an empty entry
  set_property(TARGET heddle_probe_program PROPERTY BUILD_WITH_INSTALL_RPATH ON)
endif()
install(TARGETS heddle_probe_program RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/heddle")
