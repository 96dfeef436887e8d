/* executor/ranks/script.h: what each rank does in a run of a model over ranks, as a row of acts, and the proof of all rows
 * together. Every rank makes the rows of all and replays its own. */
#ifndef HEDDLE_EXECUTOR_RANKS_SCRIPT_H
#define HEDDLE_EXECUTOR_RANKS_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "heddle/status.h"

typedef enum heddle__act_kind {
  HEDDLE__ACT_RECEIVE, /* starts a receive; the value's memory is written until AWAIT */
  HEDDLE__ACT_AWAIT,   /* waits for the end of the receive */
  HEDDLE__ACT_STAGE,   /* runs a stage */
  HEDDLE__ACT_SEND,    /* starts a send; the value's memory is read until SENT */
  HEDDLE__ACT_SENT     /* waits for the end of the send, which may wait for the receive's start */
} heddle__act_kind;

typedef struct heddle__act {
  heddle__act_kind kind;
  uint32_t stage; /* STAGE; of others not used */
  uint32_t peer, tag, value;
  uint64_t bytes;
} heddle__act;

typedef struct heddle__acts {
  heddle__act *list;
  uint32_t n, room;
} heddle__acts;

/* A stage, as the proof sees it: values are numbers below n_values, and those below n_given are there before a run. */
typedef struct heddle__script_stage {
  uint32_t rank;
  const uint32_t *in, *out; /* UINT32_MAX: none */
  uint32_t n_in, n_out;
} heddle__script_stage;

typedef struct heddle__script {
  heddle__acts *ranks; /* n_ranks */
  const heddle__script_stage *stages;
  const uint32_t *results; /* values that rank 0 has at the end */
  uint32_t n_ranks, n_stages, n_values, n_given, n_results, n_tags;
} heddle__script;

/* The acts of all ranks, from stages in an order in which they can run. Each value is sent once to each rank that needs it.
 * bytes: per value. */
heddle_status heddle__script_make(heddle__script *s, const uint64_t *bytes, heddle_error *err);
void heddle__script_free(heddle__script *s); /* the acts */

/* HEDDLE_EINTERNAL, naming rank and message, unless: every receive has its send and every send its receive, of the same value and
 * bytes and with tags that no other message between the two ranks has; each is started once and waited for once, later; a
 * stage's inputs are there before it runs and a message's value before it is sent; each stage runs once on its rank; the
 * results are at rank 0; and no waits of in_flight + 1 runs are in a cycle, where a send ends only after its receive has
 * begun. */
heddle_status heddle__script_prove(const heddle__script *s, uint32_t in_flight, heddle_error *err);

#endif
