/* rpc/packet.c: packets on a socket. */
#include "rpc/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "plugins/common/bytes.h"

enum { HEAD = 8, FIRST = 1 << 14, KEPT = 1 << 26 };

/* Room for more bytes behind the end: what was consumed goes, then the memory doubles. */
static bool make_room(rpc_inbox *in) {
  if (in->end < in->room) return true;
  if (in->start > 0) {
    memmove(in->data, in->data + in->start, in->end - in->start);
    in->end -= in->start;
    in->start = 0;
    return true;
  }
  const size_t room = in->room > 0 ? 2 * in->room : FIRST;
  uint8_t *more = room > in->room ? realloc(in->data, room) : NULL;
  if (more == NULL) return false;
  in->data = more;
  in->room = room;
  return true;
}

static rpc_arrival receive(rpc_inbox *in, int fd) {
  if (!make_room(in)) return RPC_NO_ROOM;
  ssize_t got;
  do got = recv(fd, in->data + in->end, in->room - in->end, 0);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return RPC_ENDED;
  in->end += (size_t)got;
  return RPC_ARRIVED;
}

/* Before a packet is waited for: the memory of a large copy is given back. */
static void rewind_empty(rpc_inbox *in) {
  if (in->start < in->end) return;
  in->start = in->end = 0;
  if (in->room > KEPT) rpc_inbox_finish(in);
}

rpc_arrival rpc_inbox_take(rpc_inbox *in, int fd, uint64_t most, const uint8_t **packet, size_t *bytes) {
  rewind_empty(in);
  for (;;) {
    const size_t have = in->end - in->start;
    const uint64_t n = have >= HEAD ? byte_number(in->data + in->start, HEAD) : 0;
    if (have >= HEAD && n == 0) { /* it keeps the connection alive */
      in->start += HEAD;
      continue;
    }
    if (have >= HEAD && (n < 4 || n > most)) return RPC_BAD_SIZE;
    if (have >= HEAD && have - HEAD >= n) {
      *packet = in->data + in->start + HEAD;
      *bytes = (size_t)n;
      in->start += HEAD + (size_t)n;
      return RPC_ARRIVED;
    }
    const rpc_arrival got = receive(in, fd);
    if (got != RPC_ARRIVED) return got;
  }
}

void rpc_inbox_finish(rpc_inbox *in) {
  free(in->data);
  *in = (rpc_inbox){0};
}

bool rpc_send_parts(int fd, struct iovec *parts, size_t count) {
  while (count > 0) {
    if (parts->iov_len == 0) {
      parts++;
      count--;
      continue;
    }
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    ssize_t put = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    for (; count > 0 && (size_t)put >= parts->iov_len; parts++, count--) put -= (ssize_t)parts->iov_len;
    if (count == 0) break;
    parts->iov_base = (char *)parts->iov_base + put;
    parts->iov_len -= (size_t)put;
  }
  return true;
}
