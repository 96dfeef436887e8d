/* rpc/child.h: the process of one session: its limits, its private folder, and its end. */
#ifndef HEDDLE_RPC_CHILD_H
#define HEDDLE_RPC_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "rpc/session.h"

typedef struct rpc_child {
  pid_t pid; /* 0: there is none */
  char folder[200];
} rpc_child;

/* Starts a session on a socket that blocks. closes: the descriptors of the server that the child does not need. false, with
 * errno: there is no process. */
bool rpc_child_start(rpc_child *c, int socket, const rpc_limits *limits, const int *closes, int n_closes);

/* Whether it ended; its folder is then gone, and *status is what waitpid gave. */
bool rpc_child_ended(rpc_child *c, int *status);

/* Ends it with all that it started, and waits for that. */
void rpc_child_kill(rpc_child *c);

#endif
