/* frontends/onnx/ml.c: the operators of ai.onnx.ml, their attributes and versions, and what their files share: attributes
 * that are read, nodes and constants that are made. */
#include "frontends/onnx/ml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "frontends/onnx/tensor.h"
#include "graph/opschema.h"

typedef Onnx__AttributeProto attribute;

enum { LAST_VERSION = 5 };

#define TREE_NODES \
  "nodes_falsenodeids:ints,nodes_featureids:ints,nodes_hitrates:floats,nodes_hitrates_as_tensor:tensor," \
  "nodes_missing_value_tracks_true:ints,nodes_modes:strings,nodes_nodeids:ints,nodes_treeids:ints," \
  "nodes_truenodeids:ints,nodes_values:floats,nodes_values_as_tensor:tensor,post_transform:string," \
  "base_values:floats,base_values_as_tensor:tensor"

/* first: the version that has it; attributes of later versions are taken in any. */
static const struct row {
  const char *op;
  int first;
  heddle__ml_fn read;
  const char *attrs;
} rows[] = {
    {"ArrayFeatureExtractor", 1, heddle__ml_array_feature_extractor, ""},
    {"Binarizer", 1, heddle__ml_binarizer, "threshold:float"},
    {"CategoryMapper", 1, heddle__ml_category_mapper,
     "cats_int64s:ints,cats_strings:strings,default_int64:int,default_string:string"},
    {"FeatureVectorizer", 1, heddle__ml_feature_vectorizer, "inputdimensions:ints"},
    {"Imputer", 1, heddle__ml_imputer,
     "imputed_value_floats:floats,imputed_value_int64s:ints,replaced_value_float:float,replaced_value_int64:int"},
    {"LabelEncoder", 1, heddle__ml_label_encoder,
     "classes_strings:strings,default_float:float,default_int64:int,default_string:string,default_tensor:tensor,"
     "keys_floats:floats,keys_int64s:ints,keys_strings:strings,keys_tensor:tensor,values_floats:floats,"
     "values_int64s:ints,values_strings:strings,values_tensor:tensor"},
    {"LinearClassifier", 1, heddle__ml_linear_classifier,
     "classlabels_ints:ints,classlabels_strings:strings,coefficients:floats,intercepts:floats,multi_class:int,"
     "post_transform:string"},
    {"LinearRegressor", 1, heddle__ml_linear_regressor,
     "coefficients:floats,intercepts:floats,post_transform:string,targets:int"},
    {"Normalizer", 1, heddle__ml_normalizer, "norm:string"},
    {"OneHotEncoder", 1, heddle__ml_one_hot_encoder, "cats_int64s:ints,cats_strings:strings,zeros:int"},
    {"SVMClassifier", 1, heddle__ml_svm_classifier,
     "classlabels_ints:ints,classlabels_strings:strings,coefficients:floats,kernel_params:floats,kernel_type:string,"
     "post_transform:string,prob_a:floats,prob_b:floats,rho:floats,support_vectors:floats,vectors_per_class:ints"},
    {"SVMRegressor", 1, heddle__ml_svm_regressor,
     "coefficients:floats,kernel_params:floats,kernel_type:string,n_supports:int,one_class:int,post_transform:string,"
     "rho:floats,support_vectors:floats"},
    {"Scaler", 1, heddle__ml_scaler, "offset:floats,scale:floats"},
    {"TreeEnsemble", 5, heddle__ml_tree_ensemble,
     "aggregate_function:int,leaf_targetids:ints,leaf_weights:tensor,membership_values:tensor,n_targets:int,"
     "nodes_falseleafs:ints,nodes_falsenodeids:ints,nodes_featureids:ints,nodes_hitrates:tensor,"
     "nodes_missing_value_tracks_true:ints,nodes_modes:tensor,nodes_splits:tensor,nodes_trueleafs:ints,"
     "nodes_truenodeids:ints,post_transform:int,tree_roots:ints"},
    {"TreeEnsembleClassifier", 1, heddle__ml_tree_classifier,
     "class_ids:ints,class_nodeids:ints,class_treeids:ints,class_weights:floats,class_weights_as_tensor:tensor,"
     "classlabels_int64s:ints,classlabels_strings:strings," TREE_NODES},
    {"TreeEnsembleRegressor", 1, heddle__ml_tree_regressor,
     "aggregate_function:string,n_targets:int,target_ids:ints,target_nodeids:ints,target_treeids:ints,"
     "target_weights:floats,target_weights_as_tensor:tensor," TREE_NODES},
    {"ZipMap", 1, heddle__ml_zip_map, "classlabels_int64s:ints,classlabels_strings:strings"},
};

