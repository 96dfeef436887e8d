/* frontends/onnx/results.c: types and ranks of the results of a node, by the lines RESULT and SCALAR of operators/. */
#include <string.h>

#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"

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
#define TYPE_BOOL ONNX_BOOL
#define TYPE_F32 ONNX_FLOAT
#define TYPE_I32 ONNX_INT32
#define TYPE_I64 ONNX_INT64
#define TYPE_U8 ONNX_UINT8
#define TYPE_TEXT ONNX_STRING
#define SCALAR_REAL OF_0
#define SCALAR_INT OF_0
#define SCALAR_NUMBER OF_0
#define SCALAR_TEST ONNX_BOOL
#define SCALAR_TEST_REAL ONNX_BOOL
#define SCALAR_LOGIC ONNX_BOOL

enum { MANY = HEDDLE__VARIADIC };

typedef struct result_row {
  char op[27];
  uint8_t number;
  char attribute[16];
  int8_t type;
  uint8_t rank;
} result_row;

/* What RESULT lines say stands before an operator's SCALAR lines. */
static const result_row rows[] = {
#define RESULT(op, number, type, attribute, rank) {#op, number, #attribute, TYPE_##type, RANK_##rank},
#define SCALAR(op, kind, operands, ...) {#op, 0, "none", SCALAR_##kind, operands == 1 ? RANK_SAME : RANK_MOST},
#include "operators/all.def"
};

/* Variants of an elementwise operator, Gelu_tanh, are lines of it too. */
static bool is_of(const result_row *row, const char *op, size_t number) {
  const size_t length = strlen(op);
  return (row->number == number || row->number == EACH) && strncmp(row->op, op, length) == 0 &&
         (row->op[length] == '\0' || row->op[length] == '_');
}

static const result_row *row_of(const char *op, size_t number) {
  static const result_row first = {"", 0, "none", OF_0, RANK_ANY}, others = {"", EACH, "none", ANY_TYPE, RANK_ANY};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (is_of(&rows[i], op, number)) return &rows[i];
  return number == 0 ? &first : &others;
}

/* ---- types */

static int32_t type_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node, const result_row *row) {
  if (strcmp(row->attribute, "none") != 0) {
    const int64_t given = heddle__onnx_attr_int(node, row->attribute, 0);
    if (given > 0 && given < INT32_MAX) return (int32_t)given;
  }
  if (row->type >= 0) return row->type;
  const size_t k = (size_t)(-1 - row->type);
  return k < node->n_input ? heddle__onnx_known_of(r, node->input[k]).type : 0;
}

/* ---- ranks; -1: not known */

static int32_t rank_in(const heddle__onnx_reader *r, const Onnx__NodeProto *node, size_t k) {
  return k < node->n_input ? heddle__onnx_known_of(r, node->input[k]).rank : -1;
}

/* The greatest of the first n operands, of which each has at least so many. */
static int32_t most_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node, size_t n, int32_t least) {
  int32_t most = -1;
  for (size_t k = 0; k < n; k++) {
    const int32_t rank = rank_in(r, node, k);
    if (rank < least) return -1;
    if (rank > most) most = rank;
  }
  return most;
}

/* How many numbers operand 1 has, if it is a tensor of the model. */
static int32_t length_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  const Onnx__TensorProto *t = node->n_input > 1 ? heddle__onnx_find_tensor(r, node->input[1]) : NULL;
  return t != NULL && t->n_dims == 1 && t->dims[0] >= 0 && t->dims[0] < 255 ? (int32_t)t->dims[0] : -1;
}

/* How many axes a node names, as an attribute or as operand 1. */
static int32_t axes_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  const Onnx__AttributeProto *a = heddle__onnx_attr(node, "axes");
  return a != NULL && a->n_ints < 255 ? (int32_t)a->n_ints : length_of(r, node);
}

/* A rank less some; -1 where one is not known, or there are not as many. */
static int32_t less(int32_t rank, int32_t some) {
  return some >= 0 && rank >= some ? rank - some : -1;
}

static int32_t rank_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node, rank_rule rule) {
  const int32_t first = rank_in(r, node, 0), length = length_of(r, node), axes = axes_of(r, node);
  const bool keeps = heddle__onnx_attr_int(node, "keepdims", 1) != 0;
  switch (rule) {
  case RANK_SAME: return first;
  case RANK_MOST: return most_of(r, node, node->n_input, 0);
  case RANK_PRODUCT: return most_of(r, node, 2, 2);
  case RANK_LENGTH: return length;
  case RANK_EXPANDED: return first < 0 || length < 0 ? -1 : first > length ? first : length;
  case RANK_MORE: return first >= 0 && axes >= 0 ? first + axes : -1;
  case RANK_LESS: return less(first, axes);
  case RANK_REDUCED: return keeps ? first : axes > 0 ? less(first, axes) : -1;
  case RANK_LESS_ONE: return keeps ? first : less(first, 1);
  case RANK_GATHERED: return first > 0 && rank_in(r, node, 1) >= 0 ? first + rank_in(r, node, 1) - 1 : -1;
  case RANK_IS_0:
  case RANK_IS_1:
  case RANK_IS_2:
  case RANK_IS_3:
  case RANK_IS_4: return (int32_t)rule - RANK_IS_0;
  case RANK_ANY: break;
  }
  return -1;
}

heddle_status heddle__onnx_learn_node(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  heddle_status s = HEDDLE_OK;
  for (size_t k = 0; k < node->n_output && s == HEDDLE_OK; k++) {
    const result_row *row = row_of(node->op_type, k);
    s = heddle__onnx_note(r, node->output[k], type_of(r, node, row), rank_of(r, node, (rank_rule)row->rank));
  }
  return s;
}
