/* rpc/tracker.h: the tracker of TVM's RPC: servers offer keys, clients ask for one of a name, and the largest priority is
 * served first. tracker.c knows messages and no sockets; tracker_run.c has the connections. */
#ifndef HEDDLE_RPC_TRACKER_H
#define HEDDLE_RPC_TRACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rpc_tracker rpc_tracker;

/* Sends a message (JSON, terminated) to a connection. */
typedef void (*rpc_tracker_send)(void *user, uint32_t connection, const char *text);

rpc_tracker *rpc_tracker_new(rpc_tracker_send send, void *user); /* NULL: memory is out */
void rpc_tracker_free(rpc_tracker *t);

/* Handles one message of a connection. The caller numbers its connections; peer is the address. Returns false where the
 * message is unknown or exceeds a limit: the caller then closes the connection. */
bool rpc_tracker_message(rpc_tracker *t, uint32_t connection, const char *peer, const char *text, size_t bytes);

/* The connection ended: what it offered and what it waits for goes. */
void rpc_tracker_close(rpc_tracker *t, uint32_t connection);

typedef struct rpc_tracker_options {
  const char *host;
  uint16_t low, high;
  bool is_insecure;
} rpc_tracker_options;

/* Serves until a signal ends it. An exit status. */
int rpc_tracker_run(const rpc_tracker_options *o);

#endif
