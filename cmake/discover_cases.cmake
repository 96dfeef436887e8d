# Run after a test program is linked: asks it for its cases, and writes a file that registers each with CTest.
# Takes PROGRAM, SOURCE, PREFIX, FOLDER, OUT, ENVIRONMENT.
cmake_minimum_required(VERSION 3.20)
include("${CMAKE_CURRENT_LIST_DIR}/test_properties.cmake")
execute_process(COMMAND "${PROGRAM}" --list OUTPUT_VARIABLE listed ERROR_VARIABLE problem RESULT_VARIABLE status
  TIMEOUT 60)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "'${PROGRAM} --list' failed (${status}): ${problem}")
endif()

heddle_read_test_words("${SOURCE}" "${FOLDER}" 120)
string(REPLACE "\n" ";" lines "${listed}")
set(text "")
foreach(line IN LISTS lines)
  string(REGEX MATCHALL "[^ ]+" words "${line}") # the name of a case, then its own labels
  if(NOT words)
    continue()
  endif()
  list(POP_FRONT words case)
  set(labels ${test_labels} ${words})
  set(environment "${ENVIRONMENT}")
  if(case MATCHES "@(opencl|vulkan|cuda|rocm)$") # LeakSanitizer dies of PoCL's threads; the same case on sim has it
    string(REPLACE "ASAN_OPTIONS=" "ASAN_OPTIONS=detect_leaks=0:" environment "${environment}")
  endif()
  set(serial OFF)
  if("serial" IN_LIST labels)
    set(serial ON)
  endif()
  string(APPEND text
    "add_test([==[${PREFIX}/${case}]==] [==[${PROGRAM}]==] [==[${case}]==])\n"
    "set_tests_properties([==[${PREFIX}/${case}]==] PROPERTIES TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77"
    " RUN_SERIAL ${serial} LABELS [==[${labels}]==] ENVIRONMENT [==[${environment}]==])\n")
endforeach()
file(WRITE "${OUT}" "${text}")
