/* executor/states.c: the memory of state values, and its way through the runs of an executor. */
#include "executor/states.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "executor/range.h"
#include "executor/stages.h"

enum { LEAST_BYTES = 256, PAGE = 4096 };

/* ---- stores */

static void let_go(void *user) {
  heddle__store *store = user;
  if (atomic_fetch_sub_explicit(&store->users, 1, memory_order_acq_rel) != 1) return;
  heddle_tensor_release(store->base);
  heddle__free(store);
}

static void release_base(void *user) {
  heddle_tensor_release(user);
}

/* How a value lies in its store: with room for so many elements along an axis; 0: row by row. */
typedef struct form {
  int64_t room;
  uint32_t axis;
} form;

static const form dense = {0, 0};

static void strides_of(form f, uint32_t ndim, const int64_t *shape, int64_t *strides) {
  int64_t step = 1;
  for (uint32_t d = ndim; d-- > 0;) {
    strides[d] = step;
    step *= f.room > 0 && d == f.axis ? f.room : shape[d];
  }
}

static bool lies_so(const heddle_tensor *view, form f) {
  int64_t strides[HEDDLE__MAX_NDIM];
  if (f.room == 0) return view->contiguous;
  strides_of(f, view->ndim, view->shape, strides);
  return memcmp(view->strides, strides, view->ndim * sizeof *strides) == 0;
}

/* A tensor over the first bytes of a store; strides NULL: row by row. user is given to release. */
static heddle_status view_of(const heddle__store *store, heddle_dtype dtype, uint32_t ndim, const int64_t *shape,
                             const int64_t *strides, heddle_release_fn release, void *user, heddle_tensor **out,
                             heddle_error *err) {
  if (store->dev == NULL)
    return heddle_tensor_wrap(store->base->data, dtype, shape, ndim, strides, release, user, out, err);
  const heddle__adopted a = {.dev = store->dev, .shared = store->base};
  return heddle__tensor_adopt(&a, dtype, shape, ndim, strides, release, user, out, err);
}

static heddle_status show(heddle__held *held, heddle_dtype dtype, uint32_t ndim, const int64_t *shape, form f,
                          heddle_error *err) {
  heddle_tensor *view = NULL;
  int64_t strides[HEDDLE__MAX_NDIM];
  strides_of(f, ndim, shape, strides);
  heddle_status s = view_of(held->store, dtype, ndim, shape, f.room > 0 ? strides : NULL, release_base,
                            held->store->base, &view, err);
  if (s != HEDDLE_OK) return s;
  heddle_tensor_retain(held->store->base);
  heddle_tensor_release(held->view);
  held->view = view;
  return HEDDLE_OK;
}

/* What grows gets room for as much again. */
static uint64_t room_for(uint64_t bytes, bool may_grow) {
  uint64_t room = LEAST_BYTES;
  if (!may_grow) return bytes > room ? heddle__round_up(bytes, LEAST_BYTES) : room;
  while (room < bytes && room <= UINT64_MAX / 4) room *= 2;
  return room > bytes ? room : bytes;
}

/* Zeroed host memory that other devices can import. */
static heddle_status make_on_host(uint64_t bytes, uint64_t granule, heddle_tensor **out, heddle_error *err) {
  void *block = bytes <= SIZE_MAX ? heddle__alloc_aligned((size_t)bytes, (size_t)granule) : NULL;
  if (block == NULL) return heddle__no_memory(err, "a state value");
  memset(block, 0, (size_t)bytes);
  int64_t shape = (int64_t)bytes;
  heddle_status s = heddle_tensor_wrap(block, (heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1}, &shape, 1, NULL, heddle__free,
                                       block, out, err);
  if (s != HEDDLE_OK) heddle__free(block);
  return s;
}

