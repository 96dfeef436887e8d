# The Python binding in the build tree, where HEDDLE_PYTHON (3.11 or later) has its headers and numpy's.
# Sets HEDDLE_PYTHON_PACKAGE, the folder of the package, and HEDDLE_PYTHON_BUILT where it is built.
set(HEDDLE_PYTHON_PACKAGE "${PROJECT_BINARY_DIR}/python/heddle")
set(HEDDLE_PYTHON_BUILT OFF)
set(python_missing "")
if(NOT EXISTS "${HEDDLE_PYTHON}")
  set(python_missing "${HEDDLE_PYTHON} is not there")
else()
  execute_process(COMMAND "${HEDDLE_PYTHON}" -c
    "import sys, sysconfig; assert sys.version_info >= (3, 11), 'Python is older than 3.11'; print(sysconfig.get_path('include'))"
    OUTPUT_VARIABLE python_headers ERROR_VARIABLE python_words RESULT_VARIABLE python_failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(python_failed)
    set(python_missing "${HEDDLE_PYTHON} is older than 3.11, or fails")
  elseif(NOT EXISTS "${python_headers}/Python.h")
    set(python_missing "${python_headers}/Python.h is not there (package python3-dev)")
  else()
    execute_process(COMMAND "${HEDDLE_PYTHON}" -c "import numpy; print(numpy.get_include())"
      OUTPUT_VARIABLE numpy_headers ERROR_VARIABLE python_words RESULT_VARIABLE python_failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(python_failed OR NOT EXISTS "${numpy_headers}/numpy/arrayobject.h")
      set(python_missing "${HEDDLE_PYTHON} has no numpy with headers")
    endif()
  endif()
endif()
if(python_missing)
  message(STATUS "The Python binding is left out: ${python_missing}; scripts/setup installs what it needs.")
else()
  set(HEDDLE_PYTHON_INCLUDES "${python_headers}" "${numpy_headers}")
  set(HEDDLE_PYTHON_BUILT ON)
  add_subdirectory(bindings/python)
  # Bytecode beside the links: where Python may not write it (PYTHONDONTWRITEBYTECODE, a folder of another user), each
  # process would compile the package anew, which takes longer than to load a small model. Python checks each against its
  # source.
  add_custom_target(heddle_python_bytecode ALL
    COMMAND "${CMAKE_COMMAND}" -E env --unset=PYTHONDONTWRITEBYTECODE
      "${HEDDLE_PYTHON}" -m compileall -q "${HEDDLE_PYTHON_PACKAGE}"
    VERBATIM)
endif()
