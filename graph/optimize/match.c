/* graph/optimize/match.c: what patterns ask about nodes and values: operators, attributes, constants.
 * Nothing here changes a graph, but that the constants whose bytes are asked for are marked as read. */
#include "graph/infer.h"
#include "graph/optimize/net.h"
#include "graph/results.h"

bool opt_is(const opt_node *n, const char *op) {
  return n != NULL && n->domain[0] == '\0' && strcmp(n->op, op) == 0;
}

opt_node *opt_maker(const opt_value *v, const char *op) {
  return v != NULL && opt_is(v->maker, op) && v->index == 0 ? v->maker : NULL;
}

const heddle_pattr *opt_attr(const opt_node *n, const char *name) {
  for (uint32_t i = 0; i < n->n_attrs; i++)
    if (strcmp(n->attrs[i].name, name) == 0) return &n->attrs[i];
  return NULL;
}

int64_t opt_get_int(const opt_node *n, const char *name, int64_t fallback) {
  const heddle_pattr *a = opt_attr(n, name);
  return a != NULL && a->kind == HEDDLE_ATTR_INT ? *(const int64_t *)a->data : fallback;
}

double opt_get_float(const opt_node *n, const char *name, double fallback) {
  const heddle_pattr *a = opt_attr(n, name);
  return a != NULL && a->kind == HEDDLE_ATTR_FLOAT ? *(const double *)a->data : fallback;
}

const int64_t *opt_get_ints(const opt_node *n, const char *name, uint64_t *count) {
  const heddle_pattr *a = opt_attr(n, name);
  *count = a != NULL && a->kind == HEDDLE_ATTR_INTS ? a->count : 0;
  return a != NULL && a->kind == HEDDLE_ATTR_INTS ? a->data : NULL;
}

bool opt_is_inner(const opt_value *v) {
  return v->users == 1 && !v->pinned;
}

opt_node *opt_only_user(opt_net *net, const opt_value *v) {
  if (!opt_is_inner(v)) return NULL;
  for (uint32_t i = 0; i < net->n_nodes; i++)
    for (uint32_t k = 0; net->nodes[i].live && k < net->nodes[i].n_inputs; k++)
      if (opt_in(&net->nodes[i], k) == v) return &net->nodes[i];
  return NULL;
}

opt_value *opt_guarded(opt_net *net, opt_node *n) {
  opt_value *y = &n->outputs[0];
  double zero;
  if (y->users != 2 || y->pinned) return y;
  for (uint32_t i = 0; i < net->n_nodes; i++) {
    const opt_node *test = &net->nodes[i];
    if (!test->live || !opt_is(test, "IsNaN") || opt_in(test, 0) != y) continue;
    opt_node *choice = opt_only_user(net, &test->outputs[0]);
    const bool is = opt_is(choice, "Where") && opt_in(choice, 0) == &test->outputs[0] && opt_in(choice, 2) == y &&
                    opt_number(net, opt_in(choice, 1), &zero) && zero == 0 && opt_same_home(test, n) &&
                    opt_same_home(choice, n);
    return is ? &choice->outputs[0] : y;
  }
  return y;
}

bool opt_same_home(const opt_node *a, const opt_node *b) {
  bool same = a->home == b->home && a->stream == b->stream && (a->device == NULL) == (b->device == NULL);
  return same && (a->device == NULL || strcmp(a->device, b->device) == 0);
}

const void *opt_bytes(opt_net *net, const opt_value *v) {
  if (v == NULL || v->constant == NULL) return NULL;
  if (v->arg != HEDDLE__ABSENT) net->read[v->arg] = true;
  return v->constant->data;
}

static bool is_type(heddle_dtype t, uint8_t code, uint8_t bits) {
  return t.code == code && t.bits == bits && t.lanes == 1;
}

bool opt_number(opt_net *net, const opt_value *v, double *out) {
  float single;
  int32_t narrow;
  int64_t wide;
  if (v == NULL || v->constant == NULL || opt_elements(v) != 1) return false;
  const void *at = opt_bytes(net, v);
  if (is_type(v->dtype, HEDDLE_DTYPE_FLOAT, 32)) memcpy(&single, at, sizeof single), *out = (double)single;
  else if (is_type(v->dtype, HEDDLE_DTYPE_FLOAT, 64)) memcpy(out, at, sizeof *out);
  else if (is_type(v->dtype, HEDDLE_DTYPE_INT, 32)) memcpy(&narrow, at, sizeof narrow), *out = narrow;
  else if (is_type(v->dtype, HEDDLE_DTYPE_INT, 64)) memcpy(&wide, at, sizeof wide), *out = (double)wide;
  else return false;
  return true;
}

bool opt_ints(opt_net *net, const opt_value *v, int64_t *out, uint32_t *count) {
  bool wide = v != NULL && is_type(v->dtype, HEDDLE_DTYPE_INT, 64);
  if (v == NULL || v->constant == NULL || v->ndim > 1 || (!wide && !is_type(v->dtype, HEDDLE_DTYPE_INT, 32)))
    return false;
  uint64_t n = opt_elements(v);
  if (n > HEDDLE__MAX_NDIM) return false;
  const char *at = opt_bytes(net, v);
  for (uint64_t i = 0; i < n; i++) {
    int32_t narrow;
    if (wide) memcpy(&out[i], at + 8 * i, 8);
    else memcpy(&narrow, at + 4 * i, 4), out[i] = narrow;
  }
  *count = (uint32_t)n;
  return true;
}

