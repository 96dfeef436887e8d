/* From a node to a more_op, and from that to a ref_op: what all operators of more/ have in common. */
#include "more.h"
#include "plugins/common/scalar.h"

/* ---------------------------------------------------------------- a plan's steps */

void more_refuse(more_plan *p, const char *format, ...) {
  char words[512];
  va_list args;
  if (!more_ok(p)) return;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  p->status = ref_refuse(p->n, p->err, "%s", words);
}

void more_work(more_plan *p, more_kernel run, int64_t units, double steps) {
  p->m->run = run;
  p->m->units = units > 0 ? units : 1;
  p->m->steps = steps;
}

void more_loop(more_plan *p, more_kernel run, int64_t units, double steps) {
  more_work(p, run, units, steps);
  p->m->loops = true;
}

void more_scratch(more_plan *p, double bytes) {
  if (bytes > 0x1p40) more_refuse(p, "it needs more than 2^40 bytes of scratch memory");
  else p->m->scratch_bytes = (uint64_t)bytes;
}

bool more_operand(const more_plan *p, uint32_t k) {
  return k < p->m->n_in && p->m->in[k].here;
}

bool more_wants(const more_plan *p, uint32_t k) {
  return k < p->m->n_out && p->m->out[k].here;
}

void more_rank(more_plan *p, uint32_t k, int32_t least, int32_t most) {
  const int32_t ndim = p->m->in[k].ndim;
  if (more_operand(p, k) && (ndim < least || ndim > most))
    more_refuse(p, "operand %u has %d dimensions, expected %d to %d", k, ndim, least, most);
}

void more_real(more_plan *p, uint32_t k) {
  if (more_operand(p, k) && !more_type_is_real(p->m->in[k].type))
    more_refuse(p, "operand %u must be of a floating-point type", k);
}

void more_number(more_plan *p, uint32_t k) {
  if (more_operand(p, k) && p->m->in[k].type == REF_TYPE_BOOL) more_refuse(p, "operand %u must be of a number type", k);
}

void more_whole(more_plan *p, uint32_t k) {
  if (more_operand(p, k) && !more_type_is_whole(p->m->in[k].type)) more_refuse(p, "operand %u must be of integers", k);
}

void more_index_type(more_plan *p, uint32_t k) {
  const int type = more_operand(p, k) ? p->m->in[k].type : REF_TYPE_I64;
  if (type != REF_TYPE_I32 && type != REF_TYPE_I64) more_refuse(p, "operand %u must be int32 or int64", k);
}

void more_same_type(more_plan *p, uint32_t a, uint32_t b) {
  if (more_operand(p, b) && p->m->in[a].type != p->m->in[b].type)
    more_refuse(p, "operand %u is of another type than operand %u", b, a);
}

void more_shape_is(more_plan *p, uint32_t k, int32_t ndim, const int64_t *shape) {
  char have[SHAPE_NAME_BYTES], want[SHAPE_NAME_BYTES];
  if (!more_ok(p) || !more_operand(p, k)) return;
  const more_value *v = &p->m->in[k];
  bool same = v->ndim == ndim;
  for (int32_t d = 0; same && d < ndim; d++) same = v->shape[d] == shape[d];
  if (same) return;
  const heddle_pvalue a = {.shape = v->shape, .ndim = v->ndim}, b = {.shape = shape, .ndim = ndim};
  more_refuse(p, "operand %u has shape %s, expected %s", k, region_shape_name(&a, have), region_shape_name(&b, want));
}

void more_same_shape(more_plan *p, uint32_t a, uint32_t b) {
  more_shape_is(p, b, p->m->in[a].ndim, p->m->in[a].shape);
}

int64_t more_count(const int64_t *shape, int64_t from, int64_t to) {
  return to > from ? ref_product(shape + from, to - from) : 1;
}

