/* core/text.c: what may be shown on a terminal of text that came from elsewhere: the one definition, for errors, the log, plans
 * as text, and what tools and bindings print. Nothing here allocates. */
#include "heddle/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- one character */

/* Bytes of the character at p, and which it is; 0 where it is none: the well-formed sequences of the Unicode Standard
 * (section 3.9, table 3-7). p ends with a zero. */
static size_t read_character(const unsigned char *p, uint32_t *out) {
  const unsigned char a = p[0];
  if (a < 0x80) return *out = a, 1;
  if (a < 0xC2 || a > 0xF4) return 0;
  const size_t more = a < 0xE0 ? 1 : a < 0xF0 ? 2 : 3;
  unsigned char low = a == 0xE0 ? 0xA0 : a == 0xF0 ? 0x90 : 0x80, high = a == 0xED ? 0x9F : a == 0xF4 ? 0x8F : 0xBF;
  *out = a & (0x3FU >> more);
  for (size_t i = 1; i <= more; i++) {
    if (p[i] < low || p[i] > high) return 0;
    *out = *out << 6 | (p[i] & 0x3FU);
    low = 0x80;
    high = 0xBF;
  }
  return more + 1;
}

/* What stands for a character: 0, itself. */
static char stands_for(uint32_t c) {
  if ((c >= '\t' && c <= '\r') || c == 0x2028 || c == 0x2029) return ' ';
  if (c < ' ' || (c >= 0x7F && c <= 0x9F)) return '?';
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ? '?' : '\0';
}

/* Takes the next character of text; returns how many bytes it is cleaned, at shown. */
static size_t take(const char **text, const char **shown, char *one) {
  uint32_t c = 0;
  const size_t n = read_character((const unsigned char *)*text, &c);
  *one = n == 0 ? '?' : stands_for(c);
  *shown = *one != '\0' ? one : *text;
  *text += n > 0 ? n : 1;
  return *one != '\0' ? 1 : n;
}

size_t heddle_text_clean(const char *text, char *out, size_t size) {
  size_t whole = 0, used = 0;
  bool fits = size > 0;
  const char *shown;
  char one;
  while (*text != '\0') { /* out follows behind text where they are the same */
    const size_t n = take(&text, &shown, &one);
    fits = fits && used + n < size;
    if (fits) {
      memmove(out + used, shown, n);
      used += n;
    }
    whole += n;
  }
  if (size > 0) out[used] = '\0';
  return whole;
}

/* ---- formats */

typedef struct sink {
  char *out;
  size_t size, used; /* used counts on where there is no more room */
} sink;

static void put(sink *s, const char *text, size_t n) {
  if (s->used + 1 < s->size) {
    const size_t room = s->size - 1 - s->used;
    memcpy(s->out + s->used, text, n < room ? n : room);
  }
  s->used += n;
}

static void pad(sink *s, size_t n) {
  while (n-- > 0) put(s, " ", 1);
}

/* A conversion: its flags, width and precision (-1: none), length as 'H' (hh), 'h', 'l', 'L' (ll), 'j', 'z', 't' or 0. */
typedef struct conversion {
  char flags[8];
  int width, precision;
  char length, letter;
} conversion;

static void put_text(sink *s, const conversion *c, const char *text) {
  const size_t width = c->width > 0 ? (size_t)c->width : 0, most = c->precision >= 0 ? (size_t)c->precision : SIZE_MAX;
  const char *shown;
  char one;
  size_t n = 0, done = 0;
  if (text == NULL) text = "(null)";
  for (int turn = 0; turn < 2; turn++) { /* counts, then writes; text may be no string where it has a precision */
    const bool left = strchr(c->flags, '-') != NULL;
    if (turn == 1 && !left && n < width) pad(s, width - n);
    done = 0;
    const char *p = text;
    while ((size_t)(p - text) < most && *p != '\0') {
      char few[5] = "";
      const size_t there = most - (size_t)(p - text);
      for (size_t i = 0; i < 4 && i < there && p[i] != '\0'; i++) few[i] = p[i];
      const char *at = few;
      const size_t bytes = take(&at, &shown, &one);
      if (turn == 1) put(s, shown, bytes);
      done += bytes;
      p += at - few;
    }
    n = done;
    if (turn == 1 && left && n < width) pad(s, width - n);
  }
}

