/* generate/batch_rows.c: the caches of all rows, and a run for a token of each. Texts have different lengths. Operators with a
 * length for each row (GroupQueryAttention) have caches that begin at row 0 and keep room behind them. Else all caches have one
 * length: a text's keys and values are its last ones, and the mask hides what is before them. No hole comes between tokens of
 * a text, so windows that count columns are right. */
#include <string.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/tensor.h"
#include "generate/batch.h"

enum { FIRST_ROWS = 256, SPARE_ROWS = 64 };

/* ---- whether it can be */

static heddle_status fixed(const heddle_generation_batch *b, const char *kind, const char *name, int64_t n,
                           heddle_error *err) {
  return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: dimension 0 of %s '%s' is %lld: several texts cannot share a run",
                      b->prompts->config.model_path, kind, name, (long long)n);
}

static heddle_status check_port(heddle_generation_batch *b, const heddle__generate_port *port, heddle_error *err) {
  heddle_io_info info = {.struct_size = sizeof info};
  if (port->index < 0) return HEDDLE_OK;
  heddle_status s = heddle_executor_input_info(b->ex, (uint32_t)port->index, &info, err);
  if (s != HEDDLE_OK || info.ndim == UINT32_MAX || info.shape[0] <= 0) return s;
  return fixed(b, "input", info.name, info.shape[0], err);
}

static heddle_status check_values(heddle_generation_batch *b, heddle_error *err) {
  const heddle_graph *graph = heddle_model_graph(b->prompts->model);
  heddle_value_info info = {.struct_size = sizeof info};
  for (uint32_t i = 0; i < heddle_graph_input_count(graph); i++) {
    info.struct_size = sizeof info;
    heddle_status s = heddle_graph_input(graph, i, &info, err);
    if (s != HEDDLE_OK) return s;
    if (heddle_executor_state_index(b->ex, info.name) >= 0 && info.ndim == 4 && info.shape[0] > 0)
      return fixed(b, "cache", info.name, info.shape[0], err);
  }
  info.struct_size = sizeof info;
  heddle_status s = heddle_graph_output(graph, b->prompts->logits, &info, err);
  if (s == HEDDLE_OK && info.ndim != UINT32_MAX && info.ndim > 0 && info.shape[0] > 0)
    return fixed(b, "output", info.name, info.shape[0], err);
  return s;
}

/* Its operator has a length for each row of the batch. */
static bool has_lengths(const heddle_graph *graph) {
  for (uint32_t i = 0; i < heddle_graph_node_count(graph); i++) {
    heddle_node_info node = {.struct_size = sizeof node};
    if (heddle_graph_node(graph, i, &node, NULL) == HEDDLE_OK && strcmp(node.op, "GroupQueryAttention") == 0)
      return true;
  }
  return false;
}

static heddle_status refuse(const heddle_generation_batch *b, const char *why, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: several texts cannot share a run: %s",
                      b->prompts->config.model_path, why);
}

heddle_status heddle__rows_begin(heddle_generation_batch *b, heddle_error *err) {
  const heddle_generator *g = b->prompts;
  if (g->config.by_positions) return refuse(b, "its caches have one length for all rows", err);
  if (g->exact_mask) return refuse(b, "its branches may depend on the longest one", err);
  b->ids = g->ids;
  b->mask = g->mask;
  b->positions = g->positions;
  b->ids.tensor = b->mask.tensor = b->positions.tensor = NULL;
  heddle_status s = check_port(b, &b->ids, err);
  if (s == HEDDLE_OK) s = check_port(b, &b->mask, err);
  if (s == HEDDLE_OK) s = check_port(b, &b->positions, err);
  if (s == HEDDLE_OK) s = check_values(b, err);
  if (s != HEDDLE_OK) return s;
  b->from_front = has_lengths(heddle_model_graph(g->model));
  if (b->mask.index < 0) return refuse(b, "the graph has no input with their lengths (attention_mask)", err);
  if (!b->from_front && g->config.shares)
    return refuse(b, "caches are shared, and no operator takes a length for each row", err);
  if (!b->from_front && b->positions.index < 0)
    return refuse(b, "the graph has no input with the positions of tokens (position_ids)", err);
  s = heddle__port_widen(&b->ids, b->ex, b->n_rows, 1, err);
  return s == HEDDLE_OK ? heddle__port_widen(&b->positions, b->ex, b->n_rows, 1, err) : s;
}

