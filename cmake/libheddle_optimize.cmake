# libheddle_optimize.so: rewrites graphs before they are placed (optimize/), for models that ask.
file(GLOB optimize_sources CONFIGURE_DEPENDS optimize/*.c)
heddle_beside_library(heddle_optimize optimize/libheddle_optimize.map ${optimize_sources})
target_link_libraries(heddle_optimize PRIVATE PkgConfig::JANSSON m)
