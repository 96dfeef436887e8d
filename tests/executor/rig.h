/* tests/executor/rig.h: what the tests of the runner share: contexts with settings, graphs written in a line a node,
 * tensors of floats, and the modes of sim that each test is run in. */
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

/* "key=value;key=value" into a context; the devices default to those named here. */
static inline heddle_context *context(const char *settings) {
  heddle_setting all[16];
  static char text[512];
  size_t n = 0;
  snprintf(text, sizeof text, "%s", settings);
  for (char *p = strtok(text, ";"); p != NULL && n < 16; p = strtok(NULL, ";")) {
    char *equals = strchr(p, '=');
    if (equals == NULL) fail_msg("'%s' is no setting", p);
    *equals = '\0';
    all[n++] = (heddle_setting){p, equals + 1};
  }
  /* These tests are about steps, and count on one for each node. */
  if (n < 16) all[n++] = (heddle_setting){"cpu.fuse", "0"};
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
  if (device != NULL) add_text(s->nodes, sizeof s->nodes, ",\"device\":\"%s\"", device);
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

#endif
