/* rpc/alone.c: serves one session on an open, authenticated connection, which heddle-device-server tunnels. The parent process
 * sets the limits and the folder of this one, and ends it. */
#include <stdio.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/server.h"

/* The client's first bytes, and an answer with the key that it asked for: there is one server. */
static bool greet(int fd, double *seconds) {
  enum { HEAD = 8 };
  uint8_t first[HEAD + RPC_LONGEST_KEY];
  char match[RPC_LONGEST_KEY + 1], text[RPC_LONGEST_KEY + 8];
  size_t used;
  if (!rpc_receive(fd, first, HEAD)) return false;
  byte_reader r = {first + 4, 4, false};
  const uint32_t n = byte_take_u32(&r);
  if (n > RPC_LONGEST_KEY || !rpc_receive(fd, first + HEAD, n) ||
      rpc_handshake(first, HEAD + n, match, seconds, &used) != HEDDLE_OK)
    return false;
  byte_buffer b = {0};
  const int length = snprintf(text, sizeof text, "server:%s", match);
  byte_put_u32(&b, RPC_MAGIC);
  byte_put_u32(&b, (uint32_t)length);
  byte_put(&b, text, (size_t)length);
  const bool good = !b.failed && rpc_send(fd, b.data, b.used);
  byte_finish(&b);
  return good;
}

int rpc_serve_one(int fd, const rpc_limits *limits) {
  double seconds = 0;
  if (!rpc_set_blocking(fd, true) || !greet(fd, &seconds)) return 1;
  if (seconds > 0)
    (void)alarm(seconds < UINT16_MAX ? (unsigned)seconds + 1 : UINT16_MAX); /* its signal ends the process */
  return rpc_session_serve(fd, limits);
}
