/* executor/ranks/agree.c: every rank learns what all ranks say. Rank 0 hears the length and a hash of each text first, so that it can
 * name a rank that says nothing, and takes each different text once: ranks with the same devices say the same, and
 * of a thousand of them neither the time nor the memory of one grows with what all say together. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/ranks/ranks.h"
#include "plugins/common/fnv.h"

enum { TAG_HEAD, TAG_WANTED, TAG_TEXT, TAG_ALL };
#define MOST_TEXT (UINT64_C(1) << 30)

/* What a rank says first of its text. */
typedef struct head {
  uint64_t bytes, hash;
} head;

/* The different texts, and which of them each rank says. */
typedef struct said {
  head *heads;
  uint32_t *of_rank;
  uint64_t n; /* texts */
} said;

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

static heddle_status no_room(heddle__ranks *r, heddle_error *err) {
  return heddle__ranks_fail(r, heddle__no_memory(err, "what ranks say"), err);
}

static bool make_room(said *all, uint64_t n, uint32_t n_ranks) {
  all->heads = heddle__alloc((size_t)n, sizeof *all->heads);
  all->of_rank = heddle__alloc(n_ranks, sizeof *all->of_rank);
  return all->heads != NULL && all->of_rank != NULL;
}

static uint64_t bytes_before(const said *all, uint64_t text) {
  uint64_t bytes = 0;
  for (uint64_t k = 0; k < text; k++) bytes += all->heads[k].bytes + 1;
  return bytes;
}

/* What each rank is given: the places by rank, and behind them the texts in their order. */
static char **block_of(const said *all, uint32_t n_ranks) {
  char **texts = heddle__alloc(n_ranks * sizeof(char *) + (size_t)bytes_before(all, all->n), 1);
  char *at = (char *)(texts + n_ranks);
  for (uint64_t k = 0; texts != NULL && k < all->n; k++) {
    for (uint32_t i = 0; i < n_ranks; i++)
      if (all->of_rank[i] == k) texts[i] = at;
    at += all->heads[k].bytes + 1;
  }
  return texts;
}

static heddle_status check_size(heddle__ranks *r, const head *h, uint32_t from, const char *what, heddle_error *err) {
  if (h->bytes <= MOST_TEXT) return HEDDLE_OK;
  (void)heddle__fail(err, HEDDLE_ELIMIT, "rank %u says %llu bytes in %s; at most %llu are read", (unsigned)from,
                     (unsigned long long)h->bytes, what, (unsigned long long)MOST_TEXT);
  return heddle__ranks_fail(r, heddle__at_rank(HEDDLE_ELIMIT, err, from), err);
}

/* ---- rank 0 */

/* Hears what the others have, and takes what nobody before them has into taken, per text. */
static heddle_status gather(heddle__ranks *r, const char *what, const head *own, said *all, char **taken,
                            heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  all->heads[all->n++] = *own;
  for (uint32_t i = 1; i < r->comm.size && s == HEDDLE_OK; i++) {
    head h;
    uint32_t at = 0;
    s = transfer(r, false, &h, sizeof h, i, TAG_HEAD, what, err);
    if (s == HEDDLE_OK) s = check_size(r, &h, i, what, err);
    while (s == HEDDLE_OK && at < all->n && (all->heads[at].bytes != h.bytes || all->heads[at].hash != h.hash)) at++;
    uint64_t wanted = at == all->n;
    if (s == HEDDLE_OK) s = transfer(r, true, &wanted, sizeof wanted, i, TAG_WANTED, what, err);
    if (s != HEDDLE_OK) break;
    all->of_rank[i] = at;
    if (wanted == 0) continue;
    all->heads[all->n++] = h;
    taken[at] = heddle__alloc((size_t)h.bytes + 1, 1);
    s = taken[at] != NULL ? transfer(r, false, taken[at], h.bytes, i, TAG_TEXT, what, err) : no_room(r, err);
  }
  return s;
}

/* To each rank what it does not say itself. */
static heddle_status spread(heddle__ranks *r, const char *what, said *all, char *texts, heddle_error *err) {
  const uint32_t n = r->comm.size;
  const uint64_t end = bytes_before(all, all->n);
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 1; i < n && s == HEDDLE_OK; i++) {
    const uint64_t first = bytes_before(all, all->of_rank[i]), next = bytes_before(all, all->of_rank[i] + UINT64_C(1));
    s = transfer(r, true, &all->n, sizeof all->n, i, TAG_ALL, what, err);
    if (s == HEDDLE_OK) s = transfer(r, true, all->of_rank, n * sizeof *all->of_rank, i, TAG_ALL, what, err);
    if (s == HEDDLE_OK) s = transfer(r, true, all->heads, all->n * sizeof *all->heads, i, TAG_ALL, what, err);
    if (s == HEDDLE_OK && first > 0) s = transfer(r, true, texts, first, i, TAG_ALL, what, err);
    if (s == HEDDLE_OK && end > next) s = transfer(r, true, texts + next, end - next, i, TAG_ALL, what, err);
  }
  return s;
}

