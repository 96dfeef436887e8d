/* Filling a heddle_error from inside a plugin: format, truncate, keep it to one line. It allocates nothing and needs
 * nothing but libc, so that every plugin can include it. */
#ifndef HEDDLE_PLUGINS_COMMON_PERROR_H
#define HEDDLE_PLUGINS_COMMON_PERROR_H

#include "heddle/plugin.h"
#include "utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* P_ONCE: in each file that includes this, and kept once by the linker: none of it is worth a copy each. */
#if defined(__GNUC__)
#define P_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define P_ONCE __attribute__((weak, visibility("hidden")))
#else
#define P_PRINTF(text, first)
#define P_ONCE static inline
#endif

/* Names come from graphs and drivers: a control character in one would break the line, and what is no UTF-8 the text. */
P_ONCE void p_one_line(char *text) {
  const char *end = text + strlen(text);
  while (text < end) {
    const uint64_t n = utf8_character(text, (uint64_t)(end - text));
    if (n == 0) *text = '?';
    if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = ' ';
    text += n > 0 ? n : 1;
  }
}

/* Fills err (which may be NULL) and returns status. api_code is the vendor's number or 0. Any thread. */
P_PRINTF(4, 0)
P_ONCE heddle_status p_vfail(heddle_error *err, heddle_status status, int32_t api_code, const char *format,
                             va_list args) {
  if (err == NULL) return status;
  err->status = status;
  err->api_code = api_code;
  if (vsnprintf(err->text, sizeof err->text, format, args) < 0) err->text[0] = '\0';
  p_one_line(err->text);
  return status;
}

P_PRINTF(4, 5)
P_ONCE heddle_status p_fail(heddle_error *err, heddle_status status, int32_t api_code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  p_vfail(err, status, api_code, format, args);
  va_end(args);
  return status;
}

/* Puts words in front of the text that err has, keeping its status and code. Any thread. */
P_PRINTF(2, 3)
P_ONCE void p_prefix(heddle_error *err, const char *format, ...) {
  char old[sizeof err->text];
  va_list args;
  if (err == NULL) return;
  memcpy(old, err->text, sizeof old);
  old[sizeof old - 1] = '\0';
  va_start(args, format);
  int used = vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  if (used < 0) used = 0;
  if ((size_t)used < sizeof err->text) {
    size_t room = sizeof err->text - (size_t)used - 1, length = strlen(old);
    if (length > room) length = room;
    memcpy(err->text + used, old, length);
    err->text[(size_t)used + length] = '\0';
  }
  p_one_line(err->text);
}

/* Static analysis follows no weak function: this says what it returns. Not compiled. */
#ifdef __clang_analyzer__
#define p_fail(err, status, ...) (p_fail(err, status, __VA_ARGS__), (status))
#endif

#endif
