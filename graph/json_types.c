/* graph/json_types.c: the columns of the top-level "attrs", one member per entry: dltype and shape, and TVM's storage_id,
 * device_index and storage_scope. Attributes of other names are left for the writer. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "graph/opschema.h"
#include "graph/reader.h"
#include "graph/words.h"

/* A column [tag, list] of as many members as there are entries. NULL where it is missing and may be. */
static heddle_status read_column(heddle__reader *r, const json_t *attrs, const char *key, const char *tag, bool needed,
                                 const json_t **out) {
  char words[64];
  const json_t *pair = json_object_get(attrs, key);
  *out = NULL;
  if (pair == NULL && !needed) return HEDDLE_OK;
  const json_t *first = json_array_get(pair, 0), *list = json_array_get(pair, 1);
  if (json_array_size(pair) != 2 || !json_is_string(first) || !json_is_array(list))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "attrs.%s: expected [\"%s\", [...]], found %s", key, tag,
                               heddle__json_words(pair, words));
  if (strcmp(json_string_value(first), tag) != 0)
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "attrs.%s[0]: expected \"%s\", found %s", key, tag,
                               heddle__json_words(first, words));
  if (json_array_size(list) != r->g->n_entries)
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "attrs.%s: %zu members, expected %u, the last number of node_row_ptr",
                               key, json_array_size(list), r->g->n_entries);
  *out = list;
  return HEDDLE_OK;
}

static heddle_status read_dtypes(heddle__reader *r, const json_t *list) {
  char words[64];
  for (uint32_t i = 0; i < r->g->n_entries; i++) {
    const json_t *value = json_array_get(list, i);
    heddle__type *type = &r->g->types[i];
    if (json_is_null(value) && r->g->is_heddle) continue;
    if (!json_is_string(value))
      return heddle__reader_fail(r, HEDDLE_EFORMAT, "attrs.dltype[1][%u]: expected a string, found %s", i,
                                 heddle__json_words(value, words));
    heddle_status s = heddle__dtype_parse(json_string_value(value), &type->dtype, r->err);
    if (s == HEDDLE_OK) s = heddle__dtype_usable(type->dtype, r->g->is_heddle, r->err);
    if (s != HEDDLE_OK) return heddle__prefix(r->err, s, "%s: attrs.dltype[1][%u]: ", r->name, i);
    type->has_dtype = true;
  }
  return HEDDLE_OK;
}

static heddle_status read_dim(heddle__reader *r, uint32_t entry, uint32_t axis, const json_t *value, heddle__dim *out) {
  char words[64];
  out->value = -1;
  if (heddle__json_int(value, 0, INT64_MAX, &out->value)) return HEDDLE_OK;
  if (r->g->is_heddle && json_is_null(value)) return HEDDLE_OK;
  if (!r->g->is_heddle || !json_is_string(value) || json_string_length(value) == 0)
    return heddle__reader_fail(r, HEDDLE_EFORMAT,
                               "attrs.shape[1][%u][%u]: expected a dimension of 0 or more%s, found %s", entry, axis,
                               r->g->is_heddle ? ", or the name of one" : "", heddle__json_words(value, words));
  out->symbol = heddle__strdup(json_string_value(value));
  return out->symbol != NULL ? HEDDLE_OK : heddle__no_memory(r->err, "a shape");
}

static heddle_status read_shape(heddle__reader *r, uint32_t entry, const json_t *value) {
  char words[64];
  heddle__type *type = &r->g->types[entry];
  if (!json_is_array(value))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "attrs.shape[1][%u]: expected a list of dimensions, found %s", entry,
                               heddle__json_words(value, words));
  size_t ndim = json_array_size(value);
  if (ndim > HEDDLE__MAX_NDIM)
    return heddle__reader_fail(r, HEDDLE_ELIMIT, "attrs.shape[1][%u]: %zu dimensions, at most %d are possible", entry,
                               ndim, HEDDLE__MAX_NDIM);
  type->dims = heddle__alloc(ndim, sizeof *type->dims);
  if (type->dims == NULL) return heddle__no_memory(r->err, "a shape");
  type->ndim = (uint32_t)ndim;
  type->has_shape = true;
  for (uint32_t i = 0; i < ndim; i++) {
    heddle_status s = read_dim(r, entry, i, json_array_get(value, i), &type->dims[i]);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

static heddle_status read_shapes(heddle__reader *r, const json_t *list) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < r->g->n_entries && s == HEDDLE_OK; i++)
    if (!json_is_null(json_array_get(list, i)) || !r->g->is_heddle) s = read_shape(r, i, json_array_get(list, i));
  return s;
}

