/* ArgMax, ArgMin and TopK: the kernels of along.cl, with a group, an item or a group of items for each column. */
#include "plan_elementwise.h"

/* A column of so many elements is worth a group; one of up to so many is ranked where there are few columns. */
enum { LONG_COLUMN = 128, RANKED = 4096, FEW_COLUMNS = 256 };

static heddle_status add_step(k_node *n, uint8_t kernel, uint64_t groups, uint64_t columns, const ref_along *f,
                              k_step **out, heddle_error *err) {
  const k_along p = {.columns = (int64_t)columns,
                     .n = f->n,
                     .inner = f->inner,
                     .k = f->k,
                     .largest = f->largest,
                     .last = f->last,
                     .nan_first = f->nan_first};
  const heddle_dtype type = n->ref.in[0]->dtype;
  const uint8_t element = k_scalar_element(n, type);
  if (element == K_ELEMENT_COUNT) return k_refuse_type(n, type, err);
  heddle_status s = k_kernel_add(n->plan, kernel, groups, 2 * columns * (uint64_t)f->n, out, err);
  if (s != HEDDLE_OK) return s;
  k_step *step = *out;
  step->code.n_types = 1;
  step->code.types[0] = element;
  step->params.along = p;
  step->params_bytes = sizeof p;
  step->args[step->n_args++] = k_input(n, 0);
  step->args[step->n_args++] = k_output(n, 0);
  return HEDDLE_OK;
}

static heddle_status plan_arg(k_node *n, heddle_error *err) {
  ref_op op;
  const ref_along *f = &op.u.along;
  k_step *step = NULL;
  uint64_t columns = 0;
  k_ref_op(n, &op);
  heddle_status s = ref_plan_arg(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &columns);
  if (columns == 0) return HEDDLE_OK;
  const bool chosen = f->n >= LONG_COLUMN && columns < UINT64_C(1) << 20;
  const bool group = k_prefers(n, KERNEL_arg_group, chosen) && f->n >= K_GROUP; /* each of a group has an element */
  n->plan->work += 2.0 * (double)columns * (double)f->n;
  return add_step(n, group ? KERNEL_arg_group : KERNEL_arg_item, group ? columns : k_groups(columns), columns, f, &step,
                  err);
}

static heddle_status plan_top_k(k_node *n, heddle_error *err) {
  ref_op op;
  const ref_along *f = &op.u.along;
  k_step *step = NULL;
  uint64_t results = 0;
  k_ref_op(n, &op);
  heddle_status s = ref_plan_top_k(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &results);
  if (results == 0) return HEDDLE_OK;
  const uint64_t columns = results / (uint64_t)f->k, elements = columns * (uint64_t)f->n;
  const bool ranked = columns < FEW_COLUMNS && f->n <= RANKED;
  n->plan->work += ranked ? (double)elements * (double)f->n : 20.0 * (double)elements;
  s = add_step(n, ranked ? KERNEL_top_rank : KERNEL_top_heap, k_groups(ranked ? elements : columns), columns, f, &step,
               err);
  if (s == HEDDLE_OK) step->args[step->n_args++] = k_output(n, 1);
  return s;
}

const k_entry k_along_table[] = {
    {"ArgMax", K_WIDENS, plan_arg},
    {"ArgMin", K_WIDENS, plan_arg},
    {"TopK", K_WIDENS, plan_top_k},
    {0},
};
