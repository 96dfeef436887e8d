/* modules/tvm/sort.c: sort, argsort, argsort_nms and topk along an axis, which compiled code calls by name on cpu
 * instead of sorting itself. Equal elements keep their order; a NaN is larger than any number. Dense tensors; the
 * arguments' order is TVM's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/registry.h"
#include "plugins/common/float16.h"

/* An element: as a double, or where that would lose digits as an integer; one of the two orders a whole tensor. */
typedef struct item {
  double real;
  int64_t whole;
  int64_t at; /* position along the axis */
} item;

typedef struct view {
  char *data;
  int64_t before, along, after; /* elements: outside of the axis, on it, inside of it */
  heddle_dtype dtype;
  size_t width;
} view;

static int fail(const char *function, const char *why) {
  char words[200];
  snprintf(words, sizeof words, "tvm.contrib.sort.%s: %s", function, why);
  heddle__tvm_say(NULL, words);
  return -1;
}

/* The tensor of an argument as rows along an axis; axis < 0 counts from the last. */
static bool see(const heddle__word *arg, int32_t code, int64_t axis, view *out) {
  const heddle__dltensor *t = arg->p;
  if ((code != PACKED_TENSOR && code != PACKED_HANDLE && code != 13) || t == NULL || t->ndim < 1) return false;
  if (axis < 0) axis += t->ndim;
  if (axis < 0 || axis >= t->ndim || t->dtype.lanes != 1 || t->device_type != HEDDLE_DEVICE_CPU) return false;
  int64_t dense = 1;
  for (int32_t i = t->ndim; t->strides != NULL && i-- > 0; dense *= t->shape[i])
    if (t->shape[i] != 1 && t->strides[i] != dense) return false;
  *out = (view){.data = (char *)t->data + t->byte_offset, .before = 1, .along = t->shape[axis], .after = 1};
  for (int32_t i = 0; i < t->ndim; i++) {
    if (i < axis) out->before *= t->shape[i];
    if (i > axis) out->after *= t->shape[i];
  }
  out->dtype = t->dtype;
  out->width = (size_t)(t->dtype.bits + 7) / 8;
  bool is_float = t->dtype.code == HEDDLE_DTYPE_FLOAT;
  bool is_whole = t->dtype.code <= HEDDLE_DTYPE_UINT || t->dtype.code == HEDDLE_DTYPE_BOOL;
  return (is_float && out->width >= 2 && out->width <= 8) || (is_whole && out->width <= 8 && out->width != 0);
}

static char *element(const view *v, int64_t outer, int64_t at, int64_t inner) {
  return v->data + (size_t)((outer * v->along + at) * v->after + inner) * v->width;
}

static void load(const view *v, const char *p, item *out) {
  if (v->dtype.code == HEDDLE_DTYPE_FLOAT) {
    float single;
    uint16_t half;
    memcpy(&half, p, sizeof half);
    if (v->width == 8) memcpy(&out->real, p, 8);
    else if (v->width == 4) memcpy(&single, p, 4), out->real = (double)single;
    else out->real = (double)float16_to_float(half);
    out->whole = 0;
    return;
  }
  uint64_t bits = 0;
  memcpy(&bits, p, v->width); /* little-endian */
  unsigned unused = 64 - 8 * (unsigned)v->width;
  out->real = 0;
  if (v->dtype.code == HEDDLE_DTYPE_INT) out->whole = (int64_t)(bits << unused) >> unused;
  else out->whole = (int64_t)(bits ^ UINT64_C(1) << 63); /* the same order, as signed numbers */
}

/* Writes a position, in whatever type the code wants it. */
static bool store_index(const view *v, char *p, int64_t index) {
  double wide = (double)index;
  float single = (float)index;
  if (v->dtype.code == HEDDLE_DTYPE_FLOAT && v->width == 8) memcpy(p, &wide, 8);
  else if (v->dtype.code == HEDDLE_DTYPE_FLOAT && v->width == 4) memcpy(p, &single, 4);
  else if (v->dtype.code <= HEDDLE_DTYPE_UINT) memcpy(p, &index, v->width);
  else return false;
  return true;
}

