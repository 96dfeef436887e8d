/* What the files of the plugin share. A link is a connection to one server, with one session there; all devices of that
 * server that are open share it. Two threads of a link send and receive. One lock of a link guards all that they and the
 * callers use. It is a leaf: while it is held, of the host only alloc and free are called. */
#ifndef HEDDLE_PLUGINS_REMOTE_REMOTE_H
#define HEDDLE_PLUGINS_REMOTE_REMOTE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "plugins/common/perror.h"
#include "plugins/common/remote/region_code.h"
#include "plugins/common/remote/transport.h"
#include "plugins/common/remote/wire.h"

/* How often a launch may be pending in its stream. */
#define REMOTE_PENDING 8

/* A device as the server described it. */
typedef struct remote_about {
  char name[72];   /* "cpu:0", at the server */
  uint64_t tokens; /* what tells its layouts from those of other plugins */
  heddle_pdevice_desc desc;
  bool has_op, has_layout, has_partition, has_list, has_resize, has_libraries;
} remote_about;

typedef struct remote_link remote_link;

/* A server of the setting. Its devices are fixed when the instance is opened; a link is made again where one was lost. */
typedef struct remote_server {
  char address[256];
  remote_link *link; /* guarded by the instance's lock */
  remote_about *devices;
  uint32_t n_devices;
} remote_server;

struct heddle_pinstance {
  const heddle_host *host;
  pthread_mutex_t lock;
  remote_server *servers;
  uint32_t n_servers, n_devices;
  uint32_t connect_ms, quiet_ms, request_ms;
  char psk[1024], tls_cert[1024], tls_key[1024], tls_ca[1024], tls_name[256];
  uint64_t lose_at, fail_at; /* the hooks of the conformance kit; UINT64_MAX: none */
};

/* A frame that waits to be sent, other than a stream's work. */
typedef struct remote_frame {
  struct remote_frame *next;
  byte_buffer bytes;
} remote_frame;

/* A request that waits for its result, on its caller's stack. */
typedef struct remote_call {
  struct remote_call *next;
  uint32_t id;
  bool is_done;
  heddle_error err;
  byte_buffer reply; /* what follows the error in the result */
  heddle_status status;
} remote_call;

/* What may still be used when it is freed: the first member of what is freed that way. */
typedef struct remote_kept {
  struct remote_kept *next;
  void (*destroy)(heddle_pdevice *dev, struct remote_kept *self);
} remote_kept;

enum { CMD_NOTHING, CMD_WRITE, CMD_READ, CMD_COPY, CMD_FILL, CMD_RUN, CMD_RECORD, CMD_WAIT, CMD_REPLAY, CMD_SIGNAL };
typedef struct remote_cmd {
  uint32_t kind;
  uint32_t pattern;       /* FILL */
  uint64_t to, to_offset; /* handles of buffers, launches, graphs and events at the server */
  uint64_t from, from_offset;
  uint64_t bytes;
  char *host; /* WRITE and READ: the address here */
  struct heddle_pgraph *graph;
  heddle_pevent *event; /* WAIT: what it waits for, by the record's number */
  uint64_t record;
  heddle_pfence fence;
  uint64_t value;
} remote_cmd;

/* A ring of commands. head counts those put in, submitted those that may be sent, sent those that were, asked those whose
 * end the server was asked to report, and tail those that have ended. */
struct heddle_pstream {
  heddle_pdevice *dev;
  heddle_pstream *next; /* in the link */
  uint32_t id;          /* at the server */
  remote_cmd *ring;
  uint64_t room, head, submitted, sent, asked, tail, places;
  uint32_t refs; /* the host's, and that of each launch */
  bool closed, sending;
  heddle_error failure; /* of work since the last sync; status HEDDLE_OK: none */
  struct heddle_pgraph *capture;
};

