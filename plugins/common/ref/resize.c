/* Resize: nearest, linear and cubic, with all coordinate modes, antialiasing and the crop of a region. Each axis has a
 * table, made when the op is prepared: for each place of the result the first element and a weight for each element
 * that it is made of. A unit is a row along the last dimension. Places of one element each are moved as bytes; sums are
 * float64, and of integers rounded to the nearest one and cut to the type's ends, as onnx.reference has them. */
#include "plugins/common/halves.h"
#include "lines.h"
#include "ref_op.h"
#include "types.h"

#include <math.h>

enum { NEAREST = 0, LINEAR = 1, CUBIC = 2, CHUNK = 64, SPAN = 256 };

typedef ref_cell cell;
typedef ref_resize_tables tables;

/* ---------------------------------------------------------------- running */

static int64_t clamp(int64_t i, int64_t n) {
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Rows of the operand that are kept resized along the last dimension, for n places from x on: neighbouring rows of the
 * result are made of the same ones. */
enum { KEPT = 8 };
typedef struct kept_row {
  int64_t base; /* where it begins in the operand; -1: nothing is kept */
  double at[CHUNK];
} kept_row;

/* What computes rows of the result. */
typedef struct row {
  const ref_op *op;
  const tables *t;
  const cell *cells;
  const void *in;
  int type;                    /* REF_TYPE_* */
  uint32_t size;               /* bytes of an element */
  int64_t place[REF_MAX_DIMS]; /* of the outer dimensions */
  int64_t x, n;                /* the places of a row that are computed */
  int64_t work;                /* for ref_tick */
  uint32_t oldest;             /* of those kept */
  kept_row kept[KEPT];
} row;

/* The sum of a place of a row whose elements from first on are doubles, or, where they are too many, lie in the operand. */
static double sum_of(const row *r, const cell *line, int64_t base, int64_t first, const double *some) {
  const tables *t = r->t;
  const int32_t d = t->dims - 1;
  double sum = 0;
  for (int64_t k = 0; k < t->taps[d]; k++) {
    const int64_t i = clamp(line->first + k, t->in[d]);
    double x;
    if (some != NULL) x = some[i - first];
    else ref_cast(r->type, (const char *)r->in + (uint64_t)(base + i) * r->size, REF_TYPE_F64, &x, 1);
    sum += (double)line[1 + k].weight * x;
  }
  return sum;
}

/* along_last for other types than float32. */
static void along_last_any(const row *r, int64_t base, double *out) {
  const tables *t = r->t;
  const int32_t d = t->dims - 1;
  const int64_t taps = t->taps[d], length = t->in[d];
  const cell *line = r->cells + t->at[d] + r->x * (1 + taps);
  int64_t first = length, last = -1;
  double some[SPAN];
  for (int64_t j = 0; j < r->n; j++) {
    const int64_t at = line[j * (1 + taps)].first;
    if (at == REF_OUTSIDE) continue;
    if (clamp(at, length) < first) first = clamp(at, length);
    if (clamp(at + taps - 1, length) > last) last = clamp(at + taps - 1, length);
  }
  const bool fits = last - first < SPAN;
  if (fits && last >= first)
    ref_cast(r->type, (const char *)r->in + (uint64_t)(base + first) * r->size, REF_TYPE_F64, some, last - first + 1);
  for (int64_t j = 0; j < r->n; j++, line += 1 + taps)
    out[j] = line->first == REF_OUTSIDE ? 0 : sum_of(r, line, base, first, fits ? some : NULL);
}

/* The row of the operand at base, resized along the last dimension; places outside are 0. */
static void along_last(const row *r, int64_t base, double *out) {
  const tables *t = r->t;
  const int32_t d = t->dims - 1;
  const int64_t taps = t->taps[d], length = t->in[d];
  const cell *line = r->cells + t->at[d] + r->x * (1 + taps);
  const float *in = (const float *)r->in + base;
  if (r->type != REF_TYPE_F32) {
    along_last_any(r, base, out);
    return;
  }
  for (int64_t j = 0; j < r->n; j++, line += 1 + taps) {
    const int64_t at = line->first;
    double sum = 0;
    if (at == REF_OUTSIDE) {
    } else if (taps == 2) {
      sum = (double)line[1].weight * (double)in[clamp(at, length)] +
            (double)line[2].weight * (double)in[clamp(at + 1, length)];
    } else {
      for (int64_t k = 0; k < taps; k++) sum += (double)line[1 + k].weight * (double)in[clamp(at + k, length)];
    }
    out[j] = sum;
  }
}

/* The same, kept. NULL: the run has to stop. */
static const double *kept_at(row *r, int64_t base) {
  if (ref_tick(r->op, &r->work, r->n)) return NULL;
  for (int k = 0; k < KEPT; k++)
    if (r->kept[k].base == base) return r->kept[k].at;
  if (ref_tick(r->op, &r->work, 4 * r->n * r->t->taps[r->t->dims - 1])) return NULL;
  kept_row *kept = &r->kept[r->oldest++ % KEPT];
  along_last(r, base, kept->at);
  kept->base = base;
  return kept->at;
}

/* Adds to acc what the rows under base give. False: the run has to stop. */
static bool gather(row *r, int32_t d, int64_t base, double weight, double *acc) {
  const tables *t = r->t;
  if (d < t->dims - 1) {
    const int64_t taps = t->taps[d];
    const cell *line = r->cells + t->at[d] + r->place[d] * (1 + taps);
    for (int64_t k = 0; k < taps; k++) {
      const int64_t i = clamp(line->first + k, t->in[d]);
      if (!gather(r, d + 1, (base + i) * t->in[d + 1], weight * (double)line[1 + k].weight, acc)) return false;
    }
    return true;
  }
  const double *line = kept_at(r, base);
  if (line != NULL) ref_line_add(acc, line, weight, r->n);
  return line != NULL;
}

/* Where the row of the operand begins that a row of the result is taken from, when each place is one element. */
static int64_t row_base(const row *r) {
  const tables *t = r->t;
  int64_t base = 0;
  for (int32_t d = 0; d < t->dims - 1; d++) base = (base + r->cells[t->at[d] + r->place[d] * 2].first) * t->in[d + 1];
  return base;
}

#define PICK(word) \
  static void repeat_##word(word *restrict out, const word *restrict in, int64_t n, const int64_t times) { \
    for (int64_t j = 0; j < n; j++) \
      for (int64_t k = 0; k < times; k++) out[j * times + k] = in[j]; \
  } \
  static void pick_##word(const row *r, int64_t base, word *out, int64_t length) { \
    const cell *line = r->cells + r->t->at[r->t->dims - 1]; \
    const word *in = (const word *)r->in + base; \
    switch (r->t->repeats) { \
    case 1: memcpy(out, in, (size_t)length * sizeof *out); return; \
    case 2: repeat_##word(out, in, length / 2, 2); return; \
    case 4: repeat_##word(out, in, length / 4, 4); return; \
    default: \
      for (int64_t j = 0; j < length; j++) out[j] = in[line[2 * j].first]; \
    } \
  }
