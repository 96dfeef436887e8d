# heddle_static_library(TARGET NAME KEPT OBJECT...): a static library libNAME.a of one object, in which only the symbols that
# match KEPT (a wildcard of objcopy) are global: libheddle and plugins share sources, and may all be in one program.
# Sections stay apart, so that the linker can drop what a program does not use (--gc-sections).
find_program(HEDDLE_OBJCOPY NAMES objcopy DOC "Makes names of static libraries local")
function(heddle_static_library target name kept)
  set(object "${PROJECT_BINARY_DIR}/static/${name}.o")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/static")
  add_custom_command(OUTPUT "${object}"
    COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -o "${object}.all" ${ARGN}
    COMMAND "${HEDDLE_OBJCOPY}" --wildcard "--keep-global-symbol=${kept}" "${object}.all" "${object}"
    DEPENDS ${ARGN} COMMENT "One object of lib${name}.a" COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(${target} STATIC "${object}")
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME ${name})
endfunction()

# heddle_only_operators(LIST SOURCE TABLE): puts a copy of SOURCE into the place of it in LIST, whose table TABLE has the
# operators alone that the graphs of HEDDLE_OPERATORS_OF (graph JSON) use.
find_program(HEDDLE_PYTHON3 NAMES python3 DOC "Any Python 3, for the checks that need no packages")
set(HEDDLE_OPERATORS_OF "" CACHE STRING "Graph JSON files: only operators of theirs are in libheddle and in static plugins")
set(HEDDLE_ONLY_OPERATORS "${CMAKE_CURRENT_LIST_DIR}/only_operators.py")
function(heddle_only_operators list source table)
  get_filename_component(name "${source}" NAME)
  set(copy "${PROJECT_BINARY_DIR}/operators/${table}_${name}")
  execute_process(COMMAND "${HEDDLE_PYTHON3}" "${HEDDLE_ONLY_OPERATORS}" "${source}" ${table} "${copy}" ${HEDDLE_OPERATORS_OF}
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "The operators of ${HEDDLE_OPERATORS_OF} could not be chosen in ${source}.")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}" ${HEDDLE_OPERATORS_OF})
  set(kept ${${list}})
  list(REMOVE_ITEM kept "${source}")
  list(APPEND kept "${copy}")
  set(${list} ${kept} PARENT_SCOPE)
endfunction()
