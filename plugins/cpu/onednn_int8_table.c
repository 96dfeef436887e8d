/* A function of a byte: DequantizeLinear, operators of one operand (or of one and a constant number),
 * QuantizeLinear. Its 256 results are computed by the plain kernels when the region is prepared, so that they are
 * theirs bit for bit. */
#include "onednn_int8.h"
#include "plugins/common/scalar.h"

enum { NUMBERS = 256, TABLE_INPUTS = 4 };

static bool is_constant_number(const heddle_pvalue *v) {
  uint64_t count = 0;
  return v != NULL && v->data != NULL && region_value_count(v, &count) && count == 1 && v->ndim <= 1;
}

bool int8_is_function(const heddle_pregion *region, const heddle_pnode *node, int32_t *on) {
  bool known = false;
  if (node == NULL || node->op == NULL || node->n_outputs != 1 || node->n_inputs < 1 || node->n_inputs > TABLE_INPUTS)
    return false;
  if (node->domain == NULL || node->domain[0] == '\0') known = (scalar_find(node->op).kinds & SCALAR_REAL) != 0;
  else known = strcmp(node->domain, "heddle") == 0 && strcmp(node->op, "Gelu") == 0;
  *on = -1;
  for (uint32_t k = 0; known && k < node->n_inputs; k++) {
    if (node->inputs[k] < 0 || is_constant_number(region_value(region, node->inputs[k]))) continue;
    if (*on >= 0) return false; /* two, or the same one twice */
    *on = node->inputs[k];
  }
  return known && *on >= 0;
}

bool int8_read_table(const heddle_pregion *region, int8_table *out) {
  const uint64_t n = region->nodes.count;
  const heddle_pnode *first = region_node(region, 0), *last = region_node(region, n > 0 ? n - 1 : 0);
  float scale;
  int32_t zero, on;
  *out = (int8_table){.region = region};
  if (n < 2 || n > INT8_STEPS || region->n_outputs != 1 || region->n_inputs > ONEDNN_INPUTS ||
      !int8_is_op(first, "DequantizeLinear") || !int8_is_op(last, "QuantizeLinear"))
    return false;
  out->value = first->inputs[0];
  out->x = region_node_input(region, first, 0);
  out->y = region_node_output(region, last, 0);
  if (out->y == NULL || !int8_read_quantum(region, first, out->x, &scale, &zero) ||
      !int8_read_quantum(region, last, out->y, &scale, &zero) || !region_shape_equal(out->x, out->y) ||
      region_output_slot(region, last->outputs[0]) != 0 || region_input_slot(region, out->value) < 0)
    return false;
  for (uint64_t i = 1; i < n; i++) {
    const heddle_pnode *node = region_node(region, i), *before = region_node(region, i - 1);
    const heddle_pvalue *from = region_value(region, before->outputs[0]);
    if (!region_dtype_is(from->dtype, HEDDLE_DTYPE_FLOAT, 32) || !region_shape_equal(from, out->x)) return false;
    if (i < n - 1 && (!int8_is_function(region, node, &on) || on != before->outputs[0])) return false;
  }
  return last->inputs[0] == region_node(region, n - 2)->outputs[0];
}

/* Runs node i on NUMBERS elements, from one buffer to the other. */
static heddle_status run_step(const heddle_host *host, const heddle_pregion *region, const heddle_pnode *node,
                              int32_t on, void *from, void *to, heddle_error *err) {
  heddle_pregion one = *region;
  int32_t inputs[TABLE_INPUTS], output = node->outputs[0];
  void *addresses[TABLE_INPUTS];
  ref_op *op = NULL;
  one.nodes = (heddle_parray){node, 1, sizeof *node};
  one.inputs = inputs;
  one.outputs = &output;
  one.n_inputs = 0;
  one.n_outputs = 1;
  for (uint32_t k = 0; k < node->n_inputs; k++) {
    bool known = node->inputs[k] < 0;
    for (uint32_t j = 0; j < one.n_inputs; j++) known = known || inputs[j] == node->inputs[k];
    if (known) continue;
    const heddle_pvalue *v = region_value(&one, node->inputs[k]);
    addresses[one.n_inputs] = node->inputs[k] == on ? from : (void *)(uintptr_t)v->data;
    inputs[one.n_inputs++] = node->inputs[k];
  }
  heddle_status s = ref_prepare(host, &one, &op, err);
  if (s == HEDDLE_OK && ref_workspace(&one) == 0) ref_run(op, addresses, &to, NULL);
  else if (s == HEDDLE_OK) s = HEDDLE_EUNSUPPORTED;
  ref_free(op);
  return s;
}

heddle_status int8_table_make(const heddle_host *host, const int8_table *t, uint8_t table[256], heddle_error *err) {
  static const int64_t shape[] = {NUMBERS};
  const heddle_pregion *region = t->region;
  _Alignas(64) float numbers[2][NUMBERS];
  _Alignas(64) uint8_t bytes[2][NUMBERS];
  heddle_pregion flat = *region;
  const uint64_t count = region->values.count;
  heddle_pvalue *values = host->alloc(host->ctx, (count + 1) * sizeof *values, _Alignof(heddle_pvalue));
  if (values == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu:0: no memory for a table of bytes");
  for (uint64_t i = 0; i < count; i++) {
    const heddle_pvalue *v = region_value(region, (int64_t)i);
    memset(&values[i], 0, sizeof values[i]);
    memcpy(&values[i], v, sizeof *v < v->struct_size ? sizeof *v : v->struct_size);
    values[i].struct_size = sizeof values[i];
    values[i].layout = 0;
  }
  flat.values = (heddle_parray){values, count, sizeof *values};
  int32_t on = t->value;
  heddle_status s = HEDDLE_OK;
  for (int i = 0; i < NUMBERS; i++) bytes[0][i] = (uint8_t)i;
  for (uint64_t i = 0; i < region->nodes.count && s == HEDDLE_OK; i++) {
    heddle_pnode node = {.struct_size = sizeof node};
    const heddle_pnode *given = region_node(region, i);
    memcpy(&node, given, sizeof node < given->struct_size ? sizeof node : given->struct_size);
    const bool last = i + 1 == region->nodes.count;
    heddle_pvalue *const changed[] = {&values[on], &values[node.outputs[0]]};
    for (int k = 0; k < 2; k++) {
      changed[k]->shape = shape;
      changed[k]->ndim = 1;
      changed[k]->data = NULL;
    }
    s = run_step(host, &flat, &node, on, i == 0 ? (void *)bytes[0] : (void *)numbers[i % 2],
                 last ? (void *)bytes[1] : (void *)numbers[(i + 1) % 2], err);
    on = node.outputs[0];
  }
  if (s == HEDDLE_OK) memcpy(table, bytes[1], NUMBERS);
  host->free(host->ctx, values);
  return s;
}
