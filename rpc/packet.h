/* rpc/packet.h: packets of TVM's RPC on a socket that blocks, for both ends: each is sent with one call of the system where the
 * socket takes it, and received with one where it has come. What comes behind a packet is kept for the next one. */
#ifndef HEDDLE_RPC_PACKET_H
#define HEDDLE_RPC_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Zeroed: empty. Its memory grows as bytes come, so that a length alone takes none. */
typedef struct rpc_inbox {
  uint8_t *data;
  size_t room, start, end; /* what is not consumed lies from start to end */
} rpc_inbox;

typedef enum rpc_arrival { RPC_ARRIVED, RPC_ENDED, RPC_BAD_SIZE, RPC_NO_ROOM } rpc_arrival;

/* The next packet (code and body) that is not empty; it lies in the inbox until the next call. most: its most bytes. */
rpc_arrival rpc_inbox_take(rpc_inbox *in, int fd, uint64_t most, const uint8_t **packet, size_t *bytes);
void rpc_inbox_finish(rpc_inbox *in);

/* Sends the parts one after another, and changes them on the way. false: the connection has ended. */
bool rpc_send_parts(int fd, struct iovec *parts, size_t count);

#endif
