/* remote/offer.c: the process that registers a server. It is asked with one byte: whether the server wants a client. */
#include "remote/offer.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/register.h"

enum { OFFER_MEMORY = 1 << 26, AGAIN_MS = 5000, OFFER_TICK_MS = 500 };

typedef struct entry {
  const remote_offer *o;
  int pipe;
  bool wants;
} entry;

/* Ends when the server does. */
static int keep(void *user) {
  entry *e = user;
  const remote_tracker *t = e->o->tracker;
  rpc_register r = {.host = t->host,
                    .tracker_port = t->port,
                    .key = t->key,
                    .address = t->address,
                    .port = e->o->port,
                    .command = "device-server",
                    .is_shared = true,
                    .fd = -1};
  for (bool is_over = false; !is_over;) {
    rpc_register_step(&r, e->wants);
    struct pollfd wait = {.fd = e->pipe, .events = POLLIN};
    char byte;
    ssize_t n = -1;
    if (poll(&wait, 1, OFFER_TICK_MS) < 0 && errno != EINTR) return 1;
    while ((n = recv(e->pipe, &byte, 1, MSG_DONTWAIT)) == 1) {
      e->wants = byte == 'y';
      r.next = 0; /* the key may be taken */
    }
    is_over = n == 0;
  }
  rpc_register_finish(&r);
  return 0;
}

static void start(remote_offer *o, bool wants, int *closes, int n_closes) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  closes[n_closes] = ends[0];
  entry e = {.o = o, .pipe = ends[1], .wants = wants};
  const bool good = rpc_child_start(&o->child, OFFER_MEMORY, keep, &e, closes, n_closes + 1);
  close(ends[1]);
  if (good) o->pipe = ends[0];
  else close(ends[0]);
}

void remote_offer_step(remote_offer *o, bool wants, int *closes, int n_closes) {
  int status;
  if (o->tracker->host == NULL) return;
  if (o->pipe >= 0 && rpc_child_ended(&o->child, &status)) {
    rpc_log("heddle device-server: the process that registers at the tracker ended with status %d", status);
    remote_offer_finish(o);
  }
  if (o->pipe >= 0 || rpc_now_ms() < o->next) return;
  o->next = rpc_now_ms() + AGAIN_MS;
  start(o, wants, closes, n_closes);
}

void remote_offer_tell(remote_offer *o, bool wants) {
  if (o->pipe >= 0) (void)!send(o->pipe, wants ? "y" : "n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void remote_offer_finish(remote_offer *o) {
  rpc_child_kill(&o->child);
  if (o->pipe >= 0) close(o->pipe);
  o->pipe = -1;
}
