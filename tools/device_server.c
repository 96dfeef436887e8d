/* tools/device_server.c: heddle device-server, rpc-tunnel and keys: read their words and become heddle-device-server (remote/). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "start.h"
#include "text.h"

#ifndef HEDDLE_DEVICE_SERVER_INSTALLED
#define HEDDLE_DEVICE_SERVER_INSTALLED "../libexec/heddle-device-server"
#endif

enum { MOST_TEXT = 4000, MOST_SESSIONS = 128 };

static int wrong(const char *text) {
  print_error("heddle device-server: %s\n", text);
  return WRONG_WORDS;
}

/* ADDR:PORT; port 0 is any free one. */
static int add_address(const char *address, start_line *l) {
  char host[256];
  const char *colon = strrchr(address, ':');
  const size_t n = colon != NULL ? (size_t)(colon - address) : 0;
  uint64_t port = 0;
  const char *at = colon != NULL ? colon + 1 : "";
  for (; *at >= '0' && *at <= '9' && port <= UINT16_MAX; at++) port = port * 10 + (uint64_t)(*at - '0');
  if (n == 0 || n >= sizeof host || *at != '\0' || at == colon + 1 || port > UINT16_MAX)
    return wrong("--listen needs ADDRESS:PORT, such as 127.0.0.1:9300");
  const bool has_brackets = address[0] == '[' && address[n - 1] == ']'; /* [::1]:9300 */
  snprintf(host, sizeof host, "%.*s", (int)(has_brackets ? n - 2 : n), address + has_brackets);
  start_add(l, "host", host);
  start_add_number(l, "port", port);
  return DONE;
}

static int check(const options *o) {
  static const uint64_t most = UINT64_C(1) << 40;
  const char *const texts[] = {o->unix_path, o->tls_cert, o->tls_key, o->tls_ca, o->psk, o->devices};
  const int n_tls = (o->tls_cert != NULL) + (o->tls_key != NULL) + (o->tls_ca != NULL);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i] != NULL && strlen(texts[i]) > MOST_TEXT) return wrong("a word is too long");
  if (o->listen == NULL && o->unix_path == NULL && !o->stdio)
    return wrong("one of --listen, --unix or --stdio is needed");
  if (o->stdio && (o->listen != NULL || o->unix_path != NULL)) return wrong("--stdio serves one client alone");
  if (o->tracker != NULL && o->listen == NULL) return wrong("--tracker gives clients the address of --listen");
  if (o->tracker == NULL && (o->rpc_key != NULL || o->address != NULL))
    return wrong("--key and --address are what a tracker knows the server by: --tracker is missing");
  if (n_tls != 0 && n_tls != 3) return wrong("--tls-cert, --tls-key and --tls-ca belong together");
  if (n_tls != 0 && o->psk != NULL) return wrong("clients show certificates or have a key (--psk), not both");
  if (o->sessions > MOST_SESSIONS || o->session_memory > most || o->session_timeout > most || o->idle_timeout > most)
    return wrong("at most 128 sessions, and sizes and times below 2^40");
  return start_check_entry("device-server", o->tracker != NULL, o->rpc_key, o->address);
}

static int serve(const options *o) {
  int status = check(o);
  if (status != DONE) return status;
  start_line *l = calloc(1, sizeof *l);
  if (l == NULL) return fail_text("device-server", "out of memory");
  if (o->listen != NULL) status = add_address(o->listen, l);
  if (status == DONE) status = start_add_place("device-server", "tracker", o->tracker, l);
  if (status == DONE) {
    start_add(l, "tracker_key", o->rpc_key);
    start_add(l, "address", o->address);
    start_add(l, "unix", o->unix_path);
    start_add_number(l, "stdio", o->stdio);
    start_add(l, "cert", o->tls_cert);
    start_add(l, "key", o->tls_key);
    start_add(l, "ca", o->tls_ca);
    start_add(l, "psk", o->psk);
    start_add(l, "devices", o->devices);
    if (o->sessions > 0) start_add_number(l, "sessions", o->sessions);
    if (o->session_memory > 0) start_add_number(l, "memory", o->session_memory);
    if (o->idle_timeout > 0) start_add_number(l, "idle", o->idle_timeout);
    start_add_number(l, "seconds", o->session_timeout);
    start_add_number(l, "libraries", o->allow_libraries);
    if (o->tvm_rpc)
      status = start_add_program("device-server", "rpc_program", HEDDLE_RPC_INSTALLED, START_RPC_NEEDS, l);
  }
  if (status == DONE) {
    status = start_program("device-server", HEDDLE_DEVICE_SERVER_INSTALLED, "HEDDLE_REMOTE", "server", l);
  }
  free(l);
  return status;
}

