/* operators/operators.h: what each operator is, described once. A file a family, FAMILY.def, has two kinds of lines:
 *
 *   OPERATOR(domain, name, types, kernel, tail, general, rule, y, x, one)
 *     domain      ONNX (domain "") or OWN (domain "heddle")
 *     types       the element types that the reference kernels compute in: one of HEDDLE__TYPES_*
 *     kernel      the reference kernel ref_plan_KERNEL, which is fast, or none
 *     tail        what fills the bytes behind its op: ref_fill_TAIL, or none
 *     general     more_setup_GENERAL: the kernel for every type, which is plain, or none
 *     rule, ...   the error bound: a rule of plugins/common/check/bound.h, and ulps of the result, of the first operand
 *                 and of 1 that a map may be off
 *   SINCE(domain, name, first, last, least inputs, most inputs, least outputs, most outputs, shapes, kind, infer, attributes)
 *     first, last opsets with this definition; FIRST and LAST are the first and the last that Heddle reads. Graphs have opsets
 *                 from 13 on; the ONNX reader reads models of older ones, and brings them to that form
 *     most        MANY: any number
 *     shapes      bit k: the bytes of input k decide a shape; SHAPES_ONLY: the result follows from shapes alone
 *     kind        VIEW: the output is the first input's bytes under another shape; else TENSOR
 *     infer       shape inference heddle__infer_INFER; general: by more_setup_GENERAL, which says what comes out
 *     attributes  "axis:int,keepdims:flag": every attribute that the definition has, with its kind; a flag is an integer
 *                 that is 0 or 1. tests/python/test_onnx_schemas.py compares them with ONNX's
 *
 * An elementwise operator has lines that define what it computes, from which come the loops of cpu, chains, and the kernels
 * of accelerators:
 *
 *   SCALAR(name, kind, operands, cost, EXPRESSION)
 *     name        the operator's, or of a variant of it: Gelu_tanh. It is the word of plans and of expressions too
 *     kind        of the elements: REAL and INT give one of the operands' type, NUMBER is both; TEST gives a bool of reals
 *                 and of integers, TEST_REAL of reals only; LOGIC gives a bool of bools
 *     operands    1, 2 or 3; MANY: two at a time, for any number of operands
 *     cost        about how long an element takes on a processor, in multiplications
 *     EXPRESSION  of the elements a, b, c and the attributes alpha, beta, in what C, OpenCL C, CUDA C, HIP and GLSL have in
 *                 common: operators, ?:, parentheses, and the words S_*:
 *       S_NUM(0.5), S_INT(1)            a literal, in the type of the elements
 *       S_ABS, S_EXP, S_EXPM1, S_LOG, S_LOG1P, S_SQRT, S_ERF, S_SIGMOID, S_CEIL, S_FLOOR, S_RINT, S_SIN, S_COS, S_TAN,
 *       S_ASIN, S_ACOS, S_ATAN, S_SINH, S_COSH, S_TANH, S_ASINH, S_ACOSH, S_ATANH
 *                                       functions of a real. S_RINT: halves to even
 *       S_AT_LEAST(x, end), S_AT_MOST   x, or the end that it is beyond, of reals; NaN comes through
 *       S_ISNAN, S_ISINF                bool. S_ISNAN of an integer is false
 *       S_OVER(x, end), S_UNDER         x, or the end that it is beyond, of numbers; NaN comes through, of the end too
 *       S_POW, S_REM, S_MOD             powers; remainders with the sign of the first operand, and of the second
 *       S_ADD, S_SUB, S_MUL, S_DIV      of integers; they wrap, and by 0 the quotient, and the remainder, is 0
 *       S_NEGATIVE(x)                   x < 0, of integers; false of unsigned ones
 *       S_SHIFT_LEFT, S_SHIFT_RIGHT     bits shifted by any number of places, read without a sign; by too many, all of them
 *   SCALAR_ATTRIBUTES(name, alpha's attribute, default, beta's attribute, default)
 *                 of the operator's attributes; none: there is no such
 *   SCALAR_VARIANT(name, attribute, value, variant)
 *                 where the attribute has the value, the variant is computed
 *   SCALAR_RANGE(name, least a, most a, least b, most b)
 *                 values of the operands that the conformance kit computes with; without it a few on both sides of 0
 *
 * What the ONNX reader asks besides, and of RESULT lines the optimiser too, before types and shapes are inferred:
 *
 *   RESULT(name, number, type, attribute, rank)
 *     number      of the result; EACH: of all of them
 *     type        OF_0 and so on: that of the operand; BOOL, F32, I32, I64, U8, TEXT; ANY: it is not known
 *     attribute   whose value is the number of the type where a node has it; none
 *     rank        how many dimensions it has: SAME as operand 0, MOST of all operands, IS_0 to IS_4; PRODUCT: of matrices;
 *                 LENGTH: as many as operand 1 has numbers, EXPANDED: at least that; MORE, LESS: by the number of axes;
 *                 REDUCED: LESS unless keepdims; LESS_ONE: of one axis; GATHERED: operand 1's in place of one; ANY
 *                 An elementwise operator needs no such line; result 0 of others has the type of operand 0, if none says more
 *   IN_MODELS(name, attribute, first, last, kind)
 *                 models of those opsets have the attribute. SAME: of the SINCE lines, and in these opsets alone. NEVER: it is
 *                 Heddle's, and no model has it. Else the SINCE lines do not have it, and kind is INT and so on
 *   UPGRADE(name, opset, function)
 *                 heddle__upgrade_FUNCTION brings nodes of models before that opset, or of EVERY one, to the graph's form
 *   GONE(name, first, last)
 *                 an operator that later opsets do not have: its UPGRADE replaces it
 *   MADE_OF_TEXTS(name, opset)
 *                 ONNX's operator of that name, since that opset, becomes that of domain "heddle"
 *
 * SCALAR lines are one line each: cmake/scalars.cmake makes the texts of kernels from them. An expression has no comments,
 * strings, brackets or semicolons.
 *
 * An OPERATOR is followed by its SINCE lines, oldest first. all.def includes every family; a reader defines the macros
 * that it wants and includes it. The tables below, the graph's schemas, the reference kernels, the error bounds and the
 * lists that plugins give are made so. docs/adding-an-operator.md has an example. */
