/* rpc/proxy.h: the proxy of TVM's RPC, for servers that no client can reach. */
#ifndef HEDDLE_RPC_PROXY_H
#define HEDDLE_RPC_PROXY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rpc_proxy_options {
  const char *host, *address; /* address: as the tracker gives it to clients; NULL: as it sees the proxy */
  const char *tracker;        /* its host; NULL: none, and clients come with the servers' own keys */
  uint16_t low, high, tracker_port;
  bool is_insecure;
  int64_t wait_seconds; /* for a partner */
} rpc_proxy_options;

/* Serves until a signal ends it. An exit status. */
int rpc_proxy_run(const rpc_proxy_options *o);

#endif
