/* Indices that point out of range: found by the table of operators/indices.def, whatever kernel reads them. Kernels stay
 * inside of their operands with any numbers; this is how a run says that there were wrong ones. */
#include "ref_op.h"
#include "types.h"

enum { AXIS, SLICES, ELEMENTS, BATCH, TABLE, WRITE, CLASS, LENGTH, CACHE };

typedef struct rule {
  const char *op;
  bool own;
  uint8_t operand, what;
} rule;

static const rule rules[] = {
#define INDEX(domain, op, operand, what) {#op, HEDDLE__DOMAIN_##domain, operand, what},
#include "operators/indices.def"
};

enum { N_RULES = sizeof rules / sizeof rules[0] };

static const rule *find_rule(const heddle_pnode *node) {
  const bool own = node->domain != NULL && strcmp(node->domain, "heddle") == 0;
  for (int i = 0; i < N_RULES; i++)
    if (rules[i].own == own && strcmp(rules[i].op, node->op) == 0) return &rules[i];
  return NULL;
}

static int64_t int_attr(const heddle_pnode *node, const char *name, int64_t absent) {
  int64_t value = absent;
  (void)region_attr_int(node, name, absent, &value, NULL);
  return value;
}

/* One range, of every number. */
static void range(ref_indices *x, int64_t low, int64_t high) {
  x->columns = 1;
  x->low[0] = low;
  x->high[0] = high;
}

/* The size of the dimension that an attribute names; 0 where there is none. */
static int64_t size_along(const ref_node *n, const heddle_pvalue *v, const char *attr, int64_t absent) {
  int64_t axis = int_attr(n->node, attr, absent);
  if (axis < 0) axis += v->ndim;
  return axis >= 0 && axis < v->ndim ? v->shape[axis] : 0;
}

static void set_slices(const ref_node *n, const heddle_pvalue *data, const heddle_pvalue *at, ref_indices *x) {
  const int64_t batch = int_attr(n->node, "batch_dims", 0);
  const int64_t columns = at->ndim > 0 ? at->shape[at->ndim - 1] : 0;
  if (batch < 0 || columns < 1 || columns > REF_MAX_DIMS || batch > data->ndim - columns) return;
  x->columns = (uint32_t)columns;
  for (int64_t k = 0; k < columns; k++) {
    x->low[k] = -data->shape[batch + k];
    x->high[k] = data->shape[batch + k] - 1;
  }
}

static void set_ranges(const ref_node *n, const rule *r, const heddle_pvalue *at, ref_indices *x) {
  const heddle_pvalue *data = region_node_input(n->region, n->node, 0), *other;
  const char *mode = "";
  uint64_t count = 0;
  if (data == NULL) return;
  if (n->out != NULL && region_value_count(n->out, &count) && count == 0) return; /* nothing is read through them */
  const int64_t first = data->ndim > 0 ? data->shape[0] : 0, along = size_along(n, data, "axis", 0);
  switch (r->what) {
  case AXIS: range(x, -along, along - 1); return;
  case SLICES: set_slices(n, data, at, x); return;
  case ELEMENTS:
    if (region_node_input(n->region, n->node, 2) != NULL) return; /* they are of another shape than the result's */
    if (n->out != NULL && region_value_count(n->out, &count)) range(x, 0, (int64_t)count - 1);
    return;
  case BATCH: range(x, 0, first - 1); return;
  case TABLE:
    other = region_node_input(n->region, n->node, 1);
    if (other != NULL && other->ndim > 0) range(x, 0, other->shape[0] - 1);
    return;
  case WRITE:
    other = region_node_input(n->region, n->node, 1);
    if (region_attr_string(n->node, "mode", "linear", &mode, NULL) != HEDDLE_OK || strcmp(mode, "linear") != 0) return;
    if (other != NULL) range(x, 0, size_along(n, data, "axis", -2) - size_along(n, other, "axis", -2));
    return;
  case CLASS:
    if (data->ndim > 1) range(x, 0, data->shape[1] - 1);
    x->skips = region_attr_find(n->node, "ignore_index") != NULL;
    x->skip = int_attr(n->node, "ignore_index", 0);
    return;
  case CACHE:
    other = n->node->n_outputs > 1 ? region_node_output(n->region, n->node, 1) : NULL;
    if (other == NULL) other = region_node_input(n->region, n->node, 3);
    if (other != NULL && other->ndim == 4) range(x, 0, other->shape[2] - 1);
    return;
  default: range(x, 0, size_along(n, data, "time_axis", int_attr(n->node, "layout", 0))); return;
  }
}

static int64_t number(const ref_indices *x, const void *data, uint64_t i) {
  int64_t wide;
  int32_t narrow;
  if (x->wide) {
    memcpy(&wide, (const char *)data + i * sizeof wide, sizeof wide);
    return wide;
  }
  memcpy(&narrow, (const char *)data + i * sizeof narrow, sizeof narrow);
  return narrow;
}

static bool holds(const ref_indices *x, int64_t v, uint32_t column) {
  return (v >= x->low[column] && v <= x->high[column]) || (x->skips && v == x->skip);
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

/* How many of the first indices a vector loop looks at: all but the last few, or none without vectors. *bad: whether one
 * of them is out of range. */
__attribute__((target("avx512f"))) static uint64_t look_wide(const int64_t *at, uint64_t n, int64_t low, int64_t high,
                                                             bool *bad) {
  const __m512i least = _mm512_set1_epi64(low), most = _mm512_set1_epi64(high);
  __mmask8 out = 0;
  uint64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m512i v = _mm512_loadu_si512(at + i);
    out |= _mm512_cmplt_epi64_mask(v, least) | _mm512_cmpgt_epi64_mask(v, most);
  }
  *bad = out != 0;
  return i;
}

