/* modules/tvm/executor_object.c: the executor of a graph as a module: made of graph, library and devices, with its
 * methods by name. */
#include "modules/tvm/executor_object.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

static void drop_slots(heddle__slot *slots, uint32_t n) {
  for (uint32_t i = 0; i < n && slots != NULL; i++) {
    heddle_tensor_release(slots[i].bound);
    heddle_tensor_release(slots[i].device);
  }
  heddle__free(slots);
}

static void finish(heddle_object *self) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__values_forget(o);
  heddle_executor_release(o->ex);
  heddle_model_release(o->model);
  drop_slots(o->inputs, o->n_inputs);
  drop_slots(o->outputs, o->n_outputs);
  heddle__free(o->devices);
  heddle_graph_release(o->graph);
  heddle_module_release(o->library);
  heddle_context_release(o->ctx);
}

/* ---- methods */

static HEDDLE__METHOD(no_capture) {
  (void)self, (void)args, (void)codes, (void)n, (void)ret, (void)ret_code;
  return heddle__refuse(NULL, "start_capture, end_capture and run_cuda_graph are not there: where a plugin can record "
                              "work, 'run' replays it by itself");
}

static const heddle__method methods[] = {
    {"run", heddle__executor_run},
    {"set_input", heddle__executor_set_input},
    {"set_input_zero_copy", heddle__executor_set_input_zero_copy},
    {"set_output_zero_copy", heddle__executor_set_output_zero_copy},
    {"get_input", heddle__executor_get_input},
    {"get_input_index", heddle__executor_get_input_index},
    {"get_input_info", heddle__executor_get_input_info},
    {"get_output", heddle__executor_get_output},
    {"get_output_info", heddle__executor_get_output_info},
    {"get_num_inputs", heddle__executor_get_num_inputs},
    {"get_num_outputs", heddle__executor_get_num_outputs},
    {"load_params", heddle__executor_load_params},
    {"share_params", heddle__executor_share_params},
    {"run_from_inputs", heddle__executor_run_from_inputs},
    {"debug_get_output", heddle__executor_debug_get_output},
    {"profile", heddle__executor_profile},
    {"get_graph_json", heddle__executor_get_graph_json},
    {"get_graph_params", heddle__executor_get_graph_params},
    {"start_capture", no_capture},
    {"end_capture", no_capture},
    {"run_cuda_graph", no_capture},
};

static const heddle__method debug_methods[] = {
    {"execute_node", heddle__executor_execute_node},
    {"get_node_output", heddle__executor_get_node_output},
    {"run_individual", heddle__executor_run_individual},
    {"run_individual_node", heddle__executor_run_individual_node},
};

static int find_of_executor(heddle_object *self, const char *name, heddle_function **out) {
  int rc = heddle__method_find(methods, sizeof methods / sizeof methods[0], self, name, out);
  if (rc != 0 || *out != NULL || !heddle__executor_self(self)->debug) return rc;
  return heddle__method_find(debug_methods, sizeof debug_methods / sizeof debug_methods[0], self, name, out);
}

static const heddle__object_type executor_type = {.kind = "GraphExecutor", .find = find_of_executor, .finish = finish};

heddle__runner *heddle__executor_of(heddle_object *o) {
  return o != NULL && o->type == &executor_type ? heddle__executor_self(o) : NULL;
}

/* ---- creation */

/* The names of devices as a list, each once. */
static bool list_devices(heddle__runner *o, const int32_t (*devices)[2], uint32_t n) {
  size_t used = 0;
  for (uint32_t i = 0; i < n; i++) {
    heddle_device *dev = heddle__numbered_device(o->ctx, devices[i][0], devices[i][1]);
    if (dev == NULL) return false;
    bool again = false;
    for (uint32_t k = 0; k < i; k++)
      again = again || (devices[k][0] == devices[i][0] && devices[k][1] == devices[i][1]);
    if (again) continue;
    const char *name = heddle_device_name(dev);
    char *more = heddle__grow(o->devices, used, used + strlen(name) + 2, 1);
    if (more == NULL) {
      heddle__tvm_say(NULL, "out of memory: a list of devices");
      return false;
    }
    o->devices = more;
    used += (size_t)sprintf(more + used, "%s%s", used > 0 ? "," : "", name);
  }
  return true;
}

