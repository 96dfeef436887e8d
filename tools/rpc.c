/* tools/rpc.c: heddle rpc-server, rpc-tracker and rpc-proxy: read their words and become heddle-rpc, a program of its own that has
 * the functions of TVM (rpc/). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "start.h"
#include "text.h"

/* ---- words that have a form of their own */

/* --port and --port-range, which has both its ends in it. */
static int add_ports(const char *command, const options *o, start_line *l) {
  uint64_t low = o->port, high = o->port;
  const char *at = o->port_range;
  if (low > UINT16_MAX) {
    print_error("heddle %s: --port needs a number from 0 (any) to 65535, not %" PRIu64 "\n", command, low);
    return WRONG_WORDS;
  }
  if (at != NULL &&
      (!start_read_port(&at, &low) || *at++ != '-' || !start_read_port(&at, &high) || *at != '\0' || high < low))
    return start_wrong(command, "port-range", "two ports, such as 9090-9199", o->port_range);
  start_add_number(l, "low", low);
  start_add_number(l, "high", high);
  return DONE;
}

/* ---- the commands */

static int become(const char *command, const char *what, const options *o, start_line *l) {
  if (o->host != NULL && strlen(o->host) > START_MOST_KEY) return start_wrong(command, "host", "an address", o->host);
  int status = add_ports(command, o, l);
  if (status != DONE) return status;
  start_add(l, "host", o->host);
  start_add_number(l, "insecure", o->insecure_tvm_rpc);
  return start_program(command, HEDDLE_RPC_INSTALLED, START_RPC_NEEDS, what, l);
}

static int serve(const options *o) {
  enum { MOST_SESSIONS = 64 };
  static const uint64_t most_mib = UINT64_C(1) << 40;
  start_line *l = calloc(1, sizeof *l);
  if (l == NULL) return fail_text("rpc-server", "out of memory");
  int status = start_add_place("rpc-server", "tracker", o->tracker, l);
  if (status == DONE) status = start_add_place("rpc-server", "proxy", o->proxy, l);
  if (status == DONE && o->proxy != NULL && o->tracker != NULL) {
    print_error("heddle rpc-server: with --proxy it is the proxy that registers at a tracker\n");
    status = WRONG_WORDS;
  }
  const char *key = o->rpc_key != NULL ? o->rpc_key : "";
  if (status == DONE) status = start_check_entry("rpc-server", o->tracker != NULL || o->proxy != NULL, key, o->address);
  if (status == DONE && (o->sessions > MOST_SESSIONS || o->session_memory > most_mib || o->packet_limit > most_mib)) {
    print_error("heddle rpc-server: at most %d sessions, and sizes below 2^40 MiB\n", (int)MOST_SESSIONS);
    status = WRONG_WORDS;
  }
  if (status == DONE) {
    start_add(l, "key", key);
    start_add(l, "address", o->address);
    if (o->sessions > 0) start_add_number(l, "sessions", o->sessions);
    if (o->session_memory > 0) start_add_number(l, "memory", o->session_memory);
    if (o->packet_limit > 0) start_add_number(l, "packet", o->packet_limit);
    start_add_number(l, "seconds", o->session_timeout);
    status = become("rpc-server", "server", o, l);
  }
  free(l);
  return status;
}

static int track(const options *o) {
  start_line *l = calloc(1, sizeof *l);
  if (l == NULL) return fail_text("rpc-tracker", "out of memory");
  int status = become("rpc-tracker", "tracker", o, l);
  free(l);
  return status;
}

static int relay(const options *o) {
  enum { MOST_SECONDS = 1 << 30 };
  start_line *l = calloc(1, sizeof *l);
  if (l == NULL) return fail_text("rpc-proxy", "out of memory");
  int status = start_add_place("rpc-proxy", "tracker", o->tracker, l);
  if (status == DONE) status = start_check_entry("rpc-proxy", false, NULL, o->address);
  if (status == DONE) {
    start_add(l, "address", o->address);
    if (o->session_timeout > 0)
      start_add_number(l, "seconds", o->session_timeout < MOST_SECONDS ? o->session_timeout : MOST_SECONDS);
    status = become("rpc-proxy", "proxy", o, l);
  }
  free(l);
  return status;
}

