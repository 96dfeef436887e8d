/* rpc/client/connection.c: a client's connection: TCP, the handshake, packets and their replies. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "heddle/text.h"
#include "rpc/client/client.h"

enum { USUAL_MS = 30000, LONGEST_SERVER_KEY = 4096 };
static const uint64_t longest_reply = UINT64_C(1) << 31;

heddle_status rpc_error(heddle_error *err, heddle_status status, const char *format, ...) {
  if (err == NULL) return status;
  va_list args;
  va_start(args, format);
  *err = (heddle_error){.status = status};
  heddle_text_format(err->text, sizeof err->text, format, args);
  va_end(args);
  return status;
}

/* ---- TCP */

static bool connect_within(int fd, const struct addrinfo *at, uint32_t ms) {
  int error = 0, flags = fcntl(fd, F_GETFL);
  socklen_t size = sizeof error;
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return false;
  if (connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    if (errno != EINPROGRESS) return false;
    errno = ETIMEDOUT;
    if (poll(&wait, 1, (int)ms) != 1) return false;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return false;
    if ((errno = error) != 0) return false;
  }
  return fcntl(fd, F_SETFL, flags) == 0;
}

int rpc_dial(const char *host, uint16_t port, uint32_t connect_ms, heddle_error *err) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
  struct addrinfo *list = NULL;
  char service[8];
  const int yes = 1;
  int fd = -1, why = 0;
  snprintf(service, sizeof service, "%u", (unsigned)port);
  int rc = getaddrinfo(host, service, &hints, &list);
  if (rc != 0) {
    rpc_error(err, HEDDLE_EIO, "the host '%.200s' is not known: %s", host, gai_strerror(rc));
    return -1;
  }
  for (const struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect_within(fd, at, connect_ms > 0 ? connect_ms : USUAL_MS)) break;
    why = errno;
    if (fd >= 0) close(fd);
    fd = -1;
  }
  freeaddrinfo(list);
  if (fd < 0) {
    rpc_error(err, HEDDLE_EIO, "cannot connect to %.200s:%u: %s", host, (unsigned)port, strerror(why));
    return -1;
  }
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  return fd;
}

