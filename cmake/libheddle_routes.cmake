# libheddle_routes.so: the self-test of routes and what is remembered of it (executor/routes/), for plans with crossings.
file(GLOB routes_sources CONFIGURE_DEPENDS executor/routes/*.c)
heddle_beside_library(heddle_routes executor/routes/libheddle_routes.map ${routes_sources} core/cache_folder.c
  plugins/common/cachefile.c)
target_link_libraries(heddle_routes PRIVATE PkgConfig::JANSSON)
