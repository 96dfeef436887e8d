/* executor/ranks/agree.c: every rank learns what all ranks say. Rank 0 gathers the texts and sends all of them to each; so it
 * can name a rank that says nothing. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/ranks/ranks.h"

enum { TAG_SIZE, TAG_TEXT, TAG_ALL_SIZE, TAG_ALL };
#define MOST_TEXT (UINT64_C(1) << 30)

static heddle_status transfer(heddle__ranks *r, bool send, void *data, uint64_t bytes, uint32_t peer, uint32_t tag,
                              const char *what, heddle_error *err) {
  void *request = NULL;
  heddle_status s = send ? heddle__ranks_send_init(r, data, bytes, peer, tag, &request, err)
                         : heddle__ranks_recv_init(r, data, bytes, peer, tag, &request, err);
  if (s == HEDDLE_OK) s = heddle__ranks_start(r, request, err);
  if (s == HEDDLE_OK) (void)heddle__ranks_wait(r, request, peer, bytes, what, NULL, &s, err);
  else (void)heddle__ranks_fail(r, s, err);
  heddle__ranks_free(r, request);
  return s;
}

static heddle_status give(heddle__ranks *r, char *text, uint64_t bytes, uint32_t to, uint32_t tag, const char *what,
                          heddle_error *err) {
  heddle_status s = transfer(r, true, &bytes, sizeof bytes, to, tag, what, err);
  return s == HEDDLE_OK ? transfer(r, true, text, bytes, to, tag + 1, what, err) : s;
}

/* *out: of heddle__alloc, with a terminator behind it. */
static heddle_status take(heddle__ranks *r, uint32_t from, uint32_t tag, const char *what, char **out, uint64_t *bytes,
                          heddle_error *err) {
  *out = NULL;
  heddle_status s = transfer(r, false, bytes, sizeof *bytes, from, tag, what, err);
  if (s == HEDDLE_OK && *bytes > MOST_TEXT)
    s = heddle__ranks_fail(r,
                           heddle__fail(err, HEDDLE_ELIMIT, "rank %u says %llu bytes in %s; at most %llu are read",
                                        (unsigned)from, (unsigned long long)*bytes, what,
                                        (unsigned long long)MOST_TEXT),
                           err);
  if (s != HEDDLE_OK) return s;
  *out = heddle__alloc((size_t)*bytes + 1, 1);
  if (*out == NULL) return heddle__ranks_fail(r, heddle__no_memory(err, "what ranks say"), err);
  return transfer(r, false, *out, *bytes, from, tag + 1, what, err);
}

/* At rank 0: the texts of all, each with its terminator. */
static heddle_status gather(heddle__ranks *r, const char *what, const char *text, char **all, uint64_t *bytes,
                            heddle_error *err) {
  uint64_t used = strlen(text) + 1;
  char *whole = heddle__strdup(text);
  heddle_status s = whole != NULL ? HEDDLE_OK : heddle__ranks_fail(r, heddle__no_memory(err, "what ranks say"), err);
  for (uint32_t i = 1; i < r->comm.size && s == HEDDLE_OK; i++) {
    char *one = NULL;
    uint64_t n = 0;
    s = take(r, i, TAG_SIZE, what, &one, &n, err);
    char *grown = s == HEDDLE_OK ? heddle__grow(whole, (size_t)used, (size_t)(used + n + 1), 1) : NULL;
    if (s == HEDDLE_OK && grown == NULL) s = heddle__ranks_fail(r, heddle__no_memory(err, "what ranks say"), err);
    if (s == HEDDLE_OK) {
      whole = grown;
      n = strnlen(one, (size_t)n);
      memcpy(whole + used, one, (size_t)n);
      used += n;
      whole[used++] = '\0';
    }
    heddle__free(one);
  }
  *all = whole;
  *bytes = used;
  return s;
}

static heddle_status split(heddle__ranks *r, const char *all, uint64_t bytes, char ***out, heddle_error *err) {
  const size_t n = r->comm.size;
  char **texts = heddle__alloc(n * sizeof(char *) + (size_t)bytes + 1, 1);
  if (texts == NULL) return heddle__ranks_fail(r, heddle__no_memory(err, "what ranks say"), err);
  char *at = (char *)(texts + n), *end = at + bytes;
  memcpy(at, all, (size_t)bytes);
  for (size_t i = 0; i < n; i++) {
    texts[i] = at;
    at += strlen(at);
    if (at < end) at++;
  }
  *out = texts;
  return HEDDLE_OK;
}

static heddle_status same_occasion(heddle__ranks *r, const char *what, char **texts, heddle_error *err) {
  const size_t n = strlen(what);
  for (uint32_t i = 0; i < r->comm.size; i++) {
    if (strncmp(texts[i], what, n) == 0 && texts[i][n] == '\n') {
      texts[i] += n + 1;
      continue;
    }
    return heddle__fail(err, HEDDLE_EINVAL,
                        "the ranks call in different orders: rank %u is at %.*s, where rank %u is at %s", (unsigned)i,
                        (int)strcspn(texts[i], "\n"), texts[i], (unsigned)r->comm.rank, what);
  }
  return HEDDLE_OK;
}

heddle_status heddle__ranks_agree(heddle__ranks *r, const char *what, const char *text, char ***out,
                                  heddle_error *err) {
  *out = NULL;
  heddle_status s = heddle__ranks_check(r, err);
  if (s != HEDDLE_OK) return s;
  char *all = NULL, *own = heddle__format("%s\n%s", what, text);
  uint64_t bytes = 0;
  if (own == NULL) return heddle__ranks_fail(r, heddle__no_memory(err, "what a rank says"), err);
  if (r->comm.rank == 0) {
    s = gather(r, what, own, &all, &bytes, err);
    for (uint32_t i = 1; i < r->comm.size && s == HEDDLE_OK; i++) s = give(r, all, bytes, i, TAG_ALL_SIZE, what, err);
  } else {
    s = give(r, own, strlen(own), 0, TAG_SIZE, what, err);
    if (s == HEDDLE_OK) s = take(r, 0, TAG_ALL_SIZE, what, &all, &bytes, err);
  }
  heddle__free(own);
  if (s == HEDDLE_OK) s = split(r, all, bytes, out, err);
  heddle__free(all);
  if (s == HEDDLE_OK) s = same_occasion(r, what, *out, err);
  if (s != HEDDLE_OK) {
    heddle__free(*out);
    *out = NULL;
  }
  return s;
}
