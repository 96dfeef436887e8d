/* generate/loop.c: logits, the next token, and the loop. */
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "core/tensor.h"
#include "generate/generator.h"
#include "plugins/common/float16.h"

heddle_status heddle_generator_evaluate(heddle_generator *g, uint64_t timeout_ns, heddle_error *err) {
  if (g == NULL) return heddle__fail(err, HEDDLE_EINVAL, "evaluate: the generator is NULL");
  const uint64_t began = heddle__now_ns();
  heddle_status s = heddle__generate_evaluate(g, heddle__generate_until(timeout_ns), err);
  g->stats.all_ns += heddle__now_ns() - began;
  return s;
}

heddle_status heddle_generator_logits(heddle_generator *g, uint64_t timeout_ns, heddle_tensor **out,
                                      heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the logits: out is NULL");
  *out = NULL;
  heddle_status s = heddle_generator_evaluate(g, timeout_ns, err);
  if (s != HEDDLE_OK) return s;
  const int64_t words = g->vocabulary;
  const heddle_dtype dtype = heddle_tensor_dtype(g->view);
  s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, &words, 1, out, err);
  if (s != HEDDLE_OK) return s;
  float *to = heddle_tensor_data(*out);
  const uint16_t *half = heddle__generate_row(g);
  if (dtype.bits == 32) memcpy(to, half, (size_t)words * sizeof *to);
  for (int64_t i = 0; i < words && dtype.bits == 16; i++)
    to[i] = dtype.code == HEDDLE_DTYPE_BFLOAT ? bfloat16_to_float(half[i]) : float16_to_float(half[i]);
  return HEDDLE_OK;
}

/* Sampling options that were checked. */
static heddle_status next(heddle_generator *g, const heddle_sampling *s, uint64_t until_ns, int64_t *token,
                          heddle_error *err) {
  const uint64_t began = heddle__now_ns();
  if (g->n >= g->max_length)
    return heddle__fail(err, HEDDLE_ELIMIT, "there are %zu tokens, which is the most (max_length)", g->n);
  g->sampling = s;
  heddle_status status = heddle__generate_evaluate(g, until_ns, err);
  g->sampling = NULL;
  const uint64_t ready = heddle__now_ns();
  if (status == HEDDLE_OK) {
    status = heddle__sampler_choose(&g->sampler, heddle__generate_row(g), heddle_tensor_dtype(g->view), g->tokens, g->n,
                                    g->n, s, token, err);
    if (status != HEDDLE_OK) {
      heddle__prefix(err, status, "output '%s': ", g->config.logits);
      heddle__generate_blame(g, status, err);
    }
    g->stats.sampled++;
    g->stats.sample_ns += heddle__now_ns() - ready;
  }
  if (status == HEDDLE_OK) status = heddle_generator_append(g, token, 1, err);
  g->stats.all_ns += heddle__now_ns() - began;
  return status;
}

heddle_status heddle_generator_next(heddle_generator *g, const heddle_sampling *sampling, uint64_t timeout_ns,
                                    int64_t *token, heddle_error *err) {
  heddle_sampling s;
  if (g == NULL || token == NULL) return heddle__fail(err, HEDDLE_EINVAL, "next: the generator or token is NULL");
  heddle_status status = heddle__sampling_take(sampling, g->vocabulary, &s, err);
  return status != HEDDLE_OK ? status : next(g, &s, heddle__generate_until(timeout_ns), token, err);
}

heddle_status heddle__generation_take(const heddle_generation *given, heddle_generation *out, heddle_error *err) {
  *out = (heddle_generation){0};
  if (given != NULL) memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
  if ((out->flags & ~HEDDLE_GENERATE_PAST_STOPS) != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "the flags %#x of a generation are not known", (unsigned)out->flags);
  if (out->stop_tokens == NULL && out->n_stop_tokens > 0)
    return heddle__fail(err, HEDDLE_EINVAL, "%zu stop tokens are at NULL", out->n_stop_tokens);
  return HEDDLE_OK;
}

static bool is_in(const int64_t *list, size_t n, int64_t token) {
  for (size_t i = 0; i < n; i++)
    if (list[i] == token) return true;
  return false;
}

bool heddle__generation_stops(const heddle__generate_config *c, const heddle_generation *o, int64_t token) {
  const uint32_t n_stops = (o->flags & HEDDLE_GENERATE_PAST_STOPS) != 0 ? 0 : c->n_stops;
  return is_in(c->stops, n_stops, token) || is_in(o->stop_tokens, o->n_stop_tokens, token);
}

static heddle_status loop(heddle_generator *g, const heddle_generation *o, const heddle_sampling *sampling,
                          heddle_generated *done, heddle_error *err) {
  const uint64_t began = heddle__now_ns(),
                 until = o->deadline_ns > 0 ? heddle__generate_until(o->deadline_ns) : UINT64_MAX;
  uint64_t first = began;
  done->end = HEDDLE_GENERATION_LENGTH;
  while ((o->max_tokens == 0 || done->tokens < o->max_tokens) && g->n < g->max_length) {
    int64_t token;
    heddle_status s = next(g, sampling, until, &token, err);
    if (s != HEDDLE_OK) return s;
    const uint64_t now = heddle__now_ns();
    if (done->tokens++ == 0) {
      first = now;
      done->first_ns = now - began;
    }
    done->rest_ns = now - first;
    if (heddle__generation_stops(&g->config, o, token)) {
      done->end = HEDDLE_GENERATION_STOP;
      break;
    }
    if (o->token != NULL && o->token(o->user, token) != 0) {
      done->end = HEDDLE_GENERATION_CALLBACK;
      break;
    }
  }
  return HEDDLE_OK;
}

heddle_status heddle_generator_generate(heddle_generator *g, const heddle_generation *options, heddle_generated *out,
                                        heddle_error *err) {
  heddle_generation o;
  heddle_generated done = {0};
  heddle_sampling sampling;
  if (g == NULL) return heddle__fail(err, HEDDLE_EINVAL, "generate: the generator is NULL");
  heddle_status s = heddle__generation_take(options, &o, err);
  if (s == HEDDLE_OK) s = heddle__sampling_take(o.sampling, g->vocabulary, &sampling, err);
  if (s == HEDDLE_OK) s = loop(g, &o, &sampling, &done, err);
  heddle_status given =
      out != NULL ? heddle__info_give(out, &done, sizeof done, s == HEDDLE_OK ? err : NULL) : HEDDLE_OK;
  return s != HEDDLE_OK ? s : given;
}
