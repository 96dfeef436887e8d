/* MatMulNBits: products with weights of 2, 4 or 8 bits, which are not expanded. Few rows are multiplied as the weights lie
 * (nbits_lanes.c); of many, some rows of the weights at a time become floats, once for all rows of operand 0. */
#include "more.h"
#include "nbits.h"
#include "rows.h"

enum { ROWS, DEPTH, COLUMNS, BLOCK, BITS, BLOCKS, WAY, FLOAT_ZEROS, FLOAT_SCALES };
enum { A, B, SCALES, ZEROS, INDEX, BIAS };

/* How a product is computed: as the weights lie, in floats or in int8, of 8 bits in floats; or of weights that are made
 * floats, in tiles or in rows. */
enum { LYING, BYTES, EIGHT, TILES, EXPANDED };

enum { FEW = 6, UNIT = NBITS_TILE /* columns */, CHUNK = 64 /* rows of operand 0 at a time */ };

/* ---------------------------------------------------------------- weights */

/* Scratch memory of a part. */
typedef struct room {
  float *scales, *zeros; /* of rows of a unit */
  float *weights;        /* of a unit, expanded; or a tile */
  float *a;              /* rows of operand 0 as floats, where they are not */
  char *laid;            /* and laid out */
  float *out;            /* rows of a unit's results */
} room;

static int64_t padded(int64_t floats) {
  return (floats + 15) / 16 * 16;
}

/* Of a row of operand 0. */
static int64_t laid_bytes(const more_op *m) {
  const int64_t groups = (m->i[DEPTH] + NBITS_GROUP - 1) / NBITS_GROUP, whole = m->i[BLOCKS] * m->i[BLOCK];
  switch (m->i[WAY]) {
  case LYING: return groups * NBITS_GROUP_FLOATS * (int64_t)sizeof(float);
  case BYTES: return groups * NBITS_GROUP_BYTES;
  case EIGHT: return padded(whole) * (int64_t)sizeof(float);
  default: return 0;
  }
}

static bool expands(const more_op *m) {
  return m->i[WAY] == TILES || m->i[WAY] == EXPANDED;
}

static int64_t chunk_of(const more_op *m) {
  return m->i[ROWS] < CHUNK ? m->i[ROWS] : CHUNK;
}

/* A unit is some columns of a chunk of rows, or of all rows where they are read as they are. */
static int64_t rows_at_once(const more_op *m) {
  enum { MORE_ROWS = 8 }; /* of a chunk: weights are expanded once for each */
  const bool is_float = m->in[A].type == REF_TYPE_F32 && expands(m);
  return is_float && m->i[ROWS] > CHUNK * MORE_ROWS ? CHUNK * MORE_ROWS : is_float ? m->i[ROWS] : chunk_of(m);
}

/* Where each is; returns the bytes of all. base NULL: to count. */
static int64_t lay_room(const more_op *m, char *base, room *r) {
  const int64_t per_unit = padded(UNIT * m->i[BLOCKS]), chunk = chunk_of(m);
  const bool is_float = m->in[A].type == REF_TYPE_F32 && m->out[0].type == REF_TYPE_F32;
  const int64_t sizes[] = {per_unit, per_unit,
                           m->i[WAY] == EXPANDED ? padded(UNIT * m->i[DEPTH])
                           : m->i[WAY] == TILES  ? UNIT * NBITS_TILE_DEPTH
                                                 : 0,
                           is_float ? 0 : padded(chunk * m->i[DEPTH]), padded(rows_at_once(m) * UNIT)};
  float **places[] = {&r->scales, &r->zeros, &r->weights, &r->a, &r->out};
  int64_t at = 0;
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    if (base != NULL) *places[k] = (float *)(void *)(base + at);
    at += sizes[k] * (int64_t)sizeof(float);
  }
  if (base != NULL) r->laid = base + at;
  return at + chunk * laid_bytes(m);
}