static heddle_status make_store(heddle_device *dev, uint64_t granule, uint64_t bytes, heddle__store **out,
                                heddle_error *err) {
  heddle__store *store = heddle__alloc(1, sizeof *store);
  if (store == NULL) return heddle__no_memory(err, "a state value");
  atomic_init(&store->users, 1);
  store->dev = dev;
  store->granule = granule > PAGE ? granule : PAGE;
  heddle_status s = HEDDLE_OK;
  if (bytes > INT64_MAX - store->granule)
    s = heddle__fail(err, HEDDLE_ELIMIT, "a state value of %llu bytes is more than any memory",
                     (unsigned long long)bytes);
  int64_t shape = s == HEDDLE_OK ? (int64_t)bytes : 0;
  if (s == HEDDLE_OK && dev == NULL)
    s = make_on_host(heddle__round_up(bytes, store->granule), store->granule, &store->base, err);
  else if (s == HEDDLE_OK)
    s = heddle_tensor_create(dev, (heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1}, &shape, 1, &store->base, err);
  if (s != HEDDLE_OK) heddle__free(store);
  else *out = store;
  return s;
}

/* A value of zeroes in new memory with room for so many bytes at least. */
static heddle_status make_held(heddle_device *place, uint64_t granule, heddle_dtype dtype, uint32_t ndim,
                               const int64_t *shape, form f, uint64_t room, bool may_grow, heddle__held *out,
                               heddle_error *err) {
  uint64_t bytes = 0;
  heddle__held held = {NULL, NULL};
  *out = held;
  heddle_status s = heddle__shape_bytes(dtype, ndim, shape, NULL, &bytes, err);
  if (s == HEDDLE_OK) s = make_store(place, granule, room_for(bytes > room ? bytes : room, may_grow), &held.store, err);
  if (s == HEDDLE_OK) s = show(&held, dtype, ndim, shape, f, err);
  if (s == HEDDLE_OK) *out = held;
  else heddle__held_drop(&held);
  return s;
}

heddle_status heddle__held_make(heddle_device *place, heddle_dtype dtype, uint32_t ndim, const int64_t *shape,
                                bool may_grow, heddle__held *out, heddle_error *err) {
  return make_held(place, 0, dtype, ndim, shape, dense, 0, may_grow, out, err);
}

heddle_status heddle__held_lend(const heddle__held *held, heddle_device *dev, heddle__memory **out, heddle_error *err) {
  heddle_tensor *base = held->store->base; /* all of it, so that a value that grows stays where it is */
  if (held->store->dev != NULL) return heddle__memory_lend(base, out, err);
  return heddle__memory_import(dev, base->data, base->bytes, 1, base, out, err);
}

void heddle__held_drop(heddle__held *held) {
  heddle_tensor_release(held->view);
  if (held->store != NULL) let_go(held->store);
  *held = (heddle__held){NULL, NULL};
}

heddle_status heddle__state_tensor(const heddle__state *st, heddle_tensor **out, heddle_error *err) {
  heddle__store *store = st->now.store;
  const heddle_tensor *v = st->now.view;
  heddle_status s =
      view_of(store, v->dtype, v->ndim, v->shape, v->contiguous ? NULL : v->strides, let_go, store, out, err);
  if (s == HEDDLE_OK) atomic_fetch_add_explicit(&store->users, 1, memory_order_relaxed);
  return s;
}

/* ---- life */

static const heddle__type *type_of(const heddle_executor *ex, uint32_t arg) {
  return &ex->model->graph->types[heddle__model_arg(ex->model, arg)->first_entry];
}

/* Whether an input other than state values has a dimension of that name. */
static bool is_named_elsewhere(const heddle_executor *ex, const char *symbol) {
  for (uint32_t i = 0; symbol != NULL && i < ex->n_args; i++) {
    const heddle__type *t = type_of(ex, i);
    if (heddle__model_tie(ex->model, i) != NULL || !t->has_shape) continue;
    for (uint32_t d = 0; d < t->ndim; d++)
      if (t->dims[d].symbol != NULL && strcmp(t->dims[d].symbol, symbol) == 0) return true;
  }
  return false;
}

/* The dimension along which a value grows: the open one whose name is its own; of several the one that the output names
 * otherwise. */
