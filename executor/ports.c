/* executor/ports.c: inputs and outputs of an executor: set, bound in place, read back, viewed.
 * What that means for slots and programs is rebind.c's business. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/chain.h"
#include "executor/flight.h"
#include "executor/most.h"
#include "executor/stages.h"
#include "executor/states.h"
#include "graph/declared.h"

/* ---- finding */

/* Both give the lane that is meant, which has that port. */
static heddle_status find_input(heddle_executor *ex, heddle__lane_use use, uint32_t i, heddle_executor **lane,
                                heddle_error *err) {
  if (ex == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the executor is NULL");
  heddle_status s = heddle__lane_for(ex, use, lane, err);
  if (s == HEDDLE_OK) s = heddle__executor_check(*lane, err);
  if (s != HEDDLE_OK || i < (*lane)->n_args) return s;
  return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: there is no input %u; there are %u", (*lane)->model->graph->source,
                      (unsigned)i, (unsigned)(*lane)->n_args);
}

static heddle_status find_output(heddle_executor *ex, heddle__lane_use use, uint32_t i, heddle_executor **lane,
                                 heddle_error *err) {
  if (ex == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the executor is NULL");
  heddle_status s = heddle__lane_for(ex, use, lane, err);
  if (s == HEDDLE_OK) s = heddle__executor_check(*lane, err);
  if (s != HEDDLE_OK || i < (*lane)->n_results) return s;
  return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: there is no output %u; there are %u", (*lane)->model->graph->source,
                      (unsigned)i, (unsigned)(*lane)->n_results);
}

int32_t heddle_executor_input_index(const heddle_executor *ex, const char *name) {
  if (ex == NULL || name == NULL) return -1;
  int32_t i = heddle__graph_arg(ex->model->graph, name);
  return i >= 0 ? i : -1;
}

int32_t heddle_executor_output_index(const heddle_executor *ex, const char *name) {
  if (ex == NULL || name == NULL) return -1;
  const heddle_graph *g = ex->model->graph;
  int32_t found = -1;
  ex = ex->course->holder(ex, HEDDLE__NONE); /* which lane does not matter */
  for (uint32_t i = 0; i < ex->n_results; i++) {
    if (strcmp(ex->results[i].name, name) != 0) continue;
    if (found >= 0 && g->heads[i].node != g->heads[found].node) return -1; /* two nodes share the name */
    if (found < 0) found = (int32_t)i;
  }
  return found;
}

/* ---- setting */

/* Whether the bound program was planned for such a value. */
static bool planned_as(const heddle_executor *ex, uint32_t i, const heddle_tensor *t) {
  if (ex->bound == NULL) return false;
  const heddle__plan_input *in = &ex->bound->program->order_of->inputs[i];
  const heddle__known *k = &in->known;
  if (in->source != HEDDLE__SOURCE_INPUT || !in->has_shape || !heddle__dtype_equal(k->dtype, t->dtype)) return false;
  if (in->home != 0 || heddle__model_home(ex->active, t) != 0)
    if (heddle__model_tie(ex->model, i) == NULL && in->home != heddle__model_home(ex->active, t)) return false;
  if (k->ndim != t->ndim || memcmp(k->shape, t->shape, t->ndim * sizeof *t->shape) != 0) return false;
  if (!ex->model->feeds[i]) return true;
  return k->data != NULL && t->data != NULL && t->contiguous && memcmp(k->data, t->data, (size_t)t->bytes) == 0;
}

