# heddle-device-server: a program of its own, so that neither the tool nor libheddle has OpenSSL. It looks inside libheddle, for
# the plugins' tables. What it shares with TVM's RPC is in rpc/.
if(NOT HEDDLE_REMOTE_BUILT)
  return()
endif()
file(GLOB server_sources CONFIGURE_DEPENDS remote/*.c plugins/common/remote/*.c)
add_executable(heddle_device_server ${server_sources} rpc/net.c rpc/child.c rpc/handles.c rpc/register.c
  plugins/remote/connect.c plugins/remote/tracker.c)
target_include_directories(heddle_device_server PRIVATE include ${PROJECT_SOURCE_DIR})
target_link_libraries(heddle_device_server PRIVATE heddle_internal OpenSSL::SSL OpenSSL::Crypto PkgConfig::JANSSON Threads::Threads)
set_target_properties(heddle_device_server PROPERTIES OUTPUT_NAME heddle-device-server
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/libexec")
install(TARGETS heddle_device_server RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}")
if(TARGET heddle_tool) # where the tool finds it, as it does heddle-rpc
  file(RELATIVE_PATH server_installed "${CMAKE_INSTALL_FULL_BINDIR}"
    "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle-device-server")
  if(NOT server_installed STREQUAL "../libexec/heddle-device-server")
    get_filename_component(server_folder "${PROJECT_BINARY_DIR}/bin/${server_installed}" DIRECTORY)
    set_target_properties(heddle_device_server PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${server_folder}")
  endif()
  target_compile_definitions(heddle_tool PRIVATE HEDDLE_DEVICE_SERVER_INSTALLED="${server_installed}")
  add_dependencies(heddle_tool heddle_device_server)
endif()
