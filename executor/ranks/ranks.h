/* executor/ranks/ranks.h: the ranks of a context: their communicator, what they agree on, and the failure that ends the
 * work of all. What a model does with them is in spread.h. */
#ifndef HEDDLE_EXECUTOR_RANKS_RANKS_H
#define HEDDLE_EXECUTOR_RANKS_RANKS_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/context.h"
#include "executor/run.h"
#include "heddle/ranks.h"

/* Tags of ranks_agree, 0 to 3, and of ranks_link; messages of runs have those behind them. */
enum { HEDDLE__RANK_TAG_LINK = 4, HEDDLE__RANK_TAGS };

/* What a message between ranks takes. */
typedef struct heddle__link {
  bool is_known;
  uint64_t ns, ps_a_byte;
} heddle__link;

typedef struct heddle__ranks {
  heddle__attachment attachment; /* first: the context frees it */
  heddle_context *ctx;           /* borrowed */
  heddle_comm comm;
  uint64_t silence_ns, wait_ns;
  atomic_int broken; /* a status: a rank has failed, and nothing goes on; why has the words */
  bool has_lock, has_thread;
  pthread_t thread;     /* sends signs of life, and receives notes while no thread waits */
  pthread_cond_t wake;  /* of thread */
  pthread_mutex_t lock; /* guards comm's calls and what follows; comm is called with it held */
  heddle_error why;
  bool quit, lost;            /* lost: a rank is silent */
  uint64_t *left;             /* per rank: when its context was released; 0: it was not */
  uint32_t waiting, waits_on; /* threads that wait for a rank, and the last one that they wait for */
  uint32_t blamed;            /* whom that one waits for in turn, as far as it is known; else itself */
  uint64_t heard_ns;          /* of the rank before this one */
  uint64_t next_tag;
  heddle__link link; /* once it was measured; models are made one after the other */
} heddle__ranks;

/* NULL: the context is not of a rank. */
heddle__ranks *heddle__context_ranks(heddle_context *ctx);

/* ---- group.c. Any thread */

/* The error that ended the work of all, if one has. */
heddle_status heddle__ranks_check(heddle__ranks *r, heddle_error *err);

/* Ends the work of all ranks, unless it has ended; gives s. err has the words, or is NULL. Where it names no rank the failure is this
 * rank's: it becomes a member, and the text begins with it. */
heddle_status heddle__ranks_fail(heddle__ranks *r, heddle_status s, heddle_error *err);
#if defined(__clang_analyzer__) && !defined(HEDDLE__GROUP_C) /* as in core/error.h */
#define heddle__ranks_fail(r, s, err) (heddle__ranks_fail(r, s, err), (s))
#endif

/* Waits for the end of a request with a rank. what names the value, or the occasion, in errors. helm may be NULL. RUN_FAILED has ended the work
 * of all ranks. */
heddle__run_end heddle__ranks_wait(heddle__ranks *r, void *request, uint32_t peer, uint64_t bytes, const char *what,
                                   const heddle__helm *helm, heddle_status *status, heddle_error *err);

/* " (which waits for rank 2)" of a rank that this one waits for; "" where it waits for none. Gives the last one of the row. */
uint32_t heddle__ranks_blame(heddle__ranks *r, uint32_t peer, char *out, size_t size);

heddle_status heddle__ranks_send_init(heddle__ranks *r, const void *data, uint64_t bytes, uint32_t to, uint64_t tag,
                                      void **out, heddle_error *err);
heddle_status heddle__ranks_recv_init(heddle__ranks *r, void *data, uint64_t bytes, uint32_t from, uint64_t tag,
                                      void **out, heddle_error *err);
heddle_status heddle__ranks_start(heddle__ranks *r, void *request, heddle_error *err);
void heddle__ranks_free(heddle__ranks *r, void *request); /* takes NULL */

/* n tags in a row that no one else has. */
heddle_status heddle__ranks_tags(heddle__ranks *r, uint64_t n, uint64_t *first, heddle_error *err);

/* ---- agree.c: gives each rank the texts of all, (*out)[rank], in one block that is freed with heddle__free; ranks that say the same
 * share one. All ranks call
 * it, in the same order. what names the occasion, and is compared: ranks that are at different ones fail. Blocks. */
heddle_status heddle__ranks_agree(heddle__ranks *r, const char *what, const char *text, char ***out, heddle_error *err);

/* ---- link.c: the slowest link between ranks, which the first call measures. All ranks call it, in the same order. Blocks. */
heddle_status heddle__ranks_link(heddle__ranks *r, heddle__link *out, heddle_error *err);

#endif
