/* rpc/server.c: the loop of the server: clients that shake hands, those that wait for a session, and sessions. No client
 * keeps another one from being heard: what is read here is never waited for. */
#include "rpc/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/child.h"
#include "rpc/net.h"
#include "rpc/register.h"

enum { MOST_PEERS = 256, HANDSHAKE_MS = 10000, TICK_MS = 500 };

/* BEHIND: the server's own connection to a proxy, which gives it a client. */
typedef enum peer_state { SPEAKS, BEHIND, WAITS, RUNS } peer_state;

typedef struct peer {
  int fd;
  peer_state state;
  bool is_greeted;  /* by the proxy */
  int64_t deadline; /* 0: none */
  double seconds;   /* that the session may take; 0: as long as it wants */
  rpc_child child;
  size_t have;
  uint8_t first[8 + RPC_LONGEST_KEY];
  char name[RPC_HOST_ROOM];
} peer;

typedef struct server {
  const rpc_server_options *o;
  int listener, signals;
  rpc_register tracker;
  int64_t proxy_at; /* when to connect to the proxy again */
  bool complained;  /* about it */
  peer *peers;      /* MOST_PEERS; fd -1: free */
  uint32_t running;
} server;

/* ---- peers */

static void forget(peer *p) {
  if (p->fd >= 0) close(p->fd);
  p->fd = -1;
}

/* The place for a new client: a free one, or that of the one which has been silent longest. */
static peer *place(server *s) {
  peer *oldest = NULL;
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *p = &s->peers[i];
    if (p->fd < 0) return p;
    if (p->state == SPEAKS && (oldest == NULL || p->deadline < oldest->deadline)) oldest = p;
  }
  if (oldest != NULL) forget(oldest);
  return oldest;
}

static void accept_all(server *s) {
  char name[RPC_HOST_ROOM];
  for (int fd; (fd = rpc_accept(s->listener, name)) >= 0;) {
    peer *p = place(s);
    if (p == NULL) {
      close(fd);
      continue;
    }
    *p = (peer){.fd = fd, .state = SPEAKS, .deadline = rpc_now_ms() + HANDSHAKE_MS};
    memcpy(p->name, name, sizeof name);
  }
}

/* ---- sessions */

static void send_code(peer *p, uint32_t code, const char *key) {
  byte_buffer b = {0};
  char text[RPC_LONGEST_KEY + 8];
  byte_put_u32(&b, code);
  if (key != NULL) {
    snprintf(text, sizeof text, "server:%s", key);
    byte_put_u32(&b, (uint32_t)strlen(text));
    byte_put(&b, text, strlen(text));
  }
  /* A few bytes always fit into a socket that nothing was written to. */
  if (!b.failed) (void)!send(p->fd, b.data, b.used, MSG_NOSIGNAL);
  byte_finish(&b);
}

typedef struct serving {
  int socket;
  const rpc_limits *limits;
} serving;

static int serve(void *user) {
  const serving *now = user;
  return rpc_session_serve(now->socket, now->limits);
}

static void start(server *s, peer *p) {
  serving now = {p->fd, &s->o->limits};
  const uint64_t memory = s->o->limits.memory + s->o->limits.packet;
  int closes[MOST_PEERS + 3], n = 0;
  for (int i = 0; i < MOST_PEERS; i++)
    if (s->peers[i].fd != p->fd) closes[n++] = s->peers[i].fd;
  closes[n++] = s->listener;
  closes[n++] = s->signals;
  closes[n++] = s->tracker.fd;
  if (!p->is_greeted) send_code(p, RPC_MAGIC, s->o->key);
  if (!rpc_set_blocking(p->fd, true) || !rpc_child_start(&p->child, memory, serve, &now, closes, n)) {
    rpc_log("heddle rpc-server: cannot start a session for %s: %s", p->name, strerror(errno));
    forget(p);
    return;
  }
  const double most = (double)s->o->session_seconds;
  if (most > 0 && (p->seconds <= 0 || p->seconds > most)) p->seconds = most;
  p->state = RUNS;
  p->deadline = p->seconds > 0 ? rpc_now_ms() + (int64_t)(p->seconds * 1000) : 0;
  s->running++;
}

