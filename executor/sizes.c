/* executor/sizes.c: see sizes.h. Shapes are inferred node by node as in infer.c, but for those nodes alone that an open
 * dimension reaches. The proof is the root's, as in resize.c. */
#include "executor/sizes.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/fold.h"
#include "executor/most.h"
#include "executor/optimize.h"
#include "executor/range.h"
#include "graph/declared.h"

/* An input, and what its place in the request must be. */
typedef struct open_arg {
  bool is_constant, is_set, is_tied;
  bool may_change;     /* its shape, or its bytes where they decide shapes */
  uint64_t room;       /* of its bytes, where they decide shapes */
  uint32_t first_name; /* its first dimension among z->names */
  uint32_t n_names;
} open_arg;

/* A dimension that must be equal to an earlier one of the same name. */
typedef struct named {
  uint32_t dim, arg_before, dim_before;
} named;

typedef struct open_node {
  const heddle__node *node;
  heddle__infer_fn infer;
  uint32_t first_in;
  bool is_view;
} open_node;

/* The bytes of a value as a plugin is given them. */
typedef struct shown {
  heddle_pvalue *value;
  uint32_t id;
} shown;

/* One of the two programs, and where its values lie. */
typedef struct half {
  heddle__program *program;
  const heddle__known **in; /* of all nodes, one after another */
  void **folded;            /* per value: room for its bytes, or NULL */
  shown *shown;
  uint32_t n_shown;
} half;

struct heddle__sizes {
  heddle_model *model; /* which the executor holds */
  heddle__program *root;
  half halves[2];
  open_arg *args;
  uint32_t n_args;
  named *names;
  bool *open;   /* per value: it may change */
  bool *rigid;  /* per value: a region has it that is not resized */
  bool *direct; /* per value: a fold is to keep it (fold.h) */
  open_node *nodes;
  uint32_t n_nodes, n_in;
  uint32_t *values; /* the open ones that are not reordered, then those that are */
  uint32_t n_plain, n_values;
  uint32_t *instances, n_instances;
  heddle__known *out; /* of one node */
};

/* ---- what is listed */

static const heddle__type *type_of(const heddle_model *m, uint32_t arg) {
  return &m->graph->types[heddle__model_arg(m, arg)->first_entry];
}

static bool is_fixed(const heddle__type *t) {
  bool fixed = t->has_dtype && t->has_shape;
  for (uint32_t d = 0; fixed && d < t->ndim; d++) fixed = t->dims[d].value >= 0;
  return fixed;
}

/* The earlier dimensions that must be as those of an input; counts alone where to is NULL. */
static uint32_t list_names(const heddle__sizes *z, const heddle__order *o, uint32_t arg, named *to) {
  const heddle__type *a = type_of(z->model, arg);
  uint32_t n = 0;
  for (uint32_t d = 0; a->has_shape && d < a->ndim; d++) {
    bool found = a->dims[d].symbol == NULL;
    for (uint32_t i = 0; i <= arg && !found; i++) {
      const heddle__type *b = type_of(z->model, i);
      const uint32_t end = i == arg ? d : b->ndim;
      if (!o->inputs[i].has_shape || !b->has_shape) continue;
      for (uint32_t e = 0; e < end && !found; e++) {
        found = b->dims[e].symbol != NULL && strcmp(a->dims[d].symbol, b->dims[e].symbol) == 0;
        if (found && to != NULL) to[n] = (named){d, i, e};
        n += found;
      }
    }
  }
  return n;
}

