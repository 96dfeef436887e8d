/* Operators that make a tensor of what is known when they are planned: Shape and Constant are a copy of a table,
 * ConstantOfShape one element of it repeated, Range a series; and Dropout, whose mask is all true. */
#include "plan_elementwise.h"
#include "plan_portable.h"

#include "plugins/common/ref/types.h"

/* The result, all of it, is the plan's table. */
static heddle_status copy_table(k_node *n, ref_kernel kernel, const ref_op *op, uint64_t bytes, heddle_error *err) {
  void *table = NULL;
  if (bytes == 0) return HEDDLE_OK;
  heddle_status s = k_table_new(n, bytes, &table, err);
  if (s != HEDDLE_OK) return s;
  kernel(op, NULL, &table, NULL, 0, op->units);
  return k_copy_add(n, K_TABLE, 0, k_output(n, 0), 0, bytes, err);
}

/* Shape and Constant: what the reference kernel writes. */
static heddle_status plan_known(k_node *n, heddle_error *err) {
  const heddle_host *host = n->plan->host;
  ref_op planned;
  uint64_t bytes = 0;
  k_ref_op(n, &planned);
  heddle_status s = ref_plan_fill(&n->ref, &planned, err);
  if (s != HEDDLE_OK) return s;
  ref_op *op = host->alloc(host->ctx, sizeof *op + planned.tail_bytes, _Alignof(ref_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to plan an operator");
  *op = planned;
  ref_fill_fill(&n->ref, op);
  region_value_bytes(n->ref.out, &bytes);
  s = copy_table(n, op->kernel, op, bytes, err);
  host->free(host->ctx, op);
  return s;
}

/* count elements of size bytes to a result, each the first of the table. */
static heddle_status repeat(k_node *n, uint32_t slot, uint64_t count, uint64_t size, heddle_error *err) {
  int64_t words = 1;
  k_walk_plan w = {.dims = 1, .n_operands = 1, .op = K_RAW_COPY, .slot = {K_TABLE}, .slot_out = slot};
  w.type[0] = w.type_out = k_words_of(size, &words);
  w.dim[0] = (int64_t)count;
  w.step[K_OPERANDS][0] = 1;
  return k_walk_add(n, &w, err);
}

static heddle_status plan_constant_of_shape(k_node *n, heddle_error *err) {
  ref_op op;
  void *table = NULL;
  double real = 0;
  int64_t whole = 0;
  uint64_t count = 0;
  const int type = ref_type_of(n->ref.out->dtype);
  const bool is_whole = region_attr_find(n->ref.node, "value_int") != NULL;
  k_ref_op(n, &op);
  heddle_status s = ref_plan_fill(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  s = k_table_new(n, sizeof(int64_t), &table, err);
  if (s != HEDDLE_OK) return s;
  region_attr_float(n->ref.node, "value_float", 0, &real, NULL);
  region_attr_int(n->ref.node, "value_int", 0, &whole, NULL);
  if (is_whole) ref_cast(REF_TYPE_I64, &whole, type, table, 1);
  else ref_cast(REF_TYPE_F64, &real, type, table, 1);
  region_value_count(n->ref.out, &count);
  return repeat(n, k_output(n, 0), count, region_dtype_bytes(n->ref.out->dtype), err);
}

static heddle_status plan_range(k_node *n, heddle_error *err) {
  more_op m;
  ref_op op;
  void *table = NULL;
  uint64_t count = 0;
  k_launch how = {.kernel = KERNEL_range, .n_types = 1};
  const uint64_t size = region_dtype_bytes(n->ref.out->dtype);
  k_ref_op(n, &op);
  heddle_status s = more_is_half(n->ref.out->dtype) ? k_more_of(n, &m, err) : ref_plan_fill(&n->ref, &op, err);
  if (s == HEDDLE_OK) s = k_element_of(n, (uint32_t)more_type_of(n->ref.out->dtype), &how.types[0], err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &count);
  if (count == 0) return HEDDLE_OK;
  s = k_table_new(n, 2 * size, &table, err);
  if (s != HEDDLE_OK) return s;
  memcpy(table, n->ref.in[0]->data, size);
  memcpy((char *)table + size, n->ref.in[2]->data, size);
  how.types[0] = k_unsigned_element(how.types[0]);
  how.items = how.limit = count;
  const k_general p = {.count = (int64_t)count};
  return k_launch_add(n, &how, &p, sizeof p, 2, (uint32_t[]){K_TABLE, k_output(n, 0)}, err);
}

static heddle_status plan_dropout(k_node *n, heddle_error *err) {
  ref_op op;
  void *table = NULL;
  uint64_t count = 0;
  const heddle_pvalue *mode = n->ref.in[2];
  if (mode != NULL && mode->data != NULL && *(const unsigned char *)mode->data != 0)
    return k_plan_dropout_training(n, err);
  k_ref_op(n, &op);
  heddle_status s = ref_plan_dropout(&n->ref, &op, err);
  if (s == HEDDLE_OK) s = k_plan_copy(n, err);
  if (s != HEDDLE_OK || op.result[1] == UINT32_MAX) return s;
  region_value_count(n->ref.out, &count);
  s = k_table_new(n, 1, &table, err);
  if (s != HEDDLE_OK) return s;
  memset(table, 1, 1);
  return repeat(n, k_output(n, 1), count, 1, err);
}

const k_entry k_fill_table[] = {
    {"Constant", 0, plan_known},      {"ConstantOfShape", 0, plan_constant_of_shape},
    {"Dropout", K_ANY, plan_dropout}, {"Range", 0, plan_range},
    {"Shape", 0, plan_known},         {0},
};
