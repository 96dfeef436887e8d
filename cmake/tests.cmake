# Registers the tests with CTest.
#
#   tests/FOLDER/test_NAME.c             a cmocka program on tests/cases.h; one test a case, FOLDER/NAME/CASE, and
#                                        FOLDER/NAME@opencl, @vulkan, @cuda and @rocm, with that label, for those that
#                                        run there too: all of them in one process, which starts the driver once
#   tests/{python,oracle,conformance}/test_NAME.py   one test a file, FOLDER/NAME, by pytest
#   bindings/python/tests/test_NAME.py   one test a file, bindings-python/NAME, by pytest, with the package of the build;
#                                        label python, and libheddle is in their process as with "ctypes"
#   tests/FOLDER/CMakeLists.txt          anything else
#
# Each test has its folder as a label. A source may add to that, in its first 20 lines, with "labels: slow threads" and
# "timeout: 600" (seconds). The label "serial" makes a test run alone; "slow" is left out of the sanitizer runs,
# "soak" also of scripts/test (a label of minutes, for scripts/soak), "installed" is for what needs an installation, which
# .ci/run tests on the release build, "alone" gives each case on a driver a process of its own, as where a case counts what
# a process has, and "together" has all of a C file in one process: FOLDER/NAME/together,
# "threads" is what the ThreadSanitizer run takes, and a Python file with "ctypes" has libheddle in its own process, so
# that AddressSanitizer must be there before Python is.
#
# What PoCL's and Mesa's compilers made is kept in HEDDLE_DRIVER_CACHE: most of the time of those tests is theirs, and it
# is the same for every build of ours, so the presets have one together.
set(HEDDLE_DRIVER_CACHE "${PROJECT_BINARY_DIR}/tests/drivers" CACHE PATH "Where tests let OpenCL's and Vulkan's drivers cache")
file(MAKE_DIRECTORY "${HEDDLE_DRIVER_CACHE}/pocl" "${HEDDLE_DRIVER_CACHE}/mesa")
set(test_environment "HEDDLE_BUILD=${PROJECT_BINARY_DIR}" "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/tests/cache"
  "HEDDLE_ROUTES_TEST=0" "HEDDLE_PROBE=off" "POCL_CACHE_DIR=${HEDDLE_DRIVER_CACHE}/pocl"
  "MESA_SHADER_CACHE_DIR=${HEDDLE_DRIVER_CACHE}/mesa" "MESA_GLSL_CACHE_DIR=${HEDDLE_DRIVER_CACHE}/mesa")
if(HEDDLE_SANITIZE)
  # use_sigaltstack=0: PoCL's compiler takes over the signal stack that AddressSanitizer gives to each thread and frees.
  # quarantine_size_mb: what is freed comes back after 16 MB more, not after 256, which touch a new page for every array
  # and make the Python tests take three times as long.
  # intercept_tls_get_addr=0: what the sanitizer notes of a block of thread-local memory that begins 16 bytes behind a page is
  # not a block, and LeakSanitizer dies of it ("Tracer caught signal 11"). Without it the loader's blocks count as reachable.
  list(APPEND test_environment "HEDDLE_SANITIZE=${HEDDLE_SANITIZE}"
    "UBSAN_OPTIONS=print_stacktrace=1" "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:use_sigaltstack=0:quarantine_size_mb=16:intercept_tls_get_addr=0"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0")
endif()

# ---- C programs --------------------------------------------------------------------------------------------------
# heddle_c_test(FOLDER SOURCE [LIBRARY...]): also for the CMakeLists.txt of a test folder.
function(heddle_c_test folder source)
  get_filename_component(source "${source}" ABSOLUTE)
  get_filename_component(name "${source}" NAME_WE)
  string(REGEX REPLACE "^test_" "" name "${name}")
  set(target test_${folder}_${name})
  set(found "${PROJECT_BINARY_DIR}/tests/${target}_cases.cmake")
  set(wrapper "${PROJECT_BINARY_DIR}/tests/${target}.cmake")

  string(REPLACE "," "$<COMMA>" sanitize "${HEDDLE_SANITIZE}") # "address,undefined"
  add_executable(${target} "${source}")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${target} PRIVATE
    HEDDLE_TEST_BUILD="${PROJECT_BINARY_DIR}" HEDDLE_TEST_SOURCE="${PROJECT_SOURCE_DIR}"
    $<$<IN_LIST:opencl,${HEDDLE_BUILT_PLUGINS}>:HEDDLE_TEST_OPENCL>
    $<$<IN_LIST:vulkan,${HEDDLE_BUILT_PLUGINS}>:HEDDLE_TEST_VULKAN>
    # On their doubles, whose kernels PoCL runs: which ThreadSanitizer cannot look into.
    $<$<AND:$<IN_LIST:cuda,${HEDDLE_BUILT_PLUGINS}>,$<NOT:$<STREQUAL:${sanitize},thread>>>:HEDDLE_TEST_CUDA>
    $<$<AND:$<IN_LIST:rocm,${HEDDLE_BUILT_PLUGINS}>,$<NOT:$<STREQUAL:${sanitize},thread>>>:HEDDLE_TEST_ROCM>)
  target_link_libraries(${target} PRIVATE heddle_tvm_blob heddle_internal heddle_dlpack PkgConfig::CMOCKA ${ARGN})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:${target}>" "-DSOURCE=${source}"
      "-DPREFIX=${folder}/${name}" "-DFOLDER=${folder}" "-DOUT=${found}" "-DENVIRONMENT=${test_environment}"
      -P "${PROJECT_SOURCE_DIR}/cmake/discover_cases.cmake"
    BYPRODUCTS "${found}" VERBATIM)
  file(WRITE "${wrapper}" "if(EXISTS \"${found}\")\n  include(\"${found}\")\nelse()\n"
    "  add_test(${folder}/${name}/NOT_BUILT \"${target}-is-not-built\")\nendif()\n")
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY TEST_INCLUDE_FILES "${wrapper}")
endfunction()

pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(NOT CMOCKA_FOUND)
  message(FATAL_ERROR "The tests need cmocka, which is not installed: scripts/setup installs it. To build without tests, "
    "configure with -DHEDDLE_TESTS=OFF.")
endif()
file(GLOB c_tests CONFIGURE_DEPENDS tests/*/test_*.c)
foreach(source IN LISTS c_tests)
  get_filename_component(folder "${source}" DIRECTORY)
  get_filename_component(folder "${folder}" NAME)
  heddle_c_test(${folder} "${source}")
endforeach()

# ---- Python files ------------------------------------------------------------------------------------------------
include(cmake/test_properties.cmake)
set(has_pytest 1)
if(EXISTS "${HEDDLE_PYTHON}")
  execute_process(COMMAND "${HEDDLE_PYTHON}" -c "import pytest" RESULT_VARIABLE has_pytest OUTPUT_QUIET ERROR_QUIET)
endif()
if(NOT has_pytest EQUAL 0)
  message(FATAL_ERROR "The tests need pytest, which ${HEDDLE_PYTHON} (HEDDLE_PYTHON) does not have: scripts/setup "
    "installs it. To build without tests, configure with -DHEDDLE_TESTS=OFF.")
endif()
# A test with the label "ctypes" loads libheddle into Python, which then needs the sanitizer's run time in front, and the
# C++ library behind it: without one at the start the sanitizer dies where an extension (onnx) throws. What Python itself
# leaks is not ours to report.
set(in_python "")
if(HEDDLE_SANITIZE MATCHES "address")
  execute_process(COMMAND "${CMAKE_C_COMPILER}" -print-file-name=libasan.so OUTPUT_VARIABLE asan_runtime
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(in_python ";LD_PRELOAD=${asan_runtime}:libstdc++.so.6;ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:use_sigaltstack=0:quarantine_size_mb=16")
endif()
file(GLOB python_tests CONFIGURE_DEPENDS tests/python/test_*.py tests/oracle/test_*.py tests/conformance/test_*.py)
if(HEDDLE_PYTHON_BUILT)
  file(GLOB binding_tests CONFIGURE_DEPENDS bindings/python/tests/test_*.py)
  list(APPEND python_tests ${binding_tests})
endif()
foreach(source IN LISTS python_tests)
  get_filename_component(folder "${source}" DIRECTORY)
  get_filename_component(folder "${folder}" NAME)
  set(path "${PROJECT_SOURCE_DIR}/tests")
  if(source MATCHES "/bindings/python/tests/")
    set(folder bindings-python)
    set(path "${HEDDLE_PYTHON_PACKAGE}/..:${PROJECT_SOURCE_DIR}/bindings/python/tests:${path}")
  endif()
  get_filename_component(name "${source}" NAME_WE)
  string(REGEX REPLACE "^test_" "" name "${name}")
  heddle_read_test_words("${source}" ${folder} 900)
  set(serial OFF)
  if("serial" IN_LIST test_labels)
    set(serial ON)
  endif()
  set(more "")
  if(folder STREQUAL "bindings-python")
    list(APPEND test_labels python ctypes)
  endif()
  if("ctypes" IN_LIST test_labels)
    set(more "${in_python}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  add_test(NAME ${folder}/${name}
    COMMAND "${HEDDLE_PYTHON}" -m pytest -q -p no:cacheprovider -p skips "${source}"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${folder}/${name} PROPERTIES TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77
    RUN_SERIAL ${serial} LABELS "${test_labels}" COST 1 # before the C cases, which are short and fill the end
    ENVIRONMENT "${test_environment};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${path}${more}")
endforeach()

# ---- Public headers, each alone ----------------------------------------------------------------------------------
set(alone "-fsyntax-only" "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/modules/include" -Wall -Wextra -Wpedantic -Werror)
file(GLOB headers RELATIVE "${PROJECT_SOURCE_DIR}/include" CONFIGURE_DEPENDS include/heddle/*.h include/tvm/runtime/c_*.h)
foreach(header IN LISTS headers)
  get_filename_component(name "${header}" NAME_WE)
  set(unit "${PROJECT_BINARY_DIR}/tests/header/${name}")
  foreach(language c cc)
    file(CONFIGURE OUTPUT "${unit}.${language}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  endforeach()
  add_test(NAME header/${name}/c11 COMMAND "${CMAKE_C_COMPILER}" -std=c11 ${alone} "${unit}.c")
  set(registered header/${name}/c11)
  if(HEDDLE_CXX_COMPILER)
    add_test(NAME header/${name}/cxx17 COMMAND "${HEDDLE_CXX_COMPILER}" -std=c++17 ${alone} "${unit}.cc")
    list(APPEND registered header/${name}/cxx17)
  endif()
  if(name STREQUAL "plugin")
    add_test(NAME header/plugin/padded COMMAND "${CMAKE_C_COMPILER}" -std=c11 ${alone} -Wpadded "${unit}.c")
    list(APPEND registered header/plugin/padded)
  endif()
  set_tests_properties(${registered} PROPERTIES LABELS header TIMEOUT 120)
endforeach()
# Those in C++: the two that programs include, alone and in the newest standard; tests/cpp compiles both in C++17, with
# exceptions and without. Their parts and the standards between are for scripts/soak.
if(HEDDLE_HAS_CXX)
  set(strict ${alone} -Wshadow -Wconversion)
  function(heddle_header_test name unit labels)
    add_test(NAME header/${name} COMMAND "${HEDDLE_CXX_COMPILER}" ${ARGN} ${strict} "${unit}")
    set_tests_properties(header/${name} PROPERTIES LABELS "header;slow${labels}" TIMEOUT 120)
  endfunction()
  set(whole "${PROJECT_BINARY_DIR}/tests/header/whole.cc")
  file(CONFIGURE OUTPUT "${whole}" CONTENT "#include \"heddle/heddle.hpp\"\n#include \"heddle/function.hpp\"\n")
  heddle_header_test(cxx17 "${whole}" ";soak" -std=c++17)
  heddle_header_test(cxx20 "${whole}" ";soak" -std=c++20)
  heddle_header_test(cxx2b "${whole}" "" -std=c++2b)
  file(GLOB headers RELATIVE "${PROJECT_SOURCE_DIR}/include" CONFIGURE_DEPENDS include/heddle/*.hpp include/heddle/cpp/*.hpp)
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" name "${header}")
    set(unit "${PROJECT_BINARY_DIR}/tests/header/${name}.cc")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    get_filename_component(name "${header}" NAME)
    set(labels "")
    if(header MATCHES "/cpp/")
      set(labels ";soak")
    endif()
    heddle_header_test(${name} "${unit}" "${labels}" -std=c++17 -fno-exceptions -fno-rtti)
  endforeach()
  # Those for programs of TVM's C++ runtime, but for the parts of packed_func.h.
  file(GLOB headers RELATIVE "${PROJECT_SOURCE_DIR}/include" CONFIGURE_DEPENDS
    include/tvm/runtime/*.h include/tvm/runtime/container/*.h include/dmlc/*.h)
  list(FILTER headers EXCLUDE REGEX "/c_[a-z_]*_api.h$")
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" name "${header}")
    set(unit "${PROJECT_BINARY_DIR}/tests/header/${name}.cc")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    heddle_header_test(${name} "${unit}" ";soak" -std=c++14)
  endforeach()
  set(unit "${PROJECT_BINARY_DIR}/tests/header/tvm_runtime_tvm_runtime_pack.h.cc")
  heddle_header_test(tvm_cxx14 "${unit}" "" -std=c++14)
  heddle_header_test(tvm_cxx20 "${unit}" "" -std=c++20)
endif()

# ---- Symbols and the shape of the tree ---------------------------------------------------------------------------
find_program(HEDDLE_PYTHON3 NAMES python3 DOC "Any Python 3, for the checks that need no packages")
if(HEDDLE_PYTHON3 AND CMAKE_NM)
  set(check "${HEDDLE_PYTHON3}" "${PROJECT_SOURCE_DIR}/tests/abi/check_symbols.py" --nm "${CMAKE_NM}")
  add_test(NAME abi/public-symbols COMMAND ${check} library $<TARGET_FILE:heddle>
    "${PROJECT_SOURCE_DIR}/tests/abi/public-symbols.txt")
  add_test(NAME abi/tvm-symbols COMMAND ${check} tvm $<TARGET_FILE:heddle_tvm>
    "${PROJECT_SOURCE_DIR}/tests/abi/tvm-symbols.txt")
  set(registered abi/public-symbols abi/tvm-symbols)
  if(TARGET heddle_tvm_cxx)
    add_test(NAME abi/tvm-cxx-symbols COMMAND ${check} tvm_cxx $<TARGET_FILE:heddle_tvm_cxx>
      "${PROJECT_SOURCE_DIR}/tests/abi/tvm-cxx-symbols.txt")
    add_test(NAME abi/tvm-cxx-v08-symbols COMMAND ${check} tvm_cxx $<TARGET_FILE:heddle_tvm_cxx_v08>
      "${PROJECT_SOURCE_DIR}/tests/abi/tvm-cxx-v08-symbols.txt")
    list(APPEND registered abi/tvm-cxx-symbols abi/tvm-cxx-v08-symbols)
  endif()
  if(TARGET heddle_rpc)
    add_test(NAME abi/rpc-symbols COMMAND ${check} rpc $<TARGET_FILE:heddle_rpc>
      "${PROJECT_SOURCE_DIR}/tests/abi/rpc-symbols.txt")
    list(APPEND registered abi/rpc-symbols)
  endif()
  if(TARGET heddle_mpi)
    add_test(NAME abi/mpi-symbols COMMAND ${check} mpi $<TARGET_FILE:heddle_mpi>
      "${PROJECT_SOURCE_DIR}/tests/abi/mpi-symbols.txt")
    list(APPEND registered abi/mpi-symbols)
  endif()
  foreach(name IN LISTS HEDDLE_BUILT_PLUGINS)
    add_test(NAME abi/plugin-symbols/${name} COMMAND ${check} plugin $<TARGET_FILE:heddle_plugin_${name}>)
    list(APPEND registered abi/plugin-symbols/${name})
  endforeach()
  set_tests_properties(${registered} PROPERTIES LABELS abi TIMEOUT 120)

  add_test(NAME tree/rules COMMAND "${HEDDLE_PYTHON3}" "${PROJECT_SOURCE_DIR}/tests/tree/check_tree.py"
    "${PROJECT_SOURCE_DIR}")
  set_tests_properties(tree/rules PROPERTIES LABELS tree TIMEOUT 120)
endif()

# ---- Folders with more to say ------------------------------------------------------------------------------------
file(GLOB more CONFIGURE_DEPENDS tests/*/CMakeLists.txt)
foreach(file IN LISTS more)
  get_filename_component(folder "${file}" DIRECTORY)
  add_subdirectory("${folder}")
endforeach()
