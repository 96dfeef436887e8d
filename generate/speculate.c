/* generate/speculate.c: guesses of a draft, which one run computes together. Each token is chosen from the logits behind the
 * tokens before it, as without a draft: a guess that is another token is dropped with what was computed for it. So nothing
 * is asked of the draft but speed. (Leviathan, Kalman, Matias: Fast Inference from Transformers via Speculative Decoding,
 * 2023, accepts by a second draw; here one seed gives one text, whatever the draft.) */
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "generate/generator.h"

enum { FEW = 4 };

heddle_status heddle_generator_speculate(heddle_generator *g, const heddle_generator *draft, uint32_t tokens,
                                         heddle_error *err) {
  heddle_generator *made = NULL;
  if (g == NULL) return heddle__fail(err, HEDDLE_EINVAL, "speculate: the generator is NULL");
  if (tokens > HEDDLE__GUESSES)
    return heddle__fail(err, HEDDLE_EINVAL, "%u guesses are asked for; the most is %d", (unsigned)tokens,
                        HEDDLE__GUESSES);
  if (draft != NULL && draft->vocabulary != g->vocabulary)
    return heddle__fail(err, HEDDLE_EINVAL, "the draft %s has %u tokens in its vocabulary, and %s has %u",
                        draft->config.model_path, (unsigned)draft->vocabulary, g->config.model_path,
                        (unsigned)g->vocabulary);
  heddle_status s = heddle__check_fork(err);
  if (s == HEDDLE_OK && draft != NULL) s = heddle__generator_like(draft, &made, err);
  if (s != HEDDLE_OK) return s;
  heddle_generator_release(g->draft);
  g->draft = made;
  g->draft_tokens = tokens > 0 ? tokens : FEW;
  return HEDDLE_OK;
}

/* The draft gets the generator's tokens; what it computed for a common beginning stays. */
static heddle_status follow(heddle_generator *draft, const heddle_generator *g, heddle_error *err) {
  size_t common = 0;
  while (common < draft->n && common < g->n && draft->tokens[common] == g->tokens[common]) common++;
  heddle_status s = heddle_generator_truncate(draft, common, err);
  return s == HEDDLE_OK ? heddle_generator_append(draft, g->tokens + common, g->n - common, err) : s;
}

heddle_status heddle__speculate_guess(heddle_generator *g, uint64_t until_ns, heddle_error *err) {
  heddle_generator *draft = g->draft;
  g->n_guess = 0;
  if (draft == NULL || g->sampling == NULL || g->n - g->cached != 1) return HEDDLE_OK;
  const size_t most = g->max_length < draft->max_length ? g->max_length : draft->max_length;
  uint32_t n = g->draft_tokens < g->chunk - 1 ? g->draft_tokens : g->chunk - 1;
  if (g->n >= most) return HEDDLE_OK;
  if (n > most - g->n) n = (uint32_t)(most - g->n);
  const uint64_t began = heddle__now_ns();
  heddle_status s = follow(draft, g, err);
  for (uint32_t i = 0; i < n && s == HEDDLE_OK; i++) {
    s = heddle__generate_cancelled(g, err);
    if (s == HEDDLE_OK)
      s = heddle_generator_next(draft, g->sampling, heddle__generate_left(until_ns), &g->guess[i], err);
  }
  g->stats.guess_ns += heddle__now_ns() - began;
  if (s == HEDDLE_OK) g->n_guess = n;
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "the draft: ");
}

heddle_status heddle__speculate_take(heddle_generator *g, const int64_t *tokens, size_t n, size_t *known,
                                     heddle_error *err) {
  size_t same = 0;
  while (same < n && same < g->ahead && tokens[same] == g->guess[same]) same++;
  *known = same;
  heddle_status s = same < n ? heddle__generate_cut(g, g->cached + same, err) : HEDDLE_OK;
  if (s != HEDDLE_OK) return s;
  g->ahead = same < n ? 0 : g->ahead - (uint32_t)same;
  memmove(g->guess, g->guess + same, g->ahead * sizeof *g->guess);
  g->cached += same;
  g->view_row += (int64_t)same;
  g->stats.accepted += same;
  return HEDDLE_OK;
}
