/* tools/start.c: the tool becomes another program. */
#include "start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "text.h"

enum { MOST_PATH = 4096 };

static bool find_program(const char *program, char *out) {
  char self[MOST_PATH];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return false;
  self[n] = '\0';
  char *slash = strrchr(self, '/');
  if (slash == NULL) return false;
  *slash = '\0';
  n = snprintf(out, MOST_PATH, "%s/%s", self, program);
  return n > 0 && n < MOST_PATH && access(out, X_OK) == 0;
}

void start_add(start_line *l, const char *name, const char *value) {
  if (value == NULL || l->n == START_WORDS) return;
  snprintf(l->room[l->n], START_ROOM, "%s=%s", name, value);
  l->words[2 + l->n] = l->room[l->n];
  l->n++;
}

void start_add_number(start_line *l, const char *name, uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%" PRIu64, value);
  start_add(l, name, text);
}

int start_program(const char *command, const char *program, const char *needs, const char *what, start_line *l) {
  char path[MOST_PATH];
  const char *slash = strrchr(program, '/'), *name = slash != NULL ? slash + 1 : program;
  if (!find_program(program, path)) {
    print_error("heddle %s: the program %s is not there; it is installed with Heddle where it is built with %s\n",
                command, name, needs);
    return FAILED;
  }
  l->words[0] = (char *)(uintptr_t)name;
  l->words[1] = (char *)(uintptr_t)what;
  l->words[2 + l->n] = NULL;
  fflush(stdout);
  execv(path, l->words);
  print_error("heddle %s: cannot start %s: %s\n", command, path, strerror(errno));
  return FAILED;
}
