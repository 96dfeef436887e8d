/* graph/optimize/match.c: what patterns ask about nodes and values: operators, attributes, constants.
 * Nothing here changes a graph, but that the constants whose bytes are asked for are marked as read. */
#include "graph/infer.h"
#include "graph/optimize/net.h"

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

static uint32_t rank_up(const opt_value *v, int up);

/* Of operands that broadcast, all of which are known. */
static uint32_t widest(const opt_node *n, int up) {
  uint32_t most = 0;
  for (uint32_t k = 0; k < n->n_inputs && most != UINT32_MAX; k++) {
    const opt_value *v = opt_in(n, k);
    const uint32_t rank = v != NULL ? rank_up(v, up) : 0;
    if (rank == UINT32_MAX || rank > most) most = rank;
  }
  return most;
}

static uint32_t length_of(const opt_value *v) {
  return v != NULL && v->known && v->ndim == 1 ? (uint32_t)v->shape[0] : UINT32_MAX;
}

static uint32_t rank_up(const opt_value *v, int up) {
  static const char *const same[] = {"Slice", "Split", "Concat", "Softmax", "Identity", "Neg", "Cos", "Sin"};
  uint64_t count;
  if (v->known) return v->ndim;
  if (v->said > 0) return v->said - 1;
  const opt_node *n = v->maker;
  if (n == NULL || up == 0) return UINT32_MAX;
  if (opt_is(n, "Shape") || opt_is(n, "Range")) return 1;
  if (opt_is(n, "Reshape")) return length_of(opt_in(n, 1));
  if (opt_is(n, "Transpose") && opt_get_ints(n, "perm", &count) != NULL) return (uint32_t)count;
  if (opt_is_elementwise(n)) return widest(n, up - 1);
  const uint32_t first = n->n_inputs > 0 && opt_in(n, 0) != NULL ? rank_up(opt_in(n, 0), up - 1) : UINT32_MAX;
  if (first == UINT32_MAX) return first;
  if (opt_is(n, "Expand")) {
    const uint32_t to = length_of(opt_in(n, 1));
    return to == UINT32_MAX || to > first ? to : first;
  }
  if (opt_is(n, "Unsqueeze")) {
    const uint32_t more = length_of(opt_in(n, 1));
    return more == UINT32_MAX ? more : first + more;
  }
  if (opt_is(n, "Gather") && opt_in(n, 1) != NULL) {
    const uint32_t index = rank_up(opt_in(n, 1), up - 1);
    return index == UINT32_MAX ? index : first + index - 1;
  }
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
    if (opt_is(n, same[i])) return first;
  return strcmp(n->domain, "heddle") == 0 && strcmp(n->op, "Rotary") == 0 ? first : UINT32_MAX;
}

uint32_t opt_rank(const opt_value *v) {
  enum { MOST_UP = 16 };
  return v != NULL ? rank_up(v, MOST_UP) : UINT32_MAX;
}

static bool dtype_up(const opt_value *v, int up, heddle_dtype *out) {
  static const char *const of_first[] = {
      "Add",        "Sub",        "Mul",      "Div",     "Pow",     "Sqrt",
      "Neg",        "Reciprocal", "Sigmoid",  "Tanh",    "Erf",     "Cos",
      "Sin",        "Exp",        "Relu",     "MatMul",  "Gemm",    "Softmax",
      "Gather",     "Slice",      "Concat",   "Split",   "Reshape", "Transpose",
      "Squeeze",    "Unsqueeze",  "Expand",   "Flatten", "Conv",    "Dropout",
      "ReduceMean", "ReduceSum",  "Identity", "Gelu",    "Clip",    "LayerNormalization",
  };
  *out = v->dtype;
  if (v->known || v->typed) return true;
  const opt_node *n = v->maker;
  if (n == NULL || up == 0 || v->index > 0) return false;
  if (opt_is(n, "Cast")) return heddle__onnx_dtype(opt_get_int(n, "to", 0), out);
  if (opt_is(n, "Where")) return opt_in(n, 1) != NULL && dtype_up(opt_in(n, 1), up - 1, out);
  bool same =
      strcmp(n->domain, "heddle") == 0 && (strcmp(n->op, "RMSNormalization") == 0 || strcmp(n->op, "Rotary") == 0);
  for (size_t i = 0; !same && i < sizeof of_first / sizeof of_first[0]; i++) same = opt_is(n, of_first[i]);
  for (uint32_t k = 0; same && k < n->n_inputs && k < 2; k++) { /* of two operands of one type either may be known */
    const bool pair =
        k == 0 || opt_is(n, "Add") || opt_is(n, "Sub") || opt_is(n, "Mul") || opt_is(n, "Div") || opt_is(n, "MatMul");
    if (pair && opt_in(n, k) != NULL && dtype_up(opt_in(n, k), up - 1, out)) return true;
  }
  return false;
}

bool opt_dtype(const opt_value *v, heddle_dtype *out) {
  enum { MOST_UP = 12 };
  return v != NULL && dtype_up(v, MOST_UP, out);
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
