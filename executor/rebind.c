/* executor/rebind.c: from what an executor's caller has set to a bound program with filled inputs.
 * Memory of the caller's replaces a slot where the devices that use the slot can import it; else it is copied. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "executor/most.h"
#include "executor/range.h"
#include "executor/sizes.h"
#include "executor/states.h"
#include "executor/survive.h"

/* ---- wishes */

/* The tensors that are set and bound now: a wish has no references, and state values may move while it is there. */
static void borrow_tensors(const heddle_executor *ex, heddle__wish *wish) {
  const heddle_tensor **values = (const heddle_tensor **)wish->values, **lent = (const heddle_tensor **)wish->lent;
  for (uint32_t i = 0; i < ex->n_args; i++) values[i] = ex->args[i].value;
  for (uint32_t i = 0; i < ex->n_results; i++) lent[i] = ex->results[i].lent;
}

heddle_status heddle__executor_wish(heddle_executor *ex, heddle__wish *out, heddle_error *err) {
  const heddle_tensor **values = heddle__alloc(ex->n_args, sizeof *values);
  bool *late = heddle__alloc(ex->n_args, sizeof *late);
  const heddle_tensor **lent = heddle__alloc(ex->n_results, sizeof *lent);
  *out = (heddle__wish){.values = values, .late = late, .lent = lent};
  heddle_status s = values != NULL && late != NULL && lent != NULL ? heddle__states_settle(ex, err)
                                                                   : heddle__no_memory(err, "a request");
  if (s != HEDDLE_OK) {
    heddle__wish_free(out);
    return s;
  }
  for (uint32_t i = 0; i < ex->n_args; i++) late[i] = ex->args[i].late;
  borrow_tensors(ex, out);
  return HEDDLE_OK;
}

void heddle__wish_free(heddle__wish *wish) {
  heddle__free((void *)wish->values);
  heddle__free((void *)wish->late);
  heddle__free((void *)wish->lent);
  wish->lent = NULL;
  wish->values = NULL;
  wish->late = NULL;
}

uint32_t heddle__executor_unset(const heddle_executor *ex, const heddle__bound *b) {
  for (uint32_t i = 0; i < b->n_inputs; i++)
    if (ex->args[b->inputs[i].io].value == NULL) return b->inputs[i].io;
  return HEDDLE__NONE;
}

heddle_status heddle__executor_say_unset(const heddle_executor *ex, uint32_t arg, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EINVAL, "%s: input '%s' was never set; set or bind it before the run",
                      ex->model->graph->source, heddle__model_arg(ex->model, arg)->name);
}

/* ---- filling */

/* The caller's memory in place of a slot; HEDDLE_EUNSUPPORTED, with why, where it has to be copied. */
static heddle_status lend(heddle__bound *b, const heddle__port *port, heddle_tensor *t, heddle_error *err) {
  const heddle__plan *plan = b->program->plan;
  uint64_t granule = heddle__bound_import_align(b, port->alloc);
  if (b->memory[port->alloc]->lender == t) return HEDDLE_OK;
  if (t->dev != NULL && heddle__bound_is_resident(b, port->alloc)) { /* the program is one for memory of that device */
    heddle__memory *there = NULL;
    heddle_status lends = heddle__memory_lend(t, &there, err);
    if (lends == HEDDLE_OK) heddle__bound_replace(b, port->alloc, there);
    return lends;
  }
  if (t->dev != NULL) return heddle__fail_on(t->dev->name, err, HEDDLE_EUNSUPPORTED, "it is on %s", t->dev->name);
  if (plan->spaces[plan->allocs[port->alloc].space].kind == HEDDLE_MEMORY_UNIFIED)
    return heddle__fail_on(b->memory[port->alloc]->dev->name, err, HEDDLE_EUNSUPPORTED,
                           "%s computes in its own unified memory; imports serve copies only",
                           b->memory[port->alloc]->dev->name);
  if (granule > 1 && ((uintptr_t)t->data % granule != 0 || t->bytes % granule != 0))
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "address and size must be multiples of %llu",
                        (unsigned long long)granule);
  uint64_t align = plan->values[plan->instances[port->instance].value].align; /* more than 1 for compiled code */
  if ((uintptr_t)t->data % align != 0)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "compiled code needs memory that is aligned to %llu bytes",
                        (unsigned long long)align);
  heddle__memory *memory = NULL;
  heddle_status s = heddle__memory_import(b->memory[port->alloc]->dev, t->data, t->bytes, 1, t, &memory, err);
  if (s == HEDDLE_OK) heddle__bound_replace(b, port->alloc, memory);
  return s;
}

