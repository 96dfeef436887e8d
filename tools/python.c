/* tools/python.c: starts the Python package for commands that need it. */
#include "python.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

enum { PATH_ROOM = 4096 };

void python_add(python_words *l, const char *name, const char *value) {
  if (value == NULL || l->n + 3 > PYTHON_WORDS) return;
  l->words[l->n++] = name;
  l->words[l->n++] = value;
}

void python_add_all(python_words *l, const char *name, const words *values) {
  for (size_t i = 0; i < values->count; i++) python_add(l, name, values->data[i]);
}

/* The package of a build tree lies in python/ beside bin/. */
static void find_package(void) {
  char path[PATH_ROOM], probe[PATH_ROOM + 64], all[2 * PATH_ROOM];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return;
  path[n] = '\0';
  for (int i = 0; i < 2; i++) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) return;
    *slash = '\0';
  }
  snprintf(probe, sizeof probe, "%s/python/heddle/__init__.py", path);
  if (access(probe, F_OK) != 0) return;
  const char *before = getenv("PYTHONPATH");
  snprintf(all, sizeof all, "%s/python%s%s", path, before != NULL ? ":" : "", before != NULL ? before : "");
  setenv("PYTHONPATH", all, 1);
}

int python_exec(const char *command, const char *option, const char *code, const python_words *l) {
  const char *given = getenv("HEDDLE_PYTHON"), *all[PYTHON_WORDS + 4];
  if (l->n + 3 >= PYTHON_WORDS) return fail_text(command, "too many words");
  char *python = strdup(given != NULL && given[0] != '\0' ? given : "python3");
  if (python == NULL) return fail_text(command, "out of memory");
  unsetenv("HEDDLE_PYTHON"); /* is no setting of the package's */
  all[0] = python;
  all[1] = "-c";
  all[2] = code;
  memcpy(all + 3, l->words, l->n * sizeof *all);
  all[3 + l->n] = NULL;
  find_package();
  fflush(stdout);
  execvp(python, (char *const *)(uintptr_t)all);
  const int error = errno;
  fail_text(command, "%s needs Python: %s: %s (HEDDLE_PYTHON names another)", option, python, strerror(error));
  free(python);
  return FAILED;
}
