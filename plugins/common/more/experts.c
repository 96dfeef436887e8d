/* MatMulExperts: row r of the result is a row of operand 0 times the matrix of expert index[r]. Rows of one expert are put
 * beside each other and multiplied together: few of packed weights as those lie, else with floats (nbits_unit.h). */
#include "nbits_unit.h"
#include "plugins/common/halves.h"
#include "rows.h"

#include <math.h>

enum { CHUNK = 128 /* rows of an expert at a time */, FEW_WAY = NB_OTHERS };
enum { FLOATS = NB_EXPANDED + 1 /* the weights are numbers */ };

/* ---------------------------------------------------------------- scratch memory */

typedef struct room {
  nb_room unit;
  int32_t *first; /* of each expert's in order, and of those that no expert has */
  int32_t *order; /* rows of the result, by experts */
} room;

static int64_t chunk_of(const more_op *m) {
  return m->i[NB_ROWS] < CHUNK ? m->i[NB_ROWS] : CHUNK;
}

static int64_t lay_room(const more_op *m, char *base, room *r) {
  const bool packed = m->i[NB_BITS] != 0;
  const int64_t per_unit = packed ? nb_padded(NB_UNIT * m->i[NB_BLOCKS]) : 0, chunk = chunk_of(m),
                depth = m->i[NB_DEPTH], way = m->i[NB_WAY];
  const bool widens = way == FLOATS && m->in[NB_B].type != REF_TYPE_F32;
  const bool turns = way == FLOATS && !widens; /* rows of float32 to columns, nbits_narrow.c */
  const int64_t sizes[] = {per_unit,
                           per_unit,
                           nb_weights(widens  ? NB_EXPANDED
                                      : turns ? NB_NARROW
                                              : way,
                                      depth),
                           nb_padded(chunk * depth),
                           nb_padded(chunk * NB_UNIT),
                           nb_padded(m->i[NB_EXPERTS] + 3),
                           nb_padded(m->i[NB_ROWS])};
  float *places[sizeof sizes / sizeof sizes[0]] = {NULL};
  int64_t at = 0;
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    if (base != NULL) places[k] = (float *)(void *)(base + at);
    at += sizes[k] * (int64_t)sizeof(float);
  }
  if (base != NULL)
    *r = (room){{places[0], places[1], places[2], places[3], base + at, places[4]},
                (int32_t *)(void *)places[5],
                (int32_t *)(void *)places[6]};
  if (!packed) return at;
  const int64_t few = NB_FEW * nb_laid_bytes(m, m->i[FEW_WAY]), many = chunk * nb_laid_bytes(m, way);
  return at + (few > many ? few : many);
}

/* Where the rows of an expert go; those of none are behind all. */
static inline int64_t bin_of(const more_op *m, int32_t expert) {
  return expert >= 0 && expert < m->i[NB_EXPERTS] ? expert : m->i[NB_EXPERTS];
}

/* Rows by experts: those of bin b are order[first[b]] to order[first[b + 1] - 1]. */
static void sort_rows(const more_op *m, const int32_t *index, const room *r) {
  const int64_t experts = m->i[NB_EXPERTS];
  memset(r->first, 0, (size_t)(experts + 3) * sizeof *r->first);
  for (int64_t k = 0; k < m->i[NB_ROWS]; k++) r->first[bin_of(m, index[k]) + 2]++;
  for (int64_t e = 1; e <= experts + 1; e++) r->first[e + 1] += r->first[e];
  for (int64_t k = 0; k < m->i[NB_ROWS]; k++) r->order[r->first[bin_of(m, index[k]) + 1]++] = (int32_t)k;
}

/* ---------------------------------------------------------------- products */

static void widen(const more_value *v, const void *from, int64_t at, int64_t count, float *to) {
  if (v->type == REF_TYPE_F32) memcpy(to, (const float *)from + at, (size_t)count * sizeof *to);
  else halves_widen(v->type == MORE_TYPE_BF16, (const char *)from + 2 * at, to, (uint64_t)count);
}