static bool same_form(const heddle_tensor *a, const heddle_tensor *b) {
  return heddle__dtype_equal(a->dtype, b->dtype) && a->ndim == b->ndim &&
         memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

/* The common case: new bytes for what is there already. */
static heddle_status overwrite(heddle_executor *ex, uint32_t i, const heddle_tensor *t, heddle_error *err) {
  heddle__arg *arg = &ex->args[i];
  bool same = t->dev == NULL && t->data == arg->value->data;
  if (!same) {
    heddle_status s = heddle__tensor_read(t, arg->value->data, err);
    if (s != HEDDLE_OK) return s;
  }
  heddle__bound *b = ex->bound;
  for (uint32_t k = 0; b != NULL && k < b->n_inputs; k++) {
    const heddle__port *port = &b->inputs[k];
    if (port->io != i) continue;
    const heddle__instance *inst = &b->program->plan->instances[port->instance];
    heddle__memory *m = b->memory[port->alloc];
    char *slot = (char *)m->host + inst->offset;
    if (slot != (char *)arg->value->data && arg->value->bytes > 0)
      memcpy(slot, arg->value->data, (size_t)arg->value->bytes);
    heddle_status s = heddle__memory_flush(m, inst->offset, inst->bytes, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

static bool has_slot(const heddle_executor *ex, uint32_t i) {
  for (uint32_t k = 0; k < ex->bound->n_inputs; k++)
    if (ex->bound->inputs[k].io == i) return true;
  return false;
}

/* The slot of an input whose value lies in it and in nothing else, where it has room for a tensor of another shape: the bytes
 * go there, and nothing is allocated. */
static char *slot_for(const heddle_executor *ex, uint32_t i, const heddle_tensor *t, heddle__memory **memory) {
  const heddle__arg *arg = &ex->args[i];
  const heddle__port *found = NULL;
  for (uint32_t k = 0; ex->bound != NULL && k < ex->bound->n_inputs; k++) {
    if (ex->bound->inputs[k].io != i) continue;
    if (found != NULL) return NULL;
    found = &ex->bound->inputs[k];
  }
  if (found == NULL || t->bytes == 0 || t->ndim != arg->value->ndim ||
      !heddle__dtype_equal(t->dtype, arg->value->dtype) || arg->late != (ex->model->constants[i] != NULL) ||
      atomic_load_explicit(&arg->value->references, memory_order_acquire) != 1)
    return NULL;
  heddle__memory *m = ex->bound->memory[found->alloc];
  const uint64_t offset = ex->bound->program->plan->instances[found->instance].offset;
  if (m->host == NULL || m->lender != NULL || offset > m->bytes || t->bytes > m->bytes - offset) return NULL;
  char *slot = (char *)m->host + offset;
  if (arg->value->dev != NULL || arg->value->data != slot || t->data == slot) return NULL;
  *memory = m;
  return slot;
}

static heddle_status copy_of(const heddle_tensor *t, heddle_tensor **out, heddle_error *err) {
  heddle_status s = heddle_tensor_create(NULL, t->dtype, t->shape, t->ndim, out, err);
  if (s == HEDDLE_OK) s = heddle__tensor_read(t, (*out)->data, err);
  if (s != HEDDLE_OK) {
    heddle_tensor_release(*out);
    *out = NULL;
  }
  return s;
}

heddle_status heddle__executor_set(heddle_executor *ex, uint32_t i, heddle_tensor *t, heddle__how how,
                                   heddle_error *err) {
  heddle__arg *arg = &ex->args[i];
  heddle__state *st = heddle__state_of_arg(ex, i);
  if (st != NULL) return heddle__state_write(ex, st, t, err);
  heddle_status s = heddle__model_fits(ex->model, i, t->dtype, t->ndim, t->shape, err);
  if (s == HEDDLE_OK && how == HEDDLE__LEND) s = heddle__chain_need(ex, t, err);
  if (s != HEDDLE_OK) return s;
  bool planned = planned_as(ex, i, t), is_own = how == HEDDLE__COPY && arg->value != NULL && !arg->lent;
  bool has_place = ex->bound == NULL || (planned && !ex->stale && has_slot(ex, i));
  if (is_own && has_place && same_form(arg->value, t)) return overwrite(ex, i, t, err);

  heddle__memory *memory = NULL;
  char *slot = is_own && !planned ? slot_for(ex, i, t, &memory) : NULL;
  if (slot != NULL) {
    ex->stale = true;
    s = heddle__tensor_read(t, slot, err);
    if (s == HEDDLE_OK) s = heddle__tensor_reshape(arg->value, t->shape, err);
    return s == HEDDLE_OK ? heddle__memory_flush(memory, (uint64_t)(slot - (char *)memory->host), t->bytes, err) : s;
  }

  /* The value changes hands; where it has a slot now, fill makes that the value, so that the tensor serves for now. */
  bool fill_now = planned && !ex->stale && has_slot(ex, i);
  heddle_tensor *value = NULL;
  if (how == HEDDLE__LEND || fill_now) value = heddle_tensor_retain(t);
  else s = copy_of(t, &value, err);
  if (s != HEDDLE_OK) return heddle__most_blame_value(ex->model, i, t, s, err);
  heddle__arg before = *arg;
  arg->value = value;
  arg->lent = how == HEDDLE__LEND;
  arg->late = ex->model->constants[i] != NULL;
  if (!planned) ex->stale = true;
  if (fill_now) s = heddle__executor_fill(ex, ex->bound, i, true, err);
  if (s != HEDDLE_OK) { /* as if nothing had been set; slots are filled again before the next run */
    heddle_tensor_release(arg->value);
    *arg = before;
    ex->stale = true;
    return s;
  }
  heddle_tensor_release(before.value);
  ex->lent_shapes = ex->lent_shapes || (arg->lent && ex->model->feeds[i]);
  if (ex->bound != NULL && !ex->stale) ex->unset = heddle__executor_unset(ex, ex->bound);
  return HEDDLE_OK;
}

void heddle__executor_reread(heddle_executor *ex) {
  ex->lent_shapes = false;
  for (uint32_t i = 0; i < ex->n_args; i++) {
    if (!ex->args[i].lent || !ex->model->feeds[i]) continue;
    ex->lent_shapes = true;
    ex->stale = ex->stale || !planned_as(ex, i, ex->args[i].value);
  }
}

heddle_status heddle_executor_set_input(heddle_executor *whole, uint32_t i, const heddle_tensor *value,
                                        heddle_error *err) {
  heddle_executor *ex;
  heddle_status s = find_input(whole, HEDDLE__LANE_SET, i, &ex, err);
  if (s != HEDDLE_OK) return s;
  if (value == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "input '%s': the tensor is NULL", heddle__model_arg(ex->model, i)->name);
  ex->args[i].is_param = false;
  s = heddle__executor_set(ex, i, (heddle_tensor *)value, HEDDLE__COPY, err);
  if (s == HEDDLE_OK) heddle__flight_note(ex, i);
  return s;
}

heddle_status heddle_executor_set_input_by_name(heddle_executor *whole, const char *name, const heddle_tensor *value,
                                                heddle_error *err) {
  heddle_executor *ex;
  heddle_status s = heddle__lane_for(whole, HEDDLE__LANE_SET, &ex, err);
  if (s == HEDDLE_OK) s = heddle__executor_check(ex, err);
  if (s != HEDDLE_OK) return s;
  int32_t i = heddle_executor_input_index(ex, name);
  if (i < 0) return heddle__model_no_input(ex->model, name != NULL ? name : "(null)", err);
  return heddle_executor_set_input(ex, (uint32_t)i, value, err);
}

/* ---- binding */

/* What memory must be to be bound; what is the input's or output's name. A device's handle is no address. */
static heddle_status check_lent(const heddle_tensor *t, const char *what, const char *name, bool written,
                                heddle_error *err) {
  uint32_t element = heddle__dtype_bytes(t->dtype);
  if (!t->contiguous)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "%s '%s' is row-major without gaps; the tensor's strides are not: copy it, "
                        "or use set_input",
                        what, name);
  if (written && t->read_only)
    return heddle__fail(err, HEDDLE_EINVAL, "%s '%s' is written by runs; the tensor is read-only", what, name);
  if (t->dev == NULL && (element & (element - 1)) == 0 && (uintptr_t)t->data % element != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "%s '%s' has elements of %u bytes; the address %p is not aligned to that",
                        what, name, (unsigned)element, t->data);
  return HEDDLE_OK;
}

static bool overlaps(const heddle_tensor *t, const void *at, uint64_t bytes) {
  if (t->dev != NULL || t->bytes == 0 || bytes == 0) return false;
  uintptr_t x = (uintptr_t)t->data, y = (uintptr_t)at;
  return x < y + bytes && y < x + t->bytes;
}

/* The same of two tensors; on a device they overlap where they are one buffer that runs use as it is. */
static bool shares(const heddle_executor *ex, const heddle_tensor *t, const heddle_tensor *other) {
  if (t->dev != NULL)
    return t->buffer == other->buffer && t->dev == other->dev && heddle__model_home(ex->model, t) != 0;
  return overlaps(t, other->data, other->bytes);
}

/* The output other than `except` of one executor whose memory the tensor overlaps: what was lent, or a slot that the
 * caller viewed. */
static const char *overlapped_in(heddle_executor *ex, const heddle_tensor *t, uint32_t except) {
  for (uint32_t k = 0; k < ex->n_results; k++) {
    const heddle_tensor *lent = ex->results[k].lent;
    if (k != except && lent != NULL && shares(ex, t, lent)) return ex->results[k].name;
  }
  uint32_t found = HEDDLE__NONE;
  pthread_mutex_lock(&ex->drive.lock); /* another lane's pending run may change what is bound, where a device fails */
  for (uint32_t k = 0; ex->bound != NULL && k < ex->bound->n_outputs; k++) {
    const heddle__port *port = &ex->bound->outputs[k];
    const heddle__memory *m = ex->bound->memory[port->alloc];
    if (port->io != except && m->lender == NULL && overlaps(t, m->host, m->bytes)) found = port->io;
  }
  pthread_mutex_unlock(&ex->drive.lock);
  if (found != HEDDLE__NONE) return ex->results[found].name;
  for (uint32_t k = 0; k < ex->n_results; k++) {
    const heddle_tensor *own = ex->course->result(ex, k);
    if (k != except && own != NULL && overlaps(t, own->data, own->bytes)) return ex->results[k].name;
  }
  return NULL;
}

/* The same of all lanes, of which only that of ex is to be given the tensor. */
static const char *overlapped_output(heddle_executor *ex, const heddle_tensor *t, uint32_t except) {
  const char *found = NULL;
  heddle_executor *one;
  for (uint32_t i = 0; found == NULL && (one = heddle__flight_peer(ex, i)) != NULL; i++)
    found = overlapped_in(one, t, one == ex ? except : HEDDLE__NONE);
  return found;
}

/* The input to which memory is bound that the tensor overlaps, in any lane. */
static const char *overlapped_input(heddle_executor *ex, const heddle_tensor *t) {
  heddle_executor *one;
  for (uint32_t i = 0; (one = heddle__flight_peer(ex, i)) != NULL; i++)
    for (uint32_t k = 0; k < one->n_args; k++)
      if (one->args[k].lent && shares(one, t, one->args[k].value)) return heddle__model_arg(ex->model, k)->name;
  return NULL;
}

heddle_status heddle__executor_check_read(heddle_executor *ex, uint32_t i, const heddle_tensor *t, heddle_error *err) {
  const char *output = overlapped_output(ex, t, HEDDLE__NONE);
  if (output == NULL) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EINVAL,
                      "input '%s': the tensor overlaps the memory of output '%s', which runs write: copy it, or use "
                      "set_input",
                      heddle__model_arg(ex->model, i)->name, output);
}

heddle_status heddle_executor_bind_input(heddle_executor *whole, uint32_t i, heddle_tensor *value, heddle_error *err) {
  heddle_executor *ex;
  heddle_status s = find_input(whole, HEDDLE__LANE_SET, i, &ex, err);
  if (s != HEDDLE_OK) return s;
  const char *name = heddle__model_arg(ex->model, i)->name;
  if (value == NULL) return heddle__fail(err, HEDDLE_EINVAL, "input '%s': the tensor is NULL", name);
  if (heddle__state_of_arg(ex, i) != NULL)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "input '%s' is a state value, whose memory is the executor's: write it with set_input or "
                        "write_state",
                        name);
  if (value->dev != NULL && ex->model->feeds[i])
    return heddle__fail_on(value->dev->name, err, HEDDLE_EINVAL,
                           "input '%s' decides shapes, and the tensor is on %s: use set_input", name, value->dev->name);
  s = check_lent(value, "input", name, false, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__executor_check_read(ex, i, value, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__executor_set(ex, i, value, HEDDLE__LEND, err);
  if (s != HEDDLE_OK) return s;
  ex->args[i].is_param = false;
  heddle__flight_note(ex, i);
  return HEDDLE_OK;
}

/* A tensor that contradicts what the graph declares of an output can be bound, but no run could write to it. */
static heddle_status check_declared(const heddle_executor *ex, uint32_t i, const heddle_tensor *t, heddle_error *err) {
  const heddle_graph *g = ex->model->graph;
  const heddle__keep e = i < g->n_heads ? g->heads[i] : ex->model->keep[i - g->n_heads];
  char declared[200], is[128];
  if (!heddle__declared_differs(&g->types[heddle__entry_id(g, e)], t->dtype, t->ndim, t->shape, declared, is))
    return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EINVAL, "output '%s' is declared %s; the bound tensor is %s", ex->results[i].name,
                      declared, is);
}

heddle_status heddle_executor_bind_output(heddle_executor *whole, uint32_t i, heddle_tensor *value, heddle_error *err) {
  heddle_executor *ex;
  heddle_status s = find_output(whole, HEDDLE__LANE_SET, i, &ex, err);
  if (s != HEDDLE_OK) return s;
  heddle__result *r = &ex->results[i];
  if (heddle__state_of_output(ex, i) != NULL)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "output '%s' is a state value, whose memory is the executor's: read it with get_output or "
                        "read_state",
                        r->name);
  if (value != NULL) s = check_lent(value, "output", r->name, true, err);
  if (s == HEDDLE_OK && value != NULL) s = check_declared(ex, i, value, err);
  if (s != HEDDLE_OK) return s;
  const char *other = value != NULL ? overlapped_output(ex, value, i) : NULL;
  if (other != NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "output '%s': the tensor overlaps the memory of output '%s'", r->name,
                        other);
  other = value != NULL ? overlapped_input(ex, value) : NULL;
  if (other != NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "output '%s': the tensor overlaps the one bound to input '%s'", r->name,
                        other);
  s = heddle__chain_need(ex, value, err);
  if (s != HEDDLE_OK) return s;
  heddle_tensor *before = r->lent;
  r->lent = value != NULL ? heddle_tensor_retain(value) : NULL;
  bool planned = ex->bound != NULL && !ex->stale;
  if (planned && !heddle__executor_is_home(ex, i, value)) {
    ex->stale = true; /* another program: the output lies elsewhere */
    planned = false;
  }
  if (planned) s = heddle__executor_lend(ex, ex->bound, i, err);
  if (s != HEDDLE_OK) { /* as before; the slot may have changed already, so all are lent again before the next run */
    heddle_tensor_release(r->lent);
    r->lent = before;
    ex->stale = true;
    return s;
  }
  heddle_tensor_release(before);
  atomic_store(&ex->has_outputs, false);
  return HEDDLE_OK;
}

/* ---- reading */

heddle_status heddle_executor_get_input(heddle_executor *whole, uint32_t i, heddle_tensor **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the tensor: out is NULL");
  *out = NULL;
  heddle_executor *ex;
  heddle_status s = find_input(whole, HEDDLE__LANE_START, i, &ex, err);
  if (s != HEDDLE_OK) return s;
  const heddle__arg *arg = &ex->args[i];
  s = heddle__state_of_arg(ex, i) != NULL ? heddle__states_settle(ex, err) : HEDDLE_OK;
  if (s != HEDDLE_OK) return s;
  if (arg->value != NULL) return copy_of(arg->value, out, err);
  const heddle__constant *c = ex->model->constants[i];
  if (c == NULL) return heddle__executor_say_unset(ex, i, err);
  s = heddle_tensor_create(NULL, c->dtype, c->shape, c->ndim, out, err);
  if (s == HEDDLE_OK && c->bytes > 0) memcpy((*out)->data, c->data, (size_t)c->bytes);
  return s;
}

/* An output of the last run, in whose lane it is: a tensor of its own, or memory of the program. */
typedef struct shown {
  heddle_executor *ex;
  heddle_tensor *own;
  const heddle__port *port; /* where own is NULL */
} shown;

static heddle_status find_shown(heddle_executor *whole, uint32_t i, shown *out, heddle_error *err) {
  heddle_executor *ex;
  heddle_status s = find_output(whole, HEDDLE__LANE_SHOWN, i, &ex, err);
  if (s != HEDDLE_OK) return s;
  *out = (shown){.ex = ex, .own = ex->bound == NULL ? ex->course->result(ex, i) : NULL};
  if (!atomic_load(&ex->has_outputs) || (out->own == NULL && ex->bound == NULL))
    return heddle__fail(err, HEDDLE_EINVAL, "output '%s': there is no finished run to read it from",
                        ex->results[i].name);
  if (out->own != NULL) return HEDDLE_OK;
  out->port = heddle__bound_output_port(ex->bound, i);
  return out->port != NULL ? HEDDLE_OK : heddle__fail(err, HEDDLE_EINTERNAL, "output %u has no memory", (unsigned)i);
}

heddle_status heddle_executor_get_output(heddle_executor *whole, uint32_t i, heddle_tensor *dst, heddle_error *err) {
  shown o;
  heddle_status s = find_shown(whole, i, &o, err);
  if (s != HEDDLE_OK) return s;
  const heddle_executor *ex = o.ex;
  const char *name = ex->results[i].name;
  const heddle__state *st = heddle__state_of_output(ex, i);
  if (st != NULL) o.own = st->now.view;
  else if (o.own == NULL && heddle__bound_is_resident(ex->bound, o.port->alloc)) o.own = ex->results[i].lent;
  if (o.own == NULL && o.port == NULL) return heddle__fail(err, HEDDLE_EINTERNAL, "output '%s' has no memory", name);
  if (dst == NULL) return heddle__fail(err, HEDDLE_EINVAL, "output '%s': the tensor is NULL", name);
  if (o.own != NULL) {
    s = heddle_tensor_copy(dst, o.own, err);
    return s == HEDDLE_OK ? s : heddle__prefix(err, s, "output '%s': ", name);
  }
  const heddle__known *known = heddle__bound_output(ex->bound, i);
  const heddle__memory *m = ex->bound->memory[o.port->alloc];
  heddle_tensor *src = NULL;
  char *from = (char *)m->host + ex->bound->program->plan->instances[o.port->instance].offset;
  s = heddle__tensor_wrap_const(from, known->dtype, known->shape, known->ndim, NULL, NULL, NULL, &src, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(dst, src, err);
  heddle_tensor_release(src);
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "output '%s': ", name);
}

heddle_status heddle_executor_view_output(heddle_executor *whole, uint32_t i, heddle_tensor **out, heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the tensor: out is NULL");
  *out = NULL;
  shown o;
  heddle_status s = find_shown(whole, i, &o, err);
  if (s != HEDDLE_OK) return s;
  const heddle_executor *ex = o.ex;
  if (heddle__state_of_output(ex, i) != NULL) return heddle__state_tensor(heddle__state_of_output(ex, i), out, err);
  heddle_tensor *whole_one = ex->results[i].lent != NULL ? ex->results[i].lent : o.own;
  if (whole_one != NULL) {
    *out = heddle_tensor_retain(whole_one);
    return HEDDLE_OK;
  }
  const heddle__known *known = heddle__bound_output(ex->bound, i);
  return heddle__memory_tensor(ex->bound->memory[o.port->alloc],
                               ex->bound->program->plan->instances[o.port->instance].offset, known->dtype, known->ndim,
                               known->shape, out, err);
}
