/* Streams: a queue of commands with one writer and one reader, and the thread that executes them. A command's operands
 * are resolved to bytes when it is put in, so that the thread looks nothing up. */
#ifndef HEDDLE_PLUGINS_SIM_STREAM_H
#define HEDDLE_PLUGINS_SIM_STREAM_H

#include "sim.h"

enum {
  SIM_CMD_COPY = 1,
  SIM_CMD_FILL,
  SIM_CMD_LAUNCH,
  SIM_CMD_KERNEL,
  SIM_CMD_RECORD,
  SIM_CMD_WAIT,
  SIM_CMD_FENCE_SIGNAL,
  SIM_CMD_FENCE_WAIT,
  SIM_CMD_MARK,
  SIM_CMD_REPLAY
};

/* Flags of a command. FREE: src is the host's memory, given back when the command is done with. LIE: one byte of the
 * copy comes out wrong. FAIL and FAULT: an injected failure, when the stream gets there. */
enum { SIM_FLAG_FREE = 1, SIM_FLAG_LIE = 2, SIM_FLAG_FAIL = 4, SIM_FLAG_FAULT = 8 };

typedef struct sim_cmd {
  uint16_t kind;
  uint16_t flags;
  uint32_t call; /* with FAIL: the sim_call that was to fail */
  uint64_t nth;  /* with FAIL: which */
  union {
    struct {
      uint8_t *dst;
      uint8_t *src;
      uint64_t bytes;
    } copy;
    struct {
      uint8_t *dst;
      uint64_t bytes;
      uint32_t pattern;
    } fill;
    heddle_plaunch *launch;
    struct {
      uint32_t function;
      float scale;
      uint64_t n;
      uint8_t *args[3];
    } kernel;
    struct {
      heddle_pstream *stream;
      uint64_t position;
    } wait;
    struct {
      heddle_pfence fence;
      uint64_t value;
    } fence;
    struct {
      heddle_ptimer *timer;
      uint32_t slot;
    } mark;
    heddle_pgraph *graph;
  } u;
} sim_cmd;

/* A ring of chunks; see queue.c for why the reader may run behind the writer without a lock. */
#define SIM_CHUNK 128
typedef struct sim_chunk {
  struct sim_chunk *next;
  uint64_t base; /* position of cmds[0]; the writer's */
  sim_cmd cmds[SIM_CHUNK];
} sim_chunk;

/* A stretch of work that failed: positions [first, last], last being UINT64_MAX until a sync has reported it. */
typedef struct sim_bad_stretch {
  uint64_t first;
  uint64_t last;
  sim_failure failure;
} sim_bad_stretch;
#define SIM_BAD_STRETCHES 4

/* Positions count commands over the whole life of the struct, which outlives closes: an instance keeps streams for use
 * again until it is closed itself, so that a wait for a position never meets freed memory. */
struct heddle_pstream {
  uint32_t magic;
  atomic_bool open;    /* false: the host has closed it, and it may be used again */
  atomic_uint adopted; /* times that it was; so many closes are not its own */
  heddle_pinstance *self;
  heddle_pdevice *dev;
  heddle_pstream *next;
  heddle_pstream *next_made; /* of the instance */
  pthread_t thread;
  bool has_thread;   /* guarded by dev->lock */
  atomic_bool ended; /* the worker touches nothing any more */

  /* The writer's, which is the thread that calls the plugin for this stream. */
  sim_chunk *put;
  uint32_t put_index;
  uint64_t head; /* position behind the last command that was put in */
  heddle_pgraph *capture;

  /* The worker's. */
  sim_chunk *get;
  uint32_t get_index;
  uint64_t random;
  atomic_bool hung;

  /* Between them. */
  atomic_ullong tail;   /* position behind the last command that was submitted */
  atomic_ullong done;   /* position behind the last command that is finished */
  atomic_bool sleeping; /* the worker waits for wake */
  atomic_uint waiters;  /* threads that wait for finished */
  atomic_bool failed;   /* newest bad stretch is not reported yet */
  atomic_uint n_bad;    /* bad stretches so far */
  pthread_mutex_t lock; /* guards the sleeps on both conditions, and bad; a leaf */
  pthread_cond_t wake;
  pthread_cond_t finished;
  sim_bad_stretch bad[SIM_BAD_STRETCHES];
};

/* ---- queue.c ---- */

heddle_status sim_queue_init(heddle_pstream *stream, heddle_error *err);
void sim_queue_finish(heddle_pstream *stream); /* takes half-made ones */
/* Puts a command behind the others, or into the capture that is open. Allocates only where more commands are pending
 * than ever before. Submits nothing. One thread at a time. */
heddle_status sim_push(heddle_pstream *stream, const sim_cmd *cmd, heddle_error *err);
/* Makes all that was put in visible to the worker, and wakes it where it sleeps. One thread at a time. */
void sim_submit(heddle_pstream *stream);
/* The worker's next command; the caller knows that there is one. It stays valid until done has passed it. */
sim_cmd *sim_queue_next(heddle_pstream *stream);

/* ---- stream.c ---- */

/* First line of every call on a stream: handle, open, not lost, and injected failures; a failure that is to show when
 * the stream gets there is noted in cmd instead (which may be NULL). */
heddle_status sim_stream_enter(heddle_pstream *stream, sim_call call, sim_cmd *cmd, heddle_error *err);
/* HEDDLE_EINVAL inside a capture. */
heddle_status sim_stream_no_capture(heddle_pstream *stream, const char *what, heddle_error *err);
/* Waits until done has reached position, at most timeout_ns: HEDDLE_ETIMEOUT. With give_up_hung also when the stream
 * hangs. Does not look at failures. */
heddle_status sim_stream_wait(heddle_pstream *stream, uint64_t position, uint64_t timeout_ns, bool give_up_hung);
/* HEDDLE_OK, or the failure of the stretch that position lies in. */
heddle_status sim_stream_failure_at(heddle_pstream *stream, uint64_t position, sim_failure *out);
/* Work that was submitted and is not finished? Any thread. */
bool sim_stream_busy(heddle_pstream *stream);
/* Destroys streams for good, with their queues. Nothing uses them. */
void sim_stream_destroy(const heddle_host *host, heddle_pstream *stream);

/* ---- worker.c ---- */

void *sim_worker(void *stream);

/* ---- what the worker calls ---- */

void sim_launch_execute(heddle_plaunch *launch); /* launch.c */
/* For how long a launch keeps its device busy. */
uint64_t sim_launch_busy_ns(const heddle_plaunch *launch);
void sim_kernel_execute(const sim_cmd *cmd);                                         /* module.c */
void sim_mark_execute(const heddle_host *host, heddle_ptimer *timer, uint32_t slot); /* timing.c */
const sim_cmd *sim_graph_commands(const heddle_pgraph *graph, uint64_t *count);      /* capture.c */
heddle_status sim_graph_add(heddle_pgraph *graph, const sim_cmd *cmd, heddle_error *err);

#endif
