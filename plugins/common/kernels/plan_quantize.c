/* QuantizeLinear and DequantizeLinear: the kernels of quantize.cl. The general reference kernels' setups check the nodes and
 * leave their geometry in the op's numbers; the names here are those of plugins/common/more/quantize.c. A kernel has
 * operands of one floating-point type: others are converted in the workspace, and so are types of 8 bits and less. */
#include "plan_portable.h"

enum { AXIS, BLOCK, INNER = 3, PRECISION, SATURATE };
enum { PART_X, PART_SCALE, PART_ZERO, PART_RESULT }; /* of the workspace */

static void set_scales(const more_op *m, k_quantize *p) {
  const more_value *x = &m->in[0], *scale = &m->in[1];
  p->count = x->count;
  p->mode = scale->count != 1;
  if (p->mode == 0) return;
  p->n = x->shape[m->i[AXIS]];
  p->inner = m->i[INNER];
  p->block = m->i[BLOCK];
  p->blocks = p->block != 0 ? scale->shape[m->i[AXIS]] : 0;
}

/* Operand k as a type: as it is, or converted into a part of the workspace. */
static heddle_status operand_as(k_node *n, const more_op *m, uint32_t k, int type, uint32_t part, uint32_t *arg,
                                heddle_error *err) {
  const more_value *x = &m->in[k];
  *arg = k_input(n, k);
  if (x->type == type) return HEDDLE_OK;
  const uint32_t own = *arg;
  *arg = K_WORKSPACE + part;
  n->plan->part_bytes[part] = (uint64_t)x->count * more_type_bytes(type);
  return narrow_is(x->type) ? k_narrow_load_add(n, x->type, (uint64_t)x->count, own, *arg, err)
                            : k_convert_add(n, x->type, type, (uint64_t)x->count, own, *arg, err);
}

/* The zero point as type, or a table of zeros. */
static heddle_status zero_as(k_node *n, const more_op *m, int type, uint32_t *arg, heddle_error *err) {
  return m->in[2].here ? operand_as(n, m, 2, type, PART_ZERO, arg, err)
                       : k_or_table(n, 2, type, m->in[1].count, 0, arg, err);
}

/* float64 where one of the types is that, else float32. */
static int wider(int a, int b, int c) {
  return a == REF_TYPE_F64 || b == REF_TYPE_F64 || c == REF_TYPE_F64 ? REF_TYPE_F64 : REF_TYPE_F32;
}

static heddle_status add(k_node *n, uint8_t kernel, const int types[2], const k_quantize *p, uint32_t n_args,
                         const uint32_t *args, heddle_error *err) {
  k_launch how = {.kernel = kernel, .n_types = types[1] != REF_TYPE_NONE ? 2 : 1};
  heddle_status s = HEDDLE_OK;
  for (uint32_t t = 0; t < how.n_types && s == HEDDLE_OK; t++)
    s = k_element_of(n, (uint32_t)types[t], &how.types[t], err);
  how.items = (uint64_t)p->count;
  return s == HEDDLE_OK ? k_launch_add(n, &how, p, sizeof *p, n_args, args, err) : s;
}

/* To float8 and float4, whose zero point is 0. */
static heddle_status quantize_narrow(k_node *n, const more_op *m, int type, const k_quantize *p, uint32_t x,
                                     uint32_t scale, heddle_error *err) {
  const int quotient = type == REF_TYPE_F64 ? REF_TYPE_F64 : REF_TYPE_F32;
  const uint32_t part = K_WORKSPACE + PART_RESULT;
  n->plan->part_bytes[PART_RESULT] = (uint64_t)p->count * more_type_bytes(quotient);
  heddle_status s = add(n, KERNEL_quotient, (int[]){type, REF_TYPE_NONE}, p, 3, (uint32_t[]){x, scale, part}, err);
  if (s != HEDDLE_OK) return s;
  return k_narrow_store_add(n, quotient, m->out[0].type, m->i[SATURATE] != 0, MORE_ROUND_UP, (uint64_t)p->count, part,
                            k_output(n, 0), err);
}

