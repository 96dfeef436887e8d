/* What nodes with weights of few bits share: NBITS_TILE rows of weights at a time, a unit, times rows of operand 0. nbits.c and
 * experts.c have the nodes. Their operands 0 to 3 and 5 mean the same. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_NBITS_UNIT_H
#define HEDDLE_PLUGINS_COMMON_MORE_NBITS_UNIT_H

#include "plugins/common/more/block_bytes.h"
#include "plugins/common/more/more.h"
#include "plugins/common/more/nbits.h"

/* Numbers of the op; kernels of accelerators read them too (kernels/nbits.cl). */
enum {
  NB_ROWS, /* of the result */
  NB_DEPTH,
  NB_COLUMNS,
  NB_BLOCK,
  NB_BITS,
  NB_BLOCKS, /* of a row of weights */
  NB_WAY,
  NB_FLOAT_ZEROS,
  NB_ROW_BYTES, /* of weights */
  NB_EXPERTS,   /* experts.c: how many there are */
  NB_SHARE,     /* experts.c: rows of the result that a row of operand 0 makes */
  NB_FORM,      /* blocks.c: BLOCK_* of the weights, and then operand NB_SCALES is the bias; else 0 */
  NB_OTHERS     /* what others add begins here */
};
enum { NB_A, NB_B, NB_SCALES, NB_ZEROS, NB_INDEX, NB_BIAS };

/* How a product is computed: as the weights lie, in floats or in int8, of 8 bits in floats, of a form of blocks in floats or in
 * int8; in int8 with tiles of weights; or of weights that are made floats, in tiles of two kinds or in rows. */
enum { NB_LYING, NB_BYTES, NB_EIGHT, NB_FORMED, NB_FORM_BYTES, NB_BYTE_TILES, NB_TILES, NB_NARROW, NB_EXPANDED };

enum { NB_FEW = 6, NB_UNIT = NBITS_TILE };

/* Scratch memory of a part. */
typedef struct nb_room {
  float *scales, *zeros; /* of rows of a unit */
  float *weights;        /* of a unit, expanded; or a tile */
  float *a;              /* rows of operand 0 as floats */
  char *laid;            /* and laid out */
  float *out;            /* rows of a unit's results */
} nb_room;

static inline int64_t nb_padded(int64_t floats) {
  return (floats + 15) / 16 * 16;
}
/* Floats of r->weights. */
static inline int64_t nb_weights(int64_t way, int64_t depth) {
  return way == NB_EXPANDED     ? nb_padded(NB_UNIT * depth)
         : way == NB_TILES      ? NB_UNIT * NBITS_TILE_DEPTH
         : way == NB_NARROW     ? NBITS_NARROW_FLOATS
         : way == NB_BYTE_TILES ? BYTES_TILE_FLOATS
                                : 0;
}
/* Its results are tiles of NB_UNIT columns. */
static inline bool nb_in_units(int64_t way) {
  return way == NB_BYTE_TILES || way == NB_TILES || way == NB_NARROW;
}
static inline bool nb_expands(int64_t way) {
  return way == NB_TILES || way == NB_NARROW || way == NB_EXPANDED;
}

/* A row of operand 0, laid out. */
int64_t nb_laid_bytes(const more_op *m, int64_t way);
void nb_lay_out(const more_op *m, int64_t way, const float *from, int64_t count, char *laid);

/* Weights that become floats: the best of this CPU that any weights have. */
int64_t nb_way_expanded(void);
/* Whether rows of operand 0 may be rounded to int8: accuracy is what the model says. */
bool nb_may_round(const more_plan *p, int64_t accuracy);
/* How many rows of operand 0, few or many, are multiplied best; by int8 where the model and the run allow it. */
int64_t nb_way(const more_plan *p, int64_t accuracy, bool few);
/* And how long a product of a weight takes. */
double nb_steps(int64_t way);

/* nbits.c: the kernel and its memory, of a plan whose sizes and way are known; and the result's type and shape before. */
void nb_result(more_plan *p);
void nb_plan_product(more_plan *p);

/* K, N, block_size of any number where it may be, and bits. Refuses what is out of range. */
void nb_read_sizes(more_plan *p);
/* Operand k has count numbers, in any shape. */
void nb_holds(more_plan *p, uint32_t k, int64_t count, const char *of);
void nb_check_types(more_plan *p);

/* The weights of count rows from row `first` on. */
nbits_rows nb_rows(const more_op *m, const more_args *a, int64_t first, int64_t count, const nb_room *r);
/* Row n of them as floats. index: the block of each; NULL: in order. */
void nb_expand_row(const more_op *m, const nbits_rows *w, const int32_t *index, int64_t n, float *out);
/* `rows` rows times `columns` rows of weights to out, whose rows are step floats apart; of tiles NB_UNIT. The weights are
 * in r->weights where they are expanded, the rows in from or, laid out, in r->laid. */
void nb_multiply(const more_op *m, int64_t way, const nbits_rows *w, int64_t columns, const float *from, int64_t rows,
                 const nb_room *r, float *out, int64_t step);

/* A row of operand 0 times row n of weights that have a form, in float64. */
double nb_formed_exact(const more_op *m, const more_args *a, int64_t row, int64_t n);

/* Weight k of row n in float64. */
double nb_weight_at(const more_op *m, const more_args *a, int64_t n, int64_t k, int64_t block);

#endif