void more_result(more_plan *p, uint32_t k, int type, int32_t ndim, const int64_t *shape) {
  more_value *v = &p->m->out[k];
  double count = 1;
  if (!more_ok(p) || k >= MORE_OUT) return;
  if (type == REF_TYPE_NONE) more_refuse(p, "the type of result %u is not known", k);
  else if (ndim > MORE_DIMS) more_refuse(p, "result %u has %d dimensions; up to %d are taken", k, ndim, MORE_DIMS);
  if (!more_ok(p)) return;
  v->type = (uint8_t)type;
  v->size = more_type_bytes(type);
  v->ndim = ndim;
  for (int32_t d = 0; d < ndim; d++) {
    if (shape[d] < 0) more_refuse(p, "dimension %d of result %u would be %lld", d, k, (long long)shape[d]);
    v->shape[d] = shape[d];
    count *= (double)(shape[d] > 0 ? shape[d] : 1);
  }
  if (count > 0x1p59) more_refuse(p, "result %u would have more than 2^59 elements", k);
  if (more_ok(p)) v->count = more_count(v->shape, 0, ndim);
}

void more_result_like(more_plan *p, uint32_t k, uint32_t operand) {
  more_result(p, k, p->m->in[operand].type, p->m->in[operand].ndim, p->m->in[operand].shape);
}

bool more_broadcast(more_plan *p, int64_t *shape, int32_t *ndim, uint32_t operand) {
  const more_value *v = &p->m->in[operand];
  int64_t out[MORE_DIMS];
  const int32_t most = *ndim > v->ndim ? *ndim : v->ndim;
  for (int32_t d = 0; d < most; d++) { /* from the last dimension */
    const int64_t x = d < *ndim ? shape[*ndim - 1 - d] : 1, y = d < v->ndim ? v->shape[v->ndim - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) {
      more_refuse(p, "operand %u does not broadcast with the others: %lld and %lld in a dimension", operand,
                  (long long)x, (long long)y);
      return false;
    }
    out[most - 1 - d] = x == 1 ? y : x;
  }
  *ndim = most;
  memcpy(shape, out, (size_t)most * sizeof *shape);
  return true;
}

int64_t more_at(const more_value *v, const more_value *out, int64_t i) {
  int64_t at = 0, step = 1;
  if (v->count == out->count) return i;
  for (int32_t d = out->ndim; d-- > 0;) {
    const int64_t place = i % out->shape[d], e = d - (out->ndim - v->ndim);
    i /= out->shape[d];
    if (e < 0) break;
    if (v->shape[e] != 1) at += place * step;
    step *= v->shape[e];
  }
  return at;
}

/* ---------------------------------------------------------------- attributes */

static void take(more_plan *p, heddle_status s) {
  if (s != HEDDLE_OK && more_ok(p)) p->status = s;
}

int64_t more_int(more_plan *p, const char *name, int64_t absent) {
  int64_t x = absent;
  if (more_ok(p)) take(p, region_attr_int(p->n->node, name, absent, &x, p->err));
  return x;
}

double more_float(more_plan *p, const char *name, double absent) {
  double x = absent;
  if (more_ok(p)) take(p, region_attr_float(p->n->node, name, absent, &x, p->err));
  return scalar_single(x);
}

const char *more_string(more_plan *p, const char *name, const char *absent) {
  const char *x = absent;
  if (more_ok(p)) take(p, region_attr_string(p->n->node, name, absent, &x, p->err));
  return x;
}

int64_t more_ints(more_plan *p, const char *name, int64_t *out, int64_t cap) {
  const int64_t *list = NULL;
  uint64_t count = 0;
  if (!more_ok(p) || region_attr_find(p->n->node, name) == NULL) return -1;
  take(p, region_attr_ints(p->n->node, name, &list, &count, p->err));
  if (count > (uint64_t)cap)
    more_refuse(p, "%s has %llu numbers; up to %lld are taken", name, (unsigned long long)count, (long long)cap);
  if (!more_ok(p)) return -1;
  for (uint64_t i = 0; i < count; i++) out[i] = list[i];
  return (int64_t)count;
}

