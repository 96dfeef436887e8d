/* generate/evaluate.c: runs of the model for tokens that are not in the caches yet. */
#include <string.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/tensor.h"
#include "generate/generator.h"

static const uint64_t cancel_ns = UINT64_C(2000000000); /* how long a run that is cancelled is waited for */

uint64_t heddle__generate_until(uint64_t timeout_ns) {
  const uint64_t now = heddle__now_ns();
  return timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
}

uint64_t heddle__generate_left(uint64_t until_ns) {
  const uint64_t now = heddle__now_ns();
  return until_ns == UINT64_MAX ? HEDDLE_FOREVER : until_ns > now ? until_ns - now : 0;
}

void *heddle__generate_row(const heddle_generator *g) {
  const size_t bytes = (size_t)g->vocabulary * heddle__dtype_bytes(heddle_tensor_dtype(g->view));
  return (char *)heddle_tensor_data(g->view) + (size_t)g->view_row * bytes;
}

/* ---- inputs */

heddle_status heddle__port_widen(heddle__generate_port *port, heddle_executor *ex, int64_t rows, int64_t columns,
                                 heddle_error *err) {
  if (port->index < 0 || (port->tensor != NULL && port->columns == columns)) return HEDDLE_OK;
  const int64_t shape[2] = {rows, columns};
  heddle_tensor *t;
  heddle_status s = heddle_tensor_create(NULL, port->dtype, shape, 2, &t, err);
  if (s != HEDDLE_OK) return s;
  s = heddle_executor_bind_input(ex, (uint32_t)port->index, t, err);
  if (s != HEDDLE_OK) {
    heddle_tensor_release(t);
    return s;
  }
  heddle_tensor_release(port->tensor);
  port->tensor = t;
  port->columns = columns;
  return HEDDLE_OK;
}

/* Tokens that a run computes, of those that are not cached, and with guesses or padding. */
static size_t count_of(const heddle_generator *g, int64_t *rows) {
  size_t n = g->n - g->cached, padded = 1;
  if (n > g->chunk) n = g->chunk;
  *rows = (int64_t)(n + g->n_guess);
  if (n > 1 && g->takes_padding) {
    while (padded < n) padded *= 2;
    if (padded > g->chunk) padded = g->chunk;
    if (g->cached + padded > g->max_length) padded = g->max_length - g->cached;
    *rows = (int64_t)padded;
  }
  return n;
}

static heddle_status fill_mask(heddle_generator *g, int64_t ones, heddle_error *err) {
  heddle__generate_port *mask = &g->mask;
  const heddle_tensor *before = mask->tensor;
  heddle_status s = heddle__port_widen(mask, g->ex, 1, g->config.shares && !g->exact_mask ? g->rows : ones, err);
  if (s != HEDDLE_OK) return s;
  if (mask->tensor != before) g->mask_ones = 0;
  for (; g->mask_ones < ones; g->mask_ones++) heddle__port_put(mask, g->mask_ones, 1);
  while (g->mask_ones > ones) heddle__port_put(mask, --g->mask_ones, 0);
  return HEDDLE_OK;
}

static heddle_status fill(heddle_generator *g, size_t n, int64_t rows, heddle_error *err) {
  heddle_status s = heddle__generate_reserve(g, (int64_t)g->cached + rows, err);
  if (s == HEDDLE_OK) s = heddle__port_widen(&g->ids, g->ex, 1, rows, err);
  if (s != HEDDLE_OK) return s;
  for (size_t i = 0; i < (size_t)rows; i++)
    heddle__port_put(&g->ids, (int64_t)i, i < n ? g->tokens[g->cached + i] : i < n + g->n_guess ? g->guess[i - n] : 0);
  if (g->mask.index >= 0) s = fill_mask(g, (int64_t)g->cached + rows, err);
  if (s != HEDDLE_OK || g->positions.index < 0) return s;
  s = heddle__port_widen(&g->positions, g->ex, 1, rows, err);
  for (int64_t i = 0; i < rows && s == HEDDLE_OK; i++) heddle__port_put(&g->positions, i, (int64_t)g->cached + i);
  return s;
}

/* ---- runs */

/* The caches are as long as the run must have made them: the graph does what the configuration says. */
static heddle_status check_caches(heddle_generator *g, heddle_error *err) {
  const int64_t rows = g->config.shares ? g->rows : (int64_t)(g->cached + g->ahead);
  heddle_state_info info = {.struct_size = sizeof info};
  heddle_status s = heddle_executor_state_info(g->ex, g->caches[0].state, &info, err);
  if (s != HEDDLE_OK || info.shape[2] == rows) return s;
  return heddle__fail(err, HEDDLE_EINVAL, "%s: cache '%s' has %lld rows after a run; expected %lld, since %s %s",
                      g->config.model_path, info.output, (long long)info.shape[2], (long long)rows, g->config.path,
                      g->config.shares ? "has past_present_share_buffer" : "does not have past_present_share_buffer");
}

