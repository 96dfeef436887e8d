/* tests/executor/rig.h: what the tests of the runner share: contexts with settings, graphs written in a line a node,
 * tensors of floats, and a model with its executor. Devices and settings are sim's; where a case runs on another
 * accelerator (tests/accelerator.h) they are turned into that one's here. */
#ifndef HEDDLE_TESTS_EXECUTOR_RIG_H
#define HEDDLE_TESTS_EXECUTOR_RIG_H

#include "cases.h"
#include "core/alloc.h"
#include "heddle/heddle.h"

#define MS UINT64_C(1000000)

/* Fails the case with the words of the error. */
#define OK(call) \
  do { \
    heddle_status ok_status = (call); \
    if (ok_status != HEDDLE_OK) fail_msg("%s: %s: %s", #call, heddle_status_name(ok_status), err.text); \
  } while (0)
#define FAILS(call, status) \
  do { \
    heddle_status got = (call); \
    if (got != (status)) fail_msg("%s: %s, expected %s: %s", #call, heddle_status_name(got), #status, err.text); \
  } while (0)
#define SAYS(word) \
  do { \
    if (strstr(err.text, (word)) == NULL) fail_msg("'%s' is not in '%s'", (word), err.text); \
  } while (0)

static heddle_error err;

/* "key=value;key=value" into a context. A delay of sim's, before each command, is a late completion where the accelerator
 * is another: there are fewer of those, so it is four times as long. Chains of elementwise nodes stay apart, since these
 * tests are about steps. */
static inline heddle_context *context(const char *settings) {
  heddle_setting all[22] = {
      {"cpu.fuse", "0"}, {"opencl.fuse", "0"}, {"vulkan.fuse", "0"}, {"cuda.fuse", "0"}, {"rocm.fuse", "0"}};
  static char text[512], late[32];
  size_t n = 5;
  bool delayed = false, layers = false;
  if (!settings_fit(settings)) fail_msg("'%s' is not for %s", settings, accelerator);
  snprintf(text, sizeof text, "%s", settings);
  for (char *p = strtok(text, ";"); p != NULL && n < 20; p = strtok(NULL, ";")) {
    char *equals = strchr(p, '=');
    if (equals == NULL) fail_msg("'%s' is no setting", p);
    *equals = '\0';
    layers = layers || strcmp(p, "layers") == 0;
    all[n++] = (heddle_setting){p, equals + 1};
    if (is_sim() || strcmp(p, "sim.delay_us") != 0) continue;
    snprintf(late, sizeof late, "%ld", 4 * strtol(equals + 1, NULL, 10));
    all[n - 1] = (heddle_setting){"fault.delay_us", late};
    delayed = true;
  }
  if (delayed && layers) fail_msg("'%s': a delay is a layer's here, and other layers are named", settings);
  if (delayed) all[n++] = (heddle_setting){"layers", "fault"};
  heddle_context *ctx = NULL;
  OK(heddle_context_create(all, n, NULL, NULL, &ctx, &err));
  return ctx;
}

/* A graph as it is written: null nodes first or between, each node after its inputs. */
typedef struct sketch {
  char nodes[1 << 17], args[1 << 12], heads[1 << 12], shapes[1 << 14], types[1 << 14], rows[1 << 14];
  int n;
} sketch;

static inline void add_text(char *to, size_t size, const char *format, ...) {
  size_t used = strlen(to);
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(to + used, size - used, format, ap);
  va_end(ap);
  if (n < 0 || (size_t)n >= size - used) fail_msg("the sketch of a graph is too long");
}

static inline int finish_node(sketch *s, const char *shape, const char *type) {
  const char *comma = s->n > 0 ? "," : "";
  add_text(s->shapes, sizeof s->shapes, "%s%s", comma, shape);
  add_text(s->types, sizeof s->types, "%s%s", comma, type);
  add_text(s->rows, sizeof s->rows, ",%d", s->n + 1);
  return s->n++;
}

/* shape as JSON: "[1,4]", "[\"n\",4]"; type as JSON: "\"float32\"". */
static inline int put_input(sketch *s, const char *name, const char *shape, const char *type) {
  add_text(s->nodes, sizeof s->nodes, "%s{\"op\":\"null\",\"name\":\"%s\",\"inputs\":[]}", s->n > 0 ? "," : "", name);
  add_text(s->args, sizeof s->args, "%s%d", s->args[0] != '\0' ? "," : "", s->n);
  return finish_node(s, shape, type);
}

/* device may be NULL; inputs are ids, ended by -1. */
static inline int put_node(sketch *s, const char *op, const char *name, const char *device, const int *inputs) {
  add_text(s->nodes, sizeof s->nodes, "%s{\"op\":\"%s\",\"name\":\"%s\",\"inputs\":[", s->n > 0 ? "," : "", op, name);
  for (int i = 0; inputs[i] >= 0; i++) add_text(s->nodes, sizeof s->nodes, "%s[%d,0,0]", i > 0 ? "," : "", inputs[i]);
  add_text(s->nodes, sizeof s->nodes, "]");
  if (device != NULL) add_text(s->nodes, sizeof s->nodes, ",\"device\":\"%s\"", on(device));
  add_text(s->nodes, sizeof s->nodes, "}");
  return finish_node(s, "null", "null");
}

#define NODE(s, op, name, device, ...) put_node(s, op, name, device, (const int[]){__VA_ARGS__, -1})

static inline void put_head(sketch *s, int node) {
  add_text(s->heads, sizeof s->heads, "%s[%d,0,0]", s->heads[0] != '\0' ? "," : "", node);
}

static inline heddle_graph *graph_of(const sketch *s) {
  static char text[1 << 18];
  text[0] = '\0';
  add_text(text, sizeof text,
           "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[%s],\"arg_nodes\":[%s],\"heads\":[%s],"
           "\"node_row_ptr\":[0%s],\"attrs\":{\"dltype\":[\"list_str\",[%s]],\"shape\":[\"list_shape\",[%s]]}}",
           s->nodes, s->args, s->heads, s->rows, s->types, s->shapes);
  heddle_graph *g = NULL;
  OK(heddle_graph_parse(text, strlen(text), "sketch", NULL, &g, &err));
  return g;
}

static inline heddle_tensor *floats(const int64_t *shape, uint32_t ndim, float first, float step) {
  heddle_tensor *t = NULL;
  OK(heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, ndim, &t, &err));
  float *data = heddle_tensor_data(t);
  for (uint64_t i = 0; i < heddle_tensor_bytes(t) / 4; i++) data[i] = first + step * (float)i;
  return t;
}

static inline const float *data_of(const heddle_tensor *t) {
  return heddle_tensor_data(t);
}

/* A model of a sketch and its executor. */
typedef struct rig {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_model *model;
  heddle_executor *ex;
} rig;

static inline void rig_make(rig *t, const char *settings, const sketch *s, const heddle_model_options *options) {
  heddle_model_options o = *options;
  o.devices = on(o.devices);
  t->ctx = context(settings);
  t->graph = graph_of(s);
  OK(heddle_model_create(t->ctx, t->graph, NULL, &o, &t->model, &err));
  OK(heddle_executor_create(t->model, &t->ex, &err));
}

static inline void rig_end(rig *t) {
  heddle_executor_release(t->ex);
  heddle_model_release(t->model);
  heddle_graph_release(t->graph);
  heddle_context_release(t->ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

#endif
