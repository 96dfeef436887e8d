# HIP, which is opened at run time: nothing of AMD's is needed to build. Most of it is plugins/common/gpu.
# The program heddle-hiprtc, in which its compiler runs, is built with it.
set(plugin_gpu ON)
file(RELATIVE_PATH hiprtc_installed "${CMAKE_INSTALL_FULL_LIBDIR}/heddle/plugins"
  "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle/heddle-hiprtc")
set(plugin_definitions "HEDDLE_HIPRTC_INSTALLED=\"${hiprtc_installed}\"")

if(NOT TARGET heddle_hiprtc)
  add_executable(heddle_hiprtc "${CMAKE_CURRENT_SOURCE_DIR}/plugins/rocm/hiprtc/helper.c")
  target_link_libraries(heddle_hiprtc PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(heddle_hiprtc PROPERTIES OUTPUT_NAME heddle-hiprtc INSTALL_RPATH ""
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/libexec/heddle")
  install(TARGETS heddle_hiprtc RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/heddle")
endif()
