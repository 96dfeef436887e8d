/* generate/choose.c: edits the logits as the options say, chooses a token, and undoes the edits. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/tensor.h"
#include "generate/generator.h"
#include "generate/passes.h"
#include "plugins/common/float16.h"
#include "plugins/common/philox.h"

heddle_status heddle__sampling_take(const heddle_sampling *given, uint32_t vocabulary, heddle_sampling *out,
                                    heddle_error *err) {
  *out = (heddle_sampling){.struct_size = sizeof *out};
  if (given != NULL) memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
  if (!(out->temperature >= 0) || isinf(out->temperature))
    return heddle__fail(err, HEDDLE_EINVAL, "the temperature is %g; expected 0 or more", out->temperature);
  if (!(out->top_p >= 0 && out->top_p <= 1) || !(out->min_p >= 0 && out->min_p <= 1))
    return heddle__fail(err, HEDDLE_EINVAL, "top_p is %g and min_p %g; expected 0 to 1", out->top_p, out->min_p);
  if (!(out->repetition_penalty >= 0) || isinf(out->repetition_penalty))
    return heddle__fail(err, HEDDLE_EINVAL, "the repetition penalty is %g; expected more than 0",
                        out->repetition_penalty);
  if (out->n_biases > 0 && (out->bias_tokens == NULL || out->biases == NULL))
    return heddle__fail(err, HEDDLE_EINVAL, "%u biases are at NULL", (unsigned)out->n_biases);
  for (uint32_t i = 0; i < out->n_biases; i++) {
    if (out->bias_tokens[i] < 0 || out->bias_tokens[i] >= (int64_t)vocabulary)
      return heddle__fail(err, HEDDLE_EINVAL, "bias %u is of token %lld; the vocabulary has %u", (unsigned)i,
                          (long long)out->bias_tokens[i], (unsigned)vocabulary);
    if (isnan(out->biases[i]) || out->biases[i] == INFINITY)
      return heddle__fail(err, HEDDLE_EINVAL, "the bias of token %lld is %g", (long long)out->bias_tokens[i],
                          (double)out->biases[i]);
  }
  return HEDDLE_OK;
}

void heddle__sampler_free(heddle__sampler *m) {
  heddle__free(m->logits);
  heddle__free(m->weights);
  heddle__free(m->groups);
  heddle__free(m->blocks);
  heddle__free(m->seen);
  heddle__free(m->edits);
  *m = (heddle__sampler){0};
}

/* ---- edits */

static bool edit(heddle__sampler *m, float *row, uint32_t token, float value) {
  if (m->n_edits == m->room) {
    const size_t room = m->room > 0 ? 2 * m->room : 256;
    struct heddle__edit *edits = heddle__grow(m->edits, m->room, room, sizeof *edits);
    if (edits == NULL) return false;
    m->edits = edits;
    m->room = room;
  }
  m->edits[m->n_edits++] = (struct heddle__edit){token, row[token]};
  row[token] = value;
  return true;
}

static void undo(heddle__sampler *m, float *row) {
  while (m->n_edits > 0) {
    m->n_edits--;
    row[m->edits[m->n_edits].token] = m->edits[m->n_edits].before;
  }
}

/* Each token of the list once. */
static bool penalise(heddle__sampler *m, float *row, const int64_t *history, size_t n, float penalty) {
  bool done = true;
  if (m->seen == NULL) m->seen = heddle__alloc(m->vocabulary / 64 + 1, sizeof *m->seen);
  if (m->seen == NULL) return false;
  for (size_t i = 0; i < n && done; i++) {
    const uint32_t token = (uint32_t)history[i];
    const uint64_t bit = UINT64_C(1) << token % 64;
    if (history[i] < 0 || history[i] >= (int64_t)m->vocabulary || (m->seen[token / 64] & bit) != 0) continue;
    m->seen[token / 64] |= bit;
    done = edit(m, row, token, row[token] < 0 ? row[token] * penalty : row[token] / penalty);
  }
  for (size_t i = 0; i < n; i++)
    if (history[i] >= 0 && history[i] < (int64_t)m->vocabulary) m->seen[(uint32_t)history[i] / 64] = 0;
  return done;
}

static bool penalises(const heddle_sampling *s, size_t n) {
  return n > 0 && s->repetition_penalty != 0 && s->repetition_penalty != 1;
}

static bool edits(const heddle_sampling *s, size_t n) {
  return s->n_biases > 0 || penalises(s, n);
}

static bool apply(heddle__sampler *m, float *row, const int64_t *history, size_t n, const heddle_sampling *s) {
  for (uint32_t i = 0; i < s->n_biases; i++)
    if (!edit(m, row, (uint32_t)s->bias_tokens[i], row[s->bias_tokens[i]] + s->biases[i])) return false;
  return !penalises(s, n) || penalise(m, row, history, n, (float)s->repetition_penalty);
}

/* ---- the choice */

