/* core/sheet.c: text that grows; see sheet.h. */
#include "core/sheet.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "heddle/text.h"

static bool make_room(heddle__sheet *sheet, size_t more) {
  if (sheet->failed) return false;
  if (sheet->size - sheet->used > more) return true;
  size_t size = sheet->size == 0 ? 1024 : sheet->size;
  while (size - sheet->used <= more && size < SIZE_MAX / 4) size *= 2;
  char *text = size - sheet->used > more ? heddle__grow(sheet->text, sheet->size, size, 1) : NULL;
  if (text == NULL) {
    sheet->failed = true;
    return false;
  }
  sheet->text = text;
  sheet->size = size;
  return true;
}

void heddle__say_bytes(heddle__sheet *sheet, const char *text, size_t bytes) {
  if (!make_room(sheet, bytes)) return;
  memcpy(sheet->text + sheet->used, text, bytes);
  sheet->used += bytes;
  sheet->text[sheet->used] = '\0';
}

void heddle__say_text(heddle__sheet *sheet, const char *text) {
  heddle__say_bytes(sheet, text, strlen(text));
}

void heddle__say(heddle__sheet *sheet, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = heddle_text_format(NULL, 0, format, args);
  va_end(args);
  if (n < 0) sheet->failed = true;
  if (n >= 0 && make_room(sheet, (size_t)n)) {
    (void)heddle_text_format(sheet->text + sheet->used, sheet->size - sheet->used, format, again);
    sheet->used += (size_t)n;
  }
  va_end(again);
}

void heddle__say_string(heddle__sheet *sheet, const char *text) {
  static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
  heddle__say_bytes(sheet, "\"", 1);
  for (const char *from = text;;) {
    const char *at = from;
    while ((unsigned char)*at >= ' ' && *at != '"' && *at != '\\') at++;
    heddle__say_bytes(sheet, from, (size_t)(at - from));
    if (*at == '\0') break;
    char escape[8];
    const char *name = strchr(named, *at);
    if (name != NULL) snprintf(escape, sizeof escape, "\\%c", letters[name - named]);
    else snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*at);
    heddle__say_text(sheet, escape);
    from = at + 1;
  }
  heddle__say_bytes(sheet, "\"", 1);
}

void heddle__say_int(heddle__sheet *sheet, int64_t n) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, n);
  heddle__say_text(sheet, text);
}

void heddle__say_us(heddle__sheet *sheet, uint64_t ns) {
  char text[32];
  snprintf(text, sizeof text, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
  heddle__say_text(sheet, text);
}
