/* generate/generator.c: generators: opened, forked, released; their tokens. */
#include <string.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/tensor.h"
#include "generate/generator.h"
#include "generate/gguf.h"

heddle_generator *heddle_generator_retain(heddle_generator *g) {
  atomic_fetch_add_explicit(&g->references, 1, memory_order_relaxed);
  return g;
}

void heddle_generator_release(heddle_generator *g) {
  if (g == NULL || atomic_fetch_sub_explicit(&g->references, 1, memory_order_acq_rel) != 1) return;
  heddle_generator_release(g->draft);
  heddle_tensor_release(g->view);
  heddle_executor_release(g->ex);
  heddle_tensor_release(g->ids.tensor);
  heddle_tensor_release(g->mask.tensor);
  heddle_tensor_release(g->positions.tensor);
  heddle_model_release(g->model);
  heddle__sampler_free(&g->sampler);
  heddle__generate_config_free(&g->config);
  heddle__free(g->caches);
  heddle__free(g->tokens);
  heddle__free(g);
}

/* graph NULL: the file that the configuration names. */
static heddle_status load(heddle_generator *g, heddle_context *ctx, const heddle_model_options *given,
                          const heddle_graph *graph, const heddle_params *params, heddle_error *err) {
  heddle_model_options o = {.struct_size = sizeof o};
  char *rules;
  if (given != NULL) memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
  o.struct_size = sizeof o;
  if (o.state != NULL || o.in_flight > 1)
    return heddle__fail(err, HEDDLE_EINVAL, "a generator has its own state rules and one run in flight");
  heddle_status s = heddle__generate_state_rules(&g->config, &rules, err);
  if (s != HEDDLE_OK) return s;
  o.state = rules;
  if (graph != NULL) o.trust = o.key = NULL; /* they are done with */
  if (graph != NULL) s = heddle_model_create(ctx, graph, params, &o, &g->model, err);
  else s = heddle_model_load(ctx, g->config.model_path, NULL, &o, &g->model, err);
  heddle__free(rules);
  return s != HEDDLE_OK ? s : heddle_executor_create(g->model, &g->ex, err);
}

static heddle_status load_gguf(heddle_generator *g, heddle_context *ctx, const char *path,
                               const heddle_model_options *given, heddle_error *err) {
  heddle_model_options o = {.struct_size = sizeof o};
  if (given != NULL) memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  heddle__generate_config_names(&g->config);
  g->config.path = heddle__strdup(path);
  g->config.model_path = heddle__strdup(path);
  if (g->config.path == NULL || g->config.model_path == NULL) return heddle__no_memory(err, "a path");
  heddle_status s = heddle__gguf_model(ctx, path, &o, g->max_length, &g->config, &graph, &params, err);
  if (s == HEDDLE_OK) s = load(g, ctx, given, graph, params, err);
  heddle_graph_release(graph);
  heddle_params_release(params);
  return s;
}