static int make_keys(const options *o) {
  enum { MOST_NAME = 128 };
  const char *name = o->key_name != NULL ? o->key_name : "heddle";
  if (o->output == NULL || strlen(o->output) > MOST_TEXT || name[0] == '\0' || strlen(name) > MOST_NAME ||
      strpbrk(name, " \t\r\n") != NULL) {
    print_error("heddle keys: -o names the file, and --name is a word of at most %d bytes\n", (int)MOST_NAME);
    return WRONG_WORDS;
  }
  start_line *l = calloc(1, sizeof *l);
  if (l == NULL) return fail_text("keys", "out of memory");
  start_add(l, "file", o->output);
  start_add(l, "name", name);
  const int status = start_program("keys", HEDDLE_DEVICE_SERVER_INSTALLED, "HEDDLE_REMOTE", "keys", l);
  free(l);
  return status;
}

static int tunnel(const options *o) {
  enum { MOST_ADDRESS = 255 };
  const char *to = o->tunnel_to != NULL ? o->tunnel_to : getenv("HEDDLE_REMOTE");
  const char *const texts[] = {o->psk, o->tls_cert, o->tls_key, o->tls_ca, o->tls_name};
  bool good = to != NULL && to[0] != '\0' && strlen(to) <= MOST_ADDRESS && o->port <= UINT16_MAX;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i] != NULL && strlen(texts[i]) > MOST_TEXT) good = false;
  if (!good) {
    print_error("heddle rpc-tunnel: --server names a device server, such as tls:board:9300, and --port a port\n");
    return WRONG_WORDS;
  }
  start_line *l = calloc(1, sizeof *l);
  if (l == NULL) return fail_text("rpc-tunnel", "out of memory");
  start_add(l, "server", to);
  start_add_number(l, "port", o->port);
  start_add(l, "psk", o->psk);
  start_add(l, "cert", o->tls_cert);
  start_add(l, "key", o->tls_key);
  start_add(l, "ca", o->tls_ca);
  start_add(l, "name", o->tls_name);
  const int status = start_program("rpc-tunnel", HEDDLE_DEVICE_SERVER_INSTALLED, "HEDDLE_REMOTE", "tunnel", l);
  free(l);
  return status;
}