PICK(uint8_t)
PICK(uint16_t)
PICK(uint32_t)
PICK(uint64_t)
#undef PICK

static void pick(const row *r, int64_t base, void *out, int64_t length) {
  switch (r->size) {
  case 1: pick_uint8_t(r, base, out, length); return;
  case 2: pick_uint16_t(r, base, out, length); return;
  case 4: pick_uint32_t(r, base, out, length); return;
  default: pick_uint64_t(r, base, out, length); return;
  }
}

/* The places of row number unit. */
static void place_row(row *r, uint64_t unit) {
  for (int32_t d = r->t->dims - 2; d >= 0; d--) {
    r->place[d] = (int64_t)(unit % (uint64_t)r->t->out[d]);
    unit /= (uint64_t)r->t->out[d];
  }
}

/* And of the next one. */
static void next_row(row *r) {
  for (int32_t d = r->t->dims - 2; d >= 0; d--) {
    if (++r->place[d] < r->t->out[d]) return;
    r->place[d] = 0;
  }
}

static bool is_outside(const row *r) {
  const tables *t = r->t;
  bool outside = false;
  for (int32_t d = 0; d < t->dims - 1; d++)
    outside = outside || r->cells[t->at[d] + r->place[d] * (1 + t->taps[d])].first == REF_OUTSIDE;
  return outside;
}

