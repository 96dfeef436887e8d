/* graph/results.c: the lines RESULT and SCALAR of operators/ as a table, and the rules for ranks. */
#include "graph/results.h"

#include <string.h>

#include "operators/operators.h"

/* Types of results: of operand k, or ONNX's number of a type. */
enum { OF_0 = -1, OF_1 = -2, OF_2 = -3, OF_3 = -4, OF_7 = -8, ANY_TYPE = 0 };

enum { EACH = UINT8_MAX };

typedef enum rank_rule {
  RANK_ANY,
  RANK_SAME,
  RANK_MOST,
  RANK_PRODUCT,
  RANK_LENGTH,
  RANK_EXPANDED,
  RANK_MORE,
  RANK_LESS,
  RANK_REDUCED,
  RANK_LESS_ONE,
  RANK_GATHERED,
  RANK_IS_0,
  RANK_IS_1,
  RANK_IS_2,
  RANK_IS_3,
  RANK_IS_4
} rank_rule;

/* The words of lines. An elementwise operator with one operand has its rank, one with several the greatest. */
#define TYPE_OF_0 OF_0
#define TYPE_OF_1 OF_1
#define TYPE_OF_2 OF_2
#define TYPE_OF_3 OF_3
#define TYPE_OF_7 OF_7
#define TYPE_ANY ANY_TYPE
#define TYPE_BOOL 9
#define TYPE_F32 1
#define TYPE_I32 6
#define TYPE_I64 7
#define TYPE_U8 2
#define TYPE_TEXT 8
#define SCALAR_REAL OF_0
#define SCALAR_INT OF_0
#define SCALAR_NUMBER OF_0
#define SCALAR_TEST TYPE_BOOL
#define SCALAR_TEST_REAL TYPE_BOOL
#define SCALAR_LOGIC TYPE_BOOL

enum { MANY = HEDDLE__VARIADIC };

/* What RESULT lines say stands before an operator's SCALAR lines. */
static const heddle__result rows[] = {
#define RESULT(op, number, type, attribute, rank) {#op, number, #attribute, TYPE_##type, RANK_##rank},
#define SCALAR(op, kind, operands, ...) {#op, 0, "none", SCALAR_##kind, operands == 1 ? RANK_SAME : RANK_MOST},
#include "operators/all.def"
};

/* Variants of an elementwise operator, Gelu_tanh, are lines of it too. */
static bool is_of(const heddle__result *row, const char *op, size_t number) {
  const size_t length = strlen(op);
  return (row->number == number || row->number == EACH) && strncmp(row->op, op, length) == 0 &&
         (row->op[length] == '\0' || row->op[length] == '_');
}

const heddle__result *heddle__result_find(const char *op, size_t number, bool needs_line) {
  static const heddle__result first = {"", 0, "none", OF_0, RANK_ANY}, others = {"", EACH, "none", ANY_TYPE, RANK_ANY};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].op[0] == op[0] && is_of(&rows[i], op, number)) return &rows[i];
  return needs_line ? NULL : number == 0 ? &first : &others;
}

/* ---- ranks; -1: not known */

static int32_t rank_in(const heddle__operands *o, size_t k) {
  return k < o->count ? o->rank_of(o->of, k) : -1;
}

/* The greatest of the first n operands, of which each has at least so many. */
static int32_t most_of(const heddle__operands *o, size_t n, int32_t least) {
  int32_t most = -1;
  for (size_t k = 0; k < n; k++) {
    const int32_t rank = rank_in(o, k);
    if (rank < least) return -1;
    if (rank > most) most = rank;
  }
  return most;
}

/* How many axes a node names, as an attribute or as operand 1. */
static int32_t axes_of(const heddle__operands *o) {
  return o->axes >= 0 ? o->axes : o->length_of(o->of);
}

/* The rank of operand 0 and some, and less some. */
static int32_t more(const heddle__operands *o, int32_t some) {
  const int32_t rank = some >= 0 ? rank_in(o, 0) : -1;
  return rank >= 0 ? rank + some : -1;
}

static int32_t less(const heddle__operands *o, int32_t some) {
  const int32_t rank = some >= 0 ? rank_in(o, 0) : -1;
  return rank >= some ? rank - some : -1;
}

static int32_t expanded(const heddle__operands *o) {
  const int32_t length = o->length_of(o->of), first = length >= 0 ? rank_in(o, 0) : -1;
  return first > length ? first : first < 0 ? -1 : length;
}

static int32_t gathered(const heddle__operands *o) {
  const int32_t first = rank_in(o, 0), index = first > 0 ? rank_in(o, 1) : -1;
  return index >= 0 ? first + index - 1 : -1;
}

int32_t heddle__result_rank(const heddle__result *row, const heddle__operands *o) {
  int32_t n;
  switch ((rank_rule)row->rank) {
  case RANK_SAME: return rank_in(o, 0);
  case RANK_MOST: return most_of(o, o->count, 0);
  case RANK_PRODUCT: return most_of(o, 2, 2);
  case RANK_LENGTH: return o->length_of(o->of);
  case RANK_EXPANDED: return expanded(o);
  case RANK_MORE: return more(o, axes_of(o));
  case RANK_LESS: return less(o, axes_of(o));
  case RANK_REDUCED: n = o->keeps_dims ? 0 : axes_of(o); return n > 0 || o->keeps_dims ? less(o, n) : -1;
  case RANK_LESS_ONE: return less(o, o->keeps_dims ? 0 : 1);
  case RANK_GATHERED: return gathered(o);
  case RANK_IS_0:
  case RANK_IS_1:
  case RANK_IS_2:
  case RANK_IS_3:
  case RANK_IS_4: return (int32_t)row->rank - RANK_IS_0;
  case RANK_ANY: break;
  }
  return -1;
}
