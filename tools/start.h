/* tools/start.h: commands that are programs of their own, beside the tool: their words are NAME=VALUE. */
#ifndef HEDDLE_TOOLS_START_H
#define HEDDLE_TOOLS_START_H

#include <stdbool.h>
#include <stdint.h>

enum { START_WORDS = 24, START_ROOM = 4200 };

typedef struct start_line {
  char room[START_WORDS][START_ROOM];
  char *words[START_WORDS + 3];
  int n;
} start_line;

/* Adds NAME=VALUE; a text that is NULL is left out. A text that is too long is cut: the caller has checked it. */
void start_add(start_line *l, const char *name, const char *value);
void start_add_number(start_line *l, const char *name, uint64_t value);

/* Becomes the program at a path from the tool's own folder, with what as its first word; returns FAILED, with a line on stderr,
 * where it cannot be started. needs: what it is built with. */
int start_program(const char *command, const char *program, const char *needs, const char *what, start_line *l);

#endif