/* ---- what is wrong */

void heddle__ml_refuse(heddle__ml *m, const char *format, ...) {
  char words[200];
  va_list args;
  if (!heddle__ml_good(m)) return;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  m->refused = true;
  heddle__onnx_problem(m->r, m->node, "%s", words);
}

void *heddle__ml_take(heddle__ml *m, size_t n, size_t width) {
  if (!heddle__ml_good(m)) return NULL;
  void *p = n <= SIZE_MAX / 2 / width ? heddle__onnx_take(&m->r->arena, n * width + 1) : NULL;
  if (p == NULL) m->s = heddle__onnx_no_memory(m->r);
  return p;
}

/* ---- attributes */

#define KIND(name) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##name

/* An attribute that has a value; the kinds were looked at before. Lists of the first formats that are empty may be of any. */
static const attribute *find_attribute(const heddle__ml *m, const char *name) {
  return heddle__ml_good(m) ? heddle__onnx_attr(m->node, name) : NULL;
}

bool heddle__ml_has(const heddle__ml *m, const char *name) {
  return find_attribute(m, name) != NULL;
}

const float *heddle__ml_floats(heddle__ml *m, const char *name, size_t *n) {
  const attribute *a = find_attribute(m, name);
  *n = a != NULL ? a->n_floats : 0;
  return *n > 0 ? a->floats : NULL;
}

const int64_t *heddle__ml_ints(heddle__ml *m, const char *name, size_t *n) {
  const attribute *a = find_attribute(m, name);
  *n = a != NULL ? a->n_ints : 0;
  return *n > 0 ? a->ints : NULL;
}

int64_t heddle__ml_int(heddle__ml *m, const char *name, int64_t fallback) {
  const attribute *a = find_attribute(m, name);
  return a != NULL ? a->i : fallback;
}

float heddle__ml_float(heddle__ml *m, const char *name, float fallback) {
  const attribute *a = find_attribute(m, name);
  return a != NULL ? a->f : fallback;
}

const int64_t *heddle__ml_codes(heddle__ml *m, const char *name, size_t *n) {
  const attribute *a = find_attribute(m, name);
  *n = a != NULL ? a->n_strings : 0;
  int64_t *codes = heddle__ml_take(m, *n, sizeof *codes);
  for (size_t i = 0; i < *n && heddle__ml_good(m); i++)
    m->s = heddle__onnx_code(m->r, a->strings[i].data, a->strings[i].len, &codes[i]);
  return heddle__ml_good(m) && *n > 0 ? codes : NULL;
}

int64_t heddle__ml_code(heddle__ml *m, const char *name, const char *fallback) {
  const attribute *a = find_attribute(m, name);
  int64_t code = 0;
  if (heddle__ml_good(m))
    m->s = a != NULL ? heddle__onnx_code(m->r, a->s.data, a->s.len, &code)
                     : heddle__onnx_code(m->r, fallback, strlen(fallback), &code);
  return code;
}

int heddle__ml_choice(heddle__ml *m, const char *name, const char *fallback, const char *words) {
  const attribute *a = find_attribute(m, name);
  const char *text = a != NULL && a->s.data != NULL ? (const char *)a->s.data : a != NULL ? "" : fallback;
  const size_t length = a != NULL ? a->s.len : strlen(fallback);
  int i = 0;
  for (const char *at = words; *at != '\0'; i++) {
    const size_t n = strcspn(at, " ");
    if (n == length && memcmp(at, text, n) == 0) return i;
    at += n + (at[n] == ' ');
  }
  heddle__ml_refuse(m, "attribute '%s' is none of: %s", name, words);
  return 0;
}

