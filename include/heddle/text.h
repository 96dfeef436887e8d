/* heddle/text.h: makes text from a file, a driver or a caller safe to print on a terminal. */
#ifndef HEDDLE_TEXT_H
#define HEDDLE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes text to out as one line without characters that control a terminal, and returns the length of the whole result
 * in bytes, which is at most that of text. A line end or a tab becomes a space, and so do U+2028 and U+2029. '?'
 * replaces each other control character (below U+0020, U+007F to U+009F), each character that changes the direction of
 * text (U+202A to U+202E, U+2066 to U+2069), and each byte that is not valid UTF-8. At most size bytes are written, the
 * last of them a zero, and no character is cut. out may be NULL where size is 0, and out may be text itself. Allocates
 * nothing. Any thread. */
HEDDLE_API size_t heddle_text_clean(const char *text, char *out, size_t size);

/* As vsnprintf, but cleans each text among the arguments (%s, %c). The format itself is not cleaned, so line ends in it
 * stay. Returns -1 for %n, wide characters and long double, which are not supported. Any thread. */
HEDDLE_API int heddle_text_format(char *out, size_t size, const char *format, va_list args);

/* The name in list that a wrong one was probably meant to be: at most a third of its letters differ. NULL if there is none.
 * Names of 64 bytes and more are not compared. Any thread. */
HEDDLE_API const char *heddle_text_nearest(const char *wrong, const char *const *list, size_t n);

#ifdef __cplusplus
}
#endif

#endif
