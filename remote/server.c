/* remote/server.c: listening, and one process for each client. Silent connections wait without a process, and give their place
 * to newer ones. */
#define _GNU_SOURCE /* struct ucred */
#include "remote/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/common/perror.h"
#include "rpc/child.h"
#include "rpc/net.h"

enum { MOST_PEERS = 256, MOST_UNKNOWN = 32, SILENT_MS = 10000, TICK_MS = 500, MOST_LISTENERS = 2 };

/* SILENT: connected; SHAKES: has a process, which has not authenticated the client yet; RUNS: a session. */
typedef enum peer_state { SILENT, SHAKES, RUNS } peer_state;

typedef struct peer {
  int fd;   /* SILENT: the connection; -1: the place is free */
  int pipe; /* to the process: it asks with one byte, and gets one */
  peer_state state;
  bool is_plain; /* no TLS: a Unix socket */
  int64_t deadline;
  rpc_child child;
  char name[RPC_HOST_ROOM];
} peer;

typedef struct server {
  const remote_server_options *o;
  int listeners[MOST_LISTENERS], signals;
  peer *peers;
  uint32_t running, unknown;
  remote_offer offer;
} server;

/* ---- in the process of a client */

typedef struct client {
  const server *s;
  int fd, pipe;
  bool is_plain;
} client;

static heddle_status admit(void *user, heddle_error *err) {
  const client *c = user;
  char answer = 'y';
  if (c->pipe >= 0 && (write(c->pipe, "?", 1) != 1 || read(c->pipe, &answer, 1) != 1 || answer != 'y'))
    return p_fail(err, HEDDLE_EBUSY, 0, "all of the server's %u sessions are in use", c->s->o->sessions);
  return HEDDLE_OK;
}

static bool has_tls(const tls_options *tls) {
  return tls->psk != NULL || tls->cert != NULL;
}

static int serve(void *user) {
  client *c = user;
  char why[TLS_WHY];
  transport t;
  if (!transport_init(&t, c->fd, c->fd, SILENT_MS)) return 1;
  if (!c->is_plain && has_tls(&c->s->o->tls) && !tls_start(&t, &c->s->o->tls, why)) {
    rpc_log("heddle device-server: a client is refused: %s", why);
    return 1;
  }
  const int status = remote_session_serve(&t, &c->s->o->limits, admit, c);
  transport_close(&t);
  return status;
}

/* ---- peers */

static bool has_room(const server *s) {
  return s->running < s->o->sessions;
}

static void forget(server *s, peer *p) {
  if (p->state == SHAKES) s->unknown--;
  if (p->state == RUNS) {
    s->running--;
    remote_offer_tell(&s->offer, has_room(s));
  }
  rpc_child_kill(&p->child);
  if (p->fd >= 0) close(p->fd);
  if (p->pipe >= 0) close(p->pipe);
  p->fd = p->pipe = -1;
  p->state = SILENT;
}

static bool is_free(const peer *p) {
  return p->fd < 0 && p->pipe < 0;
}

/* The one that has been in a state longest. */
static peer *oldest(server *s, peer_state state) {
  peer *found = NULL;
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *p = &s->peers[i];
    if (!is_free(p) && p->state == state && (found == NULL || p->deadline < found->deadline)) found = p;
  }
  return found;
}

static peer *place(server *s) {
  for (int i = 0; i < MOST_PEERS; i++)
    if (is_free(&s->peers[i])) return &s->peers[i];
  peer *p = oldest(s, SILENT);
  if (p != NULL) forget(s, p);
  return p;
}

/* On a Unix socket only this user and root are served. */
static bool is_known(int fd) {
  struct ucred who;
  socklen_t size = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && (who.uid == geteuid() || who.uid == 0);
}

static int accept_unix(int listener, char name[RPC_HOST_ROOM]) {
  const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return -1;
  snprintf(name, RPC_HOST_ROOM, "a local process");
  if (is_known(fd)) return fd;
  rpc_log("heddle device-server: a process of another user is refused");
  close(fd);
  return -1;
}

static void accept_all(server *s, int listener, bool is_unix) {
  char name[RPC_HOST_ROOM];
  for (int fd; (fd = is_unix ? accept_unix(listener, name) : rpc_accept(listener, name)) >= 0;) {
    peer *p = place(s);
    if (p == NULL) {
      close(fd);
      continue;
    }
    *p = (peer){.fd = fd, .pipe = -1, .is_plain = is_unix, .deadline = rpc_now_ms() + SILENT_MS};
    memcpy(p->name, name, sizeof name);
  }
}

/* ---- processes */

enum { MOST_CLOSES = 2 * MOST_PEERS + MOST_LISTENERS + 3 };

