/* Resize: the reference kernels' tables of elements and weights go to the device, so that one kernel does all modes. */
#include "plan_portable.h"

/* A plan makes the tables each time it is made, so that they are not to take long. */
#define MOST_TABLE (UINT64_C(64) << 20)

/* Is place i element i, for all of a dimension? */
static bool is_plain(const ref_resize_tables *t, const ref_cell *cells, int32_t d) {
  if (t->taps[d] != 1 || t->in[d] != t->out[d]) return false;
  for (int64_t i = 0; i < t->out[d]; i++) {
    const ref_cell *row = cells + t->at[d] + 2 * i;
    if (row[0].first != i || row[1].weight != 1.0f) return false;
  }
  return true;
}

/* Neighbouring dimensions that stay as they are become one. */
static heddle_status set_dims(const k_node *n, const ref_resize_tables *t, const ref_cell *cells, k_resize *p,
                              int32_t *dims, heddle_error *err) {
  bool plain = false;
  p->sums = 1;
  for (int32_t d = 0; d < t->dims; d++) {
    const bool same = is_plain(t, cells, d);
    if (same && plain) {
      p->in_[*dims - 1] *= t->in[d];
      p->out_[*dims - 1] *= t->out[d];
      continue;
    }
    if (*dims == K_DIMS)
      return ref_refuse(&n->ref, err, "it resizes more than %d dimensions that cannot be joined", K_DIMS);
    plain = same;
    p->in_[*dims] = t->in[d];
    p->out_[*dims] = t->out[d];
    p->taps[*dims] = same ? 0 : t->taps[d];
    p->at[(*dims)++] = t->at[d];
    if (!same) p->sums *= t->taps[d];
  }
  return HEDDLE_OK;
}

static heddle_status add_step(k_node *n, const ref_resize_tables *t, uint64_t tail_bytes, heddle_error *err) {
  const ref_cell *cells = (const ref_cell *)(const void *)(t + 1);
  const uint64_t bytes = tail_bytes - sizeof *t;
  uint64_t count = 0, in = 0;
  int32_t dims = 0;
  const int type = ref_type_of(n->ref.out->dtype);
  k_resize p = {.outside = t->extrapolation};
  void *table = NULL;
  heddle_status s = set_dims(n, t, cells, &p, &dims, err);
  if (s == HEDDLE_OK) s = k_table_new(n, bytes, &table, err);
  if (s != HEDDLE_OK) return s;
  memcpy(table, cells, bytes);
  region_value_count(n->ref.out, &count);
  region_value_count(n->ref.in[0], &in);
  uint64_t largest = count > in ? count : in;
  if (largest < bytes / sizeof *cells) largest = bytes / sizeof *cells;
  if (largest < (uint64_t)p.sums) largest = (uint64_t)p.sums;
  p.count = (int64_t)count;
  k_launch how = {.kernel = KERNEL_resize,
                  .n_types = 1,
                  .types = {K_ELEMENT_F32},
                  .items = count,
                  .limit = largest,
                  .turns = (double)p.sums,
                  .variant = dims,
                  .floats = 4};
  if (type != REF_TYPE_F32 && t->single) {
    const more_value word = {.size = (uint8_t)ref_type_bytes(type)};
    how.kernel = KERNEL_resize_pick;
    how.types[0] = k_word_element(&word);
  } else if (type != REF_TYPE_F32) {
    how.kernel = KERNEL_resize_any;
    how.n_types = 2;
    if (type != REF_TYPE_F64) {
      p.low = (float)ref_type_least(type);
      p.top = (float)ref_type_end(type);
    }
    s = k_element_of(n, (uint32_t)type, &how.types[0], err);
    if (s == HEDDLE_OK) s = k_element_of(n, REF_TYPE_F64, &how.types[1], err);
    if (s != HEDDLE_OK) return s;
  }
  return k_launch_add(n, &how, &p, sizeof p, 3, (uint32_t[]){K_TABLE, k_input(n, 0), k_output(n, 0)}, err);
}

static heddle_status plan_resize(k_node *n, heddle_error *err) {
  const heddle_host *host = n->plan->host;
  ref_op planned;
  uint64_t count = 0;
  k_ref_op(n, &planned);
  heddle_status s = ref_plan_resize(&n->ref, &planned, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &count);
  if (count == 0) return HEDDLE_OK;
  if (planned.tail_bytes > MOST_TABLE)
    return ref_refuse(&n->ref, err, "its tables would have %llu bytes, of which each plan fills all",
                      (unsigned long long)planned.tail_bytes);
  ref_op *op = host->alloc(host->ctx, sizeof *op + planned.tail_bytes, _Alignof(ref_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to plan an operator");
  *op = planned;
  ref_fill_resize(&n->ref, op);
  s = add_step(n, ref_tail(op), op->tail_bytes, err);
  host->free(host->ctx, op);
  return s;
}

const k_entry k_resize_table[] = {
    {"Resize", K_WIDENS, plan_resize},
    {0},
};