int64_t more_floats(more_plan *p, const char *name, double *out, int64_t cap) {
  const heddle_pattr *attr = region_attr_find(p->n->node, name);
  if (!more_ok(p) || attr == NULL) return -1;
  if (attr->kind != HEDDLE_ATTR_FLOATS || attr->count > (uint64_t)cap) {
    more_refuse(p, "%s must be a list of up to %lld numbers", name, (long long)cap);
    return -1;
  }
  for (uint64_t i = 0; i < attr->count; i++) out[i] = scalar_single(((const double *)attr->data)[i]);
  return (int64_t)attr->count;
}

const void *more_keep(more_plan *p, int k, const char *name, uint32_t kind) {
  more_op *m = p->m;
  const heddle_pattr *attr = region_attr_find(p->n->node, name);
  if (!more_ok(p)) return NULL;
  if (attr != NULL && attr->count > 0 && attr->kind != kind) {
    more_refuse(p, "%s is not a list of %s", name, kind == HEDDLE_ATTR_INTS ? "integers" : "numbers");
    return NULL;
  }
  m->kept[k] = name;
  m->kept_at[k] = m->kept_all;
  m->kept_count[k] = attr != NULL ? attr->count : 0;
  m->kept_all += m->kept_count[k];
  return attr != NULL ? attr->data : NULL;
}

int64_t more_choice(more_plan *p, const char *name, const char *absent, const char *words) {
  const char *text = more_string(p, name, absent);
  const size_t length = strlen(text);
  int64_t i = 0;
  if (!more_ok(p)) return 0;
  for (const char *at = words; *at != '\0'; i++) {
    const size_t n = strcspn(at, " ");
    if (n == length && memcmp(at, text, n) == 0) return i;
    at += n + (at[n] == ' ');
  }
  more_refuse(p, "%s is '%.40s', expected one of: %s", name, text, words);
  return 0;
}

int64_t more_axis(more_plan *p, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    more_refuse(p, "axis %lld of %lld dimensions", (long long)axis, (long long)rank);
    return 0;
  }
  return axis < 0 ? axis + rank : axis;
}

void more_axes(more_plan *p, int64_t *axes, int64_t count, int64_t rank) {
  for (int64_t i = 0; i < count && more_ok(p); i++) {
    axes[i] = more_axis(p, axes[i], rank);
    for (int64_t k = 0; k < i && more_ok(p); k++)
      if (axes[k] == axes[i]) more_refuse(p, "its axes name dimension %lld twice", (long long)axes[i]);
  }
}

/* ---------------------------------------------------------------- operands that are known */

const void *more_operand_bytes(more_plan *p, uint32_t k) {
  static const int64_t nothing = 0;
  if (!more_ok(p)) return NULL;
  if (p->m->in[k].count == 0) return &nothing;
  if (p->data[k] != NULL) return p->data[k];
  p->needs = (int32_t)k;
  more_refuse(p, "operand %u decides its result's shape, and is not known before the run", k);
  return NULL;
}

int64_t more_operand_ints(more_plan *p, uint32_t k, int64_t *out, int64_t cap) {
  if (!more_operand(p, k)) return -1;
  const more_value *v = &p->m->in[k];
  if (v->type != REF_TYPE_I64 && v->type != REF_TYPE_I32) more_refuse(p, "operand %u must be int64", k);
  if (v->ndim > 1 || v->count > cap) more_refuse(p, "operand %u must be a list of at most %lld", k, (long long)cap);
  const void *bytes = more_operand_bytes(p, k);
  if (bytes == NULL) return -1;
  for (int64_t i = 0; i < v->count; i++) out[i] = more_get_int(v, bytes, i);
  return v->count;
}

