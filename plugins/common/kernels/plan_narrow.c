/* Elements of 8 bits and less: the kernels of narrow.cl, and Cast and CastLike of them. */
#include "plan_elementwise.h"
#include "plan_portable.h"

#include "plugins/common/more/narrow.h"

_Static_assert((int)NARROW_FORMAT == (int)K_FORMAT, "a format has as many numbers");

int k_narrow_seen(int type) {
  int64_t format[NARROW_FORMAT];
  narrow_format(type, format);
  if (type < MORE_TYPE_NARROW_WHOLE) return REF_TYPE_F32;
  return format[NARROW_FORMAT - 1] == NARROW_SIGNED ? REF_TYPE_I8 : REF_TYPE_U8;
}

static heddle_status add(k_node *n, uint8_t kernel, int from, k_narrow *p, uint64_t count, uint32_t arg,
                         uint32_t result, heddle_error *err) {
  k_launch how = {.kernel = kernel, .n_types = 1, .items = count};
  heddle_status s = k_element_of(n, (uint32_t)from, &how.types[0], err);
  if (s == HEDDLE_OK && count > INT32_MAX) s = ref_refuse(&n->ref, err, "an operand has over 2147483647 elements");
  if (s != HEDDLE_OK) return s;
  p->count = (int64_t)count;
  how.turns = 64;
  return k_launch_add(n, &how, p, sizeof *p, 2, (uint32_t[]){arg, result}, err);
}

heddle_status k_narrow_load_add(k_node *n, int type, uint64_t count, uint32_t arg, uint32_t result, heddle_error *err) {
  k_narrow p = {0};
  narrow_format(type, p.format);
  return add(n, KERNEL_narrow_load, k_narrow_seen(type), &p, count, arg, result, err);
}

heddle_status k_narrow_store_add(k_node *n, int from, int type, bool saturate, int rounds, uint64_t count, uint32_t arg,
                                 uint32_t result, heddle_error *err) {
  k_narrow p = {.saturate = saturate, .rounds = rounds};
  narrow_format(type, p.format);
  return add(n, KERNEL_narrow_store, from, &p, count, arg, result, err);
}

static bool is_byte(int type) {
  return type == REF_TYPE_I8 || type == REF_TYPE_U8;
}

/* By way of what kernels see of the operand, in the workspace unless that is the result. */
heddle_status k_plan_cast_narrow(k_node *n, heddle_error *err) {
  enum { SATURATE, ROUNDS }; /* as in plugins/common/more/cast.c */
  more_op m;
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  const int from = m.in[0].type, to = m.out[0].type, seen = narrow_is(from) ? k_narrow_seen(from) : from;
  const uint64_t count = (uint64_t)m.in[0].count;
  uint32_t arg = k_input(n, 0);
  if (narrow_is(from)) {
    const bool whole = seen == to || (is_byte(seen) && is_byte(to));
    const uint32_t result = whole ? k_output(n, 0) : K_WORKSPACE;
    if (!whole) n->plan->part_bytes[0] = count * more_type_bytes(seen);
    s = k_narrow_load_add(n, from, count, arg, result, err);
    if (s != HEDDLE_OK || whole) return s;
    arg = result;
  }
  if (narrow_is(to))
    return k_narrow_store_add(n, seen, to, m.i[SATURATE] != 0, (int)m.i[ROUNDS], count, arg, k_output(n, 0), err);
  heddle_pvalue x = *n->ref.in[0];
  x.dtype = more_dtype(seen);
  return k_cast_to_result(n, &x, arg, err);
}