static heddle_status list_args(heddle__sizes *z, const heddle__wish *wish, const heddle__order *o, heddle_error *err) {
  const heddle_model *m = z->model;
  uint32_t n = 0;
  z->n_args = o->n_args;
  z->args = heddle__alloc(z->n_args, sizeof *z->args);
  if (z->args == NULL) return heddle__no_memory(err, "the sizes of a program");
  for (uint32_t i = 0; i < z->n_args; i++) {
    const heddle__plan_input *in = &o->inputs[i];
    open_arg *a = &z->args[i];
    *a = (open_arg){.is_constant = in->source == HEDDLE__SOURCE_CONSTANT, .is_set = wish->values[i] != NULL};
    a->is_tied = heddle__model_tie(m, i) != NULL;
    a->room = in->known.data != NULL ? in->known.bytes : 0;
    a->may_change = !a->is_constant && a->is_set && (!is_fixed(type_of(m, i)) || a->room > 0);
    a->first_name = n;
    if (a->may_change) n += a->n_names = list_names(z, o, i, NULL);
  }
  z->names = heddle__alloc(n, sizeof *z->names);
  if (z->names == NULL) return heddle__no_memory(err, "the sizes of a program");
  for (uint32_t i = 0; i < z->n_args; i++)
    if (z->args[i].may_change) list_names(z, o, i, z->names + z->args[i].first_name);
  return HEDDLE_OK;
}

/* Which values an open dimension reaches, and the nodes that give them. false: one of them cannot be inferred so. */
static bool list_nodes(heddle__sizes *z) {
  const heddle__plan *plan = z->root->plan;
  const heddle_graph *g = plan->req.graph;
  uint32_t most = 0;
  for (uint32_t i = 0; i < z->n_args; i++)
    if (z->args[i].may_change) z->open[g->nodes[g->args[i]].first_entry] = true;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const heddle__node *n = &g->nodes[i];
    const heddle__schema *schema = plan->schemas[i];
    bool open = false, used = false;
    for (uint32_t k = 0; k < n->n_inputs; k++)
      open = open || (n->inputs[k].node != HEDDLE__ABSENT && z->open[heddle__entry_id(g, n->inputs[k])]);
    for (uint32_t k = 0; k < n->n_outputs; k++) used = used || plan->values[n->first_entry + k].used;
    if (!open || !used || n->kind == HEDDLE__NODE_NULL) continue;
    if (schema == NULL) return false;
    for (uint32_t k = 0; k < n->n_outputs; k++) {
      const heddle__value *v = &plan->values[n->first_entry + k];
      z->open[n->first_entry + k] = true;
      if (v->feeds_shape && v->known.data == NULL && v->known.bytes > 0) return false;
    }
    z->nodes[z->n_nodes++] = (open_node){n, heddle__schema_infer(schema), z->n_in, schema->is_view};
    z->n_in += n->n_inputs;
    if (n->n_outputs > most) most = n->n_outputs;
  }
  z->out = heddle__alloc(most, sizeof *z->out);
  return true;
}

/* The regions that cannot be resized, whose values have to stay; the reordered values, and the instances. */
static void list_values(heddle__sizes *z) {
  const heddle__plan *plan = z->root->plan;
  const uint32_t n_entries = plan->req.graph->n_entries;
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    const heddle__region *r = &plan->regions[i];
    if (r->kind == HEDDLE__REGION_REORDER) z->open[r->outputs[0]] = z->open[r->inputs[0]];
  }
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *step = &plan->steps[i];
    const heddle__region *r = step->kind == HEDDLE__STEP_OP ? &plan->regions[step->region] : NULL;
    if (r == NULL || (r->offers[r->offer].flags & HEDDLE_OFFER_RESIZES) != 0) continue;
    for (uint32_t k = 0; k < r->n_inputs; k++) z->rigid[r->inputs[k]] = true;
    for (uint32_t k = 0; k < r->n_outputs; k++) z->rigid[r->outputs[k]] = true;
    for (uint32_t k = 0; k < r->n_nodes; k++) {
      const heddle__node *n = &plan->req.graph->nodes[r->nodes[k]];
      for (uint32_t o = 0; o < n->n_outputs; o++) z->rigid[n->first_entry + o] = true;
      for (uint32_t o = 0; o < n->n_inputs; o++) /* its shape operands too */
        if (n->inputs[o].node != HEDDLE__ABSENT) z->rigid[heddle__entry_id(plan->req.graph, n->inputs[o])] = true;
    }
  }
  for (uint32_t i = 0; i < plan->n_values; i++) {
    if (!z->open[i]) continue; /* a result that nobody reads has a place too */
    z->values[z->n_values++] = i;
    if (i < n_entries) z->n_plain = z->n_values;
  }
  for (uint32_t i = 0; i < plan->n_instances; i++)
    if (plan->instances[i].value != HEDDLE__NONE && z->open[plan->instances[i].value])
      z->instances[z->n_instances++] = i;
}

