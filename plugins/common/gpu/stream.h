/* What the files about streams share: a stream's slots for fences under way, its waits for other devices, its record of
 * failures, and the device's watch. A stream is written by its thread; the watch's thread and the driver's look at it. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_STREAM_H
#define HEDDLE_PLUGINS_COMMON_GPU_STREAM_H

#include "plugins/common/gpu/gpu.h"

enum {
  GPU_SIGNALS = 16, /* slots that a stream begins with */
  GPU_WAITS = 16    /* other devices that a stream waits for at the same time */
};

/* The thread that moves a slot out of ARMED signals or fails its fence: once. SETTLED: failed, or signalled by a poll, while the
 * driver may still call; that call makes it FREE. */
enum { GPU_SIGNAL_FREE, GPU_SIGNAL_ARMED, GPU_SIGNAL_TAKEN, GPU_SIGNAL_SETTLED };

/* A fence to be signalled when the stream gets there. A stream's slots are a ring that grows where all are under way. */
typedef struct gpu_signal {
  heddle_pstream *stream;
  heddle_pfence fence;
  uint64_t value;
  atomic_uint state;           /* GPU_SIGNAL_* */
  atomic_uint_least64_t order; /* its number among the signals of the stream; the first is 1 */
  _Atomic(struct gpu_signal *) next;
} gpu_signal;

/* A device that the stream waited for, until a signal behind the wait has been reached. */
typedef struct gpu_wait {
  gpu_watch *on;   /* held by a reference */
  uint64_t behind; /* signals of this number and later are behind the wait */
} gpu_wait;

typedef struct gpu_stream_own {
  int priority; /* the driver's */
  bool closed;  /* by the host; device's lock */
  bool adopted; /* the handle is another's: it is not destroyed, not asked for idle, and used again for such alone */

  pthread_mutex_t ask; /* guards recording against questions of other threads, which would break a recording; the driver
                          is called with it held, and stream->lock may be taken */
  bool recording;

  atomic_bool failed; /* stream->failure is set */

  gpu_signal *turn, *last;       /* the slot to be used next, the one used last; the stream's thread */
  uint64_t signals;              /* so far; the stream's thread */
  atomic_uint_least64_t reached; /* the number of the last that was */
  atomic_uint armed;             /* slots in that state */
  atomic_uint calls;             /* that the driver will make even after a failure (stream_callback) */
  atomic_uint_least64_t
      *counter; /* in pinned memory: the stream writes the numbers of its signals; NULL: it does not */
  gpu_address counter_at;
  bool writes;     /* the counter is still written; the stream's thread */
  uint64_t polled; /* reached, when the watch came by last; the watch's thread */

  gpu_wait waits[GPU_WAITS]; /* stream->lock */
  atomic_uint n_waits;       /* written with stream->lock held */

  gpu_signal slots[GPU_SIGNALS];
} gpu_stream_own;

/* ---------------------------------------------------------------- stream.c */

/* HEDDLE_OK, HEDDLE_EBUSY while work is left or a capture is being recorded, or the failure of the work. Any thread. */
heddle_status gpu_stream_ask(heddle_pstream *stream, heddle_error *err);

/* Keeps the failure of work in the stream for the next sync; the first one counts. Any thread. */
void gpu_stream_keep(heddle_pstream *stream, const heddle_error *failure);

/* The failure that is kept, or HEDDLE_OK. Any thread. */
heddle_status gpu_stream_kept(heddle_pstream *stream, heddle_error *err);

/* The newest stream of the device; the others by next. Any thread. */
heddle_pstream *gpu_streams_of(heddle_pdevice *dev);

void gpu_streams_destroy(heddle_pdevice *dev); /* inside gpu_enter, when no other thread looks any more */

/* ---------------------------------------------------------------- fence.c */

/* The largest number of the fences under way in the stream, 0 where there is none. To be asked before a failure is kept:
 * what the stream is given after it was reported is no longer part of it. Any thread. */
uint64_t gpu_signals_last(heddle_pstream *stream);

/* Signals the fences that the stream has reached by its counter, which it writes before the driver's call. True: others are
 * still under way by that counter. Takes no lock but stream->lock; any thread. */
bool gpu_signals_poll(heddle_pstream *stream);

/* Fails the fences under way in the stream whose numbers are in [from, last]; UINT64_MAX is all from there on. Any thread. */
void gpu_signals_fail(heddle_pstream *stream, uint64_t from, uint64_t last, const heddle_error *failure);

/* ---------------------------------------------------------------- watch.c */

/* A fence is under way: the watch's thread starts, or wakes. HEDDLE_EFAILED where there is no thread. */
heddle_status gpu_watch_begin(heddle_pdevice *dev, heddle_error *err);
void gpu_watch_end(heddle_pdevice *dev); /* of one that was begun. Any thread */

/* The stream, of another device, waits for work of dev from here on: when dev is lost, its fences fail too. HEDDLE_ELIMIT
 * over GPU_WAITS. The stream's thread. */
heddle_status gpu_watch_wait(heddle_pstream *stream, heddle_pdevice *on, heddle_error *err);

/* Fails what is behind a wait for a device that is known to be lost. Any thread, the driver's too. */
void gpu_watch_heed(heddle_pstream *stream);
void gpu_watch_forget(heddle_pstream *stream); /* all that the stream waited for has come, or never matters */

/* ---------------------------------------------------------------- capture.c */

void gpu_capture_broken(heddle_pgraph *graph, const heddle_error *failure); /* a call in a capture failed */
void gpu_capture_abandon(heddle_pstream *stream); /* the stream is closed while one is recorded; inside gpu_enter */

/* ---------------------------------------------------------------- timing.c */

typedef struct gpu_clock gpu_clock;

/* The device's clock, kept by its watch; NULL before the first timer. lock guards it and its use. */
gpu_clock **gpu_watch_clock(heddle_pdevice *dev, pthread_mutex_t **lock);
void gpu_clock_destroy(heddle_pdevice *dev, gpu_clock *clock); /* inside gpu_enter; takes NULL */

#endif
