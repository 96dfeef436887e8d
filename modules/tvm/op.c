/* modules/tvm/op.c: functions of compiled libraries as operators of a plan. prepare looks a function up and describes
 * its tensors, bind puts addresses in and packs the arguments, run is one call; a row of nodes is one loop without
 * anything between the calls. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/launch.h"

struct heddle_pop {
  heddle__tvm_library *library;
  heddle__tvm_caller *caller;
  void *code;
  heddle_function *loaded; /* of a module of the application's; code is then NULL */
  char *name;
  uint32_t n_inputs, n; /* tensors: the inputs of the node as it has them, then its outputs */
  uint32_t *operands;   /* which operand of bind each is: inputs first */
  heddle__dltensor *tensors;
  int64_t *shapes;
};

/* What a call needs, in one block: this, the arguments (heddle__any, or of packed functions heddle__word and their
 * codes), and off cpu the lane. Small, since a run walks all of them; the tensors are shared. */
struct heddle_plaunch {
  union {
    heddle__ffi_fn ffi;
    heddle__packed_fn packed;
  } f;
  const heddle_pop *op;
  uint64_t n;
};

_Static_assert(sizeof(heddle_plaunch) % 8 == 0, "arguments come behind it");

/* ---- prepare */

static void op_free(heddle_pop *op) {
  if (op == NULL) return;
  heddle__free(op->name);
  heddle__free(op->operands);
  heddle__free(op->tensors);
  heddle__free(op->shapes);
  heddle__free(op);
}

static bool is_flat(const heddle_pnode *node) {
  for (uint64_t i = 0; i < node->attrs.count; i++) {
    const heddle_pattr *a = (const void *)((const char *)node->attrs.data + i * node->attrs.stride);
    if (strcmp(a->name, "flatten_data") == 0 && a->kind == HEDDLE_ATTR_INT) return *(const int64_t *)a->data != 0;
  }
  return false;
}

static const heddle_pvalue *value_of(const heddle_pregion *region, int32_t i) {
  return (const void *)((const char *)region->values.data + (uint64_t)i * region->values.stride);
}

/* The position of a value among the region's inputs, or behind them among its outputs. */
static uint32_t operand_of(const heddle_pregion *region, int32_t value, bool is_input) {
  const int32_t *list = is_input ? region->inputs : region->outputs;
  uint32_t i = 0;
  while (list[i] != value) i++;
  return is_input ? i : region->n_inputs + i;
}

static int64_t *describe(const heddle__tvm_caller *caller, const heddle_pvalue *v, bool flat, int64_t *shape,
                         heddle__dltensor *out) {
  *out = (heddle__dltensor){.device_type = caller->dev->desc.type,
                            .device_id = caller->device != NULL ? (int32_t)caller->dev->index : 0,
                            .ndim = flat ? 1 : v->ndim,
                            .dtype = v->dtype,
                            .shape = shape};
  if (!flat) {
    if (v->ndim > 0) memcpy(shape, v->shape, (size_t)v->ndim * sizeof *shape);
    return shape + v->ndim;
  }
  *shape = 1;
  for (int32_t i = 0; i < v->ndim; i++) *shape *= v->shape[i];
  return shape + 1;
}

static heddle_status prepare(heddle_pdevice *self, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                             heddle_error *err) {
  heddle__tvm_caller *caller = (heddle__tvm_caller *)(void *)self;
  heddle__tvm_library *l = caller->library;
  const heddle_pnode *node = region->nodes.data;
  uint32_t n = node->n_inputs + node->n_outputs;
  size_t dims = 0;
  (void)offer;
  void *code = heddle__library_code(l, node->op);
  heddle_function *loaded = NULL;
  heddle_status found =
      code == NULL && caller->device == NULL ? heddle__library_loaded(l, node->op, &loaded, err) : HEDDLE_OK;
  if (found != HEDDLE_OK) return found;
  if (code == NULL && loaded == NULL) return heddle__library_lacks(l, node->op, err);
  if (caller->device != NULL) {
    heddle_status s = heddle__device_prepare(caller, node->op, err);
    if (s != HEDDLE_OK) return s;
  }
  for (uint32_t i = 0; i < n; i++) {
    int32_t value = i < node->n_inputs ? node->inputs[i] : node->outputs[i - node->n_inputs];
    if (value < 0)
      return heddle__fail(err, HEDDLE_EINVAL, "input %u is absent; a function of a compiled library takes all",
                          (unsigned)i);
    dims += (size_t)value_of(region, value)->ndim + 1;
  }
  heddle_pop *op = heddle__alloc(1, sizeof *op);
  if (op == NULL) return heddle__no_memory(err, "a node's function");
  op->library = l;
  op->caller = caller;
  op->code = code;
  op->loaded = loaded;
  op->n_inputs = region->n_inputs;
  op->n = n;
  op->name = heddle__strndup(node->op, strlen(node->op));
  op->operands = heddle__alloc(n, sizeof *op->operands);
  op->tensors = heddle__alloc(n, sizeof *op->tensors);
  op->shapes = heddle__alloc(dims, sizeof *op->shapes);
  if (op->name == NULL || op->operands == NULL || op->tensors == NULL || op->shapes == NULL) {
    op_free(op);
    return heddle__no_memory(err, "a node's function");
  }
  int64_t *shape = op->shapes;
  for (uint32_t i = 0; i < n; i++) {
    bool is_input = i < node->n_inputs;
    int32_t value = is_input ? node->inputs[i] : node->outputs[i - node->n_inputs];
    op->operands[i] = operand_of(region, value, is_input);
    shape = describe(caller, value_of(region, value), is_flat(node), shape, &op->tensors[i]);
  }
  *out = op;
  return HEDDLE_OK;
}

