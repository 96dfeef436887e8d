# heddle_static_library(TARGET NAME KEPT OBJECT...): a static library libNAME.a of one object, in which only the symbols that
# match KEPT (a wildcard of objcopy) are global: libheddle and plugins share sources, and may all be in one program.
# Sections stay apart (--unique: those of one name too), so that the linker can drop what a program does not use
# (--gc-sections).
find_program(HEDDLE_OBJCOPY NAMES objcopy DOC "Makes names of static libraries local")
function(heddle_static_library target name kept)
  set(object "${PROJECT_BINARY_DIR}/static/${name}.o")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/static")
  add_custom_command(OUTPUT "${object}"
    COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -Wl,--unique -o "${object}.all" ${ARGN}
    COMMAND "${HEDDLE_OBJCOPY}" --wildcard "--keep-global-symbol=${kept}" "${object}.all" "${object}"
    DEPENDS ${ARGN} COMMENT "One object of lib${name}.a" COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(${target} STATIC "${object}")
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME ${name})
  foreach(objects IN LISTS ARGN) # make knows no rule for another target's file
    if(objects MATCHES "^\\$<TARGET_OBJECTS:(.*)>$")
      add_dependencies(${target} ${CMAKE_MATCH_1})
    endif()
  endforeach()
endfunction()
