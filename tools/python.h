/* tools/python.h: the Python package, for commands that go on as a program of it. */
#ifndef HEDDLE_TOOLS_PYTHON_H
#define HEDDLE_TOOLS_PYTHON_H

#include "options.h"

enum { PYTHON_WORDS = 512 };

/* The words of the program; borrowed. */
typedef struct python_words {
  const char *words[PYTHON_WORDS];
  size_t n;
} python_words;

/* --NAME VALUE; nothing for a value of NULL. */
void python_add(python_words *l, const char *name, const char *value);
void python_add_all(python_words *l, const char *name, const words *values);

/* Goes on as Python with the code and the words: comes back only where it fails. option is what needs it ("--against"). */
int python_exec(const char *command, const char *option, const char *code, const python_words *l);

#endif