const void *heddle__ml_tensor(heddle__ml *m, const char *name, int32_t *type, size_t *n) {
  const attribute *a = find_attribute(m, name);
  *n = 0;
  *type = 0;
  if (a == NULL || a->t == NULL) return NULL;
  struct heddle__param p = {.name = NULL};
  heddle_status s = heddle__onnx_tensor(m->r, a->t, &p);
  const size_t width = p.value.dtype.bits / 8;
  void *copy = NULL;
  if (s != HEDDLE_OK) m->s = s;
  else if (width == 0 || (p.value.data == NULL && p.value.bytes > 0))
    heddle__ml_refuse(m, "attribute '%s' is of a type that is not known", name);
  else copy = heddle__ml_take(m, (size_t)p.value.bytes, 1);
  if (copy != NULL && p.value.bytes > 0) memcpy(copy, p.value.data, (size_t)p.value.bytes);
  if (copy != NULL) {
    *type = a->t->data_type;
    *n = (size_t)p.value.bytes / width;
  }
  if (!p.is_mapped) heddle__free(p.value.data);
  heddle__free(p.value.shape);
  return copy;
}

/* ---- nodes and constants */

const char *heddle__ml_make(heddle__ml *m, const char *op, const char *out, size_t n, const char *const *in) {
  for (size_t i = 0; i < n; i++)
    if (in[i] == NULL) return NULL; /* what made it has failed */
  Onnx__NodeProto *node = heddle__ml_take(m, 1, sizeof *node);
  char **values = heddle__ml_take(m, n + 1, sizeof *values);
  if (out == NULL && heddle__ml_good(m)) out = heddle__onnx_new_value(m->r, m->node, op);
  if (node == NULL || values == NULL || out == NULL) {
    if (heddle__ml_good(m)) m->s = heddle__onnx_no_memory(m->r);
    return NULL;
  }
  onnx__node_proto__init(node);
  node->op_type = (char *)(uintptr_t)op;
  node->name = (char *)(uintptr_t)heddle__onnx_node_name(m->node);
  node->domain = (char *)(uintptr_t) "";
  for (size_t i = 0; i < n; i++) values[i] = (char *)(uintptr_t)in[i];
  values[n] = (char *)(uintptr_t)out;
  node->input = values;
  node->n_input = n;
  node->output = values + n;
  node->n_output = 1;
  m->s = heddle__onnx_add_node(m->r, node);
  return m->s == HEDDLE_OK ? out : NULL;
}

const char *heddle__ml_1(heddle__ml *m, const char *op, const char *a, const char *out) {
  return heddle__ml_make(m, op, out, 1, &a);
}

const char *heddle__ml_2(heddle__ml *m, const char *op, const char *a, const char *b, const char *out) {
  const char *const in[] = {a, b};
  return heddle__ml_make(m, op, out, 2, in);
}

const char *heddle__ml_where(heddle__ml *m, const char *condition, const char *a, const char *b, const char *out) {
  const char *const in[] = {condition, a, b};
  return heddle__ml_make(m, "Where", out, 3, in);
}

Onnx__NodeProto *heddle__ml_last(heddle__ml *m, bool is_own) {
  if (!heddle__ml_good(m) || m->r->n_nodes == 0) return NULL;
  Onnx__NodeProto *node = m->r->nodes[m->r->n_nodes - 1];
  if (is_own) node->domain = (char *)(uintptr_t) "heddle";
  return node;
}

void heddle__ml_set_int(heddle__ml *m, const char *name, int64_t value) {
  Onnx__NodeProto *node = heddle__ml_last(m, false);
  if (node != NULL) m->s = heddle__onnx_set_int(m->r, node, name, value);
}