/* Rows of single elements. */
static void pick_rows(row *r, char *out, uint64_t rows) {
  const int64_t length = r->t->out[r->t->dims - 1];
  const uint64_t bytes = (uint64_t)length * r->size;
  int64_t before = -1; /* row_base of the row above */
  for (uint64_t k = 0; k < rows; k++, out += bytes, next_row(r)) {
    const int64_t base = row_base(r);
    if (ref_tick(r->op, &r->work, length)) return;
    if (base == before) memcpy(out, out - bytes, bytes);
    else pick(r, base, out, length);
    before = base;
  }
}

/* n sums, at most CHUNK, in the type of the result. */
static void put(const row *r, char *out, const double *sums, int64_t n) {
  const double least = (double)ref_type_least(r->type);
  const double end = ref_type_end(r->type);
  int64_t whole[CHUNK];
  if (r->type == REF_TYPE_F32) {
    ref_line_round((float *)(void *)out, sums, n);
    return;
  }
  if (r->type == REF_TYPE_F64) {
    memcpy(out, sums, (size_t)n * sizeof *sums);
    return;
  }
  for (int64_t j = 0; j < n; j++) {
    const double x = rint(sums[j]);
    if (!(x > least)) whole[j] = ref_type_least(r->type);
    else if (x >= end) whole[j] = ref_type_most(r->type);
    else whole[j] = x >= 0x1p63 ? (int64_t)(uint64_t)x : (int64_t)x;
  }
  ref_cast(REF_TYPE_I64, whole, r->type, out, n);
}

/* Places r->x to r->x + r->n of rows; out is the first place. False: the run has to stop. */
static bool blend_rows(row *r, char *out, uint64_t rows) {
  const tables *t = r->t;
  const int32_t inner = t->dims - 1;
  const cell *line = r->cells + t->at[inner] + r->x * (1 + t->taps[inner]);
  for (int k = 0; k < KEPT; k++) r->kept[k].base = -1;
  for (uint64_t k = 0; k < rows; k++, out += (uint64_t)t->out[inner] * r->size, next_row(r)) {
    const bool outside = is_outside(r);
    double acc[CHUNK];
    memset(acc, 0, (size_t)r->n * sizeof *acc);
    if (outside ? ref_tick(r->op, &r->work, r->n) : !gather(r, 0, 0, 1, acc)) return false;
    for (int64_t j = 0; j < r->n && t->crops; j++)
      if (outside || line[j * (1 + t->taps[inner])].first == REF_OUTSIDE) acc[j] = (double)t->extrapolation;
    put(r, out, acc, r->n);
  }
  return true;
}

/* Where the last dimension stays as it is: the rows of the operand that a row of the result is made of. */
enum { MOST_MIXED = 64 };
typedef struct mixed {
  int64_t count, at[MOST_MIXED];
  double by[MOST_MIXED];
} mixed;

static void find_mixed(const row *r, mixed *m) {
  const tables *t = r->t;
  m->count = 1;
  m->at[0] = 0;
  m->by[0] = 1;
  for (int32_t d = 0; d < t->dims - 1; d++) {
    const int64_t taps = t->taps[d], before = m->count;
    const cell *line = r->cells + t->at[d] + r->place[d] * (1 + taps);
    for (int64_t i = before - 1; i >= 0; i--) { /* from the last on, into the room behind them */
      const int64_t at = m->at[i];
      const double by = m->by[i];
      for (int64_t k = 0; k < taps; k++) {
        m->at[i * taps + k] = (at + clamp(line->first + k, t->in[d])) * t->in[d + 1];
        m->by[i * taps + k] = by * (double)line[1 + k].weight;
      }
    }
    m->count = before * taps;
  }
}