/* ---- caches */

static bool has_cache(const heddle_generation_request *r) {
  return r != NULL && r->state == HEDDLE__RUNS;
}

static int64_t longest(const heddle_generation_batch *b) {
  int64_t most = 0;
  for (uint32_t i = 0; i < b->n_rows; i++) {
    const heddle_generation_request *r = b->rows[i];
    if (r != NULL && (r->state == HEDDLE__RUNS || r->state == HEDDLE__JOINS) && (int64_t)r->cached > most)
      most = (int64_t)r->cached;
  }
  return most;
}

/* Rows for the texts that there are, and the next token. */
static int64_t length_for(const heddle_generation_batch *b) {
  const heddle_generator *g = b->prompts;
  const int64_t need = longest(b), most = g->max_length;
  if (!b->from_front) {
    const bool fits = b->length >= need && b->length < most && b->length <= 2 * need + SPARE_ROWS;
    return fits ? b->length : need;
  }
  if (g->fixed_rows > 0) return g->fixed_rows;
  if (b->length > need) return b->length;
  int64_t rows = FIRST_ROWS;
  while (rows <= need) rows *= 2;
  if (rows > most) rows = most;
  return rows > 1 ? rows : 2; /* a run of one row is a prompt's to the operator */
}

/* Where the first of n rows is in a cache of so many. */
static int64_t begin_of(const heddle_generation_batch *b, int64_t length, size_t n) {
  return b->from_front ? 0 : length - (int64_t)n;
}

/* n rows of each head of a text, between caches of one and of all texts. */
static void move(const heddle_generation_batch *b, const heddle__generate_cache *c, char *to, int64_t to_length,
                 const char *from, int64_t from_length, size_t n) {
  const size_t row = (size_t)c->size * heddle__dtype_bytes(c->dtype);
  for (int64_t h = 0; h < c->heads; h++)
    memcpy(to + (size_t)(h * to_length + begin_of(b, to_length, n)) * row,
           from + (size_t)(h * from_length + begin_of(b, from_length, n)) * row, n * row);
}

/* A cache of all texts with so many rows: of those that run, and of those that join. */
static heddle_status lay_out(heddle_generation_batch *b, uint32_t k, int64_t length, bool any, heddle_error *err) {
  const heddle__generate_cache *c = &b->prompts->caches[k];
  const size_t row = (size_t)(c->heads * c->size) * heddle__dtype_bytes(c->dtype);
  const int64_t shape[4] = {b->n_rows, c->heads, length, c->size};
  heddle_tensor *old = NULL, *new = NULL;
  heddle_status s = any ? heddle_executor_read_state(b->ex, c->state, &old, err) : HEDDLE_OK;
  if (s == HEDDLE_OK && old != NULL && length == b->length) new = heddle_tensor_retain(old);
  else if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, c->dtype, shape, 4, &new, err);
  for (uint32_t i = 0; i < b->n_rows && s == HEDDLE_OK; i++) {
    const heddle_generation_request *r = b->rows[i];
    char *to = (char *)heddle_tensor_data(new) + (size_t)i * (size_t)length * row;
    if (has_cache(r) && new == old) continue;
    memset(to, 0, (size_t)length * row);
    if (has_cache(r))
      move(b, c, to, length, (char *)heddle_tensor_data(old) + (size_t)i * (size_t)b->length * row, b->length,
           r->cached);
    else if (r != NULL && r->state == HEDDLE__JOINS)
      move(b, c, to, length, heddle_tensor_data(r->caches[k]), heddle_tensor_shape(r->caches[k])[2], r->cached);
  }
  if (s == HEDDLE_OK) s = heddle_executor_write_state(b->ex, c->state, new, err);
  heddle_tensor_release(old);
  heddle_tensor_release(new);
  return s;
}

