/* conformance/kit_text.c: texts of a plugin's: whether they are one line of UTF-8 that ends, and the names of statuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/kit_side.h"
#include "heddle/text.h"

/* Bytes of the character at p of which left are there, by the table of well-formed sequences in the Unicode Standard
 * (section 3.9, table 3-7); 0 where it is none. */
static uint64_t character(const unsigned char *p, uint64_t left) {
  unsigned char a = p[0], low = 0x80, high = 0xbf;
  uint64_t more;
  if (a < 0x80) return 1;
  if (a >= 0xc2 && a <= 0xdf) more = 1;
  else if (a >= 0xe0 && a <= 0xef) more = 2;
  else if (a >= 0xf0 && a <= 0xf4) more = 3;
  else return 0;
  if (a == 0xe0) low = 0xa0;
  if (a == 0xed) high = 0x9f;
  if (a == 0xf0) low = 0x90;
  if (a == 0xf4) high = 0x8f;
  if (more >= left) return 0;
  for (uint64_t i = 1; i <= more; i++) {
    if (p[i] < low || p[i] > high) return 0;
    low = 0x80;
    high = 0xbf;
  }
  return more + 1;
}

uint64_t kit_text_printable(const char *text, const char *end) {
  const unsigned char *p = (const unsigned char *)text;
  char one[5] = "", clean[5];
  uint64_t n = text < end ? character(p, (uint64_t)(end - text)) : 0;
  memcpy(one, text, (size_t)n);
  (void)heddle_text_clean(one, clean, sizeof clean);
  if (strcmp(one, clean) != 0) return 0;
  if (n == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe) return 0; /* U+FFFE and U+FFFF, which XML lacks */
  return n;
}

void kit_print(FILE *out, const char *format, ...) {
  va_list args;
  char few[2048];
  va_start(args, format);
  const int n = heddle_text_format(few, sizeof few, format, args);
  char *all = n >= (int)sizeof few ? malloc((size_t)n + 1) : NULL;
  if (all != NULL) (void)heddle_text_format(all, (size_t)n + 1, format, args);
  va_end(args);
  fputs(all != NULL ? all : few, out); /* cut where memory is out */
  free(all);
}

const char *kit_text_fault(const char *text, uint64_t bytes) {
  if (text == NULL) return "is NULL";
  const void *end = memchr(text, '\0', bytes);
  if (end == NULL) return "is not terminated";
  uint64_t n = (uint64_t)((const char *)end - text);
  const unsigned char *p = (const unsigned char *)text;
  for (uint64_t i = 0; i < n;) {
    if (p[i] == '\n' || p[i] == '\r') return "has several lines";
    if (p[i] < 0x20 || p[i] == 0x7f) return "has control characters";
    uint64_t length = character(p + i, n - i);
    if (length == 0) return "is not UTF-8";
    i += length;
  }
  return NULL;
}

void kit_text(kit *k, const char *text, uint64_t bytes, const char *what) {
  const char *fault = kit_text_fault(text, bytes);
  if (fault != NULL) kit_fail(k, "%s %s; texts are one line of UTF-8 with a terminator", what, fault);
}

const char *kit_status_name(heddle_status status) {
  switch (status) {
#define KIT_STATUS_NAME(name, number, text) \
  case name: return #name;
    HEDDLE_STATUS_LIST(KIT_STATUS_NAME)
#undef KIT_STATUS_NAME
  default: return "a status that there is not";
  }
}
