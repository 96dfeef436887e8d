/* The reductions over any axes. Neighbouring axes that are both reduced or both kept are one. A unit is up to COLUMNS
 * neighbouring elements of the result: along the last axis where that is kept; along the last kept axis where the rows
 * that are reduced are short. A row of LONG elements or more is folded into LANES results, and these into one. Sums of
 * reals are in float64, of at most four float32 added as such; those of integers wrap. */
#include "folds.h"
#include "lanes.h"
#include "ref_op.h"
#include "types.h"

#include <math.h>

enum { COLUMNS = 256, LANES = REF_FOLD_LANES, LONG = 192, SOME = 1024, PIECE = 1 << 20 };
enum { SUM, MEAN, MAX, MIN, PROD, L1, L2, LOG_SUM, LOG_SUM_EXP, SUM_SQUARE };

/* How a unit is computed. The results lie apart from each other in the operand; so many rows of them are stride apart. */
typedef struct columns {
  ref_fold fold;
  ref_lanes exp; /* of what is less than the greatest; NULL: of elements as they are */
  uint32_t type, size;
  int64_t n, apart, rows, stride;
  int64_t sum_size; /* bytes of a result of the fold */
} columns;

typedef union sums {
  double real[COLUMNS];
  int64_t whole[COLUMNS];
} sums;

static int fold_of(const ref_reduce *r) {
  static const uint8_t folds[] = {REF_FOLD_SUM, REF_FOLD_SUM,    REF_FOLD_MAX, REF_FOLD_MIN, REF_FOLD_PROD,
                                  REF_FOLD_L1,  REF_FOLD_SQUARE, REF_FOLD_SUM, REF_FOLD_SUM, REF_FOLD_SQUARE};
  return r->what == MEAN && r->type > REF_TYPE_F64 ? REF_FOLD_WIDE : folds[r->what];
}

int64_t ref_reduce_start(const ref_reduce *r) {
  if (r->type <= REF_TYPE_F64) return 0;
  return r->what == MAX ? ref_type_least((int)r->type) : r->what == MIN ? ref_type_most((int)r->type) : r->what == PROD;
}

/* What n results of a fold begin as. */
static void begin(const ref_reduce *r, int what, int type, int64_t n, sums *s) {
  const double real = what == REF_FOLD_MAX ? -INFINITY : what == REF_FOLD_MIN ? INFINITY : what == REF_FOLD_PROD;
  const int64_t whole = ref_reduce_start(r);
  int64_t one;
  if (type <= REF_TYPE_F64) ref_cast(REF_TYPE_F64, &real, type, &one, 1);
  else ref_cast(REF_TYPE_I64, &whole, type, &one, 1);
  ref_take(&one, 0, ref_type_bytes(type), n, s);
}

/* Exponentials of the differences from the greatest, which shift has of each column. */
static void take_exp(const columns *c, const char *x, int64_t rows, const double *shift, sums *s) {
  const float params[2] = {0};
  double space[SOME];
  float *single = (float *)(void *)space;
  const void *in[] = {space};
  const int64_t at_once = SOME / c->n;
  for (int64_t i = 0; i < rows; i += at_once) {
    const int64_t some = rows - i < at_once ? rows - i : at_once;
    for (int64_t k = 0; k < some; k++) {
      for (int64_t j = 0; j < c->n; j++) {
        const int64_t at = (i + k) * c->stride + j * c->apart;
        if (c->type == REF_TYPE_F32) single[k * c->n + j] = ((const float *)(const void *)x)[at] - (float)shift[j];
        else space[k * c->n + j] = ((const double *)(const void *)x)[at] - shift[j];
      }
    }
    c->exp(space, in, some * c->n, params);
    c->fold(s, space, c->n, 1, some, c->n);
  }
}

/* Results that take short rows, which lie one after the other. */
static void take_turned(const columns *c, const char *x, sums *s) {
  int64_t block[REF_TURN_BYTES / sizeof(int64_t)];
  const int64_t most = REF_TURN_BYTES / (c->rows * c->size);
  for (int64_t i = 0, some; i < c->n; i += some) {
    some = c->n - i < most ? c->n - i : most;
    ref_turn(c->size, x + i * c->rows * c->size, some, c->rows, block);
    c->fold((char *)s + i * c->sum_size, block, some, 1, c->rows, some);
  }
}

/* All rows at x, in pieces; false: the run is to end. */
static bool take(const ref_op *op, const columns *c, const char *x, const double *shift, sums *s, int64_t *work) {
  const int64_t most = PIECE / c->n + 1;
  for (int64_t i = 0, some; i < c->rows; i += some) {
    some = c->rows - i < most ? c->rows - i : most;
    const char *at = x + i * c->stride * c->size;
    if (c->exp != NULL) take_exp(c, at, some, shift, s);
    else if (c->apart == c->rows && c->stride == 1 && some == c->rows && c->n > 1 && some < LONG) take_turned(c, at, s);
    else c->fold(s, at, c->n, c->apart, some, c->stride);
    if (ref_tick(op, work, some * c->n + 8)) return false;
  }
  return true;
}

