/* executor/control/utf.c: characters of UTF-8 and their cases. */
#include <locale.h>
#include <pthread.h>
#include <wctype.h>

#include "executor/control/regex.h"

uint32_t ctl_utf_next(const char **at, const char *end) {
  const unsigned char *p = (const unsigned char *)*at;
  const size_t left = (size_t)(end - *at);
  const size_t n = p[0] < 0xc2 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 1;
  uint32_t c = n == 1 ? p[0] : p[0] & (0xffU >> (n + 1));
  for (size_t i = 1; i < n; i++) {
    if (i >= left || (p[i] & 0xc0) != 0x80) {
      *at += 1;
      return p[0];
    }
    c = c << 6 | (p[i] & 0x3f);
  }
  *at += n;
  return c;
}

size_t ctl_utf_put(uint32_t c, char out[4]) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)((0xf00 >> n & 0xff) | c);
  return n;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t locale; /* (locale_t)0: there is none, and ASCII alone has cases */

static void find_locale(void) {
  locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  if (locale == (locale_t)0) locale = newlocale(LC_CTYPE_MASK, "en_US.UTF-8", (locale_t)0);
}

uint32_t ctl_lower(uint32_t c) {
  if (c < 128) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  (void)pthread_once(&once, find_locale);
  return locale != (locale_t)0 ? (uint32_t)towlower_l((wint_t)c, locale) : c;
}

uint32_t ctl_upper(uint32_t c) {
  if (c < 128) return c >= 'a' && c <= 'z' ? c - 32 : c;
  (void)pthread_once(&once, find_locale);
  return locale != (locale_t)0 ? (uint32_t)towupper_l((wint_t)c, locale) : c;
}