/* The same without AVX-512. */
__attribute__((target("avx2"))) static uint64_t look_narrow(const int64_t *at, uint64_t n, int64_t low, int64_t high,
                                                            bool *bad) {
  const __m256i least = _mm256_set1_epi64x(low), most = _mm256_set1_epi64x(high);
  __m256i out = _mm256_setzero_si256();
  uint64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256i v = _mm256_loadu_si256((const void *)(at + i));
    out = _mm256_or_si256(out, _mm256_or_si256(_mm256_cmpgt_epi64(least, v), _mm256_cmpgt_epi64(v, most)));
  }
  *bad = _mm256_testz_si256(out, out) == 0;
  return i;
}

static uint64_t look(const ref_indices *x, const void *data, uint64_t first, uint64_t last, bool *bad) {
  *bad = false;
  if (x->wide && !__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx2"))
    return look_narrow((const int64_t *)data + first, last - first, x->low[0], x->high[0], bad);
  if (!x->wide || !__builtin_cpu_supports("avx512f")) return 0;
  return look_wide((const int64_t *)data + first, last - first, x->low[0], x->high[0], bad);
}

#else

static uint64_t look(const ref_indices *x, const void *data, uint64_t first, uint64_t last, bool *bad) {
  (void)x, (void)data, (void)first, (void)last;
  *bad = false;
  return 0;
}

#endif

/* Whether indices first to last are in range. */
static bool hold(const ref_indices *x, const void *data, uint64_t first, uint64_t last) {
  unsigned bad = 0;
  if (x->columns == 1 && !x->skips) {
    const int64_t low = x->low[0], high = x->high[0];
    bool wrong;
    first += look(x, data, first, last, &wrong);
    bad = wrong;
    if (x->wide)
      for (uint64_t i = first; i < last; i++) {
        int64_t v;
        memcpy(&v, (const char *)data + i * sizeof v, sizeof v);
        bad |= (unsigned)(v < low) | (unsigned)(v > high);
      }
    else
      for (uint64_t i = first; i < last; i++) {
        int32_t v;
        memcpy(&v, (const char *)data + i * sizeof v, sizeof v);
        bad |= (unsigned)(v < low) | (unsigned)(v > high);
      }
    return bad == 0;
  }
  uint32_t column = (uint32_t)(first % x->columns);
  for (uint64_t i = first; i < last && bad == 0; i++) {
    bad = !holds(x, number(x, data, i), column);
    if (++column == x->columns) column = 0;
  }
  return bad == 0;
}

static heddle_status complain(const ref_indices *x, const void *data, heddle_error *err) {
  for (uint64_t i = 0; i < x->count; i++) {
    const int64_t v = number(x, data, i);
    const uint32_t column = (uint32_t)(i % x->columns);
    if (holds(x, v, column)) continue;
    if (x->high[column] < x->low[column])
      return p_fail(err, HEDDLE_EINVAL, 0, "%s: element %llu of input %u is %lld, and what it points into is empty",
                    x->op, (unsigned long long)i, x->operand, (long long)v);
    return p_fail(err, HEDDLE_EINVAL, 0, "%s: element %llu of input %u is %lld, which is out of range: %lld to %lld",
                  x->op, (unsigned long long)i, x->operand, (long long)v, (long long)x->low[column],
                  (long long)x->high[column]);
  }
  return HEDDLE_OK;
}

heddle_status ref_find_indices(const ref_node *n, ref_indices *x, heddle_error *err) {
  const rule *r = n->region->nodes.count == 1 && n->node->op != NULL ? find_rule(n->node) : NULL;
  *x = (ref_indices){.columns = 0};
  const heddle_pvalue *at = r != NULL ? region_node_input(n->region, n->node, r->operand) : NULL;
  if (at == NULL || r->operand >= n->node->n_inputs) return HEDDLE_OK;
  const int64_t slot = region_input_slot(n->region, n->node->inputs[r->operand]);
  x->wide = region_dtype_is(at->dtype, HEDDLE_DTYPE_INT, 64);
  if ((!x->wide && !region_dtype_is(at->dtype, HEDDLE_DTYPE_INT, 32)) || slot < 0) return HEDDLE_OK;
  if (!region_value_count(at, &x->count) || x->count == 0) return HEDDLE_OK;
  x->op = r->op;
  x->slot = (uint32_t)slot;
  x->operand = r->operand;
  set_ranges(n, r, at, x);
  if (x->columns == 0 || at->data == NULL) return HEDDLE_OK;
  /* They are known now, and need no look in a run. */
  const heddle_status s = hold(x, at->data, 0, x->count) ? HEDDLE_OK : complain(x, at->data, err);
  x->columns = 0;
  return s;
}

bool ref_has_indices(const ref_op *op) {
  return op->indices.columns > 0;
}

bool ref_indices_hold(const ref_op *op, void *const *inputs, uint32_t part, uint32_t parts) {
  const ref_indices *x = &op->indices;
  if (x->columns == 0 || inputs[x->slot] == NULL) return true;
  const uint64_t each = x->count / parts, first = each * part;
  return hold(x, inputs[x->slot], first, part + 1 == parts ? x->count : first + each);
}

heddle_status ref_indices_fail(const ref_op *op, void *const *inputs, heddle_error *err) {
  return complain(&op->indices, inputs[op->indices.slot], err);
}
