/* generate/ports.c: the model's inputs, outputs and caches, and whether the configuration fits them. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"
#include "generate/generator.h"

enum { MOST_CHUNK = 256, MOST_LOGITS = 1 << 24 };

/* A name with "%d" replaced. */
static void name_of(const char *pattern, int64_t layer, char out[HEDDLE__GENERATE_NAME + 24]) {
  const char *at = strchr(pattern, '%');
  snprintf(out, HEDDLE__GENERATE_NAME + 24, "%.*s%lld%s", (int)(at - pattern), pattern, (long long)layer, at + 2);
}

static void add_rule(char *out, size_t size, const char *past, const char *present) {
  const char *a = strchr(past, '%'), *b = strchr(present, '%');
  const char *sign = strchr(past, ':') != NULL || strchr(present, ':') != NULL ? "=" : ":";
  const size_t n = strlen(out);
  snprintf(out + n, size - n, "%s%.*s*%s%s%.*s*%s", n > 0 ? "," : "", (int)(a - past), past, a + 2, sign,
           (int)(b - present), present, b + 2);
}

heddle_status heddle__generate_state_rules(const heddle__generate_config *c, char **out, heddle_error *err) {
  enum { ROOM = 8 * HEDDLE__GENERATE_NAME };
  *out = heddle__alloc(ROOM, 1);
  if (*out == NULL) return heddle__no_memory(err, "the rules of state values");
  for (int k = 0; k < 2; k++) add_rule(*out, ROOM, c->past[k], c->present[k]);
  return HEDDLE_OK;
}

/* ---- inputs */

static bool is_whole(heddle_dtype d) {
  return d.code == HEDDLE_DTYPE_INT && d.lanes == 1 && (d.bits == 64 || d.bits == 32);
}

static heddle_status take_port(heddle_generator *g, heddle__generate_port *port, uint32_t i, const heddle_io_info *info,
                               heddle_error *err) {
  char dtype[32], shape[128];
  const bool has_shape = info->ndim != UINT32_MAX;
  if (!is_whole(info->dtype) || (has_shape && (info->ndim != 2 || (info->shape[0] > 0 && info->shape[0] != 1)))) {
    heddle__dtype_name(info->dtype, dtype);
    if (has_shape) heddle__shape_name(info->shape, info->ndim, shape, sizeof shape);
    return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                        "%s: input '%s' is %s %s; a generator gives int64 or int32 of [1, length]",
                        g->config.model_path, info->name, dtype, has_shape ? shape : "");
  }
  port->index = (int32_t)i;
  port->dtype = info->dtype;
  return HEDDLE_OK;
}

static heddle_status take_inputs(heddle_generator *g, heddle_error *err) {
  const heddle__generate_config *c = &g->config;
  g->ids.index = g->mask.index = g->positions.index = -1;
  for (uint32_t i = 0; i < heddle_executor_input_count(g->ex); i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    heddle_status s = heddle_executor_input_info(g->ex, i, &info, err);
    if (s != HEDDLE_OK) return s;
    if (strcmp(info.name, c->ids) == 0) s = take_port(g, &g->ids, i, &info, err);
    else if (strcmp(info.name, c->mask) == 0) s = take_port(g, &g->mask, i, &info, err);
    else if (strcmp(info.name, c->positions) == 0) s = take_port(g, &g->positions, i, &info, err);
    else if (info.is_param == 0)
      s = heddle__fail(
          err, HEDDLE_EUNSUPPORTED,
          "%s: the graph has input '%s', which a generator does not give (it gives '%s', '%s', '%s' and caches)",
          c->model_path, info.name, c->ids, c->mask, c->positions);
    if (s != HEDDLE_OK) return s;
  }
  if (g->ids.index < 0)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: the graph has no input '%s'", c->model_path, c->ids);
  if (c->by_positions ? g->positions.index < 0 : c->shares && g->mask.index < 0)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: caches are shared, and the graph has no input '%s' with their lengths",
                        c->model_path, c->mask);
  return HEDDLE_OK;
}

