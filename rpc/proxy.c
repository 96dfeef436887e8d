/* rpc/proxy.c: the proxy of TVM's RPC: servers and clients connect to it, and it joins a server and a client of one key and
 * passes their bytes on. With a tracker it registers each waiting server, and clients come with the key that the tracker gave. */
#include "rpc/proxy.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/register.h"
#include "rpc/server.h"

#ifndef RPC_MOST_PEERS /* fewer in the fuzz target */
#define RPC_MOST_PEERS 1024
#endif

enum { MOST_PEERS = RPC_MOST_PEERS, HELLO_MS = 10000, TICK_MS = 500, MOST_PENDING = 1 << 20, PREFIX = 7 };

typedef enum peer_state { SPEAKS, WAITS, JOINED } peer_state;

typedef struct peer {
  int fd; /* -1: free */
  peer_state state;
  bool is_server;
  bool has_ended; /* its other one is gone */
  bool is_early;  /* it sent something while it waits */
  int64_t deadline;
  struct peer *other; /* of JOINED */
  byte_buffer out;    /* what it is to be sent */
  rpc_register tracker;
  size_t have;
  uint8_t first[8 + RPC_LONGEST_KEY];
  char key[RPC_LONGEST_KEY + 1]; /* "server:KEY", "client:KEY OPTION..." */
  char word[RPC_LONGEST_KEY + 1];
  char name[RPC_HOST_ROOM];
} peer;

typedef struct proxy {
  const rpc_proxy_options *o;
  int listener, signals;
  uint16_t port;
  int64_t tracker_at; /* when a tracker that did not answer is asked again */
  peer *peers;        /* MOST_PEERS */
} proxy;

/* ---- peers */

static void forget(peer *p) {
  if (p->fd < 0) return;
  peer *other = p->other;
  rpc_register_finish(&p->tracker);
  close(p->fd);
  byte_finish(&p->out);
  *p = (peer){.fd = -1, .tracker.fd = -1};
  if (other == NULL) return;
  other->other = NULL;
  other->has_ended = true; /* it gets what is left, and is closed */
}

static void send_code(peer *p, uint32_t code, const char *key) {
  byte_put_u32(&p->out, code);
  if (key != NULL) {
    byte_put_u32(&p->out, (uint32_t)strlen(key));
    byte_put(&p->out, key, strlen(key));
  }
  if (p->out.failed || !rpc_flush(p->fd, &p->out)) forget(p);
}

static void refuse(peer *p, uint32_t code, const char *why) {
  rpc_log("heddle rpc-proxy: %s was refused: %s", p->name, why);
  send_code(p, code, NULL);
  forget(p);
}

/* A free place, or that of the one which has been silent longest; NULL: all are known. */
static peer *place(proxy *x) {
  peer *oldest = NULL;
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *p = &x->peers[i];
    if (p->fd < 0) return p;
    if (p->state == SPEAKS && (oldest == NULL || p->deadline < oldest->deadline)) oldest = p;
  }
  if (oldest != NULL) forget(oldest);
  return oldest;
}

static void accept_all(proxy *x) {
  char name[RPC_HOST_ROOM];
  for (int fd; (fd = rpc_accept(x->listener, name)) >= 0;) {
    peer *p = place(x);
    if (p == NULL) {
      close(fd);
      continue;
    }
    *p = (peer){.fd = fd, .deadline = rpc_now_ms() + HELLO_MS, .tracker.fd = -1};
    memcpy(p->name, name, sizeof name);
  }
}

/* ---- joining */

static void join(peer *server, peer *client) {
  server->other = client;
  client->other = server;
  server->state = client->state = JOINED;
  rpc_register_finish(&server->tracker);
  send_code(server, RPC_MAGIC, client->key);
  if (server->fd >= 0 && client->fd >= 0) send_code(client, RPC_MAGIC, server->key);
}

/* Whether a client's word is the key of a server that waits. */
static bool is_for(const proxy *x, const peer *server, const char *word) {
  if (x->o->tracker == NULL) return strcmp(server->word, word) == 0;
  return server->tracker.offers && strcmp(server->tracker.match, word) == 0;
}

static void settle(proxy *x, peer *p) {
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *q = &x->peers[i];
    if (q == p || q->fd < 0 || q->state != WAITS) continue;
    const bool is_pair = q->is_server != p->is_server;
    if (is_pair && is_for(x, p->is_server ? p : q, p->is_server ? q->word : p->word)) {
      join(p->is_server ? p : q, p->is_server ? q : p);
      return;
    }
    if (!is_pair && x->o->tracker == NULL && strcmp(q->word, p->word) == 0) {
      refuse(p, RPC_DUPLICATE, "one of this key waits already");
      return;
    }
  }
  if (!p->is_server && x->o->tracker != NULL) {
    refuse(p, RPC_MISMATCH, "its key is of no server that the tracker gave out");
    return;
  }
  p->state = WAITS;
  p->deadline = p->is_server && x->o->tracker != NULL ? INT64_MAX : rpc_now_ms() + x->o->wait_seconds * 1000;
  if (p->is_server)
    p->tracker = (rpc_register){.host = x->o->tracker,
                                .tracker_port = x->o->tracker_port,
                                .key = p->word,
                                .address = x->o->address,
                                .port = x->port,
                                .command = "rpc-proxy",
                                .fd = -1};
}