/* The first of the greatest: each block is read once, and one of them again. */
static float argmax(heddle__sampler *m, const float *x, uint32_t *which) {
  const size_t n = m->vocabulary;
  float best = -INFINITY;
  size_t at = 0;
  for (size_t i = 0, b = 0; i < n; i += HEDDLE__BLOCK, b++) {
    float *groups = m->groups + b * HEDDLE__GROUPS, most = -INFINITY;
    heddle__pass_greatest(x + i, n - i < HEDDLE__BLOCK ? n - i : HEDDLE__BLOCK, groups);
    for (int k = 0; k < HEDDLE__GROUPS; k++) most = groups[k] > most ? groups[k] : most;
    m->blocks[b].greatest = most;
    if (most > best) {
      best = most;
      at = i;
    }
  }
  while (at < n - 1 && !(x[at] == best)) at++;
  *which = (uint32_t)at;
  return best;
}

/* Memory that every choice needs. */
static bool make_groups(heddle__sampler *m) {
  const size_t n = m->vocabulary / HEDDLE__BLOCK + 1;
  if (m->groups == NULL) m->groups = heddle__alloc(n * HEDDLE__GROUPS, sizeof *m->groups);
  if (m->blocks == NULL) m->blocks = heddle__alloc(n, sizeof *m->blocks);
  return m->groups != NULL && m->blocks != NULL;
}

/* Between 0 and 1, neither of them: of 53 bits. */
static double uniform(uint64_t index, uint64_t seed) {
  const philox_words x = philox(index, seed);
  return ((double)(x.w[0] >> 5) * 0x1p26 + (double)(x.w[1] >> 6) + 0.5) * 0x1p-53;
}

/* As float32: the row itself, or a copy. NULL: no memory. */
static float *floats_of(heddle__sampler *m, void *row, heddle_dtype dtype) {
  if (dtype.bits == 32) return row;
  if (m->logits == NULL) m->logits = heddle__alloc(m->vocabulary, sizeof *m->logits);
  if (m->logits == NULL) return NULL;
  const uint16_t *half = row;
  if (dtype.code == HEDDLE_DTYPE_BFLOAT)
    for (uint32_t i = 0; i < m->vocabulary; i++) m->logits[i] = bfloat16_to_float(half[i]);
  else
    for (uint32_t i = 0; i < m->vocabulary; i++) m->logits[i] = float16_to_float(half[i]);
  return m->logits;
}

heddle_status heddle__sampler_choose(heddle__sampler *m, void *row, heddle_dtype dtype, const int64_t *history,
                                     size_t n, uint64_t index, const heddle_sampling *s, int64_t *token,
                                     heddle_error *err) {
  float *x = floats_of(m, row, dtype);
  if (x == NULL || !make_groups(m)) return heddle__no_memory(err, "the logits");
  uint32_t which = 0;
  float best = 0;
  heddle_status status = HEDDLE_OK;
  if (!apply(m, x, history, n, s)) status = heddle__no_memory(err, "edits of logits");
  if (status == HEDDLE_OK) {
    best = argmax(m, x, &which);
    if (best == -INFINITY || best == INFINITY)
      status = heddle__fail(err, HEDDLE_EINVAL, "no token can be chosen: the greatest logit is %g", (double)best);
  }
  if (status == HEDDLE_OK) {
    *token = which;
    if (s->temperature > 0) status = heddle__sampler_draw(m, x, s, best, uniform(index, s->seed), token, err);
  }
  undo(m, x);
  return status;
}

static bool is_logits(heddle_dtype d) {
  return d.lanes == 1 && ((d.code == HEDDLE_DTYPE_FLOAT && (d.bits == 32 || d.bits == 16)) ||
                          (d.code == HEDDLE_DTYPE_BFLOAT && d.bits == 16));
}

heddle_status heddle_sample(const heddle_tensor *logits, const int64_t *history, size_t n, uint64_t index,
                            const heddle_sampling *sampling, int64_t *token, heddle_error *err) {
  if (logits == NULL || token == NULL || (history == NULL && n > 0))
    return heddle__fail(err, HEDDLE_EINVAL, "sample: logits, token or history is NULL");
  const uint32_t ndim = heddle_tensor_ndim(logits);
  const heddle_dtype dtype = heddle_tensor_dtype(logits);
  const int64_t words = ndim > 0 ? heddle_tensor_shape(logits)[ndim - 1] : 0;
  if (!is_logits(dtype) || heddle_tensor_device(logits) != NULL || !heddle_tensor_is_contiguous(logits) || words < 1 ||
      words > INT32_MAX || heddle_tensor_bytes(logits) == 0)
    return heddle__fail(err, HEDDLE_EINVAL, "sample: logits are rows of floats in host memory");
  heddle_sampling s;
  heddle_status status = heddle__sampling_take(sampling, (uint32_t)words, &s, err);
  if (status != HEDDLE_OK) return status;
  heddle__sampler m = {.vocabulary = (uint32_t)words};
  const size_t bytes = (size_t)words * (dtype.bits / 8U);
  char *row = (char *)heddle_tensor_data(logits) + heddle_tensor_bytes(logits) - bytes;
  if (dtype.bits == 32 && edits(&s, n)) { /* the caller's bytes stay as they are */
    m.logits = heddle__alloc((size_t)words, sizeof *m.logits);
    if (m.logits == NULL) return heddle__no_memory(err, "the logits");
    row = memcpy(m.logits, row, bytes);
  }
  status = heddle__sampler_choose(&m, row, dtype, history, n, index, &s, token, err);
  heddle__sampler_free(&m);
  return status;
}
