/* rpc/client/client.h: what the files of libheddle_rpc share. */
#ifndef HEDDLE_RPC_CLIENT_CLIENT_H
#define HEDDLE_RPC_CLIENT_CLIENT_H

#include "heddle/rpc.h"
#include "rpc/packet.h"
#include "rpc/wire.h"

struct heddle_rpc {
  int fd; /* -1: the session is over */
  rpc_era era;
  char where[280];
  rpc_inbox inbox;
  const uint8_t *body; /* of the last reply, without its code, in the inbox; what a result borrows */
  size_t body_bytes;
  rpc_values values; /* of the last reply */
  heddle_rpc_tensor tensor;
  uint64_t own[4]; /* handles of the server's functions, by rpc_own; 0: not asked for yet */
};

typedef enum rpc_own { OWN_UPLOAD, OWN_DOWNLOAD, OWN_LOAD, OWN_MODULE_FUNCTION } rpc_own;

/* Writes status and text, cleaned, to err, and gives the status. */
heddle_status rpc_error(heddle_error *err, heddle_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A request with its body in two parts, and its reply: kReturn, whose values are then in rpc->values, or kCopyAck, whose
 * bytes are in rpc->body. */
heddle_status rpc_ask(heddle_rpc *rpc, uint32_t code, const byte_buffer *body, const void *more, size_t more_bytes,
                      uint32_t wanted, heddle_error *err);

/* A request of values, and the one of its reply. */
heddle_status rpc_ask_one(heddle_rpc *rpc, uint32_t code, const rpc_value *values, uint32_t n, rpc_value *out,
                          heddle_error *err);

/* A TCP connection with a time limit on connecting; -1 with err. */
int rpc_dial(const char *host, uint16_t port, uint32_t connect_ms, heddle_error *err);
bool rpc_read_bytes(int fd, void *out, size_t n);
bool rpc_write_bytes(int fd, const void *data, size_t n);

#endif