/* ---- the two programs */

static heddle_status list_half(heddle__sizes *z, half *h, heddle_error *err) {
  heddle__plan *plan = h->program->plan;
  const heddle_graph *g = plan->req.graph;
  uint32_t n = 0;
  h->in = heddle__alloc(z->n_in, sizeof *h->in);
  h->folded = heddle__alloc(plan->n_values, sizeof *h->folded);
  for (uint32_t i = 0; i < plan->n_regions; i++)
    if (plan->regions[i].ask != NULL && plan->regions[i].ask != z->root->plan->regions[i].ask)
      n += (uint32_t)plan->regions[i].ask->values.count;
  h->shown = heddle__alloc(n, sizeof *h->shown);
  if (h->in == NULL || h->folded == NULL || h->shown == NULL) return heddle__no_memory(err, "the sizes of a program");
  for (uint32_t i = 0; i < z->n_nodes; i++) {
    const open_node *o = &z->nodes[i];
    for (uint32_t k = 0; k < o->node->n_inputs; k++)
      if (o->node->inputs[k].node != HEDDLE__ABSENT)
        h->in[o->first_in + k] = &plan->values[heddle__entry_id(g, o->node->inputs[k])].known;
    for (uint32_t k = 0; k < o->node->n_outputs; k++) {
      const uint32_t id = o->node->first_entry + k;
      const heddle__known *known = &z->root->plan->values[id].known;
      if (!plan->values[id].feeds_shape || known->data == NULL || o->is_view) continue;
      h->folded[id] = heddle__plan_alloc(plan, 1, known->bytes);
      if (h->folded[id] == NULL) return heddle__no_memory(err, "the sizes of a program");
    }
  }
  /* A region's values are of this plan where their shapes lie in it. */
  const char *first = (const char *)plan->values, *end = (const char *)(plan->values + plan->n_values);
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    const heddle__region *r = &plan->regions[i];
    if (r->ask == NULL || r->ask == z->root->plan->regions[i].ask) continue;
    heddle_pvalue *values = (heddle_pvalue *)(uintptr_t)r->ask->values.data;
    for (uint64_t k = 0; k < r->ask->values.count; k++) {
      const char *at = (const char *)values[k].shape;
      if (values[k].data == NULL || at < first || at >= end) continue;
      const uint32_t id = (uint32_t)((size_t)(at - first) / sizeof *plan->values);
      if (z->open[id]) h->shown[h->n_shown++] = (shown){&values[k], id};
    }
  }
  return HEDDLE_OK;
}

static heddle_status make_half(heddle__sizes *z, const heddle__wish *wish, half *h, heddle_error *err) {
  heddle__order *o = NULL;
  heddle_status s = heddle__order_make(z->model, wish, &o, err);
  if (s == HEDDLE_OK) s = heddle__program_resize(z->model, z->root, o, z->open, &h->program, err);
  if (s != HEDDLE_OK) heddle__order_free(o);
  for (uint32_t i = 0; s == HEDDLE_OK && i < z->root->plan->n_regions; i++)
    if (h->program->ops[i] != z->root->ops[i])
      s = heddle__fail(err, HEDDLE_EUNSUPPORTED, "node '%.200s' is prepared for each shape",
                       z->root->plan->regions[i].label);
  return s == HEDDLE_OK ? list_half(z, h, err) : s;
}