/* The first of count rows of weights as floats. */
static const float *floats_of(const more_op *m, const more_args *a, int64_t first, int64_t count, const room *r) {
  const int64_t depth = m->i[NB_DEPTH];
  if (m->in[NB_B].type == REF_TYPE_F32) return (const float *)a->in[NB_B] + first * depth;
  widen(&m->in[NB_B], a->in[NB_B], first * depth, count * depth, r->unit.weights);
  return r->unit.weights;
}

/* Rows of float32 as they lie. */
typedef struct plain_rows {
  const float *first;
  int64_t depth;
} plain_rows;

static void copy_piece(const void *of, int64_t n, int64_t k, int64_t count, float *out) {
  const plain_rows *rows = of;
  memcpy(out, rows->first + n * rows->depth + k, (size_t)count * sizeof *out);
}

/* Columns of `rows` rows of expert e to their places. */
static void multiply_unit(const more_op *m, const more_args *a, int64_t e, int64_t column, const int32_t *rows,
                          int64_t count, int64_t way, room *r) {
  const int64_t all = m->i[NB_COLUMNS], first = e * all + column, depth = m->i[NB_DEPTH];
  const int64_t columns = all - column < NB_UNIT ? all - column : NB_UNIT;
  float *out = r->unit.out;
  if (way == FLOATS && count > NB_FEW && m->in[NB_B].type == REF_TYPE_F32 && nbits_has_narrow()) {
    const plain_rows of = {(const float *)a->in[NB_B] + first * depth, depth};
    nbits_multiply_narrow(copy_piece, &of, columns, r->unit.a, count, depth, r->unit.weights, out);
  } else if (way == FLOATS) {
    const more_rows product = {.a = r->unit.a,
                               .b = floats_of(m, a, first, columns, r),
                               .out = out,
                               .m = count,
                               .n = columns,
                               .k = depth,
                               .a_step = depth,
                               .out_step = NB_UNIT};
    more_rows_product(&product);
  } else {
    const nbits_rows w = nb_rows(m, a, first, columns, &r->unit);
    for (int64_t n = 0; n < columns && way == NB_EXPANDED; n++)
      nb_expand_row(m, &w, NULL, n, r->unit.weights + n * depth);
    nb_multiply(m, way, &w, columns, r->unit.a, count, &r->unit, out, NB_UNIT);
  }
  if (m->n_in > NB_BIAS && a->in[NB_BIAS] != NULL) {
    float bias[NB_UNIT];
    widen(&m->in[NB_BIAS], a->in[NB_BIAS], first, columns, bias);
    for (int64_t i = 0; i < count; i++)
      for (int64_t n = 0; n < columns; n++) out[i * NB_UNIT + n] += bias[n];
  }
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = rows[i] * all + column;
    if (m->out[0].type == REF_TYPE_F32)
      memcpy((float *)a->out[0] + at, out + i * NB_UNIT, (size_t)columns * sizeof *out);
    else
      halves_narrow(m->out[0].type == MORE_TYPE_BF16, out + i * NB_UNIT, (char *)a->out[0] + 2 * at, (uint64_t)columns);
  }
}

static void put_nan(const more_op *m, const more_args *a, const int32_t *rows, int64_t count, int64_t first,
                    int64_t last) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t n = first; n < last; n++) more_put(&m->out[0], a->out[0], rows[i] * m->i[NB_COLUMNS] + n, NAN);
}

