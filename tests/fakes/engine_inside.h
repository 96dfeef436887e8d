/* What the engine's files share: its one lock, objects and their registry, fences, works, operations and streams. All
 * functions here that end in _locked, and all fields that are not atomic, belong to eng_lock. */
#ifndef HEDDLE_TESTS_FAKES_ENGINE_INSIDE_H
#define HEDDLE_TESTS_FAKES_ENGINE_INSIDE_H

#include "engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENG_DEVICES 16 /* at most */
#define ENG_POISON 0xFF

extern pthread_mutex_t eng_lock;
extern pthread_cond_t eng_done; /* a fence is done, a stream is idle */
static inline void eng_enter(void) {
  pthread_mutex_lock(&eng_lock);
}
static inline void eng_leave(void) {
  pthread_mutex_unlock(&eng_lock);
}
static inline int eng_leave_with(int code) {
  pthread_mutex_unlock(&eng_lock);
  return code;
}
static inline void eng_nap(unsigned us) {
  const struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
  if (us > 0) nanosleep(&t, NULL);
}
static inline uint64_t eng_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---------------------------------------------------------------- settings, faults (engine_faults.c) */

typedef struct eng_settings {
  int devices, init_code;
  size_t memory;
  char arch[64];
  bool pools, kernels, mig, fragments, lazy;
  unsigned register_us, host_us; /* how long a registration takes, and how late a host function begins */
  size_t register_most;          /* bytes that may be registered at a time */
  int strict;                    /* 1: exit status 90 at the end where there was misuse */
  unsigned delay_us;
  bool orders;                         /* something is ordered to go wrong: then work is done piece by piece */
  const char *kernel_library, *report; /* of the environment */
} eng_settings;
const eng_settings *eng_setting(void); /* read at the first use */

typedef enum eng_order { ENG_ORDER_NONE, ENG_ORDER_FAULT, ENG_ORDER_HANG } eng_order;
/* Counts a piece of work that begins, and what is ordered for it: "launch", "copy", "fill", "host". */
eng_order eng_order_of(const char *kind, int *code);
void eng_count_update(void);
void eng_count_leak(const char *format, ...) __attribute__((format(printf, 1, 2)));
int eng_live_of(const char *kind); /* takes the lock */
extern _Thread_local bool eng_in_host_function;

/* ---------------------------------------------------------------- objects (engine_object.c) */

typedef enum eng_kind {
  ENG_CONTEXT,
  ENG_STREAM,
  ENG_EVENT,
  ENG_MODULE,
  ENG_FUNCTION,
  ENG_GRAPH,
  ENG_EXEC,
  ENG_KINDS
} eng_kind;

/* First in each thing that has a handle. */
typedef struct eng_object {
  eng_kind kind;
  eng_context *ctx;
  struct eng_object *next; /* in its bucket */
} eng_object;

void eng_object_add(eng_object *o, eng_kind kind, eng_context *ctx); /* locked */
bool eng_object_is(const void *handle, eng_kind kind);               /* locked; false for anything that is not alive */
/* Takes it from the registry; its memory is freed much later, so that an old handle is not taken for a new one. */
void eng_object_retire(eng_object *o);                            /* locked */
void eng_object_unlink(eng_object *o);                            /* locked: only the first half of it */
void eng_object_keep(void *memory);                               /* locked: the second */
int eng_object_live(eng_kind kind);                               /* locked */
eng_object *eng_object_of(const eng_context *ctx, eng_kind kind); /* locked; any one, or NULL */
const char *eng_kind_words(eng_kind kind);

/* ENG_INVALID_HANDLE with a count of misuse unless handle is alive. Locked. */
int eng_object_check(const void *handle, eng_kind kind, const char *what);

/* ---------------------------------------------------------------- contexts */

struct eng_context {
  eng_object o;
  int device, refs; /* refs: of a primary one */
  bool primary;
  int fault;                   /* sticky */
  uint32_t peers;              /* bits: devices whose memory it reaches */
  struct eng_stream *fallback; /* the default stream */
};

/* The current one, alive and without a fault. Locked. */
int eng_context_need(eng_context **out);
void eng_context_fault(eng_context *ctx, int code); /* locked */

/* ---------------------------------------------------------------- memory */

typedef enum eng_area { ENG_AREA_DEVICE, ENG_AREA_HOST, ENG_AREA_REGISTERED } eng_area;

