/* The calls of ref.h: finds a region's node in the table, checks what all operators have in common, and lets the
 * operator's plan fill the op. Running is one call of the kernel that the plan chose. */
#include "ref_op.h"

#include "plugins/common/chain.h"

/* ---------------------------------------------------------------- refusals */

heddle_status ref_refuse(const ref_node *n, heddle_error *err, const char *format, ...) {
  const heddle_pvalue *value = n->in[0] != NULL ? n->in[0] : n->out;
  char dtype[DTYPE_NAME_BYTES] = "no operand";
  va_list args;
  if (err == NULL) return HEDDLE_EUNSUPPORTED;
  va_start(args, format);
  p_vfail(err, HEDDLE_EUNSUPPORTED, 0, format, args);
  va_end(args);
  if (value != NULL) region_dtype_name(value->dtype, dtype);
  p_prefix(err, "node '%.200s': %.100s (opset %u, %s): ", n->node->name != NULL ? n->node->name : "",
           n->node->op != NULL ? n->node->op : "", n->node->opset, dtype);
  return HEDDLE_EUNSUPPORTED;
}

heddle_status ref_refuse_shape(const ref_node *n, heddle_error *err) {
  char in[3][SHAPE_NAME_BYTES] = {"", "", ""}, out[SHAPE_NAME_BYTES];
  for (uint32_t k = 0; k < 3; k++) {
    if (n->in[k] != NULL) region_shape_name(n->in[k], in[k]);
  }
  return ref_refuse(n, err, "operands %s %s %s do not give a result of shape %s", in[0], in[1], in[2],
                    region_shape_name(n->out, out));
}

