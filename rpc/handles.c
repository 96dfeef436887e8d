/* rpc/handles.c: the table of a session's handles: places with a generation, the free ones in a list. */
#include "rpc/handles.h"

#include <stdlib.h>

uint64_t rpc_handles_add(rpc_handles *h, rpc_held held) {
  if (h->free == 0 && h->count == h->room) {
    uint32_t room = h->room > 0 ? 2 * h->room : 64;
    rpc_held *more = room <= RPC_MOST_HANDLES ? realloc(h->data, room * sizeof *more) : NULL;
    if (more == NULL) return 0;
    h->data = more;
    h->room = room;
  }
  uint32_t at = h->free > 0 ? h->free - 1 : h->count++;
  held.generation = h->free > 0 ? h->data[at].generation + 1 : 1;
  if (h->free > 0) h->free = h->data[at].next;
  h->data[at] = held;
  return (uint64_t)held.generation << 32 | (at + 1);
}

rpc_held *rpc_handles_find(rpc_handles *h, uint64_t number) {
  uint32_t at = (uint32_t)number;
  if (at == 0 || at > h->count) return NULL;
  rpc_held *held = &h->data[at - 1];
  return held->kind != RPC_HELD_NOTHING && held->generation == number >> 32 ? held : NULL;
}

rpc_held rpc_handles_remove(rpc_handles *h, uint64_t number) {
  rpc_held *held = rpc_handles_find(h, number);
  if (held == NULL) return (rpc_held){0};
  rpc_held was = *held;
  held->kind = RPC_HELD_NOTHING;
  held->next = h->free;
  h->free = (uint32_t)number;
  return was;
}

void rpc_handles_finish(rpc_handles *h) {
  free(h->data);
  *h = (rpc_handles){0};
}
