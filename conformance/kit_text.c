/* conformance/kit_text.c: texts of a plugin's: whether they are one line of UTF-8 that ends, and the names of statuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/kit_side.h"
#include "heddle/text.h"
#include "plugins/common/utf8.h"

uint64_t kit_text_printable(const char *text, const char *end) {
  const unsigned char *p = (const unsigned char *)text;
  char one[5] = "", clean[5];
  uint64_t n = text < end ? utf8_character(text, (uint64_t)(end - text)) : 0;
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

void kit_text(kit *k, const char *text, uint64_t bytes, const char *what) {
  const char *fault = contract_text_fault(text, bytes);
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
