/* MatMulBlocks: a product with weights that are blocks of a form; few rows are multiplied as the blocks lie, of many the weights
 * become floats, a unit at a time (nbits_unit.h). Where the run is fast, rows of operand 0 become int8: that is what the files'
 * blocks are made for, so that a form counts as accuracy_level 4 of MatMulNBits. FromBlocks: rows of blocks as floats. */
#include "nbits_unit.h"

/* K and form; returns the bytes of a row, or 0. */
static int64_t read_form(more_plan *p, int64_t *depth, int64_t *form) {
  *depth = more_int(p, "K", 0);
  *form = more_choice(p, "form", "none", BLOCK_FORM_WORDS);
  if (more_ok(p) && (*form <= BLOCK_NONE || *form >= BLOCK_FORMS)) more_refuse(p, "it has no form");
  if (*depth < 1 || *depth > INT32_MAX) more_refuse(p, "K is out of range");
  if (!more_ok(p)) return 0;
  const block_form *f = block_form_of((int)*form);
  if (*depth % f->elements != 0) {
    more_refuse(p, "K is %lld, no multiple of a block of %s, %u", (long long)*depth, f->name, (unsigned)f->elements);
    return 0;
  }
  return *depth / f->elements * f->bytes;
}

void more_setup_matmul_blocks(more_plan *p) {
  more_op *m = p->m;
  int64_t *i = m->i;
  const more_value *x = &m->in[NB_A];
  i[NB_ROW_BYTES] = read_form(p, &i[NB_DEPTH], &i[NB_FORM]);
  i[NB_COLUMNS] = more_int(p, "N", 0);
  if (i[NB_COLUMNS] < 1 || i[NB_COLUMNS] > INT32_MAX) more_refuse(p, "N is out of range");
  more_rank(p, NB_A, 1, MORE_DIMS);
  more_real(p, NB_A);
  if (more_operand(p, NB_SCALES)) more_same_type(p, NB_A, NB_SCALES);
  if (!more_ok(p)) return;
  if (m->in[NB_B].type != REF_TYPE_U8) more_refuse(p, "operand 1 must be uint8");
  if (x->shape[x->ndim - 1] != i[NB_DEPTH])
    more_refuse(p, "operand 0 is %lld deep, and K is %lld", (long long)x->shape[x->ndim - 1], (long long)i[NB_DEPTH]);
  nb_holds(p, NB_B, i[NB_COLUMNS] * i[NB_ROW_BYTES], "N rows of whole blocks");
  nb_holds(p, NB_SCALES, i[NB_COLUMNS], "one for each column");
  if (!more_ok(p)) return;
  nb_result(p);
  if (bytes_has((int)i[NB_FORM]) && nb_may_round(p, 4))
    i[NB_WAY] = i[NB_ROWS] <= NB_FEW ? NB_FORM_BYTES : NB_BYTE_TILES;
  else i[NB_WAY] = i[NB_ROWS] <= NB_FEW ? NB_FORMED : nb_way_expanded();
  nb_plan_product(p);
}

static void run_from_blocks(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const block_form *f = block_form_of((int)m->i[NB_FORM]);
  const uint8_t *from = (const uint8_t *)a->in[0] + first * f->bytes;
  block_read((int)m->i[NB_FORM], from, (last - first) * f->elements, (float *)a->out[0] + first * f->elements);
}

void more_setup_from_blocks(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t shape[MORE_DIMS];
  m->i[NB_ROW_BYTES] = read_form(p, &m->i[NB_DEPTH], &m->i[NB_FORM]);
  more_rank(p, 0, 1, MORE_DIMS);
  if (!more_ok(p)) return;
  if (x->type != REF_TYPE_U8 && x->type != REF_TYPE_I8) more_refuse(p, "operand 0 must be uint8 or int8");
  if (x->shape[x->ndim - 1] != m->i[NB_ROW_BYTES])
    more_refuse(p, "operand 0 has rows of %lld bytes, expected %lld", (long long)x->shape[x->ndim - 1],
                (long long)m->i[NB_ROW_BYTES]);
  if (!more_ok(p)) return;
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = m->i[NB_DEPTH];
  more_result(p, 0, REF_TYPE_F32, x->ndim, shape);
  const int64_t units = x->count / block_form_of((int)m->i[NB_FORM])->bytes;
  more_loop(p, run_from_blocks, units, (double)units * block_form_of((int)m->i[NB_FORM])->elements);
}
