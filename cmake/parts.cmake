# The parts of libheddle that a build may leave out: HEDDLE_X=OFF leaves out the part X, and what would need it fails
# with a sentence that names the option (core/parts.h). Sets heddle_part_sources, heddle_part_definitions and
# heddle_part_needs; the reader of ONNX models sets HEDDLE_ONNX_BUILT too.
set(heddle_part_sources "")
set(heddle_part_definitions "")
set(heddle_part_needs "")

# heddle_part(NAME TEXT PATTERN...): an option, on by default, and the sources of the part.
macro(heddle_part name text)
  option(HEDDLE_${name} "${text}" ON)
  if(HEDDLE_${name})
    foreach(pattern IN ITEMS ${ARGN})
      file(GLOB part_sources CONFIGURE_DEPENDS "${pattern}")
      list(APPEND heddle_part_sources ${part_sources})
    endforeach()
    list(APPEND heddle_part_definitions HEDDLE_HAS_${name}=1)
  else()
    list(APPEND heddle_part_definitions HEDDLE_HAS_${name}=0)
  endif()
endmacro()

heddle_part(BATCH "Batchers: requests gathered into runs" batch/*.c)
heddle_part(BUDGET "Limits on devices' memory" executor/budget/*.c)
heddle_part(CONFIG "Configuration files, settings as plugins describe them, warnings of settings that nothing reads")
heddle_part(CONTROL "Models with If, Loop, Scan, or shapes that only a run gives" executor/control/*.c)
heddle_part(DIMENSIONS "Numbers for the dimensions of a graph that have names")
heddle_part(DLOPEN "Plugins in files; OFF: only those that are linked in")
heddle_part(EXPLAIN "Plans as text, JSON and pictures" executor/explain/*.c)
heddle_part(FUSION "Regions of several nodes, as plugins propose them")
heddle_part(GENERATE "Generators: tokens of language models" generate/*.c)
heddle_part(IN_FLIGHT "Executors with several runs in flight")
heddle_part(LANES "Loops for the widest vectors of the CPU, chosen at run time")
heddle_part(LAYERS "The layers check, fault and log" core/layers/*.c)
heddle_part(OPTIMIZE "Graphs are rewritten before they are placed, where that is asked for" graph/optimize/*.c)
heddle_part(PACKAGES "Packages are read: a graph with its parameters in one file, or in the program")
heddle_part(PLACE "Automatic placement" executor/place/*.c)
heddle_part(PROBE "Plugins are tried before they are loaded; manifests" core/probe/*.c)
heddle_part(PROFILE "Times of steps, and traces")
heddle_part(RANGES "Programs that cover ranges of shapes; OFF: one for each set of shapes")
heddle_part(RANKS "One graph over the ranks of a communicator" executor/ranks/*.c)
heddle_part(RARE_OPERATORS "Operators that plugins/common/more infers" graph/general/*.c)
heddle_part(ROUTES "The self-test of routes between devices" executor/routes/*.c)
heddle_part(STATE "State values: outputs of a run that are inputs of the next one")
heddle_part(STREAMS "Callers' streams, and runs of several executors that events order" core/trail/*.c executor/chain/*.c)
heddle_part(SURVIVE "Retry and failover of failed runs" executor/survive/*.c)
heddle_part(WEIGHTS "The cache of packed weights" executor/weights/*.c)
heddle_part(TVM "libheddle_tvm: libraries that TVM compiled, and TVM's C API")

# Plugins and their kernels know two of them.
foreach(part IN ITEMS FUSION LANES)
  if(NOT HEDDLE_${part})
    add_compile_definitions(HEDDLE_NO_${part})
  endif()
endforeach()

if(HEDDLE_RANKS AND NOT HEDDLE_CONTROL)
  message(FATAL_ERROR "HEDDLE_CONTROL is OFF, and HEDDLE_RANKS needs it: give -DHEDDLE_RANKS=OFF too.")
endif()

# Both open files of code, the second in a process of its own.
foreach(part IN ITEMS TVM PROBE)
  if(HEDDLE_${part} AND NOT HEDDLE_DLOPEN)
    message(FATAL_ERROR "HEDDLE_DLOPEN is OFF, and HEDDLE_${part} needs it: give -DHEDDLE_${part}=OFF too.")
  endif()
endforeach()

# ---- Packing (modules/pack) is part of libheddle_tvm: it needs the header of libelf, and opens libelf.so.1 when it packs.
set(HEDDLE_PACK AUTO CACHE STRING "heddle pack and heddle unpack: AUTO, ON or OFF")
set_property(CACHE HEDDLE_PACK PROPERTY STRINGS AUTO ON OFF)
set(HEDDLE_PACK_BUILT OFF)
if(HEDDLE_PACK AND HEDDLE_TVM)
  find_path(HEDDLE_LIBELF_INCLUDE NAMES libelf.h PATH_SUFFIXES libelf DOC "The folder of libelf.h")
  mark_as_advanced(HEDDLE_LIBELF_INCLUDE)
  if(HEDDLE_LIBELF_INCLUDE)
    set(HEDDLE_PACK_BUILT ON)
  elseif(HEDDLE_PACK STREQUAL "AUTO")
    message(STATUS "Models are not packed: libelf.h is not installed (libelf-dev).")
  else()
    message(FATAL_ERROR "HEDDLE_PACK is ON, but libelf.h is not installed (libelf-dev).")
  endif()
endif()

# ---- Signatures and encryption of files (core/sign): libsodium, which libheddle is linked to.
set(HEDDLE_SODIUM AUTO CACHE STRING "Signed and encrypted models, by libsodium: AUTO, ON or OFF")
set_property(CACHE HEDDLE_SODIUM PROPERTY STRINGS AUTO ON OFF)
set(HEDDLE_SODIUM_BUILT OFF)
if(HEDDLE_SODIUM)
  pkg_check_modules(SODIUM IMPORTED_TARGET libsodium>=1.0.17)
  if(SODIUM_FOUND)
    set(HEDDLE_SODIUM_BUILT ON)
  elseif(HEDDLE_SODIUM STREQUAL "AUTO")
    message(STATUS "Models are not signed or encrypted: libsodium is not installed (libsodium-dev).")
  else()
    message(FATAL_ERROR "HEDDLE_SODIUM is ON, but libsodium is not installed (libsodium-dev).")
  endif()
endif()
if(HEDDLE_SODIUM_BUILT)
  file(GLOB part_sources CONFIGURE_DEPENDS core/sign/*.c)
  list(APPEND heddle_part_sources ${part_sources})
  list(APPEND heddle_part_definitions HEDDLE_HAS_SODIUM=1)
  list(APPEND heddle_part_needs PkgConfig::SODIUM)
else()
  list(APPEND heddle_part_definitions HEDDLE_HAS_SODIUM=0)
endif()

# ---- ONNX: the reader needs protobuf-c, and a schema: onnx.proto of Debian's libonnx-dev or of the Python package onnx.
set(HEDDLE_ONNX AUTO CACHE STRING "The reader of ONNX models: AUTO, ON or OFF")
set_property(CACHE HEDDLE_ONNX PROPERTY STRINGS AUTO ON OFF)
set(HEDDLE_ONNX_BUILT OFF)
set(heddle_onnx_made "")
if(HEDDLE_ONNX)
  pkg_check_modules(PROTOBUF_C IMPORTED_TARGET libprotobuf-c)
  find_program(HEDDLE_PROTOC_C NAMES protoc-c DOC "protobuf-c's compiler of schemas")
  file(GLOB onnx_packages "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/onnx")
  find_file(HEDDLE_ONNX_PROTO NAMES onnx.proto PATH_SUFFIXES onnx PATHS ${onnx_packages} DOC "The schema of ONNX models")
  set(onnx_missing "")
  if(NOT PROTOBUF_C_FOUND OR NOT HEDDLE_PROTOC_C)
    set(onnx_missing "protobuf-c is not installed (libprotobuf-c-dev, protobuf-c-compiler)")
  elseif(NOT HEDDLE_ONNX_PROTO)
    set(onnx_missing "onnx.proto is not found (libonnx-dev, or the Python package onnx)")
  endif()
  if(NOT onnx_missing)
    set(HEDDLE_ONNX_BUILT ON)
  elseif(HEDDLE_ONNX STREQUAL "AUTO")
    message(STATUS "ONNX models are not read: ${onnx_missing}.")
  else()
    message(FATAL_ERROR "HEDDLE_ONNX is ON, but ${onnx_missing}.")
  endif()
endif()
if(HEDDLE_ONNX_BUILT)
  set(heddle_onnx_made "${PROJECT_BINARY_DIR}/onnx")
  get_filename_component(onnx_schema_folder "${HEDDLE_ONNX_PROTO}" DIRECTORY)
  file(MAKE_DIRECTORY "${heddle_onnx_made}")
  add_custom_command(OUTPUT "${heddle_onnx_made}/onnx.pb-c.c" "${heddle_onnx_made}/onnx.pb-c.h"
    COMMAND "${HEDDLE_PROTOC_C}" "--c_out=${heddle_onnx_made}" "-I${onnx_schema_folder}" "${HEDDLE_ONNX_PROTO}"
    DEPENDS "${HEDDLE_ONNX_PROTO}" COMMENT "The schema of ONNX models as C" VERBATIM)
  set_source_files_properties("${heddle_onnx_made}/onnx.pb-c.c" PROPERTIES COMPILE_OPTIONS "-w") # not our code
  file(GLOB part_sources CONFIGURE_DEPENDS frontends/onnx/*.c)
  list(APPEND heddle_part_sources ${part_sources} "${heddle_onnx_made}/onnx.pb-c.c" "${heddle_onnx_made}/onnx.pb-c.h")
  list(APPEND heddle_part_definitions HEDDLE_HAS_ONNX=1)
  list(APPEND heddle_part_needs PkgConfig::PROTOBUF_C)
else()
  list(APPEND heddle_part_definitions HEDDLE_HAS_ONNX=0)
endif()

# ---- The reference kernels of all operators and their table, compiled once: for libheddle, which infers and folds with
# them, heddle-check, and the plugins that use them.
file(GLOB operator_sources CONFIGURE_DEPENDS
  operators/*.c plugins/common/*.c plugins/common/ref/*.c plugins/common/more/*.c)

# With HEDDLE_OPERATORS_OF every table is made of a shorter operators/all.def, which is found first; without rare operators
# the general kernels are left out too.
find_program(HEDDLE_PYTHON3 NAMES python3 DOC "Any Python 3, for the checks that need no packages")
set(HEDDLE_OPERATORS_OF "" CACHE STRING "Graph JSON files: only operators that they use are built")
set(operator_definitions "")
if(HEDDLE_OPERATORS_OF)
  set(kernels all)
  if(NOT HEDDLE_RARE_OPERATORS)
    set(kernels fast)
    list(FILTER operator_sources EXCLUDE REGEX "/plugins/common/more/")
    set(operator_definitions HEDDLE_NO_GENERAL)
  endif()
  set(fused FusedElementwise)
  if(NOT HEDDLE_FUSION)
    set(fused "")
  endif()
  execute_process(COMMAND "${HEDDLE_PYTHON3}" "${CMAKE_CURRENT_LIST_DIR}/only_operators.py" "${PROJECT_SOURCE_DIR}/operators"
    "${PROJECT_BINARY_DIR}/chosen/operators/all.def" ${kernels} "${fused}" ${HEDDLE_OPERATORS_OF} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "The operators of ${HEDDLE_OPERATORS_OF} could not be chosen.")
  endif()
  file(GLOB operator_lines CONFIGURE_DEPENDS operators/*.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${operator_lines} ${HEDDLE_OPERATORS_OF})
  include_directories(BEFORE "${PROJECT_BINARY_DIR}/chosen")
endif()
# Another folder "operators", with entries of one's own: every table and text is made of its files.
set(HEDDLE_OPERATORS_DIR "" CACHE PATH "A folder named operators, to be used instead of operators/")
if(HEDDLE_OPERATORS_DIR)
  if(NOT HEDDLE_OPERATORS_DIR MATCHES "/operators$")
    message(FATAL_ERROR "HEDDLE_OPERATORS_DIR is ${HEDDLE_OPERATORS_DIR}; sources include operators/all.def, so the folder must be "
      "called operators, without a slash behind.")
  endif()
  get_filename_component(operators_root "${HEDDLE_OPERATORS_DIR}" DIRECTORY)
  include_directories(BEFORE "${operators_root}")
endif()
add_library(heddle_operators OBJECT ${operator_sources})
target_include_directories(heddle_operators PRIVATE include ${PROJECT_SOURCE_DIR})
target_compile_definitions(heddle_operators PRIVATE ${operator_definitions})
target_compile_options(heddle_operators PRIVATE -fno-math-errno -ffunction-sections -fdata-sections)
set_target_properties(heddle_operators PROPERTIES C_VISIBILITY_PRESET hidden)
set_property(SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/quantize.c"
  "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/rnn_fast.c" "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/rows.c"
  "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/nbits.c" "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/nbits_lanes.c"
  "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/nbits_tiles.c" "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/nbits_unit.c"
  "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/experts.c" "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/gqa_fast.c"
  "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/norm_fast.c"
  "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/rotary.c"
  "${CMAKE_CURRENT_SOURCE_DIR}/plugins/common/more/fft.c" APPEND PROPERTY COMPILE_OPTIONS
  "$<$<CONFIG:Release>:-O3;-fno-trapping-math>") # loops that are to become vectors
