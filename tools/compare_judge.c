/* tools/compare_judge.c: two results of a node, element by element, against the bound of its operator. */
#include "compare_judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare_exact.h"
#include "numbers.h"
#include "plugins/common/check/bound.h"
#include "text.h"

/* What has no bound of its own (functions of a library, If, Loop, Scan) may be off by this much of the largest element,
 * times the unit roundoff of its type. */
#define UNITS_WITHOUT_RULE 1024

/* ---- the node as bound.h wants it */

static int32_t type_of(heddle_dtype d) {
  if (!numbers_are_floats(d)) return BOUND_WHOLE;
  if (d.bits == 16) return d.code == HEDDLE_DTYPE_BFLOAT ? BOUND_BF16 : BOUND_F16;
  return d.bits == 64 ? BOUND_F64 : BOUND_F32;
}

typedef struct asked {
  const session *s;
  const whole *w;
  uint32_t node, output;
  uint64_t n; /* elements of the output */
  bound_node b;
  bound_tensor in[MOST_DIMS];
  bound_attr attrs[MOST_DIMS];
} asked;

static bool evaluate(void *ctx, const double *const *x, double *y) {
  const asked *a = ctx;
  return exact_run(a->s, a->w, a->node, a->output, x, y, a->n);
}

static bool fill_attrs(asked *a, const json_t *attrs) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)attrs, key, value) {
    bound_attr *attr = &a->attrs[a->b.n_attrs];
    if (a->b.n_attrs == MOST_DIMS) return false;
    *attr = (bound_attr){.name = key, .number = json_number_value(value)};
    if (json_is_array(value) && json_array_size(value) > 0 && json_is_integer(json_array_get(value, 0))) {
      int64_t *list = calloc(json_array_size(value), sizeof *list);
      if (list == NULL) return false;
      for (size_t i = 0; i < json_array_size(value); i++) list[i] = json_integer_value(json_array_get(value, i));
      attr->ints = list;
      attr->count = json_array_size(value);
    } else if (!json_is_number(value)) {
      continue;
    }
    a->b.n_attrs++;
  }
  return true;
}

static bool fill(asked *a) {
  const json_t *node = json_array_get(a->w->nodes, a->node);
  const uint32_t n = whole_operands(a->w, a->node);
  if (n > MOST_DIMS || !fill_attrs(a, json_object_get(node, "attrs"))) return false;
  a->b.op = whole_op(a->w, a->node);
  a->b.attrs = a->attrs;
  a->b.in = a->in;
  a->b.n_in = n;
  a->b.output = a->output;
  a->b.evaluate = evaluate;
  a->b.ctx = a;
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t entry = whole_operand(a->w, a->node, k);
    if (entry == UINT32_MAX) continue;
    const heddle_tensor *t = a->w->values[entry];
    if (!numbers_known(heddle_tensor_dtype(t))) return false;
    a->in[k] = (bound_tensor){numbers_of(t), heddle_tensor_shape(t), (int32_t)heddle_tensor_ndim(t),
                              type_of(heddle_tensor_dtype(t))};
    if (a->in[k].x == NULL) return false;
  }
  return true;
}

static void empty(asked *a) {
  for (uint32_t k = 0; k < MOST_DIMS; k++) free((void *)(uintptr_t)a->in[k].x);
  for (uint32_t k = 0; k < a->b.n_attrs; k++) free((void *)(uintptr_t)a->attrs[k].ints);
}

static void without_rule(const bound_tensor *out, uint64_t n, double *bounds) {
  static const double units[] = {0x1p-24, 0x1p-53, 0x1p-11, 0x1p-8, 0};
  double most = 0;
  for (uint64_t i = 0; i < n; i++)
    if (isfinite(out->x[i]) && fabs(out->x[i]) > most) most = fabs(out->x[i]);
  const bool half = out->type == BOUND_F16 || out->type == BOUND_BF16;
  for (uint64_t i = 0; i < n; i++) bounds[i] = (half ? 4 : UNITS_WITHOUT_RULE) * units[out->type] * most;
}

/* ---- elements */

static void note(judgement *j, const heddle_tensor *t, uint64_t i, double want, double is, double bound) {
  const int64_t *shape = heddle_tensor_shape(t);
  uint64_t rest = i;
  double error = fabs(is - want);
  if (isnan(error)) error = (double)INFINITY;
  for (uint32_t d = j->ndim; d-- > 0;) {
    const int64_t at = (int64_t)(rest % (uint64_t)shape[d]);
    rest /= (uint64_t)shape[d];
    if (j->beyond == 0 || at < j->low[d]) j->low[d] = at;
    if (j->beyond == 0 || at > j->high[d]) j->high[d] = at;
  }
  if (j->beyond == 0) {
    j->first = i;
    j->got = is;
    j->expected = want;
    j->bound = bound;
  }
  if (j->beyond == 0 || error > j->error) {
    j->worst = i;
    j->worst_got = is;
    j->worst_expected = want;
    j->error = error;
  }
  j->beyond++;
  j->differs = true;
}