static const void *one_number(more_plan *p, uint32_t k) {
  if (p->m->in[k].count != 1) more_refuse(p, "operand %u must be one number", k);
  return more_operand_bytes(p, k);
}

double more_operand_number(more_plan *p, uint32_t k, double absent) {
  if (!more_operand(p, k)) return absent;
  const void *bytes = one_number(p, k);
  return bytes != NULL ? more_get(&p->m->in[k], bytes, 0) : absent;
}

int64_t more_operand_int(more_plan *p, uint32_t k, int64_t absent) {
  if (!more_operand(p, k)) return absent;
  if (!more_type_is_whole(p->m->in[k].type)) more_refuse(p, "operand %u must be an integer", k);
  const void *bytes = one_number(p, k);
  return bytes != NULL ? more_get_int(&p->m->in[k], bytes, 0) : absent;
}

/* ---------------------------------------------------------------- from a node to an op */

static bool take_operand(more_plan *p, uint32_t k) {
  const heddle_pvalue *v = region_node_input(p->n->region, p->n->node, k);
  more_value *to = &p->m->in[k];
  to->slot = UINT32_MAX;
  if (v == NULL) return true;
  const int type = more_type_of(v->dtype);
  const int64_t slot = region_input_slot(p->n->region, p->n->node->inputs[k]);
  uint64_t bytes;
  if (type == REF_TYPE_NONE) more_refuse(p, "operand %u is of a type that is not known here", k);
  else if (v->ndim > MORE_DIMS)
    more_refuse(p, "operand %u has %d dimensions; up to %d are taken", k, v->ndim, MORE_DIMS);
  else if (slot < 0) more_refuse(p, "operand %u is not an input of its region", k);
  else if (!region_value_bytes(v, &bytes)) more_refuse(p, "operand %u has no size in bytes", k);
  if (!more_ok(p)) return false;
  to->here = true;
  to->slot = (uint32_t)slot;
  to->type = (uint8_t)type;
  to->size = more_type_bytes(type);
  to->ndim = v->ndim;
  for (int32_t d = 0; d < v->ndim; d++) to->shape[d] = v->shape[d];
  double count = 1; /* also of an empty tensor, so that no product of its dimensions is too large */
  for (int32_t d = 0; d < to->ndim; d++) count *= (double)(to->shape[d] > 0 ? to->shape[d] : 1);
  if (count > 0x1p59) more_refuse(p, "operand %u has dimensions whose product is too large", k);
  if (!more_ok(p)) return false;
  to->count = more_count(to->shape, 0, to->ndim);
  p->data[k] = v->data;
  return true;
}

/* Types of 8 bits and less are for the operators that convert from and to them. */
static void check_narrow(more_plan *p, const more_value *values, uint32_t n) {
  static const char *const ops[] = {"Cast", "CastLike", "DequantizeLinear", "QuantizeLinear"};
  bool takes = false;
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) takes = takes || strcmp(p->entry->name, ops[i]) == 0;
  for (uint32_t k = 0; k < n && !takes; k++)
    if (values[k].here && narrow_is(values[k].type)) more_refuse(p, "it does not take that type");
}

static void check_node(more_plan *p) {
  const heddle_pnode *node = p->n->node;
  const heddle__version *e = p->entry;
  p->status = ref_check_attrs(p->n, e, p->err);
  if (node->n_inputs > MORE_IN || (node->n_inputs > e->max_inputs && e->max_inputs != HEDDLE__VARIADIC))
    more_refuse(p, "it has %u operands", node->n_inputs);
  if (node->n_outputs > MORE_OUT || node->n_outputs > e->max_outputs)
    more_refuse(p, "it has %u results", node->n_outputs);
  if (!more_ok(p)) return;
  p->m->n_in = node->n_inputs;
  p->m->n_out = node->n_outputs;
  for (uint32_t k = 0; k < node->n_inputs || k < e->min_inputs; k++) {
    if (region_node_input(p->n->region, node, k) == NULL && (k < e->min_inputs || e->max_inputs == HEDDLE__VARIADIC))
      more_refuse(p, "operand %u is missing", k);
    if (!more_ok(p) || !take_operand(p, k)) return;
  }
  check_narrow(p, p->m->in, node->n_inputs);
  for (uint32_t k = 0; k < MORE_OUT; k++) p->m->out[k].slot = UINT32_MAX;
  for (uint32_t k = 0; k < node->n_outputs; k++) p->m->out[k].here = node->outputs[k] >= 0;
}

