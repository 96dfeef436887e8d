/* Operators that pick elements or put them somewhere by indices: the kernels of select.cl; and those that a walk or a
 * padding does. The general reference kernels' setups check the nodes. */
#include "plan_elementwise.h"
#include "plan_portable.h"

/* Kernels read the places of indices as 31 bits. Sets what all of these have in common: how wide indices are, the shape
 * of operand 0 as from. */
static heddle_status points(k_node *n, const more_op *m, k_select *p, heddle_error *err) {
  const more_value *x = &m->in[0];
  p->wide = m->in[1].type == REF_TYPE_I64;
  p->dims = x->ndim;
  memcpy(p->from, x->shape, sizeof p->from);
  for (int32_t d = 0; d < x->ndim; d++) {
    if (x->shape[d] > INT32_MAX) return ref_refuse(&n->ref, err, "dimension %d of operand 0 is over 2147483647", d);
  }
  return HEDDLE_OK;
}

/* Elements of an operand of indices as 32-bit words. */
static uint64_t words_of(const more_value *indices) {
  return 2 * (uint64_t)indices->count;
}

static heddle_status plan_gather_elements(k_node *n, heddle_error *err) {
  more_op m;
  k_select p = {0};
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = points(n, &m, &p, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "axis", 0, &p.axis, err);
  if (s != HEDDLE_OK) return s;
  p.axis += p.axis < 0 ? m.in[0].ndim : 0;
  p.count = m.out[0].count;
  memcpy(p.shape, m.out[0].shape, sizeof p.shape);
  const k_launch how = {.kernel = KERNEL_gather_elements,
                        .n_types = 1,
                        .types = {k_word_element(&m.in[0])},
                        .items = (uint64_t)p.count,
                        .limit = words_of(&m.in[1])};
  return k_launch_add(n, &how, &p, sizeof p, 3, (uint32_t[]){k_input(n, 0), k_input(n, 1), k_output(n, 0)}, err);
}

static heddle_status plan_gather_nd(k_node *n, heddle_error *err) {
  more_op m;
  k_select p = {0};
  int64_t batch_dims = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = points(n, &m, &p, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "batch_dims", 0, &batch_dims, err);
  if (s != HEDDLE_OK) return s;
  const more_value *x = &m.in[0], *index = &m.in[1];
  p.count = m.out[0].count;
  p.n = index->shape[index->ndim - 1];
  p.inner = more_count(x->shape, batch_dims + p.n, x->ndim);
  p.rows = more_count(index->shape, batch_dims, index->ndim - 1);
  p.axis = more_count(x->shape, batch_dims, x->ndim);
  for (int64_t k = 0; k < p.n; k++) p.from[k] = x->shape[batch_dims + k];
  const k_launch how = {.kernel = KERNEL_gather_nd,
                        .n_types = 1,
                        .types = {k_word_element(x)},
                        .items = (uint64_t)p.count,
                        .limit = words_of(index)};
  return k_launch_add(n, &how, &p, sizeof p, 3, (uint32_t[]){k_input(n, 0), k_input(n, 1), k_output(n, 0)}, err);
}

/* ---------------------------------------------------------------- scatters */

/* The copy of operand 0, in whose place the result may be unless another operand is the same, and the type of the words
 * for the reduction. */
static heddle_status scatter_into(k_node *n, const more_op *m, k_select *p, k_launch *how, heddle_error *err) {
  static const char *const words[] = {"none", "add", "mul", "max", "min"};
  const char *reduction = "none";
  heddle_status s = region_attr_string(n->ref.node, "reduction", "none", &reduction, err);
  while (p->mode < 4 && strcmp(words[p->mode], reduction) != 0) p->mode++; /* the setup has refused others */
  if (s == HEDDLE_OK) s = k_plan_copy(n, err);
  if (k_input(n, 0) == k_input(n, 1) || k_input(n, 0) == k_input(n, 2)) n->plan->n_pairs = 0;
  how->n_types = 1;
  how->types[0] = k_word_element(&m->in[0]);
  how->limit = words_of(&m->in[1]);
  if (s == HEDDLE_OK && p->mode != 0) s = k_element_of(n, m->in[0].type, &how->types[0], err);
  return s;
}

static heddle_status scatter_add(k_node *n, const k_launch *how, const k_select *p, heddle_error *err) {
  return k_launch_add(n, how, p, sizeof *p, 3, (uint32_t[]){k_input(n, 1), k_input(n, 2), k_output(n, 0)}, err);
}

