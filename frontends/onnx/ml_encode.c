/* frontends/onnx/ml_encode.c: operators of ai.onnx.ml that look values up: LabelEncoder, CategoryMapper, OneHotEncoder, and
 * ZipMap, whose map is listed beside the graph. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/onnx/ml.h"
#include "frontends/onnx/strings.h"

/* A list of keys or values: numbers of one type; codes of strings are of ONNX_STRING. */
typedef struct list {
  int32_t type;
  const void *data;
  size_t n;
} list;

static size_t width_of(int32_t type) {
  switch (type) {
  case ONNX_INT16: return 2;
  case ONNX_FLOAT:
  case ONNX_INT32: return 4;
  case ONNX_DOUBLE:
  case ONNX_INT64:
  case ONNX_STRING: return 8;
  default: return 0;
  }
}

/* Element i as a number that keys are ordered by: NaN comes last. */
typedef struct place {
  double real;
  int64_t whole;
  size_t at;
  bool is_nan;
} place;

static place place_of(const list *l, size_t i) {
  place p = {.at = i};
  float single;
  int16_t small;
  int32_t half;
  const char *at = (const char *)l->data + i * width_of(l->type);
  if (l->type == ONNX_FLOAT) memcpy(&single, at, sizeof single), p.real = (double)single;
  else if (l->type == ONNX_DOUBLE) memcpy(&p.real, at, sizeof p.real);
  else if (l->type == ONNX_INT16) memcpy(&small, at, sizeof small), p.whole = small;
  else if (l->type == ONNX_INT32) memcpy(&half, at, sizeof half), p.whole = half;
  else memcpy(&p.whole, at, sizeof p.whole);
  p.is_nan = isnan(p.real);
  return p;
}

static int by_key(const place *x, const place *y) {
  if (x->is_nan || y->is_nan) return (x->is_nan ? 1 : 0) - (y->is_nan ? 1 : 0);
  if (x->real != y->real) return x->real < y->real ? -1 : 1;
  return x->whole < y->whole ? -1 : x->whole > y->whole;
}

static int by_key_and_place(const void *a, const void *b) {
  const place *x = a, *y = b;
  const int c = by_key(x, y);
  return c != 0 ? c : x->at < y->at ? -1 : x->at > y->at;
}

static const char *constant(heddle__ml *m, const list *l, bool scalar) {
  const int32_t type = l->type;
  if (type == ONNX_INT16) { /* the field of a tensor is of int32 */
    int32_t *wide = heddle__ml_take(m, l->n, sizeof *wide);
    for (size_t i = 0; wide != NULL && i < l->n; i++) wide[i] = ((const int16_t *)l->data)[i];
    return heddle__ml_constant(m, type, wide, scalar ? -1 : (int64_t)l->n, -1);
  }
  return heddle__ml_constant(m, type, l->data, scalar ? -1 : (int64_t)l->n, -1);
}

/* Of equal keys the first holds. */
static const char *lookup(heddle__ml *m, const char *x, const list *keys, const list *values, const list *absent,
                          const char *out) {
  const size_t key = width_of(keys->type), value = width_of(values->type);
  place *order = heddle__ml_take(m, keys->n, sizeof *order);
  char *k = heddle__ml_take(m, keys->n, key > 0 ? key : 1), *v = heddle__ml_take(m, keys->n, value > 0 ? value : 1);
  if (keys->n != values->n) heddle__ml_refuse(m, "it has %zu keys and %zu values", keys->n, values->n);
  if (!heddle__ml_good(m)) return NULL;
  for (size_t i = 0; i < keys->n; i++) order[i] = place_of(keys, i);
  qsort(order, keys->n, sizeof *order, by_key_and_place);
  size_t n = 0;
  for (size_t i = 0; i < keys->n; i++) {
    if (i > 0 && by_key(&order[i - 1], &order[i]) == 0) continue;
    memcpy(k + n * key, (const char *)keys->data + order[i].at * key, key);
    memcpy(v + n * value, (const char *)values->data + order[i].at * value, value);
    n++;
  }
  const list sorted = {keys->type, k, n}, found = {values->type, v, n};
  const char *const in[] = {x, constant(m, &sorted, false), constant(m, &found, false), constant(m, absent, true)};
  const char *y = heddle__ml_make(m, "Lookup", out, 4, in);
  heddle__ml_last(m, true);
  if (y != NULL) m->s = heddle__onnx_note(m->r, y, values->type, heddle__onnx_known_of(m->r, x).rank);
  return y;
}