/* The server's descriptors, but for the connection of a peer, and room for one more. */
static int descriptors(const server *s, const peer *but, int closes[MOST_CLOSES]) {
  int n = 0;
  for (int i = 0; i < MOST_PEERS; i++) {
    if (&s->peers[i] != but) closes[n++] = s->peers[i].fd;
    closes[n++] = s->peers[i].pipe;
  }
  for (int i = 0; i < MOST_LISTENERS; i++) closes[n++] = s->listeners[i];
  closes[n++] = s->signals;
  closes[n++] = s->offer.pipe;
  return n;
}

static void start(server *s, peer *p) {
  int closes[MOST_CLOSES], ends[2];
  if (s->unknown == MOST_UNKNOWN) forget(s, oldest(s, SHAKES));
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    forget(s, p);
    return;
  }
  int n = descriptors(s, p, closes);
  closes[n++] = ends[0];
  client c = {.s = s, .fd = p->fd, .pipe = ends[1], .is_plain = p->is_plain};
  const bool good = rpc_child_start(&p->child, s->o->limits.memory, serve, &c, closes, n);
  const int why = errno;
  close(ends[1]);
  close(p->fd); /* the process has it */
  p->fd = -1;
  if (!good) {
    rpc_log("heddle device-server: cannot start a process for %s: %s", p->name, strerror(why));
    close(ends[0]);
    return;
  }
  p->pipe = ends[0];
  p->state = SHAKES;
  p->deadline = rpc_now_ms() + 2 * (int64_t)SILENT_MS;
  s->unknown++;
}

/* The client is authenticated. */
static void decide(server *s, peer *p) {
  char byte;
  if (recv(p->pipe, &byte, 1, MSG_DONTWAIT) != 1) return; /* it has ended: watch sees that */
  const bool may = has_room(s);
  s->unknown--;
  s->running++; /* a refused one too, until it has said so */
  p->state = RUNS;
  p->deadline = s->o->limits.seconds > 0 ? rpc_now_ms() + (int64_t)(s->o->limits.seconds + 2) * 1000 : INT64_MAX;
  (void)!send(p->pipe, may ? "y" : "n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  remote_offer_tell(&s->offer, has_room(s));
}

static void watch(server *s, peer *p) {
  int status = 0;
  if (p->state == SILENT) {
    if (rpc_now_ms() >= p->deadline) forget(s, p);
    return;
  }
  if (rpc_child_ended(&p->child, &status)) {
    if (WIFSIGNALED(status))
      rpc_log("heddle device-server: the session of %s ended with signal %d (%s)", p->name, WTERMSIG(status),
              strsignal(WTERMSIG(status)));
    forget(s, p);
  } else if (rpc_now_ms() >= p->deadline) {
    rpc_log("heddle device-server: the session of %s took too long", p->name);
    forget(s, p);
  }
}

/* ---- the loop */

static void step(server *s) {
  int closes[MOST_CLOSES];
  struct pollfd polls[MOST_PEERS + MOST_LISTENERS + 1];
  peer *of[MOST_PEERS];
  int n = 0;
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *p = &s->peers[i];
    if (is_free(p) || p->state == RUNS) continue;
    of[n] = p;
    polls[n++] = (struct pollfd){.fd = p->state == SILENT ? p->fd : p->pipe, .events = POLLIN};
  }
  for (int i = 0; i < MOST_LISTENERS; i++) polls[n + i] = (struct pollfd){.fd = s->listeners[i], .events = POLLIN};
  polls[n + MOST_LISTENERS] = (struct pollfd){.fd = s->signals, .events = POLLIN};
  if (poll(polls, (nfds_t)n + MOST_LISTENERS + 1, TICK_MS) < 0) return;
  char bytes[64];
  while (read(s->signals, bytes, sizeof bytes) > 0) continue;
  for (int i = 0; i < n; i++) {
    if (polls[i].revents == 0 || is_free(of[i])) continue;
    if (of[i]->state == SHAKES) decide(s, of[i]);
    else if ((polls[i].revents & POLLIN) != 0 && recv(of[i]->fd, bytes, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
      start(s, of[i]);
    else forget(s, of[i]);
  }
  if (polls[n].revents != 0) accept_all(s, s->listeners[0], false);
  if (polls[n + 1].revents != 0) accept_all(s, s->listeners[1], true);
  for (int i = 0; i < MOST_PEERS; i++)
    if (!is_free(&s->peers[i])) watch(s, &s->peers[i]);
  remote_offer_step(&s->offer, has_room(s), closes, descriptors(s, NULL, closes));
}

static int listen_unix(const char *path) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  struct stat about;
  if (strlen(path) >= sizeof at.sun_path) {
    rpc_log("heddle device-server: the path '%s' is too long for a socket", path);
    return -1;
  }
  memcpy(at.sun_path, path, strlen(path) + 1);
  if (lstat(path, &about) == 0 && S_ISSOCK(about.st_mode)) (void)unlink(path); /* of a server that was killed */
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const mode_t usual = umask(S_IRWXG | S_IRWXO);
  const bool good = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, SOMAXCONN) == 0;
  (void)umask(usual);
  if (good) return fd;
  rpc_log("heddle device-server: cannot listen on '%s': %s", path, strerror(errno));
  if (fd >= 0) close(fd);
  return -1;
}

