/* remote/main.c: heddle-device-server, the program that heddle device-server and heddle keys start: it has libheddle's inside
 * and OpenSSL, which the tool does not. Its words are NAME=VALUE and come from the tool, which has read and checked them. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "remote/server.h"
#include "rpc/net.h"

enum { WRONG_WORDS = 2 };

typedef struct words {
  char **data;
  int n;
} words;

static const char *find(const words *w, const char *name) {
  size_t n = strlen(name);
  for (int i = 0; i < w->n; i++)
    if (strncmp(w->data[i], name, n) == 0 && w->data[i][n] == '=') return w->data[i] + n + 1;
  return NULL;
}

static uint64_t number(const words *w, const char *name, uint64_t usual) {
  const char *found = find(w, name);
  return found != NULL ? strtoull(found, NULL, 10) : usual;
}

/* The path of a file: sessions have a current directory of their own. One that is not there is reported when it is read. */
static const char *path(const words *w, const char *name) {
  const char *found = find(w, name);
  char *real = found != NULL ? realpath(found, NULL) : NULL;
  return real != NULL ? real : found;
}

/* A place for each connection, however many come. */
static void allow_files(void) {
  enum { WANTED = 4096 };
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= WANTED) return;
  files.rlim_cur = files.rlim_max < WANTED ? files.rlim_max : WANTED;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

static int make_keys(const words *w) {
  char why[TLS_WHY];
  const char *path = find(w, "file"), *name = find(w, "name");
  if (path == NULL || name == NULL) return WRONG_WORDS;
  if (tls_make_psk(path, name, why)) return 0;
  rpc_log("heddle keys: %s", why);
  return 1;
}

int main(int argc, char **argv) {
  const words w = {argv + 2, argc - 2};
  if (argc > 1 && strcmp(argv[1], "keys") == 0) return make_keys(&w);
  if (argc <= 1 || strcmp(argv[1], "server") != 0) {
    rpc_log("heddle-device-server: heddle device-server and heddle keys start this program");
    return WRONG_WORDS;
  }
  allow_files();
  const uint64_t mib = UINT64_C(1) << 20;
  const remote_server_options o = {.host = find(&w, "host"),
                                   .port = (uint16_t)number(&w, "port", 0),
                                   .unix_path = find(&w, "unix"),
                                   .is_stdio = number(&w, "stdio", 0) != 0,
                                   .tls = {.cert = path(&w, "cert"),
                                           .key = path(&w, "key"),
                                           .ca = path(&w, "ca"),
                                           .psk = path(&w, "psk"),
                                           .is_server = true,
                                           .limit_ms = 10000},
                                   .sessions = (uint32_t)number(&w, "sessions", 8),
                                   .limits = {.devices = find(&w, "devices"),
                                              .memory = number(&w, "memory", 4096) * mib,
                                              .idle_ms = number(&w, "idle", 60) * 1000,
                                              .seconds = number(&w, "seconds", 0)}};
  return remote_server_run(&o);
}
