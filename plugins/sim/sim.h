/* What the files of sim share: the instance, the device, and the small services (injected failures, retired memory,
 * the table of buffer handles) that all groups use. Streams and their commands are in stream.h. */
#ifndef HEDDLE_PLUGINS_SIM_SIM_H
#define HEDDLE_PLUGINS_SIM_SIM_H

#include "settings.h"

#include "plugins/common/perror.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define SIM_ALIGNMENT 256
#define SIM_PAGE 4096

/* First word of every object that a handle points to; another word there means a foreign or a dead handle. */
enum {
  SIM_MAGIC_INSTANCE = 0x51a10001,
  SIM_MAGIC_DEVICE,
  SIM_MAGIC_STREAM,
  SIM_MAGIC_EVENT,
  SIM_MAGIC_OP,
  SIM_MAGIC_LAUNCH,
  SIM_MAGIC_MODULE,
  SIM_MAGIC_KERNEL,
  SIM_MAGIC_GRAPH,
  SIM_MAGIC_TIMER,
  SIM_MAGIC_DEAD = 0x51a1dead
};

/* ---- instance.c ---- */

/* How often each kind of call was made: on all devices, and on each. */
typedef struct sim_counts {
  atomic_ullong all[SIM_CALL_COUNT];
  atomic_ullong of[SIM_MAX_DEVICES][SIM_CALL_COUNT];
} sim_counts;

/* Memory that a command on a stream may still touch: freed at once where nothing is wrong with the device, else kept
 * until it is idle. The first member of each struct that is freed that way. */
typedef struct sim_retired {
  struct sim_retired *next;
  void (*destroy)(const heddle_host *host, struct sim_retired *self);
} sim_retired;

/* The bytes behind a buffer. shadow is what the host sees where mappings are not coherent. */
typedef struct sim_block {
  sim_retired retired; /* first */
  uint8_t *bytes;
  uint8_t *shadow;
  uint64_t size;
  uint64_t mapped; /* bytes of the mapping where fd >= 0 */
  int fd;
  bool poison; /* ours, so that it is overwritten when it is freed */
} sim_block;

enum { SIM_KIND_IMPORT = 3 }; /* beside HEDDLE_MEMORY_*: the caller's own memory */

/* One buffer, view or import: an entry of the instance's table. A handle is (tag, generation, slot), no address; the
 * generation is 0 while the entry is free. All other members are written before it is published. */
typedef struct sim_buffer {
  atomic_uint generation;
  uint32_t slot;
  uint32_t next_free;
  uint32_t kind;
  _Atomic(heddle_pdevice *) dev;
  uint8_t *bytes; /* what the device sees */
  uint8_t *host;  /* what the host sees, NULL where it cannot */
  uint64_t size;
  sim_block *block;          /* NULL in a view and in an import of the caller's */
  struct sim_buffer *parent; /* of a view, and of what was adopted */
  uint32_t views;            /* of a parent; guarded by the instance's lock */
  bool freed;                /* a parent that was freed before its views; likewise */
  bool adopted;              /* its parent's memory, and itself no view */
} sim_buffer;

#define SIM_TABLE_CHUNK 256
#define SIM_TABLE_CHUNKS 4096

struct heddle_pinstance {
  uint32_t magic;
  bool left_behind; /* a device was closed with a thread that did not end: nothing is freed. Guarded by lock. */
  const heddle_host *host;
  sim_settings settings;
  sim_counts counts;
  atomic_uint open_devices[SIM_MAX_DEVICES];
  pthread_mutex_t lock; /* guards the free list and views of buffers, and idle_streams; a leaf */
  uint32_t generation;  /* the last that was given out */
  uint32_t first_free;  /* slot + 1 */
  atomic_uint n_slots;
  _Atomic(sim_buffer *) chunks[SIM_TABLE_CHUNKS];
  struct heddle_pstream *all_streams;  /* ever made, guarded by lock; what a handle to be adopted is looked for in */
  struct heddle_pstream *idle_streams; /* without thread or device, to be used again */
};

