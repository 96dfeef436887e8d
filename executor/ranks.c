/* executor/ranks.c: contexts of ranks, as the public API has them. */
#include "executor/ranks.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "core/registry.h"

#if HEDDLE_HAS_RANKS

#include "executor/ranks/group.h"

heddle__ranks *heddle__context_ranks(heddle_context *ctx) {
  return (heddle__ranks *)ctx->ranks;
}

bool heddle__context_is_ranked(const heddle_context *ctx) {
  return ctx->ranks != NULL;
}

bool heddle__context_is_cut(const heddle_context *ctx) {
  return ctx->ranks != NULL && ((const heddle__ranks *)ctx->ranks)->comm.size > 1;
}

void heddle_context_rank(heddle_context *ctx, uint32_t *rank, uint32_t *size) {
  const heddle__ranks *r = ctx != NULL ? heddle__context_ranks(ctx) : NULL;
  if (rank != NULL) *rank = r != NULL ? r->comm.rank : 0;
  if (size != NULL) *size = r != NULL ? r->comm.size : 1;
}

void heddle_context_fail_ranks(heddle_context *ctx, heddle_status status, const char *text) {
  heddle_error err = {0};
  if (ctx == NULL || status == HEDDLE_OK || !heddle__context_is_cut(ctx)) return;
  (void)heddle__fail(&err, status, "%s", text != NULL ? text : heddle_status_text(status));
  (void)heddle__ranks_fail(heddle__context_ranks(ctx), status, &err);
}

static bool is_whole(const heddle_comm *c) {
  return c->size > 0 && c->rank < c->size && c->max_tag >= HEDDLE__RANK_TAGS && c->max_tag <= UINT32_MAX &&
         c->send_init != NULL && c->recv_init != NULL && c->start != NULL && c->test != NULL && c->free != NULL &&
         c->send_note != NULL && c->take_note != NULL;
}

static heddle_status take_seconds(heddle_context *ctx, const char *key, int64_t fallback, uint64_t *out,
                                  heddle_error *err) {
  int64_t seconds = fallback;
  heddle_status s = heddle__context_number(ctx, key, fallback, 1, 86400, &seconds, err);
  *out = (uint64_t)seconds * UINT64_C(1000000000);
  return s;
}

/* All ranks are of one version. */
static heddle_status greet(heddle__ranks *r, heddle_error *err) {
  char **texts = NULL;
  heddle_status s = heddle__ranks_agree(r, "a context", HEDDLE_VERSION, &texts, err);
  for (uint32_t i = 0; i < r->comm.size && s == HEDDLE_OK; i++)
    if (strcmp(texts[i], texts[0]) != 0)
      s = heddle__at_rank(heddle__fail(err, HEDDLE_EINVAL,
                                       "rank %u differs from rank 0 in its version of Heddle: %.60s is not %.60s",
                                       (unsigned)i, texts[i], texts[0]),
                          err, i);
  heddle__free(texts);
  return s;
}

static heddle_status make(const heddle_comm *comm, const heddle_setting *settings, size_t n_settings, heddle_log_fn log,
                          void *log_user, heddle__ranks *r, heddle_context **out, heddle_error *err) {
  memcpy(&r->comm, comm, comm->struct_size < sizeof r->comm ? comm->struct_size : sizeof r->comm);
  if (!is_whole(&r->comm))
    return heddle__fail(err, HEDDLE_EINVAL,
                        "the communicator's table lacks a function, or its rank, size or tags are wrong");
  heddle_status s = heddle__ranks_begin(r, err);
  heddle_error why = {0};
  heddle_status made = s == HEDDLE_OK ? heddle_context_create(settings, n_settings, log, log_user, out, &why) : s;
  if (s == HEDDLE_OK && made == HEDDLE_OK) made = take_seconds(*out, "ranks.silence_seconds", 10, &r->silence_ns, &why);
  if (s == HEDDLE_OK && made == HEDDLE_OK) made = take_seconds(*out, "ranks.wait_seconds", 300, &r->wait_ns, &why);
  if (s == HEDDLE_OK && made != HEDDLE_OK) {
    (void)heddle__ranks_fail(r, made, &why);
    if (err != NULL) *err = why;
    s = made;
  }
  if (s == HEDDLE_OK) s = greet(r, err);
  if (s == HEDDLE_OK) s = heddle__ranks_watch(r, err);
  return s;
}

heddle_status heddle_context_create_ranks(const heddle_comm *comm, const heddle_setting *settings, size_t n_settings,
                                          heddle_log_fn log, void *log_user, heddle_context **out, heddle_error *err) {
  if (out != NULL) *out = NULL;
  if (comm == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a context of ranks needs a communicator");
  heddle__ranks *r = heddle__alloc(1, sizeof *r);
  heddle_status s = r != NULL && out != NULL ? HEDDLE_OK : HEDDLE_EINVAL;
  if (s == HEDDLE_OK) s = make(comm, settings, n_settings, log, log_user, r, out, err);
  else if (r == NULL) s = heddle__no_memory(err, "a context of ranks");
  else (void)heddle__fail(err, s, "there is no place for the context: out is NULL");
  if (s == HEDDLE_OK) {
    r->attachment.free = heddle__ranks_end;
    (*out)->ranks = &r->attachment;
    return HEDDLE_OK;
  }
  if (r != NULL && r->comm.release != NULL) heddle__ranks_end(&r->attachment);
  else {
    if (comm->release != NULL) comm->release(comm->self, 0);
    heddle__free(r);
  }
  if (out != NULL) {
    heddle_context_release(*out);
    *out = NULL;
  }
  return s;
}

#else

bool heddle__context_is_ranked(const heddle_context *ctx) {
  (void)ctx;
  return false;
}

bool heddle__context_is_cut(const heddle_context *ctx) {
  (void)ctx;
  return false;
}

void heddle_context_fail_ranks(heddle_context *ctx, heddle_status status, const char *text) {
  (void)ctx, (void)status, (void)text;
}

void heddle_context_rank(heddle_context *ctx, uint32_t *rank, uint32_t *size) {
  (void)ctx;
  if (rank != NULL) *rank = 0;
  if (size != NULL) *size = 1;
}

heddle_status heddle_context_create_ranks(const heddle_comm *comm, const heddle_setting *settings, size_t n_settings,
                                          heddle_log_fn log, void *log_user, heddle_context **out, heddle_error *err) {
  (void)settings, (void)n_settings, (void)log, (void)log_user;
  if (out != NULL) *out = NULL;
  if (comm != NULL && comm->release != NULL) comm->release(comm->self, 0);
  return heddle__left_out(err, "one graph over ranks", "HEDDLE_RANKS");
}

#endif