void heddle__ml_set_float(heddle__ml *m, const char *name, float value) {
  Onnx__NodeProto *node = heddle__ml_last(m, false);
  if (node != NULL) m->s = heddle__onnx_set_float(m->r, node, name, value);
}

void heddle__ml_set_text(heddle__ml *m, const char *name, const char *value) {
  Onnx__NodeProto *node = heddle__ml_last(m, false);
  if (node != NULL) m->s = heddle__onnx_set_text(m->r, node, name, value);
}

const char *heddle__ml_constant(heddle__ml *m, int32_t type, const void *data, int64_t n0, int64_t n1) {
  Onnx__TensorProto *t = heddle__ml_take(m, 1, sizeof *t);
  int64_t *dims = heddle__ml_take(m, 2, sizeof *dims);
  const char *name = heddle__ml_good(m) ? heddle__onnx_new_value(m->r, m->node, "constant") : NULL;
  if (t == NULL || dims == NULL) return NULL;
  if (name == NULL) {
    m->s = heddle__onnx_no_memory(m->r);
    return NULL;
  }
  const size_t n = n0 < 0 ? 1 : (size_t)n0 * (size_t)(n1 < 0 ? 1 : n1);
  onnx__tensor_proto__init(t);
  t->name = (char *)(uintptr_t)name;
  t->has_data_type = 1;
  t->data_type = type == ONNX_STRING ? ONNX_INT64 : type;
  t->dims = dims;
  t->n_dims = n0 < 0 ? 0 : n1 < 0 ? 1 : 2;
  dims[0] = n0;
  dims[1] = n1;
  void *numbers = (void *)(uintptr_t)data; /* a constant is never written */
  if (type == ONNX_FLOAT) t->float_data = numbers, t->n_float_data = n;
  else if (type == ONNX_DOUBLE) t->double_data = numbers, t->n_double_data = n;
  else if (type == ONNX_INT64 || type == ONNX_STRING) t->int64_data = numbers, t->n_int64_data = n;
  else t->int32_data = numbers, t->n_int32_data = n;
  m->s = heddle__onnx_add_tensor(m->r, t);
  if (heddle__ml_good(m)) m->s = heddle__onnx_note(m->r, name, type, (int32_t)t->n_dims);
  return heddle__ml_good(m) ? name : NULL;
}

const char *heddle__ml_number(heddle__ml *m, float value) {
  float *copy = heddle__ml_take(m, 1, sizeof *copy);
  if (copy == NULL) return NULL;
  *copy = value;
  return heddle__ml_constant(m, ONNX_FLOAT, copy, -1, -1);
}

static const char *whole(heddle__ml *m, int64_t value, int64_t n) {
  int64_t *copy = heddle__ml_take(m, 1, sizeof *copy);
  if (copy == NULL) return NULL;
  *copy = value;
  return heddle__ml_constant(m, ONNX_INT64, copy, n, -1);
}

const char *heddle__ml_whole(heddle__ml *m, int64_t value) {
  return whole(m, value, -1);
}

const char *heddle__ml_shape(heddle__ml *m, int64_t value) {
  return whole(m, value, 1);
}

/* ---- parts of several operators */

const char *heddle__ml_cast(heddle__ml *m, const char *x, int32_t to, const char *out) {
  if (x != NULL && out == NULL && heddle__onnx_known_of(m->r, x).type == to) return x;
  const char *y = heddle__ml_1(m, "Cast", x, out);
  heddle__ml_set_int(m, "to", to);
  return heddle__ml_good(m) ? y : NULL;
}