bool sim_instance_ok(const heddle_pinstance *self);
/* HEDDLE_OK, or why index is no device. */
heddle_status sim_index_check(const heddle_pinstance *self, uint32_t index, heddle_error *err);
/* The above, and HEDDLE_ENEEDSOPEN where the setting needs_open asks for it. */
heddle_status sim_pure_check(heddle_pinstance *self, uint32_t index, heddle_error *err);
/* HEDDLE_EUNSUPPORTED, saying which setting took the group away. */
heddle_status sim_switched_off(const char *what, const char *key, heddle_error *err);

/* ---- device.c ---- */

typedef struct sim_failure {
  heddle_status status;
  int32_t api_code;
  char text[480];
} sim_failure;

struct heddle_pdevice {
  uint32_t magic;
  uint32_t index;
  heddle_pinstance *self;
  const heddle_host *host;
  uint64_t cookie;
  sim_settings settings; /* the instance's, with those of the open over it */
  sim_counts *counts;    /* the instance's; own_counts where the open gave rules of its own */
  sim_counts own_counts;
  uint64_t clock_offset_ns; /* of the device's clock to the host's */
  uint64_t event_domain;

  atomic_bool stop;      /* closing: every worker ends, every wait is given up */
  atomic_bool faulted;   /* fault is written */
  atomic_bool hung;      /* a command that never completes has been met */
  atomic_bool abandoned; /* closed with a thread that did not end: it may make no calls any more */
  atomic_bool detached;  /* a wait for this device ran out of time: memory is kept until idle succeeds */
  atomic_ullong executed;
  atomic_ullong busy_until; /* by the host's clock: with op_us a device does one thing at a time */
  atomic_ullong live_buffers;
  atomic_ullong live_bytes;
  atomic_ullong live_objects;

  pthread_mutex_t lock;   /* guards what follows; taken before the lock of a stream, never after */
  pthread_cond_t changed; /* stop or faulted became true, or a worker has ended */
  sim_failure fault;
  struct heddle_pstream *streams; /* open, or closed and not yet drained or used again */
  sim_retired *retired;
  uint32_t n_workers;
  uint64_t n_streams; /* made so far: seeds the next one's delays */
};

/* HEDDLE_OK where dev is an open device that is not lost; else the words of the fault. */
heddle_status sim_device_check(heddle_pdevice *dev, heddle_error *err);

/* Makes the fault sticky, wakes hung waiters, reports it to the host once. Any thread; no lock may be held. */
void sim_device_fault(heddle_pdevice *dev, int32_t api_code, const char *text);

/* Destroys, now or once the device is idle. Any thread. */
void sim_retire(heddle_pdevice *dev, sim_retired *item);

/* Absolute time on the monotonic clock, timeout_ns from now, for pthread_cond_timedwait; never past the year 2200. */
struct timespec sim_deadline(uint64_t timeout_ns);
int sim_cond_init(pthread_cond_t *cond); /* on the monotonic clock */

/* ---- faults.c ---- */

/* Counts a call and gives the rule that makes this one fail, or NULL. Any thread. */
const sim_rule *sim_fault_hit(const sim_settings *settings, sim_counts *counts, uint32_t index, sim_call call);

/* The word of a call, as "fail" spells it. */
const char *sim_call_word(sim_call call);

/* For pure calls, which have no device: an injected failure or HEDDLE_OK. */
heddle_status sim_enter_pure(heddle_pinstance *self, uint32_t index, sim_call call, heddle_error *err);

/* First line of every call on a device: handle, sticky fault, injected failure. */
heddle_status sim_enter(heddle_pdevice *dev, sim_call call, heddle_error *err);

/* What an injected failure answers, faulting the device where the rule asks for it. */
heddle_status sim_fault_answer(heddle_pdevice *dev, const sim_rule *rule, heddle_error *err);

/* ---- table.c: the buffers of an instance ---- */

