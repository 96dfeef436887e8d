/* From one type to another: Cast, CastLike, BitCast. */
#include "more.h"

#include "plugins/common/halves.h"

static bool is_half(int type) {
  return type == MORE_TYPE_F16 || type == MORE_TYPE_BF16;
}

/* Between float32 and halves. */
static bool is_halving(const more_value *x, const more_value *y) {
  return (x->type == REF_TYPE_F32 && is_half(y->type)) || (is_half(x->type) && y->type == REF_TYPE_F32);
}

static void run_halves(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const uint64_t n = last > first ? (uint64_t)(last - first) : 0;
  const bool widens = is_half(m->in[0].type), brain = (widens ? m->in[0].type : m->out[0].type) == MORE_TYPE_BF16;
  if (n == 0) return;
  if (widens) halves_widen(brain, (const char *)a->in[0] + 2 * first, (float *)a->out[0] + first, n);
  else halves_narrow(brain, (const float *)a->in[0] + first, (char *)a->out[0] + 2 * first, n);
}

static void run_cast(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0], *y = &m->out[0];
  const bool whole = !more_type_is_real(x->type) && x->type != REF_TYPE_U64;
  for (int64_t i = first; i < last; i++) {
    if (whole) more_store_int(y->type, a->out[0], i, more_get_int(x, a->in[0], i));
    else if (x->type == REF_TYPE_U64 && !more_type_is_real(y->type))
      more_store_int(y->type, a->out[0], i, more_get_int(x, a->in[0], i));
    else more_put(y, a->out[0], i, more_get(x, a->in[0], i));
  }
}

enum { SATURATE, ROUNDS };

/* To a type of 8 bits or less. */
static void run_narrow(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int to = m->out[0].type;
  const bool wraps = to >= MORE_TYPE_NARROW_WHOLE && !more_type_is_real(x->type);
  uint8_t *y = a->out[0];
  for (int64_t i = first; i < last; i++)
    y[i] = wraps ? narrow_wrap(to, more_get_int(x, a->in[0], i))
                 : narrow_store(to, more_get(x, a->in[0], i), m->i[SATURATE] != 0, (int)m->i[ROUNDS]);
}

static void cast(more_plan *p, int to) {
  const more_value *x = &p->m->in[0];
  p->m->i[SATURATE] = more_int(p, "saturate", 1); /* these two are about types of 8 bits and less */
  p->m->i[ROUNDS] = more_choice(p, "round_mode", "up", "up down nearest");
  if (to == REF_TYPE_NONE) more_refuse(p, "it does not cast to that type");
  more_result(p, 0, to, x->ndim, x->shape);
  if (narrow_is(to)) more_work(p, run_narrow, x->count, 2 * (double)x->count);
  else if (is_halving(x, &p->m->out[0])) more_loop(p, run_halves, x->count, (double)x->count);
  else more_work(p, run_cast, x->count, (double)x->count);
}

void more_setup_cast(more_plan *p) {
  cast(p, more_type_of_onnx(more_int(p, "to", 0)));
}

void more_setup_cast_like(more_plan *p) {
  cast(p, p->m->in[1].type);
}

static void run_copy(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const size_t size = m->out[0].size;
  if (a->out[0] == NULL || last <= first || m->out[0].count == 0) return;
  memcpy((char *)a->out[0] + (size_t)first * size, (const char *)a->in[0] + (size_t)first * size,
         (size_t)(last - first) * size);
}

void more_setup_bit_cast(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int to = more_type_of_onnx(more_int(p, "to", 0));
  if (to == REF_TYPE_NONE || more_type_bytes(to) != x->size) more_refuse(p, "it takes a type of the same size");
  more_result(p, 0, to, x->ndim, x->shape);
  more_work(p, run_copy, x->count, 0);
}
