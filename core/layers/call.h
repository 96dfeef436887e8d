/* core/layers/call.h: one call of a plugin's function as the layers see it, and the wrapped handles they see it with.
 * Handles that the core holds are heddle__wrap structs, kept in one process-wide set: a foreign, stale or mistyped
 * handle is found there before anything is read from it. */
#ifndef HEDDLE_CORE_LAYERS_CALL_H
#define HEDDLE_CORE_LAYERS_CALL_H

#include "core/layers/layers.h"

/* What a wrapped handle is. */
typedef enum heddle__kind {
  HEDDLE__INSTANCE,
  HEDDLE__DEVICE,
  HEDDLE__BUFFER,
  HEDDLE__STREAM,
  HEDDLE__EVENT,
  HEDDLE__OP,
  HEDDLE__LAUNCH,
  HEDDLE__MODULE,
  HEDDLE__KERNEL,
  HEDDLE__GRAPH,
  HEDDLE__TIMER,
  HEDDLE__KINDS
} heddle__kind;

enum { HEDDLE__VIEW = 100, HEDDLE__IMPORT = 101 }; /* memory kinds beyond HEDDLE_MEMORY_* */

typedef struct heddle__wrap {
  struct heddle__layers *layers;
  heddle__kind kind;
  void *real;                  /* the plugin's handle */
  struct heddle__wrap *device; /* what it was made on; NULL for an instance */
  struct heddle__wrap *parent; /* of a view, a kernel, a launch's op; counted in children */
  struct heddle__wrap *stream; /* of a launch */
  atomic_uint children;
  uint64_t bytes;    /* of a buffer; slots of a timer */
  uint32_t memory;   /* HEDDLE_MEMORY_*, or one of the two above */
  uint32_t index;    /* of a device */
  uint32_t n_inputs; /* of an op */
  uint32_t n_outputs;
  atomic_bool capturing; /* a stream between begin and end */
  atomic_bool busy;      /* a stream within a call */
  atomic_bool mapped;    /* a buffer */
  atomic_bool dead;      /* freed before what was made on it; kept for those, until the layers go */
} heddle__wrap;

/* What a call does on a stream that is being captured. */
enum { HEDDLE__RECORDS = 1, HEDDLE__NOT_CAPTURED = 2, HEDDLE__ANY_THREAD = 4, HEDDLE__PURE = 8 };

typedef struct heddle__range {
  const heddle__wrap *buffer;
  uint64_t offset;
  uint64_t bytes;
  bool host_side; /* of a copy */
  bool operand;   /* of a launch: its offset keeps the alignment */
} heddle__range;

enum { HEDDLE__RANGES = 2 };

typedef struct heddle__call {
  struct heddle__layers *layers;
  const char *name; /* "memory.alloc" */
  unsigned flags;
  heddle__wrap *device; /* what it is about; NULL where pure */
  heddle__wrap *stream;
  uint32_t index; /* of a pure call's device */
  heddle__range range[HEDDLE__RANGES];
  unsigned n_ranges;
  heddle_pfence fence; /* of fence.signal: a layer may put another in its place */
  uint64_t value;
  uint64_t t0; /* when the plugin was called */
  heddle_status status;
  bool answered; /* a layer answers in the plugin's place */
  bool held;     /* this call set stream->busy */
  heddle_error *err;
} heddle__call;

/* A layer. before returns what is to be answered instead where it is not HEDDLE_OK; after may change c->status. */
typedef struct heddle__layer {
  const char *name;
  heddle_status (*create)(struct heddle__layers *layers, void **state, heddle_error *err);
  void (*release)(void *state);
  heddle_status (*before)(void *state, heddle__call *c);
  void (*after)(void *state, heddle__call *c);
} heddle__layer;

extern const heddle__layer heddle__layer_check, heddle__layer_fault, heddle__layer_log;

enum { HEDDLE__MAX_LAYERS = 4 };

struct heddle__layers {
  heddle__layers_head head;
  heddle__plugin *plugin;
  const heddle__tables *next; /* the plugin's own */
  heddle__tables tables;      /* the wrapped ones */
  heddle__wrap *instance;
  const heddle__layer *layer[HEDDLE__MAX_LAYERS];
  void *state[HEDDLE__MAX_LAYERS];
  unsigned n;
  bool checks;        /* the check layer is among them: offers and answers are looked at */
  atomic_uint broken; /* rules broken in calls that cannot answer */
};

/* ---- core/layers/wrap.c */

/* The wrap of a handle as the core has it, of this kind; else c->status says what it is not, and what is returned may
 * be read but means nothing. */
heddle__wrap *heddle__unwrap(heddle__call *c, const void *handle, heddle__kind kind);
heddle__wrap *heddle__unwrap_stream(heddle__call *c, heddle_pstream *stream);
heddle__wrap *heddle__unwrap_range(heddle__call *c, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                                   bool host_side);

/* Runs the layers before the call; false where the plugin is not to be called. Then those after it. */
bool heddle__before(heddle__call *c);
heddle_status heddle__after(heddle__call *c);

/* Wraps what the plugin gave; on failure NULL, with c->status set, and the caller frees real. */
heddle__wrap *heddle__give(heddle__call *c, heddle__kind kind, void *real, heddle__wrap *device, heddle__wrap *parent);

/* Takes a wrap out for a free function: NULL (after logging it) where the handle is none. The caller frees real, then
 * calls drop. */
heddle__wrap *heddle__take(const void *handle, heddle__kind kind, const char *name);
void heddle__drop(heddle__wrap *w);
/* Drops what hangs on a module. */
void heddle__drop_kernels(heddle__wrap *module);

/* A rule was broken by the host (HEDDLE_EINTERNAL) or the plugin (HEDDLE_EABI); returns the status. */
heddle_status heddle__broken(heddle__call *c, heddle_status who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void heddle__broken_logged(struct heddle__layers *layers, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- the tables */

void heddle__wrap_core_tables(struct heddle__layers *layers);
void heddle__wrap_op_tables(struct heddle__layers *layers);

/* core/layers/check.c, for the trampolines of query: what an offer must keep. */
heddle_status heddle__check_region(heddle__call *c, const heddle_pregion *region);
heddle_status heddle__check_offer(heddle__call *c, const heddle_pregion *region, const heddle_poffer *offer,
                                  heddle_error *err);

#endif
