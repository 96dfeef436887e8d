/* Streams and queues, for the files that put work into them. Several streams share a VkQueue: each has a command pool, a
 * ring of command buffers and a number that rises with each submission. Where a device has timeline semaphores that
 * number is the value of the stream's own; else each submission has a VkFence that the queue's thread waits for. */
#ifndef HEDDLE_PLUGINS_VULKAN_STREAM_H
#define HEDDLE_PLUGINS_VULKAN_STREAM_H

#include "vulkan.h"

enum {
  VLK_BATCH = 8,  /* command buffers of a submission */
  VLK_WAITS = 8,  /* semaphores that it waits for */
  VLK_LONG = 256, /* pieces of work after which a command buffer is handed over */
  VLK_STAGES = 2  /* halves of a stream's staging memory */
};

#define VLK_STAGE_BYTES (UINT64_C(1) << 20)

/* Something to be reported to when a stream has reached value. */
typedef struct vlk_completion {
  heddle_pstream *stream;
  uint64_t value;
  VkFence done; /* of the submission, without timeline semaphores */
  heddle_pfence fence;
  uint64_t fence_value;
} vlk_completion;

/* A VkQueue, with the thread that tells of completions (fence.c). */
struct vlk_queue {
  heddle_pdevice *dev;
  VkQueue queue;
  uint32_t family;
  bool computes;        /* else it only copies */
  pthread_mutex_t lock; /* around vkQueueSubmit, so that completions stand in the order of submission */
  /* The rest is guarded by done_lock, a leaf that no driver is called with. */
  pthread_mutex_t done_lock;
  pthread_cond_t more, reached; /* of the monotonic clock */
  vlk_completion *row;          /* a ring */
  uint32_t first, count, room;
  VkFence *idle_fences; /* as many as room of them at most */
  uint32_t n_idle_fences;
  pthread_t thread;
  bool runs, stop;
};

/* A command buffer of a stream's ring. */
typedef struct vlk_slot {
  struct vlk_slot *next;
  VkCommandBuffer commands;
  uint64_t value; /* of its submission */
} vlk_slot;

typedef struct vlk_batch_entry {
  VkCommandBuffer commands;
  heddle_pgraph *graph; /* that it is of, else NULL */
} vlk_batch_entry;

struct heddle_pstream {
  heddle_pdevice *dev;
  vlk_queue *queue;
  VkSemaphore timeline; /* VK_NULL_HANDLE without timeline semaphores */
  VkCommandPool pool;
  vlk_slot *open;            /* that work is recorded into; the stream's thread, as all down to staged */
  vlk_slot *batched;         /* in the batch */
  vlk_slot *flight, *landed; /* handed over, the first and the last */
  vlk_slot *spare;           /* not in use */
  vlk_batch_entry batch[VLK_BATCH];
  uint32_t n_batch, n_waits, pieces;
  VkSemaphore waits[VLK_WAITS];
  uint64_t wait_values[VLK_WAITS];
  vlk_bound bound;        /* in open */
  heddle_pgraph *capture; /* what is being recorded, else NULL */
  heddle_pbuffer *stage;  /* staging memory, made at its first use */
  uint64_t staged[VLK_STAGES];
  atomic_uint_least64_t submitted; /* the value of the last submission */
  atomic_uint_least64_t reached;   /* a value that is known to be reached */
  bool closed;                     /* dev->lock; may be used again */
  struct heddle_pstream *next;     /* of the device's; never taken out while it is open */
};

/* What outlives a capture, for those who keep things for it: that it can be replayed no more, and is not under way. */
typedef struct vlk_capture_end {
  atomic_uint holders;
  atomic_bool came;
} vlk_capture_end;

/* A capture: one command buffer, recorded once. It may be under way more than once at a time. */
struct heddle_pgraph {
  heddle_pdevice *dev;
  VkCommandPool pool;
  VkCommandBuffer commands;
  vlk_bound bound;
  uint64_t pieces;
  vlk_capture_end *end;       /* NULL: not asked for */
  atomic_uint batches;        /* in which it stands and that were not handed over */
  struct heddle_pgraph *next; /* of those that were retired */
};

/* Health; and not inside a capture, for calls that it cannot hold. */
heddle_status vlk_stream_enter(heddle_pstream *stream, const char *what, heddle_error *err);

/* Hands over what is in the stream: its open command buffer, captures, waits. The host's fence, which may be 0, is
 * signalled when all of that is done. The stream's thread; does not block. */
heddle_status vlk_submit(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err);

/* Puts a recorded capture behind what is in the stream. */
heddle_status vlk_submit_later(heddle_pstream *stream, heddle_pgraph *graph, heddle_error *err);

/* Later work waits until other has come to value. */
heddle_status vlk_stream_wait_for(heddle_pstream *stream, heddle_pstream *other, uint64_t value, heddle_error *err);

/* Forgets what was not handed over. */
void vlk_stream_drop_work(heddle_pstream *stream);

/* Orders what follows after what is before, in a command buffer of this stream's queue. */
void vlk_stream_barrier(const heddle_pstream *stream, VkCommandBuffer commands);

/* Makes what commands wrote visible to the host; the last command of a command buffer. */
void vlk_host_barrier(const heddle_pstream *stream, VkCommandBuffer commands);

/* Whether the stream has come to value: HEDDLE_OK, HEDDLE_EBUSY, or the device's fault. Any thread. */
heddle_status vlk_reached(heddle_pstream *stream, uint64_t value, heddle_error *err);

/* Waits for that, at most timeout_ns: HEDDLE_ETIMEOUT then. Any thread. */
heddle_status vlk_wait(heddle_pstream *stream, uint64_t value, uint64_t timeout_ns, heddle_error *err);

/* Whether no stream of the device has work under way. Any thread. */
bool vlk_quiet(heddle_pdevice *dev);

/* ---------------------------------------------------------------- queue.c */

VkResult vlk_queue_init(vlk_queue *queue, heddle_pdevice *dev, uint32_t family, uint32_t index, bool computes);
/* Ends the thread, which has reported all that is reached; fails the fences of what is not. */
void vlk_queue_destroy(vlk_queue *queue);

/* Submits and, where completion is not NULL, lets the queue's thread report it; completion->done is filled here. commands may be
 * NULL: then only the report. */
heddle_status vlk_queue_submit(vlk_queue *queue, const VkSubmitInfo *commands, const vlk_completion *completion,
                               heddle_error *err);

/* Signals the host's fences of the stream that stand in the row up to a value that it has reached, before the thread does: for
 * a thread of the host's that spins. Any thread. */
void vlk_queue_poll(heddle_pstream *stream, uint64_t reached);

/* Waits until the thread has set stream->reached to value. */
heddle_status vlk_queue_wait(vlk_queue *queue, heddle_pstream *stream, uint64_t value, uint64_t timeout_ns,
                             heddle_error *err);

/* ---------------------------------------------------------------- other files' parts */

heddle_status vlk_stream_make(heddle_pdevice *dev, uint32_t kind, heddle_pstream **out, heddle_error *err);
void vlk_stream_close(heddle_pstream *stream);
void vlk_streams_destroy(heddle_pdevice *dev); /* all of them, at the end of a device */

void vlk_graph_free(heddle_pgraph *graph);
/* The end of the capture that is being recorded in a stream, for one more holder. */
heddle_status vlk_capture_end_of(heddle_pstream *stream, vlk_capture_end **out, heddle_error *err);
void vlk_capture_end_drop(const heddle_pdevice *dev, vlk_capture_end *end);
void vlk_graphs_sweep(heddle_pdevice *dev); /* frees what was retired, where nothing runs */

#endif