/* Units of columns, of all experts. */
static void run_experts(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t experts = m->i[NB_EXPERTS], depth = m->i[NB_DEPTH], end = last * NB_UNIT;
  const int64_t columns = (end < m->i[NB_COLUMNS] ? end : m->i[NB_COLUMNS]) - first * NB_UNIT;
  int64_t work = 0;
  room r;
  lay_room(m, a->scratch, &r);
  sort_rows(m, a->in[NB_INDEX], &r);
  for (int64_t e = 0; e < experts; e++) {
    const int64_t have = r.first[e + 1] - r.first[e], way = have <= NB_FEW ? m->i[FEW_WAY] : m->i[NB_WAY];
    for (int64_t from = 0; from < have; from += CHUNK) {
      const int64_t count = have - from < CHUNK ? have - from : CHUNK;
      const int32_t *rows = r.order + r.first[e] + from;
      if (more_tick(m, &work, count * columns * depth)) return;
      for (int64_t i = 0; i < count; i++)
        widen(&m->in[NB_A], a->in[NB_A], rows[i] / m->i[NB_SHARE] * depth, depth, r.unit.a + i * depth);
      if (way != FLOATS) nb_lay_out(m, way, r.unit.a, count, r.unit.laid);
      for (int64_t u = first; u < last; u++) multiply_unit(m, a, e, u * NB_UNIT, rows, count, way, &r);
    }
  }
  put_nan(m, a, r.order + r.first[experts], m->i[NB_ROWS] - r.first[experts], first * NB_UNIT,
          first * NB_UNIT + columns);
}

static void run_exact(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t depth = m->i[NB_DEPTH], columns = m->i[NB_COLUMNS];
  const int32_t *index = a->in[NB_INDEX];
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t r = u / columns, e = index[r], n = e * columns + u % columns;
    if (more_tick(m, &work, 10 * depth)) return;
    double sum = NAN;
    if (e >= 0 && e < m->i[NB_EXPERTS]) {
      sum = m->n_in > NB_BIAS && a->in[NB_BIAS] != NULL ? more_get(&m->in[NB_BIAS], a->in[NB_BIAS], n) : 0;
      for (int64_t k = 0; k < depth; k++)
        sum += more_get(&m->in[NB_A], a->in[NB_A], r / m->i[NB_SHARE] * depth + k) *
               (m->i[NB_BITS] == 0 ? more_get(&m->in[NB_B], a->in[NB_B], n * depth + k)
                                   : nb_weight_at(m, a, n, k, k / m->i[NB_BLOCK]));
    }
    more_put(&m->out[0], a->out[0], u, sum);
  }
}

/* ---------------------------------------------------------------- the node */

/* Of weights [experts, N, K], packed or not. */
static void check_weights(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i;
  const more_value *w = &m->in[NB_B];
  const bool packed = i[NB_BITS] != 0;
  more_rank(p, NB_B, 3, 3);
  if (!more_ok(p)) return;
  i[NB_EXPERTS] = w->shape[0];
  i[NB_ROW_BYTES] = packed ? (i[NB_DEPTH] * i[NB_BITS] + 7) / 8 : 0;
  if (i[NB_EXPERTS] < 1 || i[NB_EXPERTS] > INT32_MAX / i[NB_COLUMNS])
    more_refuse(p, "operand 1 has no experts, or too many");
  if (w->shape[1] != i[NB_COLUMNS] || w->shape[2] != (packed ? i[NB_ROW_BYTES] : i[NB_DEPTH]))
    more_refuse(p, "operand 1 has matrices of %lld by %lld, expected %lld by %lld", (long long)w->shape[1],
                (long long)w->shape[2], (long long)i[NB_COLUMNS], (long long)(packed ? i[NB_ROW_BYTES] : i[NB_DEPTH]));
  if (!more_ok(p)) return;
  const int64_t rows = i[NB_EXPERTS] * i[NB_COLUMNS];
  nb_holds(p, NB_BIAS, rows, "one for each column of each expert");
  if (!packed) {
    more_same_type(p, NB_A, NB_B);
    more_same_type(p, NB_A, NB_BIAS);
    if (more_operand(p, NB_SCALES) || more_operand(p, NB_ZEROS))
      more_refuse(p, "weights that are numbers have no scales");
    return;
  }
  i[NB_BLOCKS] = (i[NB_DEPTH] + i[NB_BLOCK] - 1) / i[NB_BLOCK];
  nb_check_types(p);
  if (!more_operand(p, NB_SCALES)) more_refuse(p, "packed weights have no scales");
  nb_holds(p, NB_SCALES, rows * i[NB_BLOCKS], "one for each block");
  nb_holds(p, NB_ZEROS, rows * ((i[NB_BLOCKS] * i[NB_BITS] + 7) / 8), "one for each block");
  if (more_operand(p, NB_ZEROS) && m->in[NB_ZEROS].type != REF_TYPE_U8) more_refuse(p, "operand 3 must be uint8");
}

