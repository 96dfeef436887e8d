/* executor/state_calls.c: the calls for state values (heddle/state.h), but for files, which are in state_file.c.
 * Each makes all that it needs before the first value changes. */
#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/states.h"
#include "heddle/state.h"

/* ---- finding */

/* The executor with the values: none is a shell, since a model with state values has one run in flight. */
static heddle_status check(heddle_executor *ex, heddle_error *err) {
  heddle_status s = heddle__executor_check(ex, err);
  return s == HEDDLE_OK ? heddle__states_settle(ex, err) : s;
}

static heddle_status no_state(const heddle_executor *ex, uint32_t i, heddle_error *err) {
  return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: there is no state value %u; there are %u", ex->model->graph->source,
                      (unsigned)i, (unsigned)heddle_executor_state_count(ex));
}

static heddle_status find_state(heddle_executor *ex, uint32_t i, heddle__state **out, heddle_error *err) {
  heddle_status s = check(ex, err);
  if (s != HEDDLE_OK) return s;
  if (i >= heddle_executor_state_count(ex)) return no_state(ex, i, err);
  *out = &ex->states->at[i];
  return HEDDLE_OK;
}

/* The first and one past the last of the values that are meant. */
static heddle_status find_range(heddle_executor *ex, uint32_t i, uint32_t *first, uint32_t *end, heddle_error *err) {
  heddle_status s = check(ex, err);
  if (s != HEDDLE_OK) return s;
  uint32_t n = heddle_executor_state_count(ex);
  *first = i == HEDDLE_STATE_ALL ? 0 : i;
  *end = i == HEDDLE_STATE_ALL ? n : i + 1;
  return i == HEDDLE_STATE_ALL || i < n ? HEDDLE_OK : no_state(ex, i, err);
}

static const char *name_of(const heddle_executor *ex, const heddle__state *st) {
  return heddle__model_arg(ex->model, st->arg)->name;
}

static heddle_status named(const heddle_executor *ex, const heddle__state *st, heddle_status s, heddle_error *err) {
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "state value '%s': ", name_of(ex, st));
}

/* ---- facts */

uint32_t heddle_executor_state_count(const heddle_executor *ex) {
  return ex != NULL && ex->states != NULL ? ex->states->n : 0;
}

heddle_status heddle_executor_state_info(heddle_executor *ex, uint32_t i, heddle_state_info *out, heddle_error *err) {
  heddle__state *st;
  heddle_status s = find_state(ex, i, &st, err);
  if (s != HEDDLE_OK) return s;
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for what is known of a state value");
  const heddle_tensor *v = st->now.view;
  memcpy(st->shape, v->shape, v->ndim * sizeof *v->shape);
  const heddle_state_info all = {.input = name_of(ex, st),
                                 .output = ex->results[st->output].name,
                                 .shape = st->shape,
                                 .device = v->dev,
                                 .bytes = v->bytes,
                                 .dtype = v->dtype,
                                 .ndim = v->ndim,
                                 .axis = st->axis == HEDDLE__NONE ? HEDDLE_STATE_NO_AXIS : st->axis,
                                 .is_reset = st->is_reset};
  size_t size = out->struct_size;
  memcpy(out, &all, size < sizeof all ? size : sizeof all);
  out->struct_size = size;
  return HEDDLE_OK;
}

int32_t heddle_executor_state_index(const heddle_executor *ex, const char *name) {
  for (uint32_t i = 0; name != NULL && i < heddle_executor_state_count(ex); i++) {
    const heddle__state *st = &ex->states->at[i];
    if (strcmp(name_of(ex, st), name) == 0 || strcmp(ex->results[st->output].name, name) == 0) return (int32_t)i;
  }
  return -1;
}

/* ---- values */

heddle_status heddle_executor_reset_state(heddle_executor *ex, uint32_t i, heddle_error *err) {
  uint32_t first = 0, end = 0;
  heddle_status s = find_range(ex, i, &first, &end, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t k = first; k < end; k++) heddle__state_forget(ex, &ex->states->at[k]);
  return heddle__states_settle(ex, err);
}

