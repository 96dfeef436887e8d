/* Weights of 2, 4 or 8 bits times rows: see nbits_unit.h. */
#include "nbits_unit.h"

#include "rows.h"

int64_t nb_laid_bytes(const more_op *m, int64_t way) {
  const int64_t groups = (m->i[NB_DEPTH] + NBITS_GROUP - 1) / NBITS_GROUP, whole = m->i[NB_BLOCKS] * m->i[NB_BLOCK];
  switch (way) {
  case NB_LYING: return groups * NBITS_GROUP_FLOATS * (int64_t)sizeof(float);
  case NB_BYTES: return groups * NBITS_GROUP_BYTES;
  case NB_EIGHT: return nb_padded(whole) * (int64_t)sizeof(float);
  case NB_FORMED: return nb_padded(block_laid_floats(m->i[NB_DEPTH])) * (int64_t)sizeof(float);
  case NB_FORM_BYTES:
  case NB_BYTE_TILES: return bytes_laid(m->i[NB_DEPTH]);
  default: return 0;
  }
}

void nb_lay_out(const more_op *m, int64_t way, const float *from, int64_t count, char *laid) {
  const int64_t depth = m->i[NB_DEPTH], step = nb_laid_bytes(m, way),
                block = m->i[NB_BLOCK] < NBITS_GROUP ? m->i[NB_BLOCK] : NBITS_GROUP;
  for (int64_t i = 0; i < count; i++) {
    const float *row = from + i * depth;
    float *to = (float *)(void *)(laid + i * step);
    if (way == NB_BYTES) {
      nbits_lay_bytes(row, depth, block, (int8_t *)laid + i * step);
    } else if (way == NB_EIGHT) {
      memset(to, 0, (size_t)step);
      memcpy(to, row, (size_t)depth * sizeof *to);
    } else if (way == NB_LYING) {
      nbits_lay_floats(row, depth, to);
    } else if (way == NB_FORMED) {
      block_lay(row, depth, to);
    } else if (way == NB_FORM_BYTES || way == NB_BYTE_TILES) {
      bytes_lay(row, depth, laid + i * step);
    }
  }
}

int64_t nb_way_expanded(void) {
  return nbits_has_narrow() ? NB_NARROW : NB_EXPANDED;
}

bool nb_may_round(const more_plan *p, int64_t accuracy) {
  return accuracy == 4 && (p->n->region->flags & HEDDLE_REGION_FAST) != 0;
}

int64_t nb_way(const more_plan *p, int64_t accuracy, bool few) {
  const int64_t *i = p->m->i;
  const bool in_words = i[NB_ROW_BYTES] % 4 == 0; /* tiles are read so */
  const int64_t expanded =
      nbits_has_tiles() && in_words && i[NB_BLOCKS] * NB_UNIT < INT32_MAX ? NB_TILES : nb_way_expanded();
  if (i[NB_BITS] == 4 && nb_may_round(p, accuracy)) return few || !bytes_here() ? NB_BYTES : NB_BYTE_TILES;
  if (few && i[NB_BITS] == 4) return NB_LYING;
  return few && i[NB_BITS] == 8 && i[NB_ROW_BYTES] % NBITS_LANES == 0 ? NB_EIGHT : expanded;
}

double nb_steps(int64_t way) {
  static const double steps[] = {
      [NB_LYING] = 0.7,      [NB_BYTES] = 0.3, [NB_EIGHT] = 0.7,  [NB_FORMED] = 0.7,  [NB_FORM_BYTES] = 0.3,
      [NB_BYTE_TILES] = 0.2, [NB_TILES] = 0.4, [NB_NARROW] = 0.4, [NB_EXPANDED] = 0.4};
  return steps[way];
}

/* ---------------------------------------------------------------- checks */

