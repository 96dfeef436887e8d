/* What is done with up to three numbers, by name: the scalar expressions of operators/ as functions. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_ELEMENTWISE_H
#define HEDDLE_PLUGINS_COMMON_MORE_ELEMENTWISE_H

#include "more.h"

typedef struct more_lane {
  char name[20];
  uint8_t kind;                                                            /* a kind of scalar.h */
  double (*real)(double a, double b, double c, double alpha, double beta); /* NULL: not of these types */
  int64_t (*whole)(int64_t a, int64_t b, int64_t c, double alpha, double beta);
  uint64_t (*natural)(uint64_t a, uint64_t b, uint64_t c, double alpha, double beta); /* of unsigned integers */
} more_lane;

#endif
