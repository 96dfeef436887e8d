/* remote/session.h: one client's session: the messages of the remote protocol (docs/remote-protocol.md), answered until the
 * client goes. It runs in a process of its own. One thread answers; another one tells the client that the server is alive. */
#ifndef HEDDLE_REMOTE_SESSION_H
#define HEDDLE_REMOTE_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/device.h"
#include "plugins/common/remote/region_code.h"
#include "plugins/common/remote/transport.h"
#include "rpc/handles.h"

typedef struct remote_limits {
  const char *devices;     /* a list as in heddle run --device; NULL: the default devices */
  uint64_t memory;         /* bytes that all buffers, constants and messages of a session hold */
  uint64_t idle_ms;        /* a client that is silent for so long is gone */
  uint64_t seconds;        /* that a session may take; 0: as long as it wants */
  bool allow_libraries;    /* runs code of its clients */
  const char *rpc_program; /* the one of TVM's RPC; NULL: it is not carried */
} remote_limits;

/* A device of the list. util is a stream for what requests do. */
typedef struct remote_device {
  heddle_device *dev;
  heddle_pstream *util;
  bool is_open;
} remote_device;

typedef enum remote_kind { REMOTE_BUFFER = 1, REMOTE_OP, REMOTE_LAUNCH, REMOTE_GRAPH } remote_kind;

/* The head of everything that a session holds for its client. */
typedef struct remote_object {
  remote_kind kind;
  uint32_t users; /* objects that refer to it: it is freed when they are */
  bool is_freed;  /* by the client */
  remote_device *device;
  uint64_t handle;
} remote_object;

typedef struct remote_buffer {
  remote_object head;
  heddle_pbuffer *buffer;
  uint64_t bytes;
  char *address; /* where it is memory of this process: of an inline device; else NULL */
} remote_buffer;

typedef struct remote_op {
  remote_object head;
  const heddle_op_table *table; /* the plugin's, or that of libraries */
  heddle_pop *op;
  uint32_t n_inputs, n_outputs;
  bool is_bare;
  uint8_t *region; /* where launches can be resized: the region's bytes as they came; else NULL */
  size_t region_bytes;
  bool *is_absorbed; /* per input */
  uint64_t workspace;
  uint64_t bytes[]; /* that each input, then each output has at least */
} remote_op;

typedef struct remote_stream {
  uint32_t id; /* 0: free */
  remote_device *device;
  heddle_pstream *stream;
  bool is_dirty; /* work was enqueued since the last sync */
  heddle_error failure;
} remote_stream;

typedef struct remote_launch {
  remote_object head;
  heddle_plaunch *launch;
  remote_op *op;
  uint32_t stream, n_buffers;
  bool is_short; /* bound with too little for the op's shapes: it is resized before it runs */
  remote_buffer *buffers[];
} remote_launch;

typedef struct remote_step {
  uint32_t kind, pattern;
  remote_object *to, *from; /* buffers, or a launch */
  uint64_t to_offset, from_offset, bytes;
} remote_step;

/* steps from tail on are reads. out holds what earlier ones read. */
typedef struct remote_graph {
  remote_object head;
  uint32_t count, tail;
  uint64_t in_bytes, out_bytes, out_early;
  char *out;
  remote_step steps[];
} remote_graph;

/* The point of a stream that was recorded. */
typedef struct remote_event {
  uint64_t id;
  uint32_t stream;
  heddle_error failure;
} remote_event;

typedef struct remote_blob {
  wire_blob_id id;
  void *data;
} remote_blob;

typedef struct remote_library remote_library;

typedef struct remote_session {
  transport *t;
  const remote_limits *limits;
  uint32_t minor; /* of the client's version */
  heddle_context *ctx;
  remote_device *devices;
  uint32_t n_devices;
  rpc_handles handles;
  remote_stream *streams; /* by id - 1 */
  uint32_t n_streams;
  remote_event *events;
  uint32_t n_events, event_room;
  remote_blob *blobs;
  uint32_t n_blobs, blob_room;
  remote_library *libraries;
  uint32_t n_libraries;
  uint64_t held; /* bytes that count against limits->memory */
  char *piece;   /* REMOTE_PIECE bytes, for copies */
  pthread_mutex_t send_lock;
  pthread_t ticker;
  pthread_mutex_t tick_lock;
  pthread_cond_t tick;
  bool has_ticker, is_over;
} remote_session;