struct heddle_pevent {
  remote_kept kept; /* first */
  heddle_pdevice *dev;
  heddle_pstream *stream; /* of the last record: compared only */
  uint64_t handle;
  uint64_t records, sent; /* records that were put in, and those that were sent */
};

struct heddle_pbuffer {
  remote_kept kept; /* first */
  heddle_pdevice *dev;
  uint64_t bytes;
  uint32_t kind;
  bool imported;
  uint64_t handle; /* DEVICE: at the server */
  char *address;   /* PINNED */
};

struct heddle_pop {
  remote_kept kept; /* first */
  heddle_pdevice *dev;
  uint64_t handle;
};

/* How many requests of a launch to be resized are remembered: in sets by their hashes, in each the last ones. */
enum { REMOTE_RESIZE_SETS = 16, REMOTE_RESIZES = 4 };

struct heddle_plaunch {
  remote_kept kept; /* first */
  heddle_pstream *stream;
  uint64_t handle;
  uint64_t resized[REMOTE_RESIZE_SETS][REMOTE_RESIZES]; /* hashes of requests that the server accepted; 0: none */
};

/* A capture: its commands until it is ended, then the copies from and to the host that a replay's message carries. */
struct heddle_pgraph {
  remote_kept kept; /* first */
  heddle_pdevice *dev;
  remote_cmd *row;
  uint64_t room, count, places;
  uint64_t handle;
  uint64_t in_bytes, out_bytes; /* of all writes, and of all reads */
};

struct heddle_pdevice {
  heddle_pinstance *self;
  const heddle_host *host;
  remote_link *link;
  const remote_about *about;
  heddle_pdevice *next; /* in the link */
  uint32_t index;       /* of the plugin */
  uint32_t remote;      /* at the server */
  uint64_t cookie;
  remote_kept *kept;
  bool detached;
  uint32_t moving; /* threads of the link that use memory of the device's now */
  atomic_bool lost;
  heddle_error fault;   /* written before lost */
  atomic_llong live[4]; /* by HEDDLE_QUERY_LIVE_* */
};

struct remote_link {
  const heddle_host *host;
  heddle_pinstance *self;
  char address[256];
  transport t;
  uint64_t child; /* the process of ssh:, or 0 */
  pthread_mutex_t lock;
  pthread_mutex_t regions; /* held from the first constant of a region until its message is enqueued */
  pthread_cond_t work;     /* for the sender */
  pthread_cond_t done;     /* a result, or work that has ended */
  pthread_t sender, receiver;
  bool has_sender, has_receiver, stop;
  bool sending; /* a thread, the sender or a caller, sends: with buffer */
  bool stalled; /* a write waits for a read of the same bytes */
  byte_buffer buffer;
  atomic_bool lost;
  heddle_error fault;
  uint32_t refs;
  uint32_t next_id;
  uint64_t next_event;
  uint32_t minor; /* of the server's version */
  uint64_t alive_ms, sent_ms;
  remote_frame *first, **last;
  remote_call *calls;
  heddle_pdevice *devices;
  heddle_pstream *streams;
  wire_blob_id *blobs; /* that the server has */
  uint32_t n_blobs, blob_room;
  uint64_t blob_bytes, most_blob_bytes;
  remote_about *about;
  uint32_t n_about;
};

/* ---- connect.c: a transport to an address of the setting; *child: the process that has its other end */
heddle_status remote_connect(heddle_pinstance *self, const char *address, transport *t, uint64_t *child,
                             heddle_error *err);