bool rpc_read_bytes(int fd, void *out, size_t n) {
  for (size_t have = 0; have < n;) {
    ssize_t got = recv(fd, (char *)out + have, n - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    have += (size_t)got;
  }
  return true;
}

bool rpc_write_bytes(int fd, const void *data, size_t n) {
  for (size_t done = 0; done < n;) {
    ssize_t put = send(fd, (const char *)data + done, n - done, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += (size_t)put;
  }
  return true;
}

/* ---- packets */

/* The session is over: nothing that comes after can be understood. */
static heddle_status lose(heddle_rpc *rpc, heddle_error *err, heddle_status status, const char *why) {
  if (rpc->fd >= 0) close(rpc->fd);
  rpc->fd = -1;
  return rpc_error(err, status, "the session with %s is over: %s", rpc->where, why);
}

static heddle_status raised(heddle_rpc *rpc, heddle_error *err) {
  static const char expired[] = "RPCSessionTimeoutError: ";
  if (rpc->values.count != 1 || rpc->values.data[0].kind != RPC_KIND_STRING)
    return lose(rpc, err, HEDDLE_EFORMAT, "it sent an error without text");
  const char *text = rpc->values.data[0].of.text.data;
  if (strncmp(text, expired, sizeof expired - 1) == 0) /* as the protocol has it */
    return lose(rpc, err, HEDDLE_ETIMEOUT, text + sizeof expired - 1);
  return rpc_error(err, HEDDLE_EFAILED, "%s", text);
}

static heddle_status receive(heddle_rpc *rpc, uint32_t *code, heddle_error *err) {
  const uint8_t *packet = NULL;
  size_t n = 0;
  switch (rpc_inbox_take(&rpc->inbox, rpc->fd, longest_reply, &packet, &n)) {
  case RPC_ENDED: return lose(rpc, err, HEDDLE_EIO, "the connection was closed");
  case RPC_BAD_SIZE: return lose(rpc, err, HEDDLE_EFORMAT, "it sent a packet of an impossible size");
  case RPC_NO_ROOM: return lose(rpc, err, HEDDLE_ENOMEM, "memory for its reply is out");
  default: break;
  }
  byte_reader r = {packet, n, false};
  *code = byte_take_u32(&r);
  rpc->body = r.at;
  rpc->body_bytes = r.left;
  return HEDDLE_OK;
}

static heddle_status reply(heddle_rpc *rpc, uint32_t wanted, heddle_error *err) {
  uint32_t code = 0;
  heddle_status s = receive(rpc, &code, err);
  if (s != HEDDLE_OK) return s;
  if (code == RPC_COPY_ACK && wanted == code) return HEDDLE_OK;
  if (code == RPC_SHUTDOWN) return lose(rpc, err, HEDDLE_EIO, "the server ended it");
  if (code != RPC_EXCEPTION && (code != RPC_RETURN || wanted != code))
    return lose(rpc, err, HEDDLE_EFORMAT, "it sent what is no reply");
  if (rpc->era == RPC_ERA_UNKNOWN) { /* the first reply's first tag: 4, or 11 of an error, are era A's */
    const uint8_t tag = rpc->body_bytes >= 8 ? rpc->body[4] : 0;
    rpc->era = tag == 4 || tag == 11 ? RPC_ERA_A : RPC_ERA_B;
  }
  byte_reader body = {rpc->body, rpc->body_bytes, false};
  s = rpc_read_values(&body, rpc->era, &rpc->values);
  if (s == HEDDLE_ENOMEM) return rpc_error(err, s, "out of memory: a reply");
  if (s != HEDDLE_OK || body.left > 0) return lose(rpc, err, HEDDLE_EFORMAT, "it sent a malformed reply");
  return code == RPC_EXCEPTION ? raised(rpc, err) : HEDDLE_OK;
}

heddle_status rpc_ask(heddle_rpc *rpc, uint32_t code, const byte_buffer *body, const void *more, size_t more_bytes,
                      uint32_t wanted, heddle_error *err) {
  rpc_values_finish(&rpc->values);
  if (rpc->fd < 0) return rpc_error(err, HEDDLE_EIO, "the session with %s is over", rpc->where);
  if (body->failed) return rpc_error(err, HEDDLE_ENOMEM, "out of memory: a request");
  uint8_t head[12];
  byte_place(head, 4 + body->used + more_bytes, 8);
  byte_place(head + 8, code, 4);
  struct iovec parts[3] = {{head, sizeof head}, {body->data, body->used}, {(void *)(uintptr_t)more, more_bytes}};
  /* A server that ended the session may have said why before it closed. */
  (void)rpc_send_parts(rpc->fd, parts, 3);
  return reply(rpc, wanted, err);
}

heddle_status rpc_ask_one(heddle_rpc *rpc, uint32_t code, const rpc_value *values, uint32_t n, rpc_value *out,
                          heddle_error *err) {
  byte_buffer body = {0};
  rpc_put_values(&body, rpc->era, values, n);
  heddle_status s = rpc_ask(rpc, code, &body, NULL, 0, RPC_RETURN, err);
  byte_finish(&body);
  if (s != HEDDLE_OK) return s;
  if (rpc->values.count != 1) return lose(rpc, err, HEDDLE_EFORMAT, "it sent no value");
  if (out != NULL) *out = rpc->values.data[0];
  return HEDDLE_OK;
}

/* ---- sessions */

static heddle_status shake(heddle_rpc *rpc, const char *key, double seconds, heddle_error *err) {
  char text[RPC_LONGEST_KEY + 64], server_key[LONGEST_SERVER_KEY];
  uint8_t head[4];
  byte_buffer b = {0};
  int n = snprintf(text, sizeof text, "client:%s", key);
  if (seconds > 0 && n > 0) /* whole numbers: some servers read no others */
    n += snprintf(text + n, sizeof text - (size_t)n, " -timeout=%llu", (unsigned long long)(seconds + 0.999));
  byte_put_u32(&b, RPC_MAGIC);
  byte_put_u32(&b, (uint32_t)n);
  byte_put(&b, text, (size_t)n);
  bool good = !b.failed && rpc_write_bytes(rpc->fd, b.data, b.used) && rpc_read_bytes(rpc->fd, head, sizeof head);
  byte_finish(&b);
  if (!good) return lose(rpc, err, HEDDLE_EIO, "it closed the connection");
  byte_reader r = {head, sizeof head, false};
  uint32_t code = byte_take_u32(&r);
  if (code == RPC_MISMATCH) return lose(rpc, err, HEDDLE_EDENIED, "it has another key");
  if (code != RPC_MAGIC || !rpc_read_bytes(rpc->fd, head, sizeof head))
    return lose(rpc, err, HEDDLE_EFORMAT, "it is no server of TVM's RPC");
  r = (byte_reader){head, sizeof head, false};
  uint32_t bytes = byte_take_u32(&r);
  if (bytes > sizeof server_key || !rpc_read_bytes(rpc->fd, server_key, bytes))
    return lose(rpc, err, HEDDLE_EFORMAT, "it is no server of TVM's RPC");
  return HEDDLE_OK;
}

static heddle_status start(heddle_rpc *rpc, heddle_error *err) {
  static const char version[] = "0.8.0";
  byte_buffer b = {0};
  byte_put_u64(&b, sizeof version - 1);
  byte_put(&b, version, sizeof version - 1);
  byte_put_u32(&b, 0);
  heddle_status s = rpc_ask(rpc, RPC_INIT, &b, NULL, 0, RPC_RETURN, err);
  byte_finish(&b);
  return s;
}

heddle_status heddle_rpc_connect(const char *host, uint16_t port, const char *key, const heddle_rpc_options *options,
                                 heddle_rpc **out, heddle_error *err) {
  if (out != NULL) *out = NULL;
  if (host == NULL || key == NULL || out == NULL || strlen(key) > RPC_LONGEST_KEY || strpbrk(key, " \t\r\n") != NULL ||
      (options != NULL && options->struct_size < sizeof *options))
    return rpc_error(err, HEDDLE_EINVAL, "a session needs a host, a key without blanks, and valid options");
  const double seconds = options != NULL ? options->session_seconds : 0;
  if (!(seconds >= 0 && seconds < 1e9)) return rpc_error(err, HEDDLE_EINVAL, "session_seconds is no time");
  heddle_rpc *rpc = calloc(1, sizeof *rpc);
  if (rpc == NULL) return rpc_error(err, HEDDLE_ENOMEM, "out of memory: a session");
  snprintf(rpc->where, sizeof rpc->where, "%.255s:%u", host, (unsigned)port);
  rpc->fd = rpc_dial(host, port, options != NULL ? options->connect_ms : 0, err);
  heddle_status s = rpc->fd >= 0 ? shake(rpc, key, seconds, err) : HEDDLE_EIO;
  if (s == HEDDLE_OK) s = start(rpc, err);
  if (s == HEDDLE_OK) *out = rpc;
  else heddle_rpc_close(rpc);
  return s;
}

void heddle_rpc_close(heddle_rpc *rpc) {
  static const uint8_t last[] = {4, 0, 0, 0, 0, 0, 0, 0, RPC_SHUTDOWN, 0, 0, 0};
  if (rpc == NULL) return;
  if (rpc->fd >= 0) {
    (void)rpc_write_bytes(rpc->fd, last, sizeof last);
    close(rpc->fd);
  }
  rpc_values_finish(&rpc->values);
  rpc_inbox_finish(&rpc->inbox);
  free(rpc);
}
