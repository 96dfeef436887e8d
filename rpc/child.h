/* rpc/child.h: the process of one session: its limits, its private folder, and its end. */
#ifndef HEDDLE_RPC_CHILD_H
#define HEDDLE_RPC_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rpc_child {
  pid_t pid; /* 0: there is none */
  char folder[200];
} rpc_child;

/* Starts a process that serves, and ends with what that gives. memory: what it may allocate, and each of its files hold, in
 * bytes. closes: the descriptors of the server that the child does not need. false, with errno: there is no process. */
bool rpc_child_start(rpc_child *c, uint64_t memory, int (*serve)(void *user), void *user, const int *closes,
                     int n_closes);

/* Whether it ended; its folder is then gone, and *status is what waitpid gave. */
bool rpc_child_ended(rpc_child *c, int *status);

/* Ends it with all that it started, and waits for that. */
void rpc_child_kill(rpc_child *c);

#endif
