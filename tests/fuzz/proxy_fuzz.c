/* Any connections to the proxy of TVM's RPC: servers and clients that come, greet, send, stop and go in any order, well-formed or
 * not. No crash and no leak, no connection that is left open; and what an end gets after its greeting was answered is what one other
 * end of its key sent, byte by byte. This file stands for the sockets, the clock and the tracker of rpc/net.c and rpc/register.c.
 *
 * The first byte says whether there is a tracker. Then acts: a byte whose lower three bits are an end and whose upper five are what
 * it does, and for some a byte more. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/proxy.h"
#include "rpc/register.h"
#include "rpc/server.h"

enum { ENDS = 8, MOST_ACTS = 512, KEYS = 3, HEAD = 8 };

/* One that connected. What it sends after its greeting is `mark` again and again, so that it can be told whose it is. */
typedef struct end {
  int fd;       /* -1: none */
  bool is_wild; /* it sent anything */
  bool is_server;
  int key;
  uint8_t mark;
  uint8_t head[HEAD + RPC_LONGEST_KEY]; /* the beginning of what it got */
  size_t have;
  uint8_t from; /* whose bytes follow; 0: none came yet */
} end;

static struct {
  end ends[ENDS];
  uint8_t marks;                                   /* given out */
  int waiting[ENDS], n_waiting, calls[2], wake[2]; /* accepted next; readable while there are some */
  const uint8_t *at;
  size_t left;
  int64_t now;
  int acts, offers;
  bool any_wild; /* one sent anything: whose the bytes are that others get cannot be told */
  bool is_server_of[256];
  int key_of[256];
} world;

/* ---- in place of rpc/net.c and rpc/register.c */

void rpc_log(const char *format, ...) {
  (void)format;
}

int64_t rpc_now_ms(void) {
  return world.now;
}

int rpc_listen(const char *host, uint16_t low, uint16_t high, bool serves_all, const char *refusal, uint16_t *port) {
  (void)host, (void)low, (void)high, (void)serves_all, (void)refusal;
  *port = 9090;
  return world.calls[0];
}

int rpc_accept(int listener, char peer[RPC_HOST_ROOM]) {
  char one;
  if (listener != world.calls[0]) abort();
  if (world.n_waiting == 0) return -1;
  if (read(world.calls[0], &one, 1) != 1) abort();
  snprintf(peer, RPC_HOST_ROOM, "127.0.0.1");
  return world.waiting[--world.n_waiting];
}

