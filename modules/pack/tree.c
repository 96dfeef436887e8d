/* modules/pack/tree.c: merges the modules of libraries and models into one tree. */
#include "modules/pack/tree.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/loaders.h"

static const char what[] = "the modules of a packed library";

static heddle_status add(heddle__tree *t, const char *kind, heddle__span body, uint32_t *at, heddle_error *err) {
  if (t->n == t->room) {
    heddle__tree_node *more = heddle__grow(t->nodes, t->room, 2 * (size_t)t->room + 8, sizeof *more);
    if (more == NULL) return heddle__no_memory(err, what);
    t->nodes = more;
    t->room = 2 * t->room + 8;
  }
  t->nodes[t->n] = (heddle__tree_node){.kind = kind, .body = body};
  *at = t->n++;
  return HEDDLE_OK;
}

static heddle_status put_below(heddle__tree *t, uint32_t parent, uint32_t child, heddle_error *err) {
  heddle__tree_node *p = &t->nodes[parent];
  if (p->n_children == p->room) {
    uint32_t *more = heddle__grow(p->children, p->room, 2 * (size_t)p->room + 4, sizeof *more);
    if (more == NULL) return heddle__no_memory(err, what);
    p->children = more;
    p->room = 2 * p->room + 4;
  }
  p->children[p->n_children++] = child;
  return HEDDLE_OK;
}

heddle_status heddle__tree_init(heddle__tree *t, heddle_error *err) {
  uint32_t host;
  *t = (heddle__tree){.n = 0};
  return add(t, "_lib", (heddle__span){NULL, 0}, &host, err);
}

void heddle__tree_finish(heddle__tree *t) {
  for (uint32_t i = 0; i < t->n; i++) heddle__free(t->nodes[i].children);
  for (uint32_t i = 0; i < t->n_made; i++) heddle__buffer_finish(&t->made[i]);
  heddle__free(t->nodes);
  heddle__free(t->made);
  *t = (heddle__tree){.n = 0};
}

bool heddle__tree_carries(const heddle__tree *t) {
  return t->n > 1;
}

/* A body that the tree keeps; b is empty afterwards. */
static heddle_status keep_body(heddle__tree *t, heddle__buffer *b, heddle__span *out, heddle_error *err) {
  heddle__buffer *more = b->failed ? NULL : heddle__grow(t->made, t->n_made, (size_t)t->n_made + 1, sizeof *more);
  if (more == NULL) {
    heddle__buffer_finish(b);
    return heddle__no_memory(err, what);
  }
  t->made = more;
  t->made[t->n_made++] = *b;
  *out = (heddle__span){b->data, b->n};
  *b = (heddle__buffer){.n = 0};
  return HEDDLE_OK;
}

heddle_status heddle__tree_import(heddle__tree *t, const char *kind, heddle__span body, heddle_error *err) {
  uint32_t at = 0;
  heddle_status s = add(t, kind, body, &at, err);
  return s == HEDDLE_OK ? put_below(t, 0, at, err) : s;
}

/* ---- models */

static bool has_model(const heddle__tree *t, const char *name) {
  for (uint32_t i = 0; i < t->n; i++)
    if (t->nodes[i].model != NULL && strcmp(t->nodes[i].model, name) == 0) return true;
  return false;
}

/* The body of a model. names: a count and strings; arrays: their records. */
static void put_model(heddle__buffer *b, heddle__span graph, uint64_t n, heddle__span names, heddle__span arrays,
                      const char *name) {
  heddle__buffer_string(b, graph.data, (size_t)graph.bytes);
  heddle__buffer_u64(b, n);
  if (n > 0) heddle__buffer_put(b, names.data, (size_t)names.bytes);
  else heddle__buffer_u64(b, 0);
  if (arrays.bytes > 0) heddle__buffer_put(b, arrays.data, (size_t)arrays.bytes);
  heddle__buffer_string(b, name, strlen(name));
}

static uint64_t number_at(const unsigned char *at) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 8; i++) value |= (uint64_t)at[i] << (8 * i);
  return value;
}

/* A blob of parameters is: 16 bytes, names, their count again, arrays. It was written here, so it is well-formed. */
heddle_status heddle__tree_model(heddle__tree *t, const char *name, heddle__span graph, heddle__span params,
                                 heddle_error *err) {
  heddle__span names = {NULL, 0}, arrays = {NULL, 0}, body;
  uint64_t n = 0;
  uint32_t at;
  if (has_model(t, name)) return heddle__fail(err, HEDDLE_EINVAL, "two models are named '%.100s'; give names", name);
  if (params.data != NULL) {
    uint64_t end = 24;
    n = number_at(params.data + 16);
    for (uint64_t i = 0; i < n; i++) end += 8 + number_at(params.data + end);
    names = (heddle__span){params.data + 16, end - 16};
    arrays = (heddle__span){params.data + end + 8, params.bytes - end - 8};
  }
  heddle__buffer b = {.n = 0};
  put_model(&b, graph, n, names, arrays, name);
  heddle_status s = keep_body(t, &b, &body, err);
  if (s == HEDDLE_OK) s = add(t, "GraphExecutorFactory", body, &at, err);
  if (s == HEDDLE_OK) t->nodes[at].model = name;
  return s;
}

