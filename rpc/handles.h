/* rpc/handles.h: what a session gave to its client, by numbers that say nothing of addresses. A number is of one kind and
 * is used once: after it was freed it is not known any more. */
#ifndef HEDDLE_RPC_HANDLES_H
#define HEDDLE_RPC_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

#include "rpc/wire.h"

typedef enum rpc_held_kind {
  RPC_HELD_NOTHING,
  RPC_HELD_FUNCTION, /* TVMFunctionHandle */
  RPC_HELD_MODULE,   /* TVMModuleHandle */
  RPC_HELD_ARRAY,    /* TVMArrayHandle, whose number is that of its data too */
  RPC_HELD_MEMORY,   /* of kDevAllocData: an address, or the handle of a device's buffer */
  RPC_HELD_STREAM,   /* TVMStreamHandle */
  RPC_HELD_OWN       /* a function of the server: index */
} rpc_held_kind;

typedef struct rpc_held {
  rpc_held_kind kind;
  uint32_t generation;
  void *pointer;
  rpc_device device; /* of memory, arrays and streams */
  uint64_t bytes;    /* of memory and arrays */
  uint32_t index;    /* RPC_HELD_OWN */
  uint32_t next;     /* of a free place */
} rpc_held;

typedef struct rpc_handles {
  rpc_held *data;
  uint32_t count, room, free; /* free: 0, or 1 + a free place */
} rpc_handles;

enum { RPC_MOST_HANDLES = 1 << 20 };

uint64_t rpc_handles_add(rpc_handles *h, rpc_held held);      /* 0: memory is out, or there are too many */
rpc_held *rpc_handles_find(rpc_handles *h, uint64_t number);  /* NULL: unknown */
rpc_held rpc_handles_remove(rpc_handles *h, uint64_t number); /* of kind NOTHING where it is unknown */
void rpc_handles_finish(rpc_handles *h);                      /* the table; what it holds is not freed */

#endif