heddle_status heddle__sizes_make(heddle_model *m, const heddle__wish *wish, heddle__program *root, heddle__sizes **out,
                                 heddle_error *err) {
  const heddle__plan *plan = root->plan;
  heddle_error why = {0};
  *out = NULL;
  heddle__sizes *z = heddle__alloc(1, sizeof *z);
  if (z == NULL) return heddle__no_memory(err, "the sizes of a program");
  z->model = m;
  z->root = heddle__program_retain(root);
  z->open = heddle__alloc(plan->n_values, sizeof *z->open);
  z->rigid = heddle__alloc(plan->n_values, sizeof *z->rigid);
  z->nodes = heddle__alloc(plan->req.graph->n_nodes, sizeof *z->nodes);
  z->values = heddle__alloc(plan->n_values, sizeof *z->values);
  z->instances = heddle__alloc(plan->n_instances, sizeof *z->instances);
  heddle_status s = z->open != NULL && z->rigid != NULL && z->nodes != NULL && z->values != NULL && z->instances != NULL
                        ? HEDDLE_OK
                        : heddle__no_memory(&why, "the sizes of a program");
  if (s == HEDDLE_OK) s = list_args(z, wish, root->order_of, &why);
  const bool can = s == HEDDLE_OK && list_nodes(z);
  if (s == HEDDLE_OK && !can) s = heddle__fail(&why, HEDDLE_EUNSUPPORTED, "a shape depends on what is not kept");
  if (s == HEDDLE_OK && z->out == NULL) s = heddle__no_memory(&why, "the sizes of a program");
  if (s == HEDDLE_OK) list_values(z);
  for (int i = 0; i < 2 && s == HEDDLE_OK; i++) s = make_half(z, wish, &z->halves[i], &why);
  if (s == HEDDLE_OK) {
    *out = z;
    return s;
  }
  heddle__sizes_free(z);
  if (s == HEDDLE_EUNSUPPORTED) {
    heddle__logf(heddle__context_log(m->ctx), HEDDLE_LOG_DEBUG, "plan", "%s: sizes are planned one by one: %s",
                 m->graph->source, why.text);
    return HEDDLE_OK;
  }
  if (err != NULL) *err = why;
  return s;
}

void heddle__sizes_free(heddle__sizes *z) {
  if (z == NULL) return;
  for (int i = 0; i < 2; i++) {
    heddle__free(z->halves[i].in);
    heddle__free(z->halves[i].folded);
    heddle__free(z->halves[i].shown);
    heddle__program_release(z->halves[i].program);
  }
  heddle__program_release(z->root);
  heddle__free(z->args);
  heddle__free(z->names);
  heddle__free(z->open);
  heddle__free(z->rigid);
  heddle__free(z->nodes);
  heddle__free(z->values);
  heddle__free(z->instances);
  heddle__free(z->out);
  heddle__free(z);
}

/* ---- a shape */

static bool same_shape(const heddle__known *a, const heddle__known *b) {
  return a->ndim == b->ndim && (a->ndim == 0 || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0);
}

