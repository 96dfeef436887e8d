/* executor/request.c: from a model and what was set to the request that the passes plan, and to the key of its program.
 * Whether inputs fit what the graph says of them is checked here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/most.h"
#include "executor/optimize.h"
#include "graph/declared.h"

/* ---- what the graph says of inputs */

static bool is_fixed(const heddle__type *t) {
  if (!t->has_dtype || !t->has_shape) return false;
  for (uint32_t d = 0; d < t->ndim; d++)
    if (t->dims[d].value < 0) return false;
  return true;
}

static const heddle__type *type_of(const heddle_model *m, uint32_t arg) {
  return &m->graph->types[heddle__model_arg(m, arg)->first_entry];
}

heddle_status heddle__model_fits(const heddle_model *m, uint32_t arg, heddle_dtype dtype, uint32_t ndim,
                                 const int64_t *shape, heddle_error *err) {
  const heddle__type *t = type_of(m, arg);
  const heddle__constant *c = m->constants[arg];
  const char *name = heddle__model_arg(m, arg)->name;
  bool has_dtype = t->has_dtype || c != NULL;
  heddle_dtype want = t->has_dtype ? t->dtype : c != NULL ? c->dtype : dtype;
  if (has_dtype && !heddle__dtype_equal(want, dtype)) {
    char a[32], b[32];
    heddle__dtype_name(want, a);
    heddle__dtype_name(dtype, b);
    return heddle__fail(err, HEDDLE_EINVAL, "%s: input '%s' is %s; a tensor of %s was given", m->graph->source, name, a,
                        b);
  }
  if (!t->has_shape) return HEDDLE_OK;
  bool fits = t->ndim == ndim;
  for (uint32_t d = 0; d < ndim && fits; d++) fits = t->dims[d].value < 0 || t->dims[d].value == shape[d];
  if (fits) return heddle__most_check(m, arg, shape, err);
  char a[256], b[128];
  heddle__declared_shape(t, a, sizeof a);
  heddle__shape_name(shape, ndim, b, sizeof b);
  return heddle__fail(err, HEDDLE_EINVAL, "%s: input '%s' has shape %s; a tensor of shape %s was given",
                      m->graph->source, name, a, b);
}

heddle_status heddle__order_lacks(const heddle_model *m, const heddle__wish *wish, uint32_t *arg, heddle_error *err) {
  const heddle_graph *g = m->graph;
  *arg = HEDDLE__NONE;
  bool *needed = heddle__alloc(g->n_nodes, sizeof *needed);
  if (needed == NULL) return heddle__no_memory(err, "the inputs of a request");
  if (wish->target != NULL) {
    needed[wish->target->node] = true;
  } else {
    for (uint32_t i = 0; i < g->n_heads; i++) needed[g->heads[i].node] = true;
    for (uint32_t i = 0; i < m->n_keep; i++) needed[m->keep[i].node] = true;
  }
  for (uint32_t i = g->n_nodes; i-- > 0;)
    for (uint32_t k = 0; needed[i] && k < g->nodes[i].n_inputs; k++)
      if (g->nodes[i].inputs[k].node != HEDDLE__ABSENT) needed[g->nodes[i].inputs[k].node] = true;
  for (uint32_t i = 0; i < g->n_args && *arg == HEDDLE__NONE; i++) {
    if (!needed[g->args[i]] || wish->values[i] != NULL || (m->constants[i] != NULL && !wish->late[i])) continue;
    if (m->feeds[i] || !is_fixed(type_of(m, i))) *arg = i;
  }
  heddle__free(needed);
  return HEDDLE_OK;
}

/* ---- the inputs of a request */

static void take_tensor(heddle__plan_input *in, const heddle_tensor *t) {
  in->has_shape = true;
  in->known.dtype = t->dtype;
  in->known.ndim = t->ndim;
  memcpy(in->known.shape, t->shape, t->ndim * sizeof *t->shape);
  in->known.bytes = t->bytes;
}

void heddle__plan_constant(heddle__plan_input *in, const heddle__constant *c) {
  in->source = HEDDLE__SOURCE_CONSTANT;
  in->has_shape = true;
  in->known = (heddle__known){.dtype = c->dtype, .ndim = c->ndim, .data = c->data, .bytes = c->bytes};
  if (c->ndim > 0) memcpy(in->known.shape, c->shape, c->ndim * sizeof *c->shape);
}

uint32_t heddle__model_home(const heddle_model *m, const heddle_tensor *t) {
  if (t == NULL || t->dev == NULL) return 0;
  for (uint32_t i = 0; i < m->n_devices; i++)
    if (m->devices[i] == t->dev && !heddle__device_inline(t->dev)) return i + 1;
  return 0;
}

