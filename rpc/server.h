/* rpc/server.h: the server: it accepts clients, checks their keys, and gives each a session in a process of its own. */
#ifndef HEDDLE_RPC_SERVER_H
#define HEDDLE_RPC_SERVER_H

#include "rpc/session.h"

typedef struct rpc_server_options {
  const char *host, *key, *address; /* address: as the tracker gives it to clients; NULL: as it sees the server */
  const char *tracker, *proxy;      /* their hosts; NULL: none. With a proxy it listens nowhere */
  uint16_t low, high, tracker_port; /* low, high: a range of ports */
  uint16_t proxy_port;
  bool is_insecure;
  uint32_t sessions;        /* at the same time */
  uint64_t session_seconds; /* 0: as long as the client wants */
  rpc_limits limits;
} rpc_server_options;

/* Serves until a signal ends it. An exit status. */
int rpc_server_run(const rpc_server_options *o);

/* What the first bytes of either side are: HEDDLE_OK: a key with its prefix and options, of at most RPC_LONGEST_KEY bytes, *used:
 * the bytes of the handshake; HEDDLE_EBUSY: more bytes are to come; HEDDLE_EFORMAT: this is not TVM's RPC. */
heddle_status rpc_hello(const uint8_t *data, size_t bytes, char *key, size_t *used);

/* What a client's first bytes are: HEDDLE_OK: a key, whose first word after "client:" is *match, and *seconds its
 * "-timeout=" or 0; HEDDLE_EBUSY: more bytes are to come; HEDDLE_EFORMAT: no client of TVM's RPC. *used: the bytes of the
 * handshake. match is at least RPC_LONGEST_KEY + 1 bytes. */
heddle_status rpc_handshake(const uint8_t *data, size_t bytes, char *match, double *seconds, size_t *used);

/* One client, on a connected socket, after a handshake that takes any key. 0, or 1: it broke the protocol. */
int rpc_serve_one(int fd, const rpc_limits *limits);

#endif
