/* operators/operators.c: the tables of operators and of their definitions, and how to find a line of them. */
#include "operators/operators.h"

#include <stdio.h>
#include <string.h>

enum { TENSOR = false, VIEW = true };
enum { FIRST = HEDDLE__OPSET_OF_MODELS, LAST = HEDDLE__OPSET_LAST };
enum { MANY = HEDDLE__VARIADIC, SHAPES_ONLY = HEDDLE__SHAPES_ONLY };

const heddle__operator heddle__operators[] = {
#define OPERATOR(domain, op, element_types, ...) \
  {#op, (uint32_t)HEDDLE__TYPES_##element_types, HEDDLE__DOMAIN_##domain},
#include "operators/all.def"
};

/* The first opset of graphs with a definition that ONNX has since an opset. */
#define IN_GRAPHS(own, since) ((own) || (int)(since) > (int)HEDDLE__OPSET_FIRST ? (since) : (int)HEDDLE__OPSET_FIRST)

const heddle__version heddle__versions[] = {
#define SINCE(domain, op, first, last, least_in, most_in, least_out, most_out, shapes, kind, infer, attributes) \
  {.name = #op, \
   .attrs = attributes, \
   .own = HEDDLE__DOMAIN_##domain, \
   .is_view = kind, \
   .opset_first = IN_GRAPHS(HEDDLE__DOMAIN_##domain, first), \
   .opset_last = last, \
   .since = first, \
   .min_inputs = least_in, \
   .max_inputs = most_in, \
   .min_outputs = least_out, \
   .max_outputs = most_out, \
   .shape_inputs = shapes},
#include "operators/all.def"
};

const uint32_t heddle__operator_count = sizeof heddle__operators / sizeof heddle__operators[0];
const uint32_t heddle__version_count = sizeof heddle__versions / sizeof heddle__versions[0];

/* Few names begin with the same letter: most comparisons need no call. */
static bool is_same(const char *a, const char *b) {
  return a[0] == b[0] && strcmp(a, b) == 0;
}

const heddle__operator *heddle__operator_find(bool own, const char *name) {
  for (uint32_t i = 0; i < heddle__operator_count; i++)
    if (heddle__operators[i].own == own && is_same(heddle__operators[i].name, name)) return &heddle__operators[i];
  return NULL;
}

const heddle__version *heddle__version_find(bool own, const char *name, uint32_t opset) {
  for (uint32_t i = 0; i < heddle__version_count; i++) {
    const heddle__version *v = &heddle__versions[i];
    if (v->own == own && is_same(v->name, name) &&
        (own || opset == 0 || (opset >= v->opset_first && opset <= v->opset_last)))
      return v;
  }
  return NULL;
}

/* The word for an attribute's kind in the table, with its length; NULL where the definition has no such attribute. */
static const char *kind_word(const heddle__version *version, const char *name, size_t *kind_length) {
  size_t length = strcspn(name, ":,");
  if (name[length] != '\0' || length == 0) return NULL; /* it would match more than a name */
  for (const char *at = version->attrs; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    if (strncmp(at, name, length) != 0 || at[length] != ':') continue;
    *kind_length = strcspn(at + length + 1, ",");
    return at + length + 1;
  }
  return NULL;
}

static bool is_word(const char *at, size_t length, const char *word) {
  return strlen(word) == length && strncmp(at, word, length) == 0;
}

uint32_t heddle__version_attr(const heddle__version *version, const char *name) {
  static const char *const kinds[] = {"int", "float", "string", "ints", "floats", "strings", "graph"};
  size_t length = 0;
  const char *word = kind_word(version, name, &length);
  if (word == NULL) return 0;
  if (is_word(word, length, "flag")) return HEDDLE_ATTR_INT;
  for (uint32_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
    if (is_word(word, length, kinds[k])) return k + 1;
  return 0;
}

bool heddle__opset_has_attr(const char *op, uint32_t opset, const char *name) {
  const heddle__version *version = heddle__version_find(false, op, opset);
  return version != NULL && heddle__version_attr(version, name) != 0;
}

bool heddle__operator_draws(bool own, const char *name) {
  const heddle__version *version = heddle__version_find(own, name, 0);
  return version != NULL && heddle__version_attr(version, "seed") != 0;
}

bool heddle__version_runs_graphs(const heddle__version *version) {
  return strstr(version->attrs, ":graph") != NULL;
}

bool heddle__version_flag(const heddle__version *version, const char *name) {
  size_t length = 0;
  const char *word = kind_word(version, name, &length);
  return word != NULL && is_word(word, length, "flag");
}

const char *heddle__types_text(uint32_t types, char out[HEDDLE__TYPES_TEXT]) {
  static const char *const names[] = {
#define NAME(constant, name) name,
      HEDDLE__ELEMENTS(NAME)
#undef NAME
  };
  size_t used = 0;
  if (types == HEDDLE__TYPES_BYTES) return "any of whole bytes";
  out[0] = '\0';
  for (uint32_t i = 0; i < HEDDLE__ELEMENT_COUNT; i++) {
    if ((types >> i & 1) == 0) continue;
    const int n = snprintf(out + used, HEDDLE__TYPES_TEXT - used, "%s%s", used > 0 ? "," : "", names[i]);
    if (n > 0) used += (size_t)n;
  }
  return out;
}

heddle_status heddle__operator_list(const heddle__operator *op, uint32_t types, heddle_list_fn list, void *sink,
                                    heddle_error *err) {
  char text[HEDDLE__TYPES_TEXT];
  uint32_t first = UINT32_MAX, last = 0;
  for (uint32_t i = 0; i < heddle__version_count; i++) {
    const heddle__version *v = &heddle__versions[i];
    if (v->own != op->own || strcmp(v->name, op->name) != 0) continue;
    if (v->opset_first < first) first = v->opset_first;
    if (v->opset_last > last) last = v->opset_last;
  }
  return list(sink, op->own ? "heddle" : "", op->name, first, last, heddle__types_text(types, text), err);
}