static uint32_t open_axis(const heddle_executor *ex, const heddle__tie *tie) {
  const heddle_graph *g = ex->model->graph;
  const heddle__type *in = type_of(ex, tie->arg), *out = &g->types[heddle__entry_id(g, g->heads[tie->output])];
  uint32_t axis[2] = {HEDDLE__NONE, HEDDLE__NONE}, n[2] = {0, 0};
  for (uint32_t d = 0; d < in->ndim; d++) {
    if (in->dims[d].value >= 0 || is_named_elsewhere(ex, in->dims[d].symbol)) continue;
    const char *a = in->dims[d].symbol, *b = out->has_shape && d < out->ndim ? out->dims[d].symbol : NULL;
    axis[0] = d;
    n[0]++;
    if (a == NULL || b == NULL || strcmp(a, b) == 0) continue;
    axis[1] = d;
    n[1]++;
  }
  return n[0] == 1 ? axis[0] : n[1] == 1 ? axis[1] : HEDDLE__NONE;
}

heddle_status heddle__states_make(heddle_executor *ex, heddle_error *err) {
  const heddle_model *m = ex->model;
  if (!HEDDLE_HAS_STATE || m->n_ties == 0) return HEDDLE_OK;
  heddle__states *all = heddle__alloc(1, sizeof *all + m->n_ties * sizeof all->at[0]);
  if (all == NULL) return heddle__no_memory(err, "state values");
  all->n = m->n_ties;
  for (uint32_t i = 0; i < m->n_ties; i++) {
    const heddle__tie *tie = &m->ties[i];
    all->at[i] = (heddle__state){.arg = tie->arg, .output = tie->output, .is_reset = true};
    all->at[i].dtype = type_of(ex, tie->arg)->dtype;
    all->at[i].axis = open_axis(ex, tie);
    ex->args[tie->arg].state = ex->results[tie->output].state = i + 1;
  }
  ex->states = all;
  return HEDDLE_OK;
}

void heddle__states_free(heddle_executor *ex) {
  for (uint32_t i = 0; HEDDLE_HAS_STATE && ex->states != NULL && i < ex->states->n; i++) {
    heddle__held_drop(&ex->states->at[i].now);
    heddle__held_drop(&ex->states->at[i].spare);
  }
  heddle__free(ex->states);
  ex->states = NULL;
}

uint64_t heddle__states_bytes(const heddle_executor *ex) {
  return ex->states != NULL ? atomic_load_explicit(&ex->states->bytes, memory_order_relaxed) : 0;
}

/* Whether the present value and what a run makes are in one piece of memory. */
static bool is_one(const heddle__state *st) {
  return st->now.store != NULL && st->now.store == st->spare.store;
}

/* Whether no one else reads the store of the present value. */
static bool is_own(const heddle__state *st) {
  return atomic_load_explicit(&st->now.store->users, memory_order_acquire) == 1U + is_one(st);
}

static void count_bytes(heddle__states *all) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < all->n; i++) {
    const heddle__state *st = &all->at[i];
    if (st->now.store != NULL) sum += st->now.store->base->bytes;
    if (st->spare.store != NULL && !is_one(st)) sum += st->spare.store->base->bytes;
  }
  atomic_store_explicit(&all->bytes, sum, memory_order_relaxed);
}

#if HEDDLE_HAS_STATE
heddle__state *heddle__state_of_arg(const heddle_executor *ex, uint32_t arg) {
  return ex->states != NULL && ex->args[arg].state > 0 ? &ex->states->at[ex->args[arg].state - 1] : NULL;
}

heddle__state *heddle__state_of_output(const heddle_executor *ex, uint32_t output) {
  const uint32_t state = ex->states != NULL ? ex->results[output].state : 0;
  return state > 0 ? &ex->states->at[state - 1] : NULL;
}
#endif

/* ---- between runs */

static void give_input(heddle_executor *ex, const heddle__state *st) {
  heddle__arg *arg = &ex->args[st->arg];
  heddle_tensor *before = arg->value;
  if (before == st->now.view) return;
  arg->value = heddle_tensor_retain(st->now.view);
  arg->lent = true;
  arg->is_param = false;
  heddle_tensor_release(before);
  if (ex->model->feeds[st->arg]) ex->lent_shapes = true;
}

void heddle__state_forget(heddle_executor *ex, heddle__state *st) {
  heddle__result *r = &ex->results[st->output];
  heddle__arg *arg = &ex->args[st->arg];
  heddle_tensor_release(r->lent);
  heddle_tensor_release(arg->value);
  r->lent = arg->value = NULL;
  heddle__held_drop(&st->spare);
  heddle__state_put(ex, st, (heddle__held){NULL, NULL}, true);
}

