/* conformance/op_case.h: regions of one operator that the kit makes from lines of text, what is in their operands, what
 * the reference says of them, and how they are run on the device. The lines are tables (op_*.c); nothing here knows an
 * operator. One thread at a time per case. */
#ifndef HEDDLE_CONFORMANCE_OP_CASE_H
#define HEDDLE_CONFORMANCE_OP_CASE_H

#include "kit.h"

enum { OP_IN = 12, OP_OUT = 4, OP_DIMS = 8, OP_ATTRS = 12, OP_INTS = 16, OP_WORDS = 256, OP_OFFERS = 16 };

/* A line: an operator, the opset (0: of domain heddle), the types that T stands for, one after the other, a letter each
 * (d f h b: float64, float32, float16, bfloat16; a s i l: int8 to int64; A S I L: uint8 to uint64; B: bool), and the text
 * "operands > results ; attributes". An operand or a result is one of
 *   -              absent
 *   f[2,3]         a type (T or a letter) and a shape; [] is a scalar
 *   f[2,3]{0,1}    with values from 0 to 1, of which integers take both ends; else from -2 to 2, of integers -6 to 6
 *   f[2,3]!        known before the run, as a constant is
 *   f[2,3]?        with NaN, infinities and -0 among its values
 *   l=1,2          a constant row; l= is an empty one, l#5 a scalar
 * and an attribute axis=1, pads:1,1 (a row), alpha~0.5, scales~~1,2 (a row), mode'edge (to the next space), or as the last
 * one expression" up to the end of the text. */
typedef struct op_line {
  const char *op;
  const char *types;
  const char *text;
  uint32_t opset;
} op_line;

typedef struct op_table {
  const op_line *lines;
  uint32_t count;
} op_table;
extern const op_table op_elementwise, op_contract, op_moves, op_rows, op_rare, op_ranks;
const op_table *op_scalar(void); /* of operators with a scalar expression, made from operators/; any thread */

uint32_t op_line_count(void);
const op_line *op_line_at(uint32_t i);

typedef struct op_operand {
  bool here, known, odd, follows; /* follows: its type is T */
  char type;                      /* a letter of the types above */
  int32_t ndim;
  int64_t shape[OP_DIMS];
  uint32_t open_dims; /* of a region with open shapes; 0 in all: any may change */
  double low, high;
  uint64_t count, bytes;
  double *x;          /* as numbers */
  unsigned char *raw; /* as they lie */
  unsigned char *block;
} op_operand;

typedef struct op_attr {
  const char *name;
  uint32_t kind;
  uint64_t count;
  int64_t ints[OP_INTS];
  double floats[OP_INTS];
  const char *text;
} op_attr;

typedef struct op_case {
  const op_line *line;
  char type; /* what T is */
  uint32_t n_in, n_out, n_attrs;
  uint32_t flags; /* of the region */
  op_operand in[OP_IN], out[OP_OUT];
  op_attr attrs[OP_ATTRS];
  char words[1024]; /* the text, in pieces */
} op_case;

/* A region of a case. The layouts are for the caller to set. */
typedef struct op_region {
  heddle_pregion region;
  heddle_pnode node;
  heddle_pvalue values[OP_IN + OP_OUT];
  heddle_pattr attrs[OP_ATTRS];
  int32_t node_in[OP_IN], node_out[OP_OUT], in[OP_IN], out[OP_OUT];
  uint32_t from[OP_IN]; /* the operand that region input i is */
  uint32_t to[OP_OUT];  /* the result that region output i is */
} op_region;

/* Reads a line with T as type, and fills the operands with values of seed. known: whether the operands but the first are
 * known before the run, as weights are, and at which addresses. Fails the case where the kit's own line is wrong. op_free
 * ends it. */
enum { OP_RUN, OP_KNOWN_ODD, OP_KNOWN_EVEN };
void op_read(kit *k, op_case *c, const op_line *line, char type, uint32_t known, uint32_t seed);
void op_values(op_case *c, uint32_t seed);    /* other values for the operands that are not known */
void op_constants(op_case *c, uint32_t seed); /* other values for those that are, but for what a line gives */
/* Values that are given, for an operand, rounded to its type; with op_set_values its numbers are not, only its bytes. */
void op_round_values(op_operand *o, const double *x);
void op_set_values(op_operand *o, const double *x);
void op_free(op_case *c);

/* The region of a case; reference: with T as that letter in place of the case's own, and operands' data left out but for
 * the known ones that are not of T ('\0': the case itself). It points into the case. */
void op_describe(const op_case *c, char reference, op_region *out);

heddle_dtype op_dtype(char type);
uint32_t op_type_bytes(char type);
int op_number_type(char type); /* of plugins/common/more/number.h */
bool op_type_is_real(char type);
void op_text(const op_case *c, char *out, size_t bytes); /* "MatMul (opset 13) float32 [2,3] float32 [3,4]" */

