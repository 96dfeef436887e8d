# heddle-check, the conformance kit that "heddle check-plugin" starts: a program that knows plugins by heddle/plugin.h and
# links nothing of libheddle, but has its routine that cleans text, and the checks of plugins/common/check. It shares the arithmetic of plugins/common as its
# reference (cmake/parts.cmake), with
# all operators in the program itself.
file(GLOB check_sources CONFIGURE_DEPENDS conformance/*.c plugins/common/check/*.c)
add_executable(heddle_check ${check_sources} core/text.c $<TARGET_OBJECTS:heddle_operators>)
# Optimised, <stdio.h> defines putchar inline, and that file defines it again.
set_property(SOURCE conformance/interpose_state.c APPEND PROPERTY COMPILE_OPTIONS -fno-inline)
target_include_directories(heddle_check PRIVATE include ${PROJECT_SOURCE_DIR})
target_compile_definitions(heddle_check PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(heddle_check PRIVATE PkgConfig::JANSSON Threads::Threads ${CMAKE_DL_LIBS} m)
set_target_properties(heddle_check PROPERTIES OUTPUT_NAME heddle-check INSTALL_RPATH ""
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/libexec/heddle")
install(TARGETS heddle_check RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/heddle")

if(TARGET heddle_tool) # where the tool finds it, from its own folder
  file(RELATIVE_PATH check_installed "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle/heddle-check")
  if(NOT check_installed STREQUAL "../libexec/heddle/heddle-check") # the build tree has it in the same place
    get_filename_component(check_folder "${PROJECT_BINARY_DIR}/bin/${check_installed}" DIRECTORY)
    set_target_properties(heddle_check PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${check_folder}")
  endif()
  target_compile_definitions(heddle_tool PRIVATE HEDDLE_CHECK_INSTALLED="${check_installed}")
  add_dependencies(heddle_tool heddle_check)
endif()
