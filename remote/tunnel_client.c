/* remote/tunnel_client.c: heddle rpc-tunnel: a port of this machine whose connections are carried to a device server. Clients of
 * TVM's RPC use it as a server of theirs. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/common/perror.h"
#include "plugins/common/remote/wire.h"
#include "plugins/remote/remote.h"
#include "remote/tunnel.h"
#include "rpc/net.h"

enum { MOST_CONNECTIONS = 64, CONNECT_MS = 5000, TICK_MS = 500, GREETING = 28 };

static atomic_int n_connections;

/* What the plugin's ways to a server take of an instance: its settings. */
static heddle_pinstance settings;

typedef struct connection {
  const remote_tunnel_options *o;
  int fd;
} connection;

static heddle_status greet(transport *t, const char *address, heddle_error *err) {
  uint8_t start[WIRE_HEAD];
  byte_buffer b = {0};
  wire_begin(&b);
  byte_put_u64(&b, WIRE_MAGIC);
  byte_put_u32(&b, WIRE_MAJOR);
  byte_put_u32(&b, WIRE_MINOR);
  wire_end(&b, WIRE_TUNNEL, 0, 0);
  bool good = !b.failed && transport_send(t, b.data, b.used) && transport_receive(t, start, sizeof start);
  byte_finish(&b);
  const wire_head head = good ? wire_head_take(start) : (wire_head){0};
  good = good && head.kind == WIRE_HELLO && head.bytes >= GREETING && head.bytes <= WIRE_MOST_HELLO;
  uint8_t *body = good ? malloc((size_t)head.bytes) : NULL;
  heddle_status s = HEDDLE_EIO;
  if (body != NULL && transport_receive(t, body, (size_t)head.bytes)) {
    byte_reader r = {body, (size_t)head.bytes, false};
    heddle_error theirs;
    const uint64_t magic = byte_take_u64(&r);
    (void)byte_take_u64(&r); /* its version */
    s = wire_take_error(&r, &theirs);
    if (r.bad || magic != WIRE_MAGIC) s = HEDDLE_EIO;
    else if (s != HEDDLE_OK) (void)p_fail(err, s, 0, "%s: the server refuses: %.500s", address, theirs.text);
  }
  free(body);
  if (s == HEDDLE_EIO)
    return p_fail(err, HEDDLE_EIO, 0, "%s: the server ended the connection, or carries no TVM RPC%s%s", address,
                  t->why[0] != '\0' ? ": " : "", t->why);
  return s;
}

static void *carry(void *user) {
  connection *c = user;
  heddle_error err = {0};
  transport t;
  uint64_t child = 0;
  heddle_status s = remote_connect(&settings, c->o->address, &t, &child, &err);
  if (s == HEDDLE_OK) {
    s = greet(&t, c->o->address, &err);
    if (s == HEDDLE_OK) remote_tunnel_carry(&t, c->fd);
    transport_close(&t);
  }
  if (s != HEDDLE_OK) rpc_log("heddle rpc-tunnel: %s", err.text);
  if (child != 0) (void)waitpid((pid_t)child, NULL, 0);
  close(c->fd);
  free(c);
  atomic_fetch_sub(&n_connections, 1);
  return NULL;
}

static void accept_all(const remote_tunnel_options *o, int listener) {
  char name[RPC_HOST_ROOM];
  for (int fd; (fd = rpc_accept(listener, name)) >= 0;) {
    connection *c = malloc(sizeof *c);
    pthread_t thread;
    if (c != NULL) *c = (connection){o, fd};
    if (c != NULL && atomic_fetch_add(&n_connections, 1) < MOST_CONNECTIONS &&
        pthread_create(&thread, NULL, carry, c) == 0) {
      (void)pthread_detach(thread);
      continue;
    }
    if (c != NULL) atomic_fetch_sub(&n_connections, 1);
    rpc_log("heddle rpc-tunnel: a connection is refused: there are %d, or memory is out", MOST_CONNECTIONS);
    free(c);
    close(fd);
  }
}

/* What is given, else what the variable of the setting has. */
static bool set(char *to, size_t room, const char *given, const char *variable) {
  if (given == NULL) given = getenv(variable);
  return given == NULL || (size_t)snprintf(to, room, "%s", given) < room;
}

int remote_tunnel_run(const remote_tunnel_options *o) {
  uint16_t port = 0;
  char bytes[64];
  settings.connect_ms = CONNECT_MS;
  if (!set(settings.psk, sizeof settings.psk, o->psk, "HEDDLE_REMOTE_PSK") ||
      !set(settings.tls_cert, sizeof settings.tls_cert, o->tls_cert, "HEDDLE_REMOTE_TLS_CERT") ||
      !set(settings.tls_key, sizeof settings.tls_key, o->tls_key, "HEDDLE_REMOTE_TLS_KEY") ||
      !set(settings.tls_ca, sizeof settings.tls_ca, o->tls_ca, "HEDDLE_REMOTE_TLS_CA") ||
      !set(settings.tls_name, sizeof settings.tls_name, o->tls_name, "HEDDLE_REMOTE_TLS_NAME")) {
    rpc_log("heddle rpc-tunnel: a path is too long");
    return 1;
  }
  const int signals = rpc_watch_signals();
  const int listener = rpc_listen("127.0.0.1", o->port, o->port, false, "", &port);
  if (signals < 0 || listener < 0) return 1;
  printf("heddle rpc-tunnel: listening on 127.0.0.1:%u\n", (unsigned)port);
  fflush(stdout);
  while (!rpc_is_ending()) {
    struct pollfd p[] = {{.fd = listener, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    if (poll(p, 2, TICK_MS) <= 0) continue;
    while (read(signals, bytes, sizeof bytes) > 0) continue;
    if (p[0].revents != 0) accept_all(o, listener);
  }
  return 0; /* the process ends with its connections */
}
