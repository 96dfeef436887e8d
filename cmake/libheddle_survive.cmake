# libheddle_survive.so: what is done about a run that a device failed (executor/survive/), for models with a policy on that.
file(GLOB survive_sources CONFIGURE_DEPENDS executor/survive/*.c)
heddle_beside_library(heddle_survive executor/survive/libheddle_survive.map ${survive_sources})
target_link_libraries(heddle_survive PRIVATE PkgConfig::JANSSON Threads::Threads)
