/* heddle/rpc.h: sessions with servers of TVM's RPC: TVM's own (v0.14 to v0.27) and heddle rpc-server, directly or from a tracker.
 * A program that uses it links with libheddle_rpc.so in addition to libheddle; heddle.h does not include it.
 *
 * Functions, modules and tensors of a session are the server's, and are known by handles. The session's end frees all of
 * them. One thread at a time uses a session; calls block until the server answered. The protocol has no authentication and
 * no encryption (docs/rpc.md). What a server sends is checked before it is used.
 *
 * HEDDLE_EFAILED: the server reported an error, whose text is the message; the session goes on. HEDDLE_EIO: the connection
 * failed, HEDDLE_EFORMAT: the server sent what is not TVM's RPC, HEDDLE_ETIMEOUT: the session took longer than it may: the
 * session is over, and each later call returns HEDDLE_EIO. HEDDLE_EINVAL: an argument is NULL or wrong. HEDDLE_ENOMEM. */
#ifndef HEDDLE_RPC_H
#define HEDDLE_RPC_H

#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_rpc heddle_rpc;

/* struct_size is sizeof; NULL in place of the options means the defaults. */
typedef struct heddle_rpc_options {
  size_t struct_size;
  double session_seconds; /* after which the server ends the session; 0: never */
  uint32_t connect_ms;    /* to reach the server; 0: 30,000 */
  uint32_t reserved;
} heddle_rpc_options;

enum { HEDDLE_RPC_DIMENSIONS = 32 };

/* A tensor in the server's memory, row-major. */
typedef struct heddle_rpc_tensor {
  uint64_t data;   /* the server's handle */
  uint64_t object; /* of a tensor that a call gave; else 0 */
  int32_t device_type;
  int32_t device_number;
  heddle_dtype dtype;
  uint32_t ndim;
  int64_t shape[HEDDLE_RPC_DIMENSIONS];
} heddle_rpc_tensor;

/* heddle_rpc_value.kind */
enum {
  HEDDLE_RPC_NONE = 0,
  HEDDLE_RPC_INT = 1,
  HEDDLE_RPC_FLOAT = 2,
  HEDDLE_RPC_BOOL = 3, /* in i */
  HEDDLE_RPC_STRING = 4,
  HEDDLE_RPC_BYTES = 5,
  HEDDLE_RPC_TENSOR = 6,
  HEDDLE_RPC_MODULE = 7,
  HEDDLE_RPC_FUNCTION = 8,
  HEDDLE_RPC_OBJECT = 9, /* of which nothing more is known here */
  HEDDLE_RPC_DEVICE = 10,
  HEDDLE_RPC_DTYPE = 11
};

/* An argument or a result. Arguments are borrowed. A tensor, a module, a function or an object in a result is the caller's
 * to free; a string, bytes and the tensor's struct are valid until the next call with this session. */
typedef struct heddle_rpc_value {
  int32_t kind;
  uint32_t reserved;
  union {
    int64_t i;
    double f;
    const char *s;    /* terminated */
    const void *data; /* BYTES */
    const heddle_rpc_tensor *tensor;
    uint64_t handle; /* MODULE, FUNCTION, OBJECT */
    struct {
      int32_t type;
      int32_t number;
    } device;
    heddle_dtype dtype;
  } of;
  uint64_t bytes; /* of a string or of bytes in a result; of bytes in an argument */
} heddle_rpc_value;

/* ---- sessions */

/* Opens a session; waits while the server has another one. key: the server's, "" where it has none. HEDDLE_EDENIED: the
 * server has another key. */
HEDDLE_API heddle_status heddle_rpc_connect(const char *host, uint16_t port, const char *key,
                                            const heddle_rpc_options *options, heddle_rpc **out, heddle_error *err);

/* Asks a tracker for a server of a key, and opens a session there. Waits until one is free; the largest priority comes
 * first. */