static heddle_status plan_scatter_elements(k_node *n, heddle_error *err) {
  more_op m;
  k_select p = {0};
  k_launch how = {0};
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = points(n, &m, &p, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "axis", 0, &p.axis, err);
  if (s == HEDDLE_OK) s = scatter_into(n, &m, &p, &how, err);
  if (s != HEDDLE_OK || m.in[1].count == 0) return s;
  p.axis += p.axis < 0 ? m.in[0].ndim : 0;
  p.n = m.in[0].ndim > 0 ? m.in[1].shape[p.axis] : 1;
  p.count = m.in[1].count / p.n;
  memcpy(p.shape, m.in[1].shape, sizeof p.shape);
  how.kernel = p.mode == 0 ? KERNEL_scatter_elements : KERNEL_scatter_elements_with;
  how.items = (uint64_t)p.count;
  how.turns = (double)p.n;
  return scatter_add(n, &how, &p, err);
}

static heddle_status plan_scatter_nd(k_node *n, heddle_error *err) {
  more_op m;
  k_select p = {0};
  k_launch how = {0};
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = points(n, &m, &p, err);
  if (s == HEDDLE_OK) s = scatter_into(n, &m, &p, &how, err);
  if (s != HEDDLE_OK || m.in[1].count == 0) return s;
  p.n = m.in[1].shape[m.in[1].ndim - 1];
  p.rows = m.in[1].count / p.n;
  p.inner = more_count(m.in[0].shape, p.n, m.in[0].ndim);
  how.kernel = p.mode == 0 ? KERNEL_scatter_nd : KERNEL_scatter_nd_with;
  how.items = (uint64_t)p.inner;
  how.turns = (double)p.rows * (double)(1 + p.n);
  return scatter_add(n, &how, &p, err);
}

static heddle_status plan_tensor_scatter(k_node *n, heddle_error *err) {
  more_op m;
  k_select p = {0};
  const char *mode = "linear";
  int64_t axis = -2;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "axis", -2, &axis, err);
  if (s == HEDDLE_OK) s = region_attr_string(n->ref.node, "mode", "linear", &mode, err);
  if (s != HEDDLE_OK) return s;
  const more_value *x = &m.in[0], *update = &m.in[1];
  const bool indexed = n->ref.in[2] != NULL;
  if (indexed && m.in[2].type != REF_TYPE_I64 && m.in[2].type != REF_TYPE_I32)
    return ref_refuse(&n->ref, err, "operand 2 is of other integers than int32 and int64");
  s = k_plan_copy(n, err);
  if (s != HEDDLE_OK || update->count == 0) return s;
  if (k_input(n, 0) == k_input(n, 1) || (indexed && k_input(n, 0) == k_input(n, 2))) n->plan->n_pairs = 0;
  else if (indexed && strcmp(mode, "circular") != 0) k_allow_extending(n, 0, 0); /* rows before an index stay */
  axis += axis < 0 ? x->ndim : 0;
  p.count = update->count;
  p.axis = x->shape[axis];
  p.n = update->shape[axis];
  p.inner = more_count(x->shape, axis + 1, x->ndim);
  p.rows = more_count(x->shape, 1, axis);
  p.mode = strcmp(mode, "circular") == 0;
  if (!indexed) {
    void *table = NULL;
    s = k_table_new(n, (uint64_t)x->shape[0] * sizeof(int64_t), &table, err);
    if (s != HEDDLE_OK) return s;
    memset(table, 0, (size_t)x->shape[0] * sizeof(int64_t));
  }
  const k_launch how = {
      .kernel = KERNEL_tensor_scatter,
      .n_types = 2,
      .types = {k_word_element(x), indexed && m.in[2].type == REF_TYPE_I32 ? K_ELEMENT_I32 : K_ELEMENT_I64},
      .items = (uint64_t)p.count};
  return k_launch_add(n, &how, &p, sizeof p, 3,
                      (uint32_t[]){k_input(n, 1), indexed ? k_input(n, 2) : K_TABLE, k_output(n, 0)}, err);
}

/* ---------------------------------------------------------------- by where an element is */

static heddle_status plan_trilu(k_node *n, heddle_error *err) {
  more_op m;
  k_select p = {0};
  void *table = NULL;
  const bool given = n->ref.in[1] != NULL;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "upper", 1, &p.mode, err);
  if (s != HEDDLE_OK) return s;
  const more_value *x = &m.in[0];
  p.count = x->count;
  p.n = x->shape[x->ndim - 1];
  p.rows = x->shape[x->ndim - 2];
  if (!given) {
    s = k_table_new(n, sizeof(int64_t), &table, err);
    if (s != HEDDLE_OK) return s;
    memset(table, 0, sizeof(int64_t));
  }
  const k_launch how = {.kernel = KERNEL_trilu, .n_types = 1, .types = {k_word_element(x)}, .items = (uint64_t)p.count};
  return k_launch_add(n, &how, &p, sizeof p, 3,
                      (uint32_t[]){k_input(n, 0), given ? k_input(n, 1) : K_TABLE, k_output(n, 0)}, err);
}

