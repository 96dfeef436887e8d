/* A connection of the remote protocol as bytes in order: send, receive, close. What carries them is behind a table of two
 * functions that never block: descriptors (a socket, or a pair of pipes), or TLS over one. Another carrier, such as RDMA,
 * fills in the same table. One thread sends and one receives, at the same time; any thread may end it. */
#ifndef HEDDLE_PLUGINS_COMMON_REMOTE_TRANSPORT_H
#define HEDDLE_PLUGINS_COMMON_REMOTE_TRANSPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct transport;

/* put and get return the bytes that they moved; 0: none until the descriptor is ready; -1: the connection has ended. */
typedef struct transport_carrier {
  int64_t (*put)(struct transport *t, const void *data, size_t bytes);
  int64_t (*get)(struct transport *t, void *data, size_t bytes);
  void (*close)(struct transport *t);
} transport_carrier;

typedef struct transport {
  const transport_carrier *carrier;
  void *state;          /* the carrier's */
  int in, out;          /* descriptors; the same for a socket. Do not block */
  pthread_mutex_t lock; /* of a carrier that cannot send and receive at the same time */
  atomic_bool ended;
  atomic_llong heard_ms; /* when bytes came last, of transport_now_ms */
  int64_t quiet_ms;      /* receive fails after so long without a byte; 0: never */
  bool was_quiet;        /* it failed for that */
  char why[160];         /* why the carrier ended, where it knows; else "" */
} transport;

int64_t transport_now_ms(void); /* of a clock that only goes forward */

/* Descriptors become t's, which closes them. false: they cannot be made not to block; they are closed then. */
bool transport_init(transport *t, int in, int out, int64_t quiet_ms);

/* All bytes, or false: the connection has ended, or was quiet for too long. */
bool transport_send(transport *t, const void *data, size_t bytes);
bool transport_receive(transport *t, void *data, size_t bytes);

/* Makes send and receive return false at once, from any thread; close frees what t has when neither is in a call. */
void transport_end(transport *t);
void transport_close(transport *t);

#endif
