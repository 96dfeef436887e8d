/* heddle/text.h: text that came from a file, a driver or a caller, as it may be shown on a terminal. */
#ifndef HEDDLE_TEXT_H
#define HEDDLE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes text as one line that no terminal obeys, and returns how many bytes the whole has, at most as many as text. A line
 * end or tab becomes a space, so do U+2028 and U+2029; '?' stands for each other control character (below U+0020, U+007F
 * to U+009F), for what turns the direction of text (U+202A to U+202E, U+2066 to U+2069), and for each byte that is no
 * UTF-8. At most size bytes are written, the last a zero, and no character is cut; out may be NULL where size is 0, and may
 * be text itself. Any thread; allocates nothing. */
HEDDLE_API size_t heddle_text_clean(const char *text, char *out, size_t size);

/* As vsnprintf, and each text among the arguments (%s, %c) is cleaned; the format is not, so that line ends in it count.
 * %n, wide characters and long double are not known: -1. */
HEDDLE_API int heddle_text_format(char *out, size_t size, const char *format, va_list args);

#ifdef __cplusplus
}
#endif

#endif
