/* rpc/session.h: one client's session: the requests of TVM's RPC, answered from a socket until the client goes. It runs in a
 * process of its own, whose folder is its current directory. */
#ifndef HEDDLE_RPC_SESSION_H
#define HEDDLE_RPC_SESSION_H

#include <dlpack/dlpack.h>

#include "rpc/handles.h"

typedef struct rpc_limits {
  uint64_t packet; /* bytes of one packet */
  uint64_t memory; /* bytes that all allocations hold, and all files */
} rpc_limits;

typedef struct rpc_session {
  int socket;
  rpc_limits limits;
  rpc_era era;
  bool is_open; /* kInitServer came */
  rpc_handles handles;
  uint64_t allocated, written; /* bytes on devices, and in files */
  byte_buffer reply;
  const void *tail; /* bytes that follow the reply, and are not copied into it */
  size_t tail_bytes;
  char why[1024]; /* the text of an exception */
} rpc_session;

/* Serves until the client ends the session. 0, or 1: the client broke the protocol. */
int rpc_session_serve(int socket, const rpc_limits *limits);

/* One packet (code and body): the reply is in s->reply and s->tail. false: it is malformed, or ends the session. For the
 * server and for the fuzz target. rpc_session_finish frees all that the session holds. */
bool rpc_session_answer(rpc_session *s, const uint8_t *packet, size_t bytes);
void rpc_session_finish(rpc_session *s);

/* ---- for the parts of a session */

/* What a request came to: a reply of one value, an exception with the text in s->why, or a packet that is malformed. */
typedef enum rpc_outcome { RPC_DONE, RPC_FAILED, RPC_MALFORMED } rpc_outcome;

rpc_outcome rpc_fail(rpc_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
rpc_outcome rpc_fail_tvm(rpc_session *s); /* with the words of TVM's C API */
rpc_outcome rpc_give(rpc_session *s, rpc_value value);
rpc_outcome rpc_give_nothing(rpc_session *s);

/* memory.c: allocation, copies, streams and attributes. The reader is after the code. */
rpc_outcome rpc_memory_request(rpc_session *s, uint32_t code, byte_reader *r);
void rpc_drop(rpc_session *s, rpc_held held);

/* The DLTensor of a tensor of the wire, all of whose bytes lie in what the session holds; it borrows t. false with words in
 * s->why. */
bool rpc_place_tensor(rpc_session *s, const rpc_tensor *t, DLTensor *out);

/* call.c: a call, the reply of one with its value, and of one that gave an object, which the session then holds. */
rpc_outcome rpc_call(rpc_session *s, byte_reader *r);
rpc_outcome rpc_give_result(rpc_session *s, rpc_value value);
rpc_outcome rpc_give_object(rpc_session *s, rpc_held_kind kind, void *pointer);

/* own.c: the server's own functions, by name and index; -1: no such name. */
int rpc_own_find(const char *name);
rpc_outcome rpc_own_call(rpc_session *s, uint32_t index, const rpc_value *args, uint32_t n);

#endif