#ifndef HEDDLE_OPERATORS_OPERATORS_H
#define HEDDLE_OPERATORS_OPERATORS_H

#include "heddle/plugin.h"

#include <stdbool.h>

enum { HEDDLE__DOMAIN_ONNX = false, HEDDLE__DOMAIN_OWN = true };

/* Opsets of domain "" that graphs have; of domain "heddle"; and the first of models that the ONNX reader reads. */
enum { HEDDLE__OPSET_FIRST = 13, HEDDLE__OPSET_LAST = 28, HEDDLE__OPSET_OWN = 1, HEDDLE__OPSET_OF_MODELS = 7 };

enum { HEDDLE__VARIADIC = UINT8_MAX, HEDDLE__SHAPES_ONLY = 0x80 };

/* The kind of an attribute that is a graph; the others are HEDDLE_ATTR_*, of the ABI, which such nodes never cross. */
enum { HEDDLE__ATTR_GRAPH = 7 };

/* X(constant, name): element types that a kernel may take. */
#define HEDDLE__ELEMENTS(X) \
  X(F32, "float32") \
  X(F64, "float64") \
  X(F16, "float16") \
  X(BF16, "bfloat16") \
  X(I8, "int8") \
  X(I16, "int16") \
  X(I32, "int32") \
  X(I64, "int64") \
  X(U8, "uint8") \
  X(U16, "uint16") \
  X(U32, "uint32") \
  X(U64, "uint64") \
  X(BOOL, "bool")

enum {
#define HEDDLE__ELEMENT(constant, name) HEDDLE__ELEMENT_##constant,
  HEDDLE__ELEMENTS(HEDDLE__ELEMENT)
#undef HEDDLE__ELEMENT
      HEDDLE__ELEMENT_COUNT
};

#define HEDDLE__TYPE(constant) (1U << HEDDLE__ELEMENT_##constant)

