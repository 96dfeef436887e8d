# SPIR-V of shaders as C arrays.
#
# heddle_embed_spirv(OUT GLSLC FOLDER VARIANT...) adds the rules that compile each variant, a string "name source option...",
# of the folder's files with glslc, and write the C source OUT, which defines vlk_codes and vlk_code_count (see
# plugins/vulkan/shader.h) with one entry a variant. Sources may include any .glsl file of the folder, portable* beside
# them, and with an option -IFOLDER those of a folder of the build, which is relative to it and filled at configure time.
# The same file is the script of the last rule. SPIR-V is kept in HEDDLE_SPIRV_CACHE, where that is set: the presets have
# one together.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(HEDDLE_EMBED_SPIRV_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
  function(heddle_embed_spirv out glslc folder)
    file(GLOB includes CONFIGURE_DEPENDS "${folder}/*.glsl")
    get_filename_component(stem "${out}" NAME_WE)
    set(made "${PROJECT_BINARY_DIR}/${stem}")
    file(MAKE_DIRECTORY "${made}")
    set(files "")
    set(cached "")
    if(HEDDLE_SPIRV_CACHE)
      execute_process(COMMAND "${glslc}" --version OUTPUT_VARIABLE version)
      string(SHA1 version "${version}")
      set(cached "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/cached_spirv.sh" "${HEDDLE_SPIRV_CACHE}/${version}")
    endif()
    foreach(variant IN LISTS ARGN)
      string(REGEX MATCHALL "[^ ]+" words "${variant}")
      list(POP_FRONT words name source)
      get_filename_component(source_folder "${folder}/${source}" DIRECTORY)
      file(GLOB portable "${source_folder}/portable*")
      set(first "")
      if(cached)
        set(first ${cached} "${made}/${name}.spv" "${folder}" "${folder}/${source}")
      endif()
      set(built "")
      foreach(word IN LISTS words)
        if(word MATCHES "^-I(.+)$")
          file(GLOB built "${PROJECT_BINARY_DIR}/${CMAKE_MATCH_1}/*.glsl")
        endif()
      endforeach()
      add_custom_command(OUTPUT "${made}/${name}.spv"
        COMMAND ${first} "${glslc}" -Werror -I "${folder}" ${words} -o "${made}/${name}.spv" "${folder}/${source}"
        DEPENDS "${folder}/${source}" ${includes} ${built} ${portable} WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
        COMMENT "SPIR-V ${name}" VERBATIM)
      list(APPEND files "${made}/${name}.spv")
    endforeach()
    list(JOIN files "\n" lines)
    file(GENERATE OUTPUT "${made}/list.txt" CONTENT "${lines}\n") # too long for a command line
    add_custom_command(OUTPUT "${out}"
      COMMAND "${CMAKE_COMMAND}" "-DOUT=${out}" "-DLIST=${made}/list.txt" -P "${HEDDLE_EMBED_SPIRV_SCRIPT}"
      DEPENDS ${files} "${made}/list.txt" "${HEDDLE_EMBED_SPIRV_SCRIPT}"
      COMMENT "Embedding shaders" VERBATIM)
  endfunction()
  return()
endif()

file(STRINGS "${LIST}" files)
set(arrays "")
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" hex HEX)
  # Words of the file, which is little-endian, as the machines are that the library runs on.
  string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
  string(REGEX REPLACE "(........................................................................................)"
    "\\1\n  " words "${words}")
  string(APPEND arrays "static const uint32_t code_${name}[] = {\n  ${words}};\n")
  string(APPEND entries "    {\"${name}\", code_${name}, sizeof code_${name}},\n")
endforeach()
file(WRITE "${OUT}" "/* Generated from the shaders by cmake/embed_spirv.cmake. */\n"
  "#include \"plugins/vulkan/shader.h\"\n\n"
  "extern const vlk_code vlk_codes[];\nextern const uint32_t vlk_code_count;\n\n"
  "${arrays}\nconst vlk_code vlk_codes[] = {\n${entries}};\n"
  "const uint32_t vlk_code_count = sizeof vlk_codes / sizeof vlk_codes[0];\n")