static const option server_options[] = {
    {"listen", OPTION_TEXT, "ADDRESS:PORT", offsetof(options, listen),
     "serve TCP there; port 0: any free one. Addresses of other machines need --psk or --tls-cert"},
    {"unix", OPTION_TEXT, "PATH", offsetof(options, unix_path), "serve this user's processes on a Unix socket"},
    {"stdio", OPTION_FLAG, NULL, offsetof(options, stdio), "serve one client on standard input and output, as by ssh"},
    {"tls-cert", OPTION_TEXT, "FILE", offsetof(options, tls_cert), "TLS with this certificate, PEM"},
    {"tls-key", OPTION_TEXT, "FILE", offsetof(options, tls_key), "the key of the certificate, PEM"},
    {"tls-ca", OPTION_TEXT, "FILE", offsetof(options, tls_ca),
     "the certificate of the authority that clients' certificates must be from, PEM"},
    {"psk", OPTION_TEXT, "FILE", offsetof(options, psk), "TLS with clients that have a key of this file (heddle keys)"},
    {"devices", OPTION_TEXT, "LIST", offsetof(options, devices), "what is served; the default devices otherwise"},
    {"tracker", OPTION_TEXT, "HOST:PORT", offsetof(options, tracker),
     "the tracker (heddle rpc-tracker) that gives this server to clients"},
    {"key", OPTION_TEXT, "K", offsetof(options, rpc_key), "the name that clients ask the tracker for"},
    {"address", OPTION_TEXT, "ADDRESS", offsetof(options, address),
     "as the tracker gives it to clients; as it sees the server by default"},
    {"sessions", OPTION_COUNT, "N", offsetof(options, sessions),
     "clients that are served at the same time; 8 by default"},
    {"session-memory", OPTION_COUNT, "MIB", offsetof(options, session_memory),
     "what a session may allocate; 4096 by default"},
    {"session-timeout", OPTION_COUNT, "S", offsetof(options, session_timeout),
     "seconds after which a session ends; 0, the default: when its client closes it"},
    {"idle-timeout", OPTION_COUNT, "S", offsetof(options, idle_timeout),
     "seconds of silence after which a client is gone; 60 by default"},
    {"allow-libraries", OPTION_FLAG, NULL, offsetof(options, allow_libraries),
     "run compiled libraries that clients send: they can then do what this user can"},
    {"tvm-rpc", OPTION_FLAG, NULL, offsetof(options, tvm_rpc),
     "also serve TVM's RPC to the same clients, inside their connections (heddle rpc-tunnel); they run code here"},
    OPTION_HELP,
    OPTION_END};

static const option tunnel_options[] = {
    {"server", OPTION_TEXT, "ADDRESS", offsetof(options, tunnel_to),
     "the device server, as tls:HOST:PORT; HEDDLE_REMOTE by default"},
    {"port", OPTION_COUNT, "P", offsetof(options, port),
     "the port of this machine; 0, which is the default: any free one"},
    {"psk", OPTION_TEXT, "FILE", offsetof(options, psk), "a file of heddle keys, which the server has too"},
    {"tls-cert", OPTION_TEXT, "FILE", offsetof(options, tls_cert), "the certificate of this client, PEM"},
    {"tls-key", OPTION_TEXT, "FILE", offsetof(options, tls_key), "the key of the certificate, PEM"},
    {"tls-ca", OPTION_TEXT, "FILE", offsetof(options, tls_ca), "the certificate of the servers' authority, PEM"},
    {"tls-name", OPTION_TEXT, "NAME", offsetof(options, tls_name),
     "the name in the server's certificate; that of the address by default"},
    OPTION_HELP,
    OPTION_END};

static const option keys_options[] = {
    {"output", OPTION_TEXT, "FILE", offsetof(options, output), "the file to write; it must not exist"},
    {"name", OPTION_TEXT, "NAME", offsetof(options, key_name), "how the server knows the key; heddle by default"},
    OPTION_HELP,
    OPTION_END};

const command device_server_command = {
    "device-server",
    "serves this machine's devices to the plugin remote of other machines",
    "Each device becomes a device of the client's (docs/remote.md). Clients are authenticated by TLS with certificates "
    "or\n"
    "a key, by a Unix socket's credentials, or by ssh; TCP without TLS is for this machine alone. Each client has a "
    "session\n"
    "in a process of its own, with limits. Prints the address, and serves until it is interrupted.",
    server_options,
    SUBJECT_NONE,
    serve};

const command rpc_tunnel_command = {
    "rpc-tunnel",
    "carries TVM's RPC to a device server, authenticated and encrypted",
    "Clients of TVM's RPC on this machine connect to its port as to a server. Each connection is carried inside one to "
    "a\n"
    "device server that was started with --tvm-rpc. Prints the port, and serves until it is interrupted.",
    tunnel_options,
    SUBJECT_NONE,
    tunnel};

const command keys_command = {"keys",
                              "makes a key that a device server and its clients share",
                              "Writes a file that only its owner may read. Copy it to the clients by a safe way; a "
                              "server's file may have the lines\n"
                              "of several.",
                              keys_options,
                              SUBJECT_NONE,
                              make_keys};
