/* Einsum: an operand after the other is multiplied with what came out so far, as a product of matrices whose dimensions are
 * the letters of the equation. */
#include "gemm.h"

/* m->i, which accelerators read too: how many letters there are, how many of them are of the result, and the size of each,
 * those of the result first; and then the lines of scratch memory of a tensor between two products. */
enum { LETTERS = 16, EINSUM_IN = 4, COUNT = 0, OF_RESULT, EINSUM_SIZES, BETWEEN = EINSUM_SIZES + LETTERS, LINE = 64 };

/* Bytes of such a tensor at most. */
#define MOST_BETWEEN 0x1p32

/* The strides of operand k along the letters are the shapes of in[8 + 2 * k] and the next, which nothing else uses. */
static int64_t stride_of(const more_op *m, uint32_t k, int64_t l) {
  return m->in[8 + 2 * k + (l >= MORE_DIMS)].shape[l % MORE_DIMS];
}

/* What is multiplied: type, bytes and strides along the letters; 0: it does not have the letter. */
typedef struct factor {
  int type;
  const void *data;
  int64_t stride[LETTERS];
} factor;

static factor factor_of(const more_op *m, uint32_t k, const void *data) {
  factor f = {.type = m->in[k].type, .data = data};
  for (int64_t l = 0; l < m->i[COUNT]; l++) f.stride[l] = stride_of(m, k, l);
  return f;
}

/* In which numbers a product of more than two is kept. */
static int type_between(int type) {
  if (type == REF_TYPE_F64) return type;
  if (more_type_is_real(type)) return REF_TYPE_F32;
  return more_type_bytes(type) == 8 ? REF_TYPE_U64 : REF_TYPE_U32;
}

/* The product of two factors, of which only letters stay that are of the result or of operands from `next` on; its strides.
 * Returns its elements. */
static int64_t result_of(const more_op *m, const factor *a, const factor *b, uint32_t next, factor *out) {
  int64_t step = 1;
  const bool last = next >= m->n_in;
  for (int64_t l = m->i[COUNT]; l-- > 0;) {
    bool stays = l < m->i[OF_RESULT];
    for (uint32_t k = next; k < m->n_in; k++) stays = stays || stride_of(m, k, l) != 0;
    const bool there = a->stride[l] != 0 || b->stride[l] != 0;
    out->stride[l] = stays && there ? step : 0;
    if ((stays && there) || (last && l < m->i[OF_RESULT])) step *= m->i[EINSUM_SIZES + l];
  }
  out->type = last ? m->out[0].type : type_between(m->in[0].type);
  return step;
}

static bool set_product(const more_op *m, const factor *a, const factor *b, const factor *out, gemm *g) {
  gemm_start(g, a->type, b->type, out->type);
  for (int64_t l = 0; l < m->i[COUNT]; l++) {
    const int64_t x = a->stride[l], y = b->stride[l], z = out->stride[l];
    if (x == 0 && y == 0) continue; /* of size 1, or of another operand */
    gemm_dims *d = z == 0 ? &g->depth : x != 0 && y != 0 ? &g->batch : x != 0 ? &g->rows : &g->cols;
    gemm_add(d, m->i[EINSUM_SIZES + l], x, y, z);
  }
  return gemm_finish(g);
}

static const double one_real = 1;
static const float one_float = 1;
static const uint64_t one_whole = 1;

/* Stands for the second operand where there is none. */
static factor one_of(int type) {
  const int as = type_between(type);
  return (factor){.type = as,
                  .data = as == REF_TYPE_F64   ? (const void *)&one_real
                          : as == REF_TYPE_F32 ? (const void *)&one_float
                                               : (const void *)&one_whole};
}

static bool multiply(const more_op *m, factor *a, const factor *b, uint32_t next, void *to, int64_t first,
                     int64_t last) {
  gemm g;
  factor out = {.data = to};
  result_of(m, a, b, next, &out);
  const bool turned = set_product(m, a, b, &out, &g);
  const void *x = turned ? b->data : a->data, *y = turned ? a->data : b->data;
  if (!gemm_run(&g, m, x, y, to, first, last < 0 ? gemm_units(&g) : last)) return false;
  *a = out;
  return true;
}