static void start_waiting(server *s) {
  for (int i = 0; i < MOST_PEERS && s->running < s->o->sessions; i++)
    if (s->peers[i].fd >= 0 && s->peers[i].state == WAITS) start(s, &s->peers[i]);
}

static void send_expired(peer *p) {
  char text[200];
  byte_buffer b = {0}, packet = {0};
  snprintf(text, sizeof text,
           "RPCSessionTimeoutError: Your %gs session has expired, try to increase the \"session_timeout\" value.",
           p->seconds);
  rpc_value value = {.kind = RPC_KIND_STRING, .of.text = {text, strlen(text)}};
  byte_put_u32(&b, RPC_EXCEPTION);
  rpc_put_values(&b, RPC_ERA_B, &value, 1);
  byte_put_u64(&packet, b.used);
  byte_put(&packet, b.data, b.used);
  if (!packet.failed && !b.failed) (void)!send(p->fd, packet.data, packet.used, MSG_NOSIGNAL | MSG_DONTWAIT);
  byte_finish(&b);
  byte_finish(&packet);
}

static void watch(server *s, peer *p) {
  int status = 0;
  if (rpc_child_ended(&p->child, &status)) {
    if (WIFSIGNALED(status))
      rpc_log("heddle rpc-server: the session of %s ended with signal %d (%s)", p->name, WTERMSIG(status),
              strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0) rpc_log("heddle rpc-server: %s broke the protocol; its session ended", p->name);
  } else if (p->deadline > 0 && rpc_now_ms() >= p->deadline) {
    rpc_log("heddle rpc-server: the session of %s expired after %g s", p->name, p->seconds);
    rpc_child_kill(&p->child);
    send_expired(p);
  } else {
    return;
  }
  s->running--;
  forget(p);
}

/* ---- the handshake */

static bool is_right(const server *s, const char *match) {
  if (s->tracker.host == NULL) return strcmp(match, s->o->key) == 0;
  return s->tracker.offers && strcmp(match, s->tracker.match) == 0;
}

/* ---- a proxy */

enum { PROXY_AGAIN_MS = 5000 };

static void lose_proxy(server *s, const char *why) {
  s->proxy_at = rpc_now_ms() + PROXY_AGAIN_MS;
  if (!s->complained)
    rpc_log("heddle rpc-server: the proxy at %s:%u: %s; trying again", s->o->proxy, (unsigned)s->o->proxy_port, why);
  s->complained = true;
}

/* Keeps one connection that waits for a client, while another session may begin. */
static void stand_behind(server *s) {
  if (s->o->proxy == NULL || s->running >= s->o->sessions || rpc_now_ms() < s->proxy_at) return;
  for (int i = 0; i < MOST_PEERS; i++)
    if (s->peers[i].fd >= 0 && s->peers[i].state != RUNS) return;
  peer *p = place(s);
  if (p == NULL) return;
  *p = (peer){.fd = rpc_connect(s->o->proxy, s->o->proxy_port, 3000), .state = BEHIND};
  snprintf(p->name, sizeof p->name, "%.200s:%u", s->o->proxy, (unsigned)s->o->proxy_port);
  if (p->fd >= 0) send_code(p, RPC_MAGIC, s->o->key);
  if (p->fd >= 0 && rpc_set_blocking(p->fd, false)) return;
  lose_proxy(s, strerror(errno));
  forget(p);
}

static void shake(server *s, peer *p) {
  char match[RPC_LONGEST_KEY + 1];
  size_t used = 0;
  heddle_status got = rpc_handshake(p->first, p->have, match, &p->seconds, &used);
  if (got == HEDDLE_EBUSY) return;
  if (got != HEDDLE_OK) {
    if (p->state == BEHIND) lose_proxy(s, "it refuses the key: another server has it, or no client came");
    forget(p);
    return;
  }
  if (p->state == BEHIND) {
    s->complained = false;
    p->is_greeted = true;
    p->state = WAITS;
    return;
  }
  if (!is_right(s, match)) {
    rpc_log("heddle rpc-server: %s was refused: its key '%s' is not this server's", p->name, match);
    send_code(p, RPC_MISMATCH, NULL);
    forget(p);
    return;
  }
  if (s->tracker.host != NULL) rpc_register_used(&s->tracker);
  p->state = WAITS;
  p->deadline = 0;
}

