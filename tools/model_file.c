/* tools/model_file.c: a model's graph and parameters from files, and names of dimensions that --dim gives a number. */
#include "model_file.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "library.h"
#include "text.h"

static bool ends_in(const char *path, const char *end) {
  size_t n = strlen(path), m = strlen(end);
  return n > m && strcmp(path + n - m, end) == 0;
}

bool is_onnx_path(const char *path) {
  return ends_in(path, ".onnx");
}

heddle_status load_params_of(const options *o, heddle_params **out, char path[PATH_ROOM], heddle_error *err) {
  size_t n = strlen(o->model);
  *out = NULL;
  if (ends_in(o->model, ".json")) n -= 5;
  if (o->params != NULL) snprintf(path, PATH_ROOM, "%s", o->params);
  else if (is_onnx_path(o->model)) snprintf(path, PATH_ROOM, "%s", o->model);
  else snprintf(path, PATH_ROOM, "%.*s.params", (int)n, o->model);
  if (o->params == NULL && access(path, F_OK) != 0) return HEDDLE_OK;
  return heddle_params_load(path, NULL, out, err);
}

/* ---- dimensions */

/* The number after '=' of a --dim; -1 where it is none. */
static json_int_t number_of(const char *pair) {
  const char *text = strchr(pair, '=') + 1;
  json_int_t n = 0;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9' || n > INT32_MAX) return -1;
    n = n * 10 + (*text - '0');
  }
  return n;
}

static bool is_named(const char *pair, const char *name) {
  size_t n = strlen(name);
  return strncmp(pair, name, n) == 0 && pair[n] == '=';
}

static heddle_status wrong(heddle_error *err, heddle_status status, const char *format, const char *a, const char *b) {
  snprintf(err->text, sizeof err->text, format, a, b);
  err->status = status;
  return status;
}

/* Puts the number of a --dim wherever its name stands; names gets those that stand there. */
static size_t bind_one(json_t *shapes, const char *pair, char *names, size_t room) {
  size_t bound = 0, used = 0, i, k;
  json_t *shape, *dim;
  names[0] = '\0';
  json_array_foreach(shapes, i, shape) {
    json_array_foreach(shape, k, dim) {
      const char *name = json_string_value(dim);
      if (name == NULL) continue;
      if (is_named(pair, name)) {
        json_array_set_new(shape, k, json_integer(number_of(pair)));
        bound++;
      } else if (strstr(names, name) == NULL && used + strlen(name) + 3 < room) {
        used += (size_t)snprintf(names + used, room - used, "%s%s", used > 0 ? ", " : "", name);
      }
    }
  }
  return bound;
}

static heddle_status bind(const options *o, heddle_graph **g, heddle_error *err) {
  char *text = NULL, names[400];
  size_t bytes = 0;
  heddle_status s = heddle_graph_text(*g, &text, &bytes, err);
  if (s != HEDDLE_OK) return s;
  json_error_t why;
  json_t *root = json_loadb(text, bytes, 0, &why);
  heddle_free(text);
  json_t *shapes = json_array_get(json_object_get(json_object_get(root, "attrs"), "shape"), 1);
  for (size_t i = 0; i < o->dims.count && root != NULL && s == HEDDLE_OK; i++) {
    const char *pair = o->dims.data[i];
    if (number_of(pair) < 0) s = wrong(err, HEDDLE_EINVAL, "--dim %s: expected NAME=NUMBER%s", pair, "");
    else if (bind_one(shapes, pair, names, sizeof names) == 0)
      s = wrong(err, HEDDLE_ENOTFOUND, "--dim %s: no dimension has that name; names of dimensions: %s", pair,
                names[0] != '\0' ? names : "none");
  }
  char *bound = s == HEDDLE_OK ? json_dumps(root, JSON_COMPACT) : NULL;
  json_decref(root);
  if (s != HEDDLE_OK) return s;
  if (bound == NULL) return wrong(err, HEDDLE_ENOMEM, "out of memory%s%s", "", "");
  heddle_graph_release(*g);
  *g = NULL;
  s = heddle_graph_parse(bound, strlen(bound), o->model, NULL, g, err);
  free(bound);
  return s;
}

heddle_status load_graph_of(const options *o, heddle_graph **out, heddle_error *err) {
  if (o->dims.count > 0 && library_is(o->model))
    return wrong(err, HEDDLE_EINVAL, "--dim %s: %s is a library, whose model names no dimensions", o->dims.data[0],
                 o->model);
  heddle_status s = heddle_graph_load(o->model, NULL, out, err);
  return s == HEDDLE_OK && o->dims.count > 0 ? bind(o, out, err) : s;
}
