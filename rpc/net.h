/* rpc/net.h: TCP for the server and the tracker: addresses, listening, blocking transfers with a time limit, and lines of the
 * log, whose texts are cleaned. */
#ifndef HEDDLE_RPC_NET_H
#define HEDDLE_RPC_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/wire.h"

enum { RPC_HOST_ROOM = 256 };

/* A line on stderr; texts among the arguments are cleaned. */
void rpc_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

int64_t rpc_now_ms(void); /* of a clock that only goes forward */

/* Listens on a port of [low, high] (0, 0: any), without blocking. -1, which is logged: no such address, it is not loopback and
 * serves_all is not set (the text is refusal), or all ports are taken. */
#define RPC_REFUSAL \
  "TVM's RPC has no authentication and no encryption: anyone who reaches the port can run code here. " \
  "--insecure-tvm-rpc " \
  "permits this address"
int rpc_listen(const char *host, uint16_t low, uint16_t high, bool serves_all, const char *refusal, uint16_t *port);

/* Blocking; -1 with errno, or logged where the name is not known. */
int rpc_connect(const char *host, uint16_t port, int timeout_ms);

/* Accepts without blocking; -1: none. The socket does not block, and sends small packets at once. peer: its address. */
int rpc_accept(int listener, char peer[RPC_HOST_ROOM]);

bool rpc_set_blocking(int fd, bool blocks);

/* All bytes, on a blocking socket, within its time limit. */
bool rpc_receive(int fd, void *out, size_t bytes);
bool rpc_send(int fd, const void *data, size_t bytes);

/* Sends of a buffer what the socket takes now, and keeps the rest. false: the connection failed. */
bool rpc_flush(int fd, byte_buffer *b);

/* A pipe whose reading end becomes readable when one of the signals that end the program comes, or a child ended. -1: failed. */
int rpc_watch_signals(void);
bool rpc_is_ending(void);

#endif
