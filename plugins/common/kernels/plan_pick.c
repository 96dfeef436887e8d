/* Gather and Pad: the kernels of pick.cl, over words of elements of any whole number of bytes. */
#include "plan_elementwise.h"

/* One more than the largest index of a value's words. */
static uint64_t words_in(const heddle_pvalue *value, int64_t words) {
  uint64_t count = 0;
  region_value_count(value, &count);
  return count * (uint64_t)words;
}

static heddle_status plan_gather(k_node *n, heddle_error *err) {
  ref_op op;
  k_step *step = NULL;
  int64_t words = 1;
  k_ref_op(n, &op);
  heddle_status s = ref_plan_gather(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  const char *word = k_word_of(region_dtype_bytes(n->ref.out->dtype), &words);
  const uint64_t count = words_in(n->ref.out, words), from = words_in(n->ref.in[0], words);
  if (count == 0) return HEDDLE_OK;
  s = k_kernel_add(n->plan, "pick", "gather", k_groups(count), count > from ? count : from, "-DT=%s -DTI=%s", &step,
                   err, word, op.u.gather.wide ? "long" : "int");
  if (s != HEDDLE_OK) return s;
  const int64_t element = (int64_t)region_dtype_bytes(n->ref.out->dtype) / words;
  step->params.gather = (k_gather){.count = (int64_t)count,
                                   .indices = (int64_t)op.u.gather.indices,
                                   .axis = (int64_t)op.u.gather.axis,
                                   .inner = (int64_t)op.u.gather.bytes / element};
  step->params_bytes = sizeof step->params.gather;
  step->args[step->n_args++] = k_input(n, 0);
  step->args[step->n_args++] = k_input(n, 1);
  step->args[step->n_args++] = k_output(n, 0);
  n->plan->work += 2.0 * (double)count;
  return HEDDLE_OK;
}

/* Dimensions from the last to the first; neighbours that are not padded become one. */
static heddle_status set_dims(const k_node *n, const ref_pad *f, int64_t words, k_pad *p, heddle_error *err) {
  int64_t in[REF_MAX_DIMS + 1] = {words}, out[REF_MAX_DIMS + 1] = {words}, before[REF_MAX_DIMS + 1] = {0};
  int32_t count = 1;
  bool plain = true;
  for (int32_t d = f->dims - 1; d >= 0; d--) {
    const bool same = f->before[d] == 0 && f->in[d] == f->out[d];
    if (same && plain) {
      in[count - 1] *= f->in[d];
      out[count - 1] *= f->out[d];
    } else {
      in[count] = f->in[d];
      out[count] = f->out[d];
      before[count++] = f->before[d];
    }
    plain = same;
  }
  if (count > K_DIMS) return ref_refuse(&n->ref, err, "it pads %d dimensions; up to %d are supported", count, K_DIMS);
  p->dims = count;
  for (int32_t d = 0; d < count; d++) {
    p->in[d] = in[count - 1 - d];
    p->out[d] = out[count - 1 - d];
    p->before[d] = before[count - 1 - d];
  }
  return HEDDLE_OK;
}

static heddle_status plan_pad(k_node *n, heddle_error *err) {
  static const int64_t modes[] = {K_PAD_FILL, K_PAD_REFLECT, K_PAD_EDGE}; /* as the reference plan counts them */
  ref_op op;
  k_pad p = {0};
  k_step *step = NULL;
  int64_t words = 1;
  k_ref_op(n, &op);
  heddle_status s = ref_plan_pad(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  const char *word = k_word_of(op.u.pad.size, &words);
  const uint64_t count = words_in(n->ref.out, words), from = words_in(n->ref.in[0], words);
  const bool filled = n->ref.in[2] != NULL;
  if (count == 0) return HEDDLE_OK;
  s = set_dims(n, &op.u.pad, words, &p, err);
  /* A place before it is moved by the pads may lie twice as far out. */
  if (s == HEDDLE_OK)
    s = k_kernel_add(n->plan, "pick", "pad", k_groups(count), 2 * (count + from), "-DT=%s -DFILL=%d", &step, err, word,
                     filled);
  if (s != HEDDLE_OK) return s;
  p.count = (int64_t)count;
  p.words = words;
  p.mode = modes[op.u.pad.mode];
  step->params.pad = p;
  step->params_bytes = sizeof p;
  step->args[step->n_args++] = k_input(n, 0);
  if (filled) step->args[step->n_args++] = k_input(n, 2);
  step->args[step->n_args++] = k_output(n, 0);
  n->plan->work += 4.0 * (double)count;
  return HEDDLE_OK;
}

const k_entry k_pick_table[] = {
    {"Gather", HEDDLE__TYPES_BYTES, plan_gather},
    {"Pad", HEDDLE__TYPES_BYTES, plan_pad},
    {0},
};
