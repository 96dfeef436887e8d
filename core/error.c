/* core/error.c: fills and prefixes a heddle_error, and gives statuses their names and words.
 * Everything is bounded by the struct's fixed size; nothing here allocates, so it works when memory is out. */
#define HEDDLE__ERROR_C
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
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

heddle_status heddle__vfail(heddle_error *err, heddle_status status, const char *format, va_list args) {
  if (err == NULL) return status;
  char text[sizeof err->text]; /* the arguments may point into err */
  if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
  one_line(text, sizeof text);
  err->status = status;
  err->api_code = 0;
  heddle__clear_members(err); /* before the text, which may reach there */
  memcpy(err->text, text, strlen(text) + 1);
  return status;
}

heddle_status heddle__fail(heddle_error *err, heddle_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vfail(err, status, format, args);
  va_end(args);
  return status;
}

heddle_status heddle__vprefix(heddle_error *err, heddle_status status, const char *format, va_list args) {
  if (err == NULL) return status;
  char words[sizeof err->text];
  int length = vsnprintf(words, sizeof words, format, args);
  err->status = status;
  err->text[sizeof err->text - 1] = '\0'; /* a plugin may have left it open */
  if (length <= 0) return status;
  const bool members = heddle__has_members(err);
  const size_t room = members ? HEDDLE__FAILURE_TEXT : sizeof err->text;
  size_t n = (size_t)length < room ? (size_t)length : room - 1;
  size_t rest = strlen(err->text);
  if (rest > room - 1 - n) rest = room - 1 - n;
  memmove(err->text + n, err->text, rest);
  memcpy(err->text, words, n);
  err->text[n + rest] = '\0';
  one_line(err->text, room); /* what was there may be a plugin's */
  if (members) heddle__seal_members(err);
  return status;
}

heddle_status heddle__prefix(heddle_error *err, heddle_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vprefix(err, status, format, args);
  va_end(args);
  return status;
}

heddle_status heddle__prefix_name(heddle_error *err, heddle_status status, const char *name) {
  if (err == NULL || strncmp(err->text, name, strlen(name)) == 0) return status;
  return heddle__prefix(err, status, "%s: ", name);
}

bool heddle__has_words(const heddle_error *err, const char *words) {
  return strstr(err->text, words) != NULL;
}

void heddle__unprefix(heddle_error *err, const char *words) {
  const size_t n = strlen(words);
  if (err == NULL || strncmp(err->text, words, n) != 0) return;
  const bool members = heddle__has_members(err);
  memmove(err->text, err->text + n, strlen(err->text + n) + 1);
  if (members) heddle__seal_members(err);
}

heddle_status heddle__no_memory(heddle_error *err, const char *what) {
  return heddle__fail(err, HEDDLE_ENOMEM, "out of memory: %s", what);
}