typedef struct eng_allocation {
  uint64_t base;
  size_t bytes, charged; /* charged: to the device's memory */
  eng_area area;
  eng_context *ctx;
  int device;
  char *raw;           /* with the guards; NULL: registered */
  eng_pool *pool;      /* NULL: of none */
  bool ready, freeing; /* ready: its allocation has been reached in the stream's order */
} eng_allocation;

eng_allocation *eng_allocation_at(uint64_t address); /* locked; the one around it, or NULL */
/* Whether [address, + bytes) may be used now by work of ctx, on its device's side: NULL, or what is wrong. Locked. */
/* Whether kernels of device reach what is allocated from the pool. Locked. */
bool eng_pool_opened(const eng_pool *pool, int device);
const char *eng_memory_wrong(const eng_context *ctx, uint64_t address, size_t bytes, bool running);
void eng_memory_ready(uint64_t base);   /* locked: the stream has reached the allocation */
void eng_memory_release(uint64_t base); /* locked: the stream has reached the free */
void eng_memory_drop(eng_context *ctx); /* locked: frees what a dying context has; each is a leak */
int eng_memory_live(bool host);         /* locked */
int eng_pools_live(void);               /* locked: those of the program */
void eng_memory_check(void);            /* locked: guards of all that lives, and poison of what is freed */

/* ---------------------------------------------------------------- fences, works, streams */

typedef struct eng_fence {
  int refs;
  bool done;
  uint64_t time; /* ns, of the device's clock */
  int code;
} eng_fence;
eng_fence *eng_fence_new(void);
eng_fence *eng_fence_hold(eng_fence *fence); /* locked; NULL passes */
void eng_fence_drop(eng_fence *fence);       /* locked; NULL passes */
void eng_fence_await(eng_fence *fence);      /* locked; lets go of the lock while it waits */

typedef enum eng_work_kind {
  ENG_WORK_KERNEL,
  ENG_WORK_COPY,
  ENG_WORK_FILL,
  ENG_WORK_HOST,
  ENG_WORK_EMPTY,
  ENG_WORK_RECORD, /* as eng_node_kind */
  ENG_WORK_CALLBACK,
  ENG_WORK_ALLOC,
  ENG_WORK_FREE,
  ENG_WORK_PLAN,
  ENG_WORK_WRITE
} eng_work_kind;

/* Something to be done: of an operation or of a node. Immutable but for refs. */
typedef struct eng_work {
  atomic_int refs;
  eng_work_kind kind;
  eng_context *ctx;
  struct {
    struct eng_code *code;
    unsigned grid[3], block[3], shared;
    char *args;
  } kernel;
  struct {
    char *dst;
    const char *src;
    size_t bytes;
    eng_copy_kind kind;
    char *staged;
  } copy;
  struct {
    char *dst;
    uint32_t word;
    unsigned width;
    size_t count;
  } fill;
  struct {
    void (*fn)(void *);
    void (*callback)(void *, int, void *);
    void *arg, *stream;
  } host;
  uint64_t address, value; /* ALLOC, FREE; WRITE */
  eng_event *event;        /* RECORD */
  struct eng_plan *plan;
} eng_work;
eng_work *eng_work_new(eng_work_kind kind);
eng_work *eng_work_hold(eng_work *work);
void eng_work_drop(eng_work *work);
/* PoCL's queue of a stream's thread, made when it is needed. pending: kernels are under way in it. */
typedef struct eng_queue {
  void *handle;
  bool pending;
} eng_queue;
int eng_queue_finish(eng_queue *queue); /* waits for them (engine_run.c) */
void eng_queue_close(eng_queue *queue);
/* Not locked; on a stream's thread. A code that is sticky. Kernels may still be under way when it returns. */
int eng_work_run(const eng_work *work, eng_queue *queue);

typedef struct eng_op {
  struct eng_op *next;
  eng_work *work;
  eng_fence *fence, **waits;
  size_t n_waits;
} eng_op;

struct eng_capture;
typedef struct eng_stream {
  eng_object o;
  unsigned flags;
  int priority;
  bool is_default, closing, threaded, busy;
  eng_op *head, *tail;
  eng_fence *last; /* of what was put last; NULL: nothing yet */
  pthread_cond_t arrived;
  struct eng_capture *capture; /* NULL: it captures nothing */
  eng_node **leaves;           /* what the next node depends on */
  size_t n_leaves;
  struct eng_stream *next; /* of all, those that close too */
} eng_stream;

