/* frontends/onnx/ml_trees.c: ensembles of trees of ai.onnx.ml, in each of their forms, as nodes of operators/ml.def's
 * TreeEnsemble. What the file says of its nodes is checked here: who leads where, and that no walk goes round. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/onnx/ml.h"
#include "plugins/common/float16.h"

enum { FEATURE, RULE, YES, NO, FIRST, LAST, COLUMNS };
enum { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF, MISSING = 256 };

typedef struct forest {
  size_t n_roots, n, n_leaves, n_members; /* of nodes, of pairs of target and weight */
  int64_t *roots, *targets;
  int32_t *nodes; /* as the operator has them */
  double *splits, *weights, *members;
  bool is_double;
} forest;

/* ---- lists of the file */

static double *widened(heddle__ml *m, int32_t type, const void *data, size_t n) {
  double *x = heddle__ml_take(m, n, sizeof *x);
  for (size_t i = 0; x != NULL && i < n; i++) {
    if (type == ONNX_FLOAT) x[i] = (double)((const float *)data)[i];
    else if (type == ONNX_DOUBLE) x[i] = ((const double *)data)[i];
    else x[i] = (double)float16_to_float(((const uint16_t *)data)[i]);
  }
  return x;
}

static double *tensor_of(heddle__ml *m, const char *name, size_t *n) {
  int32_t type;
  const void *data = heddle__ml_tensor(m, name, &type, n);
  if (data == NULL) return NULL;
  if (type != ONNX_FLOAT && type != ONNX_DOUBLE && type != ONNX_FLOAT16) {
    heddle__ml_refuse(m, "attribute '%s' is of no floating-point type", name);
    return NULL;
  }
  return widened(m, type, data, *n);
}

/* A list of floats, or a tensor in its place. */
static double *numbers_of(heddle__ml *m, const char *name, const char *tensor, size_t *n) {
  if (heddle__ml_has(m, tensor)) return tensor_of(m, tensor, n);
  const float *list = heddle__ml_floats(m, name, n);
  return widened(m, ONNX_FLOAT, list, *n);
}

static const int64_t *list_of(heddle__ml *m, const char *name, size_t wanted) {
  size_t n;
  const int64_t *list = heddle__ml_ints(m, name, &n);
  if (n != wanted) heddle__ml_refuse(m, "%s has %zu numbers, expected %zu", name, n, wanted);
  return list;
}

/* ---- nodes by tree and number */

typedef struct key {
  int64_t tree, node;
  size_t at;
} key;