#define OPTION_HOST \
  { "host", OPTION_TEXT, "ADDRESS", offsetof(options, host), "where to listen; 127.0.0.1 by default" }
#define OPTION_PORT \
  { "port", OPTION_COUNT, "P", offsetof(options, port), "the port; 0, which is the default: any free one" }
#define OPTION_PORT_RANGE \
  { "port-range", OPTION_TEXT, "A-B", offsetof(options, port_range), "the first free port from A to B" }
#define OPTION_INSECURE \
  { \
    "insecure-tvm-rpc", OPTION_FLAG, NULL, offsetof(options, insecure_tvm_rpc), \
        "serve other machines too, all of which may then run code here: TVM's RPC knows no passwords and no " \
        "encryption" \
  }

static const option server_options[] = {
    OPTION_HOST,
    OPTION_PORT,
    OPTION_PORT_RANGE,
    {"tracker", OPTION_TEXT, "HOST:PORT", offsetof(options, tracker), "the tracker that gives this server to clients"},
    {"proxy", OPTION_TEXT, "HOST:PORT", offsetof(options, proxy),
     "connects to a proxy, which brings the clients, and listens nowhere"},
    {"key", OPTION_TEXT, "K", offsetof(options, rpc_key), "the name that clients ask for"},
    {"address", OPTION_TEXT, "ADDRESS", offsetof(options, address),
     "as the tracker gives it to clients; as it sees the server by default"},
    {"sessions", OPTION_COUNT, "N", offsetof(options, sessions),
     "clients that are served at the same time; 1 by default"},
    {"session-memory", OPTION_COUNT, "MIB", offsetof(options, session_memory),
     "what a session may allocate, and its files may hold; 4096 by default"},
    {"packet-limit", OPTION_COUNT, "MIB", offsetof(options, packet_limit), "the longest message; 1024 by default"},
    {"session-timeout", OPTION_COUNT, "S", offsetof(options, session_timeout),
     "seconds after which a session ends; 0, the default: when its client closes it"},
    OPTION_INSECURE,
    OPTION_HELP,
    OPTION_END};

static const option tracker_options[] = {OPTION_HOST,     OPTION_PORT, OPTION_PORT_RANGE,
                                         OPTION_INSECURE, OPTION_HELP, OPTION_END};

static const option proxy_options[] = {OPTION_HOST,
                                       OPTION_PORT,
                                       OPTION_PORT_RANGE,
                                       {"tracker", OPTION_TEXT, "HOST:PORT", offsetof(options, tracker),
                                        "the tracker that gives waiting servers to clients"},
                                       {"address", OPTION_TEXT, "ADDRESS", offsetof(options, address),
                                        "as the tracker gives it to clients; as it sees the proxy by default"},
                                       {"wait", OPTION_COUNT, "S", offsetof(options, session_timeout),
                                        "seconds for which one waits for its partner; 600 by default"},
                                       OPTION_INSECURE,
                                       OPTION_HELP,
                                       OPTION_END};

const command rpc_server_command = {
    "rpc-server",
    "serves this machine's devices to clients of TVM's RPC",
    "Clients of TVM (v0.14 to v0.27) upload libraries, load them, and use the devices of all plugins. Each client has "
    "a\n"
    "session in a process of its own, with limits and a folder that goes with it. It listens on this machine alone\n"
    "unless --insecure-tvm-rpc is given. Prints the port, and serves until it is interrupted.",
    server_options,
    SUBJECT_NONE,
    serve};

const command rpc_tracker_command = {
    "rpc-tracker",
    "gives servers of TVM's RPC to clients that ask for them by key",
    "Servers of TVM and of Heddle register, and clients get one that is free, the largest priority first. Prints the\n"
    "port, and serves until it is interrupted.",
    tracker_options,
    SUBJECT_NONE,
    track};

const command rpc_proxy_command = {"rpc-proxy",
                                   "joins servers and clients of TVM's RPC that cannot reach each other",
                                   "A server and a client of the same key connect to it, and their bytes are passed "
                                   "on. With a tracker, servers that wait\n"
                                   "are registered there. Prints the port, and serves until it is interrupted.",
                                   proxy_options,
                                   SUBJECT_NONE,
                                   relay};