/* ---- bind */

static inline heddle__any *any_of(heddle_plaunch *launch) {
  return (heddle__any *)(void *)(launch + 1);
}

static inline heddle__word *words_of(heddle_plaunch *launch) {
  return (heddle__word *)(void *)(launch + 1);
}

static inline int32_t *codes_of(heddle_plaunch *launch) {
  return (int32_t *)(void *)(words_of(launch) + launch->n);
}

static bool is_packed(const heddle_pop *op) {
  return op->library->era == HEDDLE__ERA_PACKED;
}

static size_t argument_bytes(const heddle_pop *op) {
  return is_packed(op) ? op->n * sizeof(heddle__word) + (op->n * sizeof(int32_t) + 7) / 8 * 8
                       : op->n * sizeof(heddle__any);
}

static struct heddle__lane **lane_of(heddle_plaunch *launch) {
  return (struct heddle__lane **)(void *)((char *)(launch + 1) + argument_bytes(launch->op));
}

static void launch_free(heddle_plaunch *launch) {
  if (launch == NULL) return;
  heddle__tvm_library *l = launch->op->library;
  for (uint64_t i = 0; i < launch->n; i++)
    heddle__tensors_give(&l->tensors, l->era == HEDDLE__ERA_PACKED ? words_of(launch)[i].p : any_of(launch)[i].v.p);
  if (launch->op->caller->device != NULL) heddle__lane_give(*lane_of(launch));
  heddle__free(launch);
}

static heddle_status address(const heddle_pop *op, const heddle_pslice *slice, heddle__dltensor *t, heddle_error *err) {
  const heddle_device *dev = op->caller->dev;
  uint64_t base = 0, align = op->library->era == HEDDLE__ERA_PACKED ? 128 : 64;
  if (slice->buffer == NULL || slice->bytes == 0) return HEDDLE_OK; /* no element: code reads none */
  if (op->caller->device != NULL) {
    t->data = slice->buffer;
    return slice->offset == 0 ? HEDDLE_OK
                              : heddle__fail(err, HEDDLE_EINTERNAL, "function '%s' got a part of a buffer", op->name);
  }
  heddle_status s = dev->t->memory.native(dev->handle, slice->buffer, &base, err);
  if (s != HEDDLE_OK) return s;
  if ((base + slice->offset) % align != 0)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "function '%s' takes it for granted that data is aligned to %u bytes, and a tensor is not",
                        op->name, (unsigned)align);
  t->data = (void *)(uintptr_t)(base + slice->offset);
  return HEDDLE_OK;
}

/* Functions of the application's modules stand where compiled ones do; which it is, is known from the launch, whose
 * arguments are right behind it. */
static int call_loaded_packed(heddle__word *args, int32_t *codes, int32_t n, heddle__word *ret, int32_t *ret_code,
                              void *resource) {
  const heddle_plaunch *launch = (const heddle_plaunch *)(const void *)args - 1;
  (void)resource;
  return heddle__function_call(launch->op->loaded, args, codes, n, ret, ret_code);
}

static int32_t call_loaded_ffi(void *self, const heddle__any *args, int32_t n, heddle__any *result) {
  const heddle_plaunch *launch = (const heddle_plaunch *)(const void *)args - 1;
  (void)self;
  return heddle__tvm_call_ffi(launch->op->loaded, (heddle__any *)(uintptr_t)args, n, result);
}

static heddle_status bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                          heddle_error *err) {
  bool packed = is_packed(op), on_device = op->caller->device != NULL;
  heddle_plaunch *launch =
      heddle__alloc(1, sizeof *launch + argument_bytes(op) + (on_device ? sizeof(struct heddle__lane *) : 0));
  if (launch == NULL) return heddle__no_memory(err, "a node's arguments");
  launch->op = op;
  launch->n = op->n;
  if (op->loaded != NULL && packed) launch->f.packed = call_loaded_packed;
  else if (op->loaded != NULL) launch->f.ffi = call_loaded_ffi;
  else if (packed) memcpy(&launch->f.packed, &op->code, sizeof launch->f.packed);
  else memcpy(&launch->f.ffi, &op->code, sizeof launch->f.ffi);
  heddle_status s = HEDDLE_OK;
  if (on_device && (*lane_of(launch) = heddle__lane_take(op->caller, stream)) == NULL)
    s = heddle__no_memory(err, "a node's stream");
  for (uint32_t i = 0; i < op->n && s == HEDDLE_OK; i++) {
    uint32_t k = op->operands[i];
    heddle__dltensor t = op->tensors[i];
    s = address(op, k < op->n_inputs ? &operands->inputs[k] : &operands->outputs[k - op->n_inputs], &t, err);
    if (s != HEDDLE_OK) break;
    t.dtype = heddle__library_dtype(op->library, t.dtype);
    heddle__dltensor *shared = heddle__tensors_take(&op->library->tensors, &t);
    if (shared == NULL) s = heddle__no_memory(err, "a node's arguments");
    if (packed) words_of(launch)[i].p = shared;
    else any_of(launch)[i] = (heddle__any){.type = ANY_TENSOR, .v.p = shared};
    if (packed) codes_of(launch)[i] = PACKED_TENSOR;
  }
  if (s != HEDDLE_OK) {
    launch_free(launch);
    return s;
  }
  *out = launch;
  return HEDDLE_OK;
}