/* Whether all that was set has the form that is listed here. */
static bool is_ours(const heddle__sizes *z, const heddle_executor *ex) {
  const heddle__order *o = z->root->order_of;
  if (ex->active != z->model || ex->n_args != z->n_args) return false;
  for (uint32_t i = 0; i < z->n_args; i++) {
    const heddle__arg *arg = &ex->args[i];
    const heddle_tensor *t = arg->value;
    const open_arg *a = &z->args[i];
    const heddle__known *bound = &o->inputs[i].known;
    if ((z->model->constants[i] != NULL && !arg->late) != a->is_constant) return false;
    if (a->is_constant) continue;
    if ((t != NULL) != a->is_set) return false;
    if (t == NULL) continue;
    if (t->ndim != bound->ndim || !heddle__dtype_equal(t->dtype, bound->dtype)) return false;
    if ((a->is_tied ? 0 : heddle__model_home(z->model, t)) != o->inputs[i].home) return false;
    for (uint32_t d = 0; d < t->ndim; d++)
      if (t->shape[d] < 1 || t->shape[d] > bound->shape[d] || (!a->may_change && t->shape[d] != bound->shape[d]))
        return false;
    if (a->room > 0 && (t->bytes > a->room || t->bytes == 0)) return false;
    for (uint32_t k = 0; k < a->n_names; k++) {
      const named *n = &z->names[a->first_name + k];
      const heddle_tensor *before = ex->args[n->arg_before].value;
      if (before == NULL || before->shape[n->dim_before] != t->shape[n->dim]) return false;
    }
  }
  for (uint32_t i = 0; i < o->n_homes; i++)
    if (heddle__model_tied_output(z->model, i) == NULL &&
        heddle__model_home(z->model, ex->results[i].lent) != o->homes[i])
      return false;
  return true;
}

/* Whether a program is for what is set; of an input that decides shapes bytes on the host are compared. */
static bool is_for(const heddle__sizes *z, const heddle__program *p, const heddle_executor *ex) {
  for (uint32_t i = 0; i < z->n_args; i++) {
    const heddle_tensor *t = ex->args[i].value;
    const heddle__known *k = &p->order_of->inputs[i].known;
    if (!z->args[i].may_change) continue;
    if (memcmp(t->shape, k->shape, t->ndim * sizeof *t->shape) != 0) return false;
    if (z->args[i].room > 0 && (t->data == NULL || !t->contiguous || memcmp(t->data, k->data, (size_t)t->bytes) != 0))
      return false;
  }
  return true;
}

static bool take_args(const heddle__sizes *z, const half *h, const heddle_executor *ex, heddle_error *why) {
  heddle__order *o = h->program->order_of;
  heddle__plan *plan = h->program->plan;
  const heddle_graph *g = plan->req.graph;
  for (uint32_t i = 0; i < z->n_args; i++) {
    const heddle_tensor *t = ex->args[i].value;
    heddle__known *k = &o->inputs[i].known, *v = &plan->values[g->nodes[g->args[i]].first_entry].known;
    if (!z->args[i].may_change) continue;
    if (heddle__model_fits(z->model, i, t->dtype, t->ndim, t->shape, why) != HEDDLE_OK) return false;
    memcpy(k->shape, t->shape, t->ndim * sizeof *t->shape);
    memcpy(v->shape, t->shape, t->ndim * sizeof *t->shape);
    k->bytes = v->bytes = t->bytes;
    if (z->args[i].room > 0 && heddle__tensor_read(t, o->copies[i], why) != HEDDLE_OK) return false;
  }
  return true;
}

static bool infer_node(const heddle__sizes *z, half *h, const open_node *o, heddle_error *why) {
  heddle__plan *plan = h->program->plan;
  const heddle_graph *g = plan->req.graph;
  const heddle__node *n = o->node;
  const heddle__known *const *in = h->in + o->first_in;
  heddle__known *out = z->out;
  memset(out, 0, n->n_outputs * sizeof *out);
  if (o->infer(g, n, in, out, NULL, why) != HEDDLE_OK) return false;
  for (uint32_t k = 0; k < n->n_outputs; k++) {
    const uint32_t id = n->first_entry + k;
    heddle__known *v = &plan->values[id].known;
    const heddle__known *bound = &z->root->plan->values[id].known;
    if (out[k].ndim != v->ndim || !heddle__dtype_equal(out[k].dtype, v->dtype) ||
        heddle__tensor_bytes(out[k].dtype, out[k].ndim, out[k].shape, &out[k].bytes, why) != HEDDLE_OK ||
        heddle__declared_check(g, n, k, out[k].dtype, out[k].ndim, out[k].shape, why) != HEDDLE_OK)
      return false;
    if (h->folded[id] != NULL) {
      heddle__fold_room room = {.given = h->folded[id], .given_bytes = bound->bytes};
      if (out[k].bytes == 0 || heddle__fold(plan, &room, n, in, out, k, true, why) != HEDDLE_OK || out[k].data == NULL)
        return false;
    }
    memcpy(v->shape, out[k].shape, v->ndim * sizeof *v->shape);
    v->bytes = out[k].bytes;
    if (h->folded[id] != NULL) v->data = out[k].data;
    else if (o->is_view && bound->data != NULL && in[0] != NULL) v->data = in[0]->data;
    if ((v->data == NULL) != (bound->data == NULL)) return false;
  }
  return true;
}