void heddle__state_put(heddle_executor *ex, heddle__state *st, heddle__held value, bool is_reset) {
  heddle__held_drop(&st->now);
  st->now = value;
  st->is_reset = is_reset;
  ex->stale = true;
  count_bytes(ex->states);
  if (st->now.view != NULL) give_input(ex, st);
}

/* A dimension that the graph leaves open: that of an input which was set, by its name; else 0. */
static int64_t first_size(const heddle_executor *ex, const char *symbol) {
  for (uint32_t i = 0; symbol != NULL && i < ex->n_args; i++) {
    const heddle__type *t = type_of(ex, i);
    const heddle_tensor *value = ex->args[i].value;
    const heddle__state *st = heddle__state_of_arg(ex, i);
    if (value == NULL || !t->has_shape || t->ndim != value->ndim || (st != NULL && st->is_reset)) continue;
    for (uint32_t d = 0; d < t->ndim; d++)
      if (t->dims[d].symbol != NULL && strcmp(t->dims[d].symbol, symbol) == 0) return value->shape[d];
  }
  return 0;
}

heddle_status heddle__states_settle(heddle_executor *ex, heddle_error *err) {
  for (uint32_t i = 0; HEDDLE_HAS_STATE && ex->states != NULL && i < ex->states->n; i++) {
    heddle__state *st = &ex->states->at[i];
    int64_t shape[HEDDLE__MAX_NDIM];
    if (st->is_reset) {
      const heddle__type *t = type_of(ex, st->arg);
      for (uint32_t d = 0; d < t->ndim; d++)
        shape[d] = t->dims[d].value >= 0 ? t->dims[d].value : first_size(ex, t->dims[d].symbol);
      const heddle_tensor *v = st->now.view;
      if (v == NULL || memcmp(v->shape, shape, t->ndim * sizeof *shape) != 0) {
        heddle__held fresh;
        heddle_status s = heddle__held_make(NULL, st->dtype, t->ndim, shape, st->axis != HEDDLE__NONE, &fresh, err);
        if (s != HEDDLE_OK)
          return heddle__prefix(err, s, "state value '%s': ", heddle__model_arg(ex->model, st->arg)->name);
        heddle__state_put(ex, st, fresh, true);
      }
    }
    give_input(ex, st);
  }
  return HEDDLE_OK;
}

/* ---- planned */

static bool is_in(const heddle__store *store, const heddle_device *dev, uint64_t granule) {
  return store->dev == dev && (dev != NULL || store->granule >= granule);
}

/* The present value in other memory, of so many bytes at least: copied, or zeroes again where it was reset. */
static heddle_status move(heddle_executor *ex, heddle__state *st, heddle_device *dev, uint64_t granule, form f,
                          uint64_t room, heddle_error *err) {
  const heddle_tensor *v = st->now.view;
  heddle__held moved;
  heddle_status s = make_held(dev, granule, v->dtype, v->ndim, v->shape, f, room,
                              st->axis != HEDDLE__NONE && f.room == 0, &moved, err);
  if (s == HEDDLE_OK && !st->is_reset) s = heddle_tensor_copy(moved.view, v, err);
  if (s != HEDDLE_OK) {
    heddle__held_drop(&moved);
    return s;
  }
  heddle__held_drop(&st->now);
  st->now = moved;
  give_input(ex, st);
  return HEDDLE_OK;
}

/* The spare value has another shape, in the memory that it has. */
static heddle_status reshape_spare(const heddle_executor *ex, heddle__state *st, const heddle__known *known, form f,
                                   heddle_error *err) {
  heddle_tensor *v = st->spare.view;
  int64_t strides[HEDDLE__MAX_NDIM];
  if (v != NULL && v->ndim == known->ndim && lies_so(v, f) &&
      memcmp(v->shape, known->shape, known->ndim * sizeof *known->shape) == 0)
    return HEDDLE_OK;
  const bool is_ours = v != NULL && atomic_load_explicit(&v->references, memory_order_acquire) ==
                                        1U + (ex->results[st->output].lent == v);
  if (!is_ours || v->ndim != known->ndim || (v->bytes == 0 && v->dev == NULL))
    return show(&st->spare, known->dtype, known->ndim, known->shape, f, err);
  heddle_status s = heddle__tensor_reshape(v, known->shape, err);
  if (s != HEDDLE_OK) return s;
  strides_of(f, v->ndim, v->shape, strides);
  v->contiguous = f.room == 0 || memcmp(v->strides, strides, v->ndim * sizeof *strides) == 0;
  if (f.room > 0) memcpy(v->strides, strides, v->ndim * sizeof *strides);
  return s;
}

