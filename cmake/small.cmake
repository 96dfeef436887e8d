# heddle_small_link: options of the link that save relocations in libheddle and the cpu plugin; empty where the linker
# lacks them.
include(CheckLinkerFlag)
include(CheckCSourceCompiles)

# Calls within a library need no way out of it, and what is looked up at load needs no second table. Packed relative
# relocations take an eighth of the bytes, but glibc reads them from 2.36 on: an older one refuses such a library with
# the words "version `GLIBC_ABI_DT_RELR' not found". A package for older systems turns the option off.
option(HEDDLE_PACK_RELOCATIONS "Smaller libraries that need glibc 2.36 or newer to load, where this glibc is" ON)
set(heddle_small_link "")
check_linker_flag(C "LINKER:-Bsymbolic-functions,-z,now" HEDDLE_HAS_SYMBOLIC)
if(HEDDLE_HAS_SYMBOLIC AND NOT HEDDLE_SANITIZE)
  list(APPEND heddle_small_link "-Wl,-Bsymbolic-functions,-z,now")
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
