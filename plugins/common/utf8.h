/* plugins/common/utf8.h: characters of UTF-8, for texts that come from drivers and plugins. */
#ifndef HEDDLE_PLUGINS_COMMON_UTF8_H
#define HEDDLE_PLUGINS_COMMON_UTF8_H

#include <stdint.h>

/* Bytes of the character at text of which left are there, by the table of well-formed sequences in the Unicode Standard
 * (section 3.9, table 3-7); 0 where it is none. Pure. Any thread. */
static inline uint64_t utf8_character(const char *text, uint64_t left) {
  const unsigned char *p = (const unsigned char *)text;
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

#endif