/* ---- caches */

/* The input as the file declares it; false: it does not. */
static bool declared(const heddle_graph *graph, const char *name, heddle_value_info *out) {
  for (uint32_t i = 0; i < heddle_graph_input_count(graph); i++) {
    *out = (heddle_value_info){.struct_size = sizeof *out};
    if (heddle_graph_input(graph, i, out, NULL) == HEDDLE_OK && strcmp(out->name, name) == 0) return true;
  }
  return false;
}

/* A dimension that the graph and the configuration give; 0 in either: it does not say. */
static heddle_status agree(const heddle_generator *g, const char *name, uint32_t dim, const char *key, int64_t graph,
                           int64_t config, int64_t *out, heddle_error *err) {
  if (graph > 0 && config > 0 && graph != config)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: dimension %u of '%s' is %lld, and %s of %s is %lld",
                        g->config.model_path, (unsigned)dim, name, (long long)graph, key, g->config.path,
                        (long long)config);
  *out = graph > 0 ? graph : config;
  if (*out <= 0)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: dimension %u of '%s' is open, and %s has no %s", g->config.model_path,
                        (unsigned)dim, name, g->config.path, key);
  return HEDDLE_OK;
}

static heddle_status take_cache(heddle_generator *g, const char *pattern, int64_t layer, heddle__generate_cache *out,
                                heddle_error *err) {
  char name[HEDDLE__GENERATE_NAME + 24];
  heddle_value_info info;
  name_of(pattern, layer, name);
  const int32_t state = heddle_executor_state_index(g->ex, name);
  if (state < 0)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: %s says that there are %lld layers, and the graph has no cache '%s'",
                        g->config.model_path, g->config.path, (long long)g->config.layers, name);
  if (!declared(heddle_model_graph(g->model), name, &info) || info.ndim != 4)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: cache '%s' has not the dimensions [batch, heads, length, size]",
                        g->config.model_path, name);
  out->state = (uint32_t)state;
  out->dtype = info.dtype;
  if (info.shape[2] > 0) {
    if (g->fixed_rows > 0 && g->fixed_rows != info.shape[2])
      return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: cache '%s' has %lld rows, and another one %lld",
                          g->config.model_path, name, (long long)info.shape[2], (long long)g->fixed_rows);
    g->fixed_rows = info.shape[2];
  }
  heddle_status s = agree(g, name, 1, "num_key_value_heads", info.shape[1], g->config.kv_heads, &out->heads, err);
  return s != HEDDLE_OK ? s : agree(g, name, 3, "head_size", info.shape[3], g->config.head_size, &out->size, err);
}

static heddle_status take_caches(heddle_generator *g, heddle_error *err) {
  const uint32_t n = heddle_executor_state_count(g->ex);
  if (g->config.layers == 0) g->config.layers = n / 2;
  if (n == 0) return heddle__fail(err, HEDDLE_EINVAL, "%s: the graph has no caches", g->config.model_path);
  g->caches = heddle__alloc(n, sizeof *g->caches);
  if (g->caches == NULL) return heddle__no_memory(err, "a generator's caches");
  for (int64_t i = 0; i < g->config.layers; i++)
    for (int k = 0; k < 2; k++) {
      heddle__generate_cache cache;
      heddle_status s = take_cache(g, g->config.past[k], i, &cache, err);
      if (s != HEDDLE_OK) return s;
      g->caches[g->n_caches++] = cache; /* each is another state: no more than there are */
    }
  if (g->n_caches != n) {
    heddle_state_info info = {.struct_size = sizeof info};
    for (uint32_t i = 0, k; i < n; i++) {
      for (k = 0; k < g->n_caches && g->caches[k].state != i;) k++;
      heddle_status s = k == g->n_caches ? heddle_executor_state_info(g->ex, i, &info, err) : HEDDLE_OK;
      if (s != HEDDLE_OK) return s;
      if (k == g->n_caches) break;
    }
    return heddle__fail(err, HEDDLE_EINVAL,
                        "%s: %s says that there are %lld layers, and the graph has the cache '%s' too",
                        g->config.model_path, g->config.path, (long long)g->config.layers, info.input);
  }
  return HEDDLE_OK;
}