const char *heddle__ml_matrix(heddle__ml *m, size_t i, bool keeps, int32_t *type) {
  if (m->node->n_input <= i || m->node->input[i][0] == '\0') {
    heddle__ml_refuse(m, "input %zu is absent", i);
    return NULL;
  }
  const char *x = m->node->input[i];
  const heddle__onnx_known known = heddle__onnx_known_of(m->r, x);
  const bool is_double = keeps && known.type == ONNX_DOUBLE;
  if (type != NULL) *type = is_double ? ONNX_DOUBLE : ONNX_FLOAT;
  if (known.type == ONNX_STRING) heddle__ml_refuse(m, "input %zu is of strings", i);
  x = heddle__ml_cast(m, x, is_double ? ONNX_DOUBLE : ONNX_FLOAT, NULL);
  return known.rank == 1 ? heddle__ml_2(m, "Unsqueeze", x, heddle__ml_shape(m, 0), NULL) : x;
}

const char *heddle__ml_reduce(heddle__ml *m, const char *op, const char *x) {
  if (m->r->target >= 18) {
    x = heddle__ml_2(m, op, x, heddle__ml_shape(m, -1), NULL);
  } else {
    x = heddle__ml_1(m, op, x, NULL);
    Onnx__NodeProto *node = heddle__ml_last(m, false);
    int64_t *axis = heddle__ml_take(m, 1, sizeof *axis);
    if (axis == NULL || node == NULL) return NULL;
    m->s = heddle__onnx_set_int(m->r, node, "axes", 0);
    if (m->s != HEDDLE_OK) return NULL;
    Onnx__AttributeProto *a = node->attribute[node->n_attribute - 1];
    *axis = -1;
    a->type = KIND(INTS);
    a->ints = axis;
    a->n_ints = 1;
  }
  return x;
}

const char *heddle__ml_output(const heddle__ml *m, size_t k) {
  return k < m->node->n_output && m->node->output[k][0] != '\0' ? m->node->output[k] : NULL;
}

const char *heddle__ml_labels(heddle__ml *m, const char *ints, const char *strings, size_t *n) {
  const int64_t *labels = heddle__ml_codes(m, strings, n);
  if (*n > 0) return heddle__ml_constant(m, ONNX_STRING, labels, (int64_t)*n, -1);
  labels = heddle__ml_ints(m, ints, n);
  if (*n == 0) heddle__ml_refuse(m, "it has neither %s nor %s", ints, strings);
  return heddle__ml_constant(m, ONNX_INT64, labels, (int64_t)*n, -1);
}

int heddle__ml_post(heddle__ml *m) {
  return heddle__ml_choice(m, "post_transform", "NONE", "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT");
}

void heddle__ml_transform(heddle__ml *m, int post, const char *scores, const char *out) {
  if (out == NULL) return;
  if (post == HEDDLE__ML_NONE) heddle__ml_1(m, "Identity", scores, out);
  if (post == HEDDLE__ML_LOGISTIC) heddle__ml_1(m, "Sigmoid", scores, out);
  if (post == HEDDLE__ML_SOFTMAX) {
    heddle__ml_1(m, "Softmax", scores, out);
    heddle__ml_set_int(m, "axis", -1);
  }
  if (post == HEDDLE__ML_SOFTMAX_ZERO || post == HEDDLE__ML_PROBIT) {
    heddle__ml_1(m, "PostTransform", scores, out);
    heddle__ml_last(m, true);
    heddle__ml_set_text(m, "kind", post == HEDDLE__ML_PROBIT ? "PROBIT" : "SOFTMAX_ZERO");
  }
}

void heddle__ml_two(heddle__ml *m, int post, const char *s, bool is_signed, const char *out) {
  if (out == NULL) return;
  const bool negates = is_signed || post == HEDDLE__ML_LOGISTIC,
             transforms = post == HEDDLE__ML_LOGISTIC || post == HEDDLE__ML_PROBIT;
  const char *other =
      negates ? heddle__ml_1(m, "Neg", s, NULL) : heddle__ml_2(m, "Sub", heddle__ml_number(m, 1), s, NULL);
  const char *both = heddle__ml_2(m, "Concat", other, s, transforms ? NULL : out);
  heddle__ml_set_int(m, "axis", 1);
  if (transforms) heddle__ml_transform(m, post, both, out);
}

