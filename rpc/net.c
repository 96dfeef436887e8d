/* rpc/net.c: TCP and signals. */
#include "rpc/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "heddle/text.h"

void rpc_log(const char *format, ...) {
  char line[1200];
  va_list args;
  va_start(args, format);
  heddle_text_format(line, sizeof line, format, args);
  va_end(args);
  fprintf(stderr, "%s\n", line);
}

int64_t rpc_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- addresses */

static bool is_loopback(const struct sockaddr *a) {
  if (a->sa_family == AF_INET) {
    struct sockaddr_in in;
    memcpy(&in, a, sizeof in);
    return ntohl(in.sin_addr.s_addr) >> 24 == 127;
  }
  if (a->sa_family != AF_INET6) return false;
  struct sockaddr_in6 in6;
  memcpy(&in6, a, sizeof in6);
  return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) ||
         (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr) && in6.sin6_addr.s6_addr[12] == 127);
}

static struct addrinfo *look_up(const char *host, uint16_t port, int flags) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
  struct addrinfo *list = NULL;
  char service[8];
  snprintf(service, sizeof service, "%u", (unsigned)port);
  int rc = getaddrinfo(host, service, &hints, &list);
  if (rc == 0) return list;
  rpc_log("heddle rpc: the host '%s' is not known: %s", host, gai_strerror(rc));
  return NULL;
}

static void set_port(struct sockaddr_storage *a, uint16_t port) {
  if (a->ss_family == AF_INET) ((struct sockaddr_in *)a)->sin_port = htons(port);
  else ((struct sockaddr_in6 *)a)->sin6_port = htons(port);
}

static uint16_t port_of(int fd) {
  struct sockaddr_storage a;
  socklen_t n = sizeof a;
  if (getsockname(fd, (struct sockaddr *)&a, &n) != 0) return 0;
  return ntohs(a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port : ((struct sockaddr_in6 *)&a)->sin6_port);
}

static int try_port(const struct addrinfo *at, uint16_t port) {
  enum { WAITING = 1024 };
  const int yes = 1;
  struct sockaddr_storage a = {0};
  memcpy(&a, at->ai_addr, at->ai_addrlen);
  set_port(&a, port);
  int fd = socket(at->ai_family, SOCK_STREAM, 0);
  if (fd < 0) return -1;
  (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && rpc_set_blocking(fd, false) &&
      bind(fd, (struct sockaddr *)&a, at->ai_addrlen) == 0 && listen(fd, WAITING) == 0)
    return fd;
  int why = errno;
  close(fd);
  errno = why;
  return -1;
}

int rpc_listen(const char *host, uint16_t low, uint16_t high, bool serves_all, const char *refusal, uint16_t *port) {
  struct addrinfo *list = look_up(host, low, AI_PASSIVE);
  if (list == NULL) return -1;
  int fd = -1;
  if (!is_loopback(list->ai_addr) && !serves_all) {
    rpc_log("heddle: %s is not an address of this machine alone: %s", host, refusal);
    errno = EPERM;
  } else {
    for (unsigned at = low; fd < 0 && at <= high; at++) fd = try_port(list, (uint16_t)at);
    if (fd < 0) rpc_log("heddle rpc: cannot listen on %s:%u-%u: %s", host, low, high, strerror(errno));
  }
  freeaddrinfo(list);
  if (fd >= 0) *port = port_of(fd);
  return fd;
}

static bool connect_within(int fd, const struct addrinfo *at, int timeout_ms) {
  int error = 0;
  socklen_t size = sizeof error;
  if (!rpc_set_blocking(fd, false)) return false;
  if (connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    if (errno != EINPROGRESS || poll(&wait, 1, timeout_ms) != 1) return false;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
      errno = error;
      return false;
    }
  }
  return rpc_set_blocking(fd, true);
}

int rpc_connect(const char *host, uint16_t port, int timeout_ms) {
  const struct timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
  const int yes = 1;
  struct addrinfo *list = look_up(host, port, 0);
  int fd = -1;
  for (const struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, SOCK_STREAM, 0);
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && connect_within(fd, at, timeout_ms)) break;
    if (fd >= 0) close(fd);
    fd = -1;
  }
  if (list != NULL) freeaddrinfo(list);
  if (fd < 0) return -1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return fd;
}

/* A peer that is gone without a word is noticed in a minute. */
static void keep_alive(int fd) {
  const int yes = 1, idle = 20, every = 10, times = 4;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

int rpc_accept(int listener, char peer[RPC_HOST_ROOM]) {
  struct sockaddr_storage a;
  socklen_t n = sizeof a;
  int fd = accept(listener, (struct sockaddr *)&a, &n);
  if (fd < 0) return -1;
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || !rpc_set_blocking(fd, false) ||
      getnameinfo((struct sockaddr *)&a, n, peer, RPC_HOST_ROOM, NULL, 0, NI_NUMERICHOST) != 0) {
    close(fd);
    return -1;
  }
  keep_alive(fd);
  return fd;
}

/* ---- bytes */

bool rpc_set_blocking(int fd, bool blocks) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0;
}

bool rpc_receive(int fd, void *out, size_t bytes) {
  for (size_t have = 0; have < bytes;) {
    ssize_t got = recv(fd, (char *)out + have, bytes - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    have += (size_t)got;
  }
  return true;
}

bool rpc_flush(int fd, byte_buffer *b) {
  size_t done = 0;
  bool is_good = true;
  while (done < b->used) {
    const ssize_t put = send(fd, b->data + done, b->used - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno != EAGAIN && errno != EWOULDBLOCK) is_good = false;
    if (put <= 0) break;
    done += (size_t)put;
  }
  if (done > 0) memmove(b->data, b->data + done, b->used - done);
  b->used -= done;
  return is_good;
}

bool rpc_send(int fd, const void *data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t put = send(fd, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += (size_t)put;
  }
  return true;
}

/* ---- signals */

static volatile sig_atomic_t is_ending;
static int signal_pipe = -1;

static void on_signal(int number) {
  int kept = errno;
  if (number != SIGCHLD) is_ending = 1;
  if (write(signal_pipe, "", 1) < 0) errno = 0; /* it is full: the loop wakes up in any case */
  errno = kept;
}

int rpc_watch_signals(void) {
  static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
  int ends[2];
  if (pipe(ends) != 0) return -1;
  for (int i = 0; i < 2; i++)
    if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0 || !rpc_set_blocking(ends[i], false)) return -1;
  signal_pipe = ends[1];
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    if (sigaction(numbers[i], &action, NULL) != 0) return -1;
  signal(SIGPIPE, SIG_IGN);
  return ends[0];
}

bool rpc_is_ending(void) {
  return is_ending != 0;
}