static void shake(proxy *x, peer *p) {
  size_t used = 0;
  const heddle_status got = rpc_hello(p->first, p->have, p->key, &used);
  if (got == HEDDLE_EBUSY) return;
  p->is_server = strncmp(p->key, "server:", PREFIX) == 0;
  if (got == HEDDLE_OK && (p->is_server || strncmp(p->key, "client:", PREFIX) == 0)) {
    const size_t n = strcspn(p->key + PREFIX, " \t\r\n");
    memcpy(p->word, p->key + PREFIX, n);
    p->word[n] = '\0';
  }
  if (p->word[0] != '\0') settle(x, p);
  else forget(p); /* no key, with which it could never be joined */
}

/* As many bytes as the handshake needs and none of what follows, which is the other side's. */
static void greet(proxy *x, peer *p) {
  while (p->fd >= 0 && p->state == SPEAKS) {
    byte_reader r = {p->first + 4, 4, false};
    size_t want = p->have < 8 ? 8 : 8 + (size_t)byte_take_u32(&r);
    if (want > sizeof p->first) want = p->have; /* too long, which shake sees */
    const ssize_t got = want > p->have ? recv(p->fd, p->first + p->have, want - p->have, MSG_DONTWAIT) : 0;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got < 0 || (got == 0 && want > p->have)) {
      forget(p);
      return;
    }
    p->have += (size_t)got;
    shake(x, p);
  }
}

/* ---- passing on */

static void pass(peer *p) {
  static uint8_t part[1 << 16];
  peer *to = p->other;
  for (int i = 0; i < 16 && to != NULL && to->out.used < MOST_PENDING; i++) { /* then it is another one's turn */
    const ssize_t got = recv(p->fd, part, sizeof part, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got <= 0) {
      forget(p);
      return;
    }
    byte_put(&to->out, part, (size_t)got);
    if (to->out.failed || !rpc_flush(to->fd, &to->out)) {
      forget(to);
      return;
    }
  }
}

/* One that waits is heard to end. What it sends before it is joined stays in its socket. */
static void notice(peer *p) {
  uint8_t one;
  const ssize_t got = recv(p->fd, &one, 1, MSG_DONTWAIT | MSG_PEEK);
  p->is_early = got > 0;
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) forget(p);
}

/* ---- the loop */

static void watch(proxy *x, peer *p, int64_t now) {
  if (p->state == SPEAKS && now >= p->deadline) forget(p);
  else if (p->state == WAITS && now >= p->deadline) refuse(p, RPC_MISMATCH, "no partner came in time");
  else if (p->state == JOINED && p->has_ended && p->out.used == 0) forget(p);
  if (p->fd < 0 || p->state != WAITS || !p->is_server || now < x->tracker_at) return;
  rpc_register_step(&p->tracker, true);
  if (p->tracker.complained) x->tracker_at = rpc_now_ms() + 2000;
}

static short events_of(const peer *p) {
  short events = p->out.used > 0 ? POLLOUT : 0;
  if (p->state == SPEAKS) events |= POLLIN;
  if (p->state == WAITS && !p->is_early) events |= POLLIN;
  if (p->state == JOINED && p->other != NULL && p->other->out.used < MOST_PENDING) events |= POLLIN;
  return events;
}

static void step(proxy *x) {
  struct pollfd polls[MOST_PEERS + 2];
  peer *of[MOST_PEERS];
  int n = 0;
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *p = &x->peers[i];
    if (p->fd >= 0) watch(x, p, rpc_now_ms());
    if (p->fd < 0) continue;
    of[n] = p;
    polls[n++] = (struct pollfd){.fd = p->fd, .events = events_of(p)};
  }
  polls[n] = (struct pollfd){.fd = x->listener, .events = POLLIN};
  polls[n + 1] = (struct pollfd){.fd = x->signals, .events = POLLIN};
  if (poll(polls, (nfds_t)n + 2, TICK_MS) < 0) return;
  char drop[64];
  while (read(x->signals, drop, sizeof drop) > 0) continue;
  for (int i = 0; i < n; i++) {
    peer *p = of[i];
    if (polls[i].revents == 0 || p->fd != polls[i].fd) continue;
    if ((polls[i].revents & POLLOUT) != 0 && !rpc_flush(p->fd, &p->out)) forget(p);
    if (p->fd < 0 || (polls[i].revents & ~POLLOUT) == 0) continue;
    if (p->state == SPEAKS) greet(x, p);
    else if (p->state == WAITS) notice(p);
    else if (p->other != NULL) pass(p);
    else if ((polls[i].revents & (POLLHUP | POLLERR)) != 0) forget(p);
  }
  if (polls[n].revents != 0) accept_all(x);
}

int rpc_proxy_run(const rpc_proxy_options *o) {
  proxy x = {.o = o};
  x.listener = rpc_listen(o->host, o->low, o->high, o->is_insecure, RPC_REFUSAL, &x.port);
  if (x.listener < 0) return 1;
  x.signals = rpc_watch_signals();
  x.peers = calloc(MOST_PEERS, sizeof *x.peers);
  if (x.peers == NULL || x.signals < 0) {
    rpc_log("heddle rpc-proxy: out of memory");
    free(x.peers);
    return 1;
  }
  for (int i = 0; i < MOST_PEERS; i++) x.peers[i].fd = x.peers[i].tracker.fd = -1;
  printf("heddle rpc-proxy: listening on %s:%u\n", o->host, (unsigned)x.port);
  fflush(stdout);
  while (!rpc_is_ending()) step(&x);
  for (int i = 0; i < MOST_PEERS; i++) forget(&x.peers[i]);
  close(x.listener);
  free(x.peers);
  return 0;
}
