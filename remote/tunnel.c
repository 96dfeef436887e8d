/* remote/tunnel.c: what both ends of a tunnel do, and the server's. */
#include "remote/tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote/session.h"
#include "rpc/net.h"

enum { PIECE = 1 << 16, MOST_DATA = 1 << 20, QUIET_MS = 10000 };

typedef struct carried {
  transport *t;
  int fd;
} carried;

static bool put_all(int fd, const char *data, size_t bytes) {
  while (bytes > 0) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    const ssize_t n = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n < 0) (void)poll(&p, 1, -1); /* the other thread ends it with the connection */
    else data += n, bytes -= (size_t)n;
  }
  return true;
}

/* From the connection to the socket. */
static void bring(const carried *c, char *piece) {
  uint8_t bytes[WIRE_HEAD];
  while (transport_receive(c->t, bytes, sizeof bytes)) {
    const wire_head head = wire_head_take(bytes);
    uint64_t left = head.bytes;
    if (head.kind == WIRE_ALIVE && left == 0) continue;
    if (head.kind != WIRE_DATA || left > MOST_DATA) return;
    while (left > 0) {
      const size_t n = left < PIECE ? (size_t)left : PIECE;
      if (!transport_receive(c->t, piece, n) || !put_all(c->fd, piece, n)) return;
      left -= n;
    }
  }
}

/* From the socket to the connection, with a sign of life where there is nothing. */
static void *take(void *user) {
  enum { ROOM = WIRE_HEAD + PIECE };
  const carried *c = user;
  uint8_t *frame = malloc(ROOM);
  bool good = frame != NULL;
  while (good) {
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    const int ready = poll(&p, 1, REMOTE_ALIVE_MS);
    const ssize_t n = ready > 0 ? recv(c->fd, frame + WIRE_HEAD, PIECE, MSG_DONTWAIT) : 0;
    if (ready > 0 && n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if ((ready < 0 && errno != EINTR) || (ready > 0 && n <= 0)) break;
    wire_head_put(frame, &(wire_head){.bytes = (uint64_t)n, .kind = n > 0 ? WIRE_DATA : WIRE_ALIVE});
    good = transport_send(c->t, frame, WIRE_HEAD + (size_t)n);
  }
  free(frame);
  transport_end(c->t);
  (void)shutdown(c->fd, SHUT_RDWR);
  return NULL;
}

void remote_tunnel_carry(transport *t, int fd) {
  carried c = {t, fd};
  pthread_t taker;
  char *piece = malloc(PIECE);
  t->quiet_ms = QUIET_MS;
  if (piece != NULL && pthread_create(&taker, NULL, take, &c) == 0) {
    bring(&c, piece);
    transport_end(t);
    (void)shutdown(fd, SHUT_RDWR);
    pthread_join(taker, NULL);
  }
  free(piece);
}

/* ---- the server's end */

/* In the process of the session, which has one thread so far: its limits and its folder are those of the program, too. */
static void become_rpc(const remote_limits *limits, int fd) {
  char number[32], memory[48];
  snprintf(number, sizeof number, "fd=%d", fd);
  snprintf(memory, sizeof memory, "memory=%llu", (unsigned long long)(limits->memory >> 20));
  char program[] = "heddle-rpc", what[] = "session", *const line[] = {program, what, number, memory, NULL};
  if (fcntl(fd, F_SETFD, 0) != 0) _exit(1);
  (void)execv(limits->rpc_program, line);
  rpc_log("heddle device-server: '%s' cannot be started (errno %d)", limits->rpc_program, errno);
  _exit(1);
}

int remote_tunnel_serve(transport *t, const remote_limits *limits) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 1;
  const pid_t pid = fork();
  if (pid == 0) become_rpc(limits, ends[1]);
  close(ends[1]);
  if (pid > 0) remote_tunnel_carry(t, ends[0]);
  close(ends[0]);
  return pid > 0 ? 0 : 1; /* the server kills what is left with the session's process */
}