heddle_status heddle_generator_open(heddle_context *ctx, const char *path, const heddle_generator_options *options,
                                    heddle_generator **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the generator: out is NULL");
  *out = NULL;
  if (ctx == NULL || path == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a generator needs a context and a path");
  heddle_generator_options o = {0};
  if (options != NULL) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  heddle_generator *g = heddle__alloc(1, sizeof *g);
  if (g == NULL) return heddle__no_memory(err, "a generator");
  atomic_init(&g->references, 1);
  g->max_length = o.max_length;
  g->chunk = o.chunk;
  if (heddle__gguf_is(path)) {
    s = load_gguf(g, ctx, path, o.model, err);
  } else {
    s = heddle__generate_config_read(path, &g->config, err);
    if (s == HEDDLE_OK) s = load(g, ctx, o.model, NULL, NULL, err);
  }
  if (s == HEDDLE_OK) s = heddle__generate_ports(g, err);
  if (s == HEDDLE_OK) *out = g;
  else heddle_generator_release(g);
  return s;
}

/* ---- fork */

static heddle_status copy_config(heddle_generator *to, const heddle_generator *from, heddle_error *err) {
  to->config = from->config;
  to->config.model_path = heddle__strdup(from->config.model_path);
  to->config.path = heddle__strdup(from->config.path);
  to->caches = heddle__alloc(from->n_caches, sizeof *to->caches);
  if (to->config.model_path == NULL || to->config.path == NULL || to->caches == NULL)
    return heddle__no_memory(err, "a generator");
  memcpy(to->caches, from->caches, from->n_caches * sizeof *to->caches);
  to->n_caches = from->n_caches;
  to->ids = from->ids;
  to->mask = from->mask;
  to->positions = from->positions;
  to->ids.tensor = to->mask.tensor = to->positions.tensor = NULL;
  to->logits = from->logits;
  to->fixed_rows = from->fixed_rows;
  to->takes_padding = from->takes_padding;
  to->exact_mask = from->exact_mask;
  to->vocabulary = to->sampler.vocabulary = from->vocabulary;
  to->max_length = from->max_length;
  to->chunk = from->chunk;
  return HEDDLE_OK;
}

static heddle_status copy_tokens(heddle_generator *to, heddle_generator *from, heddle_error *err) {
  const int64_t shape[2] = {1, from->vocabulary};
  if (from->n == 0) return HEDDLE_OK;
  heddle_status s = heddle__generate_rewind(from, from->n, err);
  if (s == HEDDLE_OK) s = heddle_generator_append(to, from->tokens, from->n, err);
  if (s == HEDDLE_OK) s = heddle_executor_fork_state(from->ex, to->ex, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, heddle_tensor_dtype(from->view), shape, 2, &to->view, err);
  if (s != HEDDLE_OK) return s;
  memcpy(heddle_tensor_data(to->view), heddle__generate_row(from), (size_t)heddle_tensor_bytes(to->view));
  to->cached = from->cached;
  to->rows = from->rows;
  return HEDDLE_OK;
}

heddle_status heddle__generator_like(const heddle_generator *g, heddle_generator **out, heddle_error *err) {
  heddle_generator *made = heddle__alloc(1, sizeof *made);
  *out = NULL;
  if (made == NULL) return heddle__no_memory(err, "a generator");
  atomic_init(&made->references, 1);
  made->model = heddle_model_retain(g->model);
  heddle_status s = copy_config(made, g, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(made->model, &made->ex, err);
  if (s == HEDDLE_OK) *out = made;
  else heddle_generator_release(made);
  return s;
}

heddle_status heddle_generator_fork(heddle_generator *g, heddle_generator **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the generator: out is NULL");
  *out = NULL;
  if (g == NULL) return heddle__fail(err, HEDDLE_EINVAL, "fork: the generator is NULL");
  heddle_status s = g->n > 0 ? heddle_generator_evaluate(g, HEDDLE_FOREVER, err) : heddle__check_fork(err);
  heddle_generator *made = NULL;
  if (s == HEDDLE_OK) s = heddle__generator_like(g, &made, err);
  if (s != HEDDLE_OK) return s;
  s = copy_tokens(made, g, err);
  if (s == HEDDLE_OK) *out = made;
  else heddle_generator_release(made);
  return s;
}

/* ---- what there is */

heddle_status heddle_generator_get_info(heddle_generator *g, heddle_generator_info *out, heddle_error *err) {
  if (g == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "info: the generator or out is NULL");
  heddle_generator_info all = {.type = g->config.type,
                               .model_path = g->config.model_path,
                               .model = g->model,
                               .stop_tokens = g->config.stops,
                               .n_stop_tokens = g->config.n_stops,
                               .vocabulary = g->vocabulary,
                               .max_length = g->max_length,
                               .layers = (uint32_t)g->config.layers,
                               .bos_token = g->config.bos};
  all.cache_rows = g->config.shares ? g->rows : (int64_t)g->cached;
  for (uint32_t i = 0; i < g->n_caches; i++)
    all.cache_bytes +=
        (uint64_t)(g->caches[i].heads * all.cache_rows * g->caches[i].size) * heddle__dtype_bytes(g->caches[i].dtype);
  return heddle__info_give(out, &all, sizeof all, err);
}

heddle_status heddle_generator_get_stats(heddle_generator *g, heddle_generator_stats *out, heddle_error *err) {
  if (g == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "stats: the generator or out is NULL");
  return heddle__info_give(out, &g->stats, sizeof g->stats, err);
}

/* ---- tokens */

heddle_status heddle__generate_check_tokens(const heddle_generator *g, const int64_t *tokens, size_t n,
                                            heddle_error *err) {
  for (size_t i = 0; i < n; i++)
    if (tokens[i] < 0 || tokens[i] >= (int64_t)g->vocabulary)
      return heddle__fail(err, HEDDLE_EINVAL, "token %zu of those given for '%s' is %lld; expected 0 to %u", i,
                          g->config.ids, (long long)tokens[i], (unsigned)g->vocabulary - 1);
  return HEDDLE_OK;
}

heddle_status heddle_generator_append(heddle_generator *g, const int64_t *tokens, size_t n, heddle_error *err) {
  if (g == NULL || (tokens == NULL && n > 0))
    return heddle__fail(err, HEDDLE_EINVAL, "append: the generator or the tokens are NULL");
  if (n > g->max_length - g->n)
    return heddle__fail(err, HEDDLE_ELIMIT, "there are %zu tokens, and %zu more are given; the most is %u (max_length)",
                        g->n, n, (unsigned)g->max_length);
  heddle_status s = heddle__generate_check_tokens(g, tokens, n, err);
  if (s == HEDDLE_OK) s = heddle__generate_settle(g, heddle__generate_until(0), err);
  if (s != HEDDLE_OK) return s;
  if (g->n + n > g->room) {
    size_t room = g->room > 0 ? g->room : 64;
    while (room < g->n + n) room *= 2;
    int64_t *grown = heddle__grow(g->tokens, g->room, room, sizeof *grown);
    if (grown == NULL) return heddle__no_memory(err, "tokens");
    g->tokens = grown;
    g->room = room;
  }
  size_t known;
  s = heddle__speculate_take(g, tokens, n, &known, err);
  if (s != HEDDLE_OK) return s;
  if (n > 0) memcpy(g->tokens + g->n, tokens, n * sizeof *tokens);
  g->n += n;
  if (n > known) {
    heddle_tensor_release(g->view);
    g->view = NULL;
  }
  return HEDDLE_OK;
}

const int64_t *heddle_generator_tokens(const heddle_generator *g, size_t *n) {
  if (n != NULL) *n = g != NULL ? g->n : 0;
  return g != NULL ? g->tokens : NULL;
}

heddle_status heddle_generator_truncate(heddle_generator *g, size_t n, heddle_error *err) {
  if (g == NULL) return heddle__fail(err, HEDDLE_EINVAL, "truncate: the generator is NULL");
  if (n > g->n) return heddle__fail(err, HEDDLE_EINVAL, "there are %zu tokens; %zu cannot be kept", g->n, n);
  heddle_status s = heddle__check_fork(err);
  if (s == HEDDLE_OK) s = heddle__generate_settle(g, HEDDLE_FOREVER, err);
  if (s == HEDDLE_OK) s = heddle__generate_rewind(g, n, err);
  if (s != HEDDLE_OK) return s;
  g->n = n;
  atomic_store_explicit(&g->cancelled, false, memory_order_release);
  return HEDDLE_OK;
}

void heddle_generator_cancel(heddle_generator *g) {
  if (g == NULL) return;
  atomic_store_explicit(&g->cancelled, true, memory_order_release);
  heddle_executor_cancel(g->ex, NULL);
  heddle_generator_cancel(g->draft);
}