static int by_key(const void *a, const void *b) {
  const key *x = a, *y = b;
  if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* SIZE_MAX: there is none. */
static size_t find_node(const key *keys, size_t n, int64_t tree, int64_t node) {
  const key wanted = {tree, node, 0};
  size_t from = 0, to = n;
  while (from < to) {
    const size_t mid = from + (to - from) / 2;
    if (by_key(&keys[mid], &wanted) < 0) from = mid + 1;
    else to = mid;
  }
  return from < n && keys[from].tree == tree && keys[from].node == node ? keys[from].at : SIZE_MAX;
}

static const key *sorted(heddle__ml *m, const int64_t *trees, const int64_t *nodes, size_t n) {
  key *keys = heddle__ml_take(m, n, sizeof *keys);
  if (keys == NULL) return NULL;
  bool in_order = true;
  for (size_t i = 0; i < n; i++) {
    keys[i] = (key){trees[i], nodes[i], i};
    in_order = in_order && (i == 0 || by_key(&keys[i - 1], &keys[i]) < 0);
  }
  if (!in_order) qsort(keys, n, sizeof *keys, by_key);
  for (size_t i = 1; i < n; i++)
    if (keys[i].tree == keys[i - 1].tree && keys[i].node == keys[i - 1].node)
      heddle__ml_refuse(m, "node %lld of tree %lld is listed twice", (long long)keys[i].node, (long long)keys[i].tree);
  return heddle__ml_good(m) ? keys : NULL;
}

/* ---- the whole */

/* No way leads back to a node that it came through. 0: not seen; 1: on the way; 2: done. */
static void check_ways(heddle__ml *m, const forest *f) {
  uint8_t *seen = heddle__ml_take(m, f->n, 1);
  int32_t *way = heddle__ml_take(m, f->n + 1, sizeof *way);
  if (way == NULL) return;
  for (size_t t = 0; t < f->n_roots; t++) {
    size_t depth = 0;
    way[depth++] = (int32_t)f->roots[t];
    while (depth > 0) {
      const int32_t at = way[depth - 1], *node = f->nodes + (size_t)at * COLUMNS;
      const bool is_leaf = (node[RULE] & 0xff) == LEAF;
      const int32_t next = is_leaf || seen[at] >= 2 ? -1 : seen[at] == 0 ? node[YES] : node[NO];
      seen[at] = is_leaf ? 3 : seen[at] >= 2 ? 3 : (uint8_t)(seen[at] + 1);
      if (next < 0) {
        depth--;
        continue;
      }
      if (seen[next] == 3) continue;
      if (seen[next] != 0) {
        heddle__ml_refuse(m, "its nodes go round: node %d leads back to node %d", at, next);
        return;
      }
      way[depth++] = next;
    }
  }
}

static const char *reals(heddle__ml *m, const forest *f, const double *x, size_t n) {
  if (f->is_double) return heddle__ml_constant(m, ONNX_DOUBLE, x, (int64_t)n, -1);
  float *narrow = heddle__ml_take(m, n, sizeof *narrow);
  for (size_t i = 0; narrow != NULL && i < n; i++) narrow[i] = (float)x[i];
  return heddle__ml_constant(m, ONNX_FLOAT, narrow, (int64_t)n, -1);
}

/* Scores [n, targets] of a forest; *best, where it is wanted, is the index of the greatest of each row. */
static const char *scores_of(heddle__ml *m, const forest *f, int64_t n_targets, const char *aggregate,
                             const char **best) {
  int32_t type;
  for (size_t i = 0; i < f->n_leaves && heddle__ml_good(m); i++)
    if (f->targets[i] < 0 || f->targets[i] >= n_targets)
      heddle__ml_refuse(m, "a weight is of target %lld, and there are %lld", (long long)f->targets[i],
                        (long long)n_targets);
  if (n_targets < 1 || n_targets > 1 << 24) heddle__ml_refuse(m, "it has %lld targets", (long long)n_targets);
  if (heddle__ml_good(m)) check_ways(m, f);
  const char *x = heddle__ml_matrix(m, 0, true, &type);
  if (!heddle__ml_good(m)) return NULL;
  const char *const in[] = {x,
                            heddle__ml_constant(m, ONNX_INT64, f->roots, (int64_t)f->n_roots, -1),
                            heddle__ml_constant(m, ONNX_INT32, f->nodes, (int64_t)f->n, COLUMNS),
                            reals(m, f, f->splits, f->n),
                            heddle__ml_constant(m, ONNX_INT64, f->targets, (int64_t)f->n_leaves, -1),
                            reals(m, f, f->weights, f->n_leaves),
                            f->n_members > 0 ? reals(m, f, f->members, f->n_members) : ""};
  const char *scores = heddle__ml_make(m, "TreeEnsemble", NULL, f->n_members > 0 ? 7 : 6, in);
  Onnx__NodeProto *node = heddle__ml_last(m, true);
  heddle__ml_set_int(m, "n_targets", n_targets);
  heddle__ml_set_text(m, "aggregate", aggregate);
  char **outputs = best != NULL ? heddle__ml_take(m, 2, sizeof *outputs) : NULL;
  if (node == NULL || outputs == NULL) return scores;
  *best = heddle__onnx_new_value(m->r, m->node, "best");
  if (*best == NULL) m->s = heddle__onnx_no_memory(m->r);
  outputs[0] = node->output[0];
  outputs[1] = (char *)(uintptr_t)*best;
  node->output = outputs;
  node->n_output = *best != NULL ? 2 : 1;
  return scores;
}

/* ---- versions 1 and 3 */

static int mode_of(heddle__ml *m, const ProtobufCBinaryData *s) {
  static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                      "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
  for (int i = 0; i <= LEAF; i++)
    if (s->len == strlen(names[i]) && s->len > 0 && memcmp(s->data, names[i], s->len) == 0) return i;
  heddle__ml_refuse(m, "nodes_modes has a word that is no mode");
  return LEAF;
}

static int32_t target_of(heddle__ml *m, const key *keys, const forest *f, int64_t tree, int64_t from, int64_t to) {
  const size_t at = find_node(keys, f->n, tree, to);
  if (at == SIZE_MAX)
    heddle__ml_refuse(m, "node %lld of tree %lld leads to node %lld, which is not there", (long long)from,
                      (long long)tree, (long long)to);
  return at != SIZE_MAX ? (int32_t)at : 0;
}

static void read_nodes(heddle__ml *m, forest *f, const key **keys) {
  size_t n_values, n_missing;
  const Onnx__AttributeProto *modes = heddle__onnx_attr(m->node, "nodes_modes");
  f->n = modes != NULL ? modes->n_strings : 0;
  if (f->n == 0 || f->n > INT32_MAX / COLUMNS) heddle__ml_refuse(m, "it has %zu nodes", f->n);
  const int64_t *trees = list_of(m, "nodes_treeids", f->n), *ids = list_of(m, "nodes_nodeids", f->n),
                *features = list_of(m, "nodes_featureids", f->n), *yes = list_of(m, "nodes_truenodeids", f->n),
                *no = list_of(m, "nodes_falsenodeids", f->n);
  const int64_t *missing = heddle__ml_ints(m, "nodes_missing_value_tracks_true", &n_missing);
  f->splits = numbers_of(m, "nodes_values", "nodes_values_as_tensor", &n_values);
  if (n_values != f->n || (n_missing != 0 && n_missing != f->n))
    heddle__ml_refuse(m, "it has %zu nodes, %zu values and %zu flags for missing ones", f->n, n_values, n_missing);
  f->nodes = heddle__ml_take(m, f->n * COLUMNS, sizeof *f->nodes);
  f->roots = heddle__ml_take(m, f->n, sizeof *f->roots);
  *keys = heddle__ml_good(m) ? sorted(m, trees, ids, f->n) : NULL;
  for (size_t i = 0; i < f->n && heddle__ml_good(m); i++) {
    int32_t *node = f->nodes + i * COLUMNS;
    node[RULE] = mode_of(m, &modes->strings[i]);
    if (node[RULE] == LEAF) continue;
    if (features[i] < 0 || features[i] > INT32_MAX)
      heddle__ml_refuse(m, "node %lld of tree %lld tests feature %lld", (long long)ids[i], (long long)trees[i],
                        (long long)features[i]);
    node[FEATURE] = (int32_t)features[i];
    node[YES] = target_of(m, *keys, f, trees[i], ids[i], yes[i]);
    node[NO] = target_of(m, *keys, f, trees[i], ids[i], no[i]);
    if (n_missing > 0 && missing[i] != 0) node[RULE] |= MISSING;
  }
  /* The first that is listed of each tree is its root: in the order of the keys, the least place of equal trees. */
  for (size_t i = 0; i < f->n && heddle__ml_good(m);) {
    size_t first = (*keys)[i].at, k = i;
    for (; k < f->n && (*keys)[k].tree == (*keys)[i].tree; k++)
      if ((*keys)[k].at < first) first = (*keys)[k].at;
    f->roots[f->n_roots++] = (int64_t)first;
    i = k;
  }
}

/* Pairs of target and weight, those of a leaf side by side. */
static void read_leaves(heddle__ml *m, forest *f, const key *keys, const char *const names[5]) {
  size_t n;
  const double *weights = numbers_of(m, names[3], names[4], &n);
  const int64_t *trees = list_of(m, names[0], n), *ids = list_of(m, names[1], n), *targets = list_of(m, names[2], n);
  size_t *at = heddle__ml_take(m, n, sizeof *at);
  f->targets = heddle__ml_take(m, n, sizeof *f->targets);
  f->weights = heddle__ml_take(m, n, sizeof *f->weights);
  if (n > INT32_MAX) heddle__ml_refuse(m, "it has %zu weights", n);
  for (size_t i = 0; i < n && heddle__ml_good(m); i++) {
    at[i] = find_node(keys, f->n, trees[i], ids[i]);
    if (at[i] == SIZE_MAX)
      heddle__ml_refuse(m, "a weight is of node %lld of tree %lld, which is not there", (long long)ids[i],
                        (long long)trees[i]);
    else if (f->nodes[at[i] * COLUMNS + RULE] == LEAF) f->nodes[at[i] * COLUMNS + LAST]++;
  }
  if (!heddle__ml_good(m)) return;
  int32_t next = 0;
  for (size_t i = 0; i < f->n; i++) {
    int32_t *node = f->nodes + i * COLUMNS;
    node[FIRST] = next;
    next += node[LAST];
    node[LAST] = node[FIRST];
  }
  f->n_leaves = (size_t)next;
  for (size_t i = 0; i < n; i++) {
    int32_t *node = f->nodes + at[i] * COLUMNS;
    if (node[RULE] != LEAF) continue; /* weights of other nodes count for nothing */
    f->targets[node[LAST]] = targets[i];
    f->weights[node[LAST]++] = weights[i];
  }
}

static bool read_forest(heddle__ml *m, forest *f, const char *const names[5]) {
  const key *keys = NULL;
  f->is_double = m->node->n_input > 0 && heddle__onnx_known_of(m->r, m->node->input[0]).type == ONNX_DOUBLE;
  read_nodes(m, f, &keys);
  if (heddle__ml_good(m)) read_leaves(m, f, keys, names);
  return heddle__ml_good(m);
}

/* Adds a row of base values, all of the type of the scores. */
static const char *add_base(heddle__ml *m, const forest *f, const char *scores, const double *base, size_t n) {
  return n > 0 ? heddle__ml_2(m, "Add", scores, reals(m, f, base, n), NULL) : scores;
}

static const char *as_float(heddle__ml *m, const forest *f, const char *x) {
  return f->is_double ? heddle__ml_cast(m, x, ONNX_FLOAT, NULL) : x;
}

void heddle__ml_tree_regressor(heddle__ml *m) {
  static const char *const names[] = {"target_treeids", "target_nodeids", "target_ids", "target_weights",
                                      "target_weights_as_tensor"};
  static const char *const words[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  forest f = {0};
  size_t n_base;
  const int64_t n = heddle__ml_int(m, "n_targets", 1);
  const int how = heddle__ml_choice(m, "aggregate_function", "SUM", "AVERAGE SUM MIN MAX"), post = heddle__ml_post(m);
  const double *base = numbers_of(m, "base_values", "base_values_as_tensor", &n_base);
  if (n_base != 0 && n_base != (size_t)n)
    heddle__ml_refuse(m, "it has %zu base values and %lld targets", n_base, (long long)n);
  if (!read_forest(m, &f, names)) return;
  const char *s = add_base(m, &f, scores_of(m, &f, n, words[how], NULL), base, n_base);
  /* Of one target ONNX Runtime applies no other transform. */
  heddle__ml_transform(m, n > 1 || post == HEDDLE__ML_PROBIT ? post : HEDDLE__ML_NONE, as_float(m, &f, s),
                       heddle__ml_output(m, 0));
}

/* Two labels, and weights of one class only: the score decides between both. */
static void two_classes(heddle__ml *m, const forest *f, const char *labels, const char *s, int64_t only, int post) {
  bool is_signed = false;
  for (size_t i = 0; i < f->n_leaves; i++) is_signed = is_signed || f->weights[i] < 0;
  const char *one = heddle__ml_2(m, "Gather", s, heddle__ml_shape(m, only), NULL);
  heddle__ml_set_int(m, "axis", 1);
  const char *flat = heddle__ml_2(m, "Squeeze", one, heddle__ml_shape(m, 1), NULL);
  double *least = heddle__ml_take(m, 1, sizeof *least);
  if (least == NULL) return;
  *least = is_signed ? 0 : 0.5;
  const char *is_second = heddle__ml_2(m, "Greater", flat, reals(m, f, least, 1), NULL);
  heddle__ml_pick(m, labels, heddle__ml_cast(m, is_second, ONNX_INT64, NULL));
  if (only == 1) heddle__ml_transform(m, post, as_float(m, f, s), heddle__ml_output(m, 1));
  else heddle__ml_two(m, post, as_float(m, f, one), is_signed, heddle__ml_output(m, 1));
}

void heddle__ml_tree_classifier(heddle__ml *m) {
  static const char *const names[] = {"class_treeids", "class_nodeids", "class_ids", "class_weights",
                                      "class_weights_as_tensor"};
  forest f = {0};
  size_t n_labels, n_base;
  const char *labels = heddle__ml_labels(m, "classlabels_int64s", "classlabels_strings", &n_labels), *best = NULL;
  const double *base = numbers_of(m, "base_values", "base_values_as_tensor", &n_base);
  const int post = heddle__ml_post(m);
  if (!read_forest(m, &f, names)) return;
  int64_t only = f.n_leaves > 0 ? f.targets[0] : -1; /* -1: of several classes */
  for (size_t i = 0; i < f.n_leaves; i++)
    if (f.targets[i] != only) only = -1;
  const bool two = n_labels == 2 && (only == 0 || only == 1) && n_base <= 1;
  if (n_base != 0 && n_base != n_labels && !two)
    heddle__ml_refuse(m, "it has %zu base values and %zu labels", n_base, n_labels);
  const char *s = scores_of(m, &f, (int64_t)n_labels, "SUM", two || n_base > 0 ? NULL : &best);
  if (!two || only == 0) s = add_base(m, &f, s, base, n_base);
  if (two) {
    two_classes(m, &f, labels, s, only, post);
    return;
  }
  if (n_base > 0) { /* every class has a value */
    best = heddle__ml_1(m, "ArgMax", s, NULL);
    heddle__ml_set_int(m, "axis", 1);
    heddle__ml_set_int(m, "keepdims", 0);
  }
  heddle__ml_pick(m, labels, best);
  heddle__ml_transform(m, post, as_float(m, &f, s), heddle__ml_output(m, 1));
}

/* ---- version 5 */

/* Node i leads to an inner node or to a leaf; leaves come behind the nodes. */
static int32_t way_of(heddle__ml *m, size_t n, size_t leaves, size_t i, int64_t to, int64_t is_leaf) {
  if (to < 0 || (uint64_t)to >= (is_leaf != 0 ? leaves : n))
    heddle__ml_refuse(m, "node %zu leads to %s %lld, which is not there", i, is_leaf != 0 ? "leaf" : "node",
                      (long long)to);
  return heddle__ml_good(m) ? (int32_t)(is_leaf != 0 ? (size_t)to + n : (size_t)to) : 0;
}

/* The sets of the nodes that have one, in order, with a NaN behind each. */
static void read_members(heddle__ml *m, forest *f, size_t n) {
  size_t at = 0;
  f->members = tensor_of(m, "membership_values", &f->n_members);
  for (size_t i = 0; i < n && heddle__ml_good(m); i++) {
    int32_t *node = f->nodes + i * COLUMNS;
    if ((node[RULE] & 0xff) != MEMBER) continue;
    if (at >= f->n_members) heddle__ml_refuse(m, "membership_values has no set for node %zu", i);
    node[FIRST] = (int32_t)at;
    while (at < f->n_members && !isnan(f->members[at])) at++;
    node[LAST] = (int32_t)at++;
  }
}

void heddle__ml_tree_ensemble(heddle__ml *m) {
  static const char *const words[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static const int posts[] = {HEDDLE__ML_NONE, HEDDLE__ML_SOFTMAX, HEDDLE__ML_LOGISTIC, HEDDLE__ML_SOFTMAX_ZERO,
                              HEDDLE__ML_PROBIT};
  forest f = {0};
  size_t n, n_roots, n_missing, n_modes, n_weights;
  int32_t type;
  const int64_t *features = heddle__ml_ints(m, "nodes_featureids", &n);
  const int64_t *roots = heddle__ml_ints(m, "tree_roots", &n_roots),
                *missing = heddle__ml_ints(m, "nodes_missing_value_tracks_true", &n_missing),
                *yes = list_of(m, "nodes_truenodeids", n), *no = list_of(m, "nodes_falsenodeids", n),
                *yes_leaf = list_of(m, "nodes_trueleafs", n), *no_leaf = list_of(m, "nodes_falseleafs", n);
  const uint8_t *modes = heddle__ml_tensor(m, "nodes_modes", &type, &n_modes);
  double *splits = tensor_of(m, "nodes_splits", &f.n), *weights = tensor_of(m, "leaf_weights", &n_weights);
  const int64_t *targets = list_of(m, "leaf_targetids", n_weights), n_targets = heddle__ml_int(m, "n_targets", 1),
                how = heddle__ml_int(m, "aggregate_function", 1), post = heddle__ml_int(m, "post_transform", 0);
  if (heddle__ml_good(m) && (type != ONNX_UINT8 || n_modes != n || f.n != n || (n_missing != 0 && n_missing != n)))
    heddle__ml_refuse(m, "it has %zu nodes, %zu splits, %zu modes and %zu flags for missing values", n, f.n, n_modes,
                      n_missing);
  if (n == 0 || n_roots == 0 || n_weights == 0 || n > INT32_MAX / 16 || n_weights > INT32_MAX / 16)
    heddle__ml_refuse(m, "it has %zu nodes, %zu roots and %zu leaves", n, n_roots, n_weights);
  if (how < 0 || how > 3 || post < 0 || post > 4)
    heddle__ml_refuse(m, "aggregate_function is %lld and post_transform %lld", (long long)how, (long long)post);
  const int32_t x_type = heddle__onnx_known_of(m->r, m->node->input[0]).type;
  f.is_double = x_type == ONNX_DOUBLE;
  f.n = n + n_weights;
  f.n_roots = n_roots;
  f.n_leaves = n_weights;
  f.roots = heddle__ml_take(m, n_roots, sizeof *f.roots);
  f.targets = (int64_t *)(uintptr_t)targets;
  f.weights = weights;
  f.nodes = heddle__ml_take(m, f.n * COLUMNS, sizeof *f.nodes);
  f.splits = heddle__ml_take(m, f.n, sizeof *f.splits);
  for (size_t i = 0; i < n && heddle__ml_good(m); i++) {
    int32_t *node = f.nodes + i * COLUMNS;
    if (modes[i] > MEMBER || features[i] < 0 || features[i] > INT32_MAX)
      heddle__ml_refuse(m, "node %zu is of mode %d and tests feature %lld", i, modes[i], (long long)features[i]);
    node[FEATURE] = (int32_t)features[i];
    node[RULE] = modes[i] | (n_missing > 0 && missing[i] != 0 ? MISSING : 0);
    node[YES] = way_of(m, n, n_weights, i, yes[i], yes_leaf[i]);
    node[NO] = way_of(m, n, n_weights, i, no[i], no_leaf[i]);
    f.splits[i] = splits[i];
  }
  for (size_t i = 0; i < n_weights && heddle__ml_good(m); i++) {
    int32_t *leaf = f.nodes + (n + i) * COLUMNS;
    leaf[RULE] = LEAF;
    leaf[FIRST] = (int32_t)i;
    leaf[LAST] = (int32_t)i + 1;
  }
  for (size_t i = 0; i < n_roots && heddle__ml_good(m); i++) f.roots[i] = way_of(m, n, n_weights, i, roots[i], 0);
  if (heddle__ml_good(m)) read_members(m, &f, n);
  if (!heddle__ml_good(m)) return;
  const char *s = scores_of(m, &f, n_targets, words[how], NULL);
  if (x_type == ONNX_FLOAT16) s = heddle__ml_cast(m, s, ONNX_FLOAT16, NULL);
  heddle__ml_transform(m, posts[post], s, heddle__ml_output(m, 0));
}