/* ---- run */

static heddle_status failed(const heddle_plaunch *launch, heddle_error *err) {
  return heddle__tvm_failed(launch->op->name, launch->op->library->path, err);
}

/* The arguments as a library wants them that turned out to be of v0.22; where memory is out, the next run does it. */
static void renew(heddle_plaunch *launch) {
  heddle__tvm_library *l = launch->op->library;
  for (uint64_t i = 0; i < launch->n; i++) {
    heddle__dltensor *before = any_of(launch)[i].v.p, t = *before;
    t.dtype = heddle__library_dtype(l, t.dtype);
    heddle__dltensor *now = heddle__tensors_take(&l->tensors, &t);
    if (now == NULL) return;
    any_of(launch)[i].v.p = now;
    heddle__tensors_give(&l->tensors, before);
  }
}

static __attribute__((noinline)) int call_again(heddle_plaunch *launch, heddle__any *result, int rc) {
  rc = heddle__bool22_again(launch->op->library, launch->f.ffi, any_of(launch), (int32_t)launch->n, result, rc);
  if (rc == 0) renew(launch);
  return rc;
}

/* 0: done. */
static inline int call_ffi(heddle_plaunch *launch) {
  heddle__any result = {.type = ANY_NONE};
  int rc = launch->f.ffi(NULL, any_of(launch), (int32_t)launch->n, &result);
  if (__builtin_expect(rc != 0, 0)) rc = call_again(launch, &result, rc);
  if (__builtin_expect(result.type >= ANY_OBJECT, 0) && rc == 0)
    heddle__tvm_drop(result.v.p, launch->op->library->era == HEDDLE__ERA_FFI21);
  return rc;
}

static inline int call_packed(heddle_plaunch *launch) {
  heddle__word result;
  int32_t code = PACKED_NULL;
  return launch->f.packed(words_of(launch), codes_of(launch), (int)launch->n, &result, &code, NULL);
}

static inline bool calm(atomic_uint *attention) {
  return __builtin_expect(atomic_load_explicit(attention, memory_order_relaxed) == 0, 1);
}

heddle_status heddle__tvm_row(heddle_plaunch *const *launches, uint32_t *at, uint32_t n, atomic_uint *attention,
                              heddle_error *err) {
  heddle__tvm_thread *self = heddle__tvm_self();
  heddle__pool *before = self->pool;
  struct heddle__lane *lane_before = self->lane; /* of a function that called the one that runs this */
  const heddle_pop *op = launches[*at]->op;
  heddle_plaunch *const *p = launches + *at, *const *end = launches + n;
  const void *mark = heddle__tvm_scratch_mark(self);
  int rc = 0;
  self->pool = op->caller->pool;
  self->lane = NULL;
  if (op->library->era == HEDDLE__ERA_PACKED) {
    do rc = call_packed(*p);
    while (__builtin_expect(rc == 0, 1) && ++p < end && calm(attention));
  } else {
    do rc = call_ffi(*p);
    while (__builtin_expect(rc == 0, 1) && ++p < end && calm(attention));
  }
  self->pool = before;
  self->lane = lane_before;
  *at = (uint32_t)(p - launches);
  if (rc == 0) return HEDDLE_OK;
  heddle__tvm_scratch_back(self, mark);
  return failed(*p, err);
}

static heddle_status run_launch(heddle_plaunch *launch, heddle_error *err) {
  heddle__tvm_thread *self = heddle__tvm_self();
  heddle__pool *before = self->pool;
  struct heddle__lane *lane_before = self->lane;
  const void *mark = heddle__tvm_scratch_mark(self);
  self->pool = launch->op->caller->pool;
  self->lane = launch->op->caller->device != NULL ? *lane_of(launch) : NULL;
  int rc = is_packed(launch->op) ? call_packed(launch) : call_ffi(launch);
  if (rc != 0 && self->lane != NULL) heddle__lane_reset(self->lane);
  if (rc != 0) heddle__tvm_scratch_back(self, mark);
  self->pool = before;
  self->lane = lane_before;
  return rc == 0 ? HEDDLE_OK : failed(launch, err);
}

const heddle_op_table heddle__tvm_op = {
    .struct_size = sizeof heddle__tvm_op,
    .launch_free = launch_free,
    .op_free = op_free,
    .prepare = prepare,
    .bind = bind,
    .run = run_launch,
};