/* ---- merging */

static void save_bytes(void *to, const void *data, size_t bytes) {
  heddle__buffer_put(to, data, data != NULL ? bytes : 0);
}

static heddle_status body_of(heddle__tree *t, const heddle__submodule *m, heddle__keep keep, heddle__span *out,
                             heddle_error *err) {
  heddle__buffer b = {.n = 0};
  heddle_status s;
  *out = m->body;
  if (m->graph.data != NULL && keep == HEDDLE__KEEP_NO_PARAMS) {
    put_model(&b, m->graph, 0, (heddle__span){NULL, 0}, (heddle__span){NULL, 0}, m->model_name);
  } else if (m->loaded != NULL) {
    bool saves = false;
    s = heddle__loaded_save(m->loaded, save_bytes, &b, &saves, err);
    if (s == HEDDLE_OK && saves) return keep_body(t, &b, out, err);
    heddle__buffer_finish(&b);
    return s;
  } else {
    return HEDDLE_OK;
  }
  return keep_body(t, &b, out, err);
}

/* The i-th module in the tree; *skip: a model that does not stay. */
static heddle_status take(heddle__tree *t, const heddle__blob *b, uint32_t i, heddle__keep keep, uint32_t *at,
                          heddle_error *err) {
  const heddle__submodule *m = &b->modules[i];
  heddle__span body;
  *at = 0;
  if (i == b->host) return HEDDLE_OK;
  if (m->graph.data != NULL && keep == HEDDLE__KEEP_NO_MODELS) {
    *at = UINT32_MAX;
    return HEDDLE_OK;
  }
  if (m->graph.data != NULL && has_model(t, m->model_name))
    return heddle__fail(err, HEDDLE_EINVAL, "two models are named '%.100s'; give names", m->model_name);
  heddle_status s = body_of(t, m, keep, &body, err);
  if (s == HEDDLE_OK) s = add(t, m->kind, body, at, err);
  if (s == HEDDLE_OK && m->graph.data != NULL) t->nodes[*at].model = m->model_name;
  return s;
}

heddle_status heddle__tree_merge(heddle__tree *t, const heddle__blob *b, heddle__keep keep, heddle_error *err) {
  uint32_t *at = heddle__alloc(b->n_modules, sizeof *at);
  heddle_status s = at != NULL ? HEDDLE_OK : heddle__no_memory(err, what);
  for (uint32_t i = 0; i < b->n_modules && s == HEDDLE_OK; i++) s = take(t, b, i, keep, &at[i], err);
  for (uint32_t i = 0; i < b->n_modules && s == HEDDLE_OK; i++) {
    const heddle__submodule *m = &b->modules[i];
    for (uint32_t k = 0; k < m->n_children && s == HEDDLE_OK && at[i] != UINT32_MAX; k++) {
      uint32_t child = at[b->children[m->first_child + k]];
      if (child != UINT32_MAX) s = put_below(t, at[i], child, err);
    }
    /* without a tree all are imports of the library, but for models */
    if (s == HEDDLE_OK && b->host == b->n_modules && at[i] != UINT32_MAX)
      s = m->graph.data != NULL ? put_below(t, at[i], 0, err) : put_below(t, 0, at[i], err);
  }
  heddle__free(at);
  return s;
}

/* ---- the whole */

/* How many import each. */
static void count_parents(const heddle__tree *t, uint32_t *parents) {
  memset(parents, 0, t->n * sizeof *parents);
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t k = 0; k < t->nodes[i].n_children; k++) parents[t->nodes[i].children[k]]++;
}

/* What models run: the host library, or what stands before it, such as constants; of several such the first imports the
 * others. */
static heddle_status join_hosts(heddle__tree *t, uint32_t *parents, uint32_t *host, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  *host = 0;
  for (uint32_t i = 1; i < t->n && s == HEDDLE_OK; i++) {
    if (t->nodes[i].model != NULL || parents[i] > 0) continue;
    if (*host == 0) *host = i;
    else s = put_below(t, *host, i, err);
  }
  if (s == HEDDLE_OK && *host != 0 && parents[0] == 0) s = put_below(t, *host, 0, err);
  return s;
}