static heddle_status plan_quantize(k_node *n, heddle_error *err) {
  more_op m;
  k_quantize p = {0};
  uint32_t x = 0, scale = 0, zero = 0;
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  const int precision = (int)m.i[PRECISION], own = m.out[0].type;
  const bool same = m.in[0].type == m.in[1].type && m.in[0].type == precision, narrow = narrow_is(own);
  const bool whole = !more_type_is_real(m.in[0].type) && (n->plan->features & K_HAS_F64) != 0;
  const int type = same ? precision : whole ? REF_TYPE_F64 : wider(m.in[0].type, m.in[1].type, precision);
  const int to = narrow ? k_narrow_seen(own) : own;
  if (m.out[0].size > 2) return ref_refuse(&n->ref, err, "it quantizes to integers of 8 and 16 bits here");
  set_scales(&m, &p);
  if (precision != type) p.rounding = precision == REF_TYPE_F32 ? 1 : precision == MORE_TYPE_F16 ? 2 : 3;
  s = operand_as(n, &m, 0, type, PART_X, &x, err);
  if (s == HEDDLE_OK) s = operand_as(n, &m, 1, type, PART_SCALE, &scale, err);
  if (s != HEDDLE_OK) return s;
  if (narrow && own < MORE_TYPE_NARROW_WHOLE) return quantize_narrow(n, &m, type, &p, x, scale, err);
  p.least = narrow ? narrow_least(own) : ref_type_least(own);
  p.most = narrow ? narrow_most(own) : ref_type_most(own);
  s = zero_as(n, &m, to, &zero, err);
  if (s != HEDDLE_OK) return s;
  return add(n, KERNEL_quantize, (int[]){type, to}, &p, 4, (uint32_t[]){x, scale, zero, k_output(n, 0)}, err);
}

static heddle_status plan_dequantize(k_node *n, heddle_error *err) {
  more_op m;
  k_quantize p = {0};
  uint32_t x = 0, scale = 0, zero = 0, result = k_output(n, 0);
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK || m.in[0].count == 0) return s;
  const int out = m.out[0].type, from = narrow_is(m.in[0].type) ? k_narrow_seen(m.in[0].type) : m.in[0].type;
  const int type = m.in[1].type == out ? out : wider(m.in[1].type, out, out);
  set_scales(&m, &p);
  s = operand_as(n, &m, 0, from, PART_X, &x, err);
  if (s == HEDDLE_OK) s = operand_as(n, &m, 1, type, PART_SCALE, &scale, err);
  if (s == HEDDLE_OK) s = zero_as(n, &m, from, &zero, err);
  if (s != HEDDLE_OK) return s;
  if (type != out) {
    result = K_WORKSPACE + PART_RESULT;
    n->plan->part_bytes[PART_RESULT] = (uint64_t)p.count * more_type_bytes(type);
  }
  /* Differences of up to 33 bits and products of float32 are made in float32, others in float64. */
  const bool wide = from == REF_TYPE_U32 || from == REF_TYPE_I64 || from == REF_TYPE_U64 || type == REF_TYPE_F64;
  uint8_t real = 0;
  if (wide) s = k_element_of(n, REF_TYPE_F64, &real, err);
  const uint8_t kernel = from == REF_TYPE_F32 ? KERNEL_dequantize_real
                         : wide               ? KERNEL_dequantize_wide
                                              : KERNEL_dequantize;
  if (s == HEDDLE_OK) s = add(n, kernel, (int[]){from, type}, &p, 4, (uint32_t[]){x, scale, zero, result}, err);
  if (s != HEDDLE_OK || type == out) return s;
  return k_convert_add(n, type, out, (uint64_t)p.count, result, k_output(n, 0), err);
}

const k_entry k_quantize_table[] = {
    {"DequantizeLinear", K_ANY, plan_dequantize},
    {"QuantizeLinear", K_ANY, plan_quantize},
    {0},
};
