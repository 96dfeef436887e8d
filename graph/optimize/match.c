/* graph/optimize/match.c: what patterns ask about nodes and values: operators, attributes, constants.
 * Nothing here changes a graph, but that the constants whose bytes are asked for are marked as read. */
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