static bool is_mixed(const tables *t) {
  int64_t count = 1;
  for (int32_t d = 0; d < t->dims - 1 && count <= MOST_MIXED; d++) count *= t->taps[d];
  return t->type == REF_TYPE_F32 && t->taps[t->dims - 1] == 1 && !t->single && !t->crops && count <= MOST_MIXED;
}

static void mix_rows(row *r, float *out, uint64_t rows) {
  const int64_t length = r->t->out[r->t->dims - 1];
  for (uint64_t k = 0; k < rows; k++, out += length, next_row(r)) {
    mixed m;
    find_mixed(r, &m);
    if (ref_tick(r->op, &r->work, m.count * length / 4 + 16)) return;
    ref_line_mix(r->in, m.at, m.by, m.count, out, length);
  }
}

static void resize(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                   uint64_t last) {
  const tables *t = ref_tail(op);
  row r = {.op = op,
           .t = t,
           .cells = (const cell *)(const void *)(t + 1),
           .in = inputs[op->slot[0]],
           .type = t->type,
           .size = ref_type_bytes(t->type)};
  const int64_t length = t->out[t->dims - 1];
  char *out = (char *)outputs[0] + first * (uint64_t)length * r.size;
  (void)workspace;
  place_row(&r, first);
  if (t->single) {
    pick_rows(&r, out, last - first);
    return;
  }
  if (is_mixed(t)) {
    mix_rows(&r, (float *)(void *)out, last - first);
    return;
  }
  for (r.x = 0; r.x < length; r.x += CHUNK) {
    r.n = length - r.x < CHUNK ? length - r.x : CHUNK;
    place_row(&r, first);
    if (!blend_rows(&r, out + (uint64_t)r.x * r.size, last - first)) return;
  }
}

/* ---------------------------------------------------------------- planning */

/* The attributes and operands of a node. */
typedef struct request {
  const char *coordinates, *rounding;
  int mode;
  bool antialias, exclude;
  double cubic_a;
  float extrapolation;
  double scale[REF_MAX_DIMS], roi[2][REF_MAX_DIMS];
} request;

/* Any floating-point type, whose elements may lie at any address. */
static double number_at(const heddle_pvalue *constant, uint32_t i) {
  const uint64_t bytes = region_dtype_bytes(constant->dtype);
  const char *from = (const char *)constant->data + i * bytes;
  uint16_t half;
  double wide;
  float x;
  if (bytes == sizeof wide) {
    memcpy(&wide, from, sizeof wide);
    return wide;
  }
  if (bytes == sizeof half) {
    memcpy(&half, from, sizeof half);
    halves_widen(constant->dtype.code == HEDDLE_DTYPE_BFLOAT, &half, &x, 1);
  } else {
    memcpy(&x, from, sizeof x);
  }
  return (double)x;
}

static bool is_real(const heddle_pvalue *value) {
  const heddle_dtype d = value->dtype;
  return region_dtype_is(d, HEDDLE_DTYPE_FLOAT, 32) || region_dtype_is(d, HEDDLE_DTYPE_FLOAT, 64) ||
         region_dtype_is(d, HEDDLE_DTYPE_FLOAT, 16) || region_dtype_is(d, HEDDLE_DTYPE_BFLOAT, 16);
}