/* Waits for a process, and ends it with this one. Its status, or 1. */
static int await(rpc_child *child, int signals) {
  char bytes[64];
  int status = 0;
  while (!rpc_child_ended(child, &status)) {
    struct pollfd p = {.fd = signals, .events = POLLIN};
    if (rpc_is_ending()) {
      rpc_child_kill(child);
      return 1;
    }
    (void)poll(&p, 1, TICK_MS);
    while (read(signals, bytes, sizeof bytes) > 0) continue;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Whether the files of TLS can be used and the devices are there, in a process of its own: this one never opens a plugin. */
static int try_devices(void *user) {
  const remote_server_options *o = user;
  heddle_error err = {0};
  char why[TLS_WHY];
  if (has_tls(&o->tls) && !tls_check(&o->tls, why)) {
    rpc_log("heddle device-server: %s", why);
    return 1;
  }
  remote_session s;
  transport none = {.in = -1, .out = -1};
  const heddle_status status = remote_session_init(&s, &none, &o->limits, &err);
  if (status != HEDDLE_OK) rpc_log("heddle device-server: %s", err.text);
  if (status != HEDDLE_OK) return 1;
  for (uint32_t i = 0; i < s.n_devices; i++) printf("heddle device-server: serves %s\n", s.devices[i].dev->name);
  fflush(stdout);
  remote_session_finish(&s);
  return 0;
}

static bool has_devices(const remote_server_options *o, int signals) {
  rpc_child child;
  return rpc_child_start(&child, o->limits.memory, try_devices, (void *)(uintptr_t)o, &signals, 1) &&
         await(&child, signals) == 0;
}

typedef struct ends {
  const remote_server_options *o;
  int in, out;
} ends;

static int serve_ends(void *user) {
  const ends *e = user;
  const server s = {.o = e->o};
  client c = {.s = &s, .pipe = -1};
  transport t;
  if (!transport_init(&t, e->in, e->out, SILENT_MS)) return 1;
  const int status = remote_session_serve(&t, &e->o->limits, admit, &c);
  transport_close(&t);
  return status;
}

/* The session has a process of its own, as others have: its limits and its folder go with that. */
static int serve_stdio(const remote_server_options *o) {
  ends e = {.o = o};
  rpc_child child;
  const int signals = rpc_watch_signals();
  e.in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  e.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (signals < 0 || e.in < 0 || e.out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
      !rpc_child_start(&child, o->limits.memory, serve_ends, &e, &signals, 1))
    return 1;
  close(e.in);
  close(e.out);
  return await(&child, signals);
}

int remote_server_run(const remote_server_options *o) {
  uint16_t port = 0;
  server s = {.o = o, .listeners = {-1, -1}, .offer = {.tracker = &o->tracker, .pipe = -1}};
  if (o->is_stdio) return serve_stdio(o);
  s.signals = rpc_watch_signals();
  s.peers = calloc(MOST_PEERS, sizeof *s.peers);
  if (s.peers == NULL || s.signals < 0) {
    rpc_log("heddle device-server: out of memory");
    free(s.peers);
    return 1;
  }
  for (int i = 0; i < MOST_PEERS; i++) s.peers[i].fd = s.peers[i].pipe = -1;
  bool good = has_devices(o, s.signals);
  if (good && o->host != NULL) {
    s.listeners[0] = rpc_listen(o->host, o->port, o->port, has_tls(&o->tls),
                                "it is served with TLS only: give --tls-cert, --tls-key and --tls-ca, or --psk", &port);
    good = s.listeners[0] >= 0;
  }
  if (good && o->unix_path != NULL) {
    s.listeners[1] = listen_unix(o->unix_path);
    good = s.listeners[1] >= 0;
  }
  if (good && o->host != NULL) printf("heddle device-server: listening on %s:%u\n", o->host, (unsigned)port);
  if (good && o->unix_path != NULL) printf("heddle device-server: listening on %s\n", o->unix_path);
  fflush(stdout);
  s.offer.port = port;
  while (good && !rpc_is_ending()) step(&s);
  remote_offer_finish(&s.offer);
  for (int i = 0; i < MOST_PEERS; i++) forget(&s, &s.peers[i]);
  for (int i = 0; i < MOST_LISTENERS; i++)
    if (s.listeners[i] >= 0) close(s.listeners[i]);
  if (s.listeners[1] >= 0) (void)unlink(o->unix_path);
  free(s.peers);
  return good ? 0 : 1;
}
