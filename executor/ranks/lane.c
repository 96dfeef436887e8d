/* executor/ranks/lane.c: an executor's part of the acts: its requests, made once, and its runs, which replay the acts of this
 * rank. What is received lies in tensors of the lane, what is sent in the outputs of stages. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/tensor.h"
#include "executor/control/stages.h"
#include "executor/ranks/own.h"

typedef struct request {
  void *handle;
  const void *data; /* of a send: what the request was made for */
  const char *name; /* of the value: borrowed from the graph */
} request;

struct heddle__spread_lane {
  const heddle__spread *spread;
  uint64_t first_tag;
  request *requests; /* per message, of those that this rank takes part in */
};

static const heddle__acts *own_acts(const heddle__spread *s) {
  return &s->script.ranks[s->ranks->comm.rank];
}

static heddle_status make_receive(heddle__staged *st, heddle__spread_lane *lane, const heddle__act *a,
                                  heddle_error *err) {
  const heddle__spread *s = lane->spread;
  const heddle__known *t = &s->types[s->entry_of[a->value]];
  heddle_tensor *into = NULL;
  heddle_status status = heddle_tensor_create(NULL, t->dtype, t->shape, t->ndim, &into, err);
  if (status != HEDDLE_OK) return status;
  ctl_put(&st->values[a->value], into);
  heddle_tensor_release(into); /* st has it */
  return heddle__ranks_recv_init(s->ranks, into->data, a->bytes, a->peer, lane->first_tag + a->tag,
                                 &lane->requests[a->tag].handle, err);
}

heddle_status heddle__spread_start(const heddle__spread *s, heddle__staged *st, heddle__spread_lane **out,
                                   heddle_error *err) {
  heddle__spread_lane *lane = heddle__alloc(1, sizeof *lane);
  char text[64], **texts = NULL;
  *out = NULL;
  if (lane == NULL) return heddle__no_memory(err, "an executor over ranks");
  lane->spread = s;
  lane->requests = heddle__alloc(s->script.n_tags, sizeof *lane->requests);
  heddle_status status = lane->requests != NULL ? heddle__ranks_tags(s->ranks, s->script.n_tags, &lane->first_tag, err)
                                                : heddle__no_memory(err, "an executor over ranks");
  for (uint32_t i = 0; i < own_acts(s)->n && status == HEDDLE_OK; i++) {
    const heddle__act *a = &own_acts(s)->list[i];
    if (a->kind != HEDDLE__ACT_STAGE) lane->requests[a->tag].name = s->names[a->value];
    if (a->kind == HEDDLE__ACT_RECEIVE) status = make_receive(st, lane, a, err);
  }
  /* All ranks make the same executors: then their messages have the same tags. */
  snprintf(text, sizeof text, "%llu messages, the first with tag %llu", (unsigned long long)s->script.n_tags,
           (unsigned long long)lane->first_tag);
  if (status == HEDDLE_OK) status = heddle__ranks_agree(s->ranks, "an executor", text, &texts, err);
  for (uint32_t i = 0; i < s->ranks->comm.size && status == HEDDLE_OK; i++)
    if (strcmp(texts[i], text) != 0)
      status = heddle__at_rank(
          heddle__fail(
              err, HEDDLE_EINVAL,
              "the ranks create executors in different orders: rank %u has one with %.100s, this rank one with %s",
              (unsigned)i, texts[i], text),
          err, i);
  heddle__free(texts);
  if (status == HEDDLE_OK) *out = lane;
  else heddle__spread_end(lane);
  return status;
}

void heddle__spread_end(heddle__spread_lane *lane) {
  if (lane == NULL) return;
  for (uint32_t i = 0; lane->requests != NULL && i < lane->spread->script.n_tags; i++)
    heddle__ranks_free(lane->spread->ranks, lane->requests[i].handle);
  heddle__free(lane->requests);
  heddle__free(lane);
}

/* The first run, and each after which an output lies elsewhere, makes the request. */
static heddle_status send(heddle__staged *st, heddle__spread_lane *lane, const heddle__act *a, heddle_error *err) {
  const heddle__spread *s = lane->spread;
  const heddle_tensor *t = st->values[a->value];
  request *r = &lane->requests[a->tag];
  if (t == NULL || t->bytes != a->bytes || t->data == NULL)
    return heddle__fail(err, HEDDLE_EINTERNAL, "value '%s' for rank %u has other bytes than planned",
                        s->names[a->value], (unsigned)a->peer);
  if (r->handle != NULL && r->data != t->data) {
    heddle__ranks_free(s->ranks, r->handle);
    r->handle = NULL;
  }
  heddle_status status = HEDDLE_OK;
  if (r->handle == NULL)
    status = heddle__ranks_send_init(s->ranks, t->data, a->bytes, a->peer, lane->first_tag + a->tag, &r->handle, err);
  r->data = t->data;
  return status == HEDDLE_OK ? heddle__ranks_start(s->ranks, r->handle, err) : status;
}

static heddle__run_end act(heddle__staged *st, heddle__spread_lane *lane, const heddle__act *a,
                           const heddle__helm *helm, heddle_status *status, heddle_error *err) {
  heddle__ranks *ranks = lane->spread->ranks;
  switch (a->kind) {
  case HEDDLE__ACT_RECEIVE: *status = heddle__ranks_start(ranks, lane->requests[a->tag].handle, err); break;
  case HEDDLE__ACT_SEND: *status = send(st, lane, a, err); break;
  case HEDDLE__ACT_STAGE: return ctl_stage_drive(st, a->stage, helm, status, err);
  default:
    return heddle__ranks_wait(ranks, lane->requests[a->tag].handle, a->peer, a->bytes, lane->requests[a->tag].name,
                              helm, status, err);
  }
  return *status == HEDDLE_OK ? HEDDLE__RUN_DONE : HEDDLE__RUN_FAILED;
}

heddle__run_end heddle__spread_drive(heddle__staged *st, const heddle__helm *helm, heddle_status *status,
                                     heddle_error *err) {
  heddle__spread_lane *lane = st->lane;
  const heddle__acts *acts = own_acts(lane->spread);
  *status = heddle__ranks_check(lane->spread->ranks, err);
  if (*status != HEDDLE_OK) return HEDDLE__RUN_FAILED;
  while (st->at < acts->n) {
    const heddle__run_end end = act(st, lane, &acts->list[st->at], helm, status, err);
    if (end == HEDDLE__RUN_FAILED) (void)heddle__ranks_fail(lane->spread->ranks, *status, err);
    if (end != HEDDLE__RUN_DONE) return end;
    st->at++;
  }
  return HEDDLE__RUN_DONE;
}

void heddle__spread_say(const heddle__staged *st, char *what, size_t size) {
  const heddle__acts *acts = own_acts(st->lane->spread);
  const heddle__act *a = st->at < acts->n ? &acts->list[st->at] : NULL;
  if (a == NULL || a->kind == HEDDLE__ACT_STAGE) {
    const uint32_t rank = st->lane->spread->ranks->comm.rank;
    snprintf(what, size, a == NULL ? "rank %u ends its run" : "rank %u runs stage %u of the plan", (unsigned)rank,
             a == NULL ? 0U : (unsigned)a->stage + 1);
    return;
  }
  char blame[64];
  (void)heddle__ranks_blame(st->lane->spread->ranks, a->peer, blame, sizeof blame);
  snprintf(what, size, "it waits for rank %u%s to %s value '%.100s'", (unsigned)a->peer, blame,
           a->kind == HEDDLE__ACT_AWAIT ? "send" : "take", st->lane->spread->names[a->value]);
}