/* As many bytes as the handshake needs and none of what follows, which is the session's. */
static void hear(server *s, peer *p) {
  while (p->fd >= 0 && (p->state == SPEAKS || p->state == BEHIND)) {
    byte_reader r = {p->first + 4, 4, false};
    size_t want = p->have < 8 ? 8 : 8 + (size_t)byte_take_u32(&r);
    if (want > sizeof p->first) want = p->have; /* too long, which shake sees */
    ssize_t got = want > p->have ? recv(p->fd, p->first + p->have, want - p->have, MSG_DONTWAIT) : 0;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got < 0 || (got == 0 && want > p->have)) {
      if (p->state == BEHIND) lose_proxy(s, "it closed the connection");
      forget(p);
      return;
    }
    p->have += (size_t)got;
    shake(s, p);
  }
}

/* ---- the loop */

static void step(server *s) {
  struct pollfd polls[MOST_PEERS + 2];
  peer *of[MOST_PEERS];
  int n = 0, timeout = TICK_MS;
  const int64_t now = rpc_now_ms();
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *p = &s->peers[i];
    if (p->fd < 0) continue;
    if (p->deadline > 0 && p->deadline - now < timeout) timeout = p->deadline > now ? (int)(p->deadline - now) : 0;
    if (p->state != SPEAKS && p->state != BEHIND) continue;
    of[n] = p;
    polls[n++] = (struct pollfd){.fd = p->fd, .events = POLLIN};
  }
  polls[n] = (struct pollfd){.fd = s->listener, .events = POLLIN};
  polls[n + 1] = (struct pollfd){.fd = s->signals, .events = POLLIN};
  if (poll(polls, (nfds_t)n + 2, timeout) < 0) return;
  char drop[64];
  while (read(s->signals, drop, sizeof drop) > 0) continue;
  for (int i = 0; i < n; i++)
    if (polls[i].revents != 0) hear(s, of[i]);
  if (polls[n].revents != 0) accept_all(s);
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *p = &s->peers[i];
    if (p->fd >= 0 && p->state == RUNS) watch(s, p);
    else if (p->fd >= 0 && p->state == SPEAKS && rpc_now_ms() >= p->deadline) forget(p);
  }
  start_waiting(s);
  stand_behind(s);
  rpc_register_step(&s->tracker, s->running < s->o->sessions);
}

int rpc_server_run(const rpc_server_options *o) {
  uint16_t port = 0;
  server s = {.o = o, .listener = -1};
  if (o->proxy == NULL) s.listener = rpc_listen(o->host, o->low, o->high, o->is_insecure, RPC_REFUSAL, &port);
  if (o->proxy == NULL && s.listener < 0) return 1;
  s.tracker = (rpc_register){.host = o->tracker,
                             .tracker_port = o->tracker_port,
                             .key = o->key,
                             .address = o->address,
                             .port = port,
                             .command = "rpc-server",
                             .fd = -1};
  s.signals = rpc_watch_signals();
  s.peers = calloc(MOST_PEERS, sizeof *s.peers);
  if (s.peers == NULL || s.signals < 0) {
    rpc_log("heddle rpc-server: out of memory");
    free(s.peers);
    return 1;
  }
  for (int i = 0; i < MOST_PEERS; i++) s.peers[i].fd = -1;
  if (o->proxy != NULL) printf("heddle rpc-server: behind the proxy %s:%u\n", o->proxy, (unsigned)o->proxy_port);
  else printf("heddle rpc-server: listening on %s:%u\n", o->host, (unsigned)port);
  fflush(stdout);
  while (!rpc_is_ending()) step(&s);
  for (int i = 0; i < MOST_PEERS; i++) {
    rpc_child_kill(&s.peers[i].child);
    forget(&s.peers[i]);
  }
  rpc_register_finish(&s.tracker);
  if (s.listener >= 0) close(s.listener);
  free(s.peers);
  return 0;
}
