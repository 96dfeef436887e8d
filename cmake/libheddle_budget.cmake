# libheddle_budget.so: limits on devices' memory, and the search for plans that keep them (executor/budget/).
file(GLOB budget_sources CONFIGURE_DEPENDS executor/budget/*.c)
heddle_beside_library(heddle_budget executor/budget/libheddle_budget.map ${budget_sources})
target_link_libraries(heddle_budget PRIVATE PkgConfig::JANSSON)