/* Sizes of values and of their places; no value may need more than at the bound. */
static bool measure(const heddle__sizes *z, half *h, heddle_error *why) {
  heddle__plan *plan = h->program->plan;
  const heddle__plan *root = z->root->plan;
  for (uint32_t i = 0; i < z->n_values; i++) {
    heddle__value *v = &plan->values[z->values[i]];
    const heddle__value *bound = &root->values[z->values[i]];
    if (i >= z->n_plain) { /* of a Reorder */
      const heddle__known *from = &plan->values[plan->regions[v->region].inputs[0]].known;
      memcpy(v->known.shape, from->shape, from->ndim * sizeof *from->shape);
      v->known.bytes = from->bytes;
    }
    if (z->rigid[z->values[i]] &&
        (!same_shape(&v->known, &bound->known) ||
         (v->known.data != bound->known.data && memcmp(v->known.data, bound->known.data, v->known.bytes) != 0)))
      return false;
    if (!heddle__is_within(bound, &v->known)) return false;
    if (v->layout == 0) v->size = v->known.bytes;
    else if (heddle__value_measure(plan, z->values[i], plan->regions[v->region].device, why) != HEDDLE_OK) return false;
  }
  for (uint32_t i = 0; i < z->n_instances; i++) {
    heddle__instance *it = &plan->instances[z->instances[i]];
    if (heddle__instance_room(plan, z->instances[i]) > 0) continue;
    it->bytes = plan->values[it->value].size;
    if (it->bytes > root->instances[z->instances[i]].bytes) return false;
  }
  return true;
}

static bool write_half(const heddle__sizes *z, half *h, const heddle_executor *ex) {
  heddle__program *p = h->program;
  heddle_error why;
  if (!take_args(z, h, ex, &why)) return false;
  for (uint32_t i = 0; i < z->n_nodes; i++)
    if (!infer_node(z, h, &z->nodes[i], &why)) return false;
  if (!measure(z, h, &why) || heddle__optimize_check(z->model, p->plan, &why) != HEDDLE_OK) return false;
  for (uint32_t i = 0; i < h->n_shown; i++) {
    const heddle__known *k = &p->plan->values[h->shown[i].id].known;
    h->shown[i].value->data = k->data;
    h->shown[i].value->data_bytes = k->bytes;
  }
  heddle__bound_forget_late(ex->bound, p);
  heddle__program_count_copies(p);
  return true;
}

heddle__program *heddle__sizes_take(heddle__sizes *z, const heddle_executor *ex) {
  if (z == NULL || ex->bound == NULL || !is_ours(z, ex)) return NULL;
  heddle__program *now = ex->bound->program;
  if (!heddle__program_related(now, z->root)) return NULL;
  if (is_for(z, now, ex)) return heddle__program_retain(now);
  half *h = &z->halves[now == z->halves[0].program ? 1 : 0];
  if (atomic_load(&h->program->references) != 1 || !write_half(z, h, ex)) return NULL; /* another has it still */
  return heddle__program_retain(h->program);
}