static heddle_status read(const ref_node *n, request *q, heddle_error *err) {
  const heddle_pvalue *x = n->in[0], *roi = n->in[1], *scales = n->in[2], *y = n->out;
  const char *mode = "nearest", *policy = "stretch";
  const int64_t *list;
  int64_t axes[REF_MAX_DIMS], antialias = 0, exclude = 0;
  double extrapolation = 0;
  uint64_t given, have = 0;
  uint32_t count = UINT32_MAX;
  memset(q, 0, sizeof *q);
  heddle_status s = region_attr_string(n->node, "coordinate_transformation_mode", "half_pixel", &q->coordinates, err);
  if (s == HEDDLE_OK) s = region_attr_string(n->node, "nearest_mode", "round_prefer_floor", &q->rounding, err);
  if (s == HEDDLE_OK) s = region_attr_string(n->node, "mode", "nearest", &mode, err);
  if (s == HEDDLE_OK) s = region_attr_string(n->node, "keep_aspect_ratio_policy", "stretch", &policy, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "antialias", 0, &antialias, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "exclude_outside", 0, &exclude, err);
  if (s == HEDDLE_OK) s = region_attr_float(n->node, "cubic_coeff_a", -0.75, &q->cubic_a, err);
  if (s == HEDDLE_OK) s = region_attr_float(n->node, "extrapolation_value", 0, &extrapolation, err);
  if (s == HEDDLE_OK) s = region_attr_ints(n->node, "axes", &list, &given, err);
  if (s != HEDDLE_OK) return s;
  if (x->ndim < 1 || x->ndim > REF_MAX_DIMS || given > (uint64_t)x->ndim) {
    return ref_refuse(n, err, "1 to %d dimensions are resized", REF_MAX_DIMS);
  }
  q->mode = strcmp(mode, "nearest") == 0 ? NEAREST : strcmp(mode, "linear") == 0 ? LINEAR : CUBIC;
  if (q->mode == CUBIC && strcmp(mode, "cubic") != 0) return ref_refuse(n, err, "mode '%s' is not known", mode);
  q->antialias = antialias != 0 && q->mode != NEAREST;
  q->exclude = exclude != 0;
  q->extrapolation = (float)extrapolation;
  for (uint64_t i = 0; i < given; i++) axes[i] = list[i];
  if (list != NULL) count = (uint32_t)given;
  s = ref_axes(n, axes, &count, x->ndim, err);
  if (s != HEDDLE_OK) return s;
  if (scales != NULL && region_value_count(scales, &have) && have == 0) scales = NULL;
  double same = 0;
  for (uint32_t i = 0; scales == NULL && i < count; i++) {
    const double mine = (double)y->shape[axes[i]] / (double)x->shape[axes[i]];
    const bool larger = strcmp(policy, "not_smaller") == 0;
    if (i == 0 || (larger ? mine > same : mine < same)) same = mine;
  }
  int64_t asked[REF_MAX_DIMS];
  uint32_t n_asked;
  if (scales == NULL &&
      strcmp(policy, "stretch") != 0) { /* the scale is that of what was asked, not of what comes out */
    s = ref_ints(n, 3, asked, REF_MAX_DIMS, &n_asked, err);
    if (s != HEDDLE_OK) return s;
    if (n_asked != count) return ref_refuse_shape(n, err);
    for (uint32_t i = 0; i < count; i++) {
      const double mine = (double)asked[i] / (double)x->shape[axes[i]];
      if (i == 0 || (strcmp(policy, "not_smaller") == 0 ? mine > same : mine < same)) same = mine;
    }
  }
  if (scales != NULL &&
      (!region_dtype_is(scales->dtype, HEDDLE_DTYPE_FLOAT, 32) || have != count || scales->data == NULL)) {
    return ref_refuse(n, err, "scales must be %u float32, known before the run", count);
  }
  const bool crops = strcmp(q->coordinates, "tf_crop_and_resize") == 0;
  if (crops &&
      (roi == NULL || !is_real(roi) || roi->data == NULL || !region_value_count(roi, &have) || have != 2 * count)) {
    return ref_refuse(n, err, "roi must be %u floating-point numbers, known before the run", 2 * count);
  }
  for (int32_t d = 0; d < x->ndim; d++) q->scale[d] = q->roi[1][d] = 1;
  for (uint32_t i = 0; i < count; i++) {
    const int64_t d = axes[i];
    if (scales != NULL) q->scale[d] = number_at(scales, i);
    else q->scale[d] = strcmp(policy, "stretch") != 0 ? same : (double)y->shape[d] / (double)x->shape[d];
    if (!(q->scale[d] > 0) && y->shape[d] > 0) return ref_refuse(n, err, "a scale is not above 0");
    for (int k = 0; crops && k < 2; k++) q->roi[k][d] = number_at(roi, (uint32_t)k * count + i);
  }
  return HEDDLE_OK;
}

