/* modules/tvm/api_error.c: TVM's C API, errors: the words of this thread's last failure. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "modules/tvm/api.h"

int heddle__api_refuse(const char *format, ...) {
  char words[900];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  heddle__tvm_say(NULL, words);
  return -1;
}

/* Words that wait to be fetched become the last ones; they stay until the next failure. */
const char *TVMGetLastError(void) {
  heddle__tvm_thread *self = heddle__tvm_self();
  heddle__tvm_forget(self);
  return self->texts[HEDDLE__TEXT_ERROR].data != NULL ? self->texts[HEDDLE__TEXT_ERROR].data : self->error;
}

void TVMAPISetLastError(const char *msg) {
  heddle__tvm_set_last_error(msg);
}

void TVMAPISetLastPythonError(void *py_object) {
  heddle__tvm_self()->python_error = py_object;
  heddle__tvm_say(NULL, "an exception of Python's, which TVMGetLastPythonError gives");
}

void *TVMGetLastPythonError(void) {
  return heddle__tvm_self()->python_error;
}

void TVMDropLastPythonError(void) {
  heddle__tvm_self()->python_error = NULL;
}

const char *TVMGetLastBacktrace(void) {
  return NULL;
}