bool opt_same_shape(const opt_value *a, const opt_value *b) {
  return a->known && b->known && a->ndim == b->ndim &&
         (a->ndim == 0 || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0);
}

bool opt_is_float32(const opt_value *v) {
  return v->known && is_type(v->dtype, HEDDLE_DTYPE_FLOAT, 32);
}

uint64_t opt_elements(const opt_value *v) {
  uint64_t n = 1;
  for (uint32_t d = 0; d < v->ndim; d++) n *= (uint64_t)v->shape[d];
  return n;
}

/* ---- types and ranks before inference: what the graph says of its inputs, carried on by what operators/ says of results.
 * The way up is held to some steps, as graphs join and part again. */

enum { MOST_STEPS = 128 };

/* What a line says of a value; NULL: nothing. */
static const heddle__result *result_of(const opt_value *v, int *left) {
  const opt_node *n = v->maker;
  if (n == NULL || (*left)-- <= 0) return NULL;
  return heddle__result_find(n->op, v->index, true);
}

typedef struct node_of {
  const opt_node *node;
  int *left;
} node_of;

static int32_t rank_up(const opt_value *v, int *left);

/* An absent operand has no dimensions, but for the first, on which others depend. */
static int32_t rank_of(const void *of, size_t k) {
  const node_of *n = of;
  const opt_value *v = opt_in(n->node, (uint32_t)k);
  return v != NULL ? rank_up(v, n->left) : k > 0 ? 0 : -1;
}

static int32_t length_of(const void *of) {
  const node_of *n = of;
  const opt_value *v = n->node->n_inputs > 1 ? opt_in(n->node, 1) : NULL;
  return v != NULL && v->known && v->ndim == 1 && v->shape[0] < 255 ? (int32_t)v->shape[0] : -1;
}

static int32_t rank_up(const opt_value *v, int *left) {
  uint64_t n_axes, n_perm;
  if (v->known) return (int32_t)v->ndim;
  if (v->said > 0) return (int32_t)v->said - 1;
  const heddle__result *row = result_of(v, left);
  if (row == NULL) return -1;
  const opt_node *n = v->maker;
  if (opt_is(n, "Transpose") && opt_get_ints(n, "perm", &n_perm) != NULL) return (int32_t)n_perm;
  const bool has_axes = opt_get_ints(n, "axes", &n_axes) != NULL && n_axes < 255;
  const heddle__operands operands = {.of = &(node_of){n, left},
                                     .count = n->n_inputs,
                                     .keeps_dims = opt_get_int(n, "keepdims", 1) != 0,
                                     .axes = has_axes ? (int32_t)n_axes : -1,
                                     .rank_of = rank_of,
                                     .length_of = length_of};
  return heddle__result_rank(row, &operands);
}

uint32_t opt_rank(const opt_value *v) {
  int left = MOST_STEPS;
  const int32_t rank = v != NULL ? rank_up(v, &left) : -1;
  return rank >= 0 ? (uint32_t)rank : UINT32_MAX;
}

/* Whether operands 0 and 1 are of one type, so that either says what it is. */
static bool is_pair(const opt_node *n) {
  const heddle__schema *schema = heddle__schema_find(n->domain, n->op, 0);
  const heddle__infer_fn infer = schema != NULL ? heddle__schema_infer(schema) : NULL;
  return infer == heddle__infer_arithmetic || infer == heddle__infer_matmul;
}

static bool dtype_up(const opt_value *v, int *left, heddle_dtype *out) {
  *out = v->dtype;
  if (v->known || v->typed) return true;
  const heddle__result *row = result_of(v, left);
  if (row == NULL) return false;
  const opt_node *n = v->maker;
  const int64_t given = strcmp(row->attribute, "none") != 0 ? opt_get_int(n, row->attribute, 0) : 0;
  if (given > 0 || row->type > 0) return heddle__onnx_dtype(given > 0 ? given : row->type, out);
  if (row->type == 0) return false;
  const uint32_t k = (uint32_t)(-1 - row->type);
  const opt_value *a = k < n->n_inputs ? opt_in(n, k) : NULL, *b = NULL;
  if (a != NULL && dtype_up(a, left, out)) return true;
  if (k == 0 && n->n_inputs > 1 && is_pair(n)) b = opt_in(n, 1);
  return b != NULL && dtype_up(b, left, out);
}

bool opt_dtype(const opt_value *v, heddle_dtype *out) {
  int left = MOST_STEPS;
  return v != NULL && dtype_up(v, &left, out);
}

bool opt_is_elementwise(const opt_node *n) {
  static const char *const names[] = {
#define SCALAR(name, ...) #name,
#include "operators/all.def"
      "Cast", "Where", NULL};
  if (n == NULL || n->n_outputs != 1) return false;
  const size_t length = strlen(n->op);
  for (size_t i = 0; names[i] != NULL; i++) /* a variant, Gelu_tanh, is of its operator too */
    if (strncmp(names[i], n->op, length) == 0 && (names[i][length] == '\0' || names[i][length] == '_')) return true;
  return false;
}

bool opt_repeats(const opt_node *n) {
  const heddle__version *version = heddle__version_find(n->domain[0] != '\0', n->op, 0);
  return version == NULL || (heddle__version_attr(version, "seed") == 0 && !heddle__version_runs_graphs(version));
}