void nb_read_sizes(more_plan *p) {
  int64_t *i = p->m->i;
  i[NB_DEPTH] = more_int(p, "K", 0);
  i[NB_COLUMNS] = more_int(p, "N", 0);
  i[NB_BLOCK] = more_int(p, "block_size", 0);
  i[NB_BITS] = more_int(p, "bits", 4);
  const int64_t accuracy = more_int(p, "accuracy_level", 0);
  if (accuracy < 0 || accuracy > 4) more_refuse(p, "accuracy_level is %lld", (long long)accuracy);
  if (i[NB_DEPTH] < 1 || i[NB_DEPTH] > INT32_MAX || i[NB_COLUMNS] < 1 || i[NB_COLUMNS] > INT32_MAX)
    more_refuse(p, "K or N is out of range");
  if (i[NB_BLOCK] < 16 || i[NB_BLOCK] > INT32_MAX || (i[NB_BLOCK] & (i[NB_BLOCK] - 1)) != 0)
    more_refuse(p, "block_size is no power of two from 16 on");
  if (i[NB_BITS] != 2 && i[NB_BITS] != 4 && i[NB_BITS] != 8) more_refuse(p, "bits is none of 2, 4 and 8");
}

void nb_holds(more_plan *p, uint32_t k, int64_t count, const char *of) {
  if (more_ok(p) && more_operand(p, k) && p->m->in[k].count != count)
    more_refuse(p, "operand %u has %lld numbers, expected %lld: %s", k, (long long)p->m->in[k].count, (long long)count,
                of);
}

void nb_check_types(more_plan *p) {
  more_op *m = p->m;
  for (uint32_t k = NB_A; k <= NB_BIAS; k += k == NB_A ? 2 : 3) {
    more_real(p, k);
    if (more_operand(p, k) && m->in[k].type == REF_TYPE_F64 && m->in[NB_A].type != REF_TYPE_F64)
      more_refuse(p, "operand %u is float64, and operand 0 is not", k);
  }
  if (m->in[NB_B].type != REF_TYPE_U8) more_refuse(p, "operand 1 must be uint8");
}

/* ---------------------------------------------------------------- weights */

/* Scales and zero points, from half of the range, of count rows. zeros NULL where there are none. */
static void read_scales(const more_op *m, const more_args *a, int64_t first, int64_t count, const nb_room *r,
                        nbits_rows *w) {
  const int64_t blocks = m->i[NB_BLOCKS], bits = m->i[NB_BITS], half = (int64_t)1 << (bits - 1),
                per_row = (blocks * bits + 7) / 8;
  const more_value *zeros = &m->in[NB_ZEROS];
  w->scale_step = blocks;
  w->scales = r->scales;
  if (m->in[NB_SCALES].type == REF_TYPE_F32) w->scales = (const float *)a->in[NB_SCALES] + first * blocks;
  else
    for (int64_t k = 0; k < count * blocks; k++)
      r->scales[k] = (float)more_get(&m->in[NB_SCALES], a->in[NB_SCALES], first * blocks + k);
  w->zeros = NULL;
  if (m->n_in <= NB_ZEROS || a->in[NB_ZEROS] == NULL) return;
  w->zeros = r->zeros;
  if (m->i[NB_FLOAT_ZEROS]) {
    for (int64_t k = 0; k < count * blocks; k++)
      r->zeros[k] = (float)(more_get(zeros, a->in[NB_ZEROS], first * blocks + k) - (double)half);
    return;
  }
  for (int64_t n = 0; n < count; n++) {
    float *to = r->zeros + n * blocks;
    nbits_products_here()->unpack((const uint8_t *)a->in[NB_ZEROS] + (first + n) * per_row, bits, blocks, to);
    for (int64_t k = 0; k < blocks; k++) to[k] -= (float)half;
  }
}

nbits_rows nb_rows(const more_op *m, const more_args *a, int64_t first, int64_t count, const nb_room *r) {
  const int64_t row = m->i[NB_ROW_BYTES]; /* of 4 bits it is read to the group of its last weight */
  const int64_t used = (m->i[NB_DEPTH] + NBITS_GROUP - 1) / NBITS_GROUP * (NBITS_GROUP / 2);
  nbits_rows w = {.q = (const uint8_t *)a->in[NB_B] + first * row,
                  .q_step = row,
                  .bytes = m->i[NB_BITS] == 8 || row < used ? row : used,
                  .blocks = m->i[NB_BLOCKS],
                  .block = m->i[NB_BLOCK]};
  if (m->i[NB_FORM] == BLOCK_NONE) read_scales(m, a, first, count, r, &w);
  return w;
}