/* ---- logits */

static heddle_status take_logits(heddle_generator *g, heddle_error *err) {
  const heddle_graph *graph = heddle_model_graph(g->model);
  const heddle__generate_config *c = &g->config;
  heddle_value_info info = {.struct_size = sizeof info};
  int64_t words = 0;
  uint32_t i = 0;
  for (; i < heddle_graph_output_count(graph); i++)
    if (heddle_graph_output(graph, i, &info, NULL) == HEDDLE_OK && strcmp(info.name, c->logits) == 0) break;
  if (i == heddle_graph_output_count(graph))
    return heddle__fail(err, HEDDLE_EINVAL, "%s: the graph has no output '%s'", c->model_path, c->logits);
  const bool has_shape = info.ndim != UINT32_MAX;
  if (has_shape && info.ndim != 2 && info.ndim != 3)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: output '%s' has %u dimensions; expected [batch, length, vocabulary]",
                        c->model_path, c->logits, (unsigned)info.ndim);
  heddle_status s = agree(g, c->logits, has_shape ? info.ndim - 1 : 2, "vocab_size",
                          has_shape ? info.shape[info.ndim - 1] : 0, c->vocabulary, &words, err);
  if (s != HEDDLE_OK) return s;
  g->logits = i;
  g->vocabulary = g->sampler.vocabulary = (uint32_t)words;
  g->takes_padding = c->by_positions || (c->shares && has_shape && info.ndim == 3 && info.shape[1] != 1);
  for (uint32_t k = 0; k < c->n_stops; k++)
    if (c->stops[k] >= words)
      return heddle__fail(err, HEDDLE_EINVAL, "%s: eos_token_id %lld is not in the vocabulary of '%s', which has %lld",
                          c->path, (long long)c->stops[k], c->logits, (long long)words);
  if (c->bos >= words)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: bos_token_id %lld is not in the vocabulary of '%s', which has %lld",
                        c->path, (long long)c->bos, c->logits, (long long)words);
  return HEDDLE_OK;
}

static bool has_branches(const heddle_graph *graph) {
  for (uint32_t k = 0; k < heddle_graph_node_count(graph); k++)
    if (heddle_graph_inner(graph, k, 0, NULL) != NULL) return true;
  return false;
}

static heddle_status take_lengths(heddle_generator *g, uint32_t max_length, uint32_t chunk, heddle_error *err) {
  heddle__generate_config *c = &g->config;
  int64_t most = c->context > 0 ? c->context : INT32_MAX;
  if (g->fixed_rows > 0) {
    c->shares = true;
    if (most > g->fixed_rows) most = g->fixed_rows;
  }
  if (max_length > most)
    return heddle__fail(err, HEDDLE_EINVAL, "max_length is %u, and the model takes %lld tokens at most",
                        (unsigned)max_length, (long long)most);
  if (max_length == 0) max_length = (uint32_t)(c->max_length > 0 && c->max_length < most ? c->max_length : most);
  g->max_length = max_length;
  const uint32_t fits = g->vocabulary < MOST_LOGITS ? MOST_LOGITS / g->vocabulary : 1;
  g->chunk = chunk > 0 ? chunk : fits < MOST_CHUNK ? fits : MOST_CHUNK;
  g->exact_mask = has_branches(heddle_model_graph(g->model));
  if (g->exact_mask) g->takes_padding = false;
  return HEDDLE_OK;
}

heddle_status heddle__generate_ports(heddle_generator *g, heddle_error *err) {
  const uint32_t max_length = g->max_length, chunk = g->chunk;
  heddle_status s = take_inputs(g, err);
  if (s == HEDDLE_OK) s = take_caches(g, err);
  if (s == HEDDLE_OK) s = take_logits(g, err);
  return s != HEDDLE_OK ? s : take_lengths(g, max_length, chunk, err);
}
