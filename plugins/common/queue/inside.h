/* What the files of the queue share. One lock of a device guards all that its threads and its callers both use. It is a
 * leaf: while it is held, no function of the driver is called, and of the host only free and fence_query. */
#ifndef HEDDLE_PLUGINS_COMMON_QUEUE_INSIDE_H
#define HEDDLE_PLUGINS_COMMON_QUEUE_INSIDE_H

#include "plugins/common/queue/queue.h"

#include <pthread.h>
#include <stdatomic.h>

/* How often a launch may be pending in its stream. */
#define QUEUE_PENDING 8

/* Memory that work of the device may still use when it is freed: the first member of what is freed that way. */
typedef struct queue_kept {
  struct queue_kept *next;
  void (*destroy)(heddle_pdevice *dev, struct queue_kept *self);
} queue_kept;

/* The point of a stream that an event recorded: pending, reached, or reached after a failure. */
typedef struct queue_point {
  uint32_t refs; /* the event's, the command's that reaches it, and that of each wait */
  bool reached;
  heddle_error failure; /* status HEDDLE_OK: none */
} queue_point;

enum { CMD_NOTHING, CMD_COPY, CMD_RUN, CMD_RECORD, CMD_WAIT, CMD_SIGNAL, CMD_FENCE_WAIT, CMD_REPLAY };
typedef struct queue_cmd {
  uint32_t kind;
  uint32_t reserved;
  union {
    queue_copy copy;
    heddle_plaunch *launch;
    queue_point *point;
    heddle_pgraph *graph;
    struct {
      heddle_pfence fence;
      uint64_t value;
    } fence;
  } u;
} queue_cmd;

/* A row of commands: of a stream a ring, in which head counts those put in, submitted those that may run and tail those
 * that have ended; of a capture a list. places are those that launches may take. */
struct heddle_pstream {
  heddle_pdevice *dev;
  heddle_pstream *next;
  queue_cmd *ring;
  uint64_t room, head, submitted, tail;
  uint64_t places;
  uint32_t thread;        /* which of the device's threads works it off */
  uint32_t refs;          /* the host's, and that of each launch that is bound to it */
  bool closed;            /* by the host */
  heddle_error failure;   /* of work since the last sync; status HEDDLE_OK: none */
  heddle_pgraph *capture; /* that is being recorded */
};

struct heddle_pevent {
  heddle_pdevice *dev;
  heddle_pstream *stream; /* of the last record: compared only */
  queue_point *point;
};

struct heddle_pbuffer {
  queue_kept kept; /* first */
  heddle_pdevice *dev;
  uint64_t bytes;
  uint32_t kind;
  void *memory; /* DEVICE: the driver's; PINNED: the address */
};

struct heddle_pop {
  queue_kept kept; /* first */
  heddle_pdevice *dev;
  void *op;
};

struct heddle_plaunch {
  queue_kept kept; /* first */
  heddle_pstream *stream;
  queue_work work;
  queue_slice slices[];
};

struct heddle_pgraph {
  queue_kept kept; /* first */
  heddle_pdevice *dev;
  queue_cmd *row;
  uint64_t room, count, places;
};

typedef struct queue_thread {
  heddle_pdevice *dev;
  pthread_t thread;
  uint32_t number;
  bool started, running, ended;
} queue_thread;

struct heddle_pdevice {
  const heddle_host *host;
  const queue_driver *driver;
  void *device; /* the driver's */
  uint64_t cookie, lose_at;
  uint32_t index;
  pthread_mutex_t lock;
  pthread_cond_t work; /* for the threads: a command, or the end */
  pthread_cond_t done; /* a command has ended, or the device is lost */
  queue_thread threads[2];
  heddle_pstream *streams;
  queue_kept *kept;
  bool stop;     /* threads end when nothing is left */
  bool detached; /* a wait for work ran out of time: what is freed may still be in use */
  atomic_bool lost;
  atomic_bool abandoned; /* closed with a thread that did not end: it calls nothing any more */
  heddle_error fault;    /* written before lost */
  atomic_llong live[4];  /* by HEDDLE_QUERY_LIVE_* */
};

/* ---- device.c ---- */

/* HEDDLE_OK, or HEDDLE_EDEVICE with the first text. Any thread. */
heddle_status queue_check(heddle_pdevice *dev, heddle_error *err);
/* Zeroed memory of the host's; NULL where there is none. */
void *queue_new(const heddle_host *host, uint64_t bytes);
/* Frees what work may still use: now, or when the device has become idle. Any thread, without the lock. */
void queue_give(heddle_pdevice *dev, queue_kept *item);
/* Whether work is left or runs. With the lock. */
bool queue_busy(const heddle_pdevice *dev);
/* Absolute monotonic time, timeout_ns from now. */
struct timespec queue_deadline(uint64_t timeout_ns);
static inline void queue_count(heddle_pdevice *dev, int key, long long n) {
  atomic_fetch_add(&dev->live[key], n);
}

/* ---- stream.c ---- */

/* Enqueues a command, or records it where a capture is open and the command can be recorded. For launches it takes a place
 * that bind reserved, and allocates nothing: HEDDLE_ELIMIT. A reference to a point goes with the command on success. */
heddle_status queue_push(heddle_pstream *stream, const queue_cmd *cmd, heddle_error *err);
/* For a launch: a reference to its stream and places; and the way back. */
heddle_status queue_stream_take(heddle_pstream *stream, heddle_error *err);
void queue_stream_give(heddle_pstream *stream);
void queue_submit(heddle_pstream *stream);
/* Submits and waits until all has ended; gives the failure of the stream, which stays. */
heddle_status queue_finish(heddle_pstream *stream, heddle_error *err);
/* Takes streams that the host has closed off the device, where nothing is left in them. With the lock. */
void queue_drop_closed(heddle_pdevice *dev);
/* Frees a stream that nothing refers to. With or without the lock. */
void queue_stream_free(heddle_pstream *stream);

/* ---- worker.c ---- */

void *queue_work_off(void *thread);
/* Fails the fences of all signals that are pending. Of a lost device, without the lock. */
void queue_fail_signals(heddle_pdevice *dev);

/* ---- event.c, memory.c ---- */

/* Gives a reference to a point back; takes NULL. With the lock. */
void queue_point_drop(const heddle_host *host, queue_point *point);
/* Bytes [offset, offset + bytes) of a buffer of that kind: HEDDLE_EINVAL, naming what. A NULL buffer has 0 bytes. */
heddle_status queue_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint32_t kind, uint64_t offset,
                          uint64_t bytes, const char *what, queue_slice *out, heddle_error *err);

#endif
