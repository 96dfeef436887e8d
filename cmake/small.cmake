# What keeps libheddle and the cpu plugin small without loss: heddle_small_code, for what is rarely hot, and
# heddle_small_link. Both are empty where compiler or linker lacks what they need.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckCSourceCompiles)

check_c_compiler_flag(-Oz HEDDLE_HAS_OZ)
set(heddle_small_code "-Os")
if(HEDDLE_HAS_OZ)
  set(heddle_small_code "-Oz")
endif()
list(APPEND heddle_small_code "-fno-jump-tables") # comparisons take fewer bytes than tables of four for each case

# Calls within a library need no way out of it, and what is looked up at load needs no second table. Packed relative
# relocations take an eighth of the bytes, but glibc reads them from 2.36 on: an older one refuses such a library with
# the words "version `GLIBC_ABI_DT_RELR' not found". A package for older systems turns the option off.
option(HEDDLE_PACK_RELOCATIONS "Smaller libraries that need glibc 2.36 or newer to load, where this glibc is" ON)
set(heddle_small_link "")
check_linker_flag(C "LINKER:-Bsymbolic-functions,-z,now" HEDDLE_HAS_SYMBOLIC)
if(HEDDLE_HAS_SYMBOLIC AND NOT HEDDLE_SANITIZE)
  list(APPEND heddle_small_link "-Wl,-Bsymbolic-functions,-z,now")
endif()
check_linker_flag(C "LINKER:--no-eh-frame-hdr" HEDDLE_HAS_NO_EH_HEADER) # an index of unwind tables, which there are not
if(HEDDLE_HAS_NO_EH_HEADER AND NOT HEDDLE_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  list(APPEND heddle_small_link "-Wl,--no-eh-frame-hdr")
endif()
if(HEDDLE_PACK_RELOCATIONS)
  check_linker_flag(C "LINKER:-z,pack-relative-relocs" HEDDLE_HAS_PACKED)
  check_c_source_compiles("
#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error older
#endif
int main(void) { return 0; }" HEDDLE_GLIBC_2_36)
  if(HEDDLE_HAS_PACKED AND HEDDLE_GLIBC_2_36)
    list(APPEND heddle_small_link "-Wl,-z,pack-relative-relocs")
  endif()
endif()
