/* rpc/tracker_run.c: the connections of a tracker: each has a buffer for what comes and one for what goes. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/tracker.h"
#include "rpc/wire.h"

enum { MOST_PEERS = 1024, LONGEST = 1 << 16, MOST_WAITING = 1 << 22, SILENT_MS = 10000 };

typedef struct peer {
  int fd;        /* -1: free */
  bool is_known; /* the magic number came */
  bool is_bad;
  int64_t since;
  byte_buffer in, out;
  char name[RPC_HOST_ROOM];
} peer;

typedef struct running {
  peer *peers; /* MOST_PEERS */
  rpc_tracker *tracker;
  int listener, signals;
} running;

/* ---- one connection */

static void forget(running *r, peer *p) {
  rpc_tracker_close(r->tracker, (uint32_t)(p - r->peers));
  close(p->fd);
  byte_finish(&p->in);
  byte_finish(&p->out);
  *p = (peer){.fd = -1};
}

static void flush(peer *p) {
  if (!rpc_flush(p->fd, &p->out)) p->is_bad = true;
}

static void send_text(void *user, uint32_t connection, const char *text) {
  peer *p = &((running *)user)->peers[connection];
  if (p->fd < 0 || p->is_bad) return;
  byte_put_u32(&p->out, (uint32_t)strlen(text));
  byte_put(&p->out, text, strlen(text));
  if (p->out.failed || p->out.used > MOST_WAITING) p->is_bad = true;
  else flush(p);
}

/* What came as a whole is answered. */
static void answer(running *r, peer *p) {
  byte_reader reader = {p->in.data, p->in.used, false};
  if (!p->is_known) {
    if (reader.left < 4) return;
    p->is_known = byte_take_u32(&reader) == RPC_TRACKER_MAGIC;
    p->is_bad = !p->is_known;
    if (p->is_known) byte_put_u32(&p->out, RPC_TRACKER_MAGIC);
    flush(p);
  }
  while (!p->is_bad && reader.left >= 4) {
    byte_reader at = reader;
    uint32_t n = byte_take_u32(&at);
    if (n == 0 || n > LONGEST) p->is_bad = true;
    const uint8_t *text = p->is_bad ? NULL : byte_take(&at, n);
    if (text == NULL) break;
    if (!rpc_tracker_message(r->tracker, (uint32_t)(p - r->peers), p->name, (const char *)text, n)) p->is_bad = true;
    reader = at;
  }
  if (p->is_bad) return;
  memmove(p->in.data, reader.at, reader.left);
  p->in.used = reader.left;
}

static void hear(running *r, peer *p) {
  uint8_t part[4096];
  for (int i = 0; i < 16 && !p->is_bad; i++) { /* then it is another one's turn */
    ssize_t got = recv(p->fd, part, sizeof part, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got > 0) byte_put(&p->in, part, (size_t)got);
    if (got <= 0 || p->in.failed) p->is_bad = true;
    else answer(r, p);
  }
}

/* ---- the loop */

/* A free place, or that of the one which has been silent longest; NULL: all are known. */
static peer *place(running *r) {
  peer *oldest = NULL;
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *p = &r->peers[i];
    if (p->fd < 0) return p;
    if (!p->is_known && (oldest == NULL || p->since < oldest->since)) oldest = p;
  }
  if (oldest != NULL) forget(r, oldest);
  return oldest;
}

static void accept_all(running *r) {
  char name[RPC_HOST_ROOM];
  for (int fd; (fd = rpc_accept(r->listener, name)) >= 0;) {
    peer *to = place(r);
    if (to == NULL) {
      close(fd);
      continue;
    }
    *to = (peer){.fd = fd, .since = rpc_now_ms()};
    memcpy(to->name, name, sizeof name);
  }
}

static void step(running *r) {
  enum { TICK_MS = 1000 };
  struct pollfd polls[MOST_PEERS + 2];
  peer *of[MOST_PEERS];
  int n = 0;
  for (int i = 0; i < MOST_PEERS; i++) {
    peer *p = &r->peers[i];
    if (p->fd >= 0 && (p->is_bad || (!p->is_known && rpc_now_ms() - p->since > SILENT_MS))) forget(r, p);
    if (p->fd < 0) continue;
    of[n] = p;
    polls[n++] = (struct pollfd){.fd = p->fd, .events = (short)(p->out.used > 0 ? POLLIN | POLLOUT : POLLIN)};
  }
  polls[n] = (struct pollfd){.fd = r->listener, .events = POLLIN};
  polls[n + 1] = (struct pollfd){.fd = r->signals, .events = POLLIN};
  if (poll(polls, (nfds_t)n + 2, TICK_MS) < 0) return;
  char drop[64];
  while (read(r->signals, drop, sizeof drop) > 0) continue;
  for (int i = 0; i < n; i++) {
    if (polls[i].revents & POLLOUT) flush(of[i]);
    if (polls[i].revents & (POLLIN | POLLHUP | POLLERR)) hear(r, of[i]);
    if (of[i]->is_bad) forget(r, of[i]);
  }
  if (polls[n].revents != 0) accept_all(r);
}

int rpc_tracker_run(const rpc_tracker_options *o) {
  uint16_t port = 0;
  running r = {.listener = rpc_listen(o->host, o->low, o->high, o->is_insecure, RPC_REFUSAL, &port)};
  if (r.listener < 0) return 1;
  r.signals = rpc_watch_signals();
  r.peers = calloc(MOST_PEERS, sizeof *r.peers);
  r.tracker = rpc_tracker_new(send_text, &r);
  if (r.peers == NULL || r.tracker == NULL || r.signals < 0) {
    rpc_log("heddle rpc-tracker: out of memory");
    return 1;
  }
  for (int i = 0; i < MOST_PEERS; i++) r.peers[i].fd = -1;
  printf("heddle rpc-tracker: listening on %s:%u\n", o->host, (unsigned)port);
  fflush(stdout);
  while (!rpc_is_ending()) step(&r);
  for (int i = 0; i < MOST_PEERS; i++)
    if (r.peers[i].fd >= 0) forget(&r, &r.peers[i]);
  rpc_tracker_free(r.tracker);
  close(r.listener);
  free(r.peers);
  return 0;
}