static heddle_status plan_eye_like(k_node *n, heddle_error *err) {
  more_op m;
  k_select p = {0};
  void *table = NULL;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "k", 0, &p.axis, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  const more_value *y = &m.out[0];
  p.count = y->count;
  p.n = y->shape[1];
  /* Beyond the matrix there is no diagonal, and the kernel counts in 31 bits. */
  if (p.axis > INT32_MAX) p.axis = INT32_MAX;
  if (p.axis < -INT32_MAX) p.axis = -INT32_MAX;
  s = k_table_new(n, 2 * (uint64_t)y->size, &table, err);
  if (s != HEDDLE_OK) return s;
  more_put(y, table, 0, 0);
  more_put(y, table, 1, 1);
  const k_launch how = {.kernel = KERNEL_eye, .n_types = 1, .types = {k_word_element(y)}, .items = (uint64_t)p.count};
  return k_launch_add(n, &how, &p, sizeof p, 2, (uint32_t[]){K_TABLE, k_output(n, 0)}, err);
}

static heddle_status plan_one_hot(k_node *n, heddle_error *err) {
  more_op m;
  k_select p = {0};
  k_launch how = {.kernel = KERNEL_one_hot, .n_types = 2};
  int64_t axis = -1;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "axis", -1, &axis, err);
  if (s == HEDDLE_OK) s = k_element_of(n, m.in[0].type, &how.types[0], err);
  if (s != HEDDLE_OK) return s;
  axis += axis < 0 ? m.out[0].ndim : 0;
  p.count = m.out[0].count;
  p.n = m.out[0].shape[axis];
  p.inner = more_count(m.in[0].shape, axis, m.in[0].ndim);
  if (p.n > INT32_MAX) return ref_refuse(&n->ref, err, "its depth is over 2147483647");
  how.types[1] = k_word_element(&m.in[2]);
  how.items = (uint64_t)p.count;
  return k_launch_add(n, &how, &p, sizeof p, 3, (uint32_t[]){k_input(n, 0), k_input(n, 2), k_output(n, 0)}, err);
}

static heddle_status plan_reverse_sequence(k_node *n, heddle_error *err) {
  more_op m;
  k_select p = {0};
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->ref.node, "time_axis", 0, &p.mode, err);
  if (s != HEDDLE_OK) return s;
  const more_value *x = &m.in[0], *lengths = &m.in[1];
  p.wide = lengths->type == REF_TYPE_I64;
  if (!p.wide && lengths->type != REF_TYPE_I32)
    return ref_refuse(&n->ref, err, "operand 1 is of other integers than int32 and int64");
  p.count = x->count;
  p.rows = x->shape[0];
  p.n = x->shape[1];
  p.inner = more_count(x->shape, 2, x->ndim);
  const k_launch how = {
      .kernel = KERNEL_reverse, .n_types = 1, .types = {k_word_element(x)}, .items = (uint64_t)p.count};
  return k_launch_add(n, &how, &p, sizeof p, 3, (uint32_t[]){k_input(n, 0), k_input(n, 1), k_output(n, 0)}, err);
}

/* DepthToSpace, SpaceToDepth: the setup leaves six dimensions of the result, and the operand's steps behind two more. */
static heddle_status plan_blocks(k_node *n, heddle_error *err) {
  enum { DIMS = 6, STEPS = 8 };
  more_op m;
  int64_t words = 1, step = 1;
  k_walk_plan w = {.n_operands = 1, .op = K_RAW_COPY, .dims = DIMS};
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK) return s;
  w.type[0] = w.type_out = k_words_of(m.in[0].size, &words);
  w.slot[0] = k_input(n, 0);
  w.slot_out = k_output(n, 0);
  for (int d = DIMS - 1; d >= 0; d--) {
    w.dim[d] = m.i[d];
    w.step[0][d] = m.i[STEPS + d];
    w.step[K_OPERANDS][d] = step;
    step *= m.i[d];
  }
  return k_walk_add(n, &w, err);
}

static heddle_status plan_size(k_node *n, heddle_error *err) {
  more_op m;
  void *table = NULL;
  heddle_status s = k_more_of(n, &m, err);
  if (s == HEDDLE_OK) s = k_table_new(n, sizeof(int64_t), &table, err);
  if (s != HEDDLE_OK) return s;
  memcpy(table, &m.in[0].count, sizeof(int64_t));
  return k_copy_add(n, K_TABLE, 0, k_output(n, 0), 0, sizeof(int64_t), err);
}

const k_entry k_select_table[] = {
    {"DepthToSpace", 0, plan_blocks},
    {"EyeLike", 0, plan_eye_like},
    {"GatherElements", 0, plan_gather_elements},
    {"GatherND", 0, plan_gather_nd},
    {"OneHot", 0, plan_one_hot},
    {"ReverseSequence", 0, plan_reverse_sequence},
    {"ScatterElements", 0, plan_scatter_elements},
    {"ScatterND", 0, plan_scatter_nd},
    {"Size", 0, plan_size},
    {"SpaceToDepth", 0, plan_blocks},
    {"TensorScatter", 0, plan_tensor_scatter},
    {"Trilu", 0, plan_trilu},
    {0},
};