/* The values that were set so far, for another executor of the graph; parameters of its own it keeps. */
static heddle_status carry_over(heddle__runner *o, heddle_executor *to, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < o->n_inputs && s == HEDDLE_OK; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    heddle_tensor *value = NULL;
    s = heddle_executor_input_info(to, i, &info, err);
    if (s != HEDDLE_OK || info.is_param) continue;
    s = heddle_executor_get_input(o->ex, i, &value, err);
    if (s == HEDDLE_OK) s = heddle_executor_set_input(to, i, value, err);
    else if (s == HEDDLE_EINVAL) s = HEDDLE_OK; /* it was never set */
    heddle_tensor_release(value);
  }
  return s;
}

heddle_status heddle__executor_remake(heddle__runner *o, heddle_params *params, heddle_error *err) {
  heddle_model_options options = {.struct_size = sizeof options, .devices = o->devices, .library = o->library};
  heddle_model *model = NULL;
  heddle_executor *ex = NULL;
  heddle_status s = heddle_model_create(o->ctx, o->graph, params, &options, &model, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(model, &ex, err);
  if (s == HEDDLE_OK && o->ex != NULL) s = carry_over(o, ex, err);
  if (s != HEDDLE_OK) {
    heddle_executor_release(ex);
    heddle_model_release(model);
    return s;
  }
  heddle__values_forget(o);
  heddle_executor_release(o->ex);
  heddle_model_release(o->model);
  o->ex = ex;
  o->model = model;
  for (uint32_t i = 0; i < o->n_inputs && s == HEDDLE_OK; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    s = heddle_executor_input_info(ex, i, &info, err);
    o->inputs[i].is_param = o->inputs[i].is_param || info.is_param != 0;
  }
  return s;
}

heddle_object *heddle__executor_make(heddle_graph *graph, heddle_module *library, const int32_t (*devices)[2],
                                     uint32_t n_devices, heddle_params *params, bool debug) {
  heddle_context *ctx = library != NULL ? library->ctx : heddle__api_context();
  if (ctx == NULL) return NULL;
  heddle__runner *o = (heddle__runner *)(void *)heddle__object_new(&executor_type, sizeof *o);
  if (o == NULL) {
    heddle__tvm_say(NULL, "out of memory: an executor");
    return NULL;
  }
  o->ctx = heddle_context_retain(ctx);
  o->graph = heddle_graph_retain(graph);
  if (library != NULL) o->library = heddle_module_retain(library);
  o->debug = debug;
  o->executed = -1;
  uint32_t n_inputs = heddle_graph_input_count(graph), n_outputs = heddle_graph_output_count(graph);
  o->inputs = heddle__alloc(n_inputs, sizeof *o->inputs);
  o->outputs = heddle__alloc(n_outputs, sizeof *o->outputs);
  bool good = o->inputs != NULL && o->outputs != NULL;
  if (!good) heddle__tvm_say(NULL, "out of memory: an executor");
  o->n_inputs = good ? n_inputs : 0;
  o->n_outputs = good ? n_outputs : 0;
  heddle_error err = {0};
  good = good && list_devices(o, devices, n_devices);
  if (good && heddle__executor_remake(o, params, &err) != HEDDLE_OK) {
    heddle__tvm_say_error(NULL, &err);
    good = false;
  }
  if (good) return &o->head;
  heddle__object_release(&o->head);
  return NULL;
}

heddle_object *heddle__executor_object(const char *graph, size_t graph_bytes, heddle_object *library,
                                       const int32_t (*devices)[2], uint32_t n_devices, const void *params,
                                       size_t params_bytes, bool debug) {
  heddle_module *m = heddle__object_library(library);
  if (library != NULL && m == NULL) {
    heddle__refuse(NULL, "a module of kind %.100s holds no compiled library", library->type->kind);
    return NULL;
  }
  heddle_graph *g = NULL;
  heddle_params *p = NULL;
  heddle_object *o = NULL;
  heddle_error err = {0};
  heddle_status s = heddle_graph_parse(graph, graph_bytes, "graph", NULL, &g, &err);
  if (s == HEDDLE_OK && params != NULL) s = heddle_params_parse(params, params_bytes, "params", NULL, &p, &err);
  if (s == HEDDLE_OK) o = heddle__executor_make(g, m, devices, n_devices, p, debug);
  else heddle__tvm_say_error(NULL, &err);
  heddle_params_release(p);
  heddle_graph_release(g);
  return o;
}
