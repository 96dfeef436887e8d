/* heddle/batch.h: a batcher gathers requests of one item, or of a few, into runs of many items.
 * A request's tensors are what the model takes, with the batch dimension (docs/batching.md says which dimension that is):
 * a request of one image is [1, 3, 224, 224]. Requests wait in a bounded queue until there are max_items of them that fit
 * together, or the first of them has waited max_delay_ns. Workers run them, each with an executor of its own. Requests
 * share a run if their dtypes and all dimensions but the batch dimension are equal, padded dimensions excepted. The model
 * must treat the items of a run independently of each other.
 * All functions may be called from any thread, except where a function says otherwise. After fork in a process that had
 * opened devices they return HEDDLE_EFORK. */
#ifndef HEDDLE_BATCH_H
#define HEDDLE_BATCH_H

#include "heddle/executor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_batcher heddle_batcher;
typedef struct heddle_batch_request heddle_batch_request;

/* heddle_batcher_options.flags */
#define HEDDLE_BATCH_EXACT UINT32_C(1) /* a run has as many items as its requests; else the number is rounded up */
#define HEDDLE_BATCH_KEEP_PADDING UINT32_C(2) /* outputs keep the padded length */
#define HEDDLE_BATCH_TOGETHER UINT32_C(4)     /* the requests of a failed run are not repeated one by one */

/* What differs from the default for an input or an output. Zeroed members but name and axis have their defaults. */
typedef struct heddle_batch_port {
  const char *name;
  int32_t axis;      /* the batch dimension; -1: none. Such an input has the same value for all requests of a run, and
                            such an output is given whole to each of them */
  uint32_t pad_axes; /* inputs: bit k: dimension k, which the file leaves open, is padded to the longest of a run.
                            Outputs: bit k: dimension k is cut to the length that the request's own input has */
  double pad_value;  /* inputs: the value of the padding, converted to the input's dtype */
  uint32_t pad_multiple; /* inputs: padded lengths are multiples of it; 0: 1 */
  uint32_t reserved;
  int64_t pad_max; /* inputs: the greatest length of a padded dimension; 0: no limit. No length is padded past it */
  const char *pad_input; /* outputs: the input whose lowest padded dimension has the length; NULL: the first one that is
                            padded */
} heddle_batch_port;

/* Zeroed members have their default values; set struct_size to sizeof. Everything is copied. */
typedef struct heddle_batcher_options {
  size_t struct_size;
  uint32_t max_items;      /* of a run; 0: 32, or as many as a model with a fixed batch dimension takes */
  uint32_t max_queue;      /* items that wait; 0: 8 times max_items. At least max_items */
  uint32_t workers;        /* runs at the same time, at most 64; 0: 1 */
  uint32_t flags;          /* HEDDLE_BATCH_ */
  uint64_t max_delay_ns;   /* how long a request waits for others; 0: it does not wait while a worker is free */
  uint64_t run_timeout_ns; /* limit for one run; 0: none */
  const heddle_batch_port *inputs;
  size_t n_inputs;
  const heddle_batch_port *outputs;
  size_t n_outputs;
} heddle_batcher_options;

/* Creates a batcher and the executors of its workers. options may be NULL. *out has one reference and holds one to the
 * model. Blocks in drivers. HEDDLE_ENOTFOUND where a port does not exist. HEDDLE_EINVAL for bad options, and where the
 * inputs have no batch dimension in common. HEDDLE_EUNSUPPORTED in a build without batchers. Errors of
 * heddle_executor_create. */
HEDDLE_API heddle_status heddle_batcher_create(heddle_model *m, const heddle_batcher_options *options,
                                               heddle_batcher **out, heddle_error *err);

/* Retain adds a reference and returns b; release drops one and accepts NULL. The last release closes the batcher as
 * heddle_batcher_close with cancel 1 does, and blocks until its runs have ended. Do not drop the last one in a callback. */
