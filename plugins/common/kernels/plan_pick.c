/* Gather and Pad: the kernels of pick.cl, over words of elements of any whole number of bytes. */
#include "plan_portable.h"

/* One more than the largest index of a value's words. */
static uint64_t words_in(const heddle_pvalue *value, int64_t words) {
  uint64_t count = 0;
  region_value_count(value, &count);
  return count * (uint64_t)words;
}

static heddle_status plan_gather(k_node *n, heddle_error *err) {
  ref_op op;
  int64_t words = 1;
  uint64_t indices = 0;
  k_launch how = {.kernel = KERNEL_gather, .n_types = 1};
  k_ref_op(n, &op);
  heddle_status s = ref_plan_gather(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  how.types[0] = k_words_of(region_dtype_bytes(n->ref.out->dtype), &words);
  how.items = words_in(n->ref.out, words);
  how.limit = words_in(n->ref.in[0], words);
  if (how.limit < how.items) how.limit = how.items;
  region_value_count(n->ref.in[1], &indices);
  if (how.limit < 2 * indices) how.limit = 2 * indices; /* pairs of words */
  if (op.u.gather.axis > INT32_MAX) return ref_refuse(&n->ref, err, "its axis has over 2147483647 elements");
  const k_gather p = {.count = (int64_t)how.items,
                      .indices = (int64_t)op.u.gather.indices,
                      .axis = (int64_t)op.u.gather.axis,
                      .inner = (int64_t)op.u.gather.bytes / k_element_bytes[how.types[0]]};
  how.variant = op.u.gather.wide ? 2 : 1;
  return k_launch_add(n, &how, &p, sizeof p, 3, (uint32_t[]){k_input(n, 0), k_input(n, 1), k_output(n, 0)}, err);
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
    p->in_[d] = in[count - 1 - d];
    p->out_[d] = out[count - 1 - d];
    p->before[d] = before[count - 1 - d];
  }
  return HEDDLE_OK;
}

static heddle_status plan_pad(k_node *n, heddle_error *err) {
  static const int64_t modes[] = {K_PAD_FILL, K_PAD_REFLECT, K_PAD_EDGE}; /* as the reference plan counts them */
  ref_op op;
  k_pad p = {0};
  int64_t words = 1;
  k_launch how = {.kernel = KERNEL_pad, .n_types = 1};
  k_ref_op(n, &op);
  heddle_status s = ref_plan_pad(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  how.types[0] = k_words_of(op.u.pad.size, &words);
  how.items = words_in(n->ref.out, words);
  if (how.items == 0) return HEDDLE_OK;
  how.limit =
      2 * (how.items + words_in(n->ref.in[0], words)); /* before it is moved by the pads a place is further out */
  s = set_dims(n, &op.u.pad, words, &p, err);
  if (s != HEDDLE_OK) return s;
  p.count = (int64_t)how.items;
  p.words = words;
  p.mode = modes[op.u.pad.mode];
  const bool filled = n->ref.in[2] != NULL;
  how.variant = filled ? 2 : 1;
  how.turns = (double)p.dims;
  const uint32_t x = k_input(n, 0);
  return k_launch_add(n, &how, &p, sizeof p, 3, (uint32_t[]){x, filled ? k_input(n, 2) : x, k_output(n, 0)}, err);
}

const k_entry k_pick_table[] = {
    {"Gather", 0, plan_gather},
    {"Pad", 0, plan_pad},
    {0},
};