static void say_copied(const heddle_executor *ex, const char *what, const char *name, const char *why) {
  heddle__logf(heddle__context_log(ex->model->ctx), HEDDLE_LOG_INFO, "executor",
               "%s '%s': the bound memory is copied at each run: %s", what, name, why);
}

/* Puts a slot of the executor's own under a port that has the caller's memory. */
static heddle_status own_slot(heddle__bound *b, heddle__port *port, heddle_error *err) {
  heddle_tensor_release(port->lent);
  port->lent = NULL;
  if (b->memory[port->alloc]->lender == NULL) return HEDDLE_OK;
  heddle__memory *memory = NULL;
  heddle_status s = heddle__bound_slot(b, port->alloc, &memory, err);
  if (s == HEDDLE_OK) heddle__bound_replace(b, port->alloc, memory);
  return s;
}

/* The memory of a state value under its port. */
static heddle_status put_held(heddle__bound *b, heddle__port *port, const heddle__held *held, heddle_error *err) {
  heddle__memory *memory = NULL;
  heddle_tensor_release(port->lent);
  port->lent = NULL;
  if (heddle__held_is_in(held, b->memory[port->alloc])) return HEDDLE_OK;
  heddle_status s = heddle__held_lend(held, b->memory[port->alloc]->dev, &memory, err);
  if (s == HEDDLE_OK) heddle__bound_replace(b, port->alloc, memory);
  return s;
}

static heddle_status fill_lent(heddle_executor *ex, heddle__bound *b, heddle__port *port, heddle_error *err) {
  const heddle__held *held = heddle__state_held(ex, port->io, true);
  if (held != NULL) {
    heddle_status s = put_held(b, port, held, err);
    if (s != HEDDLE_OK) return s;
    const heddle__memory *m = b->memory[port->alloc];
    return heddle__memory_flush(b->memory[port->alloc], 0, m->bytes, err);
  }
  heddle_tensor *t = ex->args[port->io].value;
  heddle_error why = {0};
  heddle_status s = t->bytes > 0 || t->dev != NULL ? lend(b, port, t, &why) : HEDDLE_OK;
  if (s == HEDDLE_OK) {
    heddle_tensor_release(port->lent);
    port->lent = NULL;
    const heddle__memory *m = b->memory[port->alloc];
    return heddle__memory_flush(b->memory[port->alloc], 0, m->bytes, err);
  }
  if (s != HEDDLE_EUNSUPPORTED) {
    if (err != NULL) *err = why;
    return s;
  }
  s = own_slot(b, port, err);
  if (s != HEDDLE_OK) return s;
  port->lent = heddle_tensor_retain(t);
  ex->copies_in = true;
  say_copied(ex, "input", heddle__model_arg(ex->model, port->io)->name, why.text);
  return HEDDLE_OK;
}