/* A model runs its first import. Of several models the first imports the others. */
static heddle_status find_root(heddle__tree *t, uint32_t *parents, uint32_t *root, heddle_error *err) {
  uint32_t host;
  count_parents(t, parents);
  heddle_status s = join_hosts(t, parents, &host, err);
  for (uint32_t i = 1; i < t->n && s == HEDDLE_OK; i++)
    if (t->nodes[i].model != NULL && t->nodes[i].n_children == 0) s = put_below(t, i, host, err);
  count_parents(t, parents);
  *root = UINT32_MAX;
  for (uint32_t i = 1; i < t->n && s == HEDDLE_OK; i++) {
    if (t->nodes[i].model == NULL || parents[i] > 0) continue;
    if (*root == UINT32_MAX) *root = i;
    else s = put_below(t, *root, i, err);
  }
  if (*root == UINT32_MAX) *root = host;
  else if (s == HEDDLE_OK && parents[host] == 0) s = put_below(t, *root, host, err);
  count_parents(t, parents);
  return s;
}

static void put_list(heddle__buffer *out, const uint32_t *list, uint32_t n, bool counted) {
  if (counted) heddle__buffer_u64(out, n);
  for (uint32_t i = 0; i < n; i++) heddle__buffer_u64(out, list[i]);
}

static void put_tree(const heddle__tree *t, const uint32_t *order, const uint32_t *place, heddle__buffer *out) {
  uint64_t n = 0;
  heddle__buffer_u64(out, (uint64_t)t->n + 1);
  heddle__buffer_u64(out, 0);
  for (uint32_t i = 0; i < t->n; i++) heddle__buffer_u64(out, n += t->nodes[order[i]].n_children);
  heddle__buffer_u64(out, n);
  for (uint32_t i = 0; i < t->n; i++) {
    const heddle__tree_node *node = &t->nodes[order[i]];
    for (uint32_t k = 0; k < node->n_children; k++) put_list(out, &place[node->children[k]], 1, false);
  }
}

static void put_blob(const heddle__tree *t, const uint32_t *order, const uint32_t *place, heddle__blob_layout layout,
                     heddle__buffer *out) {
  static const char tree[] = "_import_tree";
  heddle__buffer_u64(out, 0);
  if (layout == HEDDLE__BLOB_FFI) put_tree(t, order, place, out);
  else heddle__buffer_u64(out, (uint64_t)t->n + 1);
  for (uint32_t i = 0; i < t->n; i++) {
    const heddle__tree_node *node = &t->nodes[order[i]];
    heddle__buffer_string(out, node->kind, strlen(node->kind));
    if (order[i] == 0) continue;
    if (layout == HEDDLE__BLOB_FFI) heddle__buffer_u64(out, node->body.bytes);
    if (node->body.bytes > 0) heddle__buffer_put(out, node->body.data, (size_t)node->body.bytes);
  }
  if (layout != HEDDLE__BLOB_FFI) {
    heddle__buffer_string(out, tree, sizeof tree - 1);
    put_tree(t, order, place, out);
  }
  for (unsigned i = 0; i < 8 && !out->failed; i++) out->data[i] = (unsigned char)((uint64_t)(out->n - 8) >> (8 * i));
}

/* order: from the root on, each behind all that import it; place: the other way round. */
static void sort(const heddle__tree *t, uint32_t root, uint32_t *parents, uint32_t *order, uint32_t *place) {
  uint32_t n = 0, done = 0;
  order[n++] = root;
  while (done < n) {
    const heddle__tree_node *node = &t->nodes[order[done]];
    place[order[done]] = done;
    done++;
    for (uint32_t k = 0; k < node->n_children; k++)
      if (--parents[node->children[k]] == 0) order[n++] = node->children[k];
  }
}

heddle_status heddle__tree_write(heddle__tree *t, heddle__blob_layout layout, heddle__buffer *out, heddle_error *err) {
  uint32_t *parents = heddle__alloc(t->n, sizeof *parents), *order = heddle__alloc(t->n, sizeof *order);
  uint32_t *place = heddle__alloc(t->n, sizeof *place), root = 0;
  heddle_status s = parents && order && place ? HEDDLE_OK : heddle__no_memory(err, what);
  if (s == HEDDLE_OK) s = find_root(t, parents, &root, err);
  if (s == HEDDLE_OK) {
    sort(t, root, parents, order, place);
    put_blob(t, order, place, layout, out);
    if (out->failed) s = heddle__no_memory(err, what);
  }
  heddle__free(parents);
  heddle__free(order);
  heddle__free(place);
  return s;
}
