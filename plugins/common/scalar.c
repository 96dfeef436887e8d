/* The calls of scalar.h, on tables of the lines of operators/. */
#include "scalar.h"

#include "perror.h"
#include "region.h"

#include <stdio.h>
#include <string.h>

enum { MANY = HEDDLE__VARIADIC };

/* Arrays of characters, so that a loader has nothing to relocate. The last line of each is empty. */
static const struct {
  char name[20];
  uint8_t kind, operands;
} lines[] = {
#define SCALAR(name, kind, operands, ...) {#name, SCALAR_##kind, operands},
#include "operators/all.def"
    {"", 0, 0},
};

static const scalar_attributes attributes[] = {
#define SCALAR_ATTRIBUTES(name, alpha, of_alpha, beta, of_beta) {#name, #alpha, #beta, of_alpha, of_beta},
#include "operators/all.def"
    {"", "none", "none", 0, 0},
};

static const scalar_choice variants[] = {
#define SCALAR_VARIANT(name, attribute, value, variant) {#name, #attribute, #value, #variant},
#include "operators/all.def"
    {"", "", "", ""},
};

/* All but the last row of a table, which is empty: a build may have no other. */
#define IS_ROW(table, i) ((size_t)(i) + 1 < sizeof(table) / sizeof(table)[0])

scalar_info scalar_find(const char *name) {
  scalar_info out = {0, 0};
  for (size_t i = 0; IS_ROW(lines, i); i++) {
    if (strcmp(lines[i].name, name) != 0) continue;
    out.kinds |= lines[i].kind;
    out.operands = lines[i].operands;
  }
  return out;
}

uint16_t scalar_number(const char *name) {
  uint16_t i = 0;
  while (IS_ROW(lines, i) && strcmp(lines[i].name, name) != 0) i++;
  return i;
}

const char *scalar_name(uint16_t number) {
  return lines[number].name;
}

bool scalar_known(const char *op) {
  const size_t length = strlen(op);
  for (size_t i = 0; IS_ROW(lines, i); i++) {
    const char *name = lines[i].name;
    if (strncmp(name, op, length) == 0 && (name[length] == '\0' || name[length] == '_')) return true;
  }
  return false;
}

const scalar_attributes *scalar_attributes_of(const char *name) {
  size_t i = 0;
  while (IS_ROW(attributes, i) && strcmp(attributes[i].name, name) != 0) i++;
  return &attributes[i];
}

const char *scalar_variant(const char *op, const char *attribute, const char *value) {
  for (size_t i = 0; IS_ROW(variants, i); i++) {
    if (strcmp(variants[i].op, op) == 0 && strcmp(variants[i].attribute, attribute) == 0 &&
        strcmp(variants[i].value, value) == 0)
      return variants[i].variant;
  }
  return NULL;
}

const scalar_choice *scalar_choice_of(const char *op, uint32_t i) {
  for (size_t k = 0; IS_ROW(variants, k); k++)
    if (strcmp(variants[k].op, op) == 0 && i-- == 0) return &variants[k];
  return NULL;
}

bool scalar_has_variants(const char *op, const char *attribute) {
  for (size_t i = 0; IS_ROW(variants, i); i++) {
    if (strcmp(variants[i].op, op) == 0 && strcmp(variants[i].attribute, attribute) == 0) return true;
  }
  return false;
}

/* A flag is 0 or 1; a string that no variant has is none, or unknown. */
static heddle_status read_variant(const heddle_pnode *node, const char *attribute, scalar_call *out,
                                  heddle_error *err) {
  const char *value = "none", *variant = NULL;
  int64_t flag = 0;
  const heddle_pattr *attr = region_attr_find(node, attribute);
  if (attr == NULL) return HEDDLE_OK;
  const bool is_flag = attr->kind == HEDDLE_ATTR_INT;
  heddle_status s = is_flag ? region_attr_int(node, attribute, 0, &flag, err)
                            : region_attr_string(node, attribute, value, &value, err);
  if (s != HEDDLE_OK) return s;
  if (is_flag) value = flag != 0 ? "1" : "none";
  variant = scalar_variant(node->op, attribute, value);
  out->attributes++;
  if (variant != NULL) out->name = variant;
  else if (strcmp(value, "none") != 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s '%.40s' is not known", attribute, value);
  return HEDDLE_OK;
}

static heddle_status read_number(const heddle_pnode *node, const char *attribute, double *value, scalar_call *out,
                                 heddle_error *err) {
  if (region_attr_find(node, attribute) == NULL) return HEDDLE_OK;
  out->attributes++;
  return region_attr_float(node, attribute, *value, value, err);
}

heddle_status scalar_read(const heddle_pnode *node, scalar_call *out, heddle_error *err) {
  const char *before = "";
  heddle_status s = HEDDLE_OK;
  const scalar_attributes *a = scalar_attributes_of(node->op);
  *out = (scalar_call){.name = node->op, .alpha = a->of_alpha, .beta = a->of_beta};
  for (size_t i = 0; IS_ROW(variants, i) && s == HEDDLE_OK; i++) {
    if (strcmp(variants[i].op, node->op) != 0 || strcmp(variants[i].attribute, before) == 0) continue;
    before = variants[i].attribute;
    s = read_variant(node, before, out, err);
  }
  if (s == HEDDLE_OK) s = read_number(node, a->alpha, &out->alpha, out, err);
  if (s == HEDDLE_OK) s = read_number(node, a->beta, &out->beta, out, err);
  if (s != HEDDLE_OK) p_prefix(err, "node '%.200s': %.100s: ", node->name != NULL ? node->name : "", node->op);
  out->alpha = scalar_single(out->alpha);
  out->beta = scalar_single(out->beta);
  return s;
}