static bool put_number(sink *s, const conversion *c, va_list *args) {
  char spec[40], text[512];
  int n = 0, at = snprintf(spec, sizeof spec, "%%%s", c->flags);
  if (c->width >= 0) at += snprintf(spec + at, sizeof spec - (size_t)at, "%d", c->width);
  if (c->precision >= 0) at += snprintf(spec + at, sizeof spec - (size_t)at, ".%d", c->precision);
  const bool whole = strchr("diouxX", c->letter) != NULL;
  snprintf(spec + at, sizeof spec - (size_t)at, "%s%c", whole ? "j" : "", c->letter);
  if (c->letter == 'p') {
    n = snprintf(text, sizeof text, spec, va_arg(*args, void *));
  } else if (!whole) {
    n = snprintf(text, sizeof text, spec, va_arg(*args, double));
  } else if (c->letter == 'd' || c->letter == 'i') {
    intmax_t v = 0;
    switch (c->length) {
    case 'H': v = ((va_arg(*args, int) & 0xFF) ^ 0x80) - 0x80; break; /* the sign of a byte */
    case 'h': v = (short)va_arg(*args, int); break;
    case 'l': v = va_arg(*args, long); break;
    case 'L': v = va_arg(*args, long long); break;
    case 'j': v = va_arg(*args, intmax_t); break;
    case 'z':
    case 't': v = va_arg(*args, ptrdiff_t); break;
    default: v = va_arg(*args, int); break;
    }
    n = snprintf(text, sizeof text, spec, v);
  } else {
    uintmax_t v = 0;
    switch (c->length) {
    case 'H': v = (unsigned char)va_arg(*args, unsigned); break;
    case 'h': v = (unsigned short)va_arg(*args, unsigned); break;
    case 'l': v = va_arg(*args, unsigned long); break;
    case 'L': v = va_arg(*args, unsigned long long); break;
    case 'j': v = va_arg(*args, uintmax_t); break;
    case 'z':
    case 't': v = va_arg(*args, size_t); break;
    default: v = va_arg(*args, unsigned); break;
    }
    n = snprintf(text, sizeof text, spec, v);
  }
  if (n > 0) put(s, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
  return n >= 0;
}

/* A width or precision: digits, or an argument. */
static int read_count(const char **f, va_list *args) {
  int n = 0;
  if (**f == '*') {
    ++*f;
    return va_arg(*args, int);
  }
  for (; **f >= '0' && **f <= '9'; ++*f)
    if (n < 100000) n = n * 10 + (**f - '0');
  return n;
}

/* Behind the '%'. */
static void read_conversion(const char **f, conversion *c, va_list *args) {
  size_t n = strspn(*f, "-+ #0");
  memset(c, 0, sizeof *c);
  memcpy(c->flags, *f, n < 6 ? n : 6);
  *f += n;
  c->width = **f == '*' || (**f >= '0' && **f <= '9') ? read_count(f, args) : -1;
  if (c->width < -1) {
    c->width = -c->width;
    c->flags[strlen(c->flags)] = '-';
  }
  c->precision = -1;
  if (**f == '.') {
    ++*f;
    c->precision = read_count(f, args);
  }
  if (strchr("hljzt", **f) != NULL && **f != '\0') {
    c->length = *(*f)++;
    if ((c->length == 'h' || c->length == 'l') && **f == c->length) {
      c->length = c->length == 'h' ? 'H' : 'L';
      ++*f;
    }
  }
  c->letter = **f;
  if (**f != '\0') ++*f;
}

int heddle_text_format(char *out, size_t size, const char *format, va_list given) {
  sink s = {out, size, 0};
  va_list args;
  bool good = true;
  va_copy(args, given);
  while (*format != '\0' && good) {
    const size_t n = strcspn(format, "%");
    conversion c;
    put(&s, format, n);
    format += n;
    if (*format == '\0') break;
    format++;
    read_conversion(&format, &c, &args);
    if (c.letter == '%') {
      put(&s, "%", 1);
    } else if (c.letter == 's' && c.length == 0) {
      put_text(&s, &c, va_arg(args, const char *));
    } else if (c.letter == 'c' && c.length == 0) {
      const char one[2] = {(char)va_arg(args, int), '\0'};
      put_text(&s, &c, one);
    } else {
      good = c.letter != '\0' && strchr("diouxXfFeEgGaAp", c.letter) != NULL && put_number(&s, &c, &args);
    }
  }
  va_end(args);
  if (size > 0) out[s.used < size ? s.used : size - 1] = '\0';
  return good && s.used <= INT32_MAX ? (int)s.used : -1;
}

/* ---- names that were meant */

#define LONGEST 64

/* Letters to add, drop or change to make one word of another; words of LONGEST letters and more are far apart. */
static size_t distance(const char *a, const char *b) {
  size_t row[LONGEST], n = strlen(a), m = strlen(b);
  if (n >= LONGEST || m >= LONGEST) return LONGEST;
  for (size_t k = 0; k <= m; k++) row[k] = k;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t k = 1; k <= m; k++) {
      size_t best = diagonal + (a[i - 1] != b[k - 1]);
      diagonal = row[k];
      if (row[k] + 1 < best) best = row[k] + 1;
      if (row[k - 1] + 1 < best) best = row[k - 1] + 1;
      row[k] = best;
    }
  }
  return row[m];
}

const char *heddle_text_nearest(const char *wrong, const char *const *list, size_t n) {
  const char *best = NULL;
  size_t least = strlen(wrong) / 3 + 1;
  for (size_t i = 0; i < n; i++) {
    size_t d = distance(wrong, list[i]);
    if (d < least || (d == least && best == NULL)) {
      best = list[i];
      least = d;
    }
  }
  return best;
}