/* Scales and zero points, from half of the range, of count rows. zeros NULL where there are none. */
static void read_scales(const more_op *m, const more_args *a, int64_t first, int64_t count, const room *r,
                        nbits_rows *w) {
  const int64_t blocks = m->i[BLOCKS], bits = m->i[BITS], half = (int64_t)1 << (bits - 1),
                per_row = (blocks * bits + 7) / 8;
  const more_value *zeros = &m->in[ZEROS];
  w->scale_step = blocks;
  w->scales = r->scales;
  if (m->in[SCALES].type == REF_TYPE_F32) w->scales = (const float *)a->in[SCALES] + first * blocks;
  else
    for (int64_t k = 0; k < count * blocks; k++)
      r->scales[k] = (float)more_get(&m->in[SCALES], a->in[SCALES], first * blocks + k);
  w->zeros = NULL;
  if (m->n_in <= ZEROS || a->in[ZEROS] == NULL) return;
  w->zeros = r->zeros;
  if (m->i[FLOAT_ZEROS]) {
    for (int64_t k = 0; k < count * blocks; k++)
      r->zeros[k] = (float)(more_get(zeros, a->in[ZEROS], first * blocks + k) - (double)half);
    return;
  }
  for (int64_t n = 0; n < count; n++) {
    float *to = r->zeros + n * blocks;
    nbits_products_here()->unpack((const uint8_t *)a->in[ZEROS] + (first + n) * per_row, bits, blocks, to);
    for (int64_t k = 0; k < blocks; k++) to[k] -= (float)half;
  }
}

/* Row n of a unit as floats. */
static void expand_row(const more_op *m, const more_args *a, const nbits_rows *w, int64_t n, float *restrict out) {
  const int64_t depth = m->i[DEPTH], block = m->i[BLOCK], blocks = m->i[BLOCKS];
  const float half = (float)((int64_t)1 << (m->i[BITS] - 1));
  const float *scales = w->scales + n * blocks, *zeros = w->zeros != NULL ? w->zeros + n * blocks : NULL;
  const int32_t *index = m->n_in > INDEX ? a->in[INDEX] : NULL;
  nbits_products_here()->unpack(w->q + n * w->q_step, m->i[BITS], depth, out);
  if (index != NULL) {
    for (int64_t k = 0; k < depth; k++) { /* what is out of range was refused where it is known */
      const int64_t b = index[k] >= 0 && index[k] < blocks ? index[k] : 0;
      out[k] = (out[k] - half - (zeros != NULL ? zeros[b] : 0.0F)) * scales[b];
    }
    return;
  }
  for (int64_t b = 0; b < blocks; b++) {
    const float zero = half + (zeros != NULL ? zeros[b] : 0.0F), scale = scales[b];
    float *to = out + b * block;
    const int64_t count = depth - b * block < block ? depth - b * block : block;
    for (int64_t k = 0; k < count; k++) to[k] = (to[k] - zero) * scale;
  }
}

/* ---------------------------------------------------------------- products */

/* Rows [first, first + count) of operand 0 as floats. */
static const float *floats_of(const more_op *m, const more_args *a, int64_t first, int64_t count, const room *r) {
  const int64_t depth = m->i[DEPTH];
  if (m->in[A].type == REF_TYPE_F32) return (const float *)a->in[A] + first * depth;
  for (int64_t k = 0; k < count * depth; k++) r->a[k] = (float)more_get(&m->in[A], a->in[A], first * depth + k);
  return r->a;
}

static void lay_out(const more_op *m, const float *from, int64_t count, const room *r) {
  const int64_t depth = m->i[DEPTH], step = laid_bytes(m),
                block = m->i[BLOCK] < NBITS_GROUP ? m->i[BLOCK] : NBITS_GROUP;
  for (int64_t i = 0; i < count; i++) {
    const float *row = from + i * depth;
    float *to = (float *)(void *)(r->laid + i * step);
    if (m->i[WAY] == BYTES) {
      nbits_lay_bytes(row, depth, block, (int8_t *)r->laid + i * step);
    } else if (m->i[WAY] == EIGHT) {
      memset(to, 0, (size_t)step);
      memcpy(to, row, (size_t)depth * sizeof *to);
    } else if (m->i[WAY] == LYING) {
      nbits_lay_floats(row, depth, to);
    }
  }
}

