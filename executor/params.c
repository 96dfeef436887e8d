/* executor/params.c: parameters given to an executor after its model was made: from a blob, or from another executor.
 * They become inputs of this executor, under a program of its own. */
#include <string.h>

#include "core/error.h"
#include "executor/flight.h"

heddle_status heddle_executor_load_params(heddle_executor *whole, const heddle_params *params, heddle_error *err) {
  heddle_executor *ex;
  heddle_status s = heddle__lane_for(whole, HEDDLE__LANE_SET, &ex, err);
  if (s == HEDDLE_OK) s = heddle__executor_check(ex, err);
  if (s != HEDDLE_OK) return s;
  if (params == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there are no params: NULL was given");
  for (uint32_t i = 0; i < params->count; i++) { /* all or none are set */
    int32_t arg = heddle__graph_arg(ex->model->graph, params->items[i].name);
    const heddle__constant *c = &params->items[i].value;
    if (arg >= 0) s = heddle__model_fits(ex->model, (uint32_t)arg, c->dtype, c->ndim, c->shape, err);
    if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", params->source);
  }
  for (uint32_t i = 0; i < params->count; i++) {
    int32_t arg = heddle__graph_arg(ex->model->graph, params->items[i].name);
    if (arg < 0) continue;
    heddle_tensor *t = NULL;
    s = heddle_params_tensor(params, i, &t, err);
    if (s == HEDDLE_OK) s = heddle__executor_set(ex, (uint32_t)arg, t, HEDDLE__COPY, err);
    heddle_tensor_release(t);
    if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", params->source);
    ex->args[arg].is_param = true;
    heddle__flight_note(ex, (uint32_t)arg);
  }
  return HEDDLE_OK;
}

static void drop_model(void *user) {
  heddle_model_release(user);
}

/* What the other executor has for an input, as a tensor that keeps it alive. */
static heddle_status tensor_of(heddle_executor *other, uint32_t arg, heddle_tensor **out, heddle_error *err) {
  const heddle__arg *a = &other->args[arg];
  const heddle__constant *c = other->model->constants[arg];
  if (a->value != NULL) {
    *out = heddle_tensor_retain(a->value);
    return HEDDLE_OK;
  }
  if (c == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "the other executor has no value for '%s'; set it there first",
                        heddle__model_arg(other->model, arg)->name);
  bool shares = false;
  heddle_status s = heddle__constant_tensor(c, drop_model, other->model, &shares, out, err);
  if (shares) heddle_model_retain(other->model);
  return s;
}

heddle_status heddle_executor_share_params(heddle_executor *whole, heddle_executor *other, const heddle_params *names,
                                           heddle_error *err) {
  heddle_executor *ex;
  heddle_status s = heddle__lane_for(whole, HEDDLE__LANE_SET, &ex, err);
  if (s == HEDDLE_OK) s = heddle__executor_check(ex, err);
  if (s != HEDDLE_OK) return s;
  if (other == NULL || names == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "sharing params takes another executor and a blob with their names");
  for (int turn = 0; turn < 2; turn++) /* all are checked before the first is set */
    for (uint32_t i = 0; i < names->count; i++) {
      const char *name = names->items[i].name;
      int32_t mine = heddle__graph_arg(ex->model->graph, name);
      int32_t theirs = heddle__graph_arg(other->model->graph, name);
      if (mine < 0 || theirs < 0) continue;
      heddle_tensor *t = NULL;
      s = tensor_of(other->course->holder(other, (uint32_t)theirs), (uint32_t)theirs, &t, err);
      if (s == HEDDLE_OK) s = heddle__executor_check_read(ex, (uint32_t)mine, t, err);
      if (s == HEDDLE_OK && turn == 0)
        s = heddle__model_fits(ex->model, (uint32_t)mine, t->dtype, t->ndim, t->shape, err);
      else if (s == HEDDLE_OK) s = heddle__executor_set(ex, (uint32_t)mine, t, HEDDLE__LEND, err);
      heddle_tensor_release(t);
      if (s != HEDDLE_OK) return heddle__prefix(err, s, "param '%s': ", name);
      if (turn == 0) continue;
      ex->args[mine].is_param = true;
      heddle__flight_note(ex, (uint32_t)mine);
    }
  return HEDDLE_OK;
}