/* Sets of element types. */
enum {
  HEDDLE__TYPES_NONE = 0,
  HEDDLE__TYPES_F32 = HEDDLE__TYPE(F32),
  HEDDLE__TYPES_NARROW_REAL = HEDDLE__TYPE(F32) | HEDDLE__TYPE(F16) | HEDDLE__TYPE(BF16),
  HEDDLE__TYPES_REAL = HEDDLE__TYPES_NARROW_REAL | HEDDLE__TYPE(F64),
  HEDDLE__TYPES_BYTE = HEDDLE__TYPE(I8) | HEDDLE__TYPE(U8),
  HEDDLE__TYPES_INTS = HEDDLE__TYPE(I32) | HEDDLE__TYPE(I64),
  HEDDLE__TYPES_WHOLE = HEDDLE__TYPES_BYTE | HEDDLE__TYPES_INTS | HEDDLE__TYPE(I16) | HEDDLE__TYPE(U16) |
                        HEDDLE__TYPE(U32) | HEDDLE__TYPE(U64),
  HEDDLE__TYPES_COMMON = HEDDLE__TYPES_F32 | (HEDDLE__TYPES_WHOLE & ~HEDDLE__TYPE(U64)),
  HEDDLE__TYPES_NUMBERS = HEDDLE__TYPES_REAL | HEDDLE__TYPES_WHOLE,
  HEDDLE__TYPES_BOOL = HEDDLE__TYPE(BOOL),
  HEDDLE__TYPES_ALL = HEDDLE__TYPES_NUMBERS | HEDDLE__TYPES_BOOL,
  HEDDLE__TYPES_CASTS = HEDDLE__TYPES_ALL & ~(HEDDLE__TYPE(F16) | HEDDLE__TYPE(BF16)),
  HEDDLE__TYPES_CONSTANTS = HEDDLE__TYPE(F32) | HEDDLE__TYPE(I64),
  HEDDLE__TYPES_BYTES = 1 << 30 /* any whose elements fill whole bytes */
};

typedef struct heddle__operator {
  const char *name;
  uint32_t types; /* HEDDLE__TYPE of each */
  bool own;       /* of domain "heddle", else of "" */
} heddle__operator;

/* A definition: what holds for an operator in a range of opsets. */
typedef struct heddle__version {
  const char *name;
  const char *attrs;
  bool own, is_view;
  uint8_t opset_first, opset_last; /* of graphs */
  uint8_t since;                   /* opset_first, or the one before 13 with which ONNX's operator came */
  uint8_t min_inputs, max_inputs;  /* HEDDLE__VARIADIC: any number */
  uint8_t min_outputs, max_outputs;
  uint8_t shape_inputs; /* bit i: input i's bytes decide a shape; or HEDDLE__SHAPES_ONLY */
} heddle__version;

/* In the order of all.def. */
extern const heddle__operator heddle__operators[];
extern const heddle__version heddle__versions[];
extern const uint32_t heddle__operator_count, heddle__version_count;

/* NULL where there is none. Pure, any thread, as all of these. */
const heddle__operator *heddle__operator_find(bool own, const char *name);

/* The definition of an operator in an opset (0: its oldest; own operators match any). NULL where there is none. */
const heddle__version *heddle__version_find(bool own, const char *name, uint32_t opset);

/* The kind, HEDDLE_ATTR_* or HEDDLE__ATTR_GRAPH, of an attribute of that name; 0 where the definition has none. */
uint32_t heddle__version_attr(const heddle__version *version, const char *name);

/* Whether the operator has an attribute of that name in an opset. */
bool heddle__opset_has_attr(const char *op, uint32_t opset, const char *name);

/* Whether the operator draws random numbers: it has an attribute seed. */
bool heddle__operator_draws(bool own, const char *name);

/* Whether the definition has an attribute that is a graph. */
bool heddle__version_runs_graphs(const heddle__version *version);

/* Whether the definition has an attribute of that name that is a flag: an integer that is 0 or 1. */
bool heddle__version_flag(const heddle__version *version, const char *name);

/* "float32,int8": the names of a set of types, for people; "any of whole bytes" of HEDDLE__TYPES_BYTES. */
enum { HEDDLE__TYPES_TEXT = 128 };
const char *heddle__types_text(uint32_t types, char out[HEDDLE__TYPES_TEXT]);

/* Calls list for an operator with the opsets of its definitions and the types of a set. */
heddle_status heddle__operator_list(const heddle__operator *op, uint32_t types, heddle_list_fn list, void *sink,
                                    heddle_error *err);

#endif