heddle_status heddle__rows_join(heddle_generation_batch *b, heddle_error *err) {
  const int64_t length = length_for(b);
  const uint64_t began = heddle__now_ns();
  bool any = false, joins = false;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < b->n_rows; i++) {
    any = any || has_cache(b->rows[i]);
    joins = joins || (b->rows[i] != NULL && b->rows[i]->state == HEDDLE__JOINS);
  }
  if (!joins && length == b->length) return HEDDLE_OK;
  heddle_tensor_release(b->view);
  b->view = NULL;
  for (uint32_t k = 0; k < b->prompts->n_caches && s == HEDDLE_OK; k++)
    s = lay_out(b, k, length, any && b->length > 0, err);
  b->length = s == HEDDLE_OK ? length : 0;
  b->own.join_ns += heddle__now_ns() - began;
  return s;
}

/* ---- a run */

static heddle_status fill(heddle_generation_batch *b, heddle_error *err) {
  const int64_t columns = b->from_front ? b->length : b->length + 1;
  heddle_status s = heddle__port_widen(&b->mask, b->ex, b->n_rows, columns, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < b->n_rows; i++) {
    const heddle_generation_request *r = has_cache(b->rows[i]) ? b->rows[i] : NULL;
    const int64_t ones = r != NULL ? (int64_t)r->cached + 1 : 1; /* a row without a text sees itself */
    const int64_t first = b->from_front ? 0 : columns - ones;
    heddle__port_put(&b->ids, i, r != NULL ? r->tokens[r->cached] : 0);
    if (b->positions.index >= 0) heddle__port_put(&b->positions, i, ones - 1);
    for (int64_t j = 0; j < columns; j++) heddle__port_put(&b->mask, i * columns + j, j >= first && j < first + ones);
  }
  return HEDDLE_OK;
}

static heddle_status check(heddle_generation_batch *b, heddle_error *err) {
  const heddle__generate_config *c = &b->prompts->config;
  const uint64_t expected = (uint64_t)b->n_rows * b->prompts->vocabulary;
  heddle_state_info info = {.struct_size = sizeof info};
  heddle_status s = heddle_executor_state_info(b->ex, b->prompts->caches[0].state, &info, err);
  if (s == HEDDLE_OK && info.shape[2] != b->length)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: cache '%s' has %lld rows after a run; expected %lld", c->model_path,
                        info.output, (long long)info.shape[2], (long long)b->length);
  if (s == HEDDLE_OK) s = heddle_executor_view_output(b->ex, b->prompts->logits, &b->view, err);
  if (s == HEDDLE_OK && b->view->count != expected)
    s = heddle__fail(err, HEDDLE_EINVAL, "%s: output '%s' has %llu elements; expected %llu", c->model_path, c->logits,
                     (unsigned long long)b->view->count, (unsigned long long)expected);
  return s;
}

heddle_status heddle__rows_step(heddle_generation_batch *b, heddle_error *err) {
  heddle_status s = fill(b, err);
  heddle_tensor_release(b->view);
  b->view = NULL;
  if (s != HEDDLE_OK) return s;
  const uint64_t began = heddle__now_ns();
  s = heddle_executor_run(b->ex, HEDDLE_FOREVER, err);
  b->own.run_ns += heddle__now_ns() - began;
  if (s == HEDDLE_OK && !b->from_front) b->length++;
  if (s == HEDDLE_OK) s = check(b, err);
  if (s != HEDDLE_OK) {
    b->length = 0;
    return s;
  }
  b->own.runs++;
  for (uint32_t i = 0; i < b->n_rows; i++) {
    if (!has_cache(b->rows[i])) continue;
    b->rows[i]->cached++;
    b->own.computed++;
  }
  return HEDDLE_OK;
}

void *heddle__rows_logits(const heddle_generation_batch *b, uint32_t row) {
  const size_t bytes = (size_t)b->prompts->vocabulary * heddle__dtype_bytes(heddle_tensor_dtype(b->view));
  return (char *)heddle_tensor_data(b->view) + (size_t)row * bytes;
}