void heddle__ml_pick(heddle__ml *m, const char *labels, const char *index) {
  const char *out = heddle__ml_output(m, 0);
  if (out == NULL || labels == NULL) return;
  heddle__ml_2(m, "Gather", labels, index, out);
  if (heddle__ml_good(m)) m->s = heddle__onnx_note(m->r, out, heddle__onnx_known_of(m->r, labels).type, 1);
}

/* ---- a node */

static uint32_t kind_of(const attribute *a) {
  switch (heddle__onnx_kind(a)) {
  case KIND(INT): return HEDDLE_ATTR_INT;
  case KIND(FLOAT): return HEDDLE_ATTR_FLOAT;
  case KIND(STRING): return HEDDLE_ATTR_STRING;
  case KIND(INTS): return HEDDLE_ATTR_INTS;
  case KIND(FLOATS): return HEDDLE_ATTR_FLOATS;
  case KIND(STRINGS): return HEDDLE_ATTR_STRINGS;
  default: return 0;
  }
}

static bool is_tensor(const char *attrs, const char *name) {
  const size_t n = strlen(name);
  for (const char *at = attrs; n > 0 && (at = strstr(at, name)) != NULL; at += n)
    if ((at == attrs || at[-1] == ',') && strncmp(at + n, ":tensor", 7) == 0) return true;
  return false;
}

static void check_attrs(heddle__ml *m, const struct row *row) {
  const heddle__version version = {.attrs = row->attrs};
  char shown[44];
  for (size_t i = 0; i < m->node->n_attribute; i++) {
    const attribute *a = m->node->attribute[i];
    heddle__onnx_show(a->name, shown);
    const bool tensor = is_tensor(row->attrs, a->name);
    const uint32_t kind = heddle__version_attr(&version, a->name), has = kind_of(a);
    const bool is_empty = has == HEDDLE_ATTR_INTS && a->n_ints == 0 && kind >= HEDDLE_ATTR_INTS;
    if (a->ref_attr_name != NULL && a->ref_attr_name[0] != '\0')
      heddle__ml_refuse(m, "attribute '%s' refers to an attribute of a function", shown);
    else if (tensor && (heddle__onnx_kind(a) != KIND(TENSOR) || a->t == NULL))
      heddle__ml_refuse(m, "attribute '%s' is no tensor", shown);
    else if (!tensor && kind == 0) heddle__ml_refuse(m, "it has no attribute '%s'", shown);
    else if (!tensor && kind != has && !is_empty) heddle__ml_refuse(m, "attribute '%s' is of another kind", shown);
  }
}

bool heddle__ml_stand_in(heddle__ml *m) {
  m->node->domain = (char *)(uintptr_t) "";
  m->node->op_type = (char *)(uintptr_t) "Identity";
  m->node->n_input = m->node->n_attribute = 0;
  return false;
}

HEDDLE__UPGRADE(heddle__upgrade_ml) {
  const Onnx__ModelProto *model = r->model;
  heddle__ml m = {.r = r, .node = node};
  int64_t version = 0;
  for (size_t i = 0; i < model->n_opset_import; i++)
    if (model->opset_import[i]->domain != NULL && strcmp(model->opset_import[i]->domain, node->domain) == 0)
      version = model->opset_import[i]->version;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp(rows[i].op, node->op_type) != 0) continue;
    if (version < rows[i].first) return HEDDLE_OK; /* it is reported as not known */
    *is_done = true;
    if (version > LAST_VERSION)
      heddle__ml_refuse(&m, "the model is of opset %lld of ai.onnx.ml, and this library reads 1 to %d",
                        (long long)version, LAST_VERSION);
    if (node->n_output == 0 || node->n_input == 0) heddle__ml_refuse(&m, "it has no input, or no output");
    check_attrs(&m, &rows[i]);
    if (heddle__ml_good(&m)) rows[i].read(&m);
    if (m.s == HEDDLE_OK && m.refused) *is_done = heddle__ml_stand_in(&m);
    return m.s;
  }
  return HEDDLE_OK;
}