HEDDLE_API heddle_status heddle_rpc_request(const char *tracker, uint16_t port, const char *key, double priority,
                                            const heddle_rpc_options *options, heddle_rpc **out, heddle_error *err);

/* What a tracker knows, as JSON: {"queue_info": ..., "server_info": ...}. *out is freed with
 * heddle_rpc_release. */
HEDDLE_API heddle_status heddle_rpc_summary(const char *tracker, uint16_t port, char **out, heddle_error *err);

HEDDLE_API void heddle_rpc_release(char *text); /* takes NULL */

/* Ends the session; the server frees all that it holds. Takes NULL. */
HEDDLE_API void heddle_rpc_close(heddle_rpc *rpc);

/* ---- files and modules */

/* Names are plain: without '/'. *data is valid until the next call with this session. */
HEDDLE_API heddle_status heddle_rpc_upload(heddle_rpc *rpc, const char *name, const void *data, size_t bytes,
                                           heddle_error *err);
HEDDLE_API heddle_status heddle_rpc_download(heddle_rpc *rpc, const char *name, const void **data, size_t *bytes,
                                             heddle_error *err);

/* Loads a library that was uploaded. *module is freed with heddle_rpc_free. */
HEDDLE_API heddle_status heddle_rpc_load(heddle_rpc *rpc, const char *name, uint64_t *module, heddle_error *err);

/* ---- functions */

/* Finds a function of a module or of what it imports; with module 0, of the server by its name. *function is freed with
 * heddle_rpc_free. HEDDLE_ENOTFOUND. */
HEDDLE_API heddle_status heddle_rpc_function(heddle_rpc *rpc, uint64_t module, const char *name, uint64_t *function,
                                             heddle_error *err);

/* Calls a function. result may be NULL: what it gives is then freed. */
HEDDLE_API heddle_status heddle_rpc_call(heddle_rpc *rpc, uint64_t function, const heddle_rpc_value *args,
                                         uint32_t n_args, heddle_rpc_value *result, heddle_error *err);

/* Frees a module, a function or an object. 0 is accepted. */
HEDDLE_API heddle_status heddle_rpc_free(heddle_rpc *rpc, uint64_t handle, heddle_error *err);

/* Times a function of a module (or, with module 0, of the server) there: once untimed, then repeat measurements of number
 * calls each, or of more where they take less than min_repeat_ms. Writes repeat times of one call in seconds. The device
 * is the one that the function runs on, by DLPack's type and its number. */
HEDDLE_API heddle_status heddle_rpc_time(heddle_rpc *rpc, uint64_t module, const char *function, int32_t device_type,
                                         int32_t device_number, const heddle_rpc_value *args, uint32_t n_args,
                                         uint32_t number, uint32_t repeat, uint32_t min_repeat_ms, double *seconds,
                                         heddle_error *err);

/* ---- devices and tensors */

/* Whether the server has a device, by DLPack's type and its number: 1 or 0. */
HEDDLE_API heddle_status heddle_rpc_device_exists(heddle_rpc *rpc, int32_t device_type, int32_t device_number, int *out,
                                                  heddle_error *err);

/* Allocates a tensor, and frees one that this call or heddle_rpc_call gave. */
HEDDLE_API heddle_status heddle_rpc_tensor_create(heddle_rpc *rpc, int32_t device_type, int32_t device_number,
                                                  heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                                  heddle_rpc_tensor *out, heddle_error *err);
HEDDLE_API heddle_status heddle_rpc_tensor_free(heddle_rpc *rpc, const heddle_rpc_tensor *t, heddle_error *err);

/* Copies all bytes of a tensor there or back. HEDDLE_EINVAL: bytes is not the tensor's size. */
HEDDLE_API heddle_status heddle_rpc_write(heddle_rpc *rpc, const heddle_rpc_tensor *t, const void *data, size_t bytes,
                                          heddle_error *err);
HEDDLE_API heddle_status heddle_rpc_read(heddle_rpc *rpc, const heddle_rpc_tensor *t, void *data, size_t bytes,
                                         heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