/* Copies to the slot. keep: the arg's value becomes the slot's memory, so that nothing is held twice. */
static heddle_status fill_copied(heddle_executor *ex, heddle__bound *b, heddle__port *port, bool keep,
                                 heddle_error *err) {
  const heddle__instance *inst = &b->program->plan->instances[port->instance];
  heddle__arg *arg = &ex->args[port->io];
  heddle_status s = own_slot(b, port, err);
  if (s != HEDDLE_OK) return s;
  heddle__memory *m = b->memory[port->alloc];
  char *slot = (char *)m->host + inst->offset;
  if (arg->value->data == slot && arg->value->dev == NULL) return HEDDLE_OK;
  s = heddle__tensor_read(arg->value, slot, err);
  if (s == HEDDLE_OK) s = heddle__memory_flush(m, inst->offset, inst->bytes, err);
  if (s != HEDDLE_OK || !keep) return s;
  heddle_tensor *held = NULL;
  s = heddle__memory_tensor(m, inst->offset, arg->value->dtype, arg->value->ndim, arg->value->shape, &held, err);
  if (s != HEDDLE_OK) return s;
  heddle_tensor_release(arg->value);
  arg->value = held;
  return HEDDLE_OK;
}

heddle_status heddle__executor_fill(heddle_executor *ex, heddle__bound *b, uint32_t which, bool keep,
                                    heddle_error *err) {
  bool own = keep && !heddle__drive_pending(&ex->drive); /* a pending run's values stay, which lanes read */
  for (uint32_t i = 0; i < b->n_inputs; i++) {
    heddle__port *port = &b->inputs[i];
    heddle__arg *arg = &ex->args[port->io];
    if (arg->value == NULL || (which != HEDDLE__NONE && which != port->io)) continue;
    bool first = true; /* only the first slot of an input may become its value */
    for (uint32_t k = 0; k < i; k++) first = first && b->inputs[k].io != port->io;
    heddle_status s = arg->lent && keep ? fill_lent(ex, b, port, err) : fill_copied(ex, b, port, own && first, err);
    if (s != HEDDLE_OK) return heddle__prefix(err, s, "input '%s': ", heddle__model_arg(ex->model, port->io)->name);
  }
  return HEDDLE_OK;
}

heddle_status heddle__executor_copy_in(heddle_executor *ex, heddle__bound *b, heddle_error *err) {
  bool any = false;
  for (uint32_t i = 0; i < b->n_inputs; i++) {
    heddle__port *port = &b->inputs[i];
    if (port->lent == NULL) continue;
    const heddle__instance *inst = &b->program->plan->instances[port->instance];
    heddle__memory *m = b->memory[port->alloc];
    heddle_status s = heddle__tensor_read(port->lent, (char *)m->host + inst->offset, err);
    if (s == HEDDLE_OK) s = heddle__memory_flush(m, inst->offset, inst->bytes, err);
    if (s != HEDDLE_OK) return s;
    any = true;
  }
  ex->copies_in = any;
  return HEDDLE_OK;
}

/* ---- outputs */

heddle__port *heddle__bound_output_port(heddle__bound *b, uint32_t output) {
  uint32_t instance = b->program->plan->outputs[output].instance;
  for (uint32_t i = 0; i < b->n_outputs; i++)
    if (b->outputs[i].instance == instance) return &b->outputs[i];
  return NULL;
}

bool heddle__executor_is_home(const heddle_executor *ex, uint32_t output, const heddle_tensor *t) {
  const heddle__order *o = ex->bound->program->order_of;
  return (output < o->n_homes ? o->homes[output] : 0) == heddle__model_home(ex->active, t);
}

heddle_status heddle__executor_check_lent(const heddle_executor *ex, uint32_t output, heddle_dtype dtype, uint32_t ndim,
                                          const int64_t *shape, heddle_error *err) {
  const heddle_tensor *t = ex->results[output].lent;
  char a[160], c[160];
  if (!heddle__dtype_equal(dtype, t->dtype)) {
    heddle__dtype_name(dtype, a);
    heddle__dtype_name(t->dtype, c);
    return heddle__fail(err, HEDDLE_EINVAL, "output '%s' is %s; the bound tensor is %s", ex->results[output].name, a,
                        c);
  }
  if (ndim == t->ndim && (ndim == 0 || memcmp(shape, t->shape, ndim * sizeof *shape) == 0)) return HEDDLE_OK;
  heddle__shape_name(shape, ndim, a, sizeof a);
  heddle__shape_name(t->shape, t->ndim, c, sizeof c);
  return heddle__fail(err, HEDDLE_EINVAL, "output '%s' has shape %s; the bound tensor has %s", ex->results[output].name,
                      a, c);
}