static heddle_status take_input(heddle_model *m, const heddle__wish *wish, heddle__order *o, uint32_t i,
                                heddle_error *err) {
  heddle__plan_input *in = &o->inputs[i];
  const heddle__constant *c = m->constants[i];
  const heddle_tensor *t = wish->values[i];
  const heddle__type *type = type_of(m, i);
  if (c != NULL && !wish->late[i]) {
    heddle__plan_constant(in, c);
    return HEDDLE_OK;
  }
  in->source = HEDDLE__SOURCE_INPUT;
  if (t != NULL) {
    heddle_status s = heddle__model_fits(m, i, t->dtype, t->ndim, t->shape, err);
    if (s != HEDDLE_OK) return s;
    take_tensor(in, t);
    if (wish->to_most && !m->feeds[i] && heddle__most_raise(m, i, type->ndim, in->known.shape))
      s = heddle__tensor_bytes(in->known.dtype, in->known.ndim, in->known.shape, &in->known.bytes, err);
    if (s != HEDDLE_OK) return s;
    if (wish->target == NULL && heddle__model_tie(m, i) == NULL) in->home = heddle__model_home(m, t);
    if (!m->feeds[i]) return HEDDLE_OK;
    o->copies[i] = t->bytes <= SIZE_MAX ? heddle__alloc_aligned((size_t)t->bytes, 64) : NULL;
    if (o->copies[i] == NULL) return heddle__no_memory(err, "the value of an input");
    in->known.data = o->copies[i];
    return heddle__tensor_read(t, o->copies[i], err);
  }
  int64_t shape[HEDDLE__MAX_NDIM];
  for (uint32_t d = 0; d < HEDDLE__MAX_NDIM; d++)
    shape[d] = type->has_shape && d < type->ndim ? type->dims[d].value : 0;
  if (wish->to_most && type->has_shape && !m->feeds[i]) (void)heddle__most_raise(m, i, type->ndim, shape);
  bool is_known = type->has_dtype && type->has_shape;
  for (uint32_t d = 0; is_known && d < type->ndim; d++) is_known = shape[d] >= 0;
  if (!is_known) return HEDDLE_OK;
  in->has_shape = true;
  in->known.dtype = type->dtype;
  in->known.ndim = type->ndim;
  for (uint32_t d = 0; d < type->ndim; d++) in->known.shape[d] = shape[d];
  return heddle__tensor_bytes(in->known.dtype, in->known.ndim, in->known.shape, &in->known.bytes, err);
}

/* Every symbol means one number. Few inputs have symbols, so each is compared with all before it. */
static heddle_status check_symbols(const heddle_model *m, const heddle__order *o, heddle_error *err) {
  for (uint32_t i = 0; i < o->n_args; i++) {
    const heddle__type *a = type_of(m, i);
    for (uint32_t d = 0; o->inputs[i].has_shape && a->has_shape && d < a->ndim; d++) {
      if (a->dims[d].symbol == NULL || d >= o->inputs[i].known.ndim) continue;
      for (uint32_t j = 0; j <= i; j++) {
        const heddle__type *b = type_of(m, j);
        for (uint32_t e = 0; o->inputs[j].has_shape && b->has_shape && e < b->ndim; e++) {
          if (b->dims[e].symbol == NULL || strcmp(a->dims[d].symbol, b->dims[e].symbol) != 0) continue;
          if (o->inputs[i].known.shape[d] == o->inputs[j].known.shape[e]) continue;
          return heddle__fail(err, HEDDLE_EINVAL,
                              "dimension '%s' is %" PRId64 " in input '%s' and %" PRId64 " in input '%s': it must be "
                              "one number",
                              a->dims[d].symbol, o->inputs[j].known.shape[e], heddle__model_arg(m, j)->name,
                              o->inputs[i].known.shape[d], heddle__model_arg(m, i)->name);
        }
      }
    }
  }
  return HEDDLE_OK;
}

/* Outputs that are bound to memory of a device. The plan chooses where those of state values lie. */
static heddle_status take_homes(const heddle_model *m, const heddle__wish *wish, heddle__order *o, heddle_error *err) {
  if (wish->target != NULL || wish->lent == NULL) return HEDDLE_OK;
  o->n_homes = m->graph->n_heads + m->n_keep;
  o->homes = heddle__alloc(o->n_homes, sizeof *o->homes);
  if (o->homes == NULL) return heddle__no_memory(err, "a request");
  for (uint32_t i = 0; i < o->n_homes; i++)
    if (heddle__model_tied_output(m, i) == NULL) o->homes[i] = heddle__model_home(m, wish->lent[i]);
  return HEDDLE_OK;
}

