/* npu.h: the driver's own types, shared by its files. One lock of the instance guards every queue and clock. It is
 * a leaf: nothing is waited for and no fence is signalled while it is held, and the machine computes without it. */
#ifndef NPU_H
#define NPU_H

#include "machine.h"

#include "plugins/common/perror.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define NPU_ALIGNMENT 64
#define NPU_PENDING 8 /* how often a launch may be pending, whatever else is */

struct heddle_pinstance {
  const heddle_host *host;
  uint64_t dram_bytes; /* setting dram_mb, default 16 */
  uint64_t fault_at;   /* setting fault_at: the n-th program of a device ends in a bus error; 0: none */
  uint64_t hang_at;    /* setting hang_at: the n-th program of a device does not end until it is reset; 0: none */
  uint64_t lose_at;    /* setting lose_on_fill: a fill with this word loses the device; UINT64_MAX: none */
  pthread_mutex_t lock;
  pthread_cond_t work; /* a command, or the end, for the threads of the devices */
  pthread_cond_t done; /* a command is finished */
};

/* A command of a stream. Addresses are found when it is put in, so that the thread looks nothing up. */
enum { NPU_CMD_COPY, NPU_CMD_FILL, NPU_CMD_RUN, NPU_CMD_WAIT, NPU_CMD_SIGNAL, NPU_CMD_MARK };
typedef struct npu_cmd {
  int kind;
  uint32_t slot; /* MARK */
  uint8_t *dst;  /* COPY, FILL */
  const uint8_t *src;
  uint64_t bytes;
  uint64_t value; /* FILL: the word; WAIT: position in stream; SIGNAL: value */
  heddle_pfence fence;
  heddle_plaunch *launch;
  heddle_pstream *stream; /* WAIT: of which a reference is held */
  heddle_ptimer *timer;
} npu_cmd;

/* Positions count commands: head those put in, submitted those that the device may take, tail those finished. Guarded by
 * the instance's lock. */
struct heddle_pstream {
  heddle_pinstance *self; /* which outlives it; the device may not */
  heddle_pdevice *dev;
  heddle_pstream *next;
  npu_cmd *ring;
  uint64_t room, head, submitted, tail;
  uint64_t launches; /* that are bound to it */
  uint64_t refs;     /* the host's or the device's, one; each wait that names it, each event, and each launch */
  bool closed;       /* by the host: goes when it is empty */
};

/* The place in a stream that was recorded last. */
struct heddle_pevent {
  heddle_pdevice *dev;
  heddle_pstream *stream;
  uint64_t position;
};

struct heddle_ptimer {
  heddle_pdevice *dev;
  uint32_t slots;
  _Atomic uint64_t ns[];
};

/* A range of DRAM (kind DEVICE), or of the host's memory (PINNED). */
struct heddle_pbuffer {
  heddle_pdevice *dev;
  heddle_pbuffer *next; /* of DRAM: the ranges in use, by address */
  uint64_t at;          /* address in DRAM */
  uint64_t bytes;
  uint8_t *data; /* what the machine or the host sees there */
  uint32_t kind;
};

struct heddle_pdevice {
  heddle_pinstance *self;
  const heddle_host *host;
  uint64_t cookie;
  npu_machine *machine; /* the thread's, but for DRAM that nothing runs on */
  heddle_pbuffer *used; /* DRAM, by address */
  heddle_pstream *streams;
  pthread_t thread;
  bool stop;
  bool running; /* a command is being executed */
  uint64_t programs;
  atomic_bool lost; /* fault is written */
  heddle_error fault;
  /* The device's clock: the host's while there is nothing to do. From the first command of a row on it is forward by the
   * cycles of each command alone, so that times are the machine's and not those of its simulation. */
  bool idle;
  uint64_t clock_ns;
  atomic_llong live_buffers, live_bytes, live_objects;
};

/* ---- device.c ---- */

/* Zeroed memory of the host's; NULL where there is none. */
void *npu_new(const heddle_host *host, uint64_t bytes);
/* HEDDLE_OK, or HEDDLE_EDEVICE with the words of the fault. Any thread. */
heddle_status npu_check(heddle_pdevice *dev, heddle_error *err);

/* ---- queue.c ---- */

/* Puts a command into a stream. It allocates only where more commands are pending than ever before, and never for a
 * launch: op.run allocates nothing. A reference to cmd->stream goes with it where that works. */
heddle_status npu_push(heddle_pstream *stream, const npu_cmd *cmd, heddle_error *err);
/* For a launch: a reference to its stream, with places for NPU_PENDING commands of its own; and the way back. */
heddle_status npu_stream_take(heddle_pstream *stream, heddle_error *err);
void npu_stream_give(heddle_pstream *stream);
/* Hands what was put in to the device and wakes it. So a row of commands comes to it as one, and its clock, which is the
 * host's again whenever it has nothing to do, does not run between them. */
void npu_submit(heddle_pstream *stream);
/* Submits, and waits until the stream is finished, at most timeout_ns; then says whether the device is lost. */
heddle_status npu_finish(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err);
/* Time on the device's clock. With the lock held. */
uint64_t npu_clock(const heddle_pdevice *dev, uint64_t host_ns);
/* Gives one reference to a stream back. With the lock held. */
void npu_stream_drop(heddle_pstream *stream);
/* Takes streams that the host has closed, and that are empty, off the device. With the lock held. */
void npu_drop_closed(heddle_pdevice *dev);
/* Absolute monotonic time, timeout_ns from now. */
struct timespec npu_deadline(uint64_t timeout_ns);
void *npu_thread(void *device);
/* Makes the device lost and reports it to the host, once: the first text counts. Any thread, without the lock. */
void npu_lose(heddle_pdevice *dev, const heddle_error *why);

/* ---- memory.c ---- */

/* A range of DRAM for the driver's own use, or a buffer's: HEDDLE_ENOMEM. */
heddle_status npu_dram_take(heddle_pdevice *dev, uint64_t bytes, uint64_t align, heddle_pbuffer **out,
                            heddle_error *err);
void npu_dram_give(heddle_pbuffer *range); /* takes NULL */
/* Bytes [offset, offset + bytes) of a buffer of that kind: HEDDLE_EINVAL, naming what. */
heddle_status npu_bytes(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint32_t kind, uint64_t offset,
                        uint64_t bytes, const char *what, uint8_t **out, heddle_error *err);

/* ---- ops.c ---- */

/* Address and length of a launch's program in DRAM. */
void npu_launch_program(const heddle_plaunch *launch, uint64_t *address, uint64_t *n);

extern const heddle_device_table npu_device_table;
extern const heddle_memory_table npu_memory_table;
extern const heddle_copy_table npu_copy_table;
extern const heddle_stream_table npu_stream_table;
extern const heddle_event_table npu_event_table;
extern const heddle_fence_table npu_fence_table;
extern const heddle_op_table npu_op_table;
extern const heddle_timing_table npu_timing_table;

#endif