/* A column of integers, TVM's 32-bit ones. */
static heddle_status read_ints(heddle__reader *r, const json_t *attrs, const char *key, int64_t min, int32_t **out) {
  char words[64];
  const json_t *list;
  heddle_status s = read_column(r, attrs, key, "list_int", false, &list);
  if (s != HEDDLE_OK || list == NULL) return s;
  *out = heddle__alloc(r->g->n_entries, sizeof **out);
  if (*out == NULL) return heddle__no_memory(r->err, "a column of a graph");
  for (uint32_t i = 0; i < r->g->n_entries; i++) {
    int64_t n;
    const json_t *value = json_array_get(list, i);
    if (!heddle__json_int(value, min, INT32_MAX, &n))
      return heddle__reader_fail(r, HEDDLE_EFORMAT, "attrs.%s[1][%u]: expected an integer from %lld to %d, found %s",
                                 key, i, (long long)min, INT32_MAX, heddle__json_words(value, words));
    (*out)[i] = (int32_t)n;
  }
  return HEDDLE_OK;
}

static heddle_status read_scopes(heddle__reader *r, const json_t *attrs) {
  char words[64];
  const json_t *list;
  heddle_status s = read_column(r, attrs, "storage_scope", "list_str", false, &list);
  if (s != HEDDLE_OK || list == NULL) return s;
  r->g->storage_scope = heddle__alloc(r->g->n_entries, sizeof *r->g->storage_scope);
  if (r->g->storage_scope == NULL) return heddle__no_memory(r->err, "a column of a graph");
  for (uint32_t i = 0; i < r->g->n_entries; i++) {
    const json_t *value = json_array_get(list, i);
    if (!json_is_string(value))
      return heddle__reader_fail(r, HEDDLE_EFORMAT, "attrs.storage_scope[1][%u]: expected a string, found %s", i,
                                 heddle__json_words(value, words));
    r->g->storage_scope[i] = heddle__strdup(json_string_value(value));
    if (r->g->storage_scope[i] == NULL) return heddle__no_memory(r->err, "a column of a graph");
  }
  return HEDDLE_OK;
}

heddle_status heddle__read_types(heddle__reader *r, const json_t *attrs) {
  char words[64];
  const json_t *dtypes = NULL, *shapes = NULL;
  heddle_graph *g = r->g;
  if (!json_is_object(attrs))
    return heddle__reader_fail(r, HEDDLE_EFORMAT, "\"attrs\": expected an object with dltype and shape, found %s",
                               heddle__json_words(attrs, words));
  heddle_status s = read_column(r, attrs, "dltype", "list_str", true, &dtypes);
  if (s == HEDDLE_OK) s = read_column(r, attrs, "shape", "list_shape", true, &shapes);
  if (s != HEDDLE_OK) return s;
  g->types = heddle__alloc(g->n_entries, sizeof *g->types); /* n_entries is now the length of a list that was read */
  if (g->types == NULL) return heddle__no_memory(r->err, "the types of a graph");
  s = read_dtypes(r, dtypes);
  if (s == HEDDLE_OK) s = read_shapes(r, shapes);
  if (s == HEDDLE_OK) s = read_ints(r, attrs, "storage_id", 0, &g->storage_id);
  if (s == HEDDLE_OK) s = read_ints(r, attrs, "device_index", 0, &g->device_index);
  if (s == HEDDLE_OK) s = read_scopes(r, attrs);
  if (s == HEDDLE_OK && g->storage_id == NULL && !g->is_heddle)
    s = heddle__reader_fail(r, HEDDLE_EFORMAT, "attrs.storage_id: expected [\"list_int\", [...]], found nothing");
  return s;
}
