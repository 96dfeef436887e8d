/* executor/fold_number.c: the elementwise operators that shapes are computed with, on one element. Integers wrap as
 * they do on devices; what cannot be computed (a division by 0) is left to the device. */
#include <math.h>
#include <string.h>

#include "core/parts.h"
#include "executor/fold.h"

#if HEDDLE_HAS_FOLD

enum {
  ADD,
  SUB,
  MUL,
  DIV,
  MIN,
  MAX,
  EQUAL,
  GREATER,
  GREATER_EQ,
  LESS,
  LESS_EQ,
  AND,
  OR,
  XOR,
  WHERE,
  NEG,
  ABS,
  NOT,
  CAST
};

static const char *const names[] = {
    "Add", "Sub", "Mul", "Div",   "Min", "Max", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual",
    "And", "Or",  "Xor", "Where", "Neg", "Abs", "Not",   "Cast"};

static bool on_reals(int op, double a, double b, double *out) {
  switch (op) {
  case ADD: *out = a + b; return true;
  case SUB: *out = a - b; return true;
  case MUL: *out = a * b; return true;
  case DIV: *out = a / b; return true;
  case MIN: *out = a < b || a != a ? a : b; return true;
  case MAX: *out = a > b || a != a ? a : b; return true;
  case NEG: *out = -a; return true;
  case ABS: *out = fabs(a); return true;
  default: return false;
  }
}

static bool on_wholes(int op, int64_t a, int64_t b, int64_t *out) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b;
  switch (op) {
  case ADD: *out = (int64_t)(x + y); return true;
  case SUB: *out = (int64_t)(x - y); return true;
  case MUL: *out = (int64_t)(x * y); return true;
  case DIV: *out = b == 0 ? 0 : b == -1 ? (int64_t)(0 - x) : a / b; return b != 0;
  case MIN: *out = a < b ? a : b; return true;
  case MAX: *out = a > b ? a : b; return true;
  case NEG: *out = (int64_t)(0 - x); return true;
  case ABS: *out = a < 0 ? (int64_t)(0 - x) : a; return true;
  case AND: *out = a != 0 && b != 0; return true;
  case OR: *out = a != 0 || b != 0; return true;
  case XOR: *out = (a != 0) != (b != 0); return true;
  case NOT: *out = a == 0; return true;
  default: return false;
  }
}

/* -1, 0, 1; 2 where one is no number. */
static int compared(const heddle__number *a, const heddle__number *b) {
  if (a->real) return a->value < b->value ? -1 : a->value > b->value ? 1 : a->value == b->value ? 0 : 2;
  return a->whole < b->whole ? -1 : a->whole > b->whole;
}

static int op_of(const char *name) {
  int op = 0;
  while (op <= CAST && (name[0] != names[op][0] || strcmp(name, names[op]) != 0)) op++;
  return op;
}

bool heddle__fold_knows(const char *op) {
  return op_of(op) <= CAST;
}

bool heddle__fold_number(const char *name, const heddle__number *in, uint32_t n, heddle__number *out) {
  int op = op_of(name);
  if (op > CAST || n == 0 || n > 3) return false;
  const heddle__number *a = &in[0], *b = &in[n > 1 ? 1 : 0];
  *out = *a;
  if (op == CAST) return true;
  if (op == WHERE) {
    *out = a->whole != 0 ? in[1] : in[2];
    return n == 3;
  }
  if (op >= EQUAL && op <= LESS_EQ) {
    int c = compared(a, b);
    bool yes = op == EQUAL     ? c == 0
               : op == GREATER ? c == 1
               : op == LESS    ? c == -1
                               : c == 0 || c == (op == LESS_EQ ? -1 : 1);
    *out = (heddle__number){false, yes, yes};
    return true;
  }
  if (a->real) return on_reals(op, a->value, b->value, &out->value);
  if (!on_wholes(op, a->whole, b->whole, &out->whole)) return false;
  out->value = (double)out->whole;
  return true;
}
#endif
