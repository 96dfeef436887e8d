/* Any bytes as a graph of TVM's, planned for cpu and two simulated devices with a library that has every function but
 * those whose names begin with "no": refused with a message, which is never that the plan could not be proved; or a
 * plan that is the same twice and has each node where device_index wants it. What is asked for hangs on the length of
 * the bytes. */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "heddle/heddle.h"
#include "modules/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a library without code */

static heddle_status find(const heddle__tvm_library *library, const char *function, int32_t *type, const char **kind,
                          heddle_error *err) {
  (void)library;
  *type = HEDDLE_DEVICE_CPU;
  *kind = NULL;
  if (strncmp(function, "no", 2) == 0)
    return heddle__fail(err, HEDDLE_ENOTFOUND, "there is no function '%s'", function);
  if (strncmp(function, "sim", 3) == 0) {
    *type = HEDDLE_DEVICE_EXT;
    *kind = "sim";
  }
  return HEDDLE_OK;
}

static bool serves(const heddle__tvm_library *library, int32_t type) {
  (void)library;
  return heddle__is_type(type, HEDDLE_DEVICE_EXT);
}

static const char *plugin(const char *kind) {
  return kind;
}

static heddle_status attach(heddle__tvm_caller *caller, heddle_error *err) {
  (void)err;
  caller->device = caller;
  return HEDDLE_OK;
}

static void detach(heddle__tvm_caller *caller) {
  caller->device = NULL;
}

static uint64_t alignment(const heddle__tvm_library *library) {
  (void)library;
  return 128;
}

static const heddle_op_table op = {.struct_size = sizeof op};
static const heddle__tvm_table table = {.version = "",
                                        .find = find,
                                        .serves = serves,
                                        .plugin = plugin,
                                        .attach = attach,
                                        .detach = detach,
                                        .alignment = alignment,
                                        .op = &op};

/* ---- the plan */

/* Each node that calls a function, and has no device by name, is on one of the type that the graph says. */
static void check_places(const heddle_graph *g, const char *text) {
  json_t *plan = json_loads(text, 0, NULL), *node;
  size_t i;
  if (plan == NULL) abort();
  json_array_foreach(json_object_get(plan, "nodes"), i, node) {
    heddle_node_info info = {.struct_size = sizeof info};
    json_t *device =
        json_array_get(json_object_get(plan, "devices"), (size_t)json_integer_value(json_object_get(node, "device")));
    const char *name = json_string_value(json_object_get(device, "name"));
    if (heddle_graph_node(g, (uint32_t)json_integer_value(json_object_get(node, "id")), &info, NULL) != HEDDLE_OK)
      abort();
    if (strcmp(info.op, "tvm_op") != 0 || info.device[0] != '\0') continue;
    if (name == NULL || (info.device_type == HEDDLE_DEVICE_CPU && strcmp(name, "cpu:0") != 0)) abort();
    if (info.device_type == HEDDLE_DEVICE_EXT && strncmp(name, "sim:", 4) != 0) abort();
  }
  json_decref(plan);
}

static void plan_graph(heddle_context *ctx, heddle_graph *g, heddle_module *library, size_t size) {
  static const char *const rules[] = {"*add*=sim:1"};
  const heddle_model_options options = {.struct_size = sizeof options,
                                        .devices = "cpu,sim:0,sim:1",
                                        .place = rules,
                                        .n_place = size % 16 == 15,
                                        .flags = (size & 1 ? HEDDLE_MODEL_SLOTS : 0) |
                                                 (size % 7 == 6 ? HEDDLE_MODEL_IGNORE_ANNOTATIONS : 0),
                                        .library = library};
  heddle_model *model = NULL;
  heddle_error err = {0};
  char *text[2] = {NULL, NULL};
  heddle_status s = heddle_model_create(ctx, g, NULL, &options, &model, &err);
  for (int i = 0; i < 2 && s == HEDDLE_OK; i++)
    s = heddle_model_explain(model, HEDDLE_EXPLAIN_JSON, NULL, NULL, 0, &text[i], &err);
  if (s != HEDDLE_OK) {
    if (err.status != s || err.text[0] == '\0' || s == HEDDLE_EPLAN || s == HEDDLE_EINTERNAL) abort();
  } else {
    if (strcmp(text[0], text[1]) != 0) abort();
    if (options.n_place == 0 && !(options.flags & HEDDLE_MODEL_IGNORE_ANNOTATIONS)) check_places(g, text[0]);
  }
  heddle_free(text[0]);
  heddle_free(text[1]);
  heddle_model_release(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static heddle_context *ctx;
  static heddle_module library;
  static const heddle_setting settings[] = {
      {"config", "off"}, {"plugins", HEDDLE_FUZZ_PLUGINS}, {"sim.devices", "2"}, {"log", "off"}};
  heddle_graph *g = NULL;
  heddle_error err = {0};
  if (ctx == NULL) {
    if (heddle_context_create(settings, sizeof settings / sizeof settings[0], NULL, NULL, &ctx, &err) != HEDDLE_OK) {
      fprintf(stderr, "%s\n", err.text);
      abort();
    }
    library.ctx = ctx;
    library.t = &table;
    atomic_init(&library.references, 1); /* which is never given back */
  }
  if (heddle_graph_parse((const char *)data, size, "fuzz.json", NULL, &g, &err) != HEDDLE_OK) return 0;
  plan_graph(ctx, g, &library, size);
  heddle_graph_release(g);
  return 0;
}
