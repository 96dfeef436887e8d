# libheddle_place.so: automatic placement (executor/placement/), for models that ask for it.
file(GLOB place_sources CONFIGURE_DEPENDS executor/placement/*.c)
heddle_beside_library(heddle_place executor/placement/libheddle_place.map ${place_sources} core/cache_folder.c
  plugins/common/cachefile.c)
target_link_libraries(heddle_place PRIVATE PkgConfig::JANSSON m)
