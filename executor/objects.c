/* executor/objects.c: an executor's texts and sequences (heddle/strings.h), which object_table.c has. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "executor/stages.h"
#include "heddle/strings.h"

#if HEDDLE_HAS_CONTROL
#include "executor/objects.h"

heddle_status heddle__objects_make(heddle_executor *ex, heddle_error *err) {
  if (ex->objects != NULL || heddle_graph_has_objects(ex->model->graph) == 0) return HEDDLE_OK;
  return ctl_objects_make(ex->model->graph, &ex->objects, err);
}

void heddle__objects_free(heddle_executor *ex) {
  if (!ex->lent_objects) ctl_objects_free(ex->objects);
  ex->objects = NULL;
}

void heddle__objects_lend(heddle_executor *ex, struct heddle__objects *objects) {
  if (objects == NULL) return;
  heddle__objects_free(ex);
  ex->objects = objects;
  ex->lent_objects = true;
}

heddle_status heddle__objects_settle(heddle_executor *ex, heddle_error *err) {
  if (ex->objects == NULL || ex->lent_objects) return HEDDLE_OK;
  heddle_tensor **holders = heddle__alloc((size_t)ex->n_args + 1, sizeof *holders);
  if (holders == NULL) return heddle__no_memory(err, "the inputs");
  for (uint32_t i = 0; i < ex->n_args; i++) holders[i] = ex->args[i].value;
  heddle_status s = ctl_objects_sweep(ex->objects, holders, ex->n_args, err);
  heddle__free(holders);
  return s;
}

/* What the four calls ask first. */
static heddle_status check(heddle_executor *ex, heddle_error *err) {
  heddle_status s = heddle__executor_check(ex, err);
  if (s != HEDDLE_OK || ex->objects != NULL) return s;
  const bool is_shell = ex->flight != NULL;
  return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                      is_shell ? "texts and sequences are with executors of one run in flight"
                               : "the model has no texts or sequences that a run makes");
}

heddle_status heddle_executor_text_code(heddle_executor *ex, const char *text, size_t bytes, int64_t *code,
                                        heddle_error *err) {
  heddle_status s = check(ex, err);
  return s == HEDDLE_OK ? ctl_text_code(ex->objects, text, bytes, code, err) : s;
}

heddle_status heddle_executor_text(heddle_executor *ex, int64_t code, const char **text, size_t *bytes,
                                   heddle_error *err) {
  heddle_status s = check(ex, err);
  return s == HEDDLE_OK ? ctl_text(ex->objects, code, text, bytes, err) : s;
}

heddle_status heddle_executor_sequence(heddle_executor *ex, heddle_tensor *const *items, size_t n, int64_t *code,
                                       heddle_error *err) {
  heddle_status s = check(ex, err);
  if (s != HEDDLE_OK) return s;
  heddle_tensor **copies = heddle__alloc(n + 1, sizeof *copies);
  if (copies == NULL) return heddle__no_memory(err, "a sequence");
  for (size_t i = 0; i < n && s == HEDDLE_OK; i++) {
    const heddle_tensor *t = items[i];
    s = heddle_tensor_create(NULL, t->dtype, t->shape, t->ndim, &copies[i], err);
    if (s == HEDDLE_OK) s = heddle_tensor_copy(copies[i], t, err);
  }
  if (s == HEDDLE_OK) s = ctl_list_make(ex->objects, copies, n, code, err);
  for (size_t i = 0; i < n; i++) heddle_tensor_release(copies[i]);
  heddle__free(copies);
  return s;
}

heddle_status heddle_executor_sequence_items(heddle_executor *ex, int64_t code, heddle_tensor *const **items, size_t *n,
                                             heddle_error *err) {
  heddle_status s = check(ex, err);
  return s == HEDDLE_OK ? ctl_list(ex->objects, code, items, n, err) : s;
}

#else /* no graph has them */

static heddle_status left_out(heddle_error *err) {
  return heddle__left_out(err, "texts and sequences that a run makes", "HEDDLE_CONTROL");
}

heddle_status heddle_executor_text_code(heddle_executor *ex, const char *text, size_t bytes, int64_t *code,
                                        heddle_error *err) {
  (void)ex, (void)text, (void)bytes, (void)code;
  return left_out(err);
}

heddle_status heddle_executor_text(heddle_executor *ex, int64_t code, const char **text, size_t *bytes,
                                   heddle_error *err) {
  (void)ex, (void)code, (void)text, (void)bytes;
  return left_out(err);
}

heddle_status heddle_executor_sequence(heddle_executor *ex, heddle_tensor *const *items, size_t n, int64_t *code,
                                       heddle_error *err) {
  (void)ex, (void)items, (void)n, (void)code;
  return left_out(err);
}

heddle_status heddle_executor_sequence_items(heddle_executor *ex, int64_t code, heddle_tensor *const **items, size_t *n,
                                             heddle_error *err) {
  (void)ex, (void)code, (void)items, (void)n;
  return left_out(err);
}
#endif
