/* rpc/main.c: heddle-rpc, the program that heddle rpc-server, rpc-tracker and rpc-proxy start: it has libheddle_tvm, which the tool
 * does not. Its words are NAME=VALUE and come from the tool, which has read and checked them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "rpc/net.h"
#include "rpc/proxy.h"
#include "rpc/server.h"
#include "rpc/tracker.h"

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

static const char *text(const words *w, const char *name, const char *usual) {
  const char *found = find(w, name);
  return found != NULL ? found : usual;
}

static uint64_t number(const words *w, const char *name, uint64_t usual) {
  const char *found = find(w, name);
  return found != NULL ? strtoull(found, NULL, 10) : usual;
}

/* A tracker has up to 1,024 connections, and the usual limit is below that. */
static void allow_files(void) {
  enum { WANTED = 4096 };
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= WANTED) return;
  files.rlim_cur = files.rlim_max < WANTED ? files.rlim_max : WANTED;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv) {
  const words w = {argv + 2, argc - 2};
  allow_files();
  if (argc > 1 && strcmp(argv[1], "tracker") == 0) {
    const rpc_tracker_options o = {.host = text(&w, "host", "127.0.0.1"),
                                   .low = (uint16_t)number(&w, "low", 0),
                                   .high = (uint16_t)number(&w, "high", 0),
                                   .is_insecure = number(&w, "insecure", 0) != 0};
    return rpc_tracker_run(&o);
  }
  if (argc > 1 && strcmp(argv[1], "proxy") == 0) {
    const rpc_proxy_options o = {.host = text(&w, "host", "127.0.0.1"),
                                 .address = find(&w, "address"),
                                 .tracker = find(&w, "tracker"),
                                 .tracker_port = (uint16_t)number(&w, "tracker_port", 0),
                                 .low = (uint16_t)number(&w, "low", 0),
                                 .high = (uint16_t)number(&w, "high", 0),
                                 .is_insecure = number(&w, "insecure", 0) != 0,
                                 .wait_seconds = (int64_t)number(&w, "seconds", 600)};
    return rpc_proxy_run(&o);
  }
  if (argc > 1 && strcmp(argv[1], "server") == 0) {
    const uint64_t mib = UINT64_C(1) << 20;
    const rpc_server_options o = {
        .host = text(&w, "host", "127.0.0.1"),
        .key = text(&w, "key", ""),
        .address = find(&w, "address"),
        .tracker = find(&w, "tracker"),
        .tracker_port = (uint16_t)number(&w, "tracker_port", 0),
        .proxy = find(&w, "proxy"),
        .proxy_port = (uint16_t)number(&w, "proxy_port", 0),
        .low = (uint16_t)number(&w, "low", 0),
        .high = (uint16_t)number(&w, "high", 0),
        .is_insecure = number(&w, "insecure", 0) != 0,
        .sessions = (uint32_t)number(&w, "sessions", 1),
        .session_seconds = number(&w, "seconds", 0),
        .limits = {.packet = number(&w, "packet", 1024) * mib, .memory = number(&w, "memory", 4096) * mib}};
    return rpc_server_run(&o);
  }
  rpc_log("heddle-rpc: heddle rpc-server, rpc-tracker and rpc-proxy start this program");
  return WRONG_WORDS;
}