/* Memory for what a run makes; what was there may be used again. */
static heddle_status spare_for(heddle_executor *ex, heddle__state *st, heddle_device *dev, uint64_t granule,
                               const heddle__known *known, heddle_error *err) {
  heddle__held *x = &st->spare;
  bool fits = x->store != NULL && !is_one(st) && is_in(x->store, dev, granule) &&
              x->store->base->bytes >= known->bytes &&
              atomic_load_explicit(&x->store->users, memory_order_acquire) == 1;
  if (fits) return reshape_spare(ex, st, known, dense, err);
  heddle__held fresh;
  heddle_status s =
      make_held(dev, granule, known->dtype, known->ndim, known->shape, dense, 0, st->axis != HEDDLE__NONE, &fresh, err);
  if (s != HEDDLE_OK) return s;
  heddle__held_drop(x);
  *x = fresh;
  return s;
}

/* What a run makes goes into the memory of the present value, which no one else reads. */
static heddle_status one_for(heddle_executor *ex, heddle__state *st, const heddle__known *known, form f,
                             heddle_error *err) {
  if (!is_one(st)) {
    heddle__held_drop(&st->spare);
    st->spare.store = st->now.store;
    atomic_fetch_add_explicit(&st->now.store->users, 1, memory_order_relaxed);
  }
  return reshape_spare(ex, st, known, f, err);
}

/* The output of the runs is the spare value. */
static void give_output(heddle_executor *ex, const heddle__state *st) {
  heddle__result *r = &ex->results[st->output];
  if (r->lent == st->spare.view) return;
  heddle_tensor_release(r->lent);
  r->lent = heddle_tensor_retain(st->spare.view);
}

static heddle_status check_known(const heddle_executor *ex, const heddle__state *st, const heddle__known *known,
                                 heddle_error *err) {
  const heddle_model *m = ex->model;
  heddle_status s = heddle__model_fits(m, st->arg, known->dtype, known->ndim, known->shape, err);
  if (s == HEDDLE_OK) return s;
  return heddle__prefix(err, s, "output '%s' is tied to an input that it does not fit: ", ex->results[st->output].name);
}

static heddle_status place(heddle_executor *ex, heddle__state *st, const heddle__program *program, heddle_error *err) {
  const heddle__plan *plan = program->plan;
  const heddle__plan_output *out = &plan->outputs[st->output];
  const heddle__known *known = &plan->values[out->value].known;
  heddle_device *dev = plan->devices[plan->spaces[plan->instances[out->instance].space].device].dev;
  if (heddle__device_inline(dev)) dev = NULL;
  const uint64_t granule = heddle__plan_granule(plan);
  heddle_status s = check_known(ex, st, known, err);
  const heddle__update *u = &plan->updates[st - ex->states->at];
  const bool in_place = u->step != HEDDLE__NONE;
  const form f = in_place ? (form){u->room, u->axis} : dense;
  const uint64_t bytes = !in_place ? 0 : f.room > 0 ? plan->instances[u->output].bytes : known->bytes;
  const bool stays = is_in(st->now.store, dev, granule) && lies_so(st->now.view, f) &&
                     (!in_place || (is_own(st) && st->now.store->base->bytes >= bytes));
  if (s == HEDDLE_OK && !stays) s = move(ex, st, dev, granule, f, bytes, err);
  if (s == HEDDLE_OK) s = in_place ? one_for(ex, st, known, f, err) : spare_for(ex, st, dev, granule, known, err);
  if (s == HEDDLE_OK) give_output(ex, st);
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "state value '%s': ", heddle__model_arg(ex->model, st->arg)->name);
}

heddle_status heddle__states_place(heddle_executor *ex, const heddle__program *program, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (!HEDDLE_HAS_STATE || ex->states == NULL) return s;
  for (uint32_t i = 0; i < ex->states->n && s == HEDDLE_OK; i++) s = place(ex, &ex->states->at[i], program, err);
  count_bytes(ex->states);
  return s;
}