/* Takes a free entry; NULL when memory or the table is out. Fill it, then publish it to get its handle. Any thread. */
sim_buffer *sim_table_take(heddle_pinstance *self);
heddle_pbuffer *sim_table_publish(heddle_pinstance *self, sim_buffer *buffer);
/* The handle of a published entry. */
heddle_pbuffer *sim_table_handle(const sim_buffer *buffer);
/* Makes the handle stale and the entry free. */
void sim_table_drop(heddle_pinstance *self, sim_buffer *buffer);
/* The entry of a handle; NULL where it is stale, foreign or nonsense. Any thread, takes no lock. */
sim_buffer *sim_table_get(heddle_pinstance *self, const heddle_pbuffer *handle);
/* Entry by number, published or not, for walks; NULL behind the last. */
sim_buffer *sim_table_at(heddle_pinstance *self, uint32_t slot);

/* ---- memory.c ---- */

/* SIM_OPERAND: memory that operators use, of this very device. SIM_HOST_SIDE: of a copy. */
typedef enum sim_use { SIM_OPERAND, SIM_HOST_SIDE } sim_use;

/* The device's bytes [offset, offset + bytes) of a buffer; HEDDLE_EINVAL, naming what, where the handle, its kind, its
 * device or the range is wrong. Any thread, takes no lock. */
heddle_status sim_bytes(heddle_pdevice *dev, heddle_pbuffer *handle, uint64_t offset, uint64_t bytes, sim_use use,
                        const char *what, uint8_t **out, heddle_error *err);
/* Makes a handle for bytes: takes block (which may be NULL) on success. Any thread. */
heddle_status sim_memory_enter(heddle_pdevice *dev, uint32_t kind, uint8_t *bytes, uint8_t *host, uint64_t size,
                               sim_block *block, sim_buffer *parent, heddle_pbuffer **out, heddle_error *err);
/* Counts bytes as used, against memory_bytes: HEDDLE_ENOMEM. */
heddle_status sim_memory_reserve(heddle_pdevice *dev, uint64_t bytes, heddle_error *err);
/* Gives a block back at once. */
void sim_block_destroy(const heddle_host *host, sim_retired *retired);
/* Frees what the host forgot on a device that closes; how many that were. */
uint64_t sim_memory_forget(heddle_pdevice *dev);

/* ---- external.c: memory that a file descriptor can name ---- */

heddle_status sim_external_map(uint64_t bytes, sim_block *block, heddle_error *err);
void sim_external_unmap(sim_block *block);

/* ---- small things ---- */

/* Zeroed memory of the host's; NULL where there is none. */
void *sim_alloc(const heddle_host *host, uint64_t bytes);

/* A good 64-bit hash of a number (splitmix64). */
static inline uint64_t sim_mix(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static inline void sim_log(const heddle_host *host, int32_t level, const char *text) {
  host->log(host->ctx, level, "sim", text);
}

/* The tables, one a file. */
extern const heddle_device_table sim_device_table;
extern const heddle_memory_table sim_memory_tables[4]; /* bit 0: with view, bit 1: with import_host */
extern const heddle_copy_table sim_copy_tables[2];     /* bit 0: with peer */
extern const heddle_stream_table sim_stream_table;
extern const heddle_event_table sim_event_table;
extern const heddle_fence_table sim_fence_tables[2]; /* bit 0: with wait */
extern const heddle_op_table sim_op_table;
extern const heddle_layout_table sim_layout_table;
extern const heddle_module_table sim_module_table;
extern const heddle_capture_table sim_capture_table;
extern const heddle_timing_table sim_timing_table;
extern const heddle_external_table sim_external_table;

heddle_status sim_instance_open(const heddle_host *host, heddle_pinstance **out, heddle_error *err);
void sim_instance_close(heddle_pinstance *self);
heddle_status sim_instance_count(heddle_pinstance *self, uint32_t *out, heddle_error *err);
heddle_status sim_instance_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                    heddle_error *err);

#endif