heddle_status heddle_executor_read_state(heddle_executor *ex, uint32_t i, heddle_tensor **out, heddle_error *err) {
  heddle__state *st;
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the tensor: out is NULL");
  *out = NULL;
  heddle_status s = find_state(ex, i, &st, err);
  if (s != HEDDLE_OK) return s;
  const heddle_tensor *v = st->now.view;
  s = heddle_tensor_create(NULL, v->dtype, v->shape, v->ndim, out, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(*out, v, err);
  if (s == HEDDLE_OK) return s;
  heddle_tensor_release(*out);
  *out = NULL;
  return named(ex, st, s, err);
}

heddle_status heddle__state_write(heddle_executor *ex, heddle__state *st, const heddle_tensor *value,
                                  heddle_error *err) {
  heddle__held made = {NULL, NULL};
  heddle_status s = heddle__model_fits(ex->model, st->arg, value->dtype, value->ndim, value->shape, err);
  if (s != HEDDLE_OK) return s;
  heddle_device *dev = st->now.store != NULL ? st->now.store->dev : NULL;
  s = heddle__held_make(dev, value->dtype, value->ndim, value->shape, st->axis != HEDDLE__NONE, &made, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(made.view, value, err);
  if (s == HEDDLE_OK) {
    heddle__state_put(ex, st, made, false);
    return s;
  }
  heddle__held_drop(&made);
  return named(ex, st, s, err);
}

heddle_status heddle_executor_write_state(heddle_executor *ex, uint32_t i, const heddle_tensor *value,
                                          heddle_error *err) {
  heddle__state *st;
  heddle_status s = find_state(ex, i, &st, err);
  if (s != HEDDLE_OK) return s;
  if (value == NULL) return named(ex, st, heddle__fail(err, HEDDLE_EINVAL, "the tensor is NULL"), err);
  return heddle__state_write(ex, st, value, err);
}

/* ---- shorter */

/* Copies the first elements of a value in host memory, which has room between its rows. */
static heddle_status copy_first(heddle_tensor *to, const heddle_tensor *v, heddle_error *err) {
  heddle_tensor *first = NULL;
  heddle_status s = heddle_tensor_wrap(v->data, v->dtype, to->shape, v->ndim, v->strides, NULL, NULL, &first, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(to, first, err);
  heddle_tensor_release(first);
  return s;
}

static heddle_status cut(const heddle_executor *ex, const heddle__state *st, int64_t length, heddle__held *out,
                         heddle_error *err) {
  const heddle_tensor *v = st->now.view;
  int64_t shape[HEDDLE__MAX_NDIM];
  memcpy(shape, v->shape, v->ndim * sizeof *shape);
  if (length < 0 || length > shape[st->axis])
    return heddle__fail(err, HEDDLE_EINVAL,
                        "state value '%s' has length %" PRId64 " along dimension %u; it cannot be cut to %" PRId64,
                        name_of(ex, st), shape[st->axis], (unsigned)st->axis, length);
  shape[st->axis] = length;
  heddle_status s = heddle__held_make(v->dev, v->dtype, v->ndim, shape, true, out, err);
  if (s == HEDDLE_OK && v->contiguous) s = heddle__tensor_cut(out->view, v, st->axis, err);
  else if (s == HEDDLE_OK) s = copy_first(out->view, v, err);
  return named(ex, st, s, err);
}

heddle_status heddle_executor_truncate_state(heddle_executor *ex, uint32_t i, int64_t length, heddle_error *err) {
  uint32_t first = 0, end = 0, any = 0;
  heddle_status s = find_range(ex, i, &first, &end, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t k = first; k < end; k++) any += ex->states->at[k].axis != HEDDLE__NONE;
  if (any == 0)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: %s has one open dimension along which it could be cut",
                        ex->model->graph->source,
                        i == HEDDLE_STATE_ALL ? "no state value" : "the state value is not one that");
  heddle__held *made = heddle__alloc(end, sizeof *made);
  if (made == NULL) return heddle__no_memory(err, "state values");
  for (uint32_t k = first; k < end && s == HEDDLE_OK; k++)
    if (ex->states->at[k].axis != HEDDLE__NONE) s = cut(ex, &ex->states->at[k], length, &made[k], err);
  for (uint32_t k = first; k < end; k++) {
    if (s != HEDDLE_OK) heddle__held_drop(&made[k]);
    else if (made[k].store != NULL) heddle__state_put(ex, &ex->states->at[k], made[k], false);
  }
  heddle__free(made);
  return s;
}

/* ---- shared */

heddle_status heddle_executor_fork_state(heddle_executor *from, heddle_executor *to, heddle_error *err) {
  heddle_status s = check(from, err);
  if (s == HEDDLE_OK) s = check(to, err);
  if (s != HEDDLE_OK || from == to) return s;
  if (from->model != to->model)
    return heddle__fail(err, HEDDLE_EINVAL, "a state is forked between executors of one model: %s and %s are two",
                        from->model->graph->source, to->model->graph->source);
  for (uint32_t i = 0; i < heddle_executor_state_count(from); i++) {
    const heddle__state *st = &from->states->at[i];
    if (st->now.store->dev != NULL) s = heddle__device_check(st->now.store->dev, err);
    if (s != HEDDLE_OK) return named(from, st, s, err);
  }
  for (uint32_t i = 0; i < heddle_executor_state_count(from); i++) {
    const heddle__held *now = &from->states->at[i].now;
    atomic_fetch_add_explicit(&now->store->users, 1, memory_order_relaxed);
    heddle__held shared = {now->store, heddle_tensor_retain(now->view)};
    heddle__state_put(to, &to->states->at[i], shared, from->states->at[i].is_reset);
  }
  return HEDDLE_OK;
}