static bool is_plain(const request *q, const ref_node *n, int32_t d) {
  return q->scale[d] == 1.0 && n->in[0]->shape[d] == n->out->shape[d] &&
         strcmp(q->coordinates, "tf_crop_and_resize") != 0;
}

/* Where the kernel of an axis begins, relative to the element left of the place; it has 2 - 2 * that many. */
static int64_t kernel_start(const request *q, int32_t d) {
  const double s = q->antialias && q->scale[d] < 1 ? q->scale[d] : 1;
  return (int64_t)floor(-(double)q->mode / s) + 1;
}

static int64_t taps_of(const request *q, const ref_node *n, int32_t d) {
  return q->mode == NEAREST || is_plain(q, n, d) ? 1 : 2 - 2 * kernel_start(q, d);
}

heddle_status ref_plan_resize(const ref_node *n, ref_op *op, heddle_error *err) {
  request q;
  uint64_t count = 0, in = 0, cells = 0;
  double steps = 1;
  heddle_status s = HEDDLE_OK;
  const int type = ref_type_of(n->in[0]->dtype);
  if (type == REF_TYPE_NONE || type == REF_TYPE_BOOL || !region_dtype_equal(n->in[0]->dtype, n->out->dtype))
    return ref_refuse(n, err, "operand and result must be numbers of one type");
  if (n->out->ndim != n->in[0]->ndim) return ref_refuse_shape(n, err);
  s = read(n, &q, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->out, &count);
  region_value_count(n->in[0], &in);
  op->absorbed = 2 | 4 | 8;
  for (int32_t d = 0; d < n->out->ndim && count > 0; d++) {
    if (q.scale[d] < 1e-6 || n->out->shape[d] > INT32_MAX || n->in[0]->shape[d] > INT32_MAX / 2) {
      return ref_refuse(n, err, "dimension %d is too large, or made too small", d);
    }
    const int64_t taps = taps_of(&q, n, d);
    if (is_plain(&q, n, d) ? false : n->in[0]->shape[d] == 0) return ref_refuse_shape(n, err);
    cells += (uint64_t)n->out->shape[d] * (uint64_t)(1 + taps);
    steps *= (double)taps;
  }
  if (count > 0 && in == 0) return ref_refuse_shape(n, err);
  op->tail_bytes = sizeof(tables) + cells * sizeof(cell);
  ref_set_work(op, resize, count > 0 ? count / (uint64_t)n->out->shape[n->out->ndim - 1] : 0,
               10.0 * steps * (double)count, (double)ref_type_bytes(type) * (double)count);
  return HEDDLE_OK;
}

/* Place i of the result in the operand, along dimension d. */
static double source(const request *q, int32_t d, double i, double in, double out) {
  const double scale = q->scale[d], width = scale * in;
  const char *m = q->coordinates;
  if (strcmp(m, "align_corners") == 0) return width == 1 ? 0 : i * (in - 1) / (width - 1);
  if (strcmp(m, "asymmetric") == 0) return i / scale;
  if (strcmp(m, "tf_crop_and_resize") == 0) {
    const double from = q->roi[0][d], to = q->roi[1][d];
    const double at = width == 1 ? (to - from) * (in - 1) / 2 : i * (to - from) * (in - 1) / (width - 1);
    return at + from * (in - 1);
  }
  if (strcmp(m, "pytorch_half_pixel") == 0 && width == 1) return -0.5;
  /* about the middle of both, which is rounded least: a coordinate may be next to a whole number */
  if (strcmp(m, "half_pixel_symmetric") == 0) return (in - 1) / 2 + (i + 0.5 - out / 2) / scale;
  return (i + 0.5) / scale - 0.5;
}