/* ---- LabelEncoder, CategoryMapper */

/* One of PREFIX_strings, PREFIX_int64s, PREFIX_floats and PREFIX_tensor. */
static list list_of(heddle__ml *m, const char *prefix) {
  static const char *const kinds[] = {"strings", "int64s", "floats", "tensor"};
  list l = {0};
  char name[40];
  for (size_t i = 0; i < 4 && heddle__ml_good(m); i++) {
    name[0] = '\0';
    strcat(strcat(strcat(name, prefix), "_"), kinds[i]);
    if (!heddle__ml_has(m, name)) continue;
    if (l.type != 0) heddle__ml_refuse(m, "%s are given twice", prefix);
    l.type = i == 0 ? ONNX_STRING : i == 1 ? ONNX_INT64 : ONNX_FLOAT;
    if (i == 0) l.data = heddle__ml_codes(m, name, &l.n);
    else if (i == 1) l.data = heddle__ml_ints(m, name, &l.n);
    else if (i == 2) l.data = heddle__ml_floats(m, name, &l.n);
    else l.data = heddle__ml_tensor(m, name, &l.type, &l.n);
  }
  if (l.n == 0 || width_of(l.type) == 0) heddle__ml_refuse(m, "it has no %s of a type that is known", prefix);
  return l;
}

/* default_KIND of values of a type. */
static list default_of(heddle__ml *m, int32_t type) {
  list l = {.type = type, .n = 1};
  int64_t *whole = heddle__ml_take(m, 1, sizeof *whole);
  if (heddle__ml_has(m, "default_tensor")) {
    l.data = heddle__ml_tensor(m, "default_tensor", &l.type, &l.n);
    if (l.type != type || l.n != 1) heddle__ml_refuse(m, "default_tensor is not one value of the type of its values");
    return l;
  }
  if (whole == NULL) return l;
  l.data = whole;
  const float real = heddle__ml_float(m, "default_float", -0.0F);
  const double wide = (double)real;
  *whole =
      type == ONNX_STRING ? heddle__ml_code(m, "default_string", "_Unused") : heddle__ml_int(m, "default_int64", -1);
  if (type == ONNX_INT16) *whole = (int16_t)*whole;
  if (type == ONNX_INT32) *whole = (int32_t)*whole;
  if (type == ONNX_FLOAT) memcpy(whole, &real, sizeof real);
  if (type == ONNX_DOUBLE) memcpy(whole, &wide, sizeof wide);
  return l;
}

/* Version 1, and CategoryMapper: a string or its number, whichever the input is. */
static void either(heddle__ml *m, const list *strings, const list *numbers) {
  const char *x = m->node->input[0];
  const int32_t type = heddle__onnx_known_of(m->r, x).type;
  if (type != ONNX_STRING && type != ONNX_INT64) {
    heddle__ml_refuse(m, "whether its input is of strings is not known");
    return;
  }
  const bool is_text = type == ONNX_STRING;
  const list absent = default_of(m, is_text ? ONNX_INT64 : ONNX_STRING);
  lookup(m, x, is_text ? strings : numbers, is_text ? numbers : strings, &absent, heddle__ml_output(m, 0));
}

