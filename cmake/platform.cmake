# Refuses, with a sentence, what Heddle does not run on.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "Heddle runs on Linux only; this build is for ${CMAKE_SYSTEM_NAME}.")
endif()

if(CMAKE_C_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "Heddle runs on little-endian processors only; ${CMAKE_SYSTEM_PROCESSOR} is big-endian.")
endif()

include(CheckCSourceCompiles)
check_c_source_compiles("
#include <features.h>
#ifndef __GLIBC__
#error no glibc
#endif
int main(void) { return 0; }" HEDDLE_GLIBC)
if(NOT HEDDLE_GLIBC AND (HEDDLE_DLOPEN OR NOT DEFINED HEDDLE_DLOPEN)) # musl: static programs only
  message(FATAL_ERROR "Heddle needs glibc; with another C library it is built for static programs (HEDDLE_DLOPEN=OFF).")
endif()