static void multiply_lying(const more_op *m, const nbits_rows *unit, int64_t rows, int64_t columns, const room *r,
                           float *out, int64_t step) {
  const nbits_products *by = nbits_products_here();
  const nbits_product product = m->i[WAY] == BYTES ? by->bytes : m->i[WAY] == EIGHT ? by->eight : by->floats;
  for (int64_t n = 0; n < columns; n += NBITS_AT_ONCE) {
    nbits_rows w = *unit;
    w.q += n * w.q_step;
    w.scales += n * w.scale_step;
    if (w.zeros != NULL) w.zeros += n * w.scale_step;
    const int count = columns - n < NBITS_AT_ONCE ? (int)(columns - n) : NBITS_AT_ONCE;
    for (int64_t i = 0; i < rows; i++) {
      w.a = r->laid + i * laid_bytes(m);
      product(&w, count, out + i * step + n);
    }
  }
}

/* A unit's columns of `count` rows from row `first` of operand 0 on. */
static void multiply(const more_op *m, const more_args *a, const nbits_rows *w, int64_t column, int64_t columns,
                     const float *from, int64_t first, int64_t count, const room *r) {
  const int64_t all = m->i[COLUMNS];
  const bool direct = m->out[0].type == REF_TYPE_F32 && m->i[WAY] != TILES;
  float *out = direct ? (float *)a->out[0] + first * all + column : r->out;
  const int64_t step = direct ? all : UNIT;
  if (m->i[WAY] == TILES) {
    nbits_multiply_tiles(w, m->i[BITS], columns, from, count, m->i[DEPTH], r->weights, out);
  } else if (m->i[WAY] == EXPANDED) {
    const more_rows product = {.a = from,
                               .b = r->weights,
                               .out = out,
                               .m = count,
                               .n = columns,
                               .k = m->i[DEPTH],
                               .a_step = m->i[DEPTH],
                               .out_step = step};
    more_rows_product(&product);
  } else {
    multiply_lying(m, w, count, columns, r, out, step);
  }
  const bool has_bias = m->n_in > BIAS && a->in[BIAS] != NULL;
  for (int64_t i = 0; i < count && (has_bias || !direct); i++) {
    for (int64_t n = 0; n < columns; n++) {
      float *x = out + i * step + n;
      if (has_bias) *x += (float)more_get(&m->in[BIAS], a->in[BIAS], column + n);
      if (!direct && m->out[0].type != REF_TYPE_F32)
        more_put(&m->out[0], a->out[0], (first + i) * all + column + n, *x);
    }
    if (!direct && m->out[0].type == REF_TYPE_F32)
      memcpy((float *)a->out[0] + (first + i) * all + column, out + i * step, (size_t)columns * sizeof *out);
  }
}

static void run_product(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t units = (m->i[COLUMNS] + UNIT - 1) / UNIT, blocks = m->i[BLOCKS], most = rows_at_once(m);
  const int64_t row =
      blocks * (m->i[BLOCK] * m->i[BITS] / 8); /* bytes; a lying row ends with the group of its last weight */
  const int64_t used = (m->i[DEPTH] + NBITS_GROUP - 1) / NBITS_GROUP * (NBITS_GROUP / 2);
  int64_t chunk = -1, work = 0;
  const float *from = NULL;
  room r;
  lay_room(m, a->scratch, &r);
  for (int64_t u = first; u < last; u++) {
    const int64_t at = u / units * most, count = m->i[ROWS] - at < most ? m->i[ROWS] - at : most;
    const int64_t column = u % units * UNIT, columns = m->i[COLUMNS] - column < UNIT ? m->i[COLUMNS] - column : UNIT;
    nbits_rows w = {.q = (const uint8_t *)a->in[B] + column * row,
                    .q_step = row,
                    .bytes = row < used ? row : used,
                    .blocks = blocks,
                    .block = m->i[BLOCK]};
    if (more_tick(m, &work, count * columns * m->i[DEPTH])) return;
    if (u / units != chunk) {
      from = floats_of(m, a, at, count, &r);
      lay_out(m, from, count, &r);
      chunk = u / units;
    }
    read_scales(m, a, column, columns, &r, &w);
    for (int64_t n = 0; n < columns && m->i[WAY] == EXPANDED; n++) expand_row(m, a, &w, n, r.weights + n * m->i[DEPTH]);
    multiply(m, a, &w, column, columns, from, at, count, &r);
  }
}