heddle_status ref_want_float32(const ref_node *n, heddle_error *err) {
  char name[DTYPE_NAME_BYTES];
  for (uint32_t k = 0; k < REF_OPERANDS; k++) {
    if (n->in[k] != NULL && !region_dtype_is(n->in[k]->dtype, HEDDLE_DTYPE_FLOAT, 32)) {
      return ref_refuse(n, err, "operand %u is %s; it takes float32", k, region_dtype_name(n->in[k]->dtype, name));
    }
  }
  if (!region_dtype_is(n->out->dtype, HEDDLE_DTYPE_FLOAT, 32)) {
    return ref_refuse(n, err, "the result is %s; it gives float32", region_dtype_name(n->out->dtype, name));
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- what plans read */

heddle_status ref_ints(const ref_node *n, uint32_t k, int64_t *out, uint32_t cap, uint32_t *count, heddle_error *err) {
  const heddle_pvalue *v = n->in[k];
  uint64_t have = 0;
  *count = UINT32_MAX;
  if (v == NULL) return HEDDLE_OK;
  const bool wide = region_dtype_is(v->dtype, HEDDLE_DTYPE_INT, 64);
  region_value_count(v, &have);
  if ((!wide && !region_dtype_is(v->dtype, HEDDLE_DTYPE_INT, 32)) || v->ndim > 1 || have > cap) {
    return ref_refuse(n, err, "operand %u must be a list of at most %u int64", k, cap);
  }
  if (have > 0 && v->data == NULL) return ref_refuse(n, err, "operand %u is not known before the run", k);
  for (uint64_t i = 0; i < have; i++) {
    int32_t narrow; /* constants lie at any address */
    memcpy(&narrow, (const char *)v->data + i * (wide ? sizeof *out : sizeof narrow), sizeof narrow);
    out[i] = narrow;
    if (wide) memcpy(&out[i], (const char *)v->data + i * sizeof *out, sizeof *out);
  }
  *count = (uint32_t)have;
  return HEDDLE_OK;
}

heddle_status ref_axes(const ref_node *n, int64_t *axes, uint32_t *count, int32_t rank, heddle_error *err) {
  uint32_t seen = 0;
  if (*count == UINT32_MAX) {
    for (*count = 0; *count < (uint32_t)rank; ++*count) axes[*count] = *count;
  }
  for (uint32_t i = 0; i < *count; i++) {
    if (axes[i] < -rank || axes[i] >= rank) {
      return ref_refuse(n, err, "axis %lld of %d dimensions", (long long)axes[i], rank);
    }
    if (axes[i] < 0) axes[i] += rank;
    if ((seen >> axes[i] & 1) != 0) return ref_refuse(n, err, "axis %lld twice", (long long)axes[i]);
    seen |= UINT32_C(1) << axes[i];
  }
  return HEDDLE_OK;
}

heddle_status ref_axis(const ref_node *n, int64_t fallback, int32_t *axis, int64_t *size, int64_t *inner,
                       heddle_error *err) {
  const heddle_pvalue *x = n->in[0];
  int64_t at = fallback;
  heddle_status s = region_attr_int(n->node, "axis", fallback, &at, err);
  if (s != HEDDLE_OK) return s;
  if (at < -x->ndim || at >= x->ndim) return ref_refuse(n, err, "axis %lld of %d dimensions", (long long)at, x->ndim);
  if (at < 0) at += x->ndim;
  *axis = (int32_t)at;
  *size = x->shape[at];
  *inner = 1;
  for (int32_t i = *axis + 1; i < x->ndim; i++) *inner *= x->shape[i] > 0 ? x->shape[i] : 1;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- from region to op */

static const ref_entry *find_entry(const char *name, bool own) {
  const heddle__operator *op = heddle__operator_find(own, name);
  const ref_entry *entry = op != NULL ? &ref_table[op - heddle__operators] : NULL;
  return entry != NULL && entry->plan != NULL ? entry : NULL;
}

heddle_status ref_find_version(const ref_node *n, bool own, const heddle__version **version, heddle_error *err) {
  const char *name = n->node->op;
  const uint32_t opset = region_opset(n->node, HEDDLE__OPSET_LAST);
  *version = own || opset != 0 ? heddle__version_find(own, name, opset) : NULL;
  if (*version != NULL) return HEDDLE_OK;
  return ref_refuse(n, err, "opset %u is not supported, %u to %d are", n->node->opset,
                    heddle__version_find(own, name, 0)->opset_first, HEDDLE__OPSET_LAST);
}

heddle_status ref_check_attrs(const ref_node *n, const heddle__version *version, heddle_error *err) {
  for (uint64_t i = 0; i < n->node->attrs.count; i++) {
    const heddle_pattr *attr =
        (const heddle_pattr *)(const void *)((const char *)n->node->attrs.data + i * n->node->attrs.stride);
    const char *name = attr->name != NULL ? attr->name : "";
    if (heddle__version_attr(version, name) == 0) return ref_refuse(n, err, "attribute '%s' is not known", name);
  }
  return HEDDLE_OK;
}

static heddle_status check_values(const ref_node *n, const heddle__version *entry, ref_op *op, heddle_error *err) {
  const heddle_pnode *node = n->node;
  uint64_t bytes = 0;
  const bool many = entry->max_inputs == HEDDLE__VARIADIC;
  if (node->n_inputs > entry->max_inputs && !many) return ref_refuse(n, err, "it has %u operands", node->n_inputs);
  for (uint32_t k = 0; k < node->n_inputs || k < entry->min_inputs; k++) {
    const heddle_pvalue *value = region_node_input(n->region, node, k);
    int64_t slot = value != NULL ? region_input_slot(n->region, node->inputs[k]) : -1;
    if (value == NULL && (k < entry->min_inputs || many)) {
      return ref_refuse(n, err, "operand %u is missing", k);
    }
    if (value == NULL) continue;
    if (slot < 0) return ref_refuse(n, err, "operand %u is not an input of its region", k);
    if (!region_value_bytes(value, &bytes)) return ref_refuse(n, err, "operand %u has no size in bytes", k);
    if (k < REF_OPERANDS) {
      op->slot[k] = (uint32_t)slot;
      op->present |= UINT32_C(1) << k;
    }
  }
  if (node->n_outputs > entry->max_outputs && entry->max_outputs != HEDDLE__VARIADIC)
    return ref_refuse(n, err, "it has %u results", node->n_outputs);
  for (uint32_t k = 0; k < REF_RESULTS; k++) op->result[k] = UINT32_MAX;
  uint32_t wanted = 0;
  for (uint32_t k = 0; k < node->n_outputs; k++) {
    const heddle_pvalue *value = region_node_output(n->region, node, k);
    int64_t slot = value != NULL ? region_output_slot(n->region, node->outputs[k]) : -1;
    if (k == 0 && slot != 0) return ref_refuse(n, err, "its result is not the one output of its region, or the first");
    if (slot < 0) continue;
    if (!region_value_bytes(value, &bytes)) return ref_refuse(n, err, "result %u has no size in bytes", k);
    if (k < REF_RESULTS) op->result[k] = (uint32_t)slot;
    wanted++;
  }
  if (n->region->n_outputs != wanted) return ref_refuse(n, err, "its region has an output that is not its result");
  return HEDDLE_OK;
}

heddle_status ref_plan_region(const heddle_pregion *region, ref_node *n, ref_op *op, const ref_entry **out_entry,
                              heddle_error *err) {
  memset(op, 0, sizeof *op);
  *n = (ref_node){.region = region, .node = region_node(region, 0)};
  if (n->node == NULL) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "a region without nodes");
  if (region->nodes.count > 1) { /* an elementwise chain: as FusedElementwise would be, which its plan sees */
    *out_entry = find_entry("FusedElementwise", true);
    if (*out_entry == NULL) return ref_refuse(n, err, "chains are left out of this build");
    n->node = region_node(region, region->nodes.count - 1);
    return (*out_entry)->plan(n, op, err);
  }
  for (uint32_t k = 0; k < REF_OPERANDS; k++) n->in[k] = region_node_input(region, n->node, k);
  n->out = region_node_output(region, n->node, 0);

  if (n->node->op == NULL) return ref_refuse(n, err, "it names no operator");
  const bool own = n->node->domain != NULL && strcmp(n->node->domain, "heddle") == 0;
  if (!own && n->node->domain != NULL && n->node->domain[0] != '\0') {
    return ref_refuse(n, err, "operators of domain '%s' are not supported", n->node->domain);
  }
  const ref_entry *entry = find_entry(n->node->op, own);
  if (entry == NULL) return ref_refuse(n, err, "there is no such operator here");
  const heddle__version *version = NULL;
  heddle_status s = ref_find_version(n, own, &version, err);
  if (s != HEDDLE_OK) return s;
  if (n->out == NULL) return ref_refuse(n, err, "it has no result");
  s = ref_check_attrs(n, version, err);
  if (s == HEDDLE_OK) s = check_values(n, version, op, err);
  if (s == HEDDLE_OK) s = entry->plan(n, op, err);
  *out_entry = entry;
  return s;
}

/* The largest piece of work that is not worth a second thread, and the most parts that an op is cut into. */
#define PART_NS 6000.0
#define MOST_PARTS 256.0

/* Scratch memory of all parts, where each has its own: with more of it there are fewer parts. */
#define SCRATCH_MOST (UINT64_C(256) << 20)

/* Smaller tables are bookkeeping, as the op itself is. */
#define KEPT_LEAST 4096

/* Longer tables take long to compute, which a resize must not. */
#define RESIZED_TAIL 65536

/* An op that is estimated to take longer is watched; and how long it may run between two looks. The estimate of both may
 * be wrong by twenty times before a run is 50 ms late. */
#define WATCHED_NS 1e6
#define SLICE_NS 2e6

/* Where there are no units: sizes that the kernel would multiply may have no bytes behind them. */
static void nothing(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                    uint64_t last) {
  (void)op, (void)inputs, (void)outputs, (void)workspace, (void)first, (void)last;
}

void ref_set_work(ref_op *op, ref_kernel kernel, uint64_t units, double steps, double bytes) {
  op->kernel = units > 0 ? kernel : nothing;
  op->units = units;
  op->cost_ns = 5 + steps * 0.07 + bytes * 0.1;
  double parts = op->cost_ns / PART_NS;
  if (parts > MOST_PARTS) parts = MOST_PARTS;
  if (parts > (double)units) parts = (double)units;
  op->parts = parts < 2 ? 1 : (uint32_t)parts;
  const double slice = units > 0 ? SLICE_NS / (op->cost_ns / (double)units) : 0;
  op->watched = op->cost_ns > WATCHED_NS;
  op->slice = !op->watched || slice >= (double)units ? 0 : slice < 1 ? 1 : (uint64_t)slice;
}

void ref_set_part_scratch(ref_op *op, uint64_t bytes) {
  const uint64_t most = bytes > 0 ? SCRATCH_MOST / bytes : op->parts;
  if (op->parts > most) op->parts = most > 0 ? (uint32_t)most : 1;
  op->part_bytes = (bytes + 63) / 64 * 64;
  op->workspace_bytes = op->part_bytes * op->parts;
}

/* By the fast kernels, else by the general ones. */
static heddle_status plan_any(const heddle_pregion *region, ref_node *n, ref_op *op, const ref_entry **out_entry,
                              heddle_error *err) {
  heddle_status s = ref_plan_region(region, n, op, out_entry, err);
  if (s != HEDDLE_EUNSUPPORTED || region->nodes.count != 1) return s;
  return more_plan_region(region, n, op, out_entry, err);
}

/* ---------------------------------------------------------------- the calls of ref.h */

heddle_status ref_query(const heddle_pregion *region, heddle_error *err) {
  ref_node n;
  ref_op op;
  const ref_entry *entry;
  return plan_any(region, &n, &op, &entry, err);
}

void ref_input_flags(const heddle_pregion *region, uint32_t *flags) {
  ref_node n;
  ref_op op;
  const ref_entry *entry;
  for (uint32_t i = 0; i < region->n_inputs; i++) flags[i] = 0;
  if (plan_any(region, &n, &op, &entry, NULL) != HEDDLE_OK) return;
#ifndef HEDDLE_NO_FUSION
  if (region->nodes.count > 1) {
    heddle_chain chain;
    if (heddle_chain_read(region, &chain, NULL) == HEDDLE_OK) heddle_chain_flags(region, &chain, flags);
    return;
  }
#endif
  for (uint32_t k = 0; k < REF_OPERANDS; k++) {
    if ((op.absorbed >> k & 1) != 0 && n.in[k] != NULL && n.in[k]->data != NULL)
      flags[op.slot[k]] = HEDDLE_INPUT_ABSORBED;
  }
  /* A value that is also an ordinary operand is needed after all. */
  for (uint32_t k = 0; k < n.node->n_inputs; k++) {
    int64_t slot = n.node->inputs[k] >= 0 ? region_input_slot(region, n.node->inputs[k]) : -1;
    if (slot >= 0 && (k >= REF_OPERANDS || (op.absorbed >> k & 1) == 0)) flags[slot] = 0;
  }
}

/* Entries (operand, result) of a mask of operands, of so many numbers; each region input once. */
static uint64_t entries_of(const ref_op *op, uint32_t mask, uint32_t width, int32_t *entries, uint64_t cap) {
  uint64_t count = 0;
  for (uint32_t k = 0; k < REF_OPERANDS && count < cap; k++) {
    bool twice = false;
    if ((mask >> k & 1) == 0) continue;
    for (uint64_t i = 0; i < count; i++) twice = twice || entries[width * i] == (int32_t)op->slot[k];
    if (twice) continue;
    entries[width * count] = (int32_t)op->slot[k];
    entries[width * count + 1] = (int32_t)op->in_place_of[k];
    count++;
  }
  return count;
}

uint64_t ref_in_place(const heddle_pregion *region, int32_t *pairs, uint64_t cap) {
  ref_node n;
  ref_op op;
  const ref_entry *entry;
  return plan_any(region, &n, &op, &entry, NULL) == HEDDLE_OK ? entries_of(&op, op.in_place, 2, pairs, cap) : 0;
}

uint64_t ref_extends(const heddle_pregion *region, int32_t *entries, uint64_t cap) {
  ref_node n;
  ref_op op;
  const ref_entry *entry;
  if (plan_any(region, &n, &op, &entry, NULL) != HEDDLE_OK) return 0;
  const uint64_t count = entries_of(&op, op.extends, 3, entries, cap);
  for (uint64_t i = 0; i < count; i++) entries[3 * i + 2] = op.extends_along;
  return count;
}

uint64_t ref_workspace(const heddle_pregion *region) {
  ref_node n;
  ref_op op;
  const ref_entry *entry;
  return plan_any(region, &n, &op, &entry, NULL) == HEDDLE_OK ? op.workspace_bytes : 0;
}

uint64_t ref_kept(const heddle_pregion *region) {
  ref_node n;
  ref_op op;
  const ref_entry *entry;
  if (plan_any(region, &n, &op, &entry, NULL) != HEDDLE_OK || op.tail_bytes < KEPT_LEAST) return 0;
  return op.tail_bytes;
}

double ref_cost_ns(const heddle_pregion *region, uint32_t threads) {
  ref_node n;
  ref_op op;
  const ref_entry *entry;
  if (plan_any(region, &n, &op, &entry, NULL) != HEDDLE_OK) return 0;
  const uint32_t parts = op.parts < threads ? op.parts : threads;
  return parts < 2 ? op.cost_ns : op.cost_ns / parts;
}

/* Long tables end early where the plan's time is over; what is not whole is not used. */
static heddle_status fill(const ref_entry *entry, const ref_node *n, ref_op *op, heddle_error *err) {
  const uint32_t watched = op->watched;
  op->watched = 1;
  entry->fill(n, op);
  const heddle_status s = ref_watched(op) ? op->host->stop_requested(op->host->ctx) : HEDDLE_OK;
  op->watched = watched;
  if (s == HEDDLE_OK) return s;
  return p_fail(err, s, 0,
                s == HEDDLE_ECANCELED ? "planning was cancelled while the tables of %s were computed"
                                      : "the time for planning was over while the tables of %s were computed",
                n->node->op);
}

heddle_status ref_prepare(const heddle_host *host, const heddle_pregion *region, ref_op **out, heddle_error *err) {
  ref_node n;
  ref_op planned;
  const ref_entry *entry = NULL;
  heddle_status s = plan_any(region, &n, &planned, &entry, err);
  if (s != HEDDLE_OK) return s;
  ref_op *op = host->alloc(host->ctx, sizeof *op + planned.tail_bytes, _Alignof(ref_op));
  if (op == NULL) {
    return p_fail(err, HEDDLE_ENOMEM, 0, "node '%s': no memory to prepare %s", n.node->name, n.node->op);
  }
  *op = planned;
  op->host = host;
  s = ref_find_indices(&n, &op->indices, err);
  if (s == HEDDLE_OK && entry != NULL && entry->fill != NULL) s = fill(entry, &n, op, err);
  if (s != HEDDLE_OK) ref_free(op);
  else *out = op;
  return s;
}

void ref_free(ref_op *op) {
  if (op != NULL) op->host->free(op->host->ctx, op);
}

heddle_status ref_copy(const ref_op *op, ref_op **out, heddle_error *err) {
  const size_t bytes = sizeof *op + op->tail_bytes;
  ref_op *copy = op->host->alloc(op->host->ctx, bytes, _Alignof(ref_op));
  if (copy == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to copy an operator");
  memcpy(copy, op, bytes);
  copy->room_tail = op->tail_bytes;
  copy->room_workspace = op->workspace_bytes;
  *out = copy;
  return HEDDLE_OK;
}

heddle_status ref_resize(ref_op *copy, const heddle_pregion *region, heddle_error *err) {
  ref_node n;
  ref_op planned;
  const ref_entry *entry = NULL;
  heddle_status s = plan_any(region, &n, &planned, &entry, err);
  if (s == HEDDLE_OK) s = ref_find_indices(&n, &planned.indices, err);
  if (s != HEDDLE_OK) return s;
  if (planned.tail_bytes > copy->room_tail || planned.workspace_bytes > copy->room_workspace ||
      planned.tail_bytes > RESIZED_TAIL)
    return ref_refuse(&n, err, "these shapes need more memory than their bound");
  if ((copy->in_place & ~planned.in_place) != 0 || (copy->extends & ~planned.extends) != 0)
    return ref_refuse(&n, err, "with these shapes a result does not fit into its operand's memory");
  planned.in_place = copy->in_place; /* what was offered */
  planned.extends = copy->extends;
  planned.host = copy->host;
  planned.room_tail = copy->room_tail;
  planned.room_workspace = copy->room_workspace;
  *copy = planned;
  if (entry != NULL && entry->fill != NULL) entry->fill(&n, copy);
  return HEDDLE_OK;
}

bool ref_watched(const ref_op *op) {
  return op->watched && HEDDLE_HAS(heddle_host, op->host, stop_requested) && op->host->stop_requested != NULL;
}

bool ref_stops(const ref_op *op) {
  return ref_watched(op) && op->host->stop_requested(op->host->ctx) != HEDDLE_OK;
}

heddle_status ref_stopped(const ref_op *op, heddle_error *err) {
  const heddle_status s = ref_watched(op) ? op->host->stop_requested(op->host->ctx) : HEDDLE_OK;
  if (s == HEDDLE_OK) return s;
  return p_fail(err, s, 0,
                s == HEDDLE_ECANCELED ? "the run was cancelled while it was computed"
                                      : "the time of the run was over while it was computed");
}

/* The units first to last, in slices; none is begun when the run is to end. */
static void run_units(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                      uint64_t last) {
  for (uint64_t left; op->slice != 0 && (left = last - first) > op->slice; first += op->slice) {
    if (ref_stops(op)) return;
    op->kernel(op, inputs, outputs, workspace, first, first + op->slice);
  }
  if (!op->watched || !ref_stops(op)) op->kernel(op, inputs, outputs, workspace, first, last);
}

void ref_run(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace) {
  run_units(op, inputs, outputs, workspace, 0, op->units);
}

/* Start of a part, without overflow: the first units % parts parts have one unit more. */
static uint64_t part_start(uint64_t units, uint32_t part, uint32_t parts) {
  uint64_t more = units % parts;
  return units / parts * part + (part < more ? part : more);
}

void ref_run_range(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint32_t part,
                   uint32_t parts) {
  uint64_t first = part_start(op->units, part, parts), last = part_start(op->units, part + 1, parts);
  if (op->part_bytes != 0) workspace = (char *)workspace + part * op->part_bytes;
  if (first < last) run_units(op, inputs, outputs, workspace, first, last);
}

uint32_t ref_parts(const ref_op *op) {
  return op->parts;
}

ref_kernel ref_op_kernel(const ref_op *op, uint64_t *units) {
  *units = op->units;
  return op->kernel;
}
