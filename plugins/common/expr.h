/* Elementwise expressions: what the operator FusedElementwise of domain "heddle" has in its attribute expression, as text
 * and as a short program of steps. It knows nothing of tensors and includes plugin.h only, for any plugin's use.
 *
 * The language. An expression is an input, a number or a call:
 *   x0 x1 ...            the operator's inputs, each used at least once
 *   0.5 -1 2e-3 inf nan  a float32; inf may have a '-'; always with a '.', whatever the locale
 *   Relu(Add(x0, 0.5))   an elementwise operator of ONNX on its operands
 *   Elu(x0, alpha=0.1)   attributes of the operator, named, behind the operands; absent ones have ONNX's defaults
 * Spaces may stand between the words. Min and Max take one or more operands; Clip takes x, low and high, of which the
 * last may be missing, and low and high are numbers or inputs of one element. */
#ifndef HEDDLE_PLUGINS_COMMON_EXPR_H
#define HEDDLE_PLUGINS_COMMON_EXPR_H

#include "heddle/plugin.h"

#include <stdbool.h>

enum {
  EXPR_INPUTS = 8,
  EXPR_NUMBERS = 8, /* different ones */
  EXPR_STEPS = 24,
  EXPR_DEPTH = 24, /* of calls in calls */
  EXPR_BYTES = 2048,
  EXPR_ARGS = 3
};

/* Operators: Identity, and each name that operators/ has a scalar expression of reals for, EXPR_Relu and so on. A name with
 * '_' is a variant, which is reached through an attribute. */
enum {
  EXPR_Identity,
#define EXPR_REAL(name) EXPR_##name,
#define EXPR_NUMBER EXPR_REAL
#define EXPR_INT(name)
#define EXPR_TEST EXPR_INT
#define EXPR_TEST_REAL EXPR_INT
#define EXPR_LOGIC EXPR_INT
#define SCALAR(name, kind, ...) EXPR_##kind(name)
#include "operators/all.def"
#undef EXPR_REAL
#undef EXPR_NUMBER
#undef EXPR_INT
#undef EXPR_TEST
#undef EXPR_TEST_REAL
#undef EXPR_LOGIC
  EXPR_OP_COUNT
};

/* An operand of a step: input k, number i or the result of step s, in one row of numbers. */
enum {
  EXPR_OF_NUMBER = EXPR_INPUTS,
  EXPR_OF_STEP = EXPR_OF_NUMBER + EXPR_NUMBERS,
  EXPR_REFS = EXPR_OF_STEP + EXPR_STEPS
};

/* n_args operands; those of Min and Max are two, of Clip three. */
typedef struct expr_step {
  uint8_t op, n_args;
  uint8_t args[EXPR_ARGS];
  uint8_t reserved[3];
  float params[2]; /* alpha, beta */
} expr_step;

/* Steps in an order in which they can be computed; the last one gives the result, and each other one is used. */
typedef struct expr {
  uint32_t n_inputs, n_numbers, n_steps, reserved;
  float numbers[EXPR_NUMBERS];
  expr_step steps[EXPR_STEPS];
} expr;

typedef struct expr_op {
  char name[20];       /* in the table, so that a loader has nothing to relocate */
  uint8_t least, most; /* operands; 255: any number, two at a time */
} expr_op;

/* By constant, EXPR_OP_COUNT of them. */
extern const expr_op expr_ops[];

/* The constant of an operator's name, or a variant's; -1 where there is none. */
int32_t expr_find(const char *name);

/* Reads a text with n_inputs inputs. HEDDLE_EFORMAT or HEDDLE_ELIMIT, with the position of the character (from 1) and
 * what was expected. Allocates nothing. Any thread. */
heddle_status expr_parse(const char *text, uint32_t n_inputs, expr *out, heddle_error *err);

/* The same piece by piece, on an expr that was zeroed. False where there is no room. add completes Clip's bounds, takes
 * Min and Max of any number of operands apart, and gives the operand of Identity back. */
bool expr_number(expr *e, float number, uint8_t *ref);
bool expr_add(expr *e, int32_t op, const uint8_t *args, uint32_t n_args, const float *params, uint8_t *ref);
bool expr_finish(expr *e, uint8_t ref); /* makes ref the result */

#endif
