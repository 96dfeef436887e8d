/* graph/strings.c: the strings that numbers of a graph stand for, and the keys of its maps: members "strings", "texts",
 * "maps" and "objects" of the "heddle" object, which nothing else reads. What is not as it should be counts as not there. */
#include "heddle/strings.h"

#include <string.h>

#include "core/error.h"
#include "graph/opschema.h"

static const json_t *part(const heddle_graph *g, const char *key) {
  return json_object_get(json_object_get(g->raw, "heddle"), key);
}

static const json_t *map_of(const heddle_graph *g, const char *name) {
  return json_object_get(part(g, "maps"), name);
}

const char *heddle_graph_string(const heddle_graph *g, uint64_t i) {
  return i <= SIZE_MAX ? json_string_value(json_array_get(part(g, "strings"), (size_t)i)) : NULL;
}

heddle_string_kind heddle_graph_string_kind(const heddle_graph *g, const char *name) {
  const json_t *texts = part(g, "texts"), *map = map_of(g, name), *object = json_object_get(part(g, "objects"), name);
  if (json_is_integer(object)) {
    const json_int_t kind = json_integer_value(object), plain = kind & ~(json_int_t)HEDDLE_STRING_OPTIONAL;
    const bool known = plain == HEDDLE_STRING_NONE || plain == HEDDLE_STRING_TENSOR ||
                       plain == HEDDLE_STRING_SEQUENCE || plain == HEDDLE_STRING_TEXTS;
    return known ? (heddle_string_kind)kind : HEDDLE_STRING_NONE;
  }
  if (map != NULL) return json_is_true(json_object_get(map, "text")) ? HEDDLE_STRING_MAPS_OF_TEXTS : HEDDLE_STRING_MAPS;
  for (size_t i = 0; i < json_array_size(texts); i++) {
    const char *text = json_string_value(json_array_get(texts, i));
    if (text != NULL && strcmp(text, name) == 0) return HEDDLE_STRING_TENSOR;
  }
  return HEDDLE_STRING_NONE;
}

int heddle_graph_has_objects(const heddle_graph *g) {
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    if (heddle__is_host(&g->nodes[i])) return 1;
    for (uint32_t k = 0; k < g->nodes[i].n_inner; k++)
      if (heddle_graph_has_objects(g->nodes[i].inner[k].graph) != 0) return 1;
  }
  return json_object_size(part(g, "objects")) > 0 ? 1 : 0;
}

heddle_status heddle_graph_map_key(const heddle_graph *g, const char *name, uint32_t i, int64_t *key,
                                   heddle_error *err) {
  const json_t *found = json_array_get(json_object_get(map_of(g, name), "keys"), i);
  if (!json_is_integer(found))
    return heddle__fail(err, HEDDLE_ENOTFOUND, "output '%s' has no key for column %u", name, (unsigned)i);
  *key = json_integer_value(found);
  return HEDDLE_OK;
}
