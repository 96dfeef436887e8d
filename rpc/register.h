/* rpc/register.h: a server's side of TVM's tracker: it registers, offers one key at a time, and notices when one was taken but
 * not used. Each call waits for the tracker a few seconds at most. */
#ifndef HEDDLE_RPC_REGISTER_H
#define HEDDLE_RPC_REGISTER_H

#include <stdbool.h>
#include <stdint.h>

#include "rpc/net.h"

typedef struct rpc_register {
  const char *host; /* of the tracker; NULL: there is none */
  uint16_t tracker_port;
  const char *key;
  const char *address; /* as clients reach the server; NULL: as the tracker sees it */
  uint16_t port;       /* of the server */
  const char *command; /* for the log: "rpc-server" */
  bool is_shared;      /* clients do not show the key that they took: the next one is offered when it is gone */
  int fd;              /* -1: not connected */
  bool offers;         /* match is offered */
  char match[1100];    /* KEY:NUMBER */
  int missing;         /* polls in a row without it */
  int64_t next;        /* when to poll or to connect again */
  bool complained;
} rpc_register;

/* Does what is due: connects, offers a key where wants is true and none is offered, polls. A shared server that wants no client
 * withdraws its key. */
void rpc_register_step(rpc_register *r, bool wants);

/* The offered key was used. */
void rpc_register_used(rpc_register *r);
void rpc_register_finish(rpc_register *r);

#endif
