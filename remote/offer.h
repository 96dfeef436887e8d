/* remote/offer.h: a server's entry at a tracker of TVM's RPC, kept by a process of its own: what a tracker sends is read there, and
 * a tracker that does not answer delays no client. */
#ifndef HEDDLE_REMOTE_OFFER_H
#define HEDDLE_REMOTE_OFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "rpc/child.h"

typedef struct remote_tracker {
  const char *host; /* NULL: there is none */
  uint16_t port;
  const char *key;
  const char *address; /* as clients reach the server; NULL: as the tracker sees it */
} remote_tracker;

typedef struct remote_offer {
  const remote_tracker *tracker;
  uint16_t port; /* of the server */
  rpc_child child;
  int pipe;     /* to the process; -1: there is none */
  int64_t next; /* when to start it again */
} remote_offer;

/* Starts the process where there is a tracker and none runs. closes: descriptors that it does not need, with
 * room for one more. */
void remote_offer_step(remote_offer *o, bool wants, int *closes, int n_closes);

/* A session has begun or ended: whether the server wants another client. */
void remote_offer_tell(remote_offer *o, bool wants);
void remote_offer_finish(remote_offer *o);

#endif
