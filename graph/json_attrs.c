/* graph/json_attrs.c: the attributes of an operator's node, from plain JSON to the kinds that its schema names.
 * An operator that is not known keeps its JSON only; validate.c lists it. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "graph/opschema.h"
#include "graph/reader.h"
#include "graph/words.h"

static const char *const kind_words[] = {
    [HEDDLE_ATTR_INT] = "an integer",
    [HEDDLE_ATTR_FLOAT] = "a number, or \"inf\", \"-inf\" or \"nan\"",
    [HEDDLE_ATTR_STRING] = "a string",
    [HEDDLE_ATTR_INTS] = "a list of integers",
    [HEDDLE_ATTR_FLOATS] = "a list of numbers, \"inf\", \"-inf\" and \"nan\"",
    [HEDDLE_ATTR_STRINGS] = "a list of strings",
};

static bool number_of(const json_t *value, double *out) {
  if (json_is_number(value)) {
    *out = json_number_value(value);
    return true;
  }
  const char *text = json_is_string(value) ? json_string_value(value) : "";
  if (strcmp(text, "inf") == 0) *out = INFINITY;
  else if (strcmp(text, "-inf") == 0) *out = -INFINITY;
  else if (strcmp(text, "nan") == 0) *out = NAN;
  else return false;
  return true;
}

/* What became of a value: taken, of another kind, or no memory. */
typedef enum taken { TAKEN, WRONG, NO_MEMORY } taken;

static taken take_string(const json_t *value, heddle_pattr *out) {
  if (!json_is_string(value)) return WRONG;
  out->count = json_string_length(value);
  out->data = heddle__strdup(json_string_value(value));
  return out->data != NULL ? TAKEN : NO_MEMORY;
}

/* INT, FLOAT, INTS, FLOATS: count elements of eight bytes. */
static taken take_numbers(const json_t *value, heddle_pattr *out) {
  bool is_list = out->kind == HEDDLE_ATTR_INTS || out->kind == HEDDLE_ATTR_FLOATS;
  bool is_float = out->kind == HEDDLE_ATTR_FLOAT || out->kind == HEDDLE_ATTR_FLOATS;
  if (is_list != json_is_array(value)) return WRONG;
  size_t count = is_list ? json_array_size(value) : 1;
  union number {
    int64_t i;
    double f;
  } *data = heddle__alloc(count, sizeof *data);
  if (data == NULL) return NO_MEMORY;
  out->data = data;
  out->count = count;
  for (size_t i = 0; i < count; i++) {
    const json_t *one = is_list ? json_array_get(value, i) : value;
    if (is_float ? !number_of(one, &data[i].f) : !heddle__json_int(one, INT64_MIN, INT64_MAX, &data[i].i)) return WRONG;
  }
  return TAKEN;
}

/* One block: the pointers, and then the characters. */
static taken take_strings(const json_t *value, heddle_pattr *out) {
  if (!json_is_array(value)) return WRONG;
  size_t count = json_array_size(value), bytes = count * sizeof(char *);
  for (size_t i = 0; i < count; i++) {
    if (!json_is_string(json_array_get(value, i))) return WRONG;
    bytes += json_string_length(json_array_get(value, i)) + 1;
  }
  const char **list = heddle__alloc(bytes, 1);
  if (list == NULL) return NO_MEMORY;
  char *text = (char *)(list + count);
  out->data = list;
  out->count = count;
  for (size_t i = 0; i < count; i++) {
    size_t n = json_string_length(json_array_get(value, i)) + 1;
    memcpy(text, json_string_value(json_array_get(value, i)), n);
    list[i] = text;
    text += n;
  }
  return TAKEN;
}

static taken take_value(const json_t *value, heddle_pattr *out) {
  if (out->kind == HEDDLE_ATTR_STRING) return take_string(value, out);
  if (out->kind == HEDDLE_ATTR_STRINGS) return take_strings(value, out);
  return take_numbers(value, out);
}

/* A graph within the graph: of the same dialect and opset. */
static heddle_status read_inner(heddle__reader *r, heddle__node *node, const char *name, json_t *value) {
  char shown[64], words[64], attr[64];
  heddle__show(node->name, shown);
  heddle__show(name, attr);
  if (!json_is_object(value))
    return heddle__node_fail(r->g, node, r->err, HEDDLE_EFORMAT,
                             "attribute '%s': expected the object of a graph, found %s", attr,
                             heddle__json_words(value, words));
  struct heddle__inner *more = heddle__grow(node->inner, node->n_inner, node->n_inner + 1, sizeof *more);
  if (more == NULL) return heddle__no_memory(r->err, "an attribute of a node");
  node->inner = more;
  struct heddle__inner *inner = &more[node->n_inner];
  *inner = (struct heddle__inner){heddle__strdup(name), NULL};
  if (inner->name == NULL) return heddle__no_memory(r->err, "an attribute of a node");
  node->n_inner++; /* from here on the graph's release frees it */
  heddle_status s = heddle__graph_from_inner(json_incref(value), r->g, r->max_nodes, &inner->graph, r->err);
  if (s == HEDDLE_OK) return s;
  char place[200];
  snprintf(place, sizeof place, "%s: ", r->name); /* it stands before the words; once is enough */
  heddle__unprefix(r->err, place);
  return heddle__at_node(heddle__prefix(r->err, s, "%s: node '%.60s' (%s): %s: ", r->name, shown, node->op, attr),
                         r->err, HEDDLE__NO_NODE, node->name);
}

static heddle_status read_attr(heddle__reader *r, heddle__node *node, const heddle__schema *schema, const char *name,
                               json_t *value) {
  char words[64], shown[64];
  uint32_t kind = heddle__version_attr(schema, name);
  if (kind == 0) return heddle__schema_no_attr(schema, r->g, node, name, r->err);
  if (kind == HEDDLE__ATTR_GRAPH) return read_inner(r, node, name, value);
  heddle_pattr *attr = &node->attrs[node->n_attrs];
  *attr = (heddle_pattr){.struct_size = sizeof *attr, .kind = kind};
  attr->name = heddle__strdup(name);
  if (attr->name == NULL) return heddle__no_memory(r->err, "an attribute of a node");
  node->n_attrs++; /* from here on the graph's release frees it */
  switch (take_value(value, attr)) {
  case TAKEN: return HEDDLE_OK;
  case NO_MEMORY: return heddle__no_memory(r->err, "an attribute of a node");
  default:
    return heddle__node_fail(r->g, node, r->err, HEDDLE_EFORMAT, "attribute '%s': expected %s, found %s",
                             heddle__show(name, shown), kind_words[kind], heddle__json_words(value, words));
  }
}

heddle_status heddle__read_attrs(heddle__reader *r, uint32_t id, const json_t *object) {
  heddle__node *node = &r->g->nodes[id];
  const heddle__schema *schema = heddle__schema_find(node->domain, node->op, r->g->opset);
  const char *name;
  json_t *value;
  if (schema == NULL || !r->g->is_heddle || json_object_size(object) == 0) return HEDDLE_OK;
  node->attrs = heddle__alloc(json_object_size(object), sizeof *node->attrs);
  if (node->attrs == NULL) return heddle__no_memory(r->err, "the attributes of a node");
  /* jansson's loop takes no const object, and changes nothing */
  for (void *at = json_object_iter((json_t *)(uintptr_t)object); at != NULL;
       at = json_object_iter_next((json_t *)(uintptr_t)object, at)) {
    name = json_object_iter_key(at);
    value = json_object_iter_value(at);
    heddle_status s = read_attr(r, node, schema, name, value);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}
