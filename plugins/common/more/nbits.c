/* MatMulNBits: products with weights of 2, 4 or 8 bits, which are not expanded. Few rows are multiplied as the weights lie
 * (nbits_lanes.c); of many, some rows of the weights at a time become floats, once for all rows of operand 0. */
#include "nbits_unit.h"

enum { CHUNK = 64 /* rows of operand 0 at a time */ };

/* ---------------------------------------------------------------- rows */

static int64_t chunk_of(const more_op *m) {
  return m->i[NB_ROWS] < CHUNK ? m->i[NB_ROWS] : CHUNK;
}

/* A unit is some columns of a chunk of rows, or of all rows where they are read as they are. */
static int64_t rows_at_once(const more_op *m) {
  enum { MORE_ROWS = 8 }; /* of a chunk: weights are expanded once for each */
  const bool is_float = m->in[NB_A].type == REF_TYPE_F32 && nb_expands(m->i[NB_WAY]);
  return is_float && m->i[NB_ROWS] > CHUNK * MORE_ROWS ? CHUNK * MORE_ROWS : is_float ? m->i[NB_ROWS] : chunk_of(m);
}

/* Where each is; returns the bytes of all. base NULL: to count. */
static int64_t lay_room(const more_op *m, char *base, nb_room *r) {
  const int64_t per_unit = nb_padded(NB_UNIT * m->i[NB_BLOCKS]), chunk = chunk_of(m), way = m->i[NB_WAY];
  const bool is_float = m->in[NB_A].type == REF_TYPE_F32 && m->out[0].type == REF_TYPE_F32;
  const int64_t sizes[] = {per_unit, per_unit, nb_weights(way, m->i[NB_DEPTH]),
                           is_float ? 0 : nb_padded(chunk * m->i[NB_DEPTH]), nb_padded(rows_at_once(m) * NB_UNIT)};
  float **places[] = {&r->scales, &r->zeros, &r->weights, &r->a, &r->out};
  int64_t at = 0;
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    if (base != NULL) *places[k] = (float *)(void *)(base + at);
    at += sizes[k] * (int64_t)sizeof(float);
  }
  if (base != NULL) r->laid = base + at;
  return at + chunk * nb_laid_bytes(m, way);
}

/* Rows [first, first + count) of operand 0 as floats. */
static const float *floats_of(const more_op *m, const more_args *a, int64_t first, int64_t count, const nb_room *r) {
  const int64_t depth = m->i[NB_DEPTH];
  if (m->in[NB_A].type == REF_TYPE_F32) return (const float *)a->in[NB_A] + first * depth;
  for (int64_t k = 0; k < count * depth; k++) r->a[k] = (float)more_get(&m->in[NB_A], a->in[NB_A], first * depth + k);
  return r->a;
}

/* ---------------------------------------------------------------- products */

static inline uint32_t bias_of(const more_op *m) {
  return m->i[NB_FORM] != BLOCK_NONE ? NB_SCALES : NB_BIAS;
}

/* A unit's columns of `count` rows from row `first` of operand 0 on. */
static void multiply(const more_op *m, const more_args *a, const nbits_rows *w, int64_t column, int64_t columns,
                     const float *from, int64_t first, int64_t count, const nb_room *r) {
  const int64_t all = m->i[NB_COLUMNS];
  const bool direct = m->out[0].type == REF_TYPE_F32 && !nb_in_units(m->i[NB_WAY]);
  float *out = direct ? (float *)a->out[0] + first * all + column : r->out;
  const int64_t step = direct ? all : NB_UNIT;
  nb_multiply(m, m->i[NB_WAY], w, columns, from, count, r, out, step);
  const uint32_t bias = bias_of(m);
  const bool has_bias = m->n_in > bias && a->in[bias] != NULL;
  for (int64_t i = 0; i < count && (has_bias || !direct); i++) {
    for (int64_t n = 0; n < columns; n++) {
      float *x = out + i * step + n;
      if (has_bias) *x += (float)more_get(&m->in[bias], a->in[bias], column + n);
      if (!direct && m->out[0].type != REF_TYPE_F32)
        more_put(&m->out[0], a->out[0], (first + i) * all + column + n, *x);
    }
    if (!direct && m->out[0].type == REF_TYPE_F32)
      memcpy((float *)a->out[0] + (first + i) * all + column, out + i * step, (size_t)columns * sizeof *out);
  }
}

