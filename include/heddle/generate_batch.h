/* heddle/generate_batch.h: continuous batching: several texts of one language model share its runs. A batch has a fixed number
 * of rows. A request takes a row that is free, its prompt is computed by itself in chunks between the runs of the others, and
 * then it gets a token in each run until it ends; the next request takes its row. Tokens are those that a generator of its own
 * gives (heddle/generate.h), drawn ones too, up to the rounding of runs with several rows. docs/generate.md.
 *
 * All functions may be called from any thread. Timeouts are nanoseconds, HEDDLE_FOREVER for none. After fork they return
 * HEDDLE_EFORK. */
#ifndef HEDDLE_GENERATE_BATCH_H
#define HEDDLE_GENERATE_BATCH_H

#include "heddle/generate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_generation_batch heddle_generation_batch;
typedef struct heddle_generation_request heddle_generation_request;

/* Zeroed members have their default values; set struct_size to sizeof. */
typedef struct heddle_generation_batch_options {
  size_t struct_size;
  uint32_t rows;      /* texts in one run, at most 1024; 0: 8 */
  uint32_t max_queue; /* requests that wait for a row; 0: 4 times rows */
} heddle_generation_batch_options;

/* Creates a batch of g's model, and its thread. g is used during the call alone, and stays the caller's; no other call may
 * use it meanwhile. max_length and chunk are g's. *out has one reference. HEDDLE_EUNSUPPORTED where several texts cannot share
 * a run of the graph: a batch dimension is fixed, caches have one length for all rows, or branches depend on the length; the
 * message names the tensor. HEDDLE_EINVAL: more than 1024 rows. Errors of heddle_executor_create. */
HEDDLE_API heddle_status heddle_generation_batch_create(const heddle_generator *g,
                                                        const heddle_generation_batch_options *options,
                                                        heddle_generation_batch **out, heddle_error *err);

/* Retain adds a reference and returns b; release drops one and accepts NULL. The last release ends all requests with
 * HEDDLE_ECANCELED and blocks until the run in progress has ended. Do not drop the last one in a callback. */
HEDDLE_API heddle_generation_batch *heddle_generation_batch_retain(heddle_generation_batch *b);
HEDDLE_API void heddle_generation_batch_release(heddle_generation_batch *b);

/* Called once when a request has ended, before waits for it return. The request is borrowed. It does not block, and it does
 * not close or release the batch. It may submit with wait_ns 0. */
typedef void (*heddle_generation_done_fn)(void *user, heddle_generation_request *request, heddle_status status);

/* Zeroed members have their default values; set struct_size to sizeof. Everything is copied. */
typedef struct heddle_generation_call {
  size_t struct_size;
  const int64_t *tokens; /* the prompt, at least one */
  size_t n_tokens;
  const heddle_generation
      *generation;                /* NULL: greedy, as many tokens as fit. deadline_ns begins with the submission; token
                                          runs on the batch's thread, and all texts wait for it */
  heddle_generation_done_fn done; /* NULL: none */
  void *user;                     /* of done */
  uint64_t wait_ns;               /* how long to wait for room in the queue; 0: no time */
} heddle_generation_call;

/* Submits a prompt and returns. *out, where out is not NULL, receives one reference. HEDDLE_EBUSY: the queue is still full
 * after wait_ns. HEDDLE_EINVAL: a bad option, no token, or one that is not in the vocabulary. HEDDLE_ELIMIT: more tokens than
 * max_length. HEDDLE_ECANCELED: the batch is closed. Blocks for room in the queue only. */
HEDDLE_API heddle_status heddle_generation_batch_submit(heddle_generation_batch *b, const heddle_generation_call *call,
                                                        heddle_generation_request **out, heddle_error *err);

/* Retain adds a reference and returns r; release drops one and accepts NULL. A request that is released goes on. */
HEDDLE_API heddle_generation_request *heddle_generation_request_retain(heddle_generation_request *r);
HEDDLE_API void heddle_generation_request_release(heddle_generation_request *r);

/* Waits at most timeout_ns for the end, and returns its status: HEDDLE_OK, HEDDLE_ETIMEOUT after the deadline,
 * HEDDLE_ECANCELED, or the error of its runs. out, which may be NULL, is filled where it has ended. HEDDLE_EBUSY: it has not. */
HEDDLE_API heddle_status heddle_generation_request_wait(heddle_generation_request *r, uint64_t timeout_ns,
                                                        heddle_generated *out, heddle_error *err);

/* Copies new tokens, from number `first` of those behind the prompt, and at most `room`; *n receives how many. Waits at most
 * timeout_ns where there is none yet and the request goes on. A stop token is the last one. *n 0 with HEDDLE_OK: it has ended
 * and there are no more. HEDDLE_EBUSY: none came in time. */
HEDDLE_API heddle_status heddle_generation_request_read(heddle_generation_request *r, uint64_t first, int64_t *tokens,
                                                        size_t room, uint64_t timeout_ns, size_t *n, heddle_error *err);

/* Ends a request with HEDDLE_ECANCELED: at once where it waits, else before the next run. Tokens up to then stay. Does not
 * block. A request that has ended stays as it is. */
HEDDLE_API void heddle_generation_request_cancel(heddle_generation_request *r);

/* Accepts no more requests, and waits at most timeout_ns until all have ended. With cancel 1 they end with HEDDLE_ECANCELED.
 * HEDDLE_ETIMEOUT: some are left; call it again. */
HEDDLE_API heddle_status heddle_generation_batch_close(heddle_generation_batch *b, int cancel, uint64_t timeout_ns,
                                                       heddle_error *err);

/* Counters since the batch was created, and what there is now. */
typedef struct heddle_generation_batch_stats {
  size_t struct_size;
  uint64_t requests; /* accepted */
  uint64_t finished; /* of those, with HEDDLE_OK */
  uint64_t failed;   /* with an error, deadlines and cancels included */
  uint64_t rejected; /* not accepted, since the queue was full */
  uint64_t runs;     /* of all rows together */
  uint64_t chunks;   /* runs for prompts */
  uint64_t computed; /* tokens of texts in both; rows without a text are not counted */
  uint64_t reused;   /* tokens of prompts that began as the prompt before them, and were not computed again */
  uint64_t sampled;
  uint64_t run_ns;  /* in runs of all rows */
  uint64_t join_ns; /* in moving caches between rows */
  uint64_t queued;  /* now */
  uint64_t running; /* with a row, now */
  uint64_t rows;
} heddle_generation_batch_stats;
HEDDLE_API heddle_status heddle_generation_batch_get_stats(heddle_generation_batch *b,
                                                           heddle_generation_batch_stats *out, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
