/* core/error.c: fills and prefixes a heddle_error, and gives statuses their names and words.
 * Everything is bounded by the struct's fixed size; nothing here allocates, so it works when memory is out. */
#define HEDDLE__ERROR_C
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "heddle/text.h"

#ifndef HEDDLE_VERSION
#define HEDDLE_VERSION "0.0.0"
#endif

const char *heddle_version(void) {
  return HEDDLE_VERSION;
}

const char *heddle_status_name(heddle_status status) {
  switch (status) {
#define STATUS_NAME(name, number, text) \
  case number: return #name;
    HEDDLE_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
  default: return "unknown status";
  }
}

const char *heddle_status_text(heddle_status status) {
  switch (status) {
#define STATUS_TEXT(name, number, text) \
  case number: return text;
    HEDDLE_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
  default: return "unknown status";
  }
}

/* A vendor's text may have several lines, and a name in a file what a terminal obeys; an error is one line of words. */
static void one_line(char *text, size_t size) {
  (void)heddle_text_clean(text, text, size);
}

heddle_status heddle__fail(heddle_error *err, heddle_status status, const char *format, ...) {
  if (err == NULL) return status;
  char text[sizeof err->text]; /* the arguments may point into err */
  va_list args;
  va_start(args, format);
  if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
  va_end(args);
  one_line(text, sizeof text);
  err->status = status;
  err->api_code = 0;
  memcpy(err->text, text, sizeof text);
  return status;
}

heddle_status heddle__prefix(heddle_error *err, heddle_status status, const char *format, ...) {
  if (err == NULL) return status;
  char words[sizeof err->text];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(words, sizeof words, format, args);
  va_end(args);
  err->status = status;
  err->text[sizeof err->text - 1] = '\0'; /* a plugin may have left it open */
  if (length <= 0) return status;
  size_t n = (size_t)length < sizeof words ? (size_t)length : sizeof words - 1;
  size_t rest = strlen(err->text);
  if (rest > sizeof err->text - 1 - n) rest = sizeof err->text - 1 - n;
  memmove(err->text + n, err->text, rest);
  memcpy(err->text, words, n);
  err->text[n + rest] = '\0';
  one_line(err->text, sizeof err->text); /* what was there may be a plugin's */
  return status;
}

heddle_status heddle__no_memory(heddle_error *err, const char *what) {
  return heddle__fail(err, HEDDLE_ENOMEM, "out of memory: %s", what);
}