void heddle__ml_label_encoder(heddle__ml *m) {
  size_t n;
  if (heddle__ml_has(m, "classes_strings")) {
    const int64_t *codes = heddle__ml_codes(m, "classes_strings", &n);
    int64_t *numbers = heddle__ml_take(m, n, sizeof *numbers);
    for (size_t i = 0; numbers != NULL && i < n; i++) numbers[i] = (int64_t)i;
    const list strings = {ONNX_STRING, codes, n}, places = {ONNX_INT64, numbers, n};
    either(m, &strings, &places);
    return;
  }
  const list keys = list_of(m, "keys"), values = list_of(m, "values");
  const list absent = default_of(m, values.type);
  const char *x = m->node->input[0];
  const int32_t type = heddle__onnx_known_of(m->r, x).type;
  if (type != 0 && type != keys.type) heddle__ml_refuse(m, "its input is of another type than its keys");
  lookup(m, x, &keys, &values, &absent, heddle__ml_output(m, 0));
}

void heddle__ml_category_mapper(heddle__ml *m) {
  list strings = {.type = ONNX_STRING}, numbers = {.type = ONNX_INT64};
  strings.data = heddle__ml_codes(m, "cats_strings", &strings.n);
  numbers.data = heddle__ml_ints(m, "cats_int64s", &numbers.n);
  either(m, &strings, &numbers);
}

/* ---- OneHotEncoder */

void heddle__ml_one_hot_encoder(heddle__ml *m) {
  list keys = {.type = ONNX_INT64};
  const char *x = m->node->input[0], *out = heddle__ml_output(m, 0);
  const bool is_text = heddle__onnx_known_of(m->r, x).type == ONNX_STRING;
  keys.data = is_text ? heddle__ml_codes(m, "cats_strings", &keys.n) : heddle__ml_ints(m, "cats_int64s", &keys.n);
  keys.type = is_text ? ONNX_STRING : ONNX_INT64;
  int64_t *places = heddle__ml_take(m, keys.n + 1, sizeof *places);
  float *values = heddle__ml_take(m, 2, sizeof *values);
  if (keys.n == 0) heddle__ml_refuse(m, "it has no categories of its input's type");
  if (!heddle__ml_good(m)) return;
  for (size_t i = 0; i <= keys.n; i++) places[i] = (int64_t)i;
  values[1] = 1;
  const list numbers = {ONNX_INT64, places, keys.n}, absent = {ONNX_INT64, places + keys.n, 1};
  const char *at = lookup(m, is_text ? x : heddle__ml_cast(m, x, ONNX_INT64, NULL), &keys, &numbers, &absent, NULL);
  /* What is no category is an index that is not there: an error, or a row of zeros. */
  if (heddle__ml_int(m, "zeros", 1) == 0)
    at = heddle__ml_2(m, "Gather", heddle__ml_constant(m, ONNX_INT64, places, (int64_t)keys.n, -1), at, NULL);
  const char *const in[] = {at, heddle__ml_whole(m, (int64_t)keys.n),
                            heddle__ml_constant(m, ONNX_FLOAT, values, 2, -1)};
  heddle__ml_make(m, "OneHot", out, 3, in);
}

/* ---- ZipMap */

void heddle__ml_zip_map(heddle__ml *m) {
  size_t n;
  const char *out = heddle__ml_output(m, 0);
  const int64_t *labels = heddle__ml_codes(m, "classlabels_strings", &n);
  const bool is_text = n > 0;
  if (!is_text) labels = heddle__ml_ints(m, "classlabels_int64s", &n);
  if (n == 0) heddle__ml_refuse(m, "it has no labels");
  if (!heddle__ml_good(m) || out == NULL) return;
  if (m->r->scope != NULL) heddle__ml_refuse(m, "its map is a value within the graph of a node");
  const char *x = heddle__ml_matrix(m, 0, false, NULL);
  /* As many columns as labels, which is checked with the shapes. */
  int64_t *shape = heddle__ml_take(m, 2, sizeof *shape);
  if (shape == NULL || x == NULL) return;
  shape[0] = 0; /* as many rows */
  shape[1] = (int64_t)n;
  heddle__ml_2(m, "Reshape", x, heddle__ml_constant(m, ONNX_INT64, shape, 2, -1), out);
  if (heddle__ml_good(m)) m->s = heddle__onnx_note_map(m->r, out, labels, n, is_text);
}
