# libheddle_weights.so: the cache of packed weights (executor/weights/), for models that pack much.
file(GLOB weights_sources CONFIGURE_DEPENDS executor/weights/*.c)
heddle_beside_library(heddle_weights executor/weights/libheddle_weights.map ${weights_sources} core/cache_folder.c
  plugins/common/cachefile.c)
target_link_libraries(heddle_weights PRIVATE PkgConfig::JANSSON)
