# heddle-rpc, the program of heddle rpc-server and heddle rpc-tracker: TVM's RPC over libheddle_tvm (rpc/). A program of its own,
# so that neither the tool nor libheddle has it.
option(HEDDLE_RPC "Build the server and the tracker of TVM's RPC" ON)
if(NOT HEDDLE_RPC OR NOT HEDDLE_TVM)
  return()
endif()
file(GLOB rpc_sources CONFIGURE_DEPENDS rpc/*.c)
add_executable(heddle_rpc_program ${rpc_sources})
target_include_directories(heddle_rpc_program PRIVATE include ${PROJECT_SOURCE_DIR} modules/include)
target_link_libraries(heddle_rpc_program PRIVATE heddle heddle_tvm PkgConfig::JANSSON Threads::Threads)
file(RELATIVE_PATH libexec_to_lib "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle" "${CMAKE_INSTALL_FULL_LIBDIR}")
set_target_properties(heddle_rpc_program PROPERTIES OUTPUT_NAME heddle-rpc INSTALL_RPATH "$ORIGIN/${libexec_to_lib}"
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/libexec/heddle")
install(TARGETS heddle_rpc_program RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/heddle")

if(TARGET heddle_tool) # where the tool finds it, from its own folder, as it does heddle-check
  file(RELATIVE_PATH rpc_installed "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBEXECDIR}/heddle/heddle-rpc")
  if(NOT rpc_installed STREQUAL "../libexec/heddle/heddle-rpc") # the build tree has it in the same place
    get_filename_component(rpc_folder "${PROJECT_BINARY_DIR}/bin/${rpc_installed}" DIRECTORY)
    set_target_properties(heddle_rpc_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${rpc_folder}")
  endif()
  target_compile_definitions(heddle_tool PRIVATE HEDDLE_RPC_INSTALLED="${rpc_installed}")
  add_dependencies(heddle_tool heddle_rpc_program)
endif()

# libheddle_rpc.so, the client: heddle/rpc.h. It needs neither libheddle_tvm nor a device.
file(GLOB rpc_client_sources CONFIGURE_DEPENDS rpc/client/*.c)
add_library(heddle_rpc SHARED ${rpc_client_sources} rpc/wire.c rpc/packet.c)
add_library(heddle::heddle_rpc ALIAS heddle_rpc)
target_include_directories(heddle_rpc PRIVATE include ${PROJECT_SOURCE_DIR}
  INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(heddle_rpc PRIVATE heddle PkgConfig::JANSSON)
if(NOT HEDDLE_SANITIZE)
  target_link_options(heddle_rpc PRIVATE LINKER:-z,defs)
endif()
set_target_properties(heddle_rpc PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION 0 INSTALL_RPATH "$ORIGIN")
install(TARGETS heddle_rpc EXPORT heddle-targets LIBRARY)