bool rpc_flush(int fd, byte_buffer *b) {
  const ssize_t put = b->used > 0 ? send(fd, b->data, b->used, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
  if (put < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
  memmove(b->data, b->data + put, b->used - (size_t)put);
  b->used -= (size_t)put;
  return true;
}

int rpc_watch_signals(void) {
  return world.wake[0];
}

void rpc_register_step(rpc_register *r, bool wants) {
  if (r->host == NULL || !wants || r->offers) return;
  snprintf(r->match, sizeof r->match, "%s:%d", r->key, world.offers++ % 3);
  r->offers = true;
}

void rpc_register_finish(rpc_register *r) {
  r->offers = false;
}

/* ---- the ends */

static void leave(end *e) {
  if (e->fd >= 0) close(e->fd);
  *e = (end){.fd = -1};
}

static void come(end *e) {
  int pair[2];
  leave(e);
  if (world.n_waiting == ENDS || world.marks == 255 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return;
  world.marks++;
  *e = (end){.fd = pair[0], .mark = world.marks, .is_wild = true}; /* until it has greeted */
  world.key_of[e->mark] = -1;
  world.waiting[world.n_waiting++] = pair[1];
  if (write(world.calls[1], "", 1) != 1) abort();
}

static void say(end *e, const void *data, size_t n) {
  if (e->fd >= 0 && n > 0) (void)!send(e->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void greet(end *e, bool is_server, int key, bool has_tracker) {
  char text[64];
  uint8_t head[HEAD] = {0x71, 0xf2, 0x0f, 0x00};
  if (e->fd < 0 || world.key_of[e->mark] != -1) return;
  const int n = !is_server && has_tracker ? snprintf(text, sizeof text, "client:k%d:%d -timeout=1", key, world.acts % 3)
                                          : snprintf(text, sizeof text, is_server ? "server:k%d" : "client:k%d", key);
  head[4] = (uint8_t)n;
  say(e, head, sizeof head);
  say(e, text, (size_t)n);
  e->is_wild = false, e->is_server = is_server, e->key = key;
  world.is_server_of[e->mark] = is_server, world.key_of[e->mark] = key;
}

static void send_marks(end *e, size_t n) {
  uint8_t marks[256];
  memset(marks, e->mark, sizeof marks);
  if (!e->is_wild) say(e, marks, n < sizeof marks ? n : sizeof marks);
}

/* What it got: a code and a key, then the marks of one partner. */
static void hear(end *e) {
  uint8_t part[4096];
  for (ssize_t got; e->fd >= 0 && (got = recv(e->fd, part, sizeof part, MSG_DONTWAIT)) > 0;) {
    size_t i = 0;
    while (i < (size_t)got) {
      const size_t want = e->have < HEAD ? HEAD : HEAD + e->head[4] + 256u * e->head[5];
      if (e->have >= want && want > HEAD) break;
      if (e->have == sizeof e->head) abort(); /* a key that is too long */
      e->head[e->have++] = part[i++];
      if (e->have == 4 && memcmp(e->head, "\x71\xf2\x0f\x00", 4) != 0) { /* refused: nothing follows */
        if (i < (size_t)got) abort();
      }
    }
    for (; i < (size_t)got && !world.any_wild; i++) {
      const uint8_t from = part[i];
      if (e->from == 0) e->from = from;
      if (e->from != from) abort(); /* of somebody else */
      if (world.is_server_of[from] == e->is_server || world.key_of[from] != e->key) abort();
    }
  }
}

static void act(bool has_tracker) {
  const uint8_t what = world.at[0];
  end *e = &world.ends[what & 7];
  const uint8_t more = world.left > 1 ? world.at[1] : 0;
  size_t used = 2;
  switch (what >> 3) {
  case 0:
  case 1:
  case 2: used = 1, come(e); break;
  case 3:
  case 4:
  case 5: greet(e, true, more % KEYS, has_tracker); break;
  case 6:
  case 7:
  case 8: greet(e, false, more % KEYS, has_tracker); break;
  case 9:
  case 10:
  case 11:
  case 12: send_marks(e, more); break;
  case 13: used = 1, leave(e); break;
  case 14: used = 1, shutdown(e->fd, SHUT_WR); break;
  case 15: world.now += more * 500; break;
  case 16: { /* anything */
    const size_t n = world.left > 2 && more < world.left - 2 ? more : world.left > 2 ? world.left - 2 : 0;
    if (e->fd >= 0) e->is_wild = true, world.key_of[e->mark] = -2, world.any_wild = true;
    say(e, world.at + 2, n);
    used = 2 + n;
    break;
  }
  case 17:
  case 18: /* all that a socket takes */
    for (int i = 0; i < 64; i++) send_marks(e, 256);
    break;
  default: used = 1, hear(e); break;
  }
  if (used > world.left) used = world.left;
  world.at += used;
  world.left -= used;
}

static bool with_tracker;

/* Asked by the proxy before each of its steps. */
bool rpc_is_ending(void) {
  if (world.left == 0 || world.acts++ == MOST_ACTS) return true;
  act(with_tracker);
  return write(world.wake[1], "", 1) != 1; /* poll does not wait */
}

static int open_files(void) {
  int n = 0;
  for (int i = 0; i < 64; i++) n += fcntl(i, F_GETFD) != -1;
  return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  static FILE *nowhere;
  if (nowhere == NULL) nowhere = freopen("/dev/null", "w", stdout); /* the proxy says where it listens */
  const int before = open_files();
  memset(&world, 0, sizeof world);
  for (int i = 0; i < ENDS; i++) world.ends[i].fd = -1;
  if (pipe(world.wake) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, world.calls) != 0) return 0;
  with_tracker = data[0] % 2 == 1;
  world.at = data + 1, world.left = size - 1, world.now = 1;
  const int flags = fcntl(world.wake[0], F_GETFL);
  if (fcntl(world.wake[0], F_SETFL, flags | O_NONBLOCK) != 0) abort();
  const rpc_proxy_options o = {.host = "127.0.0.1", .tracker = with_tracker ? "127.0.0.1" : NULL, .wait_seconds = 5};
  if (rpc_proxy_run(&o) != 0) abort();
  for (int i = 0; i < world.n_waiting; i++) close(world.waiting[i]);
  for (int i = 0; i < ENDS; i++) {
    hear(&world.ends[i]);
    leave(&world.ends[i]);
  }
  close(world.calls[1]);
  close(world.wake[0]);
  close(world.wake[1]);
  if (open_files() != before) abort(); /* the proxy left a connection open */
  return 0;
}