enum { REMOTE_PIECE = 1 << 20, REMOTE_MOST_STREAMS = 4096, REMOTE_MOST_EVENTS = 1 << 16, REMOTE_ALIVE_MS = 1000 };

/* Serves until the client ends the session. admit is called when the client's first message has been read, with
 * HEDDLE_OK where it may be served. 0, or 1: the client broke the protocol, or cannot be served. */
typedef heddle_status (*remote_admit_fn)(void *user, heddle_error *err);
int remote_session_serve(transport *t, const remote_limits *limits, remote_admit_fn admit, void *user);

/* For the fuzz target: a session over a transport, whose ends are the caller's. */
heddle_status remote_session_init(remote_session *s, transport *t, const remote_limits *limits, heddle_error *err);
bool remote_session_answer(remote_session *s, const wire_head *head); /* false: the session ends */
void remote_session_finish(remote_session *s);

/* ---- objects.c */
bool remote_hold(remote_session *s, uint64_t bytes, heddle_error *err); /* against the limit */
void remote_unhold(remote_session *s, uint64_t bytes);
bool remote_add(remote_session *s, remote_object *o, remote_kind kind, remote_device *device, heddle_error *err);
/* HEDDLE_EINVAL where the number is unknown, or of another kind or device; device may be NULL. */
heddle_status remote_get(remote_session *s, uint64_t handle, remote_kind kind, const remote_device *device, void *out,
                         heddle_error *err);
void remote_let_go(remote_session *s, remote_object *o); /* has one user less; takes NULL */
void remote_release(remote_session *s, uint64_t handle); /* FREE of any number */
void remote_close_device(remote_session *s, remote_device *d);
remote_stream *remote_find_stream(remote_session *s, uint32_t id);
/* Waits for the stream's work; a failure stays with it. */
heddle_status remote_settle(remote_stream *stream);
void remote_settle_all(remote_session *s, const remote_device *d);
heddle_status remote_range(const remote_buffer *b, uint64_t offset, uint64_t bytes, heddle_error *err);
const void *remote_find_blob(void *session, const wire_blob_id *id);
void remote_drop_blobs(remote_session *s);

/* ---- requests.c, prepare.c, bind.c: what follows the error in the result goes into out */
heddle_status remote_request(remote_session *s, uint32_t kind, byte_reader *r, byte_buffer *out, heddle_error *err);
heddle_status remote_device_of(remote_session *s, byte_reader *r, bool is_open, remote_device **out, heddle_error *err);
heddle_status remote_query(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err);
heddle_status remote_partition(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err);
heddle_status remote_prepare(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err);
void remote_op_free(remote_session *s, remote_op *op); /* what it has, and itself; op->op may be NULL */
heddle_status remote_needed(const remote_device *d, const heddle_pvalue *v, uint64_t *bytes, heddle_error *err);
/* Asks the plugin, which sees no layouts but those of Reorder. */
heddle_status remote_ask(remote_session *s, const remote_device *d, const heddle_pregion *region, heddle_offer_fn offer,
                         void *sink, heddle_error *err);
heddle_status remote_resize(remote_session *s, byte_reader *r, heddle_error *err);
/* The same without an answer: a launch that fails to be resized does not run before it is. false: there is no such launch. */
bool remote_resize_unasked(remote_session *s, byte_reader *r);
heddle_status remote_bind(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err);
heddle_status remote_graph_make(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err);

/* ---- shapes.c: HEDDLE_EUNSUPPORTED where values are not of the types and shapes that their nodes make */
heddle_status remote_check_shapes(const heddle_pregion *region, heddle_error *err);

/* ---- library.c: a region that calls a function of a client's library, as op.query and op.prepare */
bool remote_calls_library(const heddle_pregion *region);
heddle_status remote_library_query(remote_session *s, const remote_device *d, const heddle_pregion *region,
                                   heddle_offer_fn offer, void *sink, heddle_error *err);
heddle_status remote_library_prepare(remote_session *s, const remote_device *d, const heddle_pregion *region,
                                     remote_op *op, heddle_error *err);
void remote_libraries_leave(remote_session *s, const remote_device *d); /* nothing of it is on the device any more */
void remote_libraries_finish(remote_session *s);                        /* all devices are closed */

/* ---- work.c: a message of a stream, of which the head was read. false: the session ends. */
bool remote_work(remote_session *s, const wire_head *head);
bool remote_send(remote_session *s, const void *data, size_t bytes, const void *more, size_t more_bytes);

#endif