/* ---- link.c */
heddle_status remote_link_open(heddle_pinstance *self, const char *address, remote_link **out, heddle_error *err);
/* The server's link, made again where it was lost, with a reference for the caller. Blocks. */
heddle_status remote_link_get(heddle_pinstance *self, uint32_t server, remote_link **out, heddle_error *err);
void remote_link_drop(remote_link *link); /* the last one ends it; takes NULL */
/* Ends the connection, and makes all of its devices lost. The first text counts. Any thread, without the lock. */
void remote_link_lose(remote_link *link, int32_t code, const char *format, ...) P_PRINTF(3, 4);
heddle_status remote_link_check(remote_link *link, heddle_error *err);
/* Sends a frame without an answer. The buffer becomes the link's. */
heddle_status remote_post(remote_link *link, uint32_t kind, uint32_t id, byte_buffer *body, heddle_error *err);
/* A request; its arguments are in body after wire_begin, and become the link's. Blocks until the result is there: reply has
 * what follows the error, which the caller finishes. */
heddle_status remote_ask(remote_link *link, uint32_t kind, byte_buffer *body, byte_buffer *reply, heddle_error *err);
/* The same for a result of one number. */
heddle_status remote_ask_number(remote_link *link, uint32_t kind, byte_buffer *body, uint64_t *out, heddle_error *err);
/* The two halves of it: begin enqueues the message, end waits for the result. */
heddle_status remote_ask_begin(remote_link *link, uint32_t kind, byte_buffer *body, remote_call *call,
                               heddle_error *err);
heddle_status remote_ask_end(remote_link *link, remote_call *call, byte_buffer *reply, heddle_error *err);
/* Frees what the server holds. */
void remote_forget(remote_link *link, uint64_t handle);
struct timespec remote_deadline(uint64_t timeout_ns);

/* ---- threads.c */
void *remote_send_all(void *link);
void *remote_receive_all(void *link);
/* Sends what was submitted from the caller's thread, where that cannot take long: nothing else is under way, and it is
 * short. With the lock, which is released meanwhile. false: the sender has to go on. */
bool remote_send_now(remote_link *link);

/* ---- device.c */
heddle_status remote_find(heddle_pinstance *self, uint32_t index, remote_server **server, uint32_t *remote,
                          heddle_error *err);
heddle_status remote_check(heddle_pdevice *dev, heddle_error *err);
void remote_lose(heddle_pdevice *dev, int32_t code, const char *text);
void *remote_new(const heddle_host *host, uint64_t bytes); /* zeroed; NULL where memory is out */
void remote_give(heddle_pdevice *dev, remote_kept *item);
bool remote_busy(const heddle_pdevice *dev); /* with the lock */
static inline void remote_count(heddle_pdevice *dev, int key, long long n) {
  atomic_fetch_add(&dev->live[key], n);
}

/* ---- stream.c */
heddle_status remote_push(heddle_pstream *stream, const remote_cmd *cmd, heddle_error *err);
heddle_status remote_stream_take(heddle_pstream *stream, heddle_error *err);
void remote_stream_give(heddle_pstream *stream);
void remote_submit(heddle_pstream *stream);
heddle_status remote_finish(heddle_pstream *stream, heddle_error *err);
/* With the lock, of the link's threads: ends the commands before position, and takes the first signal that is due. */
bool remote_advance(heddle_pstream *stream, uint64_t position, remote_cmd *signal);
void remote_drop_closed(remote_link *link);
void remote_stream_free(heddle_pstream *stream);

/* ---- capture.c: whether a read's bytes here are among those of a write */
bool remote_overlaps(const remote_cmd *read, const remote_cmd *write);

/* ---- memory.c */
heddle_status remote_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint32_t kind, uint64_t offset,
                           uint64_t bytes, const char *what, heddle_error *err);

/* ---- layout.c: tokens, which differ by the plugin of the server's device */
heddle_layout remote_token(uint64_t tokens, heddle_layout layout);

extern const heddle_device_table remote_device_table;
extern const heddle_memory_table remote_memory_table;
extern const heddle_copy_table remote_copy_table;
extern const heddle_stream_table remote_stream_table;
extern const heddle_event_table remote_event_table;
extern const heddle_fence_table remote_fence_table;
extern const heddle_op_table remote_op_table;
extern const heddle_layout_table remote_layout_table;
extern const heddle_capture_table remote_capture_table;

#endif
