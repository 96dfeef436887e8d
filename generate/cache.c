/* generate/cache.c: rows of the caches, which are state values of the executor. Caches that are shared have rows for later
 * tokens: twice as many when they run out. Others grow by a run, and are cut. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"
#include "generate/generator.h"

enum { FIRST_ROWS = 256 };

/* A cache of `rows` rows with those of `old`, which may be NULL. */
static heddle_status widen(heddle_generator *g, const heddle__generate_cache *c, int64_t rows, int64_t kept,
                           heddle_error *err) {
  heddle_tensor *old = NULL, *new = NULL;
  const int64_t shape[4] = {1, c->heads, rows, c->size};
  heddle_status s = heddle_tensor_create(NULL, c->dtype, shape, 4, &new, err);
  if (s == HEDDLE_OK && kept > 0) s = heddle_executor_read_state(g->ex, c->state, &old, err);
  if (s == HEDDLE_OK && kept > 0) {
    const size_t row = (size_t)c->size * heddle__dtype_bytes(c->dtype), had = (size_t)g->rows * row;
    for (int64_t h = 0; h < c->heads; h++)
      memcpy((char *)heddle_tensor_data(new) + (size_t)h * (size_t)rows * row,
             (const char *)heddle_tensor_data(old) + (size_t)h * had, (size_t)kept * row);
  }
  if (s == HEDDLE_OK) s = heddle_executor_write_state(g->ex, c->state, new, err);
  heddle_tensor_release(old);
  heddle_tensor_release(new);
  return s;
}

heddle_status heddle__generate_reserve(heddle_generator *g, int64_t rows, heddle_error *err) {
  if (!g->config.shares || rows <= g->rows) return HEDDLE_OK;
  int64_t most = FIRST_ROWS;
  while (most < rows) most *= 2;
  if (most > g->max_length) most = g->max_length;
  if (g->fixed_rows > 0) most = g->fixed_rows;
  for (uint32_t i = 0; i < g->n_caches; i++) {
    heddle_status s = widen(g, &g->caches[i], most, (int64_t)g->cached, err);
    if (s != HEDDLE_OK) { /* caches of two lengths: all is computed again */
      g->rows = 0;
      g->cached = 0;
      heddle_tensor_release(g->view);
      g->view = NULL;
      return s;
    }
  }
  g->rows = most;
  return HEDDLE_OK;
}

heddle_status heddle__generate_cut(heddle_generator *g, size_t n, heddle_error *err) {
  if (g->config.shares || n >= g->cached + g->ahead) return HEDDLE_OK;
  return n == 0 ? heddle_executor_reset_state(g->ex, HEDDLE_STATE_ALL, err)
                : heddle_executor_truncate_state(g->ex, HEDDLE_STATE_ALL, (int64_t)n, err);
}

heddle_status heddle__generate_rewind(heddle_generator *g, size_t n, heddle_error *err) {
  const size_t kept = n < g->cached ? n : g->cached;
  heddle_status s = heddle__generate_cut(g, kept, err);
  if (s != HEDDLE_OK) return s;
  g->ahead = 0;
  if (kept == g->cached) return HEDDLE_OK;
  g->cached = kept;
  heddle_tensor_release(g->view);
  g->view = NULL;
  return HEDDLE_OK;
}