static heddle_status lend_output(heddle_executor *ex, heddle__bound *b, uint32_t output, heddle_error *err) {
  heddle_tensor *t = ex->results[output].lent;
  heddle__port *port = heddle__bound_output_port(b, output);
  if (port == NULL) return heddle__fail(err, HEDDLE_EINTERNAL, "output %u has no memory", (unsigned)output);
  if (t == NULL) return own_slot(b, port, err);
  const heddle__known *known = heddle__bound_output(b, output);
  heddle_status s = heddle__executor_check_lent(ex, output, known->dtype, known->ndim, known->shape, err);
  if (s != HEDDLE_OK) return s;
  const heddle__held *held = heddle__state_held(ex, output, false);
  if (held != NULL) return put_held(b, port, held, err);
  const heddle__memory *m = b->memory[port->alloc];
  bool is_slot = m->lender == NULL && t->dev == NULL &&
                 t->data == (char *)m->host + b->program->plan->instances[port->instance].offset;
  heddle_error why = {0};
  s = (t->bytes > 0 || t->dev != NULL) && !is_slot ? lend(b, port, t, &why)
                                                   : HEDDLE_OK; /* a view of the output itself: as it is */
  if (s == HEDDLE_OK) {
    heddle_tensor_release(port->lent);
    port->lent = NULL;
    return s;
  }
  if (s != HEDDLE_EUNSUPPORTED) {
    if (err != NULL) *err = why;
    return s;
  }
  s = own_slot(b, port, err);
  if (s != HEDDLE_OK) return s;
  port->lent = heddle_tensor_retain(t);
  say_copied(ex, "output", ex->results[output].name, why.text);
  return HEDDLE_OK;
}