/* What lies behind the whole rows of LANES. */
static columns rest_of(const columns *c, int64_t row) {
  columns rest = *c;
  rest.n = row % LANES;
  rest.rows = rest.n > 0;
  return rest;
}

/* Folds everything that the unit takes, which begins at x. */
static bool fold_all(const ref_op *op, const columns *c, const char *x, const double *shift, sums *s, int64_t *work) {
  const ref_reduce *r = &op->u.reduce;
  const int32_t outer = r->row_kept && r->reduced > 0 ? r->reduced - 1 : r->reduced; /* the last one is the rows */
  const bool is_long = !r->row_kept && r->row >= LONG;
  const columns rest = is_long ? rest_of(c, r->row) : (columns){0};
  int64_t at[REF_MAX_DIMS] = {0};
  for (bool more = r->count > 0; more;) {
    if (!take(op, c, x, shift, s, work)) return false;
    if (is_long && rest.rows > 0 && !take(op, &rest, x + c->rows * LANES * c->size, shift, s, work)) return false;
    more = false;
    for (int32_t d = outer - 1; d >= 0 && !more; d--) {
      x += r->stride[d] * c->size;
      more = ++at[d] < r->dim[d];
      if (more) break;
      at[d] = 0;
      x -= r->stride[d] * r->dim[d] * c->size;
    }
  }
  return true;
}

static int joins_by(int what) {
  return what == REF_FOLD_PROD || what == REF_FOLD_MAX || what == REF_FOLD_MIN ? what : REF_FOLD_SUM;
}

static void finish(const ref_reduce *r, int type, const double *shift, int64_t n, sums *s, char *out) {
  for (int64_t i = 0; i < n && type == REF_TYPE_F64; i++) {
    double *x = &s->real[i];
    if (r->what == MEAN) *x /= (double)r->count;
    else if (r->what == L2) *x = sqrt(*x);
    else if (r->what == LOG_SUM) *x = log(*x);
    else if (r->what == LOG_SUM_EXP) *x = log(*x) + shift[i];
  }
  for (int64_t i = 0; i < n && r->what == MEAN && r->type > REF_TYPE_F64; i++)
    s->whole[i] = r->count > 0 ? s->whole[i] / r->count : 0;
  ref_cast(type, s, (int)r->type, out, n);
}

/* The greatest of each column, or 0 where that is infinite. */
static bool find_shift(const ref_op *op, const columns *c, const char *x, int64_t width, double *shift, int64_t *work) {
  const ref_reduce *r = &op->u.reduce;
  columns most = *c;
  sums s;
  most.fold = ref_fold_of((int)r->type, REF_FOLD_MAX);
  most.sum_size = c->size;
  most.exp = NULL;
  begin(r, REF_FOLD_MAX, (int)r->type, most.n, &s);
  if (!fold_all(op, &most, x, NULL, &s, work)) return false;
  if (width < most.n) ref_fold_join((int)r->type, REF_FOLD_MAX, &s);
  ref_cast((int)r->type, &s, REF_TYPE_F64, shift, width);
  for (int64_t i = 0; i < most.n; i++)
    shift[i] = isinf(shift[width < most.n ? 0 : i]) ? 0 : shift[width < most.n ? 0 : i];
  return true;
}

/* The results of units along one axis: how many there are, and how far they lie apart. */
static int64_t along_of(const ref_reduce *r, int64_t *apart) {
  *apart = 1;
  if (r->row_kept) return r->row;
  if (r->row >= LONG || r->kept == 0) return 1;
  *apart = r->kept_stride[r->kept - 1];
  return r->kept_dim[r->kept - 1];
}

static void reduce(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                   uint64_t last) {
  const ref_reduce *r = &op->u.reduce;
  const int what = fold_of(r), type = ref_fold_type((int)r->type, what);
  columns c = {.fold = ref_fold_of((int)r->type, what), .type = r->type};
  ref_lane_op exp;
  const int64_t along = along_of(r, &c.apart);
  const uint64_t across = (uint64_t)((along + COLUMNS - 1) / COLUMNS);
  const bool is_long = !r->row_kept && r->row >= LONG;
  const int32_t kept = !r->row_kept && !is_long && r->kept > 0 ? r->kept - 1 : r->kept;
  int64_t work = 0;
  (void)workspace;
  c.size = ref_type_bytes((int)r->type);
  c.sum_size = ref_type_bytes(type);
  c.rows = r->row_kept ? (r->reduced > 0 ? r->dim[r->reduced - 1] : 1) : is_long ? r->row / LANES : r->row;
  c.stride = r->row_kept ? (r->reduced > 0 ? r->stride[r->reduced - 1] : 0) : is_long ? LANES : 1;
  if (r->what == LOG_SUM_EXP && ref_lane_find("Exp", &exp)) c.exp = exp.of[r->type];
  for (uint64_t unit = first; unit < last; unit++) {
    uint64_t rest = unit / across;
    const int64_t column = (int64_t)(unit % across) * COLUMNS;
    const int64_t width = along - column < COLUMNS ? along - column : COLUMNS;
    int64_t offset = column * c.apart;
    double shift[COLUMNS];
    sums s;
    for (int32_t d = kept - 1; d >= 0; d--) {
      offset += (int64_t)(rest % (uint64_t)r->kept_dim[d]) * r->kept_stride[d];
      rest /= (uint64_t)r->kept_dim[d];
    }
    const char *x = (const char *)inputs[op->slot[0]] + offset * c.size;
    c.n = is_long ? LANES : width;
    if (c.exp != NULL && !find_shift(op, &c, x, width, shift, &work)) return;
    begin(r, what, type, c.n, &s);
    if (!fold_all(op, &c, x, shift, &s, &work)) return;
    if (is_long) ref_fold_join(type, joins_by(what), &s);
    finish(r, type, shift, width, &s,
           (char *)outputs[0] + ((unit / across) * (uint64_t)along + (uint64_t)column) * c.size);
  }
}