/* A bound for each element of the node's output, and its rule. */
static void bounds_of(asked *a, const heddle_tensor *expected, const double *reference, double *bounds,
                      const char **rule) {
  a->b.out = (bound_tensor){reference, heddle_tensor_shape(expected), (int32_t)heddle_tensor_ndim(expected),
                            type_of(heddle_tensor_dtype(expected))};
  if (fill(a) && check_bound_of(&a->b, bounds, rule)) return;
  *rule = "none";
  without_rule(&a->b.out, a->n, bounds);
}

static heddle_status judge_numbers(asked *a, const heddle_tensor *expected, const heddle_tensor *got, judgement *j,
                                   heddle_error *err) {
  const heddle_dtype d = heddle_tensor_dtype(expected);
  const unsigned char *want = heddle_tensor_data(expected), *is = heddle_tensor_data(got);
  double *reference = numbers_of(expected), *bounds = calloc((size_t)a->n + 1, sizeof *bounds);
  bool good = reference != NULL && bounds != NULL;
  const size_t width = d.bits / 8U;
  if (good) bounds_of(a, expected, reference, bounds, &j->rule);
  const double sides = good && strcmp(j->rule, "step") != 0 ? 2 : 1; /* a tie rounds to one of two */
  for (uint64_t i = 0; good && i < a->n; i++) {
    if (memcmp(want + i * width, is + i * width, width) == 0) continue;
    const double x = number_at(got, i);
    const bool exact = a->b.out.type == BOUND_WHOLE && !(bounds[i] > 0);
    if (exact || !check_bound_holds(a->b.out.type, reference[i], x, sides * bounds[i]))
      note(j, expected, i, reference[i], x, sides * bounds[i]);
  }
  free(reference);
  free(bounds);
  if (good) return HEDDLE_OK;
  snprintf(err->text, sizeof err->text, "out of memory");
  return err->status = HEDDLE_ENOMEM;
}

heddle_status judge(const session *s, const whole *w, const part *p, uint32_t k, bool fast,
                    const heddle_tensor *expected, const heddle_tensor *got, judgement *out, heddle_error *err) {
  const heddle_dtype d = heddle_tensor_dtype(expected), e = heddle_tensor_dtype(got);
  const uint32_t ndim = heddle_tensor_ndim(expected);
  *out = (judgement){.ndim = ndim, .rule = "exact"};
  out->other_type =
      d.code != e.code || d.bits != e.bits || d.lanes != e.lanes || ndim != heddle_tensor_ndim(got) ||
      (ndim > 0 && memcmp(heddle_tensor_shape(expected), heddle_tensor_shape(got), ndim * sizeof(int64_t)) != 0);
  out->differs = out->other_type;
  if (out->other_type) return HEDDLE_OK;
  const uint64_t bytes = heddle_tensor_bytes(expected);
  const bool same = bytes == 0 || memcmp(heddle_tensor_data(expected), heddle_tensor_data(got), (size_t)bytes) == 0;
  out->elements = numbers_count(expected);
  if (same) return HEDDLE_OK;
  if (!numbers_known(d)) { /* float8, say: by its bytes */
    out->differs = true;
    out->beyond = out->elements;
    return HEDDLE_OK;
  }
  asked *a = calloc(1, sizeof *a);
  if (a == NULL) return err->status = HEDDLE_ENOMEM;
  *a = (asked){.s = s, .w = w, .node = p->begin, .output = k, .n = out->elements, .b.fast = fast};
  heddle_status r = judge_numbers(a, expected, got, out, err);
  empty(a);
  free(a);
  return r;
}

bool judge_bounds(const session *s, const whole *w, uint32_t node, uint32_t k, bool fast, const heddle_tensor *expected,
                  const double *reference, double *bounds) {
  const char *rule;
  asked *a = calloc(1, sizeof *a);
  if (a == NULL) return false;
  *a = (asked){.s = s, .w = w, .node = node, .output = k, .n = numbers_count(expected), .b.fast = fast};
  bounds_of(a, expected, reference, bounds, &rule);
  empty(a);
  free(a);
  return true;
}

bool judge_holds(heddle_dtype dtype, double expected, double got, double bound) {
  return check_bound_holds(type_of(dtype), expected, got, bound);
}

void index_text(const heddle_tensor *t, uint64_t i, char *out, size_t size) {
  int64_t at[MOST_DIMS];
  const uint32_t ndim = heddle_tensor_ndim(t);
  const int64_t *shape = heddle_tensor_shape(t);
  for (uint32_t d = ndim; d-- > 0;) {
    at[d] = shape[d] > 0 ? (int64_t)(i % (uint64_t)shape[d]) : 0;
    i = shape[d] > 0 ? i / (uint64_t)shape[d] : 0;
  }
  shape_text(at, ndim, NULL, out, size);
}
