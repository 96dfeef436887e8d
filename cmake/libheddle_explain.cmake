# libheddle_explain.so: plans in words, as JSON and as pictures (executor/explain/), for whoever asks.
file(GLOB explain_sources CONFIGURE_DEPENDS executor/explain/*.c)
heddle_beside_library(heddle_explain executor/explain/libheddle_explain.map ${explain_sources})
target_link_libraries(heddle_explain PRIVATE PkgConfig::JANSSON)
