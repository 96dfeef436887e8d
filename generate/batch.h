/* generate/batch.h: what the files of continuous batching share. One thread, the batch's own, uses the executor, the generator
 * of prompts and the sampler; `lock` is over lists, states and tokens of requests, and counters. */
#ifndef HEDDLE_GENERATE_BATCH_ROOM_H
#define HEDDLE_GENERATE_BATCH_ROOM_H

#include <pthread.h>
#include <sys/types.h>

#include "generate/generator.h"
#include "heddle/generate_batch.h"

/* In this order. LEAVES: its callback is called. */
typedef enum heddle__request_state {
  HEDDLE__WAITS,
  HEDDLE__FILLS, /* its prompt is computed */
  HEDDLE__JOINS, /* it was; its caches are still its own */
  HEDDLE__RUNS,
  HEDDLE__LEAVES,
  HEDDLE__ENDED
} heddle__request_state;

struct heddle_generation_request {
  atomic_uint references;
  heddle_generation_batch *b; /* a hold on its memory */
  heddle_generation_request *next;
  int64_t *tokens; /* room for all that may come */
  size_t n, n_prompt, most;
  size_t cached;          /* tokens whose keys and values are in the row */
  heddle_tensor **caches; /* of the prompt, from its end until it has joined; one for each of the batch's */
  heddle_generation options;
  heddle_sampling sampling;
  int64_t *stops, *bias_tokens;
  float *biases;
  heddle_generation_done_fn done;
  void *user;
  uint64_t began_ns, until_ns, first_ns, last_ns;
  uint32_t row;
  atomic_bool cancelled;
  heddle__request_state state;
  heddle_generated result;
  heddle_error err;
};

struct heddle_generation_batch {
  atomic_uint references;
  atomic_uint holds; /* the batch and each request */
  pid_t process;
  pthread_mutex_t lock;
  pthread_cond_t work, change; /* for the thread; for all others */
  pthread_t thread;
  bool has_thread, closed;
  heddle_generation_request *first, *last; /* that wait */
  uint32_t n_waiting, max_queue, n_open;   /* open: have not ended */
  heddle_generation_request **rows;        /* NULL: free */
  uint32_t n_rows, n_used;
  heddle_generation_request *filling;
  size_t filled;             /* tokens of its prompt that were computed */
  heddle_generator *prompts; /* computes them, one after another */
  heddle_executor *ex;
  heddle__generate_port ids, mask, positions;
  bool from_front; /* a text's caches begin at row 0; else they end at the last row */
  int64_t length;  /* rows of the caches; 0: there are none yet */
  heddle_tensor *view;
  heddle__sampler sampler;
  heddle_generation_batch_stats own;   /* the thread's counters */
  heddle_generation_batch_stats stats; /* with the lock; own is copied to it */
};

/* batch.c: HEDDLE_EFORK in another process than the batch's. drop_hold: frees the memory with the last one. */
heddle_status heddle__generation_process(const heddle_generation_batch *b, heddle_error *err);
void heddle__batch_drop_hold(heddle_generation_batch *b);

/* batch_request.c */
heddle_status heddle__request_make(heddle_generation_batch *b, const heddle_generation_call *call,
                                   heddle_generation_request **out, heddle_error *err);
/* With the lock, which is released for the callback: the request has a row no more, and its result. err NULL: it is good. */
void heddle__request_end(heddle_generation_request *r, heddle_status s, const heddle_error *err);
/* With the lock: one that waits ends; one with a row is marked where it is cancelled. true: it has ended, and the batch's
 * reference is to be released, without the lock where it may be the last. */
bool heddle__request_stop(heddle_generation_request *r, heddle_status s);
/* Its token; false: it ended, with the lock taken and released within. */
bool heddle__request_push(heddle_generation_request *r, int64_t token);

/* By the thread, with the lock: its counters become those that are read. */
void heddle__batch_publish(heddle_generation_batch *b);

/* batch_work.c: the thread. */
void *heddle__generation_work(void *batch);

/* batch_rows.c: caches of all rows and runs. begin checks whether several texts can share a run. join: caches of the requests that
 * were computed go to their rows. step: a run for the last token of each text; then row r's logits are at logits(b, r). Where
 * these two fail, the caches are gone. */
heddle_status heddle__rows_begin(heddle_generation_batch *b, heddle_error *err);
heddle_status heddle__rows_join(heddle_generation_batch *b, heddle_error *err);
heddle_status heddle__rows_step(heddle_generation_batch *b, heddle_error *err);
void *heddle__rows_logits(const heddle_generation_batch *b, uint32_t row);

#endif
