/* modules/tvm/executor_params.c: the methods of an executor about parameters: loaded, shared with another executor, and
 * given out again; and its graph. Parameters that come before anything but set_input become constants of the model, which
 * reach their devices once; later ones are inputs. */
#include "modules/tvm/executor_object.h"

#include "core/alloc.h"

static bool parse(const heddle__args *a, int32_t i, heddle_params **out) {
  const char *data = NULL;
  size_t bytes = 0;
  heddle_error err = {0};
  if (!heddle__args_text(a, i, &data, &bytes)) return false;
  if (heddle_params_parse(data, bytes, "params", NULL, out, &err) == HEDDLE_OK) return true;
  heddle__refuse_error(a->method, &err);
  return false;
}

static bool any_match(const heddle__runner *o, const heddle_params *params) {
  for (uint32_t k = 0; k < heddle_params_count(params); k++)
    if (heddle_executor_input_index(o->ex, heddle_params_name(params, k)) >= 0) return true;
  return false;
}

/* Inputs that were lent memory have the parameter instead; those whose memory was handed out have it there. */
static heddle_status settle(heddle__runner *o, const heddle_params *params, bool shared, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t k = 0; k < heddle_params_count(params) && s == HEDDLE_OK; k++) {
    int32_t i = heddle_executor_input_index(o->ex, heddle_params_name(params, k));
    if (i < 0) continue;
    heddle__slot *slot = &o->inputs[i];
    slot->is_param = true;
    if (slot->bound == NULL) continue;
    if (slot->lent || shared) {
      heddle_tensor_release(slot->bound);
      heddle_tensor_release(slot->device);
      slot->bound = slot->device = NULL;
      slot->lent = false;
      continue;
    }
    heddle_tensor *value = NULL;
    s = heddle_params_tensor(params, k, &value, err);
    if (s == HEDDLE_OK) s = heddle_tensor_copy(slot->bound, value, err);
    if (s == HEDDLE_OK) s = heddle_executor_bind_input(o->ex, (uint32_t)i, slot->bound, err);
    heddle_tensor_release(value);
  }
  return s;
}

HEDDLE__METHOD(heddle__executor_load_params) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"load_params", args, codes, n};
  heddle_params *params = NULL;
  heddle_error err = {0};
  (void)ret, (void)ret_code;
  if (!heddle__args_count(&a, 1, 1) || !parse(&a, 0, &params)) return -1;
  bool first = !o->used && any_match(o, params); /* names that the graph lacks are passed over */
  for (uint32_t i = 0; i < o->n_inputs; i++) first = first && !o->inputs[i].is_param;
  heddle_status s;
  o->changed = true;
  if (first) {
    s = heddle__executor_remake(o, params, &err);
  } else {
    s = heddle_executor_load_params(o->ex, params, &err);
    if (s == HEDDLE_OK) s = settle(o, params, false, &err);
  }
  heddle_params_release(params);
  return s == HEDDLE_OK ? 0 : heddle__refuse_error(a.method, &err);
}

HEDDLE__METHOD(heddle__executor_share_params) {
  heddle__runner *o = heddle__executor_self(self), *other;
  heddle__args a = {"share_params", args, codes, n};
  heddle_object *module = NULL;
  heddle_params *params = NULL;
  heddle_error err = {0};
  (void)ret, (void)ret_code;
  if (!heddle__args_count(&a, 2, 2) || !heddle__args_object(&a, 0, &module)) return -1;
  if ((other = heddle__executor_of(module)) == NULL)
    return heddle__refuse(a.method, "argument 0: expected an executor, and it is %s",
                          module != NULL ? module->type->kind : "null");
  if (!parse(&a, 1, &params)) return -1;
  heddle_status s = heddle_executor_share_params(o->ex, other->ex, params, &err);
  o->used = o->changed = true;
  if (s == HEDDLE_OK) s = settle(o, params, true, &err);
  heddle_params_release(params);
  return s == HEDDLE_OK ? 0 : heddle__refuse_error(a.method, &err);
}

HEDDLE__METHOD(heddle__executor_get_graph_json) {
  heddle__args a = {"get_graph_json", args, codes, n};
  char *text = NULL;
  size_t bytes = 0;
  heddle_error err = {0};
  if (!heddle__args_count(&a, 0, 0)) return -1;
  if (heddle_graph_text(heddle__executor_self(self)->graph, &text, &bytes, &err) != HEDDLE_OK)
    return heddle__refuse_error(a.method, &err);
  int rc = heddle__give_text(text, bytes, ret, ret_code);
  heddle_free(text);
  return rc;
}

HEDDLE__METHOD(heddle__executor_get_graph_params) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"get_graph_params", args, codes, n};
  heddle_params *params = NULL;
  void *blob = NULL;
  size_t bytes = 0, count = 0;
  heddle_error err = {0};
  if (!heddle__args_count(&a, 0, 0)) return -1;
  const char **names = heddle__alloc(o->n_inputs, sizeof *names);
  heddle_tensor **values = heddle__alloc(o->n_inputs, sizeof(heddle_tensor *));
  heddle_status s = HEDDLE_OK;
  int rc = -1;
  if (names == NULL || values == NULL) {
    heddle__refuse(a.method, "out of memory");
    s = HEDDLE_ENOMEM;
  }
  for (uint32_t i = 0; i < o->n_inputs && s == HEDDLE_OK; i++) {
    heddle_value_info info = {.struct_size = sizeof info};
    if (!o->inputs[i].is_param) continue;
    s = heddle_graph_input(o->graph, i, &info, &err);
    if (s == HEDDLE_OK) s = heddle_executor_get_input(o->ex, i, &values[count], &err);
    names[count++] = info.name;
  }
  if (s == HEDDLE_OK) s = heddle_params_create(names, values, count, &params, &err);
  if (s == HEDDLE_OK) s = heddle_params_bytes(params, &blob, &bytes, &err);
  if (s == HEDDLE_OK) rc = heddle__give_bytes(blob, bytes, ret, ret_code);
  else if (err.status != HEDDLE_OK) heddle__refuse_error(a.method, &err);
  heddle_free(blob);
  heddle_params_release(params);
  for (size_t i = 0; i < count && values != NULL; i++) heddle_tensor_release(values[i]);
  heddle__free((void *)names);
  heddle__free((void *)values);
  return rc;
}