/* Of one operand without sums: the copy that is left. */
static bool copy_of(const more_op *m, ref_strided *t, uint64_t *units) {
  const int64_t kept = m->i[OF_RESULT];
  int64_t stride[LETTERS];
  for (int64_t l = 0; l < m->i[COUNT]; l++) {
    stride[l] = stride_of(m, 0, l);
    if (l >= kept && m->i[EINSUM_SIZES + l] != 1) return false;
  }
  return m->n_in == 1 && ref_strided_start(t, m->in[0].size, 0, (int32_t)kept, m->i + EINSUM_SIZES, stride, units);
}

/* Of one or two operands units are panels of the result; of more, one unit is all. */
static void run_einsum(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  factor left = factor_of(m, 0, a->in[0]);
  if (m->n_in == 1) {
    ref_strided t;
    uint64_t units;
    if (copy_of(m, &t, &units)) {
      ref_strided_run(&t, a->in[0], a->out[0], (uint64_t)first, (uint64_t)last);
      return;
    }
    const factor one = one_of(left.type);
    multiply(m, &left, &one, 1, a->out[0], first, last);
    return;
  }
  for (uint32_t k = 1; k < m->n_in; k++) {
    const factor right = factor_of(m, k, a->in[k]);
    void *to = k + 1 == m->n_in ? a->out[0] : (char *)a->scratch + (k % 2) * m->i[BETWEEN] * LINE;
    if (!multiply(m, &left, &right, k + 1, to, first, m->n_in == 2 ? last : -1)) return;
  }
}

typedef struct einsum {
  char letter[LETTERS]; /* of the result first; the dimensions of "..." are digits */
  int64_t size[LETTERS], stride[EINSUM_IN][LETTERS];
  int64_t count;
} einsum;

static int64_t letter_of(more_plan *p, einsum *e, char c) {
  for (int64_t l = 0; l < e->count; l++)
    if (e->letter[l] == c) return l;
  if (e->count == LETTERS) {
    more_refuse(p, "more than %d letters in its equation", LETTERS);
    return 0;
  }
  e->letter[e->count] = c;
  e->size[e->count] = 1;
  return e->count++;
}

/* The term up to end as letters, "..." as digits counted from the right (of dots dimensions). */
static int64_t term(more_plan *p, const char *from, const char *end, int64_t dots, char out[MORE_DIMS]) {
  int64_t n = 0;
  for (const char *c = from; c < end && more_ok(p); c++) {
    const bool dot = *c == '.' && end - c >= 3 && c[1] == '.' && c[2] == '.';
    for (int64_t d = dots; dot && d-- > 0;) {
      if (n < MORE_DIMS) out[n] = (char)('0' + d);
      n++;
    }
    if (dot) c += 2;
    else if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z')) {
      if (n < MORE_DIMS) out[n] = *c;
      n++;
    } else if (*c != ' ') more_refuse(p, "its equation has a '%c'", *c);
  }
  if (n > MORE_DIMS) more_refuse(p, "a term of its equation has more than %d dimensions", MORE_DIMS);
  return n;
}

static bool has_dots(const char *from, const char *end) {
  return memchr(from, '.', (size_t)(end - from)) != NULL;
}