static void run_product(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t units = (m->i[NB_COLUMNS] + NB_UNIT - 1) / NB_UNIT, most = rows_at_once(m);
  const int32_t *index = m->n_in > NB_INDEX ? a->in[NB_INDEX] : NULL;
  int64_t chunk = -1, work = 0;
  const float *from = NULL;
  nb_room r;
  lay_room(m, a->scratch, &r);
  for (int64_t u = first; u < last; u++) {
    const int64_t at = u / units * most, count = m->i[NB_ROWS] - at < most ? m->i[NB_ROWS] - at : most;
    const int64_t column = u % units * NB_UNIT,
                  columns = m->i[NB_COLUMNS] - column < NB_UNIT ? m->i[NB_COLUMNS] - column : NB_UNIT;
    if (more_tick(m, &work, count * columns * m->i[NB_DEPTH])) return;
    if (u / units != chunk) {
      from = floats_of(m, a, at, count, &r);
      nb_lay_out(m, m->i[NB_WAY], from, count, r.laid);
      chunk = u / units;
    }
    const nbits_rows w = nb_rows(m, a, column, columns, &r);
    for (int64_t n = 0; n < columns && m->i[NB_WAY] == NB_EXPANDED; n++)
      nb_expand_row(m, &w, index, n, r.weights + n * m->i[NB_DEPTH]);
    multiply(m, a, &w, column, columns, from, at, count, &r);
  }
}

/* ---------------------------------------------------------------- float64 */

static void run_exact(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t depth = m->i[NB_DEPTH], columns = m->i[NB_COLUMNS];
  const bool grouped = m->n_in > NB_INDEX && a->in[NB_INDEX] != NULL;
  const uint32_t bias = bias_of(m);
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t r = u / columns, n = u % columns;
    if (more_tick(m, &work, 10 * depth)) return;
    double sum = m->n_in > bias && a->in[bias] != NULL ? more_get(&m->in[bias], a->in[bias], n) : 0;
    if (m->i[NB_FORM] != BLOCK_NONE) sum += nb_formed_exact(m, a, r, n);
    else
      for (int64_t k = 0; k < depth; k++) {
        const int64_t b = grouped ? more_get_int(&m->in[NB_INDEX], a->in[NB_INDEX], k) : k / m->i[NB_BLOCK];
        sum += more_get(&m->in[NB_A], a->in[NB_A], r * depth + k) * nb_weight_at(m, a, n, k, b);
      }
    more_put(&m->out[0], a->out[0], u, sum);
  }
}

/* ---------------------------------------------------------------- the node */

static void check_index(more_plan *p) {
  const more_value *v = &p->m->in[NB_INDEX];
  const int64_t *i = p->m->i;
  if (!more_operand(p, NB_INDEX)) return;
  if (v->type != REF_TYPE_I32) more_refuse(p, "operand 4 must be int32");
  if (v->count != i[NB_DEPTH]) nb_holds(p, NB_INDEX, i[NB_BLOCKS] * i[NB_BLOCK], "one for each weight of a row");
  for (int64_t k = 0; more_ok(p) && p->data[NB_INDEX] != NULL && k < v->count; k++) {
    const int64_t b = more_get_int(v, p->data[NB_INDEX], k);
    if (b < 0 || b >= i[NB_BLOCKS])
      more_refuse(p, "operand 4 names block %lld, and a row has %lld", (long long)b, (long long)i[NB_BLOCKS]);
  }
}