/* ---- the reference (op_reference.c): plugins/common/ref and more, compiled into the kit. In float64 where they take the
 * operator with it, else in float32, else in the case's own type; bounds are doubled where it is not float64. */
typedef struct op_want {
  double *x;   /* results as numbers */
  double *err; /* bounds */
  const char *rule;
  bool here;
} op_want;
/* Whether there is a reference; why not into k->err. */
bool op_reference(kit *k, const op_case *c, op_want *want);
void op_want_free(op_want *want);
/* One result of a case of other operands, computed as op_reference does. */
bool op_evaluate(kit *k, const op_case *c, uint32_t output, const double *const *x, double *y);
/* The first element of result r that is not right: count where all are. got is as it lies. */
uint64_t op_check(const op_case *c, uint32_t r, const op_want *want, const void *got);

/* ---- on the device (op_run.c) */

/* An offer as query made it. */
typedef struct op_offer {
  uint32_t flags, in_flags[OP_IN];
  heddle_layout in_layouts[OP_IN], out_layouts[OP_OUT];
  int32_t in_place[2 * 8];
  uint64_t n_in_place, workspace_bytes, workspace_align;
} op_offer;
typedef struct op_offers {
  const op_region *region;
  uint32_t count;
  char wrong[OP_WORDS]; /* what an offer says that it may not, "" */
  op_offer all[OP_OFFERS];
} op_offers;

/* Asks; the status of query, with its words in k->err. HEDDLE_ENEEDSOPEN opens the device and asks again. */
heddle_status op_query(kit *k, const op_region *r, op_offers *out);

/* One op prepared from an offer of a case. */
typedef struct op_ready {
  const op_case *c;
  const op_offer *offer;
  op_region r;
  heddle_pop *op;
} op_ready;
void op_prepare(kit *k, const op_case *c, const op_offers *offers, uint32_t offer, op_ready *out);
/* The same of a region that the caller has described. */
void op_prepare_region(kit *k, const op_case *c, const op_region *r, const op_offers *offers, uint32_t offer,
                       op_ready *out);
void op_ready_free(kit *k, op_ready *ready);

/* How a launch's operands lie. */
#define OP_ARENA UINT32_C(1)   /* all in one buffer, one after another; not of BARE offers */
#define OP_SHIFTED UINT32_C(2) /* at offsets of three times the alignment; not of BARE offers */
#define OP_TWICE UINT32_C(4)   /* run two times, the second time with other bytes where the results go */
#define OP_ROW UINT32_C(16)    /* run many times before the sync */
#define OP_GONE UINT32_C(32)   /* the region and the slices are gone as soon as prepare and bind have returned */
#define OP_SAME UINT32_C(64)   /* the second operand is the first's bytes: both have the same values */
#define OP_MOVED UINT32_C(8) /* with OP_ARENA, of launches that are resized: in another buffer than when it was bound */

/* Waits for work that the device's driver may have to compile first: longer than kit_sync does. */
void op_sync(kit *k, heddle_pstream *stream);

/* Binds, runs, reads back: results of the case's values against want; guards around each operand and the workspace,
 * and operands that may not have changed. pair: which pair of the offer shares its bytes, -1: none. Layouts other than 0
 * are packed and unpacked by the plugin's own pack and Reorder. Fails the case with what is wrong. */
void op_launch(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_ready *ready, const op_want *want,
               uint32_t how, int32_t pair);

/* The same in steps: run may be called again after refill, which puts the case's values of then into the operands, and other
 * bytes everywhere else. */
typedef struct op_launched op_launched;
op_launched *op_launch_begin(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_ready *ready, uint32_t how,
                             int32_t pair);
void op_launch_run(op_launched *l, const op_want *want);
void op_launch_row(op_launched *l, uint32_t n); /* n runs without a sync, fewer where the queue is full */
void op_launch_refill(op_launched *l);
void op_launch_end(op_launched *l);

/* Launches that are resized (op_resized.c). A launch of the op of sizes[0], the bound, with its operands or too small ones of another size; resized to each size in
 * turn, twice, and run: results against wants, and no byte beyond the size. How often op.resize was refused. */
uint32_t op_resized(kit *k, heddle_pstream *stream, const op_ready *sizes, op_want (*wants)[OP_OUT], uint32_t n_sizes,
                    uint32_t how, uint32_t bound_as);
/* A launch of the op of small, which is asked for the larger shapes of large: where that is refused it is as before, and where
 * it is not it can be resized back. Whether it was refused. */
bool op_resize_refused(kit *k, heddle_pstream *stream, const op_ready *large, const op_ready *small,
                       op_want small_want[OP_OUT]);

#endif
