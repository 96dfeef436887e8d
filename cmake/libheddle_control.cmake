# libheddle_control.so: runs models with If, Loop and Scan in stages (control/), beside libheddle.
file(GLOB control_sources CONFIGURE_DEPENDS control/*.c)
heddle_beside_library(heddle_control control/libheddle_control.map ${control_sources})
target_link_libraries(heddle_control PRIVATE PkgConfig::JANSSON Threads::Threads)
