/* tools/model_file.c: a model's graph and parameters from files, with the dimensions of --dim. */
#include "model_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "library.h"
#include "signature.h"
#include "text.h"

static bool ends_in(const char *path, const char *end) {
  size_t n = strlen(path), m = strlen(end);
  return n > m && strcmp(path + n - m, end) == 0;
}

bool is_onnx_path(const char *path) {
  return ends_in(path, ".onnx");
}

bool is_package(const char *path) {
  char head[sizeof HEDDLE_PACK_MAGIC - 1] = "";
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  size_t n = fread(head, 1, sizeof head, file);
  fclose(file);
  return (n == sizeof head && memcmp(head, HEDDLE_PACK_MAGIC, sizeof head) == 0) ||
         signature_says(path, HEDDLE_SIGNATURE_PACKED);
}

heddle_status load_params_of(const options *o, heddle_params **out, char path[PATH_ROOM], heddle_error *err) {
  size_t n = strlen(o->model);
  *out = NULL;
  if (ends_in(o->model, ".json")) n -= 5;
  if (o->params != NULL) snprintf(path, PATH_ROOM, "%s", o->params);
  else if (is_onnx_path(o->model) || is_package(o->model)) snprintf(path, PATH_ROOM, "%s", o->model);
  else snprintf(path, PATH_ROOM, "%.*s.params", (int)n, o->model);
  if (o->params == NULL && access(path, F_OK) != 0) return HEDDLE_OK;
  return heddle_params_load(path, NULL, out, err);
}

heddle_status load_graph_of(const options *o, heddle_graph **out, heddle_error *err) {
  if (o->dims.count > 0 && library_is(o->model)) {
    snprintf(err->text, sizeof err->text, "--dim %s: %s is a library, whose model names no dimensions", o->dims.data[0],
             o->model);
    return err->status = HEDDLE_EINVAL;
  }
  heddle_graph *named = NULL;
  heddle_status s = heddle_graph_load(o->model, NULL, &named, err);
  if (s != HEDDLE_OK || o->dims.count == 0) {
    *out = named;
    return s;
  }
  s = heddle_graph_bind(named, o->dims.data, o->dims.count, out, err);
  heddle_graph_release(named);
  return s;
}

void warn_of_functions(const char *command, const char *graph_path, const char *file) {
  enum { SHOWN = 3 };
  heddle_graph *g = NULL;
  heddle_node_info node = {.struct_size = sizeof node};
  char names[300] = "";
  uint32_t n = 0;
  if (is_onnx_path(graph_path) || heddle_graph_load(graph_path, NULL, &g, NULL) != HEDDLE_OK) return;
  for (uint32_t i = 0; heddle_graph_node(g, i, &node, NULL) == HEDDLE_OK; i++) {
    if (strcmp(node.op, "tvm_op") != 0 || strcmp(node.func_name, "__nop") == 0) continue;
    const size_t used = strlen(names);
    if (n++ < SHOWN) snprintf(names + used, sizeof names - used, "%s%.80s", used > 0 ? ", " : "", node.func_name);
  }
  heddle_graph_release(g);
  if (n > 0)
    print_error(
        "heddle %s: warning: the graph calls compiled functions (%s%s), and %s has none: it runs with the library that "
        "has them (heddle_model_options.library)\n",
        command, names, n > SHOWN ? ", ..." : "", file);
}
