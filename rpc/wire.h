/* rpc/wire.h: the bytes of TVM's RPC: a reader of a bounded buffer, a growing buffer, and values in sequences as TVM
 * v0.14 to v0.27 write them. All integers are little-endian. Nothing that is read is trusted: a reader that meets wrong
 * bytes is bad from then on and gives zeros, and lists are allocated only after the bytes for their elements were seen. */
#ifndef HEDDLE_RPC_WIRE_H
#define HEDDLE_RPC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"
#include "plugins/common/bytes.h"

/* Codes of packets. */
enum {
  RPC_NONE,
  RPC_SHUTDOWN,
  RPC_INIT,
  RPC_CALL,
  RPC_RETURN,
  RPC_EXCEPTION,
  RPC_COPY_FROM,
  RPC_COPY_TO,
  RPC_COPY_ACK,
  RPC_GLOBAL,
  RPC_FREE_HANDLE,
  RPC_SET_DEVICE,
  RPC_ATTRIBUTE,
  RPC_ALLOC,
  RPC_FREE,
  RPC_SYNC,
  RPC_COPY_AMONG,
  RPC_ALLOC_SCOPE,
  RPC_STREAM,
  RPC_FREE_STREAM,
  RPC_SET_STREAM,
  RPC_CURRENT_STREAM
};

enum { RPC_MAGIC = 0xff271, RPC_DUPLICATE = 0xff272, RPC_MISMATCH = 0xff273, RPC_TRACKER_MAGIC = 0x2f271 };
enum { RPC_LONGEST_KEY = 1024, RPC_MOST_VALUES = 4096, RPC_MOST_DIMENSIONS = 32 };

/* How sequences are written: A by v0.14 to v0.20, B by v0.21 and later. */
typedef enum rpc_era { RPC_ERA_UNKNOWN, RPC_ERA_A, RPC_ERA_B } rpc_era;

/* ---- values */

typedef enum rpc_kind {
  RPC_KIND_NULL,
  RPC_KIND_INT,
  RPC_KIND_FLOAT,
  RPC_KIND_BOOL,
  RPC_KIND_HANDLE,
  RPC_KIND_DTYPE,
  RPC_KIND_DEVICE,
  RPC_KIND_TENSOR,
  RPC_KIND_STRING,
  RPC_KIND_BYTES,
  RPC_KIND_MODULE,
  RPC_KIND_FUNCTION,
  RPC_KIND_OBJECT
} rpc_kind;

typedef struct rpc_device {
  int32_t type, number;
} rpc_device;

typedef struct rpc_tensor {
  uint64_t data; /* what an allocation or a returned tensor gave */
  rpc_device device;
  heddle_dtype dtype;
  uint32_t ndim;
  int64_t shape[RPC_MOST_DIMENSIONS];
  uint64_t offset, bytes; /* bytes: of its elements, computed with checks */
} rpc_tensor;

typedef struct rpc_value {
  rpc_kind kind;
  uint32_t reserved;
  union {
    int64_t i; /* also of a bool */
    double f;
    uint64_t handle; /* also of a module, a function and an object */
    heddle_dtype dtype;
    rpc_device device;
    const rpc_tensor *tensor;
    struct {
      const char *data; /* of a string: terminated, and without a zero inside */
      uint64_t bytes;
    } text;
  } of;
} rpc_value;

/* A sequence that was read; bytes point into the packet, all else into block. */
typedef struct rpc_values {
  rpc_value *data;
  uint32_t count;
  void *block;
} rpc_values;

/* Reads a sequence. HEDDLE_EFORMAT: malformed, HEDDLE_ELIMIT: more than is allowed, HEDDLE_ENOMEM. Freed with
 * rpc_values_finish, which takes zeroed ones too. */
heddle_status rpc_read_values(byte_reader *r, rpc_era era, rpc_values *out);
void rpc_values_finish(rpc_values *v);

/* Reads a tensor as it stands in kCopyToRemote and kCopyFromRemote. */
bool rpc_read_tensor(byte_reader *r, rpc_tensor *out);

/* Adds a sequence in a form that clients of the era accept. */
void rpc_put_values(byte_buffer *b, rpc_era era, const rpc_value *values, uint32_t count);

/* The number that names the type of a call's result before it. */
int64_t rpc_result_tag(rpc_era era, rpc_kind kind);

/* The client's era, by its first request besides kInitServer; UNKNOWN where both write the same bytes. */
rpc_era rpc_era_of(uint32_t code, const uint8_t *body, size_t bytes);

#endif
