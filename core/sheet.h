/* core/sheet.h: text that grows, for plans, graphs, traces and results as text and as JSON. The first failure of memory
 * sets failed, and nothing is added after it. One thread at a time. libheddle_tvm compiles core/sheet.c in too. */
#ifndef HEDDLE_CORE_SHEET_H
#define HEDDLE_CORE_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed it is empty. */
typedef struct heddle__sheet {
  char *text; /* of heddle__alloc, for its owner to free; terminated once something was added */
  size_t used, size;
  bool failed;
} heddle__sheet;

/* As printf; %s and %c are cleaned (heddle_text_format). */
void heddle__say(heddle__sheet *sheet, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Unchanged. */
void heddle__say_bytes(heddle__sheet *sheet, const char *text, size_t bytes);
void heddle__say_text(heddle__sheet *sheet, const char *text);

/* In JSON: a string in quotes, with escapes; a whole number. */
void heddle__say_string(heddle__sheet *sheet, const char *text);
void heddle__say_int(heddle__sheet *sheet, int64_t n);

/* Nanoseconds as microseconds with three decimals, with a point in every locale. */
void heddle__say_us(heddle__sheet *sheet, uint64_t ns);

#endif