/* The stream of a handle: NULL is the current context's default stream. Locked. A fault of its context is its code. */
int eng_stream_find(eng_stream_handle handle, eng_stream **out);
/* Puts work, whose reference it takes, into a stream's order, behind waits (whose references it takes; free()d).
 * Locked. *out, where wanted, is held for the caller. */
int eng_stream_put(eng_stream *stream, eng_work *work, eng_fence **waits, size_t n_waits, eng_fence **out);
/* All of it for one piece of work: finds the stream, puts, and with wait waits; into the graph where it captures. */
int eng_put(eng_stream_handle handle, eng_work *work, bool wait);
void eng_streams_await(eng_context *ctx);  /* locked: until all of its streams are idle */
void eng_stream_close(eng_stream *stream); /* locked: retires it, at once or when its thread is through */
eng_stream *eng_streams_all(void);         /* locked; by their next */
bool eng_streams_idle(uint64_t limit_ns);  /* locked: waits so long for all */

/* ---------------------------------------------------------------- captures, graphs */

struct eng_node {
  eng_work *work;
  struct eng_node **deps;
  size_t n_deps, index;
  struct eng_graph *graph;
};
struct eng_graph {
  eng_object o;
  eng_node **nodes;
  size_t n_nodes;
};
/* A capture that goes on; ended ones stay while events name them. */
typedef struct eng_capture {
  int refs, mode;
  pthread_t thread;
  bool invalid, ended;
  eng_stream *origin;
  eng_graph *graph;
  struct eng_capture *next; /* of those under way */
} eng_capture;
typedef struct eng_plan { /* what an exec runs: an immutable copy of a graph */
  atomic_int refs;
  size_t count;
  eng_work **works;
  size_t **deps, *n_deps;
} eng_plan;

int eng_capture_add(eng_stream *stream, eng_work *work);     /* locked; takes the reference */
int eng_capture_break(eng_stream *stream, const char *what); /* locked: a call that it cannot hold; its code */
/* A call that might wait behind a capture's back. Locked. 0, or ENG_CAPTURE_UNSUPPORTED, and the captures are
 * broken. */
int eng_capture_unsafe(const char *what);
void eng_capture_drop(eng_capture *capture); /* locked; NULL passes */
void eng_capture_forget(eng_stream *stream); /* locked: the stream goes */
eng_graph *eng_graph_new(eng_context *ctx);  /* in no registry yet; NULL: no memory */
eng_node *eng_graph_add(eng_graph *graph, eng_work *work, eng_node *const *deps,
                        size_t n_deps); /* takes the reference */
void eng_graph_free(eng_graph *graph);  /* locked */
void eng_exec_free(eng_exec *exec);     /* locked */
void eng_plan_drop(eng_plan *plan);     /* NULL passes; any thread, without the lock */
int eng_plan_run(const eng_plan *plan, eng_queue *queue);
void eng_event_reached(eng_event *event); /* locked: a graph records it, unless it is gone */
void eng_event_free(eng_event *event);    /* locked */
int eng_event_join(eng_event *event,
                   eng_stream *stream); /* locked: stream waits for an event, in a capture of either */

/* ---------------------------------------------------------------- modules */

typedef struct eng_param {
  unsigned bytes;
  bool pointer;
} eng_param;

/* A kernel's code. */
typedef struct eng_code {
  atomic_int refs;
  atomic_bool unloaded;
  bool loaded; /* false: at its first launch, or by eng_function_load */
  char name[256];
  size_t n_params, params_bytes; /* all of them, each at its alignment */
  eng_param *params;
  size_t *at;
  int max_threads, shared_bytes, max_dynamic, registers;
  void (*native)(const void *const *args, const unsigned grid[3], const unsigned block[3]);
  void *kernel;         /* PoCL's */
  pthread_mutex_t lock; /* its arguments */
} eng_code;
void eng_code_drop(eng_code *code);
void eng_module_free(eng_module *module); /* locked */
bool eng_code_layout(eng_code *code);     /* fills at and params_bytes; false: no memory */

/* engine_run.c: programs of PoCL. */
void *eng_program_build(const char *source, const char *options, char **log); /* NULL: it failed, *log says why */
void eng_program_free(void *program);
/* The kernels of a program; free() the array. */
int eng_program_codes(void *program, eng_code ***out, size_t *count, char *log, size_t log_bytes);
/* NULL, or what is wrong with a pointer that a kernel is given. Locked. */
const char *eng_kernel_wrong(const eng_work *work);
int eng_kernel_run(eng_code *code, const eng_work *work, eng_queue *queue);
void eng_kernel_free(void *kernel);

#endif