HEDDLE_API heddle_batcher *heddle_batcher_retain(heddle_batcher *b);
HEDDLE_API void heddle_batcher_release(heddle_batcher *b);

/* The names of the inputs that a request gives, in their order, and of the outputs; borrowed from b. NULL past the end. */
HEDDLE_API const char *heddle_batcher_input_name(const heddle_batcher *b, uint32_t i);
HEDDLE_API const char *heddle_batcher_output_name(const heddle_batcher *b, uint32_t i);

/* Called once when a request has its result, before waits for it return, or in heddle_batch_request_cancel. err is NULL if status
 * is HEDDLE_OK. The request is borrowed. It runs on a thread of the batcher, or on the thread that cancels: it does not
 * block, and it does not close, drain or release the batcher. It may submit requests with wait_ns 0. */
typedef void (*heddle_batch_done_fn)(void *user, heddle_batch_request *request, heddle_status status,
                                     const heddle_error *err);

/* heddle_batch_call.flags */
#define HEDDLE_BATCH_CALL_STEPS UINT32_C(1) /* its run is timed step by step, for heddle_batch_request_times */

/* A request. Zeroed members have their default values; set struct_size to sizeof. Arrays are copied; tensors are retained
 * until the request ends, and their elements must not change until then. */
typedef struct heddle_batch_call {
  size_t struct_size;
  const char *const *names; /* of the inputs; NULL: all inputs that are no parameters, in the order of the model */
  heddle_tensor *const *inputs;
  size_t n_inputs;
  heddle_tensor *const *outputs; /* tensors that receive the outputs, in order; NULL, or an entry NULL: a new tensor */
  size_t n_outputs;
  int32_t priority; /* higher ones run first; equal ones in the order of their submission */
  uint32_t flags;   /* HEDDLE_BATCH_CALL_ */
  uint64_t
      deadline_ns;  /* a request without a result this long after its submission ends with HEDDLE_ETIMEOUT; 0: none */
  uint64_t wait_ns; /* how long to wait for room in the queue; 0: no time; HEDDLE_FOREVER */
  heddle_batch_done_fn done; /* NULL: none */
  void *user;
} heddle_batch_call;

/* Submits a request and returns. *out, where out is not NULL, receives one reference. HEDDLE_EBUSY: the queue is still full
 * after wait_ns; HEDDLE_ETIMEOUT: the deadline passed before there was room. HEDDLE_EINVAL: an input is missing, given
 * twice, or has a dtype or a shape that the model does not take, the request has more than max_items items or an output
 * is not as long as the inputs. HEDDLE_ENOTFOUND: no such input. HEDDLE_ECANCELED: the batcher is closed. A request that is
 * not accepted has no callback. Blocks for room in the queue only. */
HEDDLE_API heddle_status heddle_batcher_submit(heddle_batcher *b, const heddle_batch_call *call,
                                               heddle_batch_request **out, heddle_error *err);

/* Submits a request and waits for its result. outputs, which may be NULL, receives the first n outputs, one reference
 * each. Errors of heddle_batcher_submit and heddle_batch_request_wait. */
HEDDLE_API heddle_status heddle_batcher_run(heddle_batcher *b, const heddle_batch_call *call, heddle_tensor **outputs,
                                            size_t n, heddle_error *err);

/* Retain adds a reference and returns r; release drops one and accepts NULL. A request that is released goes on. */
HEDDLE_API heddle_batch_request *heddle_batch_request_retain(heddle_batch_request *r);
HEDDLE_API void heddle_batch_request_release(heddle_batch_request *r);

/* Waits at most timeout_ns and returns the result of the request: HEDDLE_OK, the error of its run, HEDDLE_ETIMEOUT after its
 * deadline, or HEDDLE_ECANCELED. HEDDLE_EBUSY: it has no result yet. Several threads may wait. */
