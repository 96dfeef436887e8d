/* executor/control/regex.h: regular expressions in RE2's syntax, matched in time that is linear in the text: no
 * back-references, no classes by Unicode property. Private to executor/control/. */
#ifndef HEDDLE_EXECUTOR_CONTROL_REGEX_H
#define HEDDLE_EXECUTOR_CONTROL_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

typedef struct ctl_regex ctl_regex; /* immutable; there may be others behind it */

/* HEDDLE_EUNSUPPORTED: what is not supported or malformed, and where it is. */
heddle_status ctl_regex_make(const char *pattern, ctl_regex **out, heddle_error *err);
void ctl_regex_free(ctl_regex *r); /* takes NULL; frees those behind it too */
void ctl_regex_put_behind(ctl_regex *r, ctl_regex *behind);
const ctl_regex *ctl_regex_behind(const ctl_regex *r); /* NULL: none is */

/* What a match needs beside the expression: one for a thread. NULL where memory is out. */
typedef struct ctl_matcher ctl_matcher;
ctl_matcher *ctl_matcher_make(const ctl_regex *r);
void ctl_matcher_free(ctl_matcher *m); /* takes NULL */

/* Whether the expression matches all of a text in UTF-8. */
bool ctl_regex_full(ctl_matcher *m, const char *text, size_t bytes);

/* The match that begins first, at byte from or behind it, and of those at one place the longest: where, and its bytes. */
bool ctl_regex_find(ctl_matcher *m, const char *text, size_t bytes, size_t from, size_t *begin, size_t *n);

/* utf.c: the next character of a text that has one; bytes that are no UTF-8 are a character each. */
uint32_t ctl_utf_next(const char **at, const char *end);
/* Writes at most 4 bytes; gives how many. */
size_t ctl_utf_put(uint32_t character, char out[4]);

/* A character in lower or in upper case, in any script that the C library knows. */
uint32_t ctl_lower(uint32_t character);
uint32_t ctl_upper(uint32_t character);

#endif