static int64_t own_letters(const char *from, const char *end) {
  int64_t n = 0;
  for (; from < end; from++) n += (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z');
  return n;
}

/* Work, units and scratch memory: as the kernel goes through the products. */
static void plan_products(more_plan *p) {
  more_op *m = p->m;
  factor left = factor_of(m, 0, NULL);
  double steps = 0, between = 0;
  int64_t units = 1;
  if (m->out[0].count == 0) {
    more_loop(p, run_einsum, 0, 0);
    return;
  }
  ref_strided copied;
  uint64_t runs;
  if (copy_of(m, &copied, &runs)) {
    more_loop(p, run_einsum, (int64_t)runs, (double)m->out[0].count);
    return;
  }
  for (uint32_t k = 1; k <= m->n_in && (k < m->n_in || k == 1); k++) {
    const factor right = k < m->n_in ? factor_of(m, k, NULL) : one_of(left.type);
    factor out = {.type = REF_TYPE_NONE};
    gemm g;
    double size = 8;
    result_of(m, &left, &right, k + 1, &out);
    for (int64_t l = 0; l < m->i[COUNT]; l++)
      if (out.stride[l] != 0) size *= (double)m->i[EINSUM_SIZES + l];
    if (k + 1 < m->n_in && size > between) between = size;
    if (size > MOST_BETWEEN && k + 1 < m->n_in) more_refuse(p, "its operands have too large a product on the way");
    if (!more_ok(p)) return;
    set_product(m, &left, &right, &out, &g);
    steps += gemm_steps(&g);
    units = gemm_units(&g);
    left = out;
  }
  if (between > 0) {
    m->i[BETWEEN] = ((int64_t)between + LINE - 1) / LINE;
    more_scratch(p, 2 * LINE * (double)m->i[BETWEEN]);
  }
  more_loop(p, run_einsum, m->n_in > 2 ? 1 : units, steps);
  m->unsliced = m->n_in > 2;
}

void more_setup_einsum(more_plan *p) {
  more_op *m = p->m;
  einsum e = {.count = 0};
  char letters[MORE_DIMS];
  int64_t shape[MORE_DIMS], dots = 0;
  const char *text = more_string(p, "equation", ""), *arrow = strstr(text, "->");
  const char *end = arrow != NULL ? arrow : text + strlen(text);
  if (m->n_in > EINSUM_IN) more_refuse(p, "it takes up to %d operands", EINSUM_IN);
  more_number(p, 0);
  const char *at = text;
  for (uint32_t k = 0; k < m->n_in && more_ok(p); k++) { /* how many dimensions the dots are */
    const char *stop = memchr(at, ',', (size_t)(end - at));
    if ((stop == NULL) != (k + 1 == m->n_in)) more_refuse(p, "its equation has not one term for each operand");
    if (stop == NULL) stop = end;
    more_same_type(p, 0, k);
    if (has_dots(at, stop) && m->in[k].ndim - own_letters(at, stop) > dots)
      dots = m->in[k].ndim - own_letters(at, stop);
    at = stop + (*stop == ',');
  }
  if (dots > 9) more_refuse(p, "more than 9 dimensions in its \"...\"");
  if (!more_ok(p)) return;

  int64_t n_out = 0;
  char out[MORE_DIMS];
  if (arrow != NULL) {
    n_out = term(p, arrow + 2, text + strlen(text), dots, out);
  } else { /* the dots, and what is there once, in the order of the alphabet */
    for (int64_t d = dots; d-- > 0;) out[n_out++] = (char)('0' + d);
    for (int c = 'A'; c <= 'z' && n_out < MORE_DIMS; c++) {
      int64_t times = 0;
      for (const char *t = text; t < end; t++) times += *t == c;
      if (times == 1) out[n_out++] = (char)c;
    }
  }
  for (int64_t d = 0; d < n_out && more_ok(p); d++) {
    if (letter_of(p, &e, out[d]) != d) more_refuse(p, "its equation names a dimension of the result twice");
  }
  at = text;
  for (uint32_t k = 0; k < m->n_in && more_ok(p); k++) {
    const char *stop = memchr(at, ',', (size_t)(end - at));
    if (stop == NULL) stop = end;
    const int64_t own = m->in[k].ndim - own_letters(at, stop);
    const int64_t n = term(p, at, stop, has_dots(at, stop) ? own : 0, letters);
    if (more_ok(p) && n != m->in[k].ndim) more_refuse(p, "its equation gives operand %u another rank than it has", k);
    int64_t stride = 1;
    for (int64_t d = n; d-- > 0 && more_ok(p);) {
      const int64_t l = letter_of(p, &e, letters[d]), size = m->in[k].shape[d];
      if (size != 1 && e.size[l] != 1 && e.size[l] != size)
        more_refuse(p, "'%c' of its equation is %lld and %lld", letters[d], (long long)e.size[l], (long long)size);
      if (size != 1) {
        e.size[l] = size;
        e.stride[k][l] += stride;
      }
      stride *= size;
    }
    at = stop + (*stop == ',');
  }
  if (!more_ok(p)) return;
  for (int64_t d = 0; d < n_out; d++) shape[d] = e.size[d];
  m->i[COUNT] = e.count;
  m->i[OF_RESULT] = n_out;
  for (int64_t l = 0; l < e.count; l++) {
    m->i[EINSUM_SIZES + l] = e.size[l];
    for (uint32_t k = 0; k < m->n_in; k++) m->in[8 + 2 * k + (l >= MORE_DIMS)].shape[l % MORE_DIMS] = e.stride[k][l];
  }
  more_result(p, 0, m->in[0].type, (int32_t)n_out, shape);
  if (more_ok(p)) plan_products(p);
}