/* ---------------------------------------------------------------- float64 */

static double weight_at(const more_op *m, const more_args *a, int64_t n, int64_t k) {
  const int64_t bits = m->i[BITS], each = 8 / bits, blocks = m->i[BLOCKS], mask = (1 << bits) - 1;
  const uint8_t *row = (const uint8_t *)a->in[B] + n * blocks * (m->i[BLOCK] / each), *zeros = NULL;
  int64_t b = k / m->i[BLOCK];
  double zero = (double)(1 << (bits - 1));
  if (m->n_in > INDEX && a->in[INDEX] != NULL) b = more_get_int(&m->in[INDEX], a->in[INDEX], k);
  if (b < 0 || b >= blocks) b = 0; /* what is out of range was refused where it is known */
  if (m->n_in > ZEROS) zeros = a->in[ZEROS];
  if (zeros != NULL && m->i[FLOAT_ZEROS]) zero = more_get(&m->in[ZEROS], zeros, n * blocks + b);
  else if (zeros != NULL)
    zero = (double)(zeros[n * ((blocks + each - 1) / each) + b / each] >> (bits * (b % each)) & mask);
  return ((double)(row[k / each] >> (bits * (k % each)) & mask) - zero) *
         more_get(&m->in[SCALES], a->in[SCALES], n * blocks + b);
}

static void run_exact(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t depth = m->i[DEPTH], columns = m->i[COLUMNS];
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t r = u / columns, n = u % columns;
    if (more_tick(m, &work, 10 * depth)) return;
    double sum = m->n_in > BIAS && a->in[BIAS] != NULL ? more_get(&m->in[BIAS], a->in[BIAS], n) : 0;
    for (int64_t k = 0; k < depth; k++) sum += more_get(&m->in[A], a->in[A], r * depth + k) * weight_at(m, a, n, k);
    more_put(&m->out[0], a->out[0], u, sum);
  }
}

/* ---------------------------------------------------------------- the node */

/* Of scales, bias and the like: count numbers in any shape. */
static void holds(more_plan *p, uint32_t k, int64_t count, const char *of) {
  if (more_ok(p) && more_operand(p, k) && p->m->in[k].count != count)
    more_refuse(p, "operand %u has %lld numbers, expected %lld: %s", k, (long long)p->m->in[k].count, (long long)count,
                of);
}

static void check_index(more_plan *p) {
  const more_value *v = &p->m->in[INDEX];
  if (!more_operand(p, INDEX)) return;
  if (v->type != REF_TYPE_I32) more_refuse(p, "operand 4 must be int32");
  if (v->count != p->m->i[DEPTH]) holds(p, INDEX, p->m->i[BLOCKS] * p->m->i[BLOCK], "one for each weight of a row");
  for (int64_t k = 0; more_ok(p) && p->data[INDEX] != NULL && k < v->count; k++) {
    const int64_t b = more_get_int(v, p->data[INDEX], k);
    if (b < 0 || b >= p->m->i[BLOCKS])
      more_refuse(p, "operand 4 names block %lld, and a row has %lld", (long long)b, (long long)p->m->i[BLOCKS]);
  }
}

static void check_operands(more_plan *p) {
  more_op *m = p->m;
  const int64_t *i = m->i, per_row = i[BLOCKS] * (i[BLOCK] * i[BITS] / 8);
  const more_value *zeros = &m->in[ZEROS];
  for (uint32_t k = A; k <= BIAS; k += k == A ? 2 : 3) {
    more_real(p, k);
    if (more_operand(p, k) && m->in[k].type == REF_TYPE_F64 && m->in[A].type != REF_TYPE_F64)
      more_refuse(p, "operand %u is float64, and operand 0 is not", k);
  }
  if (m->in[B].type != REF_TYPE_U8) more_refuse(p, "operand 1 must be uint8");
  holds(p, B, i[COLUMNS] * per_row, "N rows of ceil(K / block_size) blocks");
  holds(p, SCALES, i[COLUMNS] * i[BLOCKS], "one for each block");
  holds(p, BIAS, i[COLUMNS], "one for each column");
  if (more_operand(p, ZEROS)) {
    m->i[FLOAT_ZEROS] = zeros->type != REF_TYPE_U8;
    if (m->i[FLOAT_ZEROS] && zeros->type != m->in[SCALES].type)
      more_refuse(p, "operand 3 is neither uint8 nor of the type of the scales");
    holds(p, ZEROS, i[COLUMNS] * (m->i[FLOAT_ZEROS] ? i[BLOCKS] : (i[BLOCKS] * i[BITS] + 7) / 8), "one for each block");
  }
  check_index(p);
}

