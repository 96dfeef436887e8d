/* The scalar expressions of operators/ as tables: which there are for an operator, and what a node's attributes make of
 * them. The expressions themselves are compiled by ref/lanes_float.c, ref/lanes.c, more/elementwise.c and the kernels. */
#ifndef HEDDLE_PLUGINS_COMMON_SCALAR_H
#define HEDDLE_PLUGINS_COMMON_SCALAR_H

#include "operators/operators.h"

/* Kinds of expressions, as bits. */
enum {
  SCALAR_REAL = 1,
  SCALAR_INT = 2,
  SCALAR_NUMBER = SCALAR_REAL | SCALAR_INT,
  SCALAR_TEST_REAL = 4,
  SCALAR_TEST_INT = 8,
  SCALAR_TEST = SCALAR_TEST_REAL | SCALAR_TEST_INT,
  SCALAR_LOGIC = 16,
};

/* All lines of a name together. */
typedef struct scalar_info {
  uint8_t kinds;
  uint8_t operands; /* HEDDLE__VARIADIC: two at a time, for any number */
} scalar_info;

/* No kinds where there is no such name. Pure, any thread. */
scalar_info scalar_find(const char *name);

/* A number for each name that there is, and back. */
uint16_t scalar_number(const char *name);
const char *scalar_name(uint16_t number);

/* What a node computes. */
typedef struct scalar_call {
  const char *name; /* of a variant, or of the node's operator */
  double alpha, beta;
  uint32_t attributes; /* of the node that were read */
} scalar_call;

/* A number in float32, as ONNX's attributes have them, and their defaults. By way of memory: GCC 12 at -O2 makes vectors of
 * neighbouring conversions there and back, and drops them. */
static inline double scalar_single(double x) {
  const volatile float single = (float)x;
  return (double)single;
}

/* HEDDLE_EUNSUPPORTED with the attribute where one is of another kind, or has a value that no variant has. */
heddle_status scalar_read(const heddle_pnode *node, scalar_call *out, heddle_error *err);

/* The attributes that a name's expression reads as alpha and beta: "none" where there is no such. Never NULL. */
typedef struct scalar_attributes {
  char name[20], alpha[20], beta[20];
  double of_alpha, of_beta; /* defaults */
} scalar_attributes;
const scalar_attributes *scalar_attributes_of(const char *name);

/* Whether there is an expression for an operator, be it of a variant. */
bool scalar_known(const char *op);

/* The variant that an attribute's value makes of an operator; NULL where there is none. */
const char *scalar_variant(const char *op, const char *attribute, const char *value);

/* Variant i of an operator, with the attribute and its value that pick it; NULL behind the last. */
typedef struct scalar_choice {
  char op[20], attribute[20], value[12], variant[20];
} scalar_choice;
const scalar_choice *scalar_choice_of(const char *op, uint32_t i);

/* Whether an attribute picks a variant of an operator. */
bool scalar_has_variants(const char *op, const char *attribute);

#endif