void nb_expand_row(const more_op *m, const nbits_rows *w, const int32_t *index, int64_t n, float *restrict out) {
  const int64_t depth = m->i[NB_DEPTH], block = m->i[NB_BLOCK], blocks = m->i[NB_BLOCKS];
  if (m->i[NB_FORM] != BLOCK_NONE) {
    block_read((int)m->i[NB_FORM], w->q + n * w->q_step, depth, out);
    return;
  }
  const float half = (float)((int64_t)1 << (m->i[NB_BITS] - 1));
  const float *scales = w->scales + n * blocks, *zeros = w->zeros != NULL ? w->zeros + n * blocks : NULL;
  nbits_products_here()->unpack(w->q + n * w->q_step, m->i[NB_BITS], depth, out);
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

double nb_weight_at(const more_op *m, const more_args *a, int64_t n, int64_t k, int64_t block) {
  const int64_t bits = m->i[NB_BITS], each = 8 / bits, blocks = m->i[NB_BLOCKS], mask = (1 << bits) - 1;
  const int64_t b = block < 0 || block >= blocks ? 0 : block; /* what is out of range was refused where it is known */
  const uint8_t *row = (const uint8_t *)a->in[NB_B] + n * m->i[NB_ROW_BYTES], *zeros = NULL;
  double zero = (double)(1 << (bits - 1));
  if (m->n_in > NB_ZEROS) zeros = a->in[NB_ZEROS];
  if (zeros != NULL && m->i[NB_FLOAT_ZEROS]) zero = more_get(&m->in[NB_ZEROS], zeros, n * blocks + b);
  else if (zeros != NULL)
    zero = (double)(zeros[n * ((blocks + each - 1) / each) + b / each] >> (bits * (b % each)) & mask);
  return ((double)(row[k / each] >> (bits * (k % each)) & mask) - zero) *
         more_get(&m->in[NB_SCALES], a->in[NB_SCALES], n * blocks + b);
}

/* ---------------------------------------------------------------- products */

static void multiply_lying(const more_op *m, int64_t way, const nbits_rows *unit, int64_t rows, int64_t columns,
                           const nb_room *r, float *out, int64_t step) {
  const nbits_products *by = nbits_products_here();
  const nbits_product product = way == NB_BYTES ? by->bytes : way == NB_EIGHT ? by->eight : by->floats;
  const int64_t laid = nb_laid_bytes(m, way);
  for (int64_t n = 0; n < columns; n += NBITS_AT_ONCE) {
    nbits_rows w = *unit;
    w.q += n * w.q_step;
    w.scales += n * w.scale_step;
    if (w.zeros != NULL) w.zeros += n * w.scale_step;
    const int count = columns - n < NBITS_AT_ONCE ? (int)(columns - n) : NBITS_AT_ONCE;
    for (int64_t i = 0; i < rows; i++) {
      w.a = r->laid + i * laid;
      product(&w, count, out + i * step + n);
    }
  }
}

typedef struct filled {
  const more_op *m;
  const nbits_rows *w;
} filled;

static void fill_piece(const void *of, int64_t n, int64_t k, int64_t count, float *restrict out) {
  const filled *f = of;
  const more_op *m = f->m;
  const nbits_rows *w = f->w;
  const uint8_t *row = w->q + n * w->q_step;
  if (m->i[NB_FORM] != BLOCK_NONE) {
    const block_form *form = block_form_of((int)m->i[NB_FORM]);
    block_read((int)m->i[NB_FORM], row + k / form->elements * form->bytes, count, out);
    return;
  }
  const int64_t block = m->i[NB_BLOCK], bits = m->i[NB_BITS];
  const float half = (float)((int64_t)1 << (bits - 1));
  nbits_products_here()->unpack(row + k * bits / 8, bits, count, out);
  for (int64_t j = 0; j < count;) {
    const int64_t b = (k + j) / block, end = (b + 1) * block - k < count ? (b + 1) * block - k : count;
    const float zero = half + (w->zeros != NULL ? w->zeros[n * w->scale_step + b] : 0.0F),
                scale = w->scales[n * w->scale_step + b];
    for (; j < end; j++) out[j] = (out[j] - zero) * scale;
  }
}

static void multiply_formed(const more_op *m, const nbits_rows *w, int64_t rows, int64_t columns, const nb_room *r,
                            float *out, int64_t step) {
  const block_product product = block_product_of((int)m->i[NB_FORM]);
  const int64_t laid = nb_laid_bytes(m, NB_FORMED), depth = m->i[NB_DEPTH];
  for (int64_t n = 0; n < columns; n++)
    for (int64_t i = 0; i < rows; i++)
      out[i * step + n] = product(w->q + n * w->q_step, depth, (const float *)(const void *)(r->laid + i * laid));
}

static void multiply_form_bytes(const more_op *m, const nbits_rows *w, int64_t rows, int64_t columns, const nb_room *r,
                                float *out, int64_t step) {
  const bytes_product product = bytes_product_of((int)m->i[NB_FORM]);
  const bytes_products products = bytes_products_of((int)m->i[NB_FORM]);
  const int64_t laid = nb_laid_bytes(m, NB_FORM_BYTES), depth = m->i[NB_DEPTH];
  int64_t n = 0;
  for (; products != NULL && n + BYTES_ROWS <= columns; n += BYTES_ROWS)
    for (int64_t i = 0; i < rows; i++)
      products(w->q + n * w->q_step, w->q_step, depth, r->laid + i * laid, out + i * step + n);
  for (; n < columns; n++)
    for (int64_t i = 0; i < rows; i++) out[i * step + n] = product(w->q + n * w->q_step, depth, r->laid + i * laid);
}

double nb_formed_exact(const more_op *m, const more_args *a, int64_t row, int64_t n) {
  const block_form *f = block_form_of((int)m->i[NB_FORM]);
  const uint8_t *at = (const uint8_t *)a->in[NB_B] + n * m->i[NB_ROW_BYTES];
  const int64_t depth = m->i[NB_DEPTH];
  float numbers[BLOCK_MOST];
  double sum = 0;
  for (int64_t k = 0; k < depth; k += f->elements, at += f->bytes) {
    f->read(at, numbers);
    for (int64_t j = 0; j < f->elements; j++)
      sum += more_get(&m->in[NB_A], a->in[NB_A], row * depth + k + j) * (double)numbers[j];
  }
  return sum;
}

void nb_multiply(const more_op *m, int64_t way, const nbits_rows *w, int64_t columns, const float *from, int64_t rows,
                 const nb_room *r, float *out, int64_t step) {
  const int64_t depth = m->i[NB_DEPTH];
  if (way == NB_TILES) {
    nbits_multiply_tiles(w, m->i[NB_BITS], columns, from, rows, depth, r->weights, out);
  } else if (way == NB_NARROW) {
    const filled of = {m, w};
    nbits_multiply_narrow(fill_piece, &of, columns, from, rows, depth, r->weights, out);
  } else if (way == NB_EXPANDED) {
    const more_rows product = {
        .a = from, .b = r->weights, .out = out, .m = rows, .n = columns, .k = depth, .a_step = depth, .out_step = step};
    more_rows_product(&product);
  } else if (way == NB_FORMED) {
    multiply_formed(m, w, rows, columns, r, out, step);
  } else if (way == NB_FORM_BYTES) {
    multiply_form_bytes(m, w, rows, columns, r, out, step);
  } else if (way == NB_BYTE_TILES) {
    bytes_multiply_tiles(w, (int)m->i[NB_FORM], columns, r->laid, rows, depth, r->weights, out);
  } else {
    multiply_lying(m, way, w, rows, columns, r, out, step);
  }
}