static void read_sizes(more_plan *p) {
  int64_t *i = p->m->i;
  if (more_int(p, "bits", 0) != 0) {
    nb_read_sizes(p);
    return;
  }
  i[NB_DEPTH] = more_int(p, "K", 0);
  i[NB_COLUMNS] = more_int(p, "N", 0);
  if (i[NB_DEPTH] < 1 || i[NB_DEPTH] > INT32_MAX || i[NB_COLUMNS] < 1 || i[NB_COLUMNS] > INT32_MAX)
    more_refuse(p, "K or N is out of range");
}

void more_setup_matmul_experts(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i, shape[MORE_DIMS];
  const more_value *x = &m->in[NB_A], *index = &m->in[NB_INDEX];
  room unused;
  read_sizes(p);
  more_rank(p, NB_A, 1, MORE_DIMS);
  more_rank(p, NB_INDEX, 1, MORE_DIMS - 1);
  more_real(p, NB_A);
  if (!more_operand(p, NB_INDEX)) more_refuse(p, "it has no experts, operand 4");
  if (more_ok(p) && index->type != REF_TYPE_I32) more_refuse(p, "operand 4 must be int32");
  if (more_ok(p) && x->shape[x->ndim - 1] != i[NB_DEPTH])
    more_refuse(p, "operand 0 is %lld deep, and K is %lld", (long long)x->shape[x->ndim - 1], (long long)i[NB_DEPTH]);
  check_weights(p);
  if (!more_ok(p)) return;
  const int64_t rows = more_count(x->shape, 0, x->ndim - 1), share = index->shape[index->ndim - 1];
  i[NB_ROWS] = index->count;
  i[NB_SHARE] = index->count == rows ? 1 : share > 0 ? share : 1;
  if (i[NB_ROWS] != rows * i[NB_SHARE] || i[NB_ROWS] > INT32_MAX)
    more_refuse(p, "operand 4 has %lld experts in rows of %lld, and operand 0 has %lld rows", (long long)index->count,
                (long long)share, (long long)rows);
  if (!more_ok(p)) return;
  memcpy(shape, index->shape, sizeof shape);
  shape[index->ndim] = i[NB_COLUMNS];
  more_result(p, 0, x->type, index->ndim + 1, shape);
  const double products = (double)i[NB_ROWS] * (double)i[NB_COLUMNS] * (double)i[NB_DEPTH];
  if (x->type == REF_TYPE_F64) {
    more_work(p, run_exact, i[NB_ROWS] * i[NB_COLUMNS], products);
    return;
  }
  const int64_t accuracy = more_int(p, "accuracy_level", 0);
  i[FEW_WAY] = i[NB_BITS] == 0 ? FLOATS : nb_way(p, accuracy, true);
  i[NB_WAY] = i[NB_BITS] == 0 ? FLOATS : nb_way(p, accuracy, false);
  if (!more_ok(p) || i[NB_ROWS] < 1) {
    more_loop(p, run_experts, 0, 0);
    return;
  }
  const bool few = i[NB_ROWS] <= NB_FEW * i[NB_EXPERTS];
  const double each = i[NB_BITS] == 0 ? 0.4 : nb_steps(i[few ? FEW_WAY : NB_WAY]);
  more_loop(p, run_experts, (i[NB_COLUMNS] + NB_UNIT - 1) / NB_UNIT, each * products);
  m->part_scratch = (uint64_t)lay_room(m, NULL, &unused);
  m->unsliced = true; /* a slice would sort the rows again */
}
