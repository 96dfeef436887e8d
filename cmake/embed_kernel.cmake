# Kernel texts as C arrays.
#
# heddle_embed_kernels(OUT SCALARS FILE...) adds a rule that writes the C source OUT, which defines k_texts and k_text_count
# (see plugins/common/kernels/plan.h) with one entry a file, named after it; SCALARS (scalars.cmake) comes in front of
# elementwise.cl. A line #include "portable..." of a text is replaced by that file of its folder. The same file is the
# script of that rule.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(HEDDLE_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
  function(heddle_embed_kernels out scalars)
    string(REPLACE ";" "|" files "${ARGN}")
    list(GET ARGN 0 first)
    get_filename_component(folder "${first}" DIRECTORY)
    file(GLOB headers CONFIGURE_DEPENDS "${folder}/portable*")
    add_custom_command(OUTPUT "${out}"
      COMMAND "${CMAKE_COMMAND}" "-DOUT=${out}" "-DFILES=${files}" "-DSCALARS=${scalars}" -P "${HEDDLE_EMBED_SCRIPT}"
      DEPENDS ${ARGN} "${scalars}" ${headers} "${HEDDLE_EMBED_SCRIPT}"
      COMMENT "Embedding kernels" VERBATIM)
  endfunction()
  return()
endif()

string(REPLACE "|" ";" files "${FILES}")
set(arrays "")
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  get_filename_component(folder "${file}" DIRECTORY)
  file(READ "${file}" hex HEX)
  if(name STREQUAL "elementwise")
    file(READ "${SCALARS}" expressions HEX)
    string(PREPEND hex "${expressions}")
  endif()
  file(STRINGS "${file}" includes REGEX "^#include \"portable")
  foreach(line IN LISTS includes) # as bytes, since texts have what CMake's lists do not keep
    string(REGEX REPLACE "^#include \"(.*)\"" "\\1" included "${line}")
    string(HEX "${line}" line)
    file(READ "${folder}/${included}" included HEX)
    string(REPLACE "${line}" "${included}" hex "${hex}")
  endforeach()
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n  "
    bytes "${bytes}")
  string(APPEND arrays "static const char text_${name}[] = {\n  ${bytes}0};\n")
  string(APPEND entries "  {\"${name}\", text_${name}, sizeof text_${name} - 1},\n")
endforeach()
file(WRITE "${OUT}" "/* Generated from the kernels by cmake/embed_kernel.cmake. */\n"
  "#include \"plugins/common/kernels/plan.h\"\n\n"
  "extern const k_text k_texts[];\nextern const uint32_t k_text_count;\n\n"
  "${arrays}\nconst k_text k_texts[] = {\n${entries}};\n"
  "const uint32_t k_text_count = sizeof k_texts / sizeof k_texts[0];\n")
