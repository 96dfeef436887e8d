/* graph/bind.c: numbers for the names of a graph's dimensions. The graph is written, its shapes are changed, and it is
 * read again, so that what the numbers contradict is found as in any file. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "graph/reader.h"
#include "graph/words.h"

#if HEDDLE_HAS_DIMENSIONS

/* The number behind the '=' of "NAME=NUMBER"; -1 where there is none, or one that no dimension may have. */
static json_int_t number_of(const char *rule) {
  const char *text = strchr(rule, '=');
  return text != NULL && text != rule ? heddle__dimension_number(text + 1) : -1;
}

static bool is_named(const char *rule, const char *name) {
  size_t n = strlen(name);
  return strncmp(rule, name, n) == 0 && rule[n] == '=' && strchr(rule + n + 1, '=') == NULL;
}

static bool bind_shapes(json_t *shapes, const char *rule) {
  bool found = false;
  size_t i, k;
  json_t *shape, *dim;
  json_array_foreach(shapes, i, shape) {
    json_array_foreach(shape, k, dim) {
      if (!json_is_string(dim) || !is_named(rule, json_string_value(dim))) continue;
      found = json_array_set_new(shape, k, json_integer(number_of(rule))) == 0 || found;
    }
  }
  return found;
}

/* The names that there are, as far as there is room. */
static void list_names(const heddle_graph *g, char *out, size_t room) {
  char shown[64];
  size_t used = 0;
  out[0] = '\0';
  for (uint32_t i = 0; i < g->n_entries; i++) {
    for (uint32_t d = 0; g->types[i].has_shape && d < g->types[i].ndim; d++) {
      const char *name = g->types[i].dims[d].symbol;
      if (name == NULL || strstr(out, heddle__show(name, shown)) != NULL || used + sizeof shown + 3 > room) continue;
      used += (size_t)snprintf(out + used, room - used, "%s%s", used > 0 ? ", " : "", shown);
    }
  }
}

static heddle_status bind_all(const heddle_graph *g, json_t *root, const char *const *dims, size_t n,
                              heddle_error *err) {
  json_t *shapes = json_array_get(json_object_get(json_object_get(root, "attrs"), "shape"), 1);
  char names[400], shown[64];
  for (size_t i = 0; i < n; i++) {
    if (dims[i] == NULL || number_of(dims[i]) < 0)
      return heddle__fail(err, HEDDLE_EINVAL, "%s: dimension '%s': expected NAME=NUMBER, a whole number from 0 to %lld",
                          g->source, heddle__show(dims[i], shown), (long long)HEDDLE__MOST_DIMENSION);
    if (bind_shapes(shapes, dims[i])) continue;
    list_names(g, names, sizeof names);
    return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: dimension '%s': none has that name; names of dimensions: %s",
                        g->source, heddle__show(dims[i], shown), names[0] != '\0' ? names : "none");
  }
  return HEDDLE_OK;
}

heddle_status heddle_graph_bind(const heddle_graph *g, const char *const *dims, size_t n, heddle_graph **out,
                                heddle_error *err) {
  char *text = NULL;
  size_t bytes = 0;
  json_t *root = NULL;
  if (out != NULL) *out = NULL;
  if (g == NULL || out == NULL || (n > 0 && dims == NULL))
    return heddle__fail(err, HEDDLE_EINVAL, "dimensions are bound in a graph, by rules, into a place for another");
  heddle_status s = heddle_graph_text(g, &text, &bytes, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__json_parse(text, bytes, g->source, UINT32_MAX, &root, err);
  heddle__free(text);
  if (s != HEDDLE_OK) return s;
  s = bind_all(g, root, dims, n, err);
  if (s == HEDDLE_OK) return heddle__graph_from_json(root, g->source, UINT32_MAX, out, err);
  json_decref(root);
  return s;
}

#else

heddle_status heddle_graph_bind(const heddle_graph *g, const char *const *dims, size_t n, heddle_graph **out,
                                heddle_error *err) {
  (void)g, (void)dims, (void)n, (void)out;
  return heddle__left_out(err, "numbers for dimensions of graphs", "HEDDLE_DIMENSIONS");
}

#endif