/* Weight of an element at distance x: a tent, or Keys' cubic. */
static double kernel(const request *q, double x) {
  const double a = q->cubic_a;
  x = fabs(x);
  if (q->mode == LINEAR) return x < 1 ? 1 - x : 0;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int32_t nearest(const char *rounding, double left, double ratio) {
  const bool up = ratio == 1 || (strcmp(rounding, "round_prefer_floor") == 0  ? ratio > 0.5
                                 : strcmp(rounding, "round_prefer_ceil") == 0 ? ratio >= 0.5
                                                                              : strcmp(rounding, "ceil") == 0);
  return (int32_t)left + up;
}

/* How often each element of a row is taken in turn; 0: it is no one number, or does not fill the row. */
static int64_t repeats_of(const tables *t, const cell *cells) {
  const int32_t d = t->dims - 1;
  const int64_t times = t->in[d] > 0 ? t->out[d] / t->in[d] : 0;
  if (times == 0 || times * t->in[d] != t->out[d]) return 0;
  for (int64_t j = 0; j < t->out[d]; j++)
    if (cells[t->at[d] + 2 * j].first != j / times) return 0;
  return times;
}

void ref_fill_resize(const ref_node *n, ref_op *op) {
  tables *t = ref_tail(op);
  cell *cells = (cell *)(void *)(t + 1), *to = cells;
  request q;
  uint64_t count = 0;
  int64_t work = 0;
  read(n, &q, NULL);
  region_value_count(n->out, &count);
  t->dims = n->out->ndim;
  t->type = (uint8_t)ref_type_of(n->out->dtype);
  t->extrapolation = q.extrapolation;
  t->single = true;
  t->crops = false;
  for (int32_t d = 0; d < t->dims; d++) t->single = t->single && taps_of(&q, n, d) == 1;
  for (int32_t d = 0; d < t->dims && count > 0; d++) {
    const double in = (double)n->in[0]->shape[d], out = (double)n->out->shape[d];
    const bool plain = is_plain(&q, n, d);
    const int64_t start = kernel_start(&q, d), taps = taps_of(&q, n, d);
    t->in[d] = n->in[0]->shape[d];
    t->out[d] = n->out->shape[d];
    t->taps[d] = taps;
    t->at[d] = to - cells;
    for (int64_t i = 0; i < t->out[d]; i++, to += 1 + taps) {
      if (ref_tick(op, &work, 64 + 16 * taps)) return;
      double x = source(&q, d, (double)i, in, out);
      const bool outside = strcmp(q.coordinates, "tf_crop_and_resize") == 0 && !(x >= 0 && x <= in - 1);
      x = !(x >= -in) ? -in : x > 2 * in ? 2 * in : x; /* NaN, of a region that is none, is the lower end */
      const double left = x == floor(x) ? x - 1 : floor(x), ratio = x - left; /* ratio in (0, 1] */
      to[1].weight = 1;
      to[0].first = plain ? (int32_t)i : nearest(q.rounding, left, ratio);
      if (q.mode == NEAREST) to[0].first = (int32_t)clamp(to[0].first, t->in[d]);
      if (outside) {
        to[0].first = REF_OUTSIDE;
        t->single = false;
        t->crops = true;
      }
      if (plain || q.mode == NEAREST || outside) continue;
      const double s = q.antialias && q.scale[d] < 1 ? q.scale[d] : 1;
      double sum = 0;
      to[0].first = (int32_t)left + (int32_t)start;
      for (int pass = 0; pass < 2; pass++) {
        for (int64_t k = 0; k < taps; k++) {
          const int64_t at = to[0].first + k;
          double w = kernel(&q, ((double)(start + k) - ratio) * s);
          if (q.exclude && (at < 0 || at >= t->in[d])) w = 0;
          if (pass == 0) sum += w;
          else to[1 + k].weight = (float)(w / (sum != 0 ? sum : 1));
        }
      }
    }
  }
  t->repeats = t->single && count > 0 ? repeats_of(t, cells) : 0;
}