static int ascending(const void *a, const void *b) {
  const item *x = a, *y = b;
  bool x_nan = x->real != x->real, y_nan = y->real != y->real;
  if (x_nan != y_nan) return x_nan ? 1 : -1;
  if (!x_nan && x->real != y->real) return x->real < y->real ? -1 : 1;
  if (x->whole != y->whole) return x->whole < y->whole ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

static int descending(const void *a, const void *b) {
  const item *x = a, *y = b;
  item first = *x, second = *y;
  first.at = second.at = 0;
  int order = ascending(&second, &first);
  return order != 0 ? order : x->at < y->at ? -1 : x->at > y->at;
}

typedef struct job {
  view in, values, indices, counts; /* data NULL: not wanted */
  int64_t k;                        /* elements of a row that are written */
  bool is_ascending;
} job;

static bool fits(const job *j, const view *out) {
  return out->data == NULL || (out->before == j->in.before && out->after == j->in.after && out->along == j->k);
}

/* How many of a row are sorted; the rest stay where they are. */
static int64_t valid(const job *j, int64_t outer, int64_t inner) {
  item n;
  if (j->counts.data == NULL) return j->in.along;
  load(&j->counts, j->counts.data + (size_t)(outer * j->in.after + inner) * j->counts.width, &n);
  return n.whole < 0 ? 0 : n.whole < j->in.along ? n.whole : j->in.along;
}

static int run_sort(const char *function, const job *j) {
  if (!fits(j, &j->values) || !fits(j, &j->indices)) return fail(function, "the shapes of its tensors do not agree");
  if (j->values.data != NULL && (j->values.width != j->in.width || j->values.dtype.code != j->in.dtype.code))
    return fail(function, "values have another dtype than data");
  if (j->in.before == 0 || j->in.after == 0 || j->in.along == 0) return 0;
  item *row = heddle__alloc((size_t)j->in.along, sizeof *row);
  if (row == NULL) return fail(function, "out of memory");
  bool good = true;
  for (int64_t o = 0; o < j->in.before; o++)
    for (int64_t i = 0; i < j->in.after; i++) {
      for (int64_t a = 0; a < j->in.along; a++) {
        load(&j->in, element(&j->in, o, a, i), &row[a]);
        row[a].at = a;
      }
      qsort(row, (size_t)valid(j, o, i), sizeof *row, j->is_ascending ? ascending : descending);
      for (int64_t a = 0; a < j->k; a++) {
        if (j->values.data != NULL) memcpy(element(&j->values, o, a, i), element(&j->in, o, row[a].at, i), j->in.width);
        if (j->indices.data != NULL) good = good && store_index(&j->indices, element(&j->indices, o, a, i), row[a].at);
      }
    }
  heddle__free(row);
  return good ? 0 : fail(function, "indices have a dtype that is not known");
}

static bool whole(const int32_t *codes, int32_t first, int32_t last) {
  for (int32_t i = first; i <= last; i++)
    if (codes[i] != PACKED_INT && codes[i] != PACKED_BOOL) return false;
  return true;
}

int heddle__tvm_sort(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                     int32_t *ret_code) {
  (void)self, (void)ret, (void)ret_code;
  job j = {.k = 0};
  if (n != 4 || !whole(codes, 2, 3) || !see(&args[0], codes[0], args[2].i, &j.in) ||
      !see(&args[1], codes[1], args[2].i, &j.values))
    return fail("sort", "expected (data, values, axis, is_ascend)");
  j.k = j.in.along;
  j.is_ascending = args[3].i != 0;
  return run_sort("sort", &j);
}

int heddle__tvm_argsort(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                        int32_t *ret_code) {
  (void)self, (void)ret, (void)ret_code;
  job j = {.k = 0};
  if (n != 4 || !whole(codes, 2, 3) || !see(&args[0], codes[0], args[2].i, &j.in) ||
      !see(&args[1], codes[1], args[2].i, &j.indices))
    return fail("argsort", "expected (data, indices, axis, is_ascend)");
  j.k = j.in.along;
  j.is_ascending = args[3].i != 0;
  return run_sort("argsort", &j);
}

int heddle__tvm_argsort_nms(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code) {
  (void)self, (void)ret, (void)ret_code;
  job j = {.k = 0};
  if (n != 5 || !whole(codes, 3, 4) || !see(&args[0], codes[0], args[3].i, &j.in) ||
      !see(&args[1], codes[1], -1, &j.counts) || !see(&args[2], codes[2], args[3].i, &j.indices) ||
      j.counts.dtype.code != HEDDLE_DTYPE_INT ||
      j.counts.before * j.counts.along * j.counts.after != j.in.before * j.in.after)
    return fail("argsort_nms", "expected (data, valid_count, indices, axis, is_ascend)");
  j.k = j.in.along;
  j.is_ascending = args[4].i != 0;
  return run_sort("argsort_nms", &j);
}

int heddle__tvm_topk(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                     int32_t *ret_code) {
  (void)self, (void)ret, (void)ret_code;
  job j = {.k = 0};
  bool both = n == 7, known = n >= 6 && n <= 7 && codes[n - 2] == PACKED_STRING && whole(codes, n - 4, n - 3) &&
                              whole(codes, n - 1, n - 1);
  const char *what = known ? args[n - 2].s : "";
  int64_t axis = known ? args[n - 3].i : 0;
  known = known && strcmp(what, "both") == 0 ? both : known && !both;
  known = known && see(&args[0], codes[0], axis, &j.in);
  if (known && both) known = see(&args[1], codes[1], axis, &j.values) && see(&args[2], codes[2], axis, &j.indices);
  else if (known)
    known = (strcmp(what, "values") == 0 && see(&args[1], codes[1], axis, &j.values)) ||
            (strcmp(what, "indices") == 0 && see(&args[1], codes[1], axis, &j.indices));
  if (!known) return fail("topk", "expected (data, values, indices, k, axis, \"both\", is_ascend), or one of the two");
  j.k = args[n - 4].i;
  if (j.k < 1 || j.k > j.in.along) j.k = j.in.along;
  j.is_ascending = args[n - 1].i != 0;
  return run_sort("topk", &j);
}
