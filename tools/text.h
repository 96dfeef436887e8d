/* tools/text.h: numbers, shapes and failures as the tool prints them. */
#ifndef HEDDLE_TOOLS_TEXT_H
#define HEDDLE_TOOLS_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "heddle/heddle.h"

/* "heddle COMMAND: TEXT" on stderr, in one piece; gives FAILED. Of a context of several ranks, TEXT has the number of a rank,
 * and the failure is sent to the other ranks. */
int fail(const char *command, const heddle_error *err);
int fail_text(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The context to whose ranks fail sends failures. NULL: none. */
void fail_tells(heddle_context *ctx);

/* As printf, to stdout, to stderr and to a file, and the texts among the arguments are cleaned (heddle/text.h): names come
 * from files and drivers. The rest of the tool writes no text in another way; tests/tree/check_tree.py looks. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_to(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text of several lines that libheddle made, which is clean, to stdout. */
void put_text(const char *text, size_t bytes);

/* "float32", "bool", "float32x4"; "?" where the dtype is not known. */
void dtype_text(heddle_dtype dtype, char out[32]);

/* "[1, 3, 8]", with names for symbols (may be NULL) and "?" for what is not known. Cut where it is too long. */
void shape_text(const int64_t *shape, uint32_t ndim, const char *const *symbols, char *out, size_t size);

/* Of n rows of a section, those that are printed: all, or the first of many. rows_left_out then says how many are not. */
uint32_t rows_shown(uint32_t n, bool all);
void rows_left_out(uint32_t n, bool all);

/* "36.2 KiB". */
void bytes_text(uint64_t bytes, char out[32]);

/* Text as JSON; what is no UTF-8 (a path) has '?' in its place. */
json_t *json_words(const char *text);
json_t *json_shape(const int64_t *shape, uint32_t ndim, const char *const *symbols); /* null: not known */

/* Prints an object, indented, and drops it; NULL, which is memory that is out, is a failure. Gives an exit status. */
int print_json(const char *command, json_t *object);

/* One line on a terminal's stderr that is written over by the next, until it is cleared; nothing where stderr is no
 * terminal. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_end(void);

#endif