heddle_status ref_plan_reduce(const ref_node *n, ref_op *op, heddle_error *err) {
  static const char *const names[] = {"ReduceSum", "ReduceMean", "ReduceMax",    "ReduceMin",       "ReduceProd",
                                      "ReduceL1",  "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"};
  ref_reduce *r = &op->u.reduce;
  const heddle_pvalue *x = n->in[0], *y = n->out;
  int64_t axes[REF_MAX_DIMS], noop = 0, keep = 1, strides[REF_MAX_DIMS], stride = 1;
  const int64_t *list;
  uint64_t given, results = 0, elements = 0;
  uint32_t count, mask = 0;
  heddle_status s = region_attr_ints(n->node, "axes", &list, &given, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "noop_with_empty_axes", 0, &noop, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "keepdims", 1, &keep, err);
  if (s == HEDDLE_OK) s = ref_ints(n, 1, axes, REF_MAX_DIMS, &count, err);
  if (s != HEDDLE_OK) return s;
  for (r->what = SUM; strcmp(n->node->op, names[r->what]) != 0; r->what++) continue;
  r->type = (uint32_t)ref_type_of(x->dtype);
  const bool real = r->what == L2 || r->what == LOG_SUM || r->what == LOG_SUM_EXP; /* of integers too: more/ */
  const bool known = r->type <= REF_TYPE_F64 || (r->type < REF_TYPE_U64 && !real) ||
                     (r->type == REF_TYPE_U64 && !real && r->what != MEAN);
  if (!known || !region_dtype_equal(x->dtype, y->dtype)) return ref_refuse(n, err, "it does not take this type");
  if (x->ndim > REF_MAX_DIMS || given > REF_MAX_DIMS)
    return ref_refuse(n, err, "more than %d dimensions", REF_MAX_DIMS);
  if (count == UINT32_MAX) {
    for (count = 0; count < given; count++) axes[count] = list[count];
  }
  if (count == 0 && noop == 0) count = UINT32_MAX; /* all */
  s = ref_axes(n, axes, &count, x->ndim, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < count; i++) mask |= UINT32_C(1) << axes[i];

  int32_t k = 0;
  for (int32_t d = 0; d < x->ndim; d++) {
    const bool gone = (mask >> d & 1) != 0;
    if (gone && keep == 0) continue;
    if (k >= y->ndim || y->shape[k++] != (gone ? 1 : x->shape[d])) return ref_refuse_shape(n, err);
  }
  if (k != y->ndim) return ref_refuse_shape(n, err);
  for (int32_t d = x->ndim - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= x->shape[d] > 0 ? x->shape[d] : 1;
  }
  r->row = 1;
  r->count = 1;
  int32_t last = x->ndim - 1;
  while (last >= 0 && x->shape[last] == 1) last--;
  if (last >= 0) r->row_kept = (mask >> last & 1) == 0;
  for (; last >= 0 && ((mask >> last & 1) == 0) == (r->row_kept != 0); last--) r->row *= x->shape[last];
  if (!r->row_kept) r->count = r->row;
  for (int32_t d = 0; d <= last; d++) {
    if ((mask >> d & 1) != 0) {
      r->count *= x->shape[d];
      r->dim[r->reduced] = x->shape[d];
      r->stride[r->reduced++] = strides[d];
    } else {
      r->kept_dim[r->kept] = x->shape[d];
      r->kept_stride[r->kept++] = strides[d];
    }
  }
  op->absorbed = 2;
  region_value_count(y, &results);
  region_value_count(x, &elements);
  int64_t apart;
  const uint64_t along = (uint64_t)along_of(r, &apart);
  const uint64_t units = results > 0 ? results / along * ((along + COLUMNS - 1) / COLUMNS) : 0;
  const double steps = r->what == LOG_SUM_EXP ? 20 : 2;
  ref_set_work(op, reduce, units, steps * (double)elements,
               0.4 * (double)elements * (double)region_dtype_bytes(x->dtype));
  return HEDDLE_OK;
}