static void check_operands(more_plan *p) {
  more_op *m = p->m;
  const int64_t *i = m->i;
  const more_value *zeros = &m->in[NB_ZEROS];
  nb_check_types(p);
  nb_holds(p, NB_B, i[NB_COLUMNS] * i[NB_ROW_BYTES], "N rows of ceil(K / block_size) blocks");
  nb_holds(p, NB_SCALES, i[NB_COLUMNS] * i[NB_BLOCKS], "one for each block");
  nb_holds(p, NB_BIAS, i[NB_COLUMNS], "one for each column");
  if (more_operand(p, NB_ZEROS)) {
    m->i[NB_FLOAT_ZEROS] = zeros->type != REF_TYPE_U8;
    if (m->i[NB_FLOAT_ZEROS] && zeros->type != m->in[NB_SCALES].type)
      more_refuse(p, "operand 3 is neither uint8 nor of the type of the scales");
    nb_holds(p, NB_ZEROS, i[NB_COLUMNS] * (m->i[NB_FLOAT_ZEROS] ? i[NB_BLOCKS] : (i[NB_BLOCKS] * i[NB_BITS] + 7) / 8),
             "one for each block");
  }
  check_index(p);
}

void nb_result(more_plan *p) {
  const more_value *x = &p->m->in[NB_A];
  int64_t *i = p->m->i, shape[MORE_DIMS];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = i[NB_COLUMNS];
  more_result(p, 0, x->type, x->ndim, shape);
  i[NB_ROWS] = more_count(x->shape, 0, x->ndim - 1);
}

void nb_plan_product(more_plan *p) {
  more_op *m = p->m;
  const int64_t *i = m->i;
  const double weights = (double)i[NB_COLUMNS] * (double)i[NB_DEPTH];
  nb_room unused;
  if (m->in[NB_A].type == REF_TYPE_F64) {
    more_work(p, run_exact, i[NB_ROWS] * i[NB_COLUMNS], (double)i[NB_ROWS] * weights);
    return;
  }
  if (!more_ok(p) || i[NB_ROWS] < 1) {
    more_loop(p, run_product, 0, 0);
    return;
  }
  const int64_t units = (i[NB_COLUMNS] + NB_UNIT - 1) / NB_UNIT,
                chunks = (i[NB_ROWS] + rows_at_once(m) - 1) / rows_at_once(m);
  more_loop(p, run_product, units * chunks,
            nb_steps(i[NB_WAY]) * weights * (double)i[NB_ROWS] +
                (nb_expands(i[NB_WAY]) ? 2 * weights * (double)chunks : 0));
  m->part_scratch = (uint64_t)lay_room(m, NULL, &unused);
  m->unsliced = true; /* a slice would lay out operand 0 again */
}

void more_setup_matmul_nbits(more_plan *p) {
  int64_t *i = p->m->i;
  const more_value *x = &p->m->in[NB_A];
  nb_read_sizes(p);
  more_rank(p, NB_A, 1, MORE_DIMS);
  if (!more_ok(p)) return;
  if (x->shape[x->ndim - 1] != i[NB_DEPTH])
    more_refuse(p, "operand 0 is %lld deep, and K is %lld", (long long)x->shape[x->ndim - 1], (long long)i[NB_DEPTH]);
  i[NB_BLOCKS] = (i[NB_DEPTH] + i[NB_BLOCK] - 1) / i[NB_BLOCK];
  i[NB_ROW_BYTES] = i[NB_BLOCKS] * (i[NB_BLOCK] * i[NB_BITS] / 8);
  check_operands(p);
  if (!more_ok(p)) return;
  nb_result(p);
  if (x->type != REF_TYPE_F64)
    i[NB_WAY] =
        more_operand(p, NB_INDEX) ? NB_EXPANDED : nb_way(p, more_int(p, "accuracy_level", 0), i[NB_ROWS] <= NB_FEW);
  nb_plan_product(p);
}