/* The results are those of the region. */
static void check_results(more_plan *p) {
  const heddle_pregion *region = p->n->region;
  const heddle_pnode *node = p->n->node;
  uint32_t wanted = 0;
  for (uint32_t k = 0; k < node->n_outputs && more_ok(p); k++) {
    const heddle_pvalue *v = region_node_output(region, node, k);
    const int64_t slot = v != NULL ? region_output_slot(region, node->outputs[k]) : -1;
    more_value *r = &p->m->out[k];
    if (v == NULL) continue;
    bool same = more_type_of(v->dtype) == r->type && v->ndim == r->ndim;
    for (int32_t d = 0; same && d < r->ndim; d++) same = v->shape[d] == r->shape[d];
    if (!same) p->status = ref_refuse_shape(p->n, p->err);
    if (slot < 0) continue;
    r->slot = (uint32_t)slot;
    wanted++;
  }
  if (more_ok(p) && (wanted != region->n_outputs || wanted == 0))
    more_refuse(p, "its region has an output that is not its result");
}

static bool is_own(const heddle_pnode *node) {
  return node->domain != NULL && strcmp(node->domain, "heddle") == 0;
}

heddle_status more_plan_node(const ref_node *n, more_op *m, int32_t *needs, bool *known, heddle_error *err) {
  const bool own = is_own(n->node);
  const heddle__operator *op = heddle__operator_find(own, n->node->op);
  const more_setup setup = op != NULL ? more_table[op - heddle__operators] : NULL;
  const uint32_t opset = region_opset(n->node, HEDDLE__OPSET_LAST);
  const heddle__version *version = own || opset != 0 ? heddle__version_find(own, n->node->op, opset) : NULL;
  *known = setup != NULL && version != NULL;
  if (!*known) return HEDDLE_EUNSUPPORTED;
  memset(m, 0, sizeof *m);
  more_plan p = {.n = n, .m = m, .entry = version, .needs = -1, .err = err};
  check_node(&p);
  if (more_ok(&p)) setup(&p);
  if (more_ok(&p)) check_narrow(&p, m->out, m->n_out);
  if (more_ok(&p) && n->out != NULL) check_results(&p);
  if (needs != NULL) *needs = p.needs;
  return p.status;
}

/* ---------------------------------------------------------------- from there to a ref_op */

static void run_part(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                     uint64_t last) {
  const more_op *m = ref_tail(op);
  more_args a = {.scratch = workspace};
  for (uint32_t k = 0; k < m->n_in; k++) a.in[k] = m->in[k].slot != UINT32_MAX ? inputs[m->in[k].slot] : NULL;
  for (uint32_t k = 0; k < m->n_out; k++) a.out[k] = m->out[k].slot != UINT32_MAX ? outputs[m->out[k].slot] : NULL;
  for (uint32_t k = 0; k < m->n_out; k++) {
    if (a.out[k] == NULL || m->out[k].count == 0) continue; /* not wanted, or empty */
    m->run(m, &a, (int64_t)first, (int64_t)last);
    return;
  }
}

static void fill(const ref_node *n, ref_op *op) {
  bool known;
  more_op *m = ref_tail(op);
  more_plan_node(n, m, NULL, &known, NULL);
  for (int k = 0; k < MORE_KEPT; k++) {
    const heddle_pattr *attr = m->kept_count[k] > 0 ? region_attr_find(n->node, m->kept[k]) : NULL;
    if (attr != NULL)
      memcpy((int64_t *)(void *)(m + 1) + m->kept_at[k], attr->data, m->kept_count[k] * sizeof(int64_t));
  }
  if (m->settle != NULL) m->settle(m);
}