heddle_status heddle__executor_lend(heddle_executor *ex, heddle__bound *b, uint32_t which, heddle_error *err) {
  for (uint32_t i = 0; i < ex->n_results; i++) {
    if (which != HEDDLE__NONE && which != i) continue;
    heddle_status s = lend_output(ex, b, i, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

/* ---- the whole */

/* The lock is for a run that a failed device made pending still: others may ask for shapes meanwhile. */
static void put_bound(heddle_executor *ex, heddle__bound *b) {
  pthread_mutex_lock(&ex->drive.lock);
  ex->bound = b;
  pthread_mutex_unlock(&ex->drive.lock);
}

static void drop_bound(heddle_executor *ex) {
  heddle__profile_release(ex->profile);
  ex->profile = NULL;
  heddle__bound *b = ex->bound;
  put_bound(ex, NULL);
  heddle__bound_free(b, true); /* no run is pending, and none hung: else the executor would be dead */
  if (HEDDLE_HAS_RANGES) heddle__sizes_free(ex->sizes);
  ex->sizes = NULL;
  atomic_store(&ex->has_outputs, false);
}

heddle_status heddle__executor_prepare(heddle_executor *ex, heddle_error *err) {
  heddle_error words;
  if (err == NULL) err = &words;
  ex->tries = 0;
  heddle_status s = heddle__executor_plan(ex, err);
  return s == HEDDLE_OK ? s : heddle__survive(ex, s, true, err);
}

/* The bound program with another size of its root; what shows the old one's shapes goes. */
static void retarget(heddle_executor *ex, heddle__program *program) {
  heddle__profile_release(ex->profile);
  ex->profile = NULL;
  pthread_mutex_lock(&ex->drive.lock);
  heddle__bound_retarget(ex->bound, program);
  pthread_mutex_unlock(&ex->drive.lock);
  atomic_store(&ex->has_outputs, false);
}

/* The memory that inputs and outputs of a program have already: tensors in their device's memory, and state values.
 * *out has one per allocation, or NULL; released by drop_given. */
static void drop_given(const heddle__program *program, heddle__memory **given) {
  for (uint32_t i = 0; given != NULL && i < program->plan->n_allocs; i++) heddle__memory_release(given[i]);
  heddle__free(given);
}

static heddle_status take_given(const heddle_executor *ex, const heddle__program *program, heddle__memory ***out,
                                heddle_error *err) {
  const heddle__plan *plan = program->plan;
  heddle_status s = HEDDLE_OK;
  heddle__memory **given = heddle__alloc(plan->n_allocs, sizeof *given);
  if (given == NULL) return heddle__no_memory(err, "the memory of an executor");
  for (uint32_t i = 0; i < plan->n_allocs && s == HEDDLE_OK; i++) {
    const heddle__allocation *a = &plan->allocs[i];
    if (a->kind != HEDDLE__ALLOC_INPUT && a->kind != HEDDLE__ALLOC_OUTPUT) continue;
    const heddle__space *space = &plan->spaces[a->space];
    const bool is_input = a->kind == HEDDLE__ALLOC_INPUT;
    const uint32_t io = plan->instances[a->instance].io;
    heddle_tensor *t = is_input ? ex->args[io].value : ex->results[io].lent;
    const heddle__held *held = heddle__state_held(ex, io, is_input);
    if (held != NULL) s = heddle__held_lend(held, plan->devices[space->device].dev, &given[i], err);
    else if (t != NULL && !space->host_visible) s = heddle__memory_lend(t, &given[i], err);
  }
  if (s == HEDDLE_OK) *out = given;
  else drop_given(program, given);
  return s;
}

/* Binds a program in place of what is bound, with the present values; where there is no memory for the bound of a range, one
 * for these shapes alone. */
static heddle_status bind_with(heddle_executor *ex, heddle__program *program, heddle__bound **out, heddle_error *err) {
  heddle__memory **given = NULL;
  heddle_status s = take_given(ex, program, &given, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__bound_make(program, &ex->drive.waker, given, out, err);
  if (s == HEDDLE_ENOMEM && heddle__constants_forget(ex->active)) /* there may be enough now */
    s = heddle__bound_make(program, &ex->drive.waker, given, out, err);
  drop_given(program, given);
  return s;
}

static heddle_status bind_anew(heddle_executor *ex, heddle__wish *wish, heddle__program **program, heddle__bound **out,
                               heddle_error *err) {
  drop_bound(ex);
  *out = NULL; /* what it pointed to is gone */
  heddle_status s = bind_with(ex, *program, out, err);
  if (s != HEDDLE_ENOMEM || (*program)->root == NULL) return s;
  heddle__range_refuse((*program)->root);
  heddle__program_release(*program);
  *program = NULL;
  wish->exact = true;
  s = heddle__model_program(ex->active, wish, program, err);
  return s == HEDDLE_OK ? bind_with(ex, *program, out, err) : s;
}

/* The program for what is set: one of the executor's own where its shapes are listed, else of the model. exact: one that is
 * no size of a root. */
static heddle_status find_program(heddle_executor *ex, bool exact, heddle__wish *wish, heddle__program **out,
                                  heddle_error *err) {
  uint32_t lacks = HEDDLE__NONE;
  *wish = (heddle__wish){.values = NULL};
  if (HEDDLE_HAS_RANGES && ex->bound == NULL) { /* a failure took it */
    heddle__sizes_free(ex->sizes);
    ex->sizes = NULL;
  }
  heddle_status s = heddle__states_settle(ex, err);
  *out = HEDDLE_HAS_RANGES && s == HEDDLE_OK && !exact ? heddle__sizes_take(ex->sizes, ex) : NULL;
  if (s != HEDDLE_OK || *out != NULL) return s;
  s = heddle__executor_wish(ex, wish, err);
  wish->exact = exact;
  if (s == HEDDLE_OK) s = heddle__order_lacks(ex->model, wish, &lacks, err);
  if (s == HEDDLE_OK && lacks != HEDDLE__NONE) s = heddle__executor_say_unset(ex, lacks, err);
  return s == HEDDLE_OK ? heddle__model_program(ex->active, wish, out, err) : s;
}

/* For what is bound for a range: sizes of its own, so that a new shape is neither planned nor allocated for. */
static void list_sizes(heddle_executor *ex, const heddle__wish *wish, const heddle__bound *b) {
  heddle__program *root = b->program->root;
  if (!HEDDLE_HAS_RANGES || root == NULL || ex->sizes != NULL || ex->unlisted == root || wish->values == NULL) return;
  if (heddle__sizes_make(ex->active, wish, root, &ex->sizes, NULL) == HEDDLE_OK && ex->sizes == NULL)
    ex->unlisted = root;
}

static void note_refused(heddle_status s, const heddle__program *program, heddle__program **root) {
  if (HEDDLE_HAS_RANGES && s == HEDDLE_EUNSUPPORTED && program != NULL && program->root != NULL && *root == NULL)
    *root = heddle__program_retain(program->root);
}

/* *root gets the root, with one more reference, whose operators a plugin does not take for these shapes. */
static heddle_status plan_for(heddle_executor *ex, bool exact, heddle__program **root, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (ex->stale || ex->bound == NULL || exact) {
    ex->stale = true; /* until all of what follows is done */
    heddle__wish wish;
    heddle__program *program = NULL;
    s = find_program(ex, exact, &wish, &program, err);
    heddle__bound *b = ex->bound;
    if (s == HEDDLE_OK) s = heddle__states_place(ex, program, err);
    if (wish.values != NULL) borrow_tensors(ex, &wish);
    if (s == HEDDLE_OK && b != NULL && b->program == program) {
      s = heddle__states_turn(ex, b, err);
      if (HEDDLE_HAS_RANGES && s == HEDDLE_OK) heddle__bound_adapt(b);
    } else if (HEDDLE_HAS_RANGES && s == HEDDLE_OK && b != NULL && heddle__program_related(b->program, program)) {
      s = heddle__states_turn(ex, b, err);
      if (s == HEDDLE_OK) retarget(ex, program);
    } else if (s == HEDDLE_OK) s = bind_anew(ex, &wish, &program, &b, err);
    if (s == HEDDLE_OK && b->program->root != NULL && b->program->root != ex->last_root) {
      ex->last_root = b->program->root;
      atomic_fetch_add(&ex->growths, 1);
    }
    if (s == HEDDLE_OK) list_sizes(ex, &wish, b);
    else (void)heddle__most_blame(ex->model, &wish, s, err);
    note_refused(s, program, root);
    heddle__program_release(program);
    heddle__wish_free(&wish);
    if (s == HEDDLE_OK) s = heddle__executor_fill(ex, b, HEDDLE__NONE, true, err);
    if (s == HEDDLE_OK) s = heddle__executor_lend(ex, b, HEDDLE__NONE, err);
    if (s != HEDDLE_OK) {
      if (b != ex->bound) heddle__bound_free(b, true);
      return s;
    }
    put_bound(ex, b);
    ex->stale = false;
    if (ex->states != NULL) ex->states->turned = ex->states->grown = false;
  }
  if (ex->bound->stale) {
    s = heddle__bound_refresh(ex->bound, err);
    note_refused(s, ex->bound->program, root);
  }
  ex->unset = heddle__executor_unset(ex, ex->bound);
  return s;
}

/* A plugin that takes a region for the bound of a range need not take it for every shape below: these are then planned for
 * themselves. */
heddle_status heddle__executor_plan(heddle_executor *ex, heddle_error *err) {
  heddle__program *root = NULL;
  heddle_error why;
  heddle_status s = plan_for(ex, false, &root, err != NULL ? err : &why);
  if (root == NULL) return s;
  heddle__range_miss(root, err != NULL ? err->text : why.text);
  heddle__program_release(root);
  root = NULL;
  return plan_for(ex, true, &root, err);
}
