/* remote/tunnel.h: a connection of TVM's RPC inside one of the remote protocol: frames DATA with its bytes, and ALIVE, in both
 * directions (docs/remote-protocol.md). */
#ifndef HEDDLE_REMOTE_TUNNEL_H
#define HEDDLE_REMOTE_TUNNEL_H

#include "plugins/common/remote/transport.h"

struct remote_limits;

/* Carries bytes between an authenticated connection and a socket until one of them ends; both stay the caller's. */
void remote_tunnel_carry(transport *t, int fd);

/* At the server: starts the program of TVM's RPC with one end of a pair of sockets, and carries the other. 0 or 1. */
int remote_tunnel_serve(transport *t, const struct remote_limits *limits);

typedef struct remote_tunnel_options {
  uint16_t port;                                            /* on this machine; 0: any */
  const char *address;                                      /* as of the setting remote.servers */
  const char *psk, *tls_cert, *tls_key, *tls_ca, *tls_name; /* NULL: not given */
} remote_tunnel_options;

/* At the client: listens, and carries each connection to the server. Until a signal ends it; 0 or 1. */
int remote_tunnel_run(const remote_tunnel_options *o);

#endif
