# jansson from its sources, HEDDLE_JANSSON_SOURCE, for C libraries that have no libjansson (musl): as the target
# PkgConfig::JANSSON, like the system's.
file(GLOB jansson_sources "${HEDDLE_JANSSON_SOURCE}/src/*.c")
if(NOT jansson_sources)
  message(FATAL_ERROR "HEDDLE_JANSSON_SOURCE is ${HEDDLE_JANSSON_SOURCE}, where there is no src/*.c of jansson.")
endif()
set(jansson_made "${PROJECT_BINARY_DIR}/jansson")
set(json_inline inline)
foreach(name IN ITEMS json_have_long_long json_have_localeconv json_have_atomic_builtins json_have_sync_builtins)
  set(${name} 1)
endforeach()
set(initial_hashtable_order 3)
set(json_parser_max_depth 2048)
configure_file("${HEDDLE_JANSSON_SOURCE}/src/jansson_config.h.in" "${jansson_made}/jansson_config.h" @ONLY)
file(WRITE "${jansson_made}/jansson_private_config.h" "#define HAVE_STDINT_H 1\n#define INITIAL_HASHTABLE_ORDER 3\n"
  "#define HAVE_SYS_TIME_H 1\n#define HAVE_GETTIMEOFDAY 1\n#define HAVE_GETPID 1\n#define HAVE_UNISTD_H 1\n"
  "#define HAVE_SYNC_BUILTINS 1\n#define HAVE_ATOMIC_BUILTINS 1\n#define HAVE_LOCALE_H 1\n#define HAVE_LOCALECONV 1\n")
configure_file("${HEDDLE_JANSSON_SOURCE}/src/jansson.h" "${jansson_made}/jansson.h" COPYONLY)
add_library(heddle_jansson STATIC ${jansson_sources})
target_include_directories(heddle_jansson SYSTEM PUBLIC "${jansson_made}")
target_compile_definitions(heddle_jansson PRIVATE HAVE_CONFIG_H _GNU_SOURCE)
target_compile_options(heddle_jansson PRIVATE -w -ffunction-sections -fdata-sections) # not our code
add_library(PkgConfig::JANSSON ALIAS heddle_jansson)
