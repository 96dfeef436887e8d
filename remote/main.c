/* remote/main.c: heddle-device-server, the program that heddle device-server, rpc-tunnel and keys start: it has libheddle's inside
 * and OpenSSL, which the tool does not. Its words are NAME=VALUE and come from the tool, which has read and checked them. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/server.h"
#include "remote/tunnel.h"
#include "rpc/net.h"
#include "rpc/words.h"

/* The path of a file: sessions have a current directory of their own. One that is not there is reported when it is read. */
static const char *path(const words *w, const char *name) {
  const char *found = words_find(w, name);
  char *real = found != NULL ? realpath(found, NULL) : NULL;
  return real != NULL ? real : found;
}

static int make_keys(const words *w) {
  char why[TLS_WHY];
  const char *path = words_find(w, "file"), *name = words_find(w, "name");
  if (path == NULL || name == NULL) return WRONG_WORDS;
  if (tls_make_psk(path, name, why)) return 0;
  rpc_log("heddle keys: %s", why);
  return 1;
}

int main(int argc, char **argv) {
  const words w = {argv + 2, argc - 2};
  if (argc > 1 && strcmp(argv[1], "keys") == 0) return make_keys(&w);
  if (argc > 1 && strcmp(argv[1], "tunnel") == 0) {
    const remote_tunnel_options o = {.port = (uint16_t)words_number(&w, "port", 0),
                                     .address = words_find(&w, "server"),
                                     .psk = words_find(&w, "psk"),
                                     .tls_cert = words_find(&w, "cert"),
                                     .tls_key = words_find(&w, "key"),
                                     .tls_ca = words_find(&w, "ca"),
                                     .tls_name = words_find(&w, "name")};
    return o.address != NULL ? remote_tunnel_run(&o) : WRONG_WORDS;
  }
  if (argc <= 1 || strcmp(argv[1], "server") != 0) {
    rpc_log("heddle-device-server: heddle device-server, rpc-tunnel and keys start this program");
    return WRONG_WORDS;
  }
  words_allow_files();
  const uint64_t mib = UINT64_C(1) << 20;
  const remote_server_options o = {.host = words_find(&w, "host"),
                                   .port = (uint16_t)words_number(&w, "port", 0),
                                   .unix_path = words_find(&w, "unix"),
                                   .is_stdio = words_number(&w, "stdio", 0) != 0,
                                   .tls = {.cert = path(&w, "cert"),
                                           .key = path(&w, "key"),
                                           .ca = path(&w, "ca"),
                                           .psk = path(&w, "psk"),
                                           .is_server = true,
                                           .limit_ms = 10000},
                                   .tracker = {.host = words_find(&w, "tracker"),
                                               .port = (uint16_t)words_number(&w, "tracker_port", 0),
                                               .key = words_find(&w, "tracker_key"),
                                               .address = words_find(&w, "address")},
                                   .sessions = (uint32_t)words_number(&w, "sessions", 8),
                                   .limits = {.devices = words_find(&w, "devices"),
                                              .memory = words_number(&w, "memory", 4096) * mib,
                                              .idle_ms = words_number(&w, "idle", 60) * 1000,
                                              .seconds = words_number(&w, "seconds", 0),
                                              .allow_libraries = words_number(&w, "libraries", 0) != 0,
                                              .rpc_program = words_find(&w, "rpc_program")}};
  return remote_server_run(&o);
}
