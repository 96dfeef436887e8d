/* rpc/main.c: heddle-rpc, the program that heddle rpc-server, rpc-tracker, rpc-proxy and device-server start: it has libheddle_tvm, which the tool
 * does not. Its words are NAME=VALUE and come from the tool, which has read and checked them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/net.h"
#include "rpc/proxy.h"
#include "rpc/server.h"
#include "rpc/tracker.h"
#include "rpc/words.h"

static const char *text(const words *w, const char *name, const char *usual) {
  const char *found = words_find(w, name);
  return found != NULL ? found : usual;
}

int main(int argc, char **argv) {
  const words w = {argv + 2, argc - 2};
  words_allow_files();
  if (argc > 1 && strcmp(argv[1], "tracker") == 0) {
    const rpc_tracker_options o = {.host = text(&w, "host", "127.0.0.1"),
                                   .low = (uint16_t)words_number(&w, "low", 0),
                                   .high = (uint16_t)words_number(&w, "high", 0),
                                   .is_insecure = words_number(&w, "insecure", 0) != 0};
    return rpc_tracker_run(&o);
  }
  if (argc > 1 && strcmp(argv[1], "proxy") == 0) {
    const rpc_proxy_options o = {.host = text(&w, "host", "127.0.0.1"),
                                 .address = words_find(&w, "address"),
                                 .tracker = words_find(&w, "tracker"),
                                 .tracker_port = (uint16_t)words_number(&w, "tracker_port", 0),
                                 .low = (uint16_t)words_number(&w, "low", 0),
                                 .high = (uint16_t)words_number(&w, "high", 0),
                                 .is_insecure = words_number(&w, "insecure", 0) != 0,
                                 .wait_seconds = (int64_t)words_number(&w, "seconds", 600)};
    return rpc_proxy_run(&o);
  }
  if (argc > 1 && strcmp(argv[1], "server") == 0) {
    const uint64_t mib = UINT64_C(1) << 20;
    const rpc_server_options o = {
        .host = text(&w, "host", "127.0.0.1"),
        .key = text(&w, "key", ""),
        .address = words_find(&w, "address"),
        .tracker = words_find(&w, "tracker"),
        .tracker_port = (uint16_t)words_number(&w, "tracker_port", 0),
        .proxy = words_find(&w, "proxy"),
        .proxy_port = (uint16_t)words_number(&w, "proxy_port", 0),
        .low = (uint16_t)words_number(&w, "low", 0),
        .high = (uint16_t)words_number(&w, "high", 0),
        .is_insecure = words_number(&w, "insecure", 0) != 0,
        .sessions = (uint32_t)words_number(&w, "sessions", 1),
        .session_seconds = words_number(&w, "seconds", 0),
        .limits = {.packet = words_number(&w, "packet", 1024) * mib, .memory = words_number(&w, "memory", 4096) * mib}};
    return rpc_server_run(&o);
  }
  if (argc > 1 && strcmp(argv[1], "session") == 0) {
    const uint64_t mib = UINT64_C(1) << 20;
    const rpc_limits limits = {.packet = 1024 * mib, .memory = words_number(&w, "memory", 4096) * mib};
    return rpc_serve_one((int)words_number(&w, "fd", 0), &limits);
  }
  rpc_log("heddle-rpc: heddle rpc-server, rpc-tracker and rpc-proxy start this program");
  return WRONG_WORDS;
}