/* ---- the key */

typedef struct writer {
  unsigned char *to; /* NULL: only count */
  size_t used;
} writer;

static void put(writer *w, const void *bytes, size_t n) {
  if (w->to != NULL && n > 0) memcpy(w->to + w->used, bytes, n);
  w->used += n;
}

/* A number by how many binary digits it has. */
static void put_digits(writer *w, int64_t n) {
  unsigned char digits = 0;
  for (; n > 0; n >>= 1) digits++;
  put(w, &digits, 1);
}

/* The class of shapes that precedents are kept by. */
static void write_class(writer *w, const heddle__order *o) {
  for (uint32_t i = 0; i < o->n_args; i++) {
    const heddle__plan_input *in = &o->inputs[i];
    unsigned char kind = (unsigned char)(in->source == HEDDLE__SOURCE_CONSTANT ? 2 : in->has_shape ? 1 : 0);
    put(w, &kind, 1);
    if (kind != 1) continue;
    put(w, &in->known.dtype, sizeof in->known.dtype);
    put(w, &in->known.ndim, sizeof in->known.ndim);
    for (uint32_t d = 0; d < in->known.ndim; d++) put_digits(w, in->known.shape[d]);
  }
}

static void write_key(writer *w, const heddle__order *o, const heddle__wish *wish) {
  uint32_t target[2] = {HEDDLE__NONE, 0};
  if (wish->target != NULL) {
    target[0] = wish->target->node;
    target[1] = wish->target->index;
  }
  put(w, target, sizeof target);
  const unsigned char open = o->req.open;
  put(w, &open, 1);
  for (uint32_t i = 0; i < o->n_args; i++) {
    const heddle__plan_input *in = &o->inputs[i];
    unsigned char kind = (unsigned char)(in->source == HEDDLE__SOURCE_CONSTANT ? 2 : in->has_shape ? 1 : 0);
    put(w, &kind, 1);
    if (kind != 1) continue; /* a constant is the model's; of the other nothing is known */
    put(w, &in->known.dtype, sizeof in->known.dtype);
    put(w, &in->known.ndim, sizeof in->known.ndim);
    put(w, in->known.shape, in->known.ndim * sizeof in->known.shape[0]);
    put(w, &in->open_dims, sizeof in->open_dims);
    put(w, &in->home, sizeof in->home);
    unsigned char valued = in->known.data != NULL;
    put(w, &valued, 1);
    if (valued) put(w, in->known.data, (size_t)in->known.bytes);
  }
  for (uint32_t i = 0; i < o->n_homes; i++) { /* most keys have none, and are as if nothing was bound */
    if (o->homes[i] == 0) continue;
    put(w, &i, sizeof i);
    put(w, &o->homes[i], sizeof o->homes[i]);
  }
}

static heddle_status make_key(heddle__order *o, const heddle__wish *wish, heddle_error *err) {
  writer w = {NULL, 0};
  write_key(&w, o, wish);
  w.to = o->key = heddle__alloc(w.used, 1);
  if (o->key == NULL) return heddle__no_memory(err, "the key of a program");
  o->key_bytes = w.used;
  w.used = 0;
  write_key(&w, o, wish);
  w = (writer){NULL, 0};
  write_class(&w, o);
  w.to = o->class_key = heddle__alloc(w.used, 1);
  if (o->class_key == NULL) return heddle__no_memory(err, "the key of a program");
  o->class_bytes = w.used;
  w.used = 0;
  write_class(&w, o);
  return HEDDLE_OK;
}

heddle_status heddle__order_renew(heddle__order *o, const heddle__wish *wish, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < o->n_args && s == HEDDLE_OK; i++) {
    heddle__known *k = &o->inputs[i].known;
    if (o->inputs[i].source == HEDDLE__SOURCE_INPUT && o->inputs[i].has_shape)
      s = heddle__tensor_bytes(k->dtype, k->ndim, k->shape, &k->bytes, err);
  }
  heddle__free(o->key);
  heddle__free(o->class_key);
  o->key = o->class_key = NULL;
  return s == HEDDLE_OK ? make_key(o, wish, err) : s;
}

/* ---- the whole */

