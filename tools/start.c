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

int start_wrong(const char *command, const char *option, const char *what, const char *given) {
  print_error("heddle %s: --%s needs %s, not '%s'\n", command, option, what, given);
  return WRONG_WORDS;
}

bool start_read_port(const char **text, uint64_t *out) {
  *out = 0;
  const char *from = *text;
  for (; **text >= '0' && **text <= '9' && *out <= UINT16_MAX; (*text)++) *out = *out * 10 + (uint64_t)(**text - '0');
  return *text > from && *out > 0 && *out <= UINT16_MAX;
}

int start_add_place(const char *command, const char *name, const char *given, start_line *l) {
  char host[256], port_name[32];
  uint64_t port = 0;
  if (given == NULL) return DONE;
  const char *colon = strrchr(given, ':'), *at = colon != NULL ? colon + 1 : "";
  const size_t n = colon != NULL ? (size_t)(colon - given) : 0;
  if (n == 0 || n >= sizeof host || !start_read_port(&at, &port) || *at != '\0')
    return start_wrong(command, name, "HOST:PORT", given);
  const bool has_brackets = given[0] == '[' && given[n - 1] == ']'; /* [::1]:9190 */
  snprintf(host, sizeof host, "%.*s", (int)(has_brackets ? n - 2 : n), given + has_brackets);
  snprintf(port_name, sizeof port_name, "%s_port", name);
  start_add(l, name, host);
  start_add_number(l, port_name, port);
  return DONE;
}

int start_check_entry(const char *command, bool needs_key, const char *key, const char *address) {
  if (key != NULL && (strlen(key) > START_MOST_KEY || strpbrk(key, " \t\r\n") != NULL))
    return start_wrong(command, "key", "a word without blanks", key);
  if (needs_key && (key == NULL || key[0] == '\0')) {
    print_error("heddle %s: a tracker and a proxy know servers by their keys: --key names this one's\n", command);
    return WRONG_WORDS;
  }
  if (address != NULL && strlen(address) > START_MOST_KEY)
    return start_wrong(command, "address", "an address", address);
  return DONE;
}

static const char *name_of(const char *program) {
  const char *slash = strrchr(program, '/');
  return slash != NULL ? slash + 1 : program;
}

static int find_or_say(const char *command, const char *program, const char *needs, char *path) {
  if (find_program(program, path)) return DONE;
  print_error("heddle %s: the program %s is not there; it is installed with Heddle where it is built with %s\n",
              command, name_of(program), needs);
  return FAILED;
}

int start_add_program(const char *command, const char *name, const char *program, const char *needs, start_line *l) {
  char path[MOST_PATH];
  const int status = find_or_say(command, program, needs, path);
  if (status == DONE) start_add(l, name, path);
  return status;
}

int start_program(const char *command, const char *program, const char *needs, const char *what, start_line *l) {
  char path[MOST_PATH];
  const char *name = name_of(program);
  if (find_or_say(command, program, needs, path) != DONE) return FAILED;
  l->words[0] = (char *)(uintptr_t)name;
  l->words[1] = (char *)(uintptr_t)what;
  l->words[2 + l->n] = NULL;
  fflush(stdout);
  execv(path, l->words);
  print_error("heddle %s: cannot start %s: %s\n", command, path, strerror(errno));
  return FAILED;
}
