/* frontends/onnx/strings.c: the numbers of strings, and the lists of them beside a graph. */
#include "frontends/onnx/strings.h"

#include <string.h>

#include "core/error.h"
#include "frontends/onnx/ml.h"
#include "frontends/onnx/types.h"

/* r->strings: {"text": number}, in order; "texts": [name], "maps": {name: {"keys": [...], "text": bool}} beside it. */

static json_t *part(heddle__onnx_reader *r, const char *key, bool is_list) {
  json_t *p = json_object_get(r->strings, key);
  if (p != NULL) return p;
  p = is_list ? json_array() : json_object();
  return p != NULL && json_object_set_new(r->strings, key, p) == 0 ? p : NULL;
}

heddle_status heddle__onnx_code(heddle__onnx_reader *r, const void *text, size_t bytes, int64_t *code) {
  json_t *numbers = part(r, "numbers", false), *list = part(r, "strings", true);
  if (numbers == NULL || list == NULL) return heddle__onnx_no_memory(r);
  if (bytes > 0 && memchr(text, 0, bytes) != NULL)
    return heddle__onnx_fail(r, HEDDLE_EUNSUPPORTED, "a string of the model has a byte 0 in it");
  json_t *value = json_stringn(bytes > 0 ? text : "", bytes);
  if (value == NULL) return heddle__onnx_fail(r, HEDDLE_EFORMAT, "a string of the model is not UTF-8");
  const json_t *known = json_object_get(numbers, json_string_value(value));
  heddle_status s = HEDDLE_OK;
  *code = known != NULL ? json_integer_value(known) : (int64_t)json_array_size(list);
  if (known == NULL && (json_object_set_new(numbers, json_string_value(value), json_integer(*code)) != 0 ||
                        json_array_append(list, value) != 0))
    s = heddle__onnx_no_memory(r);
  json_decref(value);
  return s;
}

heddle_status heddle__onnx_codes(heddle__onnx_reader *r, const Onnx__TensorProto *t, uint64_t n, int64_t **out) {
  char shown[44];
  if (t->n_string_data != n)
    return heddle__onnx_fail(r, HEDDLE_EFORMAT, "tensor '%s': it has %zu strings, and its shape needs %llu",
                             heddle__onnx_show(t->name, shown), t->n_string_data, (unsigned long long)n);
  *out = heddle__onnx_take(&r->arena, ((size_t)n + 1) * sizeof **out);
  if (*out == NULL) return heddle__onnx_no_memory(r);
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < n && s == HEDDLE_OK; i++)
    s = heddle__onnx_code(r, t->string_data[i].data, t->string_data[i].len, &(*out)[i]);
  if (s == HEDDLE_OK || s == HEDDLE_ENOMEM) return s;
  return heddle__prefix(r->err, s, "tensor '%s': ", heddle__onnx_show(t->name, shown));
}

heddle_status heddle__onnx_note_text(heddle__onnx_reader *r, const char *name) {
  json_t *texts = part(r, "texts", true);
  if (texts == NULL || json_array_append_new(texts, json_string(name)) != 0) return heddle__onnx_no_memory(r);
  return HEDDLE_OK;
}

heddle_status heddle__onnx_note_map(heddle__onnx_reader *r, const char *name, const int64_t *labels, size_t n,
                                    bool is_text) {
  json_t *maps = part(r, "maps", false), *keys = json_array();
  int failed = maps == NULL || keys == NULL;
  for (size_t i = 0; i < n && failed == 0; i++) failed = json_array_append_new(keys, json_integer(labels[i]));
  json_t *one = failed == 0 ? json_pack("{sO sb}", "keys", keys, "text", (int)is_text) : NULL;
  json_decref(keys);
  if (one == NULL || json_object_set_new(maps, name, one) != 0) return heddle__onnx_no_memory(r);
  return HEDDLE_OK;
}

heddle_status heddle__onnx_note_kind(heddle__onnx_reader *r, const char *name, int kind) {
  json_t *objects = part(r, "objects", false);
  if (objects == NULL || json_object_set_new(objects, name, json_integer(kind)) != 0) return heddle__onnx_no_memory(r);
  return HEDDLE_OK;
}

bool heddle__onnx_is_map(const heddle__onnx_reader *r, const char *name) {
  return json_object_get(json_object_get(r->strings, "maps"), name) != NULL;
}

/* Operators that move elements, or tell whether two are the same. */
static bool moves(const char *op) {
  static const char *const ops[] = {
      "Compress",       "Concat",    "Equal",     "Expand",  "Flatten",         "Gather",
      "GatherElements", "GatherND",  "Identity",  "Reshape", "ScatterElements", "ScatterND",
      "Shape",          "Size",      "Slice",     "Split",   "TfIdfVectorizer", "Squeeze",
      "Tile",           "Transpose", "Unsqueeze", "Where"};
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
    if (strcmp(ops[i], op) == 0) return true;
  return false;
}

bool heddle__onnx_check_strings(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  const bool is_default = node->domain[0] == '\0';
  for (size_t k = 0; k < node->n_input; k++) {
    if (heddle__onnx_is_map(r, node->input[k])) {
      heddle__onnx_problem(r, node, "it takes a sequence of maps, which only an output of the model may be");
      return false;
    }
    if (heddle__onnx_known_of(r, node->input[k]).type != ONNX_STRING) continue;
    if (is_default && (moves(node->op_type) || heddle__onnx_is_control(node))) continue;
    heddle__onnx_problem(r, node, "it takes strings, which it would change or make new ones of");
    return false;
  }
  return true;
}

/* The pool's numbers in place of its strings. */
HEDDLE__UPGRADE(heddle__upgrade_tfidf) {
  Onnx__AttributeProto *pool = NULL;
  (void)is_done;
  for (size_t i = 0; i < node->n_attribute; i++)
    if (strcmp(node->attribute[i]->name, "pool_strings") == 0) pool = node->attribute[i];
  const bool is_text = node->n_input > 0 && heddle__onnx_known_of(r, node->input[0]).type == ONNX_STRING;
  if (pool == NULL || pool->n_strings == 0) {
    if (is_text) heddle__onnx_problem(r, node, "its input is of strings, and its pool is not");
    return HEDDLE_OK;
  }
  if (!is_text) {
    heddle__onnx_problem(r, node, "its pool is of strings, and its input is not");
    return HEDDLE_OK;
  }
  int64_t *codes = heddle__onnx_take(&r->arena, pool->n_strings * sizeof *codes);
  if (codes == NULL) return heddle__onnx_no_memory(r);
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < pool->n_strings && s == HEDDLE_OK; i++)
    s = heddle__onnx_code(r, pool->strings[i].data, pool->strings[i].len, &codes[i]);
  heddle__onnx_drop_attr(node, "pool_int64s");
  pool->name = (char *)(uintptr_t) "pool_int64s";
  pool->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  pool->has_type = 1;
  pool->ints = codes;
  pool->n_ints = pool->n_strings;
  pool->n_strings = 0;
  return s == HEDDLE_OK ? heddle__onnx_note(r, node->output[0], ONNX_FLOAT, -1) : s;
}

heddle_status heddle__onnx_tell_strings(heddle__onnx_reader *r, json_t *heddle) {
  static const char *const keys[] = {"strings", "texts", "maps", "objects"};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    json_t *p = json_object_get(r->strings, keys[i]);
    if (p != NULL && json_object_set(heddle, keys[i], p) != 0) return heddle__onnx_no_memory(r);
  }
  return HEDDLE_OK;
}