/* The graph with one head. References are not copied: a view is never retained. */
static void make_view(heddle__order *o, const heddle_graph *g, const heddle__keep *target) {
  heddle_graph *v = &o->view;
  v->source = g->source;
  v->is_heddle = g->is_heddle;
  v->opset = g->opset;
  v->nodes = g->nodes;
  v->n_nodes = g->n_nodes;
  v->n_entries = g->n_entries;
  v->types = g->types;
  v->storage_id = g->storage_id;
  v->device_index = g->device_index;
  v->storage_scope = g->storage_scope;
  v->args = g->args;
  v->n_args = g->n_args;
  v->raw = g->raw;
  o->head = (heddle__entry){target->node, target->index};
  v->heads = &o->head;
  v->n_heads = 1;
}

/* Whether some input is laid out for a maximum. */
static bool takes_most(const heddle_model *m, const heddle__order *o) {
  for (uint32_t i = 0; i < m->n_most; i++)
    if (o->inputs[m->most[i].arg].has_shape && !m->feeds[m->most[i].arg]) return true;
  return false;
}

heddle_status heddle__order_make(heddle_model *m, const heddle__wish *wish, heddle__order **out, heddle_error *err) {
  *out = NULL;
  heddle__order *o = heddle__alloc(1, sizeof *o);
  if (o == NULL) return heddle__no_memory(err, "a request");
  o->n_args = m->graph->n_args;
  o->inputs = heddle__alloc(o->n_args + (m->optimized != NULL ? m->optimized->n_made : 0), sizeof *o->inputs);
  o->copies = heddle__alloc(o->n_args, sizeof *o->copies);
  heddle_status s = o->inputs != NULL && o->copies != NULL ? HEDDLE_OK : heddle__no_memory(err, "a request");
  for (uint32_t i = 0; i < o->n_args && s == HEDDLE_OK; i++) {
    s = take_input(m, wish, o, i, err);
    for (uint32_t d = 0; wish->to_most && s == HEDDLE_OK && o->inputs[i].has_shape && d < o->inputs[i].known.ndim; d++)
      if (heddle__most_of(m, i, d) > 0) o->inputs[i].open_dims |= UINT32_C(1) << d;
  }
  if (s == HEDDLE_OK) s = check_symbols(m, o, err);
  if (s == HEDDLE_OK) s = take_homes(m, wish, o, err);
  if (s == HEDDLE_OK) s = make_key(o, wish, err);
  if (s != HEDDLE_OK) {
    heddle__order_free(o);
    return s;
  }
  if (wish->target != NULL) make_view(o, m->graph, wish->target);
  o->req = (heddle__request){.graph = wish->target != NULL ? &o->view : m->graph,
                             .ctx = m->ctx,
                             .devices = m->devices,
                             .rules = m->rules,
                             .inputs = o->inputs,
                             .keep = m->keep,
                             .homes = o->homes,
                             .ties = m->ties,
                             .n_ties = wish->target != NULL ? 0 : m->n_ties,
                             .library = m->library,
                             .foreigns = m->foreigns,
                             .limits = m->limits,
                             .limits_from = m->limits_from,
                             .placer = m->placer,
                             .n_devices = m->n_devices,
                             .devices_from = m->devices_from,
                             .left_out = m->left_out,
                             .n_rules = m->n_rules,
                             .n_keep = wish->target != NULL ? 0 : m->n_keep,
                             .max_streams = m->max_streams,
                             .in_flight = m->in_flight,
                             .programs = m->max_programs,
                             .on_failure = m->on_failure,
                             .is_spare = m->is_spare,
                             .ignore_annotations = (m->flags & HEDDLE_MODEL_IGNORE_ANNOTATIONS) != 0,
                             .no_capture = (m->flags & HEDDLE_MODEL_NO_CAPTURE) != 0,
                             .no_reuse = (m->flags & HEDDLE_MODEL_NO_REUSE) != 0,
                             .slots = (m->flags & HEDDLE_MODEL_SLOTS) != 0,
                             .fast = (m->flags & HEDDLE_MODEL_FAST) != 0};
  o->req.most = m->most;
  o->req.n_most = m->n_most;
  o->req.growths = atomic_load(&m->growths);
  o->req.open = wish->to_most && takes_most(m, o);
  heddle__optimize_order(m, wish, o);
  *out = o;
  return HEDDLE_OK;
}

void heddle__order_free(heddle__order *o) {
  if (o == NULL) return;
  for (uint32_t i = 0; o->copies != NULL && i < o->n_args; i++) heddle__free(o->copies[i]);
  heddle__free(o->copies);
  heddle__free(o->inputs);
  heddle__free(o->homes);
  heddle__free(o->key);
  heddle__free(o->class_key);
  heddle__free(o);
}