/* ---- bound */

const heddle__held *heddle__state_held(const heddle_executor *ex, uint32_t io, bool is_input) {
  const heddle__state *st = is_input ? heddle__state_of_arg(ex, io) : heddle__state_of_output(ex, io);
  if (st == NULL) return NULL;
  const heddle__held *held = is_input ? &st->now : &st->spare;
  if (is_one(st)) return held; /* the store has room, whatever the value has */
  return held->view->bytes > 0 || held->view->dev != NULL ? held : NULL;
}

/* The k-th of the inputs and outputs of a bound program. */
static const heddle__port *port_at(const heddle__bound *b, uint32_t k) {
  return k < b->n_inputs ? &b->inputs[k] : &b->outputs[k - b->n_inputs];
}

static bool is_bound(const heddle_executor *ex, const heddle__bound *b) {
  for (uint32_t k = 0; k < b->n_inputs + b->n_outputs; k++) {
    const heddle__held *held = heddle__state_held(ex, port_at(b, k)->io, k < b->n_inputs);
    if (held != NULL && !heddle__held_is_in(held, b->memory[port_at(b, k)->alloc])) return false;
  }
  return true;
}

heddle_status heddle__states_turn(heddle_executor *ex, heddle__bound *b, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (!HEDDLE_HAS_STATE || ex->states == NULL || is_bound(ex, b)) return s;
  s = heddle__bound_turn(b, err);
  for (uint32_t k = 0; k < b->n_inputs + b->n_outputs && s == HEDDLE_OK; k++) {
    const heddle__held *held = heddle__state_held(ex, port_at(b, k)->io, k < b->n_inputs);
    const uint32_t alloc = port_at(b, k)->alloc;
    heddle__memory *memory = NULL;
    if (held == NULL || heddle__held_is_in(held, b->memory[alloc])) continue;
    s = heddle__held_lend(held, b->memory[alloc]->dev, &memory, err);
    if (s == HEDDLE_OK) heddle__bound_replace_here(b, alloc, memory);
  }
  return s;
}

heddle_status heddle__states_begin(heddle_executor *ex, heddle_error *err) {
  heddle__states *all = ex->states;
  for (uint32_t i = 0; i < all->n; i++) /* what was handed out since is not written */
    all->turned = all->turned || (is_one(&all->at[i]) && !is_own(&all->at[i]));
  if (all->grown) ex->stale = true;
  all->grown = false;
  if (ex->stale || ex->bound == NULL || !all->turned) return HEDDLE_OK;
  heddle_status s = heddle__states_place(ex, ex->bound->program, err);
  if (s == HEDDLE_OK) s = heddle__states_turn(ex, ex->bound, err);
  if (HEDDLE_HAS_RANGES && s == HEDDLE_OK) heddle__bound_adapt(ex->bound);
  if (s == HEDDLE_OK) all->turned = false;
  return s;
}

void heddle__states_advance(heddle_executor *ex) {
  heddle__states *all = ex->states;
  for (uint32_t i = 0; i < all->n; i++) {
    heddle__state *st = &all->at[i];
    const heddle_tensor *was = st->now.view, *is = st->spare.view;
    if (was->ndim != is->ndim || memcmp(was->shape, is->shape, is->ndim * sizeof *is->shape) != 0) all->grown = true;
    heddle__held made = st->spare;
    st->spare = st->now;
    st->now = made;
    st->is_reset = false;
    give_input(ex, st);
  }
  all->turned = true;
}

heddle_status heddle__state_take(heddle_executor *ex, heddle__state *st, const heddle_tensor *made, heddle_error *err) {
  heddle__held fresh;
  heddle_status s = heddle__model_fits(ex->model, st->arg, made->dtype, made->ndim, made->shape, err);
  if (s == HEDDLE_OK) s = heddle__held_make(NULL, made->dtype, made->ndim, made->shape, false, &fresh, err);
  if (s != HEDDLE_OK) return s;
  heddle__held_drop(&st->spare);
  st->spare = fresh;
  return heddle_tensor_copy(st->spare.view, made, err);
}
