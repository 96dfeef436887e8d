# The remote protocol (plugins/common/remote) with TLS by OpenSSL, where cmake/remote.cmake found it.
if(HEDDLE_REMOTE_BUILT)
  file(GLOB remote_protocol CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugins/common/remote/*.c")
  list(APPEND sources ${remote_protocol})
  set(plugin_libraries OpenSSL::SSL OpenSSL::Crypto PkgConfig::JANSSON)
else()
  set(plugin_missing "${heddle_remote_missing}")
endif()