/* In how many rows a product pays for expanded weights; int8 where the model and the run allow it. */
static int64_t way_of(const more_plan *p, int64_t accuracy) {
  const int64_t *i = p->m->i;
  const bool few = i[ROWS] <= FEW;
  const int64_t expanded = nbits_has_tiles() && i[BLOCKS] * UNIT < INT32_MAX ? TILES : EXPANDED;
  if (more_operand(p, INDEX)) return EXPANDED;
  if (i[BITS] == 4 && accuracy == 4 && (p->n->region->flags & HEDDLE_REGION_FAST) != 0) return BYTES;
  return few && i[BITS] == 4 ? LYING : few && i[BITS] == 8 ? EIGHT : expanded;
}

void more_setup_matmul_nbits(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i, shape[MORE_DIMS];
  const more_value *x = &m->in[A];
  room unused;
  i[DEPTH] = more_int(p, "K", 0);
  i[COLUMNS] = more_int(p, "N", 0);
  i[BLOCK] = more_int(p, "block_size", 0);
  i[BITS] = more_int(p, "bits", 4);
  const int64_t accuracy = more_int(p, "accuracy_level", 0);
  if (accuracy < 0 || accuracy > 4) more_refuse(p, "accuracy_level is %lld", (long long)accuracy);
  if (i[DEPTH] < 1 || i[DEPTH] > INT32_MAX || i[COLUMNS] < 1 || i[COLUMNS] > INT32_MAX)
    more_refuse(p, "K or N is out of range");
  if (i[BLOCK] < 16 || i[BLOCK] > INT32_MAX || (i[BLOCK] & (i[BLOCK] - 1)) != 0)
    more_refuse(p, "block_size is no power of two from 16 on");
  if (i[BITS] != 2 && i[BITS] != 4 && i[BITS] != 8) more_refuse(p, "bits is none of 2, 4 and 8");
  more_rank(p, A, 1, MORE_DIMS);
  if (!more_ok(p)) return;
  if (x->shape[x->ndim - 1] != i[DEPTH])
    more_refuse(p, "operand 0 is %lld deep, and K is %lld", (long long)x->shape[x->ndim - 1], (long long)i[DEPTH]);
  i[BLOCKS] = (i[DEPTH] + i[BLOCK] - 1) / i[BLOCK];
  check_operands(p);
  if (!more_ok(p)) return;
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = i[COLUMNS];
  more_result(p, 0, x->type, x->ndim, shape);
  i[ROWS] = more_count(x->shape, 0, x->ndim - 1);
  if (x->type == REF_TYPE_F64) {
    more_work(p, run_exact, i[ROWS] * i[COLUMNS], (double)i[ROWS] * (double)i[COLUMNS] * (double)i[DEPTH]);
    return;
  }
  i[WAY] = way_of(p, accuracy);
  if (!more_ok(p) || i[ROWS] < 1) {
    more_loop(p, run_product, 0, 0);
    return;
  }
  static const double products[] = {[LYING] = 0.7, [BYTES] = 0.3, [EIGHT] = 0.7, [TILES] = 0.4, [EXPANDED] = 0.4};
  const double weights = (double)i[COLUMNS] * (double)i[DEPTH];
  const int64_t units = (i[COLUMNS] + UNIT - 1) / UNIT, chunks = (i[ROWS] + rows_at_once(m) - 1) / rows_at_once(m);
  more_loop(p, run_product, units * chunks,
            products[i[WAY]] * weights * (double)i[ROWS] + (expands(m) ? 2 * weights * (double)chunks : 0));
  m->part_scratch = (uint64_t)lay_room(m, NULL, &unused);
  m->unsliced = true; /* a slice would lay out operand 0 again */
}
