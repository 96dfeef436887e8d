/* modules/tvm/executor_values.c: all values of one run, for the debug executor: who asks for node after node gets them from
 * a run of a second executor that keeps every value, so that nothing is computed for each node anew. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/executor_object.h"

void heddle__values_forget(heddle__runner *o) {
  heddle_executor_release(o->all);
  o->all = NULL;
  o->executed = -1;
}

/* The outputs of nodes that are no inputs, in the graph's order; names: "#NODE:OUTPUT", room for 24 characters each. NULL:
 * they are counted only. */
static size_t list_values(const heddle__runner *o, char (*names)[24]) {
  size_t count = 0;
  for (uint32_t i = 0; i < heddle_graph_node_count(o->graph); i++) {
    heddle_node_info info = {.struct_size = sizeof info};
    if (heddle_graph_node(o->graph, i, &info, NULL) != HEDDLE_OK || strcmp(info.op, "null") == 0) continue;
    for (uint32_t k = 0; k < info.n_outputs; k++, count++)
      if (names != NULL) snprintf(names[count], sizeof names[count], "#%u:%u", (unsigned)i, (unsigned)k);
  }
  return count;
}

static heddle_status make(heddle__runner *o, heddle_error *err) {
  size_t count = list_values(o, NULL);
  char(*names)[24] = heddle__alloc(count, sizeof *names);
  const char **keep = heddle__alloc(count, sizeof *keep);
  heddle_status s = HEDDLE_OK;
  if (names == NULL || keep == NULL) {
    s = HEDDLE_ENOMEM;
    *err = (heddle_error){.status = s, .text = "out of memory: the values of all nodes"};
  } else {
    list_values(o, names);
    for (size_t i = 0; i < count; i++) keep[i] = names[i];
    heddle_model_options options = {.struct_size = sizeof options,
                                    .devices = o->devices,
                                    .keep = keep,
                                    .n_keep = count,
                                    .flags = HEDDLE_MODEL_NO_REUSE,
                                    .library = o->library};
    heddle_model *model = NULL;
    s = heddle_model_create(o->ctx, o->graph, NULL, &options, &model, err);
    if (s == HEDDLE_OK) s = heddle_executor_create(model, &o->all, err);
    heddle_model_release(model);
  }
  heddle__free((void *)keep);
  heddle__free(names);
  return s;
}

/* An input has the memory of the first executor's; one that was never set there is left alone. */
static heddle_status share_input(heddle__runner *o, uint32_t i, heddle_tensor *any, heddle_error *err) {
  heddle_value_info info = {.struct_size = sizeof info};
  heddle_params *name = NULL;
  heddle_status s = heddle_graph_input(o->graph, i, &info, err);
  if (s == HEDDLE_OK) s = heddle_params_create(&info.name, &any, 1, &name, err);
  if (s == HEDDLE_OK) s = heddle_executor_share_params(o->all, o->ex, name, err);
  heddle_params_release(name);
  return s == HEDDLE_EINVAL ? HEDDLE_OK : s;
}

heddle_status heddle__values_take(heddle__runner *o, heddle_error *err) {
  const int64_t one = 1;
  heddle_tensor *any = NULL; /* a blob's names have values, which are not looked at */
  heddle_status s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, &one, 1, &any, err);
  if (s == HEDDLE_OK && o->all == NULL) s = make(o, err);
  for (uint32_t i = 0; i < o->n_inputs && s == HEDDLE_OK; i++) {
    if (o->inputs[i].device != NULL) s = heddle_tensor_copy(o->inputs[i].bound, o->inputs[i].device, err);
    if (s == HEDDLE_OK) s = share_input(o, i, any, err);
  }
  if (s == HEDDLE_OK) s = heddle_executor_run(o->all, HEDDLE_FOREVER, err);
  heddle_tensor_release(any);
  if (s != HEDDLE_OK) heddle__values_forget(o);
  o->changed = false;
  return s;
}

/* The place of a node's output among the values; UINT32_MAX: it is an input, or there is none. */
static uint32_t place_of(const heddle__runner *o, uint32_t node, uint32_t output) {
  uint32_t at = o->n_outputs;
  heddle_node_info info = {.struct_size = sizeof info};
  for (uint32_t i = 0; i <= node; i++) {
    if (heddle_graph_node(o->graph, i, &info, NULL) != HEDDLE_OK) return UINT32_MAX;
    bool is_input = strcmp(info.op, "null") == 0;
    if (i == node) return !is_input && output < info.n_outputs ? at + output : UINT32_MAX;
    if (!is_input) at += info.n_outputs;
  }
  return UINT32_MAX;
}

heddle_tensor *heddle__values_get(heddle__runner *o, uint32_t node, uint32_t output) {
  uint32_t at = place_of(o, node, output);
  heddle_tensor *value = NULL;
  if (o->all == NULL || at == UINT32_MAX) return NULL;
  return heddle__output_copy(o->all, at, NULL, &value, NULL) == HEDDLE_OK ? value : NULL;
}
