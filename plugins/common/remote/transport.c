/* Bytes in order over descriptors, and the waiting that all carriers share. */
#include "plugins/common/remote/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 100 };

int64_t transport_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- descriptors. A socket gives no SIGPIPE; pipes do, whose program ignores it. */

static int64_t moved(ssize_t n) {
  if (n > 0) return n;
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

static int64_t plain_put(transport *t, const void *data, size_t bytes) {
  ssize_t n = send(t->out, data, bytes, MSG_NOSIGNAL);
  if (n < 0 && errno == ENOTSOCK) n = write(t->out, data, bytes);
  return moved(n);
}

static int64_t plain_get(transport *t, void *data, size_t bytes) {
  return moved(read(t->in, data, bytes));
}

static void plain_close(transport *t) {
  (void)t;
}

static const transport_carrier plain = {plain_put, plain_get, plain_close};

static bool does_not_block(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

bool transport_init(transport *t, int in, int out, int64_t quiet_ms) {
  t->carrier = &plain;
  t->state = NULL;
  t->in = in;
  t->out = out;
  t->quiet_ms = quiet_ms;
  t->was_quiet = false;
  t->why[0] = '\0';
  atomic_init(&t->ended, false);
  atomic_init(&t->heard_ms, transport_now_ms());
  if (pthread_mutex_init(&t->lock, NULL) == 0) {
    if (does_not_block(in) && does_not_block(out)) return true;
    pthread_mutex_destroy(&t->lock);
  }
  close(in);
  if (out != in) close(out);
  return false;
}

/* ---- waiting */

static bool is_quiet(transport *t) {
  if (t->quiet_ms <= 0 || transport_now_ms() - atomic_load(&t->heard_ms) < t->quiet_ms) return false;
  t->was_quiet = true;
  return true;
}

static void wait_for(int fd, short events) {
  struct pollfd p = {.fd = fd, .events = events};
  (void)poll(&p, 1, TICK_MS);
}

bool transport_send(transport *t, const void *data, size_t bytes) {
  const char *at = data;
  while (bytes > 0) {
    if (atomic_load(&t->ended)) return false;
    const int64_t n = t->carrier->put(t, at, bytes);
    if (n < 0) return false;
    if (n == 0) wait_for(t->out, POLLOUT);
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}

bool transport_receive(transport *t, void *data, size_t bytes) {
  char *at = data;
  while (bytes > 0) {
    if (atomic_load(&t->ended)) return false;
    const int64_t n = t->carrier->get(t, at, bytes);
    if (n < 0) return false;
    if (n > 0) {
      atomic_store(&t->heard_ms, transport_now_ms());
    } else {
      if (is_quiet(t)) return false;
      wait_for(t->in, POLLIN);
    }
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}

void transport_end(transport *t) {
  atomic_store(&t->ended, true);
  (void)shutdown(t->in, SHUT_RDWR);
}

void transport_close(transport *t) {
  t->carrier->close(t);
  close(t->in);
  if (t->out != t->in) close(t->out);
  pthread_mutex_destroy(&t->lock);
}