HEDDLE_API heddle_status heddle_batch_request_wait(heddle_batch_request *r, uint64_t timeout_ns, heddle_error *err);

/* Ends a request with HEDDLE_ECANCELED, whether it waits or runs. A run goes on for its other requests; it is cancelled
 * where there are none. On return its input and output tensors are not accessed any more, unless the request ended
 * otherwise just then. Returns HEDDLE_OK; HEDDLE_EBUSY where the request has its result, or is about to get it. */
HEDDLE_API heddle_status heddle_batch_request_cancel(heddle_batch_request *r);

/* The i-th output of a request that succeeded; *out receives one reference. HEDDLE_EINVAL where the request has not
 * succeeded, HEDDLE_ENOTFOUND where there is no such output. Does not block. */
HEDDLE_API heddle_status heddle_batch_request_output(heddle_batch_request *r, uint32_t i, heddle_tensor **out,
                                                     heddle_error *err);

/* When a request passed what, in nanoseconds of the host's monotonic clock; 0: it did not come so far. Of a run that was
 * repeated one by one, the last one. */
typedef struct heddle_batch_times {
  size_t struct_size;
  uint64_t accepted_ns;              /* it is in the queue */
  uint64_t taken_ns;                 /* a worker takes it for a run, and copies its inputs */
  uint64_t run_ns;                   /* the run begins */
  uint64_t ran_ns;                   /* the run has ended; its outputs are copied */
  uint64_t ended_ns;                 /* it has its result */
  uint64_t items;                    /* of all requests of the run */
  uint64_t rows;                     /* of the run: the items rounded up */
  const heddle_profile_entry *steps; /* of the run, by their start; NULL without HEDDLE_BATCH_CALL_STEPS */
  size_t n_steps;
} heddle_batch_times;

/* Of a request that has its result; the steps are borrowed from it. A run that is timed takes a little longer, and all its
 * requests share the steps; none are taken where the batcher has a run_timeout_ns, or the run fails. HEDDLE_EBUSY: it has no result yet. */
HEDDLE_API heddle_status heddle_batch_request_times(heddle_batch_request *r, heddle_batch_times *out,
                                                    heddle_error *err);

/* Waits at most timeout_ns until every request that was accepted before the call has its result. Requests do not wait for
 * others meanwhile. HEDDLE_ETIMEOUT. */
HEDDLE_API heddle_status heddle_batcher_drain(heddle_batcher *b, uint64_t timeout_ns, heddle_error *err);

/* Accepts no more requests, and waits at most timeout_ns until all that were accepted have their results. With cancel 1
 * they end with HEDDLE_ECANCELED instead. HEDDLE_ETIMEOUT: some are left; call it again. Closing a closed batcher is
 * HEDDLE_OK. */
HEDDLE_API heddle_status heddle_batcher_close(heddle_batcher *b, int cancel, uint64_t timeout_ns, heddle_error *err);

/* Counters since the batcher was created, and the state of the queue. The mean batch is items / runs. */
typedef struct heddle_batcher_stats {
  size_t struct_size;
  uint64_t requests;  /* accepted */
  uint64_t succeeded; /* accepted requests that ended, by their result: */
  uint64_t failed;
  uint64_t expired; /* the deadline passed */
  uint64_t cancelled;
  uint64_t rejected;   /* not accepted, since the queue was full */
  uint64_t refused;    /* not accepted for another reason */
  uint64_t runs;       /* that succeeded */
  uint64_t items;      /* in these runs */
  uint64_t filled;     /* items added to these runs to round their number up */
  uint64_t repeated;   /* failed runs whose requests were repeated one by one */
  uint64_t queued;     /* items that wait now */
  uint64_t running;    /* items in runs now */
  uint64_t most_items; /* max_items, as it is used */
} heddle_batcher_stats;
HEDDLE_API heddle_status heddle_batcher_get_stats(heddle_batcher *b, heddle_batcher_stats *out, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