static heddle_status lead(heddle__ranks *r, const char *what, const head *own, const char *text, said *all, char ***out,
                          heddle_error *err) {
  char **taken = heddle__alloc(r->comm.size, sizeof *taken);
  heddle_status s = taken != NULL && make_room(all, r->comm.size, r->comm.size) ? gather(r, what, own, all, taken, err)
                                                                                : no_room(r, err);
  if (s == HEDDLE_OK && (*out = block_of(all, r->comm.size)) == NULL) s = no_room(r, err);
  char *at = s == HEDDLE_OK ? (char *)(*out + r->comm.size) : NULL;
  for (uint64_t k = 0; k < all->n && s == HEDDLE_OK; k++) {
    memcpy(at, k == 0 ? text : taken[k], (size_t)all->heads[k].bytes);
    at += all->heads[k].bytes + 1;
  }
  if (s == HEDDLE_OK) s = spread(r, what, all, (char *)(*out + r->comm.size), err);
  for (uint64_t k = 0; taken != NULL && k < all->n; k++) heddle__free(taken[k]);
  heddle__free(taken);
  return s;
}

/* ---- the others */

static heddle_status odd(heddle__ranks *r, const char *what, heddle_error *err) {
  (void)heddle__fail(err, HEDDLE_EFORMAT, "rank 0 sent something else than what ranks say in %s", what);
  return heddle__ranks_fail(r, heddle__at_rank(HEDDLE_EFORMAT, err, 0), err);
}

static heddle_status check_said(heddle__ranks *r, const char *what, const head *own, const said *all,
                                heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < r->comm.size; i++)
    if (all->of_rank[i] >= all->n) return odd(r, what, err);
  for (uint64_t k = 0; k < all->n && s == HEDDLE_OK; k++) s = check_size(r, &all->heads[k], 0, what, err);
  if (s == HEDDLE_OK && memcmp(&all->heads[all->of_rank[r->comm.rank]], own, sizeof *own) != 0) s = odd(r, what, err);
  return s;
}

static heddle_status follow(heddle__ranks *r, const char *what, const head *own, char *text, said *all, char ***out,
                            heddle_error *err) {
  const uint32_t n = r->comm.size, self = r->comm.rank;
  head h = *own;
  uint64_t wanted = 0, count = 0;
  heddle_status s = transfer(r, true, &h, sizeof h, 0, TAG_HEAD, what, err);
  if (s == HEDDLE_OK) s = transfer(r, false, &wanted, sizeof wanted, 0, TAG_WANTED, what, err);
  if (s == HEDDLE_OK && wanted != 0) s = transfer(r, true, text, h.bytes, 0, TAG_TEXT, what, err);
  if (s == HEDDLE_OK) s = transfer(r, false, &count, sizeof count, 0, TAG_ALL, what, err);
  if (s == HEDDLE_OK && (count == 0 || count > n)) s = odd(r, what, err);
  if (s == HEDDLE_OK && !make_room(all, count, n)) s = no_room(r, err);
  if (s == HEDDLE_OK) s = transfer(r, false, all->of_rank, n * sizeof *all->of_rank, 0, TAG_ALL, what, err);
  if (s == HEDDLE_OK) s = transfer(r, false, all->heads, count * sizeof *all->heads, 0, TAG_ALL, what, err);
  all->n = count;
  if (s == HEDDLE_OK) s = check_said(r, what, own, all, err);
  if (s == HEDDLE_OK && (*out = block_of(all, n)) == NULL) s = no_room(r, err);
  if (s != HEDDLE_OK) return s;
  char *texts = (char *)(*out + n);
  const uint64_t first = bytes_before(all, all->of_rank[self]), next = first + own->bytes + 1;
  const uint64_t end = bytes_before(all, count);
  memcpy(texts + first, text, (size_t)own->bytes);
  if (first > 0) s = transfer(r, false, texts, first, 0, TAG_ALL, what, err);
  if (s == HEDDLE_OK && end > next) s = transfer(r, false, texts + next, end - next, 0, TAG_ALL, what, err);
  for (uint64_t k = 0, at = 0; k < count && s == HEDDLE_OK; at += all->heads[k++].bytes + 1)
    if (texts[at + all->heads[k].bytes] != '\0') s = odd(r, what, err);
  return s;
}

/* ---- both */

static heddle_status same_occasion(heddle__ranks *r, const char *what, char **texts, heddle_error *err) {
  const size_t n = strlen(what);
  for (uint32_t i = 0; i < r->comm.size; i++) {
    if (strncmp(texts[i], what, n) == 0 && texts[i][n] == '\n') {
      texts[i] += n + 1;
      continue;
    }
    return heddle__at_rank(
        heddle__fail(err, HEDDLE_EINVAL,
                     "the ranks call in different orders: rank %u is at %.*s, where rank %u is at %s", (unsigned)i,
                     (int)strcspn(texts[i], "\n"), texts[i], (unsigned)r->comm.rank, what),
        err, i);
  }
  return HEDDLE_OK;
}

heddle_status heddle__ranks_agree(heddle__ranks *r, const char *what, const char *text, char ***out,
                                  heddle_error *err) {
  *out = NULL;
  heddle_status s = heddle__ranks_check(r, err);
  if (s != HEDDLE_OK) return s;
  char *own = heddle__format("%s\n%s", what, text);
  said all = {0};
  if (own == NULL) return no_room(r, err);
  const head h = {strlen(own), fnv1a_text(own)};
  if (r->comm.rank == 0) s = lead(r, what, &h, own, &all, out, err);
  else s = follow(r, what, &h, own, &all, out, err);
  heddle__free(own);
  heddle__free(all.heads);
  heddle__free(all.of_rank);
  if (s == HEDDLE_OK) s = same_occasion(r, what, *out, err);
  if (s != HEDDLE_OK) {
    heddle__free(*out);
    *out = NULL;
  }
  return s;
}
