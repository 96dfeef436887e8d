/* Operators that give a number for each number, after broadcasting: of all types, on double, or on int64 and uint64 for
 * integers. A function per operator of its scalar expression, called for each element. */
#include "elementwise.h"

#define S_REAL double
#define S_LIBM(name) name
#include "plugins/common/scalar.h"
#include "plugins/common/scalar_c.h"

#define LANE(name, T, R, ...) \
  static R name(T a, T b, T c, double alpha, double beta) { \
    (void)a, (void)b, (void)c, (void)alpha, (void)beta; \
    return (__VA_ARGS__); \
  }
#define NONE(...)
#define SCALAR(name, kind, n, cost, ...) LANE_##kind(name, __VA_ARGS__)

static double sigmoid(double x) {
  const double e = exp(-fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* ---------------------------------------------------------------- of reals */

#define S_NUM(x) x
#define S_ISNAN(x) ((x) != (x))
#define S_EXP(x) exp(x)
#define S_TANH(x) tanh(x)
#define S_SIGMOID(x) sigmoid(x)
#define S_POW(x, y) pow(x, y)
#define S_REM(x, y) fmod(x, y)
#define S_MOD(x, y) real_mod(x, y)
#define LANE_REAL(name, ...) LANE(real_##name, double, double, __VA_ARGS__)
#define LANE_TEST LANE_REAL
#define LANE_TEST_REAL LANE_REAL
#define LANE_NUMBER LANE_REAL
#define LANE_INT NONE
#define LANE_LOGIC NONE
#include "operators/all.def"

/* ---------------------------------------------------------------- of integers */

#undef S_ISNAN
#undef S_POW
#undef S_REM
#undef S_MOD
#undef LANE_REAL
#undef LANE_TEST
#undef LANE_TEST_REAL
#undef LANE_NUMBER
#undef LANE_INT
#define S_ISNAN(x) false
#define S_POW(x, y) S_WHOLE(pow)(x, y)
#define S_REM(x, y) S_WHOLE(rem)(x, y)
#define S_MOD(x, y) S_WHOLE(mod)(x, y)
#define LANE_REAL NONE
#define LANE_TEST_REAL NONE
#define LANE_TEST LANE_INT
#define LANE_NUMBER LANE_INT

#define S_WRAP(x) ((int64_t)(x))
#define S_INT(x) INT64_C(x)
#define S_WHOLE(name) signed_##name
#define LANE_INT(name, ...) LANE(whole_##name, int64_t, int64_t, __VA_ARGS__)
#define SCALAR(name, kind, n, cost, ...) LANE_##kind(name, __VA_ARGS__)
#include "operators/all.def"

#undef S_WRAP
#undef S_INT
#undef S_WHOLE
#undef LANE_INT
#define S_WRAP(x) ((uint64_t)(x))
#define S_INT(x) ((uint64_t)INT64_C(x))
#define S_WHOLE(name) unsigned_##name
#define LANE_INT(name, ...) LANE(natural_##name, uint64_t, uint64_t, __VA_ARGS__)
#define SCALAR(name, kind, n, cost, ...) LANE_##kind(name, __VA_ARGS__)
#include "operators/all.def"

/* ---------------------------------------------------------------- by name */

#define ALL(name) real_##name, whole_##name, natural_##name
#define REAL(name) real_##name, NULL, NULL
#define INT(name) NULL, whole_##name, natural_##name
#define NUMBER ALL
#define TEST ALL
#define TEST_REAL REAL
#define LOGIC(name) NULL, NULL, NULL

static const more_lane lanes[] = {
#define SCALAR(name, kind, ...) {#name, SCALAR_##kind, kind(name)},
#include "operators/all.def"
    {"", 0, NULL, NULL, NULL},
};

/* NULL where there is none for reals, or for integers. */
static const more_lane *find_lane(const char *name, bool whole) {
  for (uint32_t i = 0; lanes[i].kind != 0; i++) {
    if (strcmp(lanes[i].name, name) == 0 && (whole ? lanes[i].whole != NULL : lanes[i].real != NULL)) return &lanes[i];
  }
  return NULL;
}

/* ---------------------------------------------------------------- kernels */

enum { IS_MEAN, IS_UNARY }; /* of m->i */

static void run_real(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const double alpha = m->f[0], beta = m->f[1];
  for (int64_t i = first; i < last; i++) {
    double x = more_get(&m->in[0], a->in[0], more_at(&m->in[0], &m->out[0], i));
    if (m->i[IS_UNARY]) x = m->lane->real(x, 0, 0, alpha, beta);
    for (uint32_t k = 1; k < m->n_in; k++)
      x = m->lane->real(x, more_get(&m->in[k], a->in[k], more_at(&m->in[k], &m->out[0], i)), 0, alpha, beta);
    more_put(&m->out[0], a->out[0], i, m->i[IS_MEAN] ? x / m->n_in : x);
  }
}

/* Of integers, in one of the two types: what more_get_int gives of an unsigned one is its bits. */
static int64_t compute_whole(const more_op *m, int64_t x, int64_t y, int64_t z) {
  const double alpha = m->f[0], beta = m->f[1];
  if (!more_type_is_unsigned(m->in[0].type)) return m->lane->whole(x, y, z, alpha, beta);
  return (int64_t)m->lane->natural((uint64_t)x, (uint64_t)y, (uint64_t)z, alpha, beta);
}

static void run_whole(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; i++) {
    int64_t x = more_get_int(&m->in[0], a->in[0], more_at(&m->in[0], &m->out[0], i));
    if (m->i[IS_UNARY]) x = compute_whole(m, x, 0, 0);
    for (uint32_t k = 1; k < m->n_in; k++)
      x = compute_whole(m, x, more_get_int(&m->in[k], a->in[k], more_at(&m->in[k], &m->out[0], i)), 0);
    more_store_int(m->out[0].type, a->out[0], i, x);
  }
}

/* ---------------------------------------------------------------- setups */

static void setup(more_plan *p, bool unary) {
  more_op *m = p->m;
  int64_t shape[MORE_DIMS];
  int32_t ndim = m->in[0].ndim;
  scalar_call call;
  const char *op = p->entry->name;
  const int type = m->in[0].type;
  const heddle__operator *known = heddle__operator_find(p->entry->own, op);
  const bool power = strcmp(op, "Pow") == 0, mean = strcmp(op, "Mean") == 0;
  memcpy(shape, m->in[0].shape, sizeof shape);
  for (uint32_t k = 1; k < m->n_in; k++) {
    if (!power) more_same_type(p, 0, k);
    more_broadcast(p, shape, &ndim, k);
  }
  if (!more_ok(p)) return;
  p->status = scalar_read(p->n->node, &call, p->err);
  if (!more_ok(p)) return;
  if (type == REF_TYPE_BOOL && (known == NULL || (known->types & HEDDLE__TYPE(BOOL)) == 0))
    more_refuse(p, "it takes no bool");
  const bool whole = more_type_is_whole(type) && !(power && more_type_is_real(m->in[1].type));
  m->lane = find_lane(mean ? "Mean_last" : call.name, whole);
  if (m->lane == NULL) more_refuse(p, "it does not take this type");
  if (!more_ok(p)) return;
  m->f[0] = mean ? 1 : call.alpha; /* divided by at the end, so that the sum is rounded once */
  m->f[1] = call.beta;
  m->i[IS_UNARY] = unary; /* Max of one operand is that operand */
  m->i[IS_MEAN] = mean;
  more_result(p, 0, (m->lane->kind & SCALAR_TEST) != 0 ? REF_TYPE_BOOL : type, ndim, shape);
  more_work(p, whole ? run_whole : run_real, m->out[0].count, (double)m->out[0].count);
}

void more_setup_unary(more_plan *p) {
  setup(p, true);
}

void more_setup_binary(more_plan *p) {
  if (strcmp(p->entry->name, "SwiGLU") == 0) more_same_shape(p, 0, 1);
  setup(p, false);
}

static void run_clip(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *v = &m->in[0];
  if (more_type_is_real(v->type)) {
    const double least = a->in[1] != NULL ? more_get(&m->in[1], a->in[1], 0) : more_lowest(v->type);
    const double most = a->in[2] != NULL ? more_get(&m->in[2], a->in[2], 0) : more_highest(v->type);
    for (int64_t i = first; i < last; i++)
      more_put(&m->out[0], a->out[0], i, m->lane->real(more_get(v, a->in[0], i), least, most, 0, 0));
    return;
  }
  const int64_t least = a->in[1] != NULL ? more_get_int(&m->in[1], a->in[1], 0) : ref_type_least(v->type);
  const int64_t most = a->in[2] != NULL ? more_get_int(&m->in[2], a->in[2], 0) : ref_type_most(v->type);
  for (int64_t i = first; i < last; i++)
    more_store_int(v->type, a->out[0], i, compute_whole(m, more_get_int(v, a->in[0], i), least, most));
}

void more_setup_clip(more_plan *p) {
  more_number(p, 0);
  for (uint32_t k = 1; k < 3; k++) {
    more_same_type(p, 0, k);
    if (more_operand(p, k) && p->m->in[k].count != 1) more_refuse(p, "operand %u must be one number", k);
  }
  p->m->lane = find_lane("Clip", more_type_is_whole(p->m->in[0].type));
  more_result_like(p, 0, 0);
  more_work(p, run_clip, p->m->out[0].count, (double)p->m->out[0].count);
}
