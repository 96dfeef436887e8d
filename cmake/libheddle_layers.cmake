# libheddle_layers.so: what can be put between the core and a plugin (core/layers), which few processes do: opened when the
# setting "layers" says so.
file(GLOB layer_sources CONFIGURE_DEPENDS core/layers/*.c)
heddle_beside_library(heddle_layers core/layers/libheddle_layers.map ${layer_sources})
target_link_libraries(heddle_layers PRIVATE Threads::Threads)