static heddle_status take_logits(heddle_generator *g, size_t n, int64_t rows, heddle_error *err) {
  heddle_status s = heddle_executor_view_output(g->ex, g->logits, &g->view, err);
  if (s != HEDDLE_OK) return s;
  const uint32_t ndim = heddle_tensor_ndim(g->view);
  const int64_t *shape = heddle_tensor_shape(g->view), words = ndim > 0 ? shape[ndim - 1] : 0;
  const int64_t have = words > 0 ? (int64_t)(g->view->count / (uint64_t)words) : 0;
  char text[128];
  if (words == (int64_t)g->vocabulary && (have == rows || (have == 1 && g->ahead == 0))) {
    g->view_row = have == rows ? (int64_t)n - 1 : 0;
    return HEDDLE_OK;
  }
  heddle__shape_name(shape, ndim, text, sizeof text);
  heddle_tensor_release(g->view);
  g->view = NULL;
  if (words == (int64_t)g->vocabulary && have == 1)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                        "%s: output '%s' has the logits of the last token alone, so that a draft's guesses cannot be "
                        "checked",
                        g->config.model_path, g->config.logits);
  return heddle__fail(err, HEDDLE_EINVAL, "%s: output '%s' is %s; expected [1, %lld, %u]", g->config.model_path,
                      g->config.logits, text, (long long)rows, (unsigned)g->vocabulary);
}

/* A run that ended. */
static heddle_status finish(heddle_generator *g, heddle_status s, heddle_error *err) {
  const size_t n = g->pending;
  g->pending = 0;
  if (s != HEDDLE_OK) return s;
  g->cached += n;
  g->ahead = g->pending_ahead;
  g->stats.runs++;
  g->stats.guessed += g->ahead;
  g->stats.computed += n;
  s = check_caches(g, err);
  if (s == HEDDLE_OK && g->cached == g->n) s = take_logits(g, n, g->pending_rows, err);
  return s;
}

heddle_status heddle__generate_settle(heddle_generator *g, uint64_t until_ns, heddle_error *err) {
  if (g->pending == 0) return HEDDLE_OK;
  heddle_status s = heddle_executor_wait(g->ex, heddle__generate_left(until_ns), err);
  if (s == HEDDLE_ETIMEOUT && heddle_executor_poll(g->ex) == HEDDLE_EBUSY) return s;
  if (s != HEDDLE_OK) { /* it was cancelled before: only that it has ended counts */
    g->pending = 0;
    return HEDDLE_OK;
  }
  return finish(g, s, err);
}

heddle_status heddle__generate_cancelled(heddle_generator *g, heddle_error *err) {
  if (!atomic_exchange_explicit(&g->cancelled, false, memory_order_acq_rel)) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_ECANCELED, "the generator was cancelled at token %zu", g->n);
}

/* One run. After a timeout it is cancelled and waited for, if that is possible. */
static heddle_status run_model(heddle_generator *g, uint64_t until_ns, heddle_error *err) {
  int64_t rows;
  heddle_status s = heddle__speculate_guess(g, until_ns, err);
  if (s != HEDDLE_OK) return s;
  const size_t n = count_of(g, &rows);
  s = fill(g, n, rows, err);
  if (s != HEDDLE_OK) return s;
  heddle_tensor_release(g->view);
  g->view = NULL;
  const uint64_t began = heddle__now_ns();
  if (until_ns <= began) return heddle__fail(err, HEDDLE_ETIMEOUT, "there was no time left at token %zu", g->n);
  g->pending = n;
  g->pending_rows = rows;
  g->pending_ahead = g->n_guess;
  s = heddle_executor_run(g->ex, until_ns == UINT64_MAX ? HEDDLE_FOREVER : until_ns - began, err);
  g->stats.run_ns += heddle__now_ns() - began;
  if (s == HEDDLE_ETIMEOUT && heddle_executor_poll(g->ex) == HEDDLE_EBUSY) {
    heddle_executor_cancel(g->ex, NULL);
    if (heddle__generate_settle(g, heddle__generate_until(cancel_ns), NULL) == HEDDLE_ETIMEOUT)
      return s; /* the next call waits */
    return s;
  }
  return finish(g, s, err);
}

heddle_status heddle__generate_evaluate(heddle_generator *g, uint64_t until_ns, heddle_error *err) {
  heddle_status s = heddle__check_fork(err);
  if (s == HEDDLE_OK && g->n == 0) s = heddle__fail(err, HEDDLE_EINVAL, "there is no token to go on from");
  if (s == HEDDLE_OK) s = heddle__generate_settle(g, until_ns, err);
  if (s == HEDDLE_OK && g->cached == g->n && g->view == NULL) s = heddle__generate_rewind(g, g->n - 1, err);
  while (s == HEDDLE_OK) {
    s = heddle__generate_cancelled(g, err);
    if (s != HEDDLE_OK || g->cached == g->n) return s;
    s = run_model(g, until_ns, err);
  }
  if (s == HEDDLE_ECANCELED) atomic_store_explicit(&g->cancelled, false, memory_order_release); /* it is reported */
  return s;
}