/* Gelu is in ref/ as an operator of domain "heddle". */
static bool plan_as_own(const heddle_pregion *region, ref_node *n, ref_op *op, const ref_entry **out_entry) {
  heddle_pregion own = *region;
  heddle_pnode node = *n->node;
  ref_node other;
  if (strcmp(node.op, "Gelu") != 0 ||
      heddle__version_find(false, node.op, region_opset(&node, HEDDLE__OPSET_LAST)) == NULL)
    return false;
  node.domain = "heddle";
  own.nodes = (heddle_parray){&node, 1, sizeof node};
  return ref_plan_region(&own, &other, op, out_entry, NULL) == HEDDLE_OK; /* its fill does not look at the domain */
}

heddle_status more_plan_region(const heddle_pregion *region, ref_node *n, ref_op *op, const ref_entry **out_entry,
                               heddle_error *err) {
  static const ref_entry entry = {.fill = fill};
  more_op m;
  bool known = false;
  double bytes = 0;
  const bool other = n->node == NULL || n->node->op == NULL || n->out == NULL ||
                     (n->node->domain != NULL && n->node->domain[0] != '\0' && !is_own(n->node));
  if (other || region->n_outputs == 0) return HEDDLE_EUNSUPPORTED; /* ref/ has said why */
  if (!is_own(n->node) && plan_as_own(region, n, op, out_entry)) return HEDDLE_OK;
  /* Of a type that ref/ takes, or would: its own words say more. */
  const int type = n->in[0] != NULL ? more_type_of(n->in[0]->dtype) : REF_TYPE_NONE;
  const heddle__operator *known_op = heddle__operator_find(is_own(n->node), n->node->op);
  const bool words = (known_op != NULL && ref_table[known_op - heddle__operators].plan == NULL) ||
                     type >= MORE_TYPE_F16 || type == REF_TYPE_F64 || type == REF_TYPE_U64;
  if (!words) err = NULL;
  heddle_status s = more_plan_node(n, &m, NULL, &known, err);
  if (s != HEDDLE_OK) return more_plan_half(region, n, op, out_entry, known ? NULL : err);
  memset(op, 0, sizeof *op);
  for (uint32_t k = 0; k < REF_OPERANDS; k++) op->slot[k] = m.in[k].slot;
  for (uint32_t k = 0; k < m.n_in; k++) bytes += (double)m.in[k].count * m.in[k].size;
  for (uint32_t k = 0; k < m.n_out; k++) bytes += (double)m.out[k].count * m.out[k].size;
  if (m.loops) ref_set_work(op, run_part, (uint64_t)m.units, m.steps, bytes);
  else ref_set_work(op, run_part, (uint64_t)m.units, 20 * m.steps, 10 * bytes);
  if (m.unsliced) op->slice = 0;
  for (uint32_t k = 0; k < m.n_out; k++) {
    if (m.in_place[k] == 0 || m.out[k].slot == UINT32_MAX) continue;
    op->in_place |= UINT32_C(1) << (m.in_place[k] - 1);
    op->in_place_of[m.in_place[k] - 1] = m.out[k].slot;
    if (m.extends) op->extends |= UINT32_C(1) << (m.in_place[k] - 1);
    op->extends_along = -1;
  }
  op->tail_bytes = sizeof m + m.kept_all * sizeof(int64_t);
  op->workspace_bytes = m.scratch_bytes;
  if (m.part_scratch > 0) ref_set_part_scratch(op, m.part_scratch);
  *out_entry = &entry;
  return HEDDLE_OK;
}

bool more_has(uint32_t i) {
  return more_table[i] != NULL;
}
