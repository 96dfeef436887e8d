/* heddle/ranks.h: one graph over several processes ("ranks"), which may be on several machines. heddle/mpi.h makes such
 * contexts of a communicator of MPI; this header is for any other transport. docs/cluster.md describes the whole. */
#ifndef HEDDLE_RANKS_H
#define HEDDLE_RANKS_H

#include "heddle/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_COMM_NOTE_BYTES 512 /* the most that a note holds */

/* A transport between size ranks. Heddle calls its functions one at a time, from any thread. None of them waits for
 * another rank. Messages between two ranks arrive in the order of their starts for each tag. A request is started again
 * after test has reported its end; its bytes stay the same for its life. Set struct_size. */
typedef struct heddle_comm {
  size_t struct_size;
  void *self;
  uint32_t rank, size;
  uint64_t max_tag; /* tags are 0 to max_tag */
  /* Makes a request to send so many bytes, or to receive exactly as many. */
  heddle_status (*send_init)(void *self, const void *data, uint64_t bytes, uint32_t to, uint32_t tag, void **out,
                             heddle_error *err);
  heddle_status (*recv_init)(void *self, void *data, uint64_t bytes, uint32_t from, uint32_t tag, void **out,
                             heddle_error *err);
  heddle_status (*start)(void *self, void *request, heddle_error *err);
  heddle_status (*test)(void *self, void *request, int *done, heddle_error *err);
  void (*free)(void *self, void *request); /* also one that was started and has not ended: it is given up */
  /* A note is buffered by the sender. take_note returns *bytes 0 where none has arrived. */
  heddle_status (*send_note)(void *self, const void *note, uint32_t bytes, uint32_t to, heddle_error *err);
  heddle_status (*take_note)(void *self, void *note, uint32_t *bytes, uint32_t *from, heddle_error *err);
  /* The context has ended. lost: a rank was lost, so that nothing may wait for it. */
  void (*release)(void *self, int lost);
} heddle_comm;

/* Creates a context of one rank of several, otherwise as heddle_context_create. All ranks call this, and then create the
 * same models and executors and start the same runs, in the same order: these calls wait for each other. The devices of a model
 * are named RANK/NAME ("0/cpu", "3/opencl:1"; the rank may be a pattern); so are those of placement rules.
 * Outputs arrive at rank 0. A rank sets the inputs that its own nodes read; others may be left out there.
 * A failure on one rank ends the work of all: from then on models and executors of the context return the error, which
 * names the rank. The comm's table is copied; release is called at the end of the context, and also where this fails.
 * *out has one reference. Blocks until all ranks call it, at most the setting ranks.wait_seconds: HEDDLE_ETIMEOUT names a
 * rank that does not. HEDDLE_EINVAL where ranks differ in their version. */
HEDDLE_API heddle_status heddle_context_create_ranks(const heddle_comm *comm, const heddle_setting *settings,
                                                     size_t n_settings, heddle_log_fn log, void *log_user,
                                                     heddle_context **out, heddle_error *err);

/* Ends the work of all ranks with a failure of the caller's own, such as a file that only this rank lacks: calls on models and
 * executors of the context return status with "rank N: " and the text, here and on the other ranks. The first failure
 * counts. Nothing happens without other ranks, with ctx NULL, or with HEDDLE_OK. Does not wait. Any thread. */
HEDDLE_API void heddle_context_fail_ranks(heddle_context *ctx, heddle_status status, const char *text);

/* The rank of a context, and how many there are: 0 and 1 of one without ranks. Either place may be NULL. Any thread. */
HEDDLE_API void heddle_context_rank(heddle_context *ctx, uint32_t *rank, uint32_t *size);

#ifdef __cplusplus
}
#endif

#endif
